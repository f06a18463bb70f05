"""`ChunkcoreNodeParser`: a LlamaIndex node parser around any chunker."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import (
    Field,
    PrivateAttr,
    field_serializer,
    field_validator,
    model_validator,
)
from llama_index.core.callbacks import CallbackManager
from llama_index.core.node_parser import NodeParser
from llama_index.core.node_parser.node_utils import build_nodes_from_splits, default_id_func
from llama_index.core.schema import (
    BaseNode,
    MetadataMode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.utils import get_tqdm_iterable
from pydantic import ModelWrapValidatorHandler

from chunkadapters.configuration import DEFAULT_STRATEGY, build, one_strategy, watched, workers_for
from chunkadapters.llamaindex.models import as_model
from chunkadapters.places import (
    BOOKKEEPING,
    CONTEXT,
    DERIVED,
    SPANS,
    Origin,
    decode_spans,
    encode_spans,
    inherited,
    told,
    unused_id,
)
from chunkcore.chunkers.base import Chunker, strategies
from chunkcore.document import Chunk, Document, Span
from chunkcore.document import Document as CoreDocument
from chunkcore.errors import OptionError
from chunkcore.models import Embedder, get_embedder

__all__ = [
    "ChunkcoreNodeParser",
    "ClusterSemanticNodeParser",
    "LumberNodeParser",
    "RecursiveNodeParser",
    "SemanticNodeParser",
    "chunk_beside_metadata",
    "chunk_id_func",
    "size_option",
]

# Options that may not be over the size, which shrink with it where they would be.
_WITHIN_THE_SIZE = ("overlap", "minimum", "min_size", "piece_size", "passage_size", "passage_minimum", "max_segment")


def size_option(chunker: Chunker) -> str:
    """The name of the option that says how large chunks are.

    Raises:
        OptionError: the strategy has none.
    """
    found = next((name for name in ("size", "max_size") if name in chunker.option_names()), "")
    if not found or getattr(chunker, found) is None:
        raise OptionError(f"metadata_aware needs a strategy with a size, and {chunker.name} has none: leave it out")
    return found


def chunk_beside_metadata(
    chunker: Chunker, documents: Iterable[Document], nodes: Sequence[BaseNode]
) -> Iterator[list[Chunk]]:
    """Each node's chunks, so much smaller than the size as the metadata count that a model reads with them.

    As LlamaIndex' own splitters do: the longer of what the embedding model and the language model read counts.

    Raises:
        OptionError: the metadata of a node leave no room.
    """
    smaller: dict[int, Chunker] = {}
    for document, node in zip(documents, nodes, strict=True):
        taken = _metadata_size(chunker, node)
        if taken not in smaller:
            smaller[taken] = _smaller(chunker, taken)
        yield smaller[taken].chunk(document)


def _metadata_size(chunker: Chunker, node: BaseNode) -> int:
    embedded, told = (node.get_metadata_str(mode=mode) for mode in (MetadataMode.EMBED, MetadataMode.LLM))
    longer = embedded if len(embedded) > len(told) else told
    return chunker.token_counter.count(longer) + int(getattr(chunker, "beside_metadata", 0))


def _smaller(chunker: Chunker, taken: int) -> Chunker:
    name = size_option(chunker)
    size = getattr(chunker, name) - taken
    if size < 1:
        raise OptionError(
            f"the metadata count {taken}, which leaves nothing of {name}={size + taken}: choose a larger {name}, or "
            "keep some metadata from the models by excluded_embed_metadata_keys and excluded_llm_metadata_keys"
        )
    options: dict[str, Any] = {name: size}
    for other in _WITHIN_THE_SIZE:
        value = getattr(chunker, other, None)
        if isinstance(value, int) and not isinstance(value, bool):
            options[other] = min(value, size)
    overlap = options.get("overlap", 0)
    if overlap == size and chunker.overlap < size + taken:  # type: ignore[attr-defined]
        options["overlap"] = size - 1  # some strategies want it under the size, and it was
    return replace(chunker, **options) if taken else chunker


def chunk_id_func(i: int, doc: BaseNode) -> str:
    """The default of `ChunkcoreNodeParser.id_func`: ids made from the document's id, the options and the spans.

    The parser knows the spans and makes these ids itself; called by anyone else, the function can only
    number the chunks.
    """
    return f"{doc.node_id}-{i}"


_ID_FUNCS = {each.__name__: each for each in (chunk_id_func, default_id_func)}


class ChunkcoreNodeParser(NodeParser):
    """A LlamaIndex node parser around any chunkcore chunker.

    Every node has ``start_char_idx`` and ``end_char_idx``, its place in the source document in code points,
    and they hold: ``source[start:end] == node.text``, whatever repeats, and through chained parsers, where
    the incoming node's ``start_char_idx`` is added. Where an incoming node's own place is not known, both are
    None. A chunk of several spans has the first start and the last end, and its metadata's ``spans``
    (``"0-12,40-55"``) holds them all.

    What else a strategy tells is metadata, too: ``context``, where one was written about the chunk, which models
    read with the text, when embedding and after; ``headings`` (``"Tea > Green tea"``), ``language`` and the like,
    which only the LLM reads; ``segments`` (``"0-12;12-30"``), ``fallback`` with its reason, and ``derived`` (a
    model wrote the text; its place is the passage that it was written from), which like ``spans`` none reads.
    Where the document itself has metadata of such a name, they stay, and the chunk's begins with ``chunk_``.

    Differences from LlamaIndex's own parsers, on purpose: node ids are the same in every run (give
    documents their own ids for that), and the nodes of a chained parser are linked in both directions.

    Args:
        chunker: a registered chunker, or a spec string such as ``"recursive:size=200"``.
        strategy: instead of it, a strategy's name.
        options: the strategy's options, here or as keywords; ``chunk_size`` and ``chunk_overlap`` are understood. Where
            a strategy takes a model, LlamaIndex's are welcome: ``embedder=OpenAIEmbedding()``. A configuration holds
            only the model's name, never its keys: ``from_dict(data, embedder=...)`` hands the model back.
        fit_to: the model that is to embed the nodes, as LlamaIndex's, a chunkcore embedder or its name: a size that is
            left out is 60 % of what it reads, in its own tokens, and a `TruncationWarning` tells how many nodes, and
            how many of its tokens, it would cut off. Metadata that LlamaIndex puts beside the text are not counted.
        metadata_aware: a document's nodes are so much smaller than the strategy's size as the metadata count that
            models read with the text, as LlamaIndex' own splitters do; the strategy must have a size for it.
        include_metadata: nodes inherit the metadata of what they were cut from.
        include_prev_next_rel: nodes of one source are linked to their neighbours.
        id_func: called as ``id_func(i, document)`` for each node's id.

    Raises:
        pydantic.ValidationError: (a ValueError) an unknown strategy or option, or a value out of range.

    >>> from llama_index.core import Document
    >>> parser = ChunkcoreNodeParser(strategy="recursive", chunk_size=9, chunk_overlap=0, counter="characters")
    >>> nodes = parser.get_nodes_from_documents([Document(text="one two. one two.")])
    >>> [(node.text, node.start_char_idx) for node in nodes]
    [('one two.', 0), ('one two.', 9)]
    """

    strategy: str = Field(default=DEFAULT_STRATEGY, description="The chunking strategy's name.", frozen=True)
    options: dict[str, Any] = Field(
        default_factory=dict, description="The strategy's options, as plain JSON values.", frozen=True
    )
    # Cache keys are made from the fields: the fingerprint also tells models of the same name apart.
    fingerprint: str = Field(default="", description="Changes when the chunks could change.", frozen=True)

    fit_to: str | None = Field(
        default=None, description="The name of the model that is to embed the nodes.", frozen=True
    )

    metadata_aware: bool = Field(
        default=False, description="Sizes leave room for the metadata that models read with a text.", frozen=True
    )

    _chunker: Chunker = PrivateAttr()
    _fit_to: Embedder | None = PrivateAttr()

    def __init__(
        self,
        chunker: Chunker | str | None = None,
        *,
        strategy: str | None = None,
        options: Mapping[str, Any] | None = None,
        fit_to: Embedder | BaseEmbedding | str | None = None,
        metadata_aware: bool = False,
        include_metadata: bool = True,
        include_prev_next_rel: bool = True,
        callback_manager: CallbackManager | None = None,
        id_func: Callable[[int, BaseNode], str] | Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        more.pop("fingerprint", None)  # from_dict and pickles hand it back; it is computed
        fields: dict[str, Any] = {
            "chunker": chunker,
            "strategy": strategy,
            "options": {**options, **more} if isinstance(options, Mapping) else options or more,
            "fit_to": fit_to,
            "metadata_aware": metadata_aware,
            "include_metadata": include_metadata,
            "include_prev_next_rel": include_prev_next_rel,
            "callback_manager": callback_manager or CallbackManager([]),
            "id_func": id_func,
        }
        super().__init__(**fields)

    @model_validator(mode="wrap")
    @classmethod
    def _configure(cls, data: Any, handler: ModelWrapValidatorHandler[ChunkcoreNodeParser]) -> ChunkcoreNodeParser:
        """Build the chunker first, so that what is wrong with its options is a validation error."""
        fields = dict(data)
        if not isinstance(fields.get("options"), Mapping | None):
            raise OptionError(f'options is like {{"size": 200}}, got {fields["options"]!r}')
        fit_to = None if fields.get("fit_to") is None else get_embedder(as_model(fields["fit_to"]))
        chunker = build(fields.pop("chunker", None), fields.get("strategy"), fields.get("options"), fit_to, as_model)
        if strategies.find(chunker.name) is not type(chunker):
            raise OptionError(
                f"{type(chunker).__name__} is not registered, so a configuration could not name it: "
                'decorate the class with @strategies.register("its_name")'
            )
        if fields.get("metadata_aware"):
            size_option(chunker)
        plain = chunker.to_dict()
        fields.update(strategy=plain.pop("strategy"), options=plain, fingerprint=chunker.fingerprint)
        fields["fit_to"] = fit_to and fit_to.name
        parser: ChunkcoreNodeParser = handler(fields)
        parser._chunker = chunker
        parser._fit_to = fit_to
        return parser

    @field_validator("id_func", mode="before")
    @classmethod
    def _callable_id_func(cls, value: Any) -> Any:
        """A configuration holds only the function's name; what that stands for elsewhere cannot be known."""
        if isinstance(value, Mapping):
            name = value.get("id_func_name")
            if name not in _ID_FUNCS:
                warnings.warn(
                    f"the id_func {name!r} cannot be built from its name and is replaced by "
                    f"{chunk_id_func.__name__}; pass it as from_dict(data, id_func=...)",
                    stacklevel=2,
                )
            return _ID_FUNCS.get(str(name), chunk_id_func)
        return chunk_id_func if value is None else value

    @field_serializer("id_func")
    def _name_of_id_func(self, value: Callable[[int, BaseNode], str]) -> dict[str, str]:
        # The module and the nesting tell functions of the same name apart in cache keys.
        name = getattr(value, "__name__", type(value).__name__)
        place = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', name)}"
        return {"id_func_name": name, "id_func_place": place, "title": "id_func"}

    @classmethod
    def class_name(cls) -> str:
        return "ChunkcoreNodeParser"

    @property
    def chunker(self) -> Chunker:
        """What cuts."""
        return self._chunker

    def _parse_nodes(self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any) -> list[BaseNode]:
        chunker = self._chunker  # private attributes of a pydantic model are slow to read
        texts = [incoming.get_content(metadata_mode=MetadataMode.NONE) for incoming in nodes]
        # Strategies may read metadata: of which format or language a text is.
        documents = [CoreDocument(each.node_id, text, each.metadata) for each, text in zip(nodes, texts, strict=True)]
        if self.metadata_aware:
            chunked = chunk_beside_metadata(chunker, documents, nodes)
        else:
            chunked = chunker.chunk_each(documents, workers=workers_for(chunker, len(documents)))
        made: list[BaseNode] = []
        incoming_nodes = get_tqdm_iterable(nodes, show_progress, "Parsing nodes")
        watching = watched(chunked, self._fit_to)
        for incoming, text, chunks in zip(incoming_nodes, texts, watching, strict=True):
            if chunks:
                made.extend(self._build(incoming, chunks, _origin(incoming, text)))
        return made

    async def _aparse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        # LlamaIndex's default cuts on the event loop, which then answers nobody else.
        return await asyncio.to_thread(self._parse_nodes, nodes, show_progress=show_progress, **kwargs)

    def _build(self, incoming: BaseNode, chunks: Sequence[Chunk], origin: Origin) -> list[TextNode]:
        """The nodes of one document: copies of one pattern, since validating each anew takes longer than cutting."""
        pattern = _pattern(incoming)
        pattern.model_fields_set.update(("metadata", "start_char_idx", "end_char_idx"))  # and so of its copies
        given = inherited(incoming.metadata, of_a_chunk=_is_chunk(incoming)) if self.include_metadata else {}
        id_func = None if self.id_func is chunk_id_func else self.id_func
        nodes = []
        taken: set[str] = set()
        for i, chunk in enumerate(chunks):
            spans = origin.place(chunk.spans)
            start, end = _ends(spans)
            own = told(chunk, given, origin)
            if len(spans) > 1:
                own[SPANS] = encode_spans(spans)
            node = copy(pattern)
            # What pydantic's model_copy(update=...) does, in a third of its time: there are many nodes.
            vars(node).update(
                id_=id_func(i, incoming) if id_func else unused_id(chunk.id, taken),
                text=chunk.text,
                metadata=given | own,
                relationships=pattern.relationships.copy(),
                start_char_idx=start,
                end_char_idx=end,
                excluded_embed_metadata_keys=_excluded(pattern.excluded_embed_metadata_keys, own, _not_context),
                excluded_llm_metadata_keys=_excluded(pattern.excluded_llm_metadata_keys, own, _is_bookkeeping),
            )
            nodes.append(node)
        return nodes

    def _postprocess_parsed_nodes(self, nodes: list[BaseNode], parent_doc_map: dict[str, Any]) -> list[BaseNode]:
        """Sources and neighbours, as the base does it.

        The base is not called: it would search each text again and overwrite the offsets, which are
        known here, and it would link chained nodes backwards only.
        """
        sources = []
        for node in nodes:
            source = node.source_node
            parent = parent_doc_map.get(source.node_id) if source else None
            if parent is not None and (original := parent.source_node) is not None:
                node.relationships[NodeRelationship.SOURCE] = source = original
            sources.append(source.node_id if source else None)
        if self.include_prev_next_rel:
            _link(nodes, sources)
        return nodes


def _pattern(incoming: BaseNode) -> TextNode:
    """A node without text, related to its source: what all nodes of one document have in common."""
    try:
        return build_nodes_from_splits([""], incoming, id_func=lambda i, doc: "")[0]
    except UnicodeEncodeError:
        # A document cannot hash an unpaired surrogate, though a node can; its source's hash is of what can be written.
        readable = incoming.model_copy()
        text = incoming.get_content(metadata_mode=MetadataMode.NONE)
        readable.set_content(text.encode("utf-8", "replace").decode("utf-8"))
        return build_nodes_from_splits([""], incoming, ref_doc=readable, id_func=lambda i, doc: "")[0]


def _link(nodes: Sequence[BaseNode], sources: Sequence[str | None]) -> None:
    """Relate each node to its neighbours of the same source."""
    before: RelatedNodeInfo | None = None
    for i in range(1, len(nodes)):
        if sources[i] is None or sources[i] != sources[i - 1]:
            before = None
            continue
        before = before or nodes[i - 1].as_related_node_info()
        after = nodes[i].as_related_node_info()
        nodes[i].relationships[NodeRelationship.PREVIOUS] = before
        nodes[i - 1].relationships[NodeRelationship.NEXT] = after
        before = after


def _origin(node: BaseNode, text: str) -> Origin:
    """Where the node's text stands in its source document; unknown of a piece that does not say."""
    if not _is_chunk(node):
        return Origin.at(0)
    start, end = (node.start_char_idx, node.end_char_idx) if isinstance(node, TextNode) else (None, None)
    spans = decode_spans(node.metadata.get(SPANS))
    # `spans` that a node inherited from a parent are not its own: they do not have its ends.
    own = spans if spans and (min(spans).start, max(each.end for each in spans)) == (start, end) else ()
    return Origin.stated(len(text), start, end, own, derived=node.metadata.get(DERIVED) is True)


def _is_chunk(node: BaseNode) -> bool:
    """Whether the node was cut from another."""
    return node.source_node is not None or (isinstance(node, TextNode) and node.start_char_idx is not None)


def _ends(spans: tuple[Span, ...]) -> tuple[int | None, int | None]:
    """The first start and the last end."""
    if len(spans) == 1:
        return spans[0].start, spans[0].end
    if not spans:
        return None, None
    return min(span.start for span in spans), max(span.end for span in spans)


def _excluded(keys: list[str], own: Mapping[str, Any], unread: Callable[[str], bool]) -> list[str]:
    """The keys that a model does not read: the document's, and those of the chunk's `own` that are `unread`."""
    return [*keys, *(key for key in own if unread(key) and key not in keys)] if own else keys.copy()


def _is_bookkeeping(key: str) -> bool:
    return key.removeprefix("chunk_") in BOOKKEEPING


def _not_context(key: str) -> bool:
    # What is embedded is then what `Chunk.embedded_text` has, and the document's own metadata.
    return key.removeprefix("chunk_") != CONTEXT


class _Named(ChunkcoreNodeParser):
    """One strategy, which needs no naming; a configuration names it all the same."""

    _own: ClassVar[str]

    def __init__(self, *, strategy: str | None = None, **more: Any) -> None:
        super().__init__(strategy=one_strategy(self, self._own, strategy, more), **more)

    @classmethod
    def class_name(cls) -> str:
        return cls.__name__


class RecursiveNodeParser(_Named):
    """The strategy ``recursive``: separators from large to small; `ChunkcoreNodeParser` tells the rest.

    >>> from llama_index.core import Document
    >>> parser = RecursiveNodeParser(chunk_size=9, chunk_overlap=0, counter="characters")
    >>> [node.start_char_idx for node in parser.get_nodes_from_documents([Document(text="one two. one two.")])]
    [0, 9]
    """

    _own = "recursive"


class SemanticNodeParser(_Named):
    """The strategy ``breakpoint``, known as SemanticSplitterNodeParser: cuts where neighbouring sentences differ most.

    >>> SemanticNodeParser(max_size=200, embedder="all-MiniLM-L6-v2").strategy
    'breakpoint'
    """

    _own = "breakpoint"


class ClusterSemanticNodeParser(_Named):
    """The strategy ``cluster_semantic`` of the Chroma report: chunks of the most similarity inside, up to `max_size`.

    >>> ClusterSemanticNodeParser(max_size=200, embedder="all-MiniLM-L6-v2").chunker.max_size
    200
    """

    _own = "cluster_semantic"


class LumberNodeParser(_Named):
    """The strategy ``lumber``, known as LumberChunker: a language model says where the content changes.

    >>> LumberNodeParser(llm="openai:qwen3:8b@http://localhost:11434/v1").strategy
    'lumber'
    """

    _own = "lumber"
