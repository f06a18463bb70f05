"""`Chunker`, the base class of every chunker, the registry `chunkers`, and `get_chunker`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from math import inf
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from chunkcore.concurrency import batches_of, ordered
from chunkcore.errors import DataError, OptionError, check_type, echo
from chunkcore.models.base import Embedder
from chunkcore.models.loading import get_counter, get_embedder, tokenizing
from chunkcore.options import (
    check_number,
    check_option_names,
    check_options,
    format_spec,
    plain_option,
    plain_options,
    split_spec,
)
from chunkcore.plain import digest
from chunkcore.registry import Registry
from chunkcore.spans import merge_touching
from chunkcore.text import (
    Chunk,
    Chunks,
    ContiguousChunks,
    Document,
    Span,
    check_document,
    pages_of_all,
    text_of_spans,
)
from chunkcore.tokens import TokenCounter, TokenizedText

# Small documents are split together: fewer array operations.
_BATCH_CHARACTERS = 75_000
_BATCH_DOCUMENTS = 64
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_OVER = {"over_maximum": True}
_SHARE = 0.6  # of a model's limit; the chunking survey, "Embedding Model Token Limits": 50 to 75 %
_PER_TOKEN = {
    "characters": 4.0,
    "words": 0.75,
}  # the chunking survey, "Token Counting", has four characters


class Draft(NamedTuple):
    """A chunk as a chunker describes it.

    Attributes:
        spans: in reading order.
        context: about the chunk: a model's sentence or a heading path.
        derived: the chunk's text if a model wrote it, else None.
        segments: parts that are searched on their own, each as its spans.
    """

    spans: tuple[Span, ...]
    metadata: Mapping[str, Any] = _NOTHING
    context: str = ""
    derived: str | None = None
    segments: tuple[tuple[Span, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Chunker:
    """Cuts a text into spans.

    Chunks of a document with page marks say their ``pages`` in their metadata.

    A chunker is a frozen dataclass that extends this class and is registered under a name; its fields are its options.
    It implements `ranges` (one span a chunk), `split` (spans) or `draft` (spans with metadata). Set `bounded` if no
    chunk's own text is over `hard_maximum`, and `tokens_only` if `split` calls no model and splits each of the source's
    `parts` on its own. `bounds` has the least value of options by name, or (least, most); `validate` may check more.

    Attributes:
        counter: what sizes are measured in: a `TokenCounter` or the name of one.

    Raises `OptionError`: an option is out of range, at construction; `ModelError`: a model failed twice, when chunking;
    `MissingExtraError`: an optional package is not installed.
    """

    name: ClassVar[str] = ""
    tokens_only: ClassVar[bool] = False
    bounded: ClassVar[bool] = False

    counter: TokenCounter | str = "cl100k_base"

    def __new__(cls, *values: object, **options: Any) -> Any:
        if values:
            raise OptionError(
                f"options are given by name, as in {cls.__name__}(size=200); got {echo(values[0])}"
            )
        check_option_names(cls.name or cls.__name__, options, cls.option_names())
        return super().__new__(cls)

    def __post_init__(self) -> None:
        cls = type(self)
        if (cls.ranges, cls.split, cls.draft) == (Chunker.ranges, Chunker.split, Chunker.draft):
            raise TypeError(f"{cls.__name__} implements neither ranges, split nor draft")
        check_options(self)
        object.__setattr__(self, "counter", get_counter(self.counter))
        self.validate()

    def validate(self) -> None:
        """Hook: raise `OptionError` for options out of range."""

    def ranges(self, source: TokenizedText) -> list[tuple[int, int]]:
        """Hook: the chunks of a text in order, each of one span, as starts and ends."""
        return [(spans[0].start, spans[-1].end) for spans in self.split(source)]

    def split(self, source: TokenizedText) -> list[tuple[Span, ...]]:
        """Hook: the chunks of a text in order, each as its spans."""
        if not isinstance(source, TokenizedText):
            raise DataError(
                f"split is what chunkers implement: use split_text, spans or chunk; got {echo(source)}"
            )
        if type(self).ranges is not Chunker.ranges:
            return [(Span(start, end),) for start, end in self.ranges(source)]
        return [draft.spans for draft in self.draft(source, None)]

    def draft(self, source: TokenizedText, document: Document | None) -> list[Draft]:
        """Hook: the chunks in order, with metadata, context or segments. No document: a bare text, or several."""
        return [Draft(spans) for spans in self.split(source)]

    @property
    def hard_maximum(self) -> Any:
        """The most that a chunk's own text counts: of a `bounded` chunker `maximum`, else `size`; else None.

        A word over it is cut between graphemes, a grapheme between code points, and a single code point over it is a
        chunk; its metadata have `over_maximum`.
        """
        if not self.bounded or getattr(self, "size_of", "text") == "pieces":
            return None
        maximum = getattr(self, "maximum", None)
        return getattr(self, "size", None) if maximum is None else maximum

    def models(self) -> Mapping[str, Any]:
        """The loaded models by option, such as an `embedder`; the `fingerprint` changes with them."""
        embedder = getattr(self, "embedder", None)
        return _NOTHING if embedder is None else {"embedder": get_embedder(embedder)}

    @property
    def token_counter(self) -> TokenCounter:
        return get_counter(self.counter)

    def spans(self, text: str) -> list[tuple[Span, ...]]:
        """The chunks of `text` in order, each as its spans (code points, half-open)."""
        return [
            merge_touching(draft.spans) for draft in self.draft(self._tokenize_text(text), None)
        ]

    def split_text(self, text: str) -> list[str]:
        """The chunks' texts. Raises `DataError` if `text` is not a string."""
        drafts = self.draft(self._tokenize_text(text), None)
        merged = [merge_touching(draft.spans) for draft in drafts]
        return self._texts(text, merged, drafts)

    def chunk(self, document: Document) -> Chunks:
        """The chunks of a document. Raises `DataError` for anything but a `Document`."""
        return Chunks(self._build([document], self._tokenize([document]))[0])

    def chunk_many(self, documents: Iterable[Document], *, workers: int = 1) -> Iterator[Chunk]:
        """The chunks of many documents, lazily and in order; see `chunks_per_document`."""
        for chunks in self.chunks_per_document(documents, workers=workers):
            yield from chunks

    def chunks_per_document(
        self, documents: Iterable[Document], *, workers: int = 1
    ) -> Iterator[Sequence[Chunk]]:
        """The chunks of each document, lazily and in order: as `ContiguousChunks`, or as a list if some have several
        spans or metadata. Raises `DataError` for anything but a `Document`.

        With several workers, threads tokenize ahead for a `tokens_only` chunker, which splits small documents
        together. Other chunkers chunk one document in each thread. Memory holds a few documents a worker.
        """
        check_number("workers", workers, 1, 1_000)
        check_type("documents", documents, Iterable, "several Documents")
        with nullcontext() if workers == 1 else ThreadPoolExecutor(workers) as pool:
            done: Callable[..., Iterator[Any]] = (
                map if pool is None else partial(ordered, pool, ahead=4 * workers)
            )
            if self.tokens_only:
                batches = batches_of(documents, _characters, _BATCH_CHARACTERS, _BATCH_DOCUMENTS)
                for batch, source in done(lambda batch: (batch, self._tokenize(batch)), batches):
                    yield from self._build(batch, source)
            else:
                yield from done(self.chunk, iter(documents))

    def _tokenize_text(self, text: str) -> TokenizedText:
        if not isinstance(text, str):
            raise DataError(f"a text is a string, got {type(text).__name__}; decode bytes first")
        return self.token_counter.tokenize(text)

    def _tokenize(self, documents: list[Document]) -> TokenizedText:
        for document in documents:
            check_document(document, "what is chunked")
        sources = [self.token_counter.tokenize(document.text) for document in documents]
        for source, document in zip(sources, documents, strict=True):
            source.sections = sorted(
                {mark.span.start for mark in document.marks if mark.kind == "section"}
            )
        source = sources[0] if len(sources) == 1 else TokenizedText.join(sources)
        _ = source.boundaries  # computed now, in the tokenizing thread
        return source

    def _build(self, documents: list[Document], source: TokenizedText) -> list[Sequence[Chunk]]:
        if (type(self).split, type(self).draft) == (Chunker.split, Chunker.draft):
            return self._build_ranges(documents, source)
        drafts = self.draft(source, documents[0] if len(documents) == 1 else None)
        merged = [merge_touching(draft.spans) for draft in drafts]
        texts = self._texts(source.text, merged, drafts)
        # Tokens of each chunk's own text; a chunk of one span needs no second pass.
        starts, ends = (
            np.array([(spans[0].start, spans[0].end) for spans in merged], dtype=np.int64)
            .reshape(-1, 2)
            .T
        )
        counts = source.counts(starts, ends)
        again = [
            i for i, spans in enumerate(merged) if len(spans) > 1 or drafts[i].derived is not None
        ]
        if again:
            counts[again] = self.token_counter.count_many([texts[i] for i in again])
        built: list[list[Chunk]] = [[] for _ in documents]
        owners = np.searchsorted(source.parts[:, 1], starts, side="right").tolist()
        offsets, fingerprint = source.parts[:, 0].tolist(), self.fingerprint
        most = self.hard_maximum or inf
        rows = zip(owners, drafts, merged, texts, counts.tolist(), strict=True)
        for owner, draft, spans, text, count in rows:
            chunks, offset, name = built[owner], offsets[owner], documents[owner].id
            placed = (
                tuple([Span(span.start - offset, span.end - offset) for span in spans])
                if offset
                else spans
            )
            last = fingerprint, draft.segments, draft.derived is not None
            metadata = {**draft.metadata, **_OVER} if count > most else dict(draft.metadata)
            chunks.append(
                Chunk(name, len(chunks), placed, text, count, draft.context, metadata, *last)
            )
        return list(map(_with_pages, documents, built))

    def _build_ranges(
        self, documents: list[Document], source: TokenizedText
    ) -> list[Sequence[Chunk]]:
        """What `_build` gives, for chunks of one span each."""
        rows = np.array(self.ranges(source), dtype=np.int64).reshape(-1, 2)
        for start, end in rows[(rows[:, 0] < 0) | (rows[:, 0] >= rows[:, 1])].tolist():
            Span(start, end)  # raises
        sizes, most = source.counts(rows[:, 0], rows[:, 1]).tolist(), self.hard_maximum or inf
        edges = rows[:, 0].searchsorted(source.parts).tolist()
        built: list[Sequence[Chunk]] = []
        for document, (first, last), offset in zip(
            documents, edges, source.parts[:, 0].tolist(), strict=True
        ):
            places = (rows[first:last] - offset).tolist()
            chunks: Sequence[Chunk] = ContiguousChunks(
                document, places, sizes[first:last], self.fingerprint
            )
            if max(sizes[first:last], default=0) > most:
                chunks = [
                    replace(chunk, metadata=_OVER) if chunk.token_count > most else chunk
                    for chunk in chunks
                ]
            built.append(_with_pages(document, chunks))
        return built

    def _texts(self, text: str, merged: list[tuple[Span, ...]], drafts: list[Draft]) -> list[str]:
        pairs = zip(merged, drafts, strict=True)
        return [
            text_of_spans(text, spans) if draft.derived is None else draft.derived
            for spans, draft in pairs
        ]

    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        return tuple(field.name for field in fields(cls))

    def to_dict(self) -> dict[str, Any]:
        """Name and options as JSON values, for `get_chunker`. Raises `OptionError` for an option without a name."""
        return {"strategy": self.name, **plain_options(self)}

    @property
    def spec(self) -> str:
        """The string with every option, for `get_chunker`. Raises `OptionError` for an option that has no name.

        >>> get_chunker("fixed_token:size=50").spec
        'fixed_token:counter=cl100k_base,size=50,overlap=0,minimum=0'
        """
        return format_spec(self.name, plain_options(self))

    @property
    def label(self) -> str:
        """The shortest such string that says the size: `size`, and the options that differ from their defaults.

        >>> get_chunker("recursive:overlap=20").label
        'recursive:size=200,overlap=20'
        """
        changed = plain_options(self, changed=True)
        size = getattr(self, "size", None)
        if size is not None:
            changed = {
                name: changed.get(name, size)
                for name in self.option_names()
                if name in {*changed, "size"}
            }
        return format_spec(self.name, changed)

    @cached_property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that change when an option or a model changes."""
        models = self.models()
        options = {
            name: _identity(models.get(name, getattr(self, name))) for name in self.option_names()
        }
        return digest([self.name, options], 8)


chunkers: Registry[type[Chunker]] = Registry(
    "chunker",
    "chunkcore.chunkers",
    base=Chunker,
    attribute="name",
    places={
        "agentic": "chunkcore.chunkers.llm:Agentic",
        "auto": "chunkcore.chunkers.structure:Auto",
        "breakpoint": "chunkcore.chunkers.semantic:Breakpoint",
        "cluster_semantic": "chunkcore.chunkers.cluster_semantic:ClusterSemantic",
        "code": "chunkcore.chunkers.structure:Code",
        "contextual": "chunkcore.chunkers.writing:Contextual",
        "dbscan": "chunkcore.chunkers.clusters:Dbscan",
        "dual_semantic": "chunkcore.chunkers.semantic:DualSemantic",
        "fixed_sentences": "chunkcore.chunkers.fixed:FixedSentences",
        "fixed_token": "chunkcore.chunkers.fixed:FixedToken",
        "hierarchical": "chunkcore.chunkers.hierarchical:Hierarchical",
        "html": "chunkcore.chunkers.structure:Html",
        "kamradt": "chunkcore.chunkers.semantic:Kamradt",
        "kamradt_modified": "chunkcore.chunkers.semantic:KamradtModified",
        "llm_semantic": "chunkcore.chunkers.llm:LLMSemantic",
        "lumber": "chunkcore.chunkers.llm:Lumber",
        "markdown": "chunkcore.chunkers.structure:Markdown",
        "propositions": "chunkcore.chunkers.writing:Propositions",
        "recursive": "chunkcore.chunkers.recursive:Recursive",
        "sentence": "chunkcore.chunkers.sentence:Sentence",
        "single_linkage": "chunkcore.chunkers.clusters:SingleLinkage",
    },
    guesses={
        "semantic": "'cluster_semantic', or 'breakpoint', which is LangChain's and LlamaIndex' semantic splitter",
        "token": "'fixed_token'",
        "tokens": "'fixed_token'",
        "character": "'recursive:counter=characters'",
        "characters": "'recursive:counter=characters'",
        "recursive_character": "'recursive:counter=characters'",
        "recursivecharactertextsplitter": "'recursive:counter=characters'",
        "late": "the retriever 'late'",
    },
)


def get_chunker(
    spec: str | Mapping[str, Any] | Chunker, /, *unnamed: Any, **options: Any
) -> Chunker:
    r"""The chunker that a string or mapping describes; a `Chunker` is returned unchanged.

    `spec` is ``name:option=value,option=value`` (see `split_spec`), a mapping as from `Chunker.to_dict`, or a chunker.

    Raises `OptionError`: no such chunker or option, an option given twice, or a value out of range.

    >>> get_chunker('recursive:size=50,keep=end,separators=["\\n\\n",", "],counter=words').separators
    ('\n\n', ', ')
    """
    if unnamed:
        raise OptionError(
            f"options have names, as in get_chunker('recursive', size=200); got {echo(unnamed[0])}"
        )
    if isinstance(spec, Chunker):
        if options:
            raise OptionError(
                f"a chunker takes no more options, got {', '.join(options)}; give its name instead"
            )
        return spec
    if isinstance(spec, Mapping):
        settings = dict(spec)
        name = settings.pop("strategy", None)
    else:
        name, settings = split_spec(spec)
    twice = sorted(set(settings) & set(options))
    if twice:
        raise OptionError(
            f"the option {twice[0]} is given twice, in {echo(spec)} and beside it; keep one"
        )
    return chunkers.build(name, settings | options)  # type: ignore[no-any-return]


def sized_options(name: str, options: Mapping[str, Any], embedder: Embedder) -> dict[str, Any]:
    """Options with a default size that suits the model: 60 % of its token limit, if it has one.

    The size is in the model's own tokens with ``counter="embedder"``, unless a counter is given or the model has no
    tokenizer. Other counters count a token as one of the model's, as four characters, or as 3/4 of a word.

    >>> from types import SimpleNamespace
    >>> sized_options("recursive", {"counter": "characters"}, SimpleNamespace(max_tokens=256))
    {'counter': 'characters', 'size': 614}
    """
    sized = dict(options)
    cls = chunkers.find(name)
    defaults = {field.name: field.default for field in fields(cls)} if cls else {}
    if type(defaults.get("size")) is not int or "size" in sized or embedder.max_tokens is None:
        return sized
    counter = getattr(sized.get("counter"), "name", sized.get("counter"))
    size = int(_SHARE * embedder.max_tokens * _PER_TOKEN.get(str(counter), 1.0))
    # For short models: a chunk is at least one piece.
    piece = {**defaults, **sized}.get("piece_size")
    sized["size"] = max(1, size, piece if isinstance(piece, int) else 1)
    if counter is None and tokenizing(embedder) is not None:
        sized["counter"] = "embedder"
    return sized


def _with_pages(document: Document, chunks: Sequence[Chunk]) -> Sequence[Chunk]:
    if not any(mark.kind == "page" for mark in document.marks):
        return chunks
    numbers = pages_of_all(document.marks, (chunk.spans for chunk in chunks))
    return [
        replace(chunk, metadata={**chunk.metadata, "pages": list(pages)}) if pages else chunk
        for chunk, pages in zip(chunks, numbers, strict=True)
    ]


def _identity(value: Any) -> Any:
    mark = getattr(value, "fingerprint", None)
    return mark if isinstance(mark, str) else plain_option("", value)


def _characters(document: Document) -> int:
    return len(getattr(document, "text", ""))  # `_tokenize` refuses what is no document
