"""Passages in LangChain: `PassageRetriever` over documents or retrievers, `PassageCompressor` behind any retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun, Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore
from pydantic import Field, PrivateAttr, field_validator
from typing_extensions import Self

from chunkadapters.configuration import build, embedder_of
from chunkadapters.hits import merged_id
from chunkadapters.langchain.models import as_model
from chunkadapters.langchain.retrieval import hit_of
from chunkadapters.langchain.splitter import KEYS, document_of, source_of
from chunkadapters.passages import (
    COUNTER,
    DEPTH,
    MAX_TOKENS,
    UNITS,
    Counter,
    PassageLimits,
    PassageMaker,
    PassageSearch,
    as_chunk,
    listed,
    parts_of,
    passage_metadata,
)
from chunkadapters.places import PARTS
from chunkcore.chunkers import Chunker
from chunkcore.errors import OptionError
from chunkcore.models import Embedder


def _assembled(maker: PassageMaker, rankings: Sequence[Sequence[Document]]) -> list[Document]:
    made = []
    for found, members in maker.passages(rankings, hit_of):
        ids = [each.id or merged_id([each.page_content]) for each in members]
        metadata = passage_metadata(found, [each.metadata for each in members], ids, KEYS) | {"score": found.score}
        name = ids[0] if len(ids) == 1 else merged_id(ids)
        made.append(Document(page_content=found.text, metadata=metadata, id=name))
    return made


class PassageCompressor(PassageLimits, BaseDocumentCompressor):
    """Makes passages of a retriever's small chunks: neighbouring hits joined, the best within a budget of tokens.

    For ``ContextualCompressionRetriever(base_compressor=PassageCompressor(max_tokens=1000), base_retriever=...)``,
    behind anything that returns chunks of `ChunkcoreTextSplitter` in its order: a vector store, an ensemble, a
    multi-query retriever. Let it return 50 chunks or more (``search_kwargs={"k": 50}``): of few there is little to
    choose. Scores are not needed.

    A passage has the text of its chunks, joined by a space where the source is not given; ``start_index``,
    ``end_index`` and, for several places, ``spans``; its first chunk's other metadata, all chunks' ``pages``;
    ``score``, what it is worth over its threshold; ``parts``, each chunk with id, place and score; and ``merged_ids``.

    Args:
        max_tokens: of all passages' texts.
        k: the most passages.
        counter: of tokens, the language model's own: a name (``"o200k_base"``, ``"hf:..."``), or a function such as
            ``model.get_num_tokens``.

    Raises:
        ValueError: an option is out of range.

    Warns:
        PassageWarning: hits state no place, or chunks have over a third of the budget each.

    >>> place = {"source_id": "tea.md"}
    >>> hits = [
    ...     Document(page_content=text, metadata=place | {"start_index": start})
    ...     for start, text in [(9, "It boils."), (0, "Tea: hot"), (500, "Or cold.")]
    ... ]
    >>> [each.page_content for each in PassageCompressor(max_tokens=8).compress_documents(hits, "hot?")]
    ['Tea: hot It boils.']
    """

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """The passages, best first. The query is not used.

        Raises `DataError` for anything but documents.
        """
        return _assembled(self._maker, [documents])


class PassageRetriever(PassageLimits, BaseRetriever):
    """Retrieves passages: exact spans of any size under a budget of tokens, from small chunks that are indexed once.

    From retrievers or vector stores over chunks of `ChunkcoreTextSplitter`, dense, lexical or both: their hits are
    joined where they are neighbours, see `PassageCompressor` for what comes out. `from_documents` indexes documents in
    memory and finds the best passages of all sizes exactly.

    Args:
        retrievers: one or several; a vector store is searched for `hits` chunks. Let a retriever return as many.
        max_tokens: of all passages' texts.
        k: the most passages.
        counter: of tokens; see `PassageCompressor`.
        hits: of each vector store.

    Raises:
        ValueError: an option is out of range, or something is no retriever.

    Warns:
        PassageWarning: hits state no place, or chunks have over a third of the budget each.

    >>> documents = [Document(page_content="Tea is hot. It boils. Ice is cold.", metadata={"source": "tea.md"})]
    >>> retriever = PassageRetriever.from_documents(documents, units="sentence:size=3,counter=words", max_tokens=8)
    >>> [each.page_content for each in retriever.invoke("Is tea hot?")]
    ['Tea is hot. It boils.']
    """

    retrievers: list[Any] = Field(default_factory=list)
    hits: int = Field(default=DEPTH, ge=1, strict=True)
    _documents: list[Document] = PrivateAttr(default_factory=list)
    _search: PassageSearch | None = PrivateAttr(default=None)

    @field_validator("retrievers", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        listed = list(value) if isinstance(value, list | tuple) else [value]
        if wrong := [type(each).__name__ for each in listed if not isinstance(each, Runnable | VectorStore)]:
            raise OptionError(f"retrievers are LangChain retrievers or vector stores, got {wrong[0]}")
        return listed

    @classmethod
    def is_lc_serializable(cls) -> bool:
        return True

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        embeddings: Embeddings | Embedder | str | None = None,
        *,
        units: Chunker | str = UNITS,
        max_tokens: int = MAX_TOKENS,
        k: int | None = None,
        counter: Counter = COUNTER,
    ) -> Self:
        """A retriever over documents, indexed in memory by the core's retriever ``passages``.

        A passage has one span of its document; its metadata are those of a chunk of `ChunkcoreTextSplitter`, with
        ``score`` and ``parts``.

        Args:
            documents: as for `ChunkcoreTextSplitter.split_documents`.
            embeddings: searches by vectors too; without them, by words alone, and no model is needed.
            units: cuts the small chunks that are indexed; chunks must not overlap.
            max_tokens, k, counter: see the class.

        Raises:
            ValueError: an option is out of range, units overlap, or something else than documents is given.
        """
        made = cls(max_tokens=max_tokens, k=k, counter=counter)
        made._documents = listed(documents, Document, "LangChain")
        texts = [(each.page_content, each.metadata.get("title")) for each in made._documents]
        made._search = PassageSearch.of_texts(texts, build(units), embedder_of(embeddings, as_model), made._maker)
        return made

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        if self._search is not None:
            return self._found(self._search, query)
        told = {"callbacks": run_manager.get_child()}
        return _assembled(self._maker, [each.invoke(query, config=told) for each in self._runnables()])

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        if self._search is not None:
            return await asyncio.to_thread(self._found, self._search, query)
        told = {"callbacks": run_manager.get_child()}
        found = await asyncio.gather(*(each.ainvoke(query, config=told) for each in self._runnables()))
        return _assembled(self._maker, found)

    def _runnables(self) -> list[Any]:
        if not self.retrievers:
            raise OptionError("there is nothing to search: give retrievers, or documents by from_documents")
        stores = {"search_kwargs": {"k": self.hits}}
        return [each.as_retriever(**stores) if isinstance(each, VectorStore) else each for each in self.retrievers]

    def _found(self, search: PassageSearch, query: str) -> list[Document]:
        made: list[Document] = []
        for found in search.search(query):
            source = self._documents[int(found.document_id)]
            document = document_of(source, as_chunk(found, source.id or found.document_id, len(made)))
            _, origin = source_of(source.id, source.page_content, source.metadata)
            document.metadata |= {PARTS: parts_of(found, KEYS, origin=origin), "score": found.score}
            made.append(document)
        return made
