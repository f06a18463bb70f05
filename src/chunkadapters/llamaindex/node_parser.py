"""A LlamaIndex node parser around any chunker, and `PlacedNodeParser`: right places for any other parser."""

from __future__ import annotations

import asyncio
from abc import ABC
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from typing import Any

from llama_index.core.bridge.pydantic import (
    Field,
    PrivateAttr,
    SerializeAsAny,
    field_serializer,
    field_validator,
)
from llama_index.core.callbacks import CallbackManager
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.node_parser import NodeParser
from llama_index.core.node_parser.loading import load_parser
from llama_index.core.node_parser.node_utils import build_nodes_from_splits, default_id_func
from llama_index.core.schema import (
    BaseNode,
    Document,
    MetadataMode,
    NodeRelationship,
    TextNode,
)
from llama_index.core.utils import get_tqdm_iterable
from typing_extensions import Self, Unpack

from chunkadapters.configuration import (
    DEFAULT_CHUNKER,
    ChunkerOptions,
    build,
    chunkable,
    chunks_of,
    embedder_of,
    merged,
    options_of,
    warn_on_truncation,
)
from chunkadapters.exact import SplitPiece, Unplaced, placed_records
from chunkadapters.places import (
    ALSO_IN,
    BOOKKEEPING,
    CONTEXT,
    NOWHERE,
    PAGE_MARKS,
    WHOLE,
    Metadata,
    Origin,
    PlaceKeys,
    chunk_records,
    inherited,
    with_page_marks,
)
from chunkcore.chunkers import Chunker
from chunkcore.errors import OptionError, warn_user
from chunkcore.guesses import SIZES_BY_PLACE
from chunkcore.models.base import Embedder
from chunkcore.plain import encodable
from chunkcore.retrieval.where import own_copy
from chunkcore.text import Chunk
from chunkcore.text import Document as CoreDocument

# ---- Where a node's place is: two attributes, and metadata for several spans

KEYS = PlaceKeys("start_char_idx", "end_char_idx", page="page_label")


def from_document(document: CoreDocument) -> Document:
    """A chunkcore document, as from `join_pages` or `load_documents`, as LlamaIndex'; its nodes say their pages.

    The metadata have ``page_marks``, which no model reads and nodes of `ChunkcoreNodeParser` do not inherit.
    """
    return Document(
        id_=document.id,
        text=document.text,
        metadata=with_page_marks(document),
        excluded_embed_metadata_keys=[PAGE_MARKS],
        excluded_llm_metadata_keys=[PAGE_MARKS],
    )


# In a source's metadata, the id of the node whose spans these have.
PASSAGE = "passage"


def stated_place(node: BaseNode) -> Metadata:
    """A node's metadata and its place, for `KEYS` to read."""
    place = {key: getattr(node, key, None) for key in (KEYS.start, KEYS.end)}
    source = node.source_node
    if source is not None:
        if source.metadata.get(PASSAGE) == node.node_id:
            place[KEYS.spans] = source.metadata.get(KEYS.spans)
        if ALSO_IN in source.metadata:
            place[ALSO_IN] = source.metadata[ALSO_IN]
    return {**node.metadata, **place}


def origin_of(node: BaseNode, text: str) -> Origin:
    """Where the text of a node stands in its document."""
    return KEYS.origin(stated_place(node), text) if _is_chunk(node) else WHOLE


def _is_chunk(node: BaseNode) -> bool:
    # Of a document, pydantic takes long to find that it has no such attribute.
    return vars(node).get(KEYS.start) is not None or node.source_node is not None


# ---- Sizes that leave room for metadata, as LlamaIndex' own splitters do

# Options that must not exceed the size, and shrink with it.
_WITHIN_THE_SIZE = (
    "overlap",
    "minimum",
    "piece_size",
    "passage_size",
    "max_segment",
)


def _size_of(chunker: Chunker) -> int:
    size = getattr(chunker, "size", None)
    if type(size) is not int:
        raise OptionError(
            f"metadata_aware needs a chunker with a size, and {chunker.name} has none: leave it out"
        )
    return size


def _chunk_beside_metadata(
    chunker: Chunker, documents: Iterable[CoreDocument], nodes: Sequence[BaseNode]
) -> Iterator[Sequence[Chunk]]:
    """Each node's chunks, with sizes reduced by the longer of the metadata that models read with the text.

    Raises `OptionError` without room left.
    """
    smaller = cache(partial(_smaller, chunker))
    beside = getattr(chunker, "beside_metadata", 0)
    for document, node in zip(documents, nodes, strict=True):
        texts = map(node.get_metadata_str, (MetadataMode.LLM, MetadataMode.EMBED))
        taken = chunker.token_counter.count(max(texts, key=len))
        yield smaller(taken + beside).chunk(document)


def _smaller(chunker: Chunker, taken: int) -> Chunker:
    size = _size_of(chunker) - taken
    if size < 1:
        raise OptionError(
            f"the metadata count {taken}, which leaves nothing of size={size + taken}: choose a larger size, or "
            "keep some metadata from the models by excluded_embed_metadata_keys and excluded_llm_metadata_keys"
        )
    if not taken:
        return chunker
    options: dict[str, Any] = {"size": size}
    for name in _WITHIN_THE_SIZE:
        value = getattr(chunker, name, None)
        if type(value) is int:
            options[name] = min(value, size)
    if options.get("overlap") == size:
        options["overlap"] = size - 1  # some chunkers require an overlap under the size
    return replace(chunker, **options)


# ---- The node parser


def chunk_id_func(i: int, doc: BaseNode) -> str:
    """The default of `ChunkcoreNodeParser.id_func`: the parser makes ids itself, of document, options and spans."""
    return f"{doc.node_id}-{i}"


_ID_FUNCS = {function.__name__: function for function in (chunk_id_func, default_id_func)}


class _InThread(NodeParser, ABC):
    """A parser that cuts in a thread: LlamaIndex' default would block the event loop."""

    @field_validator("id_func", mode="before")
    @classmethod
    def _callable_id_func(cls, value: object) -> Any:
        """Replace a function's name in a configuration: the default's by the function, any other by the default."""
        if isinstance(value, Mapping):
            name = value.get("id_func_name")
            if name not in _ID_FUNCS:
                warn_user(
                    f"the id_func {name!r} cannot be built from its name and is replaced by chunk_id_func; "
                    "pass it as from_dict(data, id_func=...)",
                    UserWarning,
                )
            return _ID_FUNCS.get(str(name), chunk_id_func)
        return chunk_id_func if value is None else value

    async def _aparse_nodes(self, *arguments: Any, **options: Any) -> list[BaseNode]:
        return await asyncio.to_thread(self._parse_nodes, *arguments, **options)


class ChunkcoreNodeParser(_InThread):
    """A LlamaIndex node parser around any chunkcore chunker.

    Every node's ``start_char_idx`` and ``end_char_idx`` are its place in the source document in code points, and
    ``source[start:end] == node.text``, also for repeated text and chained parsers: the incoming node's
    ``start_char_idx`` is added. If the incoming node's place is unknown, both are None. A chunk of several spans has
    the first start and the last end, and all spans as metadata ``spans`` (``"0-12,40-55"``).

    Other metadata: ``context``, text written about the chunk, which models read with the text; ``headings``
    (``"Tea > Green tea"``), ``language`` and the like, which only the language model reads; ``fallback``
    with its reason, ``derived`` (a model wrote the text, from the passage at its place) and ``white_space`` (between
    the chunk and the next one), which no model reads. If the document has the key, the chunk's gets the prefix
    ``chunk_``.

    Unlike with LlamaIndex' own parsers, node ids are the same in every run (if documents have ids of their own), and
    nodes of a chained parser are linked in both directions.

    Args:
        chunker: a registered chunker, its name, or a spec string such as ``"recursive:size=200"``.
        options: the chunker's options, here or as keywords, with LlamaIndex' models (``embedder=OpenAIEmbedding()``);
            ``chunk_size`` and ``chunk_overlap`` work too. A configuration holds only a model's name; pass the model to
            ``from_dict(data, embedder=...)``.
        fit_to: the model that will embed the nodes (LlamaIndex', a chunkcore embedder or its name). It sets a missing
            size to 60 % of its token limit; a `TruncationWarning` counts what it would cut off, without metadata.
        metadata_aware: reduce the size for each document by the tokens of the metadata that models read with the text,
            as LlamaIndex' own splitters do. The chunker must have a size.
        include_metadata: nodes inherit their document's metadata.
        include_prev_next_rel: link nodes of one source to their neighbours.
        id_func: called as ``id_func(i, document)`` for each node's id.

    Raises `ValueError` (chunkcore's `OptionError`): an unknown chunker or option, or a value out of range.

    >>> from llama_index.core import Document
    >>> parser = ChunkcoreNodeParser("recursive", chunk_size=9, chunk_overlap=0, counter="characters")
    >>> nodes = parser.get_nodes_from_documents([Document(text="one two. one two.")])
    >>> [(node.text, node.start_char_idx) for node in nodes]
    [('one two.', 0), ('one two.', 9)]
    """

    # In a configuration, the chunker is its name, and the options are plain JSON values.
    chunker: Chunker = Field(frozen=True)
    options: dict[str, Any] = Field(frozen=True)
    # LlamaIndex makes cache keys from the fields: the fingerprint also distinguishes models of the same name.
    fingerprint: str = Field(frozen=True)
    fit_to: str | None = Field(default=None, frozen=True)
    metadata_aware: bool = Field(default=False, frozen=True)
    _fit_to: Embedder | None = PrivateAttr()

    def __init__(
        self,
        chunker: Chunker | str = DEFAULT_CHUNKER,
        *sizes: int,
        options: Mapping[str, object] | None = None,
        fit_to: Embedder | BaseEmbedding | str | None = None,
        metadata_aware: bool = False,
        include_metadata: bool = True,
        include_prev_next_rel: bool = True,
        callback_manager: CallbackManager | None = None,
        id_func: Callable[[int, BaseNode], str] | Mapping[str, str] | None = None,
        fingerprint: str = "",
        **more: Unpack[ChunkerOptions],
    ) -> None:
        if sizes or isinstance(chunker, int):
            raise OptionError(SIZES_BY_PLACE.format(type(self).__name__))
        # The fingerprint of dictionaries and pickles is made anew.
        model = embedder_of(fit_to, "llamaindex")
        if options and more and fingerprint:  # `from_dict` with a model that no dictionary holds
            options = {name: value for name, value in options.items() if name not in more}
        built = build(chunker, merged(options, more), model, "llamaindex")
        if metadata_aware:
            _size_of(built)
        fields: Metadata = {
            "chunker": built,
            "options": options_of(built),
            "fingerprint": built.fingerprint,
            "fit_to": model and model.name,
            "metadata_aware": metadata_aware,
            "include_metadata": include_metadata,
            "include_prev_next_rel": include_prev_next_rel,
            "callback_manager": callback_manager or CallbackManager([]),
            "id_func": id_func,
        }
        super().__init__(**fields)
        self._fit_to = model

    @field_serializer("chunker")
    def _name_of_chunker(self, chunker: Chunker) -> str:
        return chunker.name

    @field_serializer("id_func")
    def _name_of_id_func(self, value: Callable[[int, BaseNode], str]) -> dict[str, str]:
        # Cache keys must differ for functions of the same name: hence the module and the nesting.
        name = getattr(value, "__name__", type(value).__name__)
        place = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', name)}"
        return {"id_func_name": name, "id_func_place": place, "title": "id_func"}

    @classmethod
    def class_name(cls) -> str:
        return "ChunkcoreNodeParser"

    def split_text(self, text: str) -> list[str]:
        return self.chunker.split_text(text)

    def model_copy(self, *, update: Mapping[str, object] | None = None, deep: bool = False) -> Self:
        """A copy. Raises `OptionError` for another chunker, options or model in `update`: build a parser with them."""
        fixed = sorted({"chunker", "options", "fit_to", "fingerprint"} & (update or {}).keys())
        if fixed:
            raise OptionError(
                f"a copy keeps its {', '.join(fixed)}: build a ChunkcoreNodeParser with others"
            )
        return super().model_copy(update=update, deep=deep)

    def _parse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        if isinstance(nodes, Iterator):  # LlamaIndex has read it
            raise OptionError(
                "documents are a list, got an iterator, which is read once: list(documents) makes a list"
            )
        documents = [chunkable(core_document(node), is_chunk=_is_chunk(node)) for node in nodes]
        if self.metadata_aware:
            smaller = _chunk_beside_metadata(self.chunker, documents, nodes)
            chunked = warn_on_truncation(smaller, self._fit_to)
        else:
            chunked = chunks_of(self.chunker, documents, self._fit_to)
        chunk_nodes: list[BaseNode] = []
        taken: set[str] = set()
        parents = get_tqdm_iterable(nodes, show_progress, "Parsing nodes")
        for parent, document, chunks in zip(parents, documents, chunked, strict=True):
            if chunks:
                chunk_nodes += self._build(parent, document, chunks, taken)
        return chunk_nodes

    def _build(
        self, parent: BaseNode, document: CoreDocument, chunks: Sequence[Chunk], taken: set[str]
    ) -> list[TextNode]:
        pattern = _pattern(parent)
        metadata = {}
        if self.include_metadata:
            metadata = inherited(parent.metadata, of_a_chunk=_is_chunk(parent))
        origin = origin_of(parent, document.text)
        records = chunk_records(document, chunks, origin, metadata, KEYS, taken)
        nodes = []
        for number, (text, chunk_id, record) in enumerate(records):
            if self.id_func is not chunk_id_func:
                chunk_id = self.id_func(number, parent)
            values = {
                **_taken_place(record),
                "id_": chunk_id,
                "text": text,
                "metadata": own_copy(metadata) | record,
                "relationships": pattern.relationships.copy(),
                **_unread(pattern, record),
            }
            nodes.append(pattern.model_copy(update=values))
        return nodes

    def _postprocess_parsed_nodes(
        self, nodes: list[BaseNode], parent_doc_map: dict[str, Any]
    ) -> list[BaseNode]:
        # The base class would search each text again, overwrite the offsets, and link chained nodes backwards only.
        for node in nodes:
            parent = parent_doc_map.get(node.ref_doc_id or "")
            if parent is not None and parent.source_node is not None:
                node.relationships[NodeRelationship.SOURCE] = parent.source_node
        if self.include_prev_next_rel:
            infos = [node.as_related_node_info() for node in nodes]
            for (left, before), (right, after) in pairwise(zip(nodes, infos, strict=True)):
                if left.ref_doc_id and left.ref_doc_id == right.ref_doc_id:
                    left.relationships[NodeRelationship.NEXT] = after
                    right.relationships[NodeRelationship.PREVIOUS] = before
        return nodes


def text_of(node: BaseNode) -> str:
    """A node's text, without metadata."""
    return node.get_content(metadata_mode=MetadataMode.NONE)


def core_document(node: BaseNode) -> CoreDocument:
    """A node as chunkcore's document."""
    return CoreDocument(node.node_id, text_of(node), node.metadata)


def _pattern(incoming: BaseNode) -> TextNode:
    """A node without text, linked to its source: what all nodes of a document share."""
    readable, text = incoming, text_of(incoming)
    if encodable(text) != text:  # LlamaIndex cannot hash unpaired surrogates
        readable = incoming.model_copy()
        readable.set_content(encodable(text))
    (node,) = build_nodes_from_splits([""], incoming, readable, id_func=lambda i, doc: "")
    return node


def _taken_place(record: Metadata) -> Metadata:
    """The ends of a place, which are a node's attributes, taken out of a chunk's record."""
    return {key: record.pop(key, None) for key in (KEYS.start, KEYS.end)}


def _unread(node: BaseNode, record: Iterable[str]) -> Metadata:
    """The keys that the models do not read: the node's own, and of a chunk's record all that it says of itself.

    The embedder reads its context, so it gets `Chunk.embedded_text` and the document's own metadata; the language model
    all but bookkeeping.
    """
    embed, llm = node.excluded_embed_metadata_keys.copy(), node.excluded_llm_metadata_keys.copy()
    for key in record:
        name = key.removeprefix("chunk_")
        if name != CONTEXT and key not in embed:
            embed.append(key)
        if name in BOOKKEEPING and key not in llm:
            llm.append(key)
    return {"excluded_embed_metadata_keys": embed, "excluded_llm_metadata_keys": llm}


# ---- Any other parser


class PlacedNodeParser(_InThread):
    r"""Runs a parser, and writes each node's place in its document: `exact` of parsers that it does not rewrite.

    The nodes are the parser's, with their ids, metadata and relationships; ``start_char_idx`` and ``end_char_idx`` are
    right, or None for a text that is not in the document, or has several equally good places. Children (of a
    `HierarchicalNodeParser`) are placed inside their parents. Metadata that no model reads are added: ``white_space``
    up to the next node, ``located`` if the text is altered or repeated, ``derived`` if it is altered.

    Args:
        parser: any node parser. A configuration holds LlamaIndex' own; pass any other to
            ``from_dict(data, parser=...)``.
        unplaced: "mark" nodes that are not in the text, or "refuse" them with a `DataError`.

    >>> from llama_index.core import Document
    >>> from llama_index.core.node_parser import MarkdownNodeParser
    >>> document = Document(text="# A\n\nTea.\n\n# B")
    >>> nodes = PlacedNodeParser(parser=MarkdownNodeParser()).get_nodes_from_documents([document])
    >>> [(node.text, node.start_char_idx) for node in nodes]
    [('# A\n\nTea.', 0), ('# B', 11)]
    """

    parser: SerializeAsAny[NodeParser]
    unplaced: Unplaced = "mark"

    @field_validator("parser", mode="before")
    @classmethod
    def _loaded(cls, value: object) -> Any:
        if not isinstance(value, Mapping):
            return value
        return load_parser({**value, "id_func": cls._callable_id_func(value.get("id_func"))})

    @classmethod
    def class_name(cls) -> str:
        return "PlacedNodeParser"

    def _parse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        placed = []
        for node in nodes:
            parts = self.parser([node], show_progress=show_progress, **kwargs)
            self._place(node, parts)
            placed += parts
        return placed

    def _postprocess_parsed_nodes(
        self, nodes: list[BaseNode], parent_doc_map: dict[str, Any]
    ) -> list[BaseNode]:
        return nodes  # the parser has done that

    def _place(self, document: BaseNode, nodes: Sequence[BaseNode]) -> None:
        """Write the places of all nodes; parents come before their children."""
        siblings = defaultdict(list)
        for node in nodes:
            if isinstance(node, TextNode) and text_of(node):
                parent_id = getattr(node.parent_node, "node_id", document.node_id)
                siblings[parent_id].append(node)
        parents = {node.node_id: node for node in (document, *nodes)}
        for parent_id, children in siblings.items():
            parent = parents.get(parent_id, document)
            source = core_document(parent)
            origin = origin_of(parent, source.text)
            if origin.passage and parent is not document:
                origin = NOWHERE  # an altered text does not say where its parts stand
            pieces = [SplitPiece(text_of(child)) for child in children]
            _, records = placed_records(source, pieces, origin, KEYS, self.unplaced)
            for child, record in zip(children, records, strict=True):
                values = _taken_place(record) | _unread(child, record)
                child.metadata.update(record)
                for field, value in values.items():
                    setattr(child, field, value)
