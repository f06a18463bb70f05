"""LlamaIndex' retrievers: scores, passages behind them and from a saved index; updates."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.utils import embed_nodes
from llama_index.core.node_parser import NodeParser
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import BaseQueryEngine
from llama_index.core.retrievers import (
    BaseRetriever,
    QueryFusionRetriever,
    VectorIndexRetriever,
)
from llama_index.core.schema import (
    BaseNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores import (
    FilterCondition,
    MetadataFilter,
    MetadataFilters,
    SimpleVectorStore,
)
from llama_index.core.vector_stores.utils import build_metadata_filter_fn
from pydantic import FieldSerializationInfo, PrivateAttr, field_serializer

from chunkadapters.behind import (
    BALANCE,
    FETCH_K,
    Indexed,
    IndexLike,
    LocalIndex,
    MaxTokens,
    Order,
    Passage,
    Show,
    Shown,
    TokenCounterLike,
    core_documents,
    written_option,
)
from chunkadapters.llamaindex.node_parser import (
    KEYS,
    PASSAGE,
    core_document,
    origin_of,
    stated_place,
    text_of,
)
from chunkadapters.places import ALSO_IN, LOCATED, Metadata, MetadataLike
from chunkadapters.scores import (
    DeployedRetriever,
    RetrieverHooks,
    check_is_retriever,
)
from chunkcore.errors import DataError, OptionError, kind_of
from chunkcore.locating import Hit, names_of
from chunkcore.options import check_number, suggesting
from chunkcore.retrieval.where import Where, check_values
from chunkcore.text import Document as CoreDocument

# Where readers and users write a document's name.
_NAMING_KEYS = ("source_id", "file_path", "file_name", "source")


def hit_of(node_or_hit: BaseNode | NodeWithScore) -> Hit:
    """A node, with a score or without, as a hit."""
    node = node_or_hit.node if isinstance(node_or_hit, NodeWithScore) else node_or_hit
    metadata = stated_place(node)
    documents = names_of(node.ref_doc_id, metadata.get("source_id"))
    return KEYS.hit(
        text_of(node),
        metadata,
        [node.ref_doc_id, *map(metadata.get, _NAMING_KEYS)],
        getattr(node_or_hit, "score", None),
        document=next(iter(documents), ""),
        id=node.node_id,
        # LlamaIndex' own splitters search for their nodes, whose ids are UUIDs with dashes; `exact` says how it placed.
        searched="-" in node.node_id and LOCATED not in metadata,
    )


# ---- Scores


def _system(retriever: BaseRetriever | BaseQueryEngine) -> DeployedRetriever:
    name = type(retriever).__name__
    if isinstance(retriever, BaseRetriever):

        def filtered(where: MetadataLike) -> DeployedRetriever:
            return _system(_narrowed(retriever, where))

        return DeployedRetriever(name, retriever.retrieve, retriever.aretrieve, retriever, filtered)
    if not isinstance(retriever, BaseQueryEngine):
        raise DataError(
            f"expected a LlamaIndex retriever, got {kind_of(retriever)}; subclass BaseRetriever"
        )
    # A query engine's hits are asked for after post-processing; no answer is written.
    engine: Any = retriever
    if type(engine).retrieve is BaseQueryEngine.retrieve:
        raise DataError(f"{name} does not tell what it retrieves: pass its retriever")

    def ask(question: str) -> object:
        return engine.retrieve(QueryBundle(question))

    async def aask(question: str) -> object:
        if hasattr(engine, "aretrieve"):
            return await engine.aretrieve(QueryBundle(question))
        return await asyncio.to_thread(ask, question)

    return DeployedRetriever(name, ask, aask, retriever)


def _narrowed(retriever: BaseRetriever, where: MetadataLike) -> BaseRetriever:
    """A copy of the retriever that also obeys a question's filter. Raises `OptionError`: it would ignore the filter."""
    narrowed = copy(retriever)
    name = type(retriever).__name__
    if isinstance(narrowed, PassageRetriever):
        narrowed.options._behind().check_call(["the filter of a question (where)"])
        narrowed.retriever = _narrowed(narrowed.retriever, where)
    elif isinstance(narrowed, IndexRetriever):
        narrowed.filters = _both(narrowed.filters, where, name)
    elif type(narrowed) is VectorIndexRetriever:  # a subclass may search otherwise
        narrowed._filters = _both(narrowed._filters, where, name)
    else:
        raise OptionError(f"a question has a filter (where), and {name} takes none in a call")
    return narrowed


def _check_filters(filters: object) -> None:
    """Raise `OptionError`: not `MetadataFilters`, or with a value that no metadata can equal."""
    if isinstance(filters, MetadataFilter):
        check_values({filters.key: filters.value})
        return
    if not isinstance(filters, MetadataFilters):
        raise OptionError(f"filters are MetadataFilters, got {kind_of(filters)}")
    for part in filters.filters:
        _check_filters(part)


def _both(filters: MetadataFilters | None, where: MetadataLike, name: str) -> MetadataFilters:
    """A retriever's own filters and those of one question."""
    parts = []
    if filters is not None:
        parts += filters.filters
        # Stores take one condition for all filters, and LlamaIndex' own no filters within filters.
        if filters.condition not in (None, FilterCondition.AND):
            raise OptionError(
                f"a question has a filter (where), and {name} has filters of its own under the condition "
                f"{filters.condition}: only AND takes one more"
            )
    for key, value in where.items():
        if isinstance(value, bool):
            raise OptionError(
                f"a question has a filter (where) with {value} for {key!r}, and LlamaIndex' filters have only texts "
                "and numbers"
            )
        parts.append(MetadataFilter(key=key, value=value))
    return MetadataFilters(filters=parts)


_hooks: RetrieverHooks[BaseRetriever | BaseQueryEngine] = RetrieverHooks(
    _system, hit_of, BaseNode | NodeWithScore, "nodes with scores"
)
run_retriever = _hooks.run_retriever
arun_retriever = _hooks.arun_retriever
evaluate_retriever = _hooks.evaluate_retriever
aevaluate_retriever = _hooks.aevaluate_retriever


# ---- Passages

Documents = Iterable[BaseNode | CoreDocument]


class _PassageNode(TextNode):
    """A passage. Nodes that LlamaIndex' splitters cut from it are nodes of its document, without a place.

    They search for their nodes in the text that they cut, whose places are not those in the document.
    """

    def as_related_node_info(self) -> RelatedNodeInfo:
        source = self.source_node
        assert source is not None
        return source.model_copy(update={"metadata": self.metadata})


class _Indexed(Indexed):
    """An index, and the nodes that it was made of: they say what models read of their metadata, and how."""

    _nodes: dict[str, BaseNode] = PrivateAttr(default_factory=dict)

    def _core_documents(self) -> list[CoreDocument] | None:
        listed = None if self.documents is None else list(self.documents)
        kind: Any = BaseNode
        rows = core_documents(listed, kind, "LlamaIndex", core_document)
        named = zip(rows or (), listed or (), strict=True)
        self._nodes = {row.id: node for row, node in named if isinstance(node, BaseNode)}
        return rows

    def _node(self, passage: Passage, hits: Sequence[NodeWithScore]) -> NodeWithScore:
        """A passage as a node."""
        text, document = passage.retrieved.text, passage.document
        if document is None:
            hit = hits[passage.hits[0]].model_copy(deep=True)
            if text != text_of(hit.node):
                hit.node.set_content(text)
            return hit
        nodes = [hits[number].node for number in (*passage.hits, *passage.others)]
        source = nodes[0].source_node if nodes else None
        spans, given = passage.retrieved.spans, self._nodes.get(document.id)
        if given is not None and given.source_node is not None:  # nodes were given as documents
            spans = origin_of(given, document.text).place(spans)
            source = source or given.source_node
        source = source or RelatedNodeInfo(node_id=document.id)
        # LlamaIndex copies a node's metadata to all nodes that are cut from it, and to citations; a relationship's not.
        # The relationship itself is copied: its spans are those of the node that has this id.
        relation = source.metadata.copy()
        relation.pop(ALSO_IN, None)  # of a passage that this one was made of
        place = KEYS.write(spans)
        if KEYS.spans in place:
            relation |= {KEYS.spans: place.pop(KEYS.spans), PASSAGE: passage.id}
        metadata = passage.metadata([hit.node.metadata for hit in hits], KEYS)
        if ALSO_IN in metadata:  # places, which no model reads and no later cut takes over
            relation[ALSO_IN] = metadata.pop(ALSO_IN)
        if passage.is_whole and given is not None:
            nodes.append(given)
        values = {**place, **_shown(nodes), "metadata": metadata}
        node = _PassageNode(id_=passage.id, text=text, **values)
        source = source.model_copy(update={"metadata": relation})
        node.relationships[NodeRelationship.SOURCE] = source
        return NodeWithScore(node=node, score=passage.retrieved.score)


def _shown(nodes: Sequence[BaseNode]) -> Metadata:
    """How models see the nodes: without the keys that one of them keeps from a model, in the first one's form."""
    values = {}
    for field in ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys"):
        values[field] = sorted(set().union(*(getattr(node, field) for node in nodes)))
    for template in ("text_template", "metadata_template", "metadata_separator"):
        if nodes and hasattr(nodes[0], template):
            values[template] = getattr(nodes[0], template)
    return values


class PassagePostprocessor(_Indexed, Shown, BaseNodePostprocessor):
    """Passages behind a retriever: exact spans of its hits' text, of any size, under a budget of tokens.

    For ``node_postprocessors=[PassagePostprocessor(index=folder)]`` of a query engine, behind any retriever with any
    nodes. Let the retriever give about 100 (``similarity_top_k=100``). docs/guides/passages.md says how passages are
    chosen.

    A passage has the document's own text; ``start_char_idx`` and ``end_char_idx``, the metadata that its nodes share,
    their source, templates and excluded keys, ``pages`` where the document has pages, and a score, comparable within
    one answer. Several spans (``"0-12,40-55"``) stand as ``spans`` in the metadata of the source relationship, which
    later splits and citations do not take over as theirs; so does ``also_in``. A node without a place in the index,
    such as an image or a summary, stays as it is, at its rank.

    The index is a copy of the texts: after documents have changed, save it anew
    (``index.update(documents).save(folder)``). A folder is opened again at the next question.

    Args:
        index: a saved index's folder (``chunkcore index docs/ -o folder``), or an index of the retriever passages.
        documents: instead of an index: LlamaIndex' or chunkcore's documents, indexed in memory, by words. They are not
            in configurations.
        show, max_tokens, k, balance, order: see `chunkadapters.behind.Behind`.
        counter: your language model's tokenizer: a name (``"o200k_base"``, ``"hf:..."``) or a function.

    Raises `ValueError`: an option is out of range, there is no index, or a query is missing.

    Warns `PassageWarning` once about nodes without a place, and about each document that has changed.

    >>> from llama_index.core import Document
    >>> tea = Document(text="Tea is hot. It boils. Ice is cold.", doc_id="tea.md")
    >>> hits = [NodeWithScore(node=TextNode(text="Tea is hot. It boils.", metadata={"file_name": "tea.md"}))]
    >>> passages = PassagePostprocessor(documents=[tea]).postprocess_nodes(hits, query_str="What boils?")
    >>> [passage.text for passage in passages]
    ['Tea is hot. It boils.']
    """

    @field_serializer("counter", "show")
    def _written(self, value: TokenCounterLike | Show, info: FieldSerializationInfo) -> object:
        return written_option(info.field_name, value)

    @classmethod
    def class_name(cls) -> str:
        return "ChunkcorePassagePostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise OptionError("passages are chosen for a question: give query_str or query_bundle")
        hits = [hit_of(node) for node in nodes]
        passages = self._behind().passages(query_bundle.query_str, hits)
        return [self._node(passage, nodes) for passage in passages]


class _WithOptions(BaseRetriever):
    """A retriever whose ``options`` are assigned as its attributes are."""

    options: _Indexed

    def __setattr__(self, name: str, value: object) -> None:
        """Assign an attribute, or an option. Raises `ValueError`: it is out of range."""
        if name in Shown.model_fields:
            options = copy(self.options)  # which a copy of this retriever has, too
            setattr(options, name, value)
            name, value = "options", options
        if name == "fetch_k" and value is not None:
            check_number("fetch_k", value, 1)
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> object:
        """An option."""
        if name not in Shown.model_fields:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.options, name)


class PassageRetriever(_WithOptions):
    """A retriever, with passages behind it: ``PassageRetriever(your_retriever, index=folder)``.

    `PassagePostprocessor` has the options, and says what a passage contains. They can be
    assigned (``retriever.max_tokens = 500``), and are in ``options``.

    Args:
        retriever: any retriever.
        fetch_k: the nodes that the retriever is asked for, if it has a ``similarity_top_k``. None: as many as it gives
            by itself.
        index, documents, show, max_tokens, k, balance, counter, order: see `PassagePostprocessor`.

    Raises `ValueError`: an option is out of range, there is no index, or something is no retriever.

    Warns `PassageWarning` once, where the retriever cannot be asked for that many nodes.

    >>> from llama_index.core import Document, MockEmbedding, VectorStoreIndex
    >>> documents = [Document(text="Tea is hot. It boils. Ice is cold.")]
    >>> retriever = VectorStoreIndex.from_documents(documents, embed_model=MockEmbedding(8)).as_retriever()
    >>> [passage.text for passage in PassageRetriever(retriever, documents=documents).retrieve("Is tea hot?")]
    ['Tea is hot. It boils. Ice is cold.']
    """

    options: PassagePostprocessor

    @suggesting
    def __init__(
        self,
        retriever: BaseRetriever,
        index: IndexLike | None = None,
        *,
        documents: Documents | None = None,
        fetch_k: int | None = FETCH_K,
        show: Show = "hits",
        max_tokens: MaxTokens = 1000,
        k: int | None = None,
        balance: float = BALANCE,
        counter: TokenCounterLike = "cl100k_base",
        order: Order = "score",
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        check_is_retriever(retriever)
        if not isinstance(retriever, BaseRetriever):
            raise OptionError(f"retriever is a LlamaIndex retriever, got {kind_of(retriever)}")
        self.retriever = retriever
        self.fetch_k = fetch_k
        self.options = PassagePostprocessor(
            index=index,
            documents=documents,
            show=show,
            max_tokens=max_tokens,
            k=k,
            balance=balance,
            counter=counter,
            order=order,
        )

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        deep = _deep(self.retriever, self.fetch_k)
        try:
            nodes = deep.retrieve(query_bundle)
        except ValueError as error:
            nodes = self._instead_of(deep, error).retrieve(query_bundle)
        return self._passages(query_bundle, nodes)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        deep = _deep(self.retriever, self.fetch_k)
        try:
            nodes = await deep.aretrieve(query_bundle)
        except ValueError as error:
            nodes = await self._instead_of(deep, error).aretrieve(query_bundle)
        return await asyncio.to_thread(self._passages, query_bundle, nodes)

    def _instead_of(self, deep: BaseRetriever, error: ValueError) -> BaseRetriever:
        """The retriever as it is, where one of `fetch_k` nodes raised an error."""
        return self._index.instead_of(deep, self.retriever, self.fetch_k, error)

    def _passages(
        self, query_bundle: QueryBundle, nodes: list[NodeWithScore]
    ) -> list[NodeWithScore]:
        if not _takes_k(self.retriever):
            self._index.warn_of_few(self.retriever, len(nodes), self.fetch_k)
        return self.options.postprocess_nodes(nodes, query_bundle)

    @property
    def _index(self) -> LocalIndex:
        return self.options._behind().index


def _takes_k(retriever: BaseRetriever) -> bool:
    """Whether it and its parts can be asked for more nodes. Passages are under limits of their own."""
    if isinstance(retriever, PassageRetriever | IndexRetriever):
        return True
    parts = retriever._retrievers if isinstance(retriever, QueryFusionRetriever) else []
    return _stated_k(retriever) is not None and all(map(_takes_k, parts))


def _stated_k(retriever: BaseRetriever) -> int | None:
    k = getattr(retriever, "similarity_top_k", None)
    return k if type(k) is int else None


def _deep(retriever: BaseRetriever, k: int | None) -> BaseRetriever:
    """The retriever, or a copy of it that gives at least so many nodes, as do its parts."""
    stated = _stated_k(retriever)
    if k is None or stated is None:
        return retriever
    deep = copy(retriever)
    deep.similarity_top_k = max(k, stated)  # type: ignore[attr-defined]
    if isinstance(deep, QueryFusionRetriever):
        deep._retrievers = [_deep(part, k) for part in deep._retrievers]
    return deep


class IndexRetriever(_WithOptions):
    """A saved index as a retriever: ``IndexRetriever("folder")``, no store.

    An index with vectors of the units gives the passages of the retriever `passages`, one without searches by words.
    ``filters`` and options can be assigned (``retriever.max_tokens = 500``); these are in ``options``.

    Args:
        index, documents, max_tokens, k, counter: see `PassagePostprocessor`.
        filters: on the documents' metadata.

    Raises `ValueError`: an option is out of range, or there is no index.

    >>> from llama_index.core import Document
    >>> [passage.text for passage in IndexRetriever(documents=[Document(text="Tea is hot.")]).retrieve("Is tea hot?")]
    ['Tea is hot.']
    """

    @suggesting
    def __init__(
        self,
        index: IndexLike | None = None,
        *,
        documents: Documents | None = None,
        filters: MetadataFilters | None = None,
        max_tokens: MaxTokens = 1000,
        k: int | None = None,
        counter: TokenCounterLike = "cl100k_base",
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        self.filters = filters
        _ = self._where()
        self.options = _Indexed(
            index=index, documents=documents, max_tokens=max_tokens, k=k, counter=counter
        )

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        passages = self.options._behind().alone(query_bundle.query_str, self._where())
        return [self.options._node(passage, []) for passage in passages]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)

    def _where(self) -> Where | None:
        filters = self.filters
        if filters is None:
            return None
        _check_filters(filters)

        def is_allowed(metadata: MetadataLike) -> bool:
            return build_metadata_filter_fn(lambda _: dict(metadata), filters)("")

        return is_allowed


# ---- Updates


@dataclass(frozen=True)
class IndexUpdate:
    """Numbers of nodes that `update_index` kept or changed.

    Attributes:
        kept: unchanged nodes.
        moved: nodes with known text but another place, neighbours or metadata: written again with the old vector.
        new: nodes with new text: embedded and written.
        deleted: nodes that no longer exist.
    """

    kept: int = 0
    moved: int = 0
    new: int = 0
    deleted: int = 0


def update_index(
    index: VectorStoreIndex, documents: Sequence[Document], parser: NodeParser
) -> IndexUpdate:
    """Make an index hold exactly the current nodes of these documents; other documents stay.

    Nodes are compared by id (`ChunkcoreNodeParser` makes it of document, options and place), embedded text and
    neighbours. A document without text loses all its nodes. Embedding comes before writing: if the model fails, the
    index is unchanged. Moved nodes keep their vectors in LlamaIndex' own store; for any other, use a cache.

    Args:
        index: keeps its nodes in a docstore; with another vector store than LlamaIndex' own, use
            ``VectorStoreIndex(..., store_nodes_override=True)``.
        documents: with ids of their own (``Document(id_=...)``).
        parser: a parser with reproducible node ids.

    Raises `DataError`: the index keeps no nodes in a docstore.

    >>> from llama_index.core import MockEmbedding
    >>> from chunkadapters.llamaindex import ChunkcoreNodeParser
    >>> parser = ChunkcoreNodeParser("recursive", size=4, counter="words")
    >>> index = VectorStoreIndex([], embed_model=MockEmbedding(embed_dim=2))
    >>> update_index(index, [Document(id_="a", text="The tea is hot. The sea is deep.")], parser).new
    2
    >>> update_index(index, [Document(id_="a", text="The tea is hot. The sea is cold.")], parser)
    IndexUpdate(kept=1, moved=0, new=1, deleted=0)
    """
    store = index.vector_store
    if store.stores_text and not getattr(index, "_store_nodes_override", False):
        raise DataError(
            f"the index keeps no nodes beside its {type(store).__name__}, so that it cannot be told what is in it: "
            "build it with store_nodes_override=True"
        )
    old: dict[str, BaseNode] = {}
    for document in documents:
        info = index.docstore.get_ref_doc_info(document.node_id)
        if info is not None:
            stored = index.docstore.get_nodes(info.node_ids, raise_error=False)
            old.update((node.node_id, node) for node in stored)
    nodes = parser.get_nodes_from_documents([document for document in documents if document.text])
    stated = {name: _stated(node) for name, node in old.items()}
    written = [node for node in nodes if stated.get(node.node_id) != _stated(node)]
    by_text = {_read(node): name for name, node in old.items()}
    moved = sum(_read(node) in by_text for node in written)
    if isinstance(store, SimpleVectorStore):
        vectors = store.data.embedding_dict
        for node in written:
            node.embedding = vectors.get(by_text.get(_read(node), ""))
    embedded = embed_nodes(written, index._embed_model)
    for node in written:
        node.embedding = embedded[node.node_id]
    gone = old.keys() - {node.node_id for node in nodes}
    replaced = gone | (old.keys() & embedded.keys())
    if replaced:
        index.delete_nodes(sorted(replaced), delete_from_docstore=True)
    index.insert_nodes(written)
    kept = len(nodes) - len(written)
    return IndexUpdate(kept, moved, new=len(written) - moved, deleted=len(gone))


def _read(node: BaseNode) -> str:
    return node.get_content(metadata_mode=MetadataMode.EMBED)


def _stated(node: BaseNode) -> tuple[str, Metadata, list[str]]:
    """What makes a node another one: its embedded text, metadata and neighbours."""
    neighbours = [getattr(side, "node_id", "") for side in (node.prev_node, node.next_node)]
    return _read(node), node.metadata, neighbours
