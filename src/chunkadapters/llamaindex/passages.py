"""Passages in LlamaIndex: `PassageRetriever` over documents or retrievers, `PassagePostprocessor` in a query engine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import Field
from llama_index.core.callbacks import CallbackManager
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.storage.docstore.types import BaseDocumentStore
from typing_extensions import Self

from chunkadapters.configuration import embedder_of
from chunkadapters.hits import merged_id
from chunkadapters.llamaindex.models import as_model
from chunkadapters.llamaindex.node_parser import KEYS, ChunkcoreNodeParser, origin_of
from chunkadapters.llamaindex.retrieval import hit_of, joined_node
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

_BESIDE = 2  # neighbours on each side of a hit


def _assembled(
    maker: PassageMaker, rankings: Sequence[Sequence[NodeWithScore]], docstore: BaseDocumentStore | None
) -> list[NodeWithScore]:
    hits = [each.node for ranking in rankings for each in ranking]
    beside = [] if docstore is None else [NodeWithScore(node=each) for each in _neighbours(hits, docstore)]
    made = []
    for found, parts in maker.passages(rankings, hit_of, beside):
        members = [each.node for each in parts]
        ids = [each.node_id for each in members]
        metadata = passage_metadata(found, [each.metadata for each in members], ids, KEYS)
        for key in (KEYS.start, KEYS.end):
            metadata.pop(key, None)  # a node has them as attributes
        name = ids[0] if len(ids) == 1 else merged_id(ids)
        node = joined_node(members[0], members[-1], found.text, found.spans, metadata, name)
        made.append(NodeWithScore(node=node, score=found.score))
    return made


def _neighbours(hits: Sequence[BaseNode], docstore: BaseDocumentStore) -> list[BaseNode]:
    """The nodes up to two places before and after the hits, as far as the docstore has them."""
    seen = {each.node_id for each in hits}
    found: list[BaseNode] = []
    latest = list(hits)
    for _ in range(_BESIDE):
        related = (info for each in latest for info in (each.prev_node, each.next_node) if info is not None)
        wanted = list(dict.fromkeys(info.node_id for info in related if info.node_id not in seen))
        latest = docstore.get_nodes(wanted, raise_error=False)
        seen.update(wanted)
        found += latest
    return found


class PassagePostprocessor(PassageLimits, BaseNodePostprocessor):
    """Makes passages of a retriever's small nodes: neighbouring hits joined, the best within a budget of tokens.

    For ``node_postprocessors=[PassagePostprocessor(max_tokens=1000)]`` of a query engine, behind anything that returns
    nodes of `ChunkcoreNodeParser`, best first. Let it return 50 nodes or more (``similarity_top_k=50``): of few there
    is little to choose. Scores are not needed. With a docstore that holds the nodes (``index.docstore``), neighbours
    that no search found can join hits.

    A passage has the text of its nodes, joined by a space; ``start_char_idx``, ``end_char_idx`` and, for several
    places, metadata ``spans``; the first node's other metadata, all nodes' ``pages``; ``parts``, each node with id,
    place and score; and ``merged_ids``. Its score is what it is worth over its threshold.

    Args:
        max_tokens: of all passages' texts, without metadata.
        k: the most passages.
        counter: of tokens, the language model's own: a name (``"o200k_base"``, ``"hf:..."``) or a function.
        docstore: not in configurations; pass it again.

    Raises:
        ValueError: an option is out of range.

    Warns:
        PassageWarning: nodes state no place, or have over a third of the budget each.

    >>> from llama_index.core import Document
    >>> parser = ChunkcoreNodeParser("sentence:size=3,counter=words")
    >>> tea = parser.get_nodes_from_documents([Document(text="Tea is hot. It boils. Ice is cold.")])
    >>> hits = [NodeWithScore(node=tea[1]), NodeWithScore(node=tea[0])]
    >>> [each.text for each in PassagePostprocessor(max_tokens=8).postprocess_nodes(hits)]
    ['Tea is hot. It boils.']
    """

    docstore: Any = Field(default=None, exclude=True)

    @classmethod
    def class_name(cls) -> str:
        return "ChunkcorePassagePostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return _assembled(self._maker, [nodes], self.docstore)


class PassageRetriever(BaseRetriever):
    """Retrieves passages: exact spans of any size under a budget of tokens, from small nodes that are indexed once.

    From retrievers or indices over nodes of `ChunkcoreNodeParser`, dense, lexical or both: their hits are joined where
    they are neighbours, see `PassagePostprocessor` for what comes out. `from_documents` indexes documents in memory and
    finds the best passages of all sizes exactly.

    Args:
        retrievers: one or several; an index is searched for `hits` nodes. Let a retriever return as many.
        max_tokens: of all passages' texts, without metadata.
        k: the most passages.
        counter: of tokens; see `PassagePostprocessor`.
        hits: of each index.
        docstore: of the nodes, for neighbours; see `PassagePostprocessor`.
        callback_manager: LlamaIndex' own.

    Raises:
        ValueError: an option is out of range, or something is no retriever.

    Warns:
        PassageWarning: nodes state no place, or have over a third of the budget each.

    >>> from llama_index.core import Document
    >>> documents = [Document(text="Tea is hot. It boils. Ice is cold.")]
    >>> retriever = PassageRetriever.from_documents(documents, units="sentence:size=3,counter=words", max_tokens=8)
    >>> [each.text for each in retriever.retrieve("Is tea hot?")]
    ['Tea is hot. It boils.']
    """

    def __init__(
        self,
        retrievers: Any = (),
        *,
        max_tokens: int = MAX_TOKENS,
        k: int | None = None,
        counter: Counter = COUNTER,
        hits: int = DEPTH,
        docstore: BaseDocumentStore | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        listed = list(retrievers) if isinstance(retrievers, list | tuple) else [retrievers]
        self._retrievers = [
            each.as_retriever(similarity_top_k=hits) if hasattr(each, "as_retriever") else each for each in listed
        ]
        if wrong := [type(each).__name__ for each in self._retrievers if not isinstance(each, BaseRetriever)]:
            raise OptionError(f"retrievers are LlamaIndex retrievers or indices, got {wrong[0]}")
        self._maker = PassageMaker(max_tokens=max_tokens, k=k, counter=counter)
        self._docstore = docstore
        self._documents: list[BaseNode] = []
        self._parser: ChunkcoreNodeParser | None = None
        self._search: PassageSearch | None = None

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[BaseNode],
        embed_model: BaseEmbedding | Embedder | str | None = None,
        *,
        units: Chunker | str = UNITS,
        max_tokens: int = MAX_TOKENS,
        k: int | None = None,
        counter: Counter = COUNTER,
    ) -> Self:
        """A retriever over documents, indexed in memory by the core's retriever ``passages``.

        A passage has one span of its document; it is a node as `ChunkcoreNodeParser` makes it, with ``parts``.

        Args:
            documents: LlamaIndex documents.
            embed_model: searches by vectors too; without it, by words alone, and no model is needed.
            units: cuts the small chunks that are indexed; chunks must not overlap.
            max_tokens, k, counter: see the class.

        Raises:
            ValueError: an option is out of range, units overlap, or something else than documents is given.
        """
        made = cls(max_tokens=max_tokens, k=k, counter=counter)
        made._documents = listed(documents, BaseNode, "LlamaIndex")
        made._parser = ChunkcoreNodeParser(units)
        texts = [
            (each.get_content(metadata_mode=MetadataMode.NONE), each.metadata.get("title")) for each in made._documents
        ]
        embedder = embedder_of(embed_model, as_model)
        made._search = PassageSearch.of_texts(texts, made._parser.chunker, embedder, made._maker)
        return made

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self._search is not None:
            return self._found(self._search, query_bundle.query_str)
        return _assembled(self._maker, [each.retrieve(query_bundle) for each in self._asked()], self._docstore)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self._search is not None:
            return await asyncio.to_thread(self._found, self._search, query_bundle.query_str)
        found = await asyncio.gather(*(each.aretrieve(query_bundle) for each in self._asked()))
        return await asyncio.to_thread(_assembled, self._maker, found, self._docstore)

    def _asked(self) -> list[BaseRetriever]:
        if not self._retrievers:
            raise OptionError("there is nothing to search: give retrievers, or documents by from_documents")
        return self._retrievers

    def _found(self, search: PassageSearch, query: str) -> list[NodeWithScore]:
        made: list[NodeWithScore] = []
        for found in search.search(query):
            source = self._documents[int(found.document_id)]
            assert self._parser is not None
            node = self._parser.node_of(source, as_chunk(found, source.node_id, len(made)))
            origin = origin_of(source, source.get_content(metadata_mode=MetadataMode.NONE))
            node.metadata[PARTS] = parts_of(found, KEYS, origin=origin)
            node.excluded_embed_metadata_keys.append(PARTS)
            node.excluded_llm_metadata_keys.append(PARTS)
            made.append(NodeWithScore(node=node, score=found.score))
        return made
