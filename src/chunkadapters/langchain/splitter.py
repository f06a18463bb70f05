"""`ChunkcoreTextSplitter`: a LangChain text splitter around any chunker."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from langchain_core.documents import Document
from langchain_text_splitters import TextSplitter
from typing_extensions import Unpack

from chunkadapters.configuration import (
    DEFAULT_CHUNKER,
    ChunkerOptions,
    build,
    chunkable,
    chunks_of,
    embedder_of,
    merged,
)
from chunkadapters.places import (
    SPANS,
    WHITE_SPACE,
    WHOLE,
    Metadata,
    MetadataLike,
    Origin,
    PlaceKeys,
    chunk_records,
    inherited,
    part_of,
    with_page_marks,
)
from chunkcore.chunkers import Chunker
from chunkcore.errors import DataError, OptionError, kind_of, warn_user
from chunkcore.guesses import SIZES_BY_PLACE
from chunkcore.locating import names_of
from chunkcore.models.base import Embedder, without_truncation
from chunkcore.plain import digest
from chunkcore.retrieval.where import own_copy
from chunkcore.text import Document as CoreDocument
from chunkcore.tokens import HuggingFaceCounter

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from transformers import PreTrainedTokenizerBase

KEYS = PlaceKeys("start_index", "end_index", page="page")
# LangChain writes -1 where it finds a chunk nowhere.
_UNKNOWN: Metadata = {"start_index": -1, "end_index": -1, WHITE_SPACE: ""}
# Loaders make a document of each of these, and offsets refer to that.
_Model: TypeAlias = "Embedder | Embeddings | str | None"


class SourceWarning(UserWarning):
    """Documents share a source without ids or pages: offsets are in each of them, not in the source."""


class SizeUnitWarning(UserWarning):
    """``chunk_size`` without a counter: sizes are tokens here, and characters in LangChain's own splitters."""


class ChunkcoreTextSplitter(TextSplitter):
    """A LangChain text splitter around any chunkcore chunker.

    Every chunk is a `Document` with a deep copy of its document's metadata, an ``id`` of 32 hexadecimal digits (the
    same in every run), and this metadata:

    - ``start_index``, ``end_index``: its place in the source in code points, half-open, for any `add_start_index`; of
      several spans, the first start and the last end.
    - ``spans``: ``"0-12,40-55"``, only on a chunk of several spans.
    - ``source_id``: the document's ``id``, else its metadata's ``source`` or ``source_id``, else a hash of its text.
    - the chunker's metadata: ``headings`` (``"Tea > Green tea"``), ``language``, ``fallback``; ``context``, text
      written about the chunk. If the document has the key, the chunk's gets the prefix ``chunk_``.
    - ``white_space``: the white space between the chunk and the next one; "" if there is none.
    - ``derived``: true if a model wrote the text; the place is then the passage it was written from.
    - of a document from `from_document` with pages: ``page`` (from 0) and ``page_label`` of the first, and ``pages``
      (``"3, 4"``, from 1).

    A document with a ``start_index`` in its metadata is a piece of another splitter: offsets are added up
    and refer to the original, and ``source_id`` is passed on. If its own place is unknown (LangChain's -1, or an
    altered text), both indices are -1. Pieces without a ``start_index`` look like documents (`SourceWarning`).

    Args:
        chunker: a chunker, its name, or a spec string such as ``"recursive:size=200"``.
        add_start_index: accepted for LangChain's sake; offsets are always written.
        with_ids: False for chunks without an ``id``: some vector stores refuse documents that have one.
        fit_to: the model that will embed the chunks (LangChain's embeddings, a chunkcore embedder or its name). It sets
            a missing size to 60 % of its token limit; a `TruncationWarning` counts what it would cut off.
        options: the chunker's options, here or as keywords, with LangChain's models (``embedder=OpenAIEmbeddings()``);
            LangChain's ``chunk_size``, ``chunk_overlap``, ``keep_separator``, ``is_separator_regex``,
            ``strip_whitespace`` and ``length_function`` work too. Sizes are tokens: for ``chunk_size`` alone a
            `SizeUnitWarning` says so.

    Raises `ValueError` (chunkcore's `OptionError`): an unknown chunker or option, or a value out of range.

    >>> splitter = ChunkcoreTextSplitter("recursive", chunk_size=9, chunk_overlap=0, counter="characters")
    >>> [(doc.page_content, doc.metadata["start_index"]) for doc in splitter.create_documents(["one two. one two."])]
    [('one two.', 0), ('one two.', 9)]
    """

    def __init__(
        self,
        chunker: Chunker | str = DEFAULT_CHUNKER,
        *sizes: int,
        options: Mapping[str, object] | None = None,
        fit_to: _Model = None,
        add_start_index: bool = True,
        with_ids: bool = True,
        **more: Unpack[ChunkerOptions],
    ) -> None:
        if sizes or isinstance(chunker, int):
            raise OptionError(SIZES_BY_PLACE.format(type(self).__name__))
        values = merged(options, more)
        self._with_ids = with_ids
        self._fit_to = embedder_of(fit_to, "langchain")
        self.chunker = build(chunker, values, self._fit_to, "langchain")
        has_counter = {"counter", "length_function"} & values.keys() or fit_to is not None
        if "chunk_size" in values and not has_counter:
            warn_user(
                f"chunk_size={values['chunk_size']} is in tokens here ({self.chunker.token_counter.name}), where "
                'LangChain\'s splitters count characters: add counter="characters" to keep the size that you had, or '
                "write size= for tokens",
                SizeUnitWarning,
            )
        super().__init__(add_start_index=add_start_index)  # the chunker is what cuts

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.chunker!r})"

    @classmethod
    def from_tiktoken_encoder(  # type: ignore[override]  # its options have names
        cls,
        encoding_name: str = "cl100k_base",
        model_name: str | None = None,
        allowed_special: Literal["all"] | AbstractSet[str] | None = None,
        disallowed_special: Literal["all"] | Collection[str] = "all",
        chunker: Chunker | str = DEFAULT_CHUNKER,
        **more: Unpack[ChunkerOptions],
    ) -> ChunkcoreTextSplitter:
        """A splitter with sizes in the tokens of a tiktoken encoding. Raises `ValueError` for an unknown one.

        Unlike LangChain's: the default is ``cl100k_base``, not ``gpt2``; special tokens in the text are text, so
        `disallowed_special` has no effect, and `allowed_special` is refused.
        """
        if allowed_special:
            raise OptionError(
                "allowed_special would count text that looks like a special token as one token; here it is text: "
                "leave the option out"
            )
        if model_name:
            import tiktoken

            try:
                encoding_name = tiktoken.encoding_name_for_model(model_name)
            except KeyError as error:
                raise OptionError(
                    f"tiktoken knows no encoding of the model {model_name!r}: give encoding_name, such as 'o200k_base'"
                ) from error
        more["counter"] = encoding_name
        return cls(chunker, **more)

    @classmethod
    def from_huggingface_tokenizer(  # type: ignore[override]  # its options have names
        cls,
        tokenizer: PreTrainedTokenizerBase,
        chunker: Chunker | str = DEFAULT_CHUNKER,
        **more: Unpack[ChunkerOptions],
    ) -> ChunkcoreTextSplitter:
        """A splitter with sizes in the tokens of a fast Hugging Face tokenizer. Raises `ValueError` for any other."""
        more["counter"] = _TokenizerCounter(tokenizer)
        return cls(chunker, **more)

    def split_text(self, text: str) -> list[str]:
        return self.chunker.split_text(text)

    def create_documents(
        self, texts: list[str], metadatas: list[Metadata] | None = None
    ) -> list[Document]:
        listed = list(texts)
        if isinstance(texts, str) or not all(isinstance(text, str) for text in listed):
            raise DataError("create_documents expects a list of texts; split_text takes one text")
        rows = zip(listed, metadatas or [{} for _ in listed], strict=True)
        return self._split([_Source(None, text, row) for text, row in rows])

    def split_documents(self, documents: Iterable[Document]) -> list[Document]:
        if isinstance(documents, Document):
            raise OptionError(
                "split_documents takes a list of documents, got one: put it into a list"
            )
        listed = list(documents)
        for other in listed:
            if not hasattr(other, "page_content"):
                raise DataError(
                    f"split_documents takes LangChain's Documents, got {kind_of(other)}: create_documents takes a list "
                    "of texts; from_document makes a Document of chunkcore's"
                )
        rows = [_Source(each.id, each.page_content, each.metadata) for each in listed]
        return self._split(rows)

    def _split(self, sources: Sequence[_Source]) -> list[Document]:
        # Documents that differ from others of their source only by text: offsets are in each of them.
        texts = defaultdict(set)
        for source in sources:
            if not source.is_named:
                texts[source.id].add(source.document.text)
        shared = [name for name in texts if len(texts[name]) > 1]
        if shared:
            warn_user(
                f"{len(texts[shared[0]])} documents share the source {shared[0]!r}, and neither an id nor a page tells "
                "them apart: offsets are in each of them. If a splitter cut them, give it add_start_index=True; else "
                "give the documents ids",
                SourceWarning,
            )
        shown = [chunkable(source.document, is_chunk=source.is_chunk) for source in sources]
        chunked = chunks_of(self.chunker, shown, self._fit_to)
        documents = []
        taken: set[str] = set()
        for source, chunks in zip(sources, chunked, strict=True):
            parent = inherited(source.document.metadata, of_a_chunk=source.is_chunk)
            records = chunk_records(source.document, chunks, source.origin, parent, KEYS, taken)
            for text, chunk_id, record in records:
                metadata = own_copy(parent) | _UNKNOWN | record
                metadata["source_id"] = source.id
                name = chunk_id if self._with_ids else None
                documents.append(Document(page_content=text, metadata=metadata, id=name))
        return documents


class _Source:
    """A text to split: the id of the document that offsets refer to, and its place in that document."""

    def __init__(self, document_id: str | None, text: str, metadata: Metadata) -> None:
        self.id, self.origin = source_of(document_id, text, metadata)
        self.is_chunk = self.origin is not WHOLE
        # Documents without an id differ by their text: the pages of one source share its name.
        self.document = CoreDocument(document_id or f"{self.id}#{digest(text)}", text, metadata)
        has_part = part_of(self.id, metadata) != self.id
        self.is_named = document_id is not None or self.is_chunk or has_part


def from_document(document: CoreDocument) -> Document:
    """A chunkcore document, as from `join_pages` or `load_documents`, as LangChain's; its chunks say their pages.

    The metadata have ``page_marks``, which chunks of `ChunkcoreTextSplitter` do not inherit.
    """
    return Document(page_content=document.text, metadata=with_page_marks(document), id=document.id)


def source_of(document_id: str | None, text: str, metadata: MetadataLike) -> tuple[str, Origin]:
    """The id of the document that offsets refer to, and the place of `text` in it."""
    candidates = [document_id, metadata.get("source"), metadata.get("source_id")]
    origin = WHOLE
    if metadata.get(KEYS.start) is not None:  # of a chunk, whose id is its own
        candidates.reverse()
        origin = KEYS.origin(metadata, text)
    names = names_of(*candidates) or (digest(text),)
    return names[0], origin


class _TokenizerCounter(HuggingFaceCounter):
    """Counts with the given tokenizer, including changes made to it after it was loaded."""

    def __init__(self, tokenizer: Any) -> None:
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise OptionError(
                f"expected a fast Hugging Face tokenizer, got {type(tokenizer).__name__}; "
                "load it by AutoTokenizer.from_pretrained(..., use_fast=True)"
            )
        self._tokenizer = without_truncation(backend)
        super().__init__(str(getattr(tokenizer, "name_or_path", "") or "tokenizer"))
        self.fingerprint = f"hf:{digest(self._tokenizer.to_str())}"

    @property
    def tokenizer(self) -> Any:
        return self._tokenizer


def content_key(document: Document) -> str:
    """A key of a chunk's source, text and metadata, without its place.

    For ``index(..., cleanup="scoped_full", source_id_key="source_id", key_encoder=content_key)``: after an edit only
    chunks with new text are embedded and written, and old ones deleted. Moved chunks keep their old place in the store;
    `evaluate_retriever` finds them by text. Of repeated passages of a source, the first is indexed.

    >>> moved = [Document(page_content="tea", metadata={"source_id": "a", "start_index": i}) for i in (0, 9)]
    >>> content_key(moved[0]) == content_key(moved[1])
    True
    """
    places = (KEYS.start, KEYS.end, SPANS, WHITE_SPACE)
    kept = {str(key): value for key, value in document.metadata.items() if key not in places}
    return digest(json.dumps([document.page_content, kept], sort_keys=True, default=_written))


def _written(value: object) -> str:
    """A value that JSON has no form for. A set has another order in each run."""
    if isinstance(value, set | frozenset):
        value = sorted(value, key=repr)
    return repr(value)
