"""`ChunkcoreTextSplitter`: a LangChain text splitter around any chunker."""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from langchain_core.documents import Document
from langchain_text_splitters import TextSplitter
from typing_extensions import Unpack

from chunkadapters.configuration import (
    ClusterSemanticOptions,
    LumberOptions,
    OneStrategy,
    Options,
    RecursiveOptions,
    SemanticOptions,
    build,
    embedder_of,
    model_of,
    warn_on_truncation,
    workers_for,
)
from chunkadapters.places import (
    PAGES,
    SEGMENTS,
    SPANS,
    WHOLE,
    Origin,
    PlaceKeys,
    chunk_records,
    digest,
    inherited,
    page_marks,
    with_page_marks,
)
from chunkcore.chunkers import Chunker
from chunkcore.document import Chunk
from chunkcore.document import Document as CoreDocument
from chunkcore.errors import DataError, OptionError
from chunkcore.tokens import HuggingFaceCounter

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from chunkcore.models import Embedder

KEYS = PlaceKeys("start_index", "end_index", page="page")
UNKNOWN = {"start_index": -1, "end_index": -1}  # LangChain writes -1 where it finds a chunk nowhere
SOURCE_PART = "source_part"
# Loaders make a document of each of these, and offsets refer to that.
_PARTS = ("page", "page_number", "row", "sheet", "seq_num", "element_id", SOURCE_PART)
# Values that a shallow copy shares without harm.
_IMMUTABLE = (str, int, float, bool, type(None))
_Model: TypeAlias = "Embedder | Embeddings | str | None"

_as_model = partial(model_of, "langchain")


class SourceWarning(UserWarning):
    """Documents share a source without ids or pages: offsets are in each of them, not in the source."""


class ChunkcoreTextSplitter(TextSplitter):
    """A LangChain text splitter around any chunkcore chunker.

    Every chunk is a `Document` with a deep copy of its document's metadata, an ``id`` of 32 hexadecimal digits (the
    same in every run), and this metadata:

    - ``start_index``, ``end_index``: its place in the source in code points, half-open, for any `add_start_index`; of
      several spans, the first start and the last end.
    - ``spans``: ``"0-12,40-55"``, only on a chunk of several spans.
    - ``source_id``: the document's ``id``, else its metadata's ``source``, else a hash of its text.
    - the strategy's metadata: ``headings`` (``"Tea > Green tea"``), ``language``, ``fallback``; ``context``, text
      written about the chunk; ``segments`` (``"0-12;12-30"``), parts that are searched on their own. If the document
      has the key, the chunk's gets the prefix ``chunk_``.
    - ``derived``: true if a model wrote the text; the place is then the passage it was written from.
    - of a document from `from_document` with pages: ``page`` (from 0) and ``page_label`` of the first, and ``pages``
      (``"3, 4"``, from 1).

    A document with a whole-number ``start_index`` in its metadata is a piece of another splitter: offsets are added up
    and refer to the original, and ``source_id`` is passed on. If its own place is unknown (LangChain's -1, or an
    altered text), both indices are -1. Pieces without a ``start_index`` look like documents. If several documents in a
    row share a ``source`` and have no id or page, places are in each of them: a `SourceWarning` says so, and
    ``source_part`` numbers them.

    Args:
        chunker: a chunker, or a spec string such as ``"recursive:size=200"``.
        strategy: a strategy's name, instead of `chunker`.
        add_start_index: accepted for LangChain's sake; offsets are always written.
        fit_to: the model that will embed the chunks (LangChain's embeddings, a chunkcore embedder or its name). It sets
            a missing size to 60 % of its token limit, in its tokens; a `TruncationWarning` counts what it would cut
            off.
        options: the strategy's options; LangChain's ``chunk_size``, ``chunk_overlap``, ``keep_separator``,
            ``is_separator_regex``, ``strip_whitespace`` and ``length_function`` work too. LangChain's embeddings and
            chat models work as options: ``embedder=OpenAIEmbeddings()``.

    Raises:
        ValueError: (chunkcore's `OptionError`) an unknown strategy or option, or a value out of range.

    >>> splitter = ChunkcoreTextSplitter(strategy="recursive", chunk_size=9, chunk_overlap=0, counter="characters")
    >>> [(doc.page_content, doc.metadata["start_index"]) for doc in splitter.create_documents(["one two. one two."])]
    [('one two.', 0), ('one two.', 9)]
    """

    def __init__(
        self,
        chunker: Chunker | str | None = None,
        *,
        strategy: str | None = None,
        add_start_index: bool = True,
        fit_to: _Model = None,
        **options: Unpack[Options],
    ) -> None:
        self._fit_to = embedder_of(fit_to, _as_model)
        self._chunker = build(chunker, strategy, options, self._fit_to, _as_model)
        self._last: dict[str, tuple[str, int]] = {}
        # For LangChain's own code; the chunker is what cuts.
        super().__init__(
            chunk_size=_whole(self._chunker, "size") or 4000,
            chunk_overlap=_whole(self._chunker, "overlap"),
            length_function=self._chunker.token_counter.count,
            add_start_index=add_start_index,
        )

    @property
    def chunker(self) -> Chunker:
        return self._chunker

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._chunker!r})"

    @classmethod
    def from_tiktoken_encoder(  # type: ignore[override]  # whose keywords are of any kind
        cls,
        encoding_name: str = "cl100k_base",
        model_name: str | None = None,
        allowed_special: Literal["all"] | AbstractSet[str] | None = None,
        disallowed_special: Any = "all",
        **options: Unpack[Options],
    ) -> ChunkcoreTextSplitter:
        """A splitter with sizes in the tokens of a tiktoken encoding.

        Unlike LangChain's: the default is ``cl100k_base``, not ``gpt2``; special tokens in the text are text, so
        `disallowed_special` has no effect. Raises `ValueError` for an unknown encoding or model, or if
        `allowed_special` names a token.
        """
        if allowed_special:
            raise OptionError(
                "allowed_special would count text that looks like a special token as one token; here it is text: "
                "leave the option out"
            )
        options["counter"] = _encoding_of(model_name) if model_name else encoding_name
        return cls(**options)

    @classmethod
    def from_huggingface_tokenizer(  # type: ignore[override]
        cls, tokenizer: Any, **options: Unpack[Options]
    ) -> ChunkcoreTextSplitter:
        """A splitter with sizes in the tokens of a fast Hugging Face tokenizer. Raises `ValueError` for any other."""
        options["counter"] = _TokenizerCounter(tokenizer)
        return cls(**options)

    def split_text(self, text: str) -> list[str]:
        return self._chunker.split_text(text)

    def create_documents(self, texts: list[str], metadatas: list[dict[Any, Any]] | None = None) -> list[Document]:
        listed = None if isinstance(texts, str) else _listed(texts, "texts")
        if listed is None or not all(isinstance(each, str) for each in listed):
            raise DataError("create_documents expects a list of texts; split_text takes one text")
        given = _listed(metadatas or [{} for _ in listed], "metadata dictionaries")
        if len(given) != len(listed):
            raise DataError(f"expected one metadata dictionary a text, got {len(given)} for {len(listed)} texts")
        if wrong := [type(each).__name__ for each in given if not isinstance(each, dict)]:
            raise DataError(f"expected one metadata dictionary a text, got {wrong[0]}")
        return self._split([None] * len(listed), listed, given)

    def split_documents(self, documents: Iterable[Document]) -> list[Document]:
        if isinstance(documents, Document):  # which is iterable, of its fields
            raise DataError("split_documents expects a list of documents, got one: put it into a list")
        listed = _listed(documents, "documents")
        if wrong := [type(each).__name__ for each in listed if not isinstance(each, Document)]:
            raise DataError(f"split_documents expects LangChain documents, got {wrong[0]}; see create_documents")
        return self._split(
            [each.id for each in listed], [each.page_content for each in listed], [each.metadata for each in listed]
        )

    def _split(
        self, ids: Sequence[str | None], texts: Sequence[str], metadatas: Sequence[dict[Any, Any]]
    ) -> list[Document]:
        parts = _unnamed_parts(ids, texts, metadatas, self._last)
        # Made as they are wanted: objects that live long cost runs of the garbage collector.
        documents = map(_core_document, ids, texts, metadatas)
        chunked = self._chunker.chunks_per_document(documents, workers=workers_for(self._chunker, len(texts)))
        made: list[Document] = []
        taken: set[str] = set()
        rows = zip(ids, texts, metadatas, warn_on_truncation(chunked, self._fit_to), strict=True)
        for own_id, text, metadata, chunks in rows:
            made += _documents(own_id, text, metadata, chunks, taken, parts)
        return made


def _core_document(own_id: str | None, text: str, metadata: dict[Any, Any]) -> CoreDocument:
    # Documents without an id are told apart by their text: the pages of one source share its name.
    return CoreDocument(own_id or f"{source_of(None, text, metadata)[0]}#{digest(text)}", text, metadata)


# What pydantic's constructor calls, without LangChain's three in front of it: the same object in half of the time.
_validate = Document.__pydantic_validator__.validate_python


def _documents(
    own_id: str | None,
    text: str,
    metadata: dict[Any, Any],
    chunks: Sequence[Chunk],
    taken: set[str],
    parts: Mapping[tuple[str, str], int],
) -> Iterator[Document]:
    source_id, origin = source_of(own_id, text, metadata)
    given = inherited(metadata, of_a_chunk=_is_chunk(metadata))
    marks = page_marks(metadata)
    shallow = all(type(value) in _IMMUTABLE for value in given.values())
    part = parts.get((source_id, text)) if parts else None
    new = Document.__new__
    for piece, name, more in chunk_records(chunks, origin, given, KEYS, taken, marks, UNKNOWN):
        own = given.copy() if shallow else copy.deepcopy(given)
        own |= more
        own["source_id"] = source_id
        if part is not None:
            own[SOURCE_PART] = part
        yield _validate({"page_content": piece, "metadata": own, "id": name}, self_instance=new(Document))


def document_of(document: Document, chunk: Chunk) -> Document:
    """A chunk of a document as `ChunkcoreTextSplitter` makes it."""
    return next(_documents(document.id, document.page_content, document.metadata, [chunk], set(), {}))


def from_document(document: CoreDocument) -> Document:
    """A chunkcore document, as from `join_pages` or `load_documents`, as LangChain's; its chunks say their pages.

    The metadata have ``page_marks``, which chunks of `ChunkcoreTextSplitter` do not inherit.
    """
    return Document(page_content=document.text, metadata=with_page_marks(document), id=document.id)


def _listed(values: Any, what: str) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        raise DataError(f"expected a list of {what}, got {type(values).__name__}") from None


def part_of(source: str, metadata: Mapping[Any, Any]) -> str:
    """The name of a source's part, such as a page: places refer to it."""
    # The pages of a chunk are no parts: its place is in the whole document.
    keys = [key for key in _PARTS if key in metadata and not (PAGES in metadata and key in ("page", "page_number"))]
    return "#".join([source, *(f"{key}={metadata[key]}" for key in keys)])


def _unnamed_parts(
    ids: Iterable[str | None],
    texts: Iterable[str],
    metadatas: Iterable[dict[Any, Any]],
    last: dict[str, tuple[str, int]],
) -> dict[tuple[str, str], int]:
    """Numbers, by (source, text), the documents that differ from others of their source only by text.

    They may be parts of a file, or pieces without stated places: offsets are in each of them. `last` holds the last
    source of the call before, a digest of its text and its number: `ParentDocumentRetriever` gives one piece a call.
    """
    found: dict[str, dict[str, int]] = {}
    for own_id, text, metadata in zip(ids, texts, metadatas, strict=True):
        if own_id is None and not _is_chunk(metadata):
            source_id, _ = source_of(None, text, metadata)
            if part_of(source_id, metadata) == source_id:
                known = found.setdefault(source_id, {})
                known.setdefault(text, len(known))
    parts: dict[tuple[str, str], int] = {}
    said = ""
    for source, known in found.items():
        seen, first = last.get(source, ("", 0))
        again = bool(seen) and seen not in map(digest, known)
        if again or len(known) > 1:
            what = "this text and that of the call before" if again else f"{len(known)} documents"
            said = said or f"{what} share the source {source!r}"
        if again or first or len(known) > 1:
            parts |= {(source, text): first + again + place for text, place in known.items()}
    if said:
        warnings.warn(
            f"{said}, and neither an id nor a page tells them apart: offsets are in each of them, which the metadata "
            f"{SOURCE_PART!r} numbers. If a splitter cut them, give it add_start_index=True; else give the documents "
            "ids",
            SourceWarning,
            stacklevel=4,
        )
    last.clear()
    if found:
        source, known = found.popitem()
        text = next(reversed(known))
        last[source] = digest(text), parts.get((source, text), 0)
    return parts


def _is_chunk(metadata: dict[Any, Any]) -> bool:
    return type(metadata.get("start_index")) is int


def source_of(own_id: str | None, text: str, metadata: dict[Any, Any]) -> tuple[str, Origin]:
    """The id of the document that offsets refer to, and the place of `text` in it."""
    chained = _is_chunk(metadata)
    named = metadata.get("source_id") if chained else None
    source = metadata.get("source")
    source_id = str(named or own_id or (source if isinstance(source, str) else "") or digest(text))
    return source_id, KEYS.origin(metadata, len(text)) if chained else WHOLE


def _whole(chunker: Chunker, *names: str) -> int:
    values = (getattr(chunker, name, None) for name in names)
    return next((value for value in values if isinstance(value, int)), 0)


def _encoding_of(model_name: str) -> str:
    import tiktoken

    try:
        return tiktoken.encoding_name_for_model(model_name)
    except KeyError as error:
        raise OptionError(
            f"tiktoken knows no encoding of the model {model_name!r}: give encoding_name, such as 'o200k_base'"
        ) from error


class _TokenizerCounter(HuggingFaceCounter):
    """Counts with the given tokenizer, including changes made to it after it was loaded."""

    def __init__(self, tokenizer: Any) -> None:
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise OptionError(
                f"expected a fast Hugging Face tokenizer, got {type(tokenizer).__name__}; "
                "load it by AutoTokenizer.from_pretrained(..., use_fast=True)"
            )
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_str(backend.to_str())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        super().__init__(str(getattr(tokenizer, "name_or_path", "") or "tokenizer"))
        self.fingerprint = f"hf:{digest(self._tokenizer.to_str())}"

    @property
    def tokenizer(self) -> Any:
        return self._tokenizer


class RecursiveTextSplitter(OneStrategy, ChunkcoreTextSplitter):
    """`ChunkcoreTextSplitter` with the strategy ``recursive``: separators from large to small.

    >>> splitter = RecursiveTextSplitter(chunk_size=9, chunk_overlap=0, counter="characters")
    >>> splitter.split_text("one two. one two.")
    ['one two.', 'one two.']
    """

    _own: ClassVar[str] = "recursive"

    def __init__(
        self, *, add_start_index: bool = True, fit_to: _Model = None, **options: Unpack[RecursiveOptions]
    ) -> None:
        super().__init__(add_start_index=add_start_index, fit_to=fit_to, **options)


class SemanticTextSplitter(OneStrategy, ChunkcoreTextSplitter):
    """`ChunkcoreTextSplitter` with ``breakpoint`` (SemanticChunker): cuts where neighbouring sentences differ most."""

    _own: ClassVar[str] = "breakpoint"

    def __init__(
        self, *, add_start_index: bool = True, fit_to: _Model = None, **options: Unpack[SemanticOptions]
    ) -> None:
        super().__init__(add_start_index=add_start_index, fit_to=fit_to, **options)


class ClusterSemanticTextSplitter(OneStrategy, ChunkcoreTextSplitter):
    """`ChunkcoreTextSplitter` with ``cluster_semantic``: the most similarity inside chunks of up to `size`."""

    _own: ClassVar[str] = "cluster_semantic"

    def __init__(
        self, *, add_start_index: bool = True, fit_to: _Model = None, **options: Unpack[ClusterSemanticOptions]
    ) -> None:
        super().__init__(add_start_index=add_start_index, fit_to=fit_to, **options)


class LumberTextSplitter(OneStrategy, ChunkcoreTextSplitter):
    """`ChunkcoreTextSplitter` with ``lumber`` (LumberChunker): a language model says where the content changes."""

    _own: ClassVar[str] = "lumber"

    def __init__(
        self, *, add_start_index: bool = True, fit_to: _Model = None, **options: Unpack[LumberOptions]
    ) -> None:
        super().__init__(add_start_index=add_start_index, fit_to=fit_to, **options)


def content_key(document: Document) -> str:
    """A key of a chunk's source, text and metadata, without its place.

    For ``index(..., cleanup="incremental", source_id_key="source_id", key_encoder=content_key)``: after an edit only
    chunks with new text are embedded and written, and old ones deleted. Moved chunks keep their old place in the store;
    `evaluate_retriever` finds them by text. Of repeated passages of a source, the first is indexed. LangChain's own
    encoders (``key_encoder="sha256"``) include the place, so moved chunks are written again; with `ChunkcoreEmbeddings`
    over a cache only new texts are embedded.

    >>> moved = [Document(page_content="tea", metadata={"source_id": "a", "start_index": i}) for i in (0, 9)]
    >>> content_key(moved[0]) == content_key(moved[1])
    True
    """
    places = (KEYS.start, KEYS.end, SPANS, SEGMENTS, SOURCE_PART)
    kept = {str(key): value for key, value in document.metadata.items() if key not in places}
    return digest(json.dumps([document.page_content, kept], sort_keys=True, ensure_ascii=True, default=repr))
