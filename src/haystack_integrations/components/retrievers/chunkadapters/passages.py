"""Passages in Haystack: of any retrievers' documents, or of all chunks of a document store."""
# Annotations are not postponed: Haystack would not see that a socket takes several connections.

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from haystack import Document, component
from haystack.core.component.types import Variadic

from chunkadapters._haystack import (
    Serialized,
    as_model,
    check_documents,
    hit_of,
    joined_meta,
    keys_of,
    restored,
    written,
)
from chunkadapters.configuration import embedder_of
from chunkadapters.hits import merged_id
from chunkadapters.passages import COUNTER, MAX_TOKENS, Counter, PassageMaker, PassageSearch, counter_name, parts_of
from chunkadapters.places import PARTS
from chunkcore.document import Chunk
from chunkcore.document import Document as CoreDocument
from chunkcore.errors import DataError
from chunkcore.models import Embedder, Vectors
from chunkcore.retrieval import ChunkedCorpus
from chunkcore.retrieval.corpus import Titles
from chunkcore.run import Retrieved

_BESIDE = 2  # neighbours on each side of a hit


def _document(found: Retrieved, members: Sequence[Document]) -> Document:
    ids = [each.id for each in members]
    meta = joined_meta([each.meta for each in members], ids, found.spans)
    meta[PARTS] = parts_of(found, keys_of(meta), ids)
    name = ids[0] if len(ids) == 1 else merged_id(ids)
    return Document(id=name, content=found.text, meta=meta, score=found.score)


class _Limited(Serialized):
    def __init__(self, max_tokens: int, k: int | None, counter: Counter) -> None:
        self._maker = PassageMaker(max_tokens=max_tokens, k=k, counter=counter)

    def _arguments(self) -> dict[str, Any]:
        maker = self._maker
        return {"max_tokens": maker.max_tokens, "k": maker.k, "counter": counter_name(maker.counter)}


@component
class ChunkcorePassageAssembler(_Limited):
    """Makes passages of retrievers' small chunks: neighbouring hits joined, the best within a budget of tokens.

    Connect one retriever or several to ``documents``, dense, lexical or both, or a joiner or ranker behind them; the
    documents are chunks of `ChunkcoreDocumentSplitter`, best first. Let a retriever return 50 (``top_k=50``): of few
    there is little to choose. Scores are not needed, and several retrievers need no joiner. With a document store,
    neighbours that no search found can join hits.

    A passage has the text of its chunks, joined by a space; ``split_idx_start``, ``split_idx_end`` and, for several
    places, ``spans``; its first chunk's other metadata, with its page, and all chunks' ``pages``; ``parts``, each chunk
    with id, place and score; and ``merged_ids``. Its score is what it is worth over its threshold.

    Args:
        max_tokens: of all passages' contents.
        k: the most passages.
        counter: of tokens, the language model's own: a name (``"o200k_base"``, ``"hf:..."``) or a function.
        document_store: of the chunks, for neighbours: one more query to it.

    Raises:
        OptionError: a `ValueError`: an option is out of range.

    Warns:
        PassageWarning: hits state no place, or chunks have over a third of the budget each.

    >>> hits = [
    ...     Document(content=text, meta={"source_id": "tea", "split_idx_start": start})
    ...     for start, text in [(12, "It boils."), (0, "Tea is hot."), (500, "Or cold.")]
    ... ]
    >>> [each.content for each in ChunkcorePassageAssembler(max_tokens=8).run([hits])["documents"]]
    ['Tea is hot. It boils.']
    """

    def __init__(
        self,
        max_tokens: int = MAX_TOKENS,
        k: int | None = None,
        counter: Counter = COUNTER,
        document_store: Any = None,
    ) -> None:
        _Limited.__init__(self, max_tokens, k, counter)
        self.document_store = document_store

    def _arguments(self) -> dict[str, Any]:
        return {**_Limited._arguments(self), "document_store": self.document_store}

    @component.output_types(documents=list[Document])
    def run(self, documents: Variadic[list[Document]]) -> dict[str, list[Document]]:
        """Make passages. Returns ``{"documents": passages}``, best first.

        Args:
            documents: a list for each retriever, best first.

        Raises:
            TypeError: not lists of `Document`.
        """
        rankings: list[list[Document]] = list(documents)
        for each in rankings:
            check_documents(self, each)
        hits = [each for ranking in rankings for each in ranking]
        beside = [] if self.document_store is None else _neighbours(hits, self.document_store)
        return {"documents": [_document(*each) for each in self._maker.passages(rankings, hit_of, beside)]}

    @component.output_types(documents=list[Document])
    async def run_async(self, documents: Variadic[list[Document]]) -> dict[str, list[Document]]:
        return await asyncio.to_thread(self.run, documents)


def _neighbours(hits: Iterable[Document], store: Any) -> list[Document]:
    """The chunks up to two places before and after the hits."""
    places: dict[str, set[int]] = {}
    for each in hits:
        source, number = each.meta.get("source_id"), each.meta.get("split_id")
        if isinstance(source, str) and type(number) is int:
            places.setdefault(source, set()).update(range(number - _BESIDE, number + _BESIDE + 1))
    conditions = [
        {
            "operator": "AND",
            "conditions": [
                {"field": "meta.source_id", "operator": "==", "value": source},
                {"field": "meta.split_id", "operator": "in", "value": sorted(each for each in numbers if each >= 0)},
            ],
        }
        for source, numbers in places.items()
    ]
    if not conditions:
        return []
    found: list[Document] = store.filter_documents(filters={"operator": "OR", "conditions": conditions})
    return found


class _Held(NamedTuple):
    """What was read of the store, replaced as a whole: another thread may be searching."""

    size: int
    search: PassageSearch
    chunks: Mapping[tuple[str, Any], Document]

    def members(self, found: Retrieved) -> list[Document]:
        return [self.chunks[part.document_id, part.spans] for part in found.parts]


@component
class ChunkcorePassageRetriever(_Limited):
    """Retrieves passages: exact spans of any size under a budget of tokens, from a store of small chunks.

    The chunks of the document store are read once, from `ChunkcoreDocumentSplitter` without overlap, such as with
    ``sentence:size=50``, and scored for each question at every size by the core's retriever ``passages``: by words, and
    by the vectors that the store holds, which are not computed again. They are read anew when their number changes.
    A question that begins with a document's title (its chunks' ``title``, else its first line) and a colon is asked of
    that document alone. What comes out is described at `ChunkcorePassageAssembler`.

    Args:
        document_store: with the chunks; all are held in memory.
        text_embedder: embeds questions like the chunks: a Haystack text embedder, a chunkcore embedder or its name;
            None for a search by words alone.
        max_tokens: of all passages' contents.
        k: the most passages.
        counter: of tokens.

    Raises:
        OptionError: a `ValueError`: an option is out of range.

    >>> from haystack.document_stores.in_memory import InMemoryDocumentStore
    >>> store = InMemoryDocumentStore()
    >>> _ = store.write_documents([
    ...     Document(content=text, meta={"source_id": "tea", "split_idx_start": start})
    ...     for start, text in [(0, "Tea is hot."), (12, "It boils."), (22, "Ice is cold.")]
    ... ])
    >>> [each.content for each in ChunkcorePassageRetriever(store, max_tokens=8).run("Is tea hot?")["documents"]]
    ['Tea is hot. It boils.']
    """

    def __init__(
        self,
        document_store: Any,
        text_embedder: Any = None,
        max_tokens: int = MAX_TOKENS,
        k: int | None = None,
        counter: Counter = COUNTER,
    ) -> None:
        _Limited.__init__(self, max_tokens, k, counter)
        self.document_store = document_store
        self._embedder = embedder_of(restored(text_embedder), as_model)
        self._held: _Held | None = None

    def _arguments(self) -> dict[str, Any]:
        embedder = self._embedder
        model = {} if embedder is None else {"text_embedder": written(embedder, embedder.name)}
        return {"document_store": self.document_store, **model, **_Limited._arguments(self)}

    @component.output_types(documents=list[Document])
    def run(self, query: str) -> dict[str, list[Document]]:
        """Search. Returns ``{"documents": passages}``, best first.

        Raises:
            DataError: a `ValueError`: chunks overlap or state no place; or, with a text embedder, lack a vector.
            ModelError: the model failed, or gave a wrong answer, twice.
        """
        held = self._current()
        found = held.search.search(query)
        return {"documents": [_document(each, held.members(each)) for each in found]}

    @component.output_types(documents=list[Document])
    async def run_async(self, query: str) -> dict[str, list[Document]]:
        return await asyncio.to_thread(self.run, query)

    def _current(self) -> _Held:
        count, held = self.document_store.count_documents(), self._held
        if held is None or count != held.size:
            held = self._held = self._indexed(count)
        return held

    def _indexed(self, count: int) -> _Held:
        documents: list[Document] = self.document_store.filter_documents()
        hits = list(map(hit_of, documents))
        if lost := [hit.text for hit in hits if not hit.parts()]:
            raise DataError(
                f"the chunk that begins with {lost[0][:40]!r} does not say where in its document it stands: cut it "
                "with chunkadapters' splitter"
            )
        counts = self._maker.tokens.count_many([hit.text for hit in hits]).tolist()
        chunks = [
            Chunk(hit.document, number, hit.spans, hit.text, tokens)
            for number, (hit, tokens) in enumerate(zip(hits, counts, strict=True))
        ]
        embedder = None if self._embedder is None else _StoredVectors(documents, self._embedder)
        held = {(hit.document, hit.spans): each for hit, each in zip(hits, documents, strict=True)}
        corpus = ChunkedCorpus(chunks)
        first: dict[str, Chunk] = {}
        for each in chunks:
            first[each.document_id] = min(each, first.get(each.document_id, each), key=lambda chunk: chunk.start)
        corpus.titles = Titles(
            CoreDocument(name, each.text, {"title": held[name, each.spans].meta.get("title")})
            for name, each in first.items()
        )
        return _Held(count, PassageSearch(corpus, embedder, self._maker), held)


class _StoredVectors:
    def __init__(self, documents: Sequence[Document], embedder: Embedder) -> None:
        if lacking := [each for each in documents if each.embedding is None]:
            raise DataError(
                f"{len(lacking)} of {len(documents)} chunks of the store have no embedding: embed them before they are "
                "written, or leave text_embedder out"
            )
        self._rows: Mapping[str, list[float]] = {each.content or "": each.embedding or [] for each in documents}
        self._embedder = embedder
        self.name, self.fingerprint, self.max_tokens = embedder.name, embedder.fingerprint, embedder.max_tokens

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return np.array([self._rows[text] for text in texts], dtype=np.float32)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self._embedder.embed_queries(texts)
