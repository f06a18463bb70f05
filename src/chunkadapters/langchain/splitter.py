"""`ChunkcoreTextSplitter`: a LangChain text splitter around any chunker."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from hashlib import blake2b
from typing import Any, ClassVar, Literal

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_text_splitters import TextSplitter

from chunkadapters.configuration import build, one_strategy, watched, workers_for
from chunkadapters.langchain.models import as_model
from chunkadapters.places import (
    DERIVED,
    SEGMENTS,
    SPANS,
    Origin,
    decode_spans,
    digest,
    encode_spans,
    inherited,
    told,
    unused_id,
)
from chunkcore.chunkers.base import Chunker
from chunkcore.document import Document as CoreDocument
from chunkcore.document import Span
from chunkcore.errors import DataError, OptionError
from chunkcore.models import Embedder, get_embedder
from chunkcore.tokens import HuggingFaceCounter

__all__ = [
    "ChunkcoreTextSplitter",
    "ClusterSemanticTextSplitter",
    "LumberTextSplitter",
    "RecursiveTextSplitter",
    "SemanticTextSplitter",
    "content_key",
    "place_of",
    "source_of",
]

# Values that a shallow copy shares without harm.
_IMMUTABLE = (str, int, float, bool, type(None))


class ChunkcoreTextSplitter(TextSplitter):
    """A LangChain text splitter around any chunkcore chunker.

    Every chunk is a `Document` with a deep copy of the metadata of the document that it comes from, and

    - ``start_index``, ``end_index``: its place in the source, in code points, half-open; always there,
      whatever ``add_start_index`` says. Of a chunk of several spans, the first start and the last end.
    - ``spans``: only on a chunk of several spans, as ``"0-12,40-55"``.
    - ``source_id``: the incoming document's ``id``, else its metadata's ``source``, else a hash of its text.
    - what the strategy tells: ``headings`` (as ``"Tea > Green tea"``), ``language``, ``fallback`` and the like;
      ``context``, where one was written about the chunk; ``segments`` (``"0-12;12-30"``), where parts are searched
      on their own. Where the document itself has metadata of such a name, they stay, and the chunk's begins
      with ``chunk_``.
    - ``derived``: true, only where a model wrote the text; its place is then the passage that it was written from.
    - the document's ``id``: 32 hexadecimal digits, the same in every run. Documents without an ``id`` are
      told apart by their text, so that the pages of one ``source`` do not overwrite each other.

    A document whose metadata has a whole-number ``start_index`` is taken for a piece that another splitter
    cut: offsets are added up and refer to the original, and ``source_id`` is handed down. Where
    the piece's place is not known (LangChain's ``-1``, or a text that was altered since), neither is that of
    its chunks: both indices are -1.

    Args:
        chunker: a chunker, or a spec string such as ``"recursive:size=200"``.
        strategy: instead of it, a strategy's name.
        add_start_index: accepted so that code that sets it keeps working; the offsets are always there.
        fit_to: the model that is to embed the chunks, as LangChain's embeddings, a chunkcore embedder or its name: a
            size that is left out is 60 % of what it reads, in its own tokens, and a `TruncationWarning` tells how many
            chunks, and how many of its tokens, it would cut off.
        options: the strategy's options; ``chunk_size`` and ``chunk_overlap`` are understood as well. Where a strategy
            takes a model, LangChain's embeddings and chat models are welcome: ``embedder=OpenAIEmbeddings()``.

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
        fit_to: Embedder | Embeddings | str | None = None,
        **options: Any,
    ) -> None:
        self._fit_to = None if fit_to is None else get_embedder(as_model(fit_to))
        self._chunker = build(chunker, strategy, options, self._fit_to, as_model)
        # What LangChain's own code may read; the chunker is what cuts.
        super().__init__(
            chunk_size=_whole(self._chunker, "size", "max_size") or 4000,
            chunk_overlap=_whole(self._chunker, "overlap"),
            length_function=self._chunker.token_counter.count,
            add_start_index=add_start_index,
        )

    @property
    def chunker(self) -> Chunker:
        """What cuts."""
        return self._chunker

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._chunker!r})"

    @classmethod
    def from_tiktoken_encoder(
        cls,
        encoding_name: str = "cl100k_base",
        model_name: str | None = None,
        allowed_special: Literal["all"] | AbstractSet[str] | None = None,
        disallowed_special: Any = "all",
        **options: Any,
    ) -> ChunkcoreTextSplitter:
        """A splitter whose sizes are in the tokens of a tiktoken encoding.

        Two things differ from LangChain on purpose: the default is ``cl100k_base``, not ``gpt2``, and text
        that looks like a special token is text, so `disallowed_special` has nothing to refuse.

        Raises:
            ValueError: an unknown encoding or model, or `allowed_special` names a token.
        """
        if allowed_special:
            raise OptionError(
                "allowed_special would count text that looks like a special token as one token; here it is text: "
                "leave the option out"
            )
        return cls(counter=_encoding_of(model_name) if model_name else encoding_name, **options)

    @classmethod
    def from_huggingface_tokenizer(cls, tokenizer: Any, **options: Any) -> ChunkcoreTextSplitter:
        """A splitter whose sizes are in the tokens of a Hugging Face tokenizer (a fast one).

        Raises:
            ValueError: it is no tokenizer, or a slow one.
        """
        return cls(counter=_TokenizerCounter(tokenizer), **options)

    def split_text(self, text: str) -> list[str]:
        return self._chunker.split_text(text)

    def create_documents(self, texts: list[str], metadatas: list[dict[Any, Any]] | None = None) -> list[Document]:
        if isinstance(texts, str) or not all(isinstance(each, str) for each in _listed(texts, "texts")):
            raise DataError("create_documents expects a list of texts; split_text takes one text")
        given = metadatas or [{} for _ in texts]
        if len(given) != len(texts):
            raise DataError(f"expected one metadata dictionary a text, got {len(given)} for {len(texts)} texts")
        if wrong := [type(each).__name__ for each in given if not isinstance(each, dict)]:
            raise DataError(f"expected one metadata dictionary a text, got {wrong[0]}")
        return self._split((None, text, metadata) for text, metadata in zip(texts, given, strict=True))

    def split_documents(self, documents: Iterable[Document]) -> list[Document]:
        if isinstance(documents, Document):  # which is iterable, of its fields
            raise DataError("split_documents expects a list of documents, got one: put it into a list")
        listed = _listed(documents, "documents")
        if wrong := [type(each).__name__ for each in listed if not isinstance(each, Document)]:
            raise DataError(f"split_documents expects LangChain documents, got {wrong[0]}; see create_documents")
        return self._split((each.id, each.page_content, each.metadata) for each in listed)

    def _split(self, incoming: Iterable[tuple[str | None, str, dict[Any, Any]]]) -> list[Document]:
        """The chunks of (id, text, metadata) triples."""
        rows = [(source_of(own_id, text, metadata), own_id, text, metadata) for own_id, text, metadata in incoming]
        # Strategies may read metadata: of which format or language a text is.
        documents = [
            CoreDocument(_identity(own_id, text, source_id), text, metadata)
            for (source_id, _), own_id, text, metadata in rows
        ]
        chunked = self._chunker.chunk_each(documents, workers=workers_for(self._chunker, len(documents)))
        watching = watched(chunked, self._fit_to)
        made: list[Document] = []
        taken: set[str] = set()
        for ((source_id, origin), _, _, metadata), chunks in zip(rows, watching, strict=True):
            given = inherited(metadata, of_a_chunk=_is_chunk(metadata))
            shallow = all(type(value) in _IMMUTABLE for value in given.values())
            for chunk in chunks:
                own = given.copy() if shallow else copy.deepcopy(given)
                own |= told(chunk, given, origin)
                own |= place_of(origin.place(chunk.spans))
                own["source_id"] = source_id
                made.append(Document(page_content=chunk.text, metadata=own, id=unused_id(chunk.id, taken)))
        return made


def _listed(values: Any, what: str) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        raise DataError(f"expected a list of {what}, got {type(values).__name__}") from None


def place_of(spans: tuple[Span, ...]) -> dict[str, Any]:
    """Where a chunk stands, as metadata."""
    if not spans:
        return {"start_index": -1, "end_index": -1}
    if len(spans) == 1:
        return {"start_index": spans[0].start, "end_index": spans[0].end}
    start, end = min(span.start for span in spans), max(span.end for span in spans)
    return {"start_index": start, "end_index": end, SPANS: encode_spans(spans)}


def _is_chunk(metadata: dict[Any, Any]) -> bool:
    """Whether the document is a piece that a splitter cut."""
    return type(metadata.get("start_index")) is int


def source_of(own_id: str | None, text: str, metadata: dict[Any, Any]) -> tuple[str, Origin]:
    """The id of the document that offsets refer to, and where `text` stands in it."""
    chained = _is_chunk(metadata)
    start, end = metadata.get("start_index"), metadata.get("end_index")
    named = metadata.get("source_id") if chained else None
    source = metadata.get("source")
    source_id = str(named or own_id or (source if isinstance(source, str) else "") or digest(text))
    if not chained:
        return source_id, Origin.at(0)
    spans = decode_spans(metadata.get(SPANS))
    derived = metadata.get(DERIVED) is True
    return source_id, Origin.stated(len(text), start, end if isinstance(end, int) else None, spans, derived=derived)


def _identity(own_id: str | None, text: str, source_id: str) -> str:
    """What the ids of the chunks are made from."""
    return own_id or f"{source_id}#{digest(text)}"


def _whole(chunker: Chunker, *names: str) -> int:
    """The first of the options that is a whole number; 0 where there is none."""
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
    """Counts with the very tokenizer that was handed in, whatever it was changed to since it was loaded."""

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


class _Named(ChunkcoreTextSplitter):
    """One strategy, which needs no naming."""

    _own: ClassVar[str]

    def __init__(self, *, strategy: str | None = None, **more: Any) -> None:
        super().__init__(strategy=one_strategy(self, self._own, strategy, more), **more)


class RecursiveTextSplitter(_Named):
    """The strategy ``recursive``: separators from large to small; `ChunkcoreTextSplitter` tells the rest.

    >>> splitter = RecursiveTextSplitter(chunk_size=9, chunk_overlap=0, counter="characters")
    >>> splitter.split_text("one two. one two.")
    ['one two.', 'one two.']
    """

    _own = "recursive"


class SemanticTextSplitter(_Named):
    """The strategy ``breakpoint``, known as SemanticChunker: cuts where neighbouring sentences differ most.

    >>> SemanticTextSplitter(max_size=200, embedder="all-MiniLM-L6-v2").chunker.name
    'breakpoint'
    """

    _own = "breakpoint"


class ClusterSemanticTextSplitter(_Named):
    """The strategy ``cluster_semantic`` of the Chroma report: chunks of the most similarity inside, up to `max_size`.

    >>> ClusterSemanticTextSplitter(max_size=200, embedder="all-MiniLM-L6-v2").chunker.max_size
    200
    """

    _own = "cluster_semantic"


class LumberTextSplitter(_Named):
    """The strategy ``lumber``, known as LumberChunker: a language model says where the content changes.

    >>> LumberTextSplitter(llm="openai:qwen3:8b@http://localhost:11434/v1").chunker.name
    'lumber'
    """

    _own = "lumber"


_PLACES = ("start_index", "end_index", SPANS, SEGMENTS)


def content_key(document: Document) -> str:
    """A key of a chunk's source, text and metadata, but not of where it stands.

    For ``index(..., cleanup="incremental", source_id_key="source_id", key_encoder=content_key)``: after an edit only
    the chunks with another text are embedded and written, and the old ones deleted. Chunks that have only moved are
    left alone, and say in the store where they stood before; `evaluate_retriever` then finds them by their text. Of
    passages that a source repeats word for word, the first is indexed.

    Any of LangChain's own encoders (``key_encoder="sha256"``) also sees where a chunk stands: what has moved is
    written again, and says where it stands now. `ChunkcoreEmbeddings` over a cache then embeds only what is new.

    >>> moved = [Document(page_content="tea", metadata={"source_id": "a", "start_index": i}) for i in (0, 9)]
    >>> content_key(moved[0]) == content_key(moved[1])
    True
    """
    kept = {str(key): value for key, value in document.metadata.items() if key not in _PLACES}
    data = json.dumps([document.page_content, kept], sort_keys=True, ensure_ascii=True, default=repr)
    return blake2b(data.encode("ascii"), digest_size=16).hexdigest()
