"""`Chunker`, the base class of every chunker, the registry `chunkers`, and `get_chunker`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, cast

import numpy as np

from chunkcore import guesses
from chunkcore.columns import LazyItems
from chunkcore.concurrency import ordered
from chunkcore.errors import OptionError
from chunkcore.models.base import Embedder
from chunkcore.models.llm import check_llm, get_llm
from chunkcore.models.loading import embedder_name, get_counter, get_embedder, tokenizing
from chunkcore.options import (
    check_option_names,
    check_options,
    format_spec,
    plain_option,
    plain_options,
    split_spec,
)
from chunkcore.plain import digest
from chunkcore.reading.visible import (
    VisibleDocument,
    is_html,
    visible_document,
    without_pictures,
)
from chunkcore.registry import Registry
from chunkcore.spans import Numbers, Ranges, as_ranges, as_table, merge_touching, shifted
from chunkcore.text import (
    Chunk,
    Chunks,
    Document,
    Span,
    check_document,
    pages_of_all,
    text_of_spans,
)
from chunkcore.tokens import TokenCounter, TokenizedText

if TYPE_CHECKING:
    from chunkcore.models.llm import LLM

# Small documents are split together: fewer array operations.
_BATCH_CHARACTERS = 200_000
_BATCH_DOCUMENTS = 64
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_SHARE = 0.6  # of a model's limit; the chunking survey, "Embedding Model Token Limits": 50 to 75 %
_PER_TOKEN = {
    "characters": 4.0,
    "words": 0.75,
}  # the chunking survey, "Token Counting", has four characters


# Options that hold a model or its name: what checks a name, and what loads the model.
_MODELS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "embedder": (embedder_name, get_embedder),
    "llm": (check_llm, get_llm),
}


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

    def text(self, source: str) -> str:
        """The chunk's text, of a document's text."""
        return text_of_spans(source, self.spans) if self.derived is None else self.derived


Cuts = Ranges | Sequence[tuple[int, int]] | Sequence[Draft]


@dataclass(eq=False, repr=False)
class DocumentChunks(LazyItems[Chunk]):
    """The chunks of one document as columns; a `Chunk` is made when it is read.

    Attributes:
        document: of the chunks.
        ranges: start and end of each chunk's first span: int64, shape (chunks, 2).
        counts: tokens of each chunk's own text: int64, shape (chunks,).
        fingerprint: of the chunker.
        special: by place, the chunks that are more than one slice of the document.

    >>> tea = Document("tea.md", "Tea. Hot.")
    >>> chunks = DocumentChunks(tea, np.array([[0, 4], [5, 9]]), np.array([2, 2]))
    >>> chunks[1].text
    'Hot.'
    """

    document: Document
    ranges: Ranges
    counts: Numbers
    fingerprint: str = ""
    special: dict[int, Chunk] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ranges)

    def item(self, place: int) -> Chunk:
        start, end = self.ranges[place].tolist()
        return self._chunk(place, start, end, int(self.counts[place]))

    def __iter__(self) -> Iterator[Chunk]:
        return map(self._chunk, range(len(self)), *self.ranges.T.tolist(), self.counts.tolist())

    def _chunk(self, place: int, start: int, end: int, count: int) -> Chunk:
        if place in self.special:
            return self.special[place]
        text, spans = self.document.text[start:end], (Span(start, end),)
        return Chunk(self.document.id, place, spans, text, count, fingerprint=self.fingerprint)


def _in_source(
    chunks: DocumentChunks, seen: VisibleDocument, source: Document, counter: TokenCounter
) -> DocumentChunks:
    """The chunks of a visible document as chunks of its source, but those that hold a line end more than the last."""
    placed: list[Chunk] = []
    for chunk in chunks:
        spans = merge_touching(seen.places(chunk.spans))
        text = chunk.text if chunk.derived else text_of_spans(source.text, spans)
        if not spans or (placed and (placed[-1].spans, placed[-1].text) == (spans, text)):
            continue
        count = chunk.token_count if text == chunk.text else counter.count(text)
        changes: dict[str, Any] = {
            "index": len(placed),
            "spans": spans,
            "text": text,
            "token_count": count,
            "segments": tuple(map(seen.places, chunk.segments)),
        }
        placed.append(replace(chunk, **changes))
    ranges = as_ranges(chunk.spans[0] for chunk in placed)
    counts = np.array([chunk.token_count for chunk in placed], dtype=np.int64)
    return DocumentChunks(source, ranges, counts, chunks.fingerprint, dict(enumerate(placed)))


@dataclass(frozen=True, kw_only=True)
class Chunker(ABC):
    """Cuts a text into spans.

    Chunks of a document with page marks say their ``pages`` in their metadata. Pictures as base64 are in no chunk. A
    document that says or shows that it is HTML (`is_html` of `chunkcore.reading.visible`) is cut as a reader sees it: a
    chunk has a span for each piece between tags.

    A chunker is a frozen dataclass that extends this class and is registered under a name; its fields are its options.
    It implements `cut`. Set `bounded` if no chunk's own text is over `hard_maximum`, `tokens_only` if `cut` calls no
    model and cuts each of the source's `parts` on its own, and `cuts_source` if HTML is cut with its tags. `bounds` has
    the least value of options by name, or (least, most); `validate` may check more.

    Attributes:
        counter: measures sizes: a `TokenCounter` or its name.

    Raises `OptionError`: an option is out of range, at construction; `ModelError`: a model failed twice, when chunking;
    `MissingExtraError`: an optional package is not installed.
    """

    name: ClassVar[str] = ""
    tokens_only: ClassVar[bool] = False
    bounded: ClassVar[bool] = False

    cuts_source: ClassVar[bool] = False

    counter: TokenCounter | str = "cl100k_base"

    def __new__(cls, **options: object) -> Any:
        names = [field.name for field in fields(cls)]
        check_option_names(f"the chunker {cls.name or cls.__name__}", options, names)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        check_options(self)
        object.__setattr__(self, "counter", get_counter(self.counter))
        self.validate()
        for option, (check, _) in _MODELS.items():
            if hasattr(self, option):
                check(getattr(self, option))

    def validate(self) -> None:
        """Hook: raise `OptionError` for options out of range."""

    @abstractmethod
    def cut(self, source: TokenizedText) -> Cuts:
        """The chunks of a text in order, as starts and ends, or each as a `Draft`.

        `source.document` is the document of the text; None for a bare text, or several joined ones.
        """

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

    @property
    def token_counter(self) -> TokenCounter:
        return cast("TokenCounter", self.counter)  # since `__post_init__`

    def drafts(self, source: TokenizedText) -> list[Draft]:
        """What `cut` returns, each as a `Draft`; touching spans are merged."""
        cuts = self.cut(source)
        return _merged(cuts) or _drafts(as_table(cast("Ranges", cuts)))

    def spans(self, text: str) -> list[tuple[Span, ...]]:
        """The chunks of `text` in order, each as its spans (code points, half-open)."""
        return [chunk.spans for chunk in self.chunk(Document("text", text))]

    def split_text(self, text: str) -> list[str]:
        """The chunks' texts. Raises `DataError` if `text` is not a string."""
        return [chunk.text for chunk in self.chunk(Document("text", text))]

    def chunk(self, document: Document) -> Chunks:
        """The chunks of a document. Raises `DataError` for anything but a `Document`."""
        return Chunks(self._chunked(document))

    def chunk_many(self, documents: Iterable[Document], *, workers: int = 1) -> Iterator[Chunk]:
        """The chunks of many documents, lazily and in order; see `chunks_per_document`."""
        for chunks in self.chunks_per_document(documents, workers=workers):
            yield from chunks

    def chunks_per_document(
        self, documents: Iterable[Document], *, workers: int = 1
    ) -> Iterator[DocumentChunks]:
        """The chunks of each document, lazily and in order. Raises `DataError` for anything but a `Document`.

        With several workers, threads tokenize ahead for a `tokens_only` chunker, which cuts small documents together.
        Other chunkers chunk one document in each thread. Memory holds a few documents a worker.
        """
        with nullcontext() if workers == 1 else ThreadPoolExecutor(workers) as pool:
            done: Callable[..., Iterator[Any]] = (
                map if pool is None else partial(ordered, pool, ahead=4 * workers)
            )
            if self.tokens_only:
                for source in done(self._tokenize, _batches(map(self._shown, documents))):
                    yield from self._build(source)
            else:
                yield from done(self._chunked, iter(documents))

    def _shown(self, document: Document) -> Document:
        check_document(document, "what is chunked")
        if isinstance(document, VisibleDocument):
            return document
        if is_html(document) and not self.cuts_source:
            return visible_document(document)
        return without_pictures(document) if ";base64," in document.text else document

    def _chunked(self, document: Document) -> DocumentChunks:
        (chunks,) = self._build(self._tokenize([self._shown(document)]))
        return chunks

    def _tokenize(self, documents: Sequence[Document]) -> TokenizedText:
        source = self.token_counter.tokenize(*[document.text for document in documents])
        source.documents = documents
        _ = source.boundaries  # computed now, in the tokenizing thread
        return source

    def _build(self, source: TokenizedText) -> list[DocumentChunks]:
        cuts = self.cut(source)
        drafts: list[Draft] = []
        if not isinstance(cuts, np.ndarray):
            drafts = _merged(cuts)
        first_spans = [draft.spans[0] for draft in drafts]
        ranges = as_ranges(first_spans) if drafts else as_table(cast("Ranges", cuts))
        for ends in ranges[(ranges[:, 0] < 0) | (ranges[:, 0] >= ranges[:, 1])].tolist():
            Span(*ends)  # raises
        counts = source.counts(*ranges.T)
        texts = {
            place: draft.text(source.text)
            for place, draft in enumerate(drafts)
            if len(draft.spans) > 1 or draft.derived is not None
        }
        if texts:
            counts[list(texts)] = self.token_counter.count_many(list(texts.values()))
        is_over = counts > (self.hard_maximum or np.inf)
        edges = ranges[:, 0].searchsorted(source.parts).tolist()
        offsets = source.parts[:, 0].tolist()
        built = []
        for document, (first, last), offset in zip(source.documents, edges, offsets, strict=True):
            chunks = DocumentChunks(
                document, ranges[first:last] - offset, counts[first:last], self.fingerprint
            )
            over = set(is_over[first:last].nonzero()[0].tolist())
            if drafts or document.marks or over:
                local = drafts[first:last] or _drafts(ranges[first:last])
                _write(chunks, local, over, source.text, -offset)
            if isinstance(document, VisibleDocument):
                chunks = _in_source(chunks, document, document.source, self.token_counter)
            built.append(chunks)
        return built

    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        return tuple(field.name for field in fields(cls))

    def to_dict(self) -> dict[str, Any]:
        """Name and options as JSON values, for `get_chunker`. Raises `OptionError` for an option without a name."""
        return {"name": self.name, **plain_options(self)}

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
        options = plain_options(self, changed=True)
        size = getattr(self, "size", None)
        shown = {
            name: options.get(name, size)
            for name in self.option_names()
            if name in options or (name == "size" and size is not None)
        }
        return format_spec(self.name, shown)

    @cached_property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that change when an option or a model changes."""
        options = {}
        for option in fields(self):
            value = getattr(self, option.name)
            if option.name in _MODELS:
                _, load = _MODELS[option.name]
                value = load(value)
            mark = getattr(value, "fingerprint", None)
            if not isinstance(mark, str):
                mark = plain_option(option.name, value)
            options[option.name] = mark
        return digest([self.name, options], 8)


chunkers: Registry[type[Chunker]] = Registry(
    "chunker",
    "chunkcore.chunkers",
    base=Chunker,
    attribute="name",
    entries={
        "agentic": "chunkcore.chunkers.llm:Agentic",
        "auto": "chunkcore.chunkers.structure:Auto",
        "breakpoint": "chunkcore.chunkers.semantic:Breakpoint",
        "cluster_semantic": "chunkcore.chunkers.clusters:ClusterSemantic",
        "code": "chunkcore.chunkers.structure:Code",
        "contextual": "chunkcore.chunkers.llm:Contextual",
        "dbscan": "chunkcore.chunkers.clusters:Dbscan",
        "dual_semantic": "chunkcore.chunkers.semantic:DualSemantic",
        "fixed_sentences": "chunkcore.chunkers.sentence:FixedSentences",
        "fixed_token": "chunkcore.chunkers.sentence:FixedToken",
        "hierarchical": "chunkcore.chunkers.hierarchical:Hierarchical",
        "html": "chunkcore.chunkers.structure:Html",
        "kamradt": "chunkcore.chunkers.semantic:Kamradt",
        "kamradt_modified": "chunkcore.chunkers.semantic:KamradtModified",
        "llm_semantic": "chunkcore.chunkers.llm:LLMSemantic",
        "lumber": "chunkcore.chunkers.llm:Lumber",
        "markdown": "chunkcore.chunkers.structure:Markdown",
        "propositions": "chunkcore.chunkers.llm:Propositions",
        "recursive": "chunkcore.chunkers.recursive:Recursive",
        "sentence": "chunkcore.chunkers.sentence:Sentence",
        "single_linkage": "chunkcore.chunkers.clusters:SingleLinkage",
    },
    guesses=guesses.CHUNKERS,
)


# An option of a chunker: a plain value, separators, a model or its name, a counter, a splitter, another chunker.
Option: TypeAlias = (
    "str | float | Sequence[str] | Mapping[str, object] | Embedder | LLM | TokenCounter | Chunker "
    "| Callable[..., object] | None"
)


def get_chunker(spec: str | Mapping[str, object] | Chunker, /, **options: Option) -> Chunker:
    r"""The chunker that a string or mapping describes; a `Chunker` is returned unchanged.

    `spec` is ``name:option=value,option=value`` (see `split_spec`), a mapping as from `Chunker.to_dict`, or a chunker.

    Raises `OptionError`: no such chunker or option, or a value out of range.

    >>> get_chunker('recursive:size=50,keep=end,separators=["\\n\\n",", "],counter=words').separators
    ('\n\n', ', ')
    """
    if isinstance(spec, Chunker):
        if options:
            raise OptionError(
                f"a chunker takes no more options, got {', '.join(options)}; give its name instead"
            )
        return spec
    if isinstance(spec, Mapping):
        settings: dict[str, Any] = dict(spec)
        name = settings.pop("name", None)
    else:
        name, settings = split_spec(spec)
    kind: Any = chunkers.get(name)
    chunker: Chunker = kind(**settings, **options)
    return chunker


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
    if type(getattr(cls, "size", None)) is not int or "size" in sized or not embedder.max_tokens:
        return sized
    counter = getattr(sized.get("counter"), "name", sized.get("counter"))
    size = int(_SHARE * embedder.max_tokens * _PER_TOKEN.get(str(counter), 1.0))
    # For short models: a chunk is at least one piece.
    least = sized.get("piece_size") or getattr(cls, "piece_size", None) or 1
    if isinstance(least, int):  # the chunker refuses others
        size = max(size, least)
    sized["size"] = size
    if counter is None and tokenizing(embedder) is not None:
        sized["counter"] = "embedder"
    return sized


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Documents that are cut together, each time up to the one that makes them many or long."""
    batch: list[Document] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += len(document.text)
        if size >= _BATCH_CHARACTERS or len(batch) == _BATCH_DOCUMENTS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _drafts(ranges: Ranges) -> list[Draft]:
    return [Draft((Span(*ends),)) for ends in ranges.tolist()]


def _merged(cuts: Cuts) -> list[Draft]:
    """Cuts that are drafts, their touching spans merged; none of other cuts."""
    if not len(cuts) or not isinstance(cuts[0], Draft):
        return []
    drafts = cast("Sequence[Draft]", cuts)
    return [draft._replace(spans=merge_touching(draft.spans)) for draft in drafts]


def _write(
    chunks: DocumentChunks, drafts: Sequence[Draft], over: Collection[int], text: str, by: int
) -> None:
    """Make the chunks that are more than one slice of their document, which begins at -`by` in the drafts' text."""
    spans = [shifted(draft.spans, by) for draft in drafts]
    pages = pages_of_all(chunks.document.marks, spans)
    for place, (draft, numbers) in enumerate(zip(drafts, pages, strict=True)):
        metadata = dict(draft.metadata)
        if place in over:
            metadata["over_maximum"] = True
        if numbers:
            metadata["pages"] = list(numbers)
        if metadata or draft != Draft(draft.spans[:1]):
            chunks.special[place] = Chunk(
                chunks.document.id,
                place,
                spans[place],
                draft.text(text),
                int(chunks.counts[place]),
                draft.context,
                metadata,
                chunks.fingerprint,
                tuple([shifted(segment, by) for segment in draft.segments]),
                draft.derived is not None,
            )
