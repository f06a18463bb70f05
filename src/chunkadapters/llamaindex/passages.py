"""Passages in LlamaIndex: behind any retriever, and from a saved index alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import (
    BaseNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores import MetadataFilters
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

from chunkadapters.llamaindex.node_parser import KEYS, node_place
from chunkadapters.llamaindex.retrieval import hit_of
from chunkadapters.passages import STRICT, IndexFields, Limits, LocalIndex, Passage, PassageOptions, core_documents
from chunkadapters.places import SPANS, page_marks
from chunkcore.document import Document as CoreDocument
from chunkcore.errors import OptionError


def _core_document(node: BaseNode) -> CoreDocument:
    text = node.get_content(metadata_mode=MetadataMode.NONE)
    return CoreDocument(node.node_id, text, node.metadata, page_marks(node.metadata))


def _core_documents(documents: Any) -> list[CoreDocument]:
    kind: Any = BaseNode
    return core_documents(documents, kind, "LlamaIndex", _core_document)


def _nodes(passages: Iterable[Passage], hits: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    return [_node(passage, hits) for passage in passages]


def _node(passage: Passage, hits: Sequence[NodeWithScore]) -> NodeWithScore:
    text, document = passage.retrieved.text, passage.document
    if document is None:
        hit = hits[passage.hits[0]]
        if text == hit.node.get_content(metadata_mode=MetadataMode.NONE):
            return hit
        node = hit.node.model_copy()
        node.set_content(text)
        return NodeWithScore(node=node, score=hit.score)
    metadata = passage.metadata([hit.node.metadata for hit in hits], KEYS)
    attributes, several = node_place(passage.retrieved.spans)
    best: Any = next((hits[number].node for number in (*passage.hits, *passage.others)), None)
    source = best.source_node if best is not None else None
    node = TextNode(
        id_=passage.id,
        text=text,
        metadata=metadata | several,
        **attributes,
        relationships={NodeRelationship.SOURCE: source or RelatedNodeInfo(node_id=document.id)},
        excluded_embed_metadata_keys=[*getattr(best, "excluded_embed_metadata_keys", ()), SPANS],
        excluded_llm_metadata_keys=[*getattr(best, "excluded_llm_metadata_keys", ()), SPANS],
    )
    return NodeWithScore(node=node, score=passage.retrieved.score)


class PassagePostprocessor(PassageOptions, IndexFields, BaseNodePostprocessor):
    """Passages behind a retriever: exact spans of any size under a budget of tokens.

    For ``node_postprocessors=[PassagePostprocessor(index=folder)]`` of a query engine, behind any retriever with any
    nodes. The nodes count by their order, the question's words by the index. No model is needed, and nothing is
    embedded or ingested again.

    A passage has the document's own text; ``start_char_idx`` and ``end_char_idx``, the best node's metadata and source,
    ``pages`` where the document has pages, and a score, comparable within one answer. A node that is in no document of
    the index, such as an image or a summary, stays as it is, at its rank.

    The index is a copy of the texts: after documents have changed, save it anew
    (``index.update(documents).save(folder)``). A folder is opened again at the next question. A node whose text its
    document no longer has shows the change; a warning says so, and the document's text is not used.

    Args:
        index: a saved index's folder (``chunkcore index docs/ -o folder``), or an index of the retriever passages.
        documents: instead of an index: LlamaIndex' or chunkcore's documents, indexed in memory, by words. They are not
            in configurations.
        words: "hits": passages are of documents that have a hit, so that filters and tenants of the retriever hold.
            "text": passages have no text but the hits', where a filter lets through some chunks of a document and not
            others. "all": passages are of any document of the index.
        balance: the hits' share of a unit's score, 0 to 1.
        max_tokens: of all passages' texts, without metadata.
        k: the most passages.
        counter: of tokens, the language model's own: a name (``"o200k_base"``, ``"hf:..."``) or a function.

    Raises:
        ValueError: an option is out of range, there is no index, or a query is missing.

    Warns:
        PassageWarning: once, of nodes in no document, and of each document that has changed.

    >>> from llama_index.core import Document
    >>> tea = Document(text="Tea is hot. It boils. Ice is cold.", doc_id="tea.md")
    >>> hits = [NodeWithScore(node=TextNode(text="Tea is hot. It", metadata={"file_name": "tea.md"}))]
    >>> passages = PassagePostprocessor(documents=[tea]).postprocess_nodes(hits, query_str="What boils?")
    >>> [found.text for found in passages]
    ['Tea is hot. It boils. Ice is cold.']
    """

    model_config = STRICT

    @staticmethod
    def to_core(documents: Any) -> list[CoreDocument]:
        return _core_documents(documents)

    @classmethod
    def class_name(cls) -> str:
        return "ChunkcorePassagePostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise OptionError("passages are chosen for a question: give query_str or query_bundle")
        return _nodes(self._local.behind(query_bundle.query_str, list(map(hit_of, nodes)), self), nodes)


class PassageRetriever(BaseRetriever):
    """A retriever, with passages behind it: ``PassageRetriever(your_retriever, index=folder)``.

    See `PassagePostprocessor` for the options and for what comes out. ``options`` has them, to be read and assigned.

    Args:
        retriever: any retriever.
        index, documents, words, balance, max_tokens, k, counter: see `PassagePostprocessor`.
        callback_manager: LlamaIndex' own.

    Raises:
        ValueError: an option is out of range, there is no index, or something is no retriever.

    >>> from llama_index.core import Document, MockEmbedding, VectorStoreIndex
    >>> documents = [Document(text="Tea is hot. It boils. Ice is cold.")]
    >>> retriever = VectorStoreIndex.from_documents(documents, embed_model=MockEmbedding(8)).as_retriever()
    >>> [found.text for found in PassageRetriever(retriever, documents=documents).retrieve("Is tea hot?")]
    ['Tea is hot. It boils. Ice is cold.']
    """

    def __init__(
        self,
        retriever: BaseRetriever,
        *,
        index: Any = None,
        documents: Any = None,
        callback_manager: CallbackManager | None = None,
        **options: Any,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        if hasattr(retriever, "as_retriever"):
            raise OptionError(f"{type(retriever).__name__} is an index, not a retriever: pass its .as_retriever()")
        if not isinstance(retriever, BaseRetriever):
            raise OptionError(f"retriever is a LlamaIndex retriever, got {type(retriever).__name__}")
        self.retriever = retriever
        self.options = PassageOptions(**options)
        self._local = LocalIndex(index, None if documents is None else _core_documents(documents))

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._passages(query_bundle, self.retriever.retrieve(query_bundle))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        nodes = await self.retriever.aretrieve(query_bundle)
        return await asyncio.to_thread(self._passages, query_bundle, nodes)

    def _passages(self, query_bundle: QueryBundle, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        return _nodes(self._local.behind(query_bundle.query_str, list(map(hit_of, nodes)), self.options), nodes)


class IndexRetriever(BaseRetriever):
    """A saved index as a retriever: ``IndexRetriever("folder")``, no store.

    An index with vectors of the units gives the exact passages of `chunkcore.Passages`, one without searches by words.
    ``options`` has the limits, to be read and assigned.

    Args:
        index: a saved index's folder, or an index.
        documents: instead of an index, see `PassagePostprocessor`.
        filters: on the documents' metadata.
        max_tokens, k, counter: see `PassagePostprocessor`.
        callback_manager: LlamaIndex' own.

    Raises:
        ValueError: an option is out of range, or there is no index.

    >>> from llama_index.core import Document
    >>> [found.text for found in IndexRetriever(documents=[Document(text="Tea is hot.")]).retrieve("Is tea hot?")]
    ['Tea is hot.']
    """

    def __init__(
        self,
        index: Any = None,
        *,
        documents: Any = None,
        filters: MetadataFilters | None = None,
        callback_manager: CallbackManager | None = None,
        **options: Any,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        if filters is not None and not isinstance(filters, MetadataFilters):
            raise OptionError(f"filters are MetadataFilters, got {type(filters).__name__}")
        self.filters = filters
        self.options = Limits(**options)
        self._local = LocalIndex(index, None if documents is None else _core_documents(documents))

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(self._local.passages(query_bundle.query_str, self.options, self._where()), [])

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)

    def _where(self) -> Any:
        if self.filters is None:
            return None
        return lambda metadata: build_metadata_filter_fn(lambda _: dict(metadata), self.filters)("")
