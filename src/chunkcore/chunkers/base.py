"""What every strategy shares: the `Chunker` protocol, the registry of names, and configuration.

A strategy is a frozen dataclass. Its fields are its options, and it implements one method: `_split`,
which answers with spans, or, as a `DraftingChunker`, `_draft`, which can tell more. Everything else is here.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from chunkcore.concurrency import ordered
from chunkcore.document import Chunk, Document, Span
from chunkcore.errors import DataError, OptionError
from chunkcore.registry import check_option
from chunkcore.spans import merge_touching
from chunkcore.tokens import TokenCounter, TokenizedText, get_counter

__all__ = [
    "Chunker",
    "Draft",
    "DraftingChunker",
    "build_chunker",
    "find_strategy",
    "plain_option",
    "register",
    "strategies",
]

C = TypeVar("C", bound="type[Chunker]")
_registry: dict[str, type[Chunker]] = {}

# Small documents are split together: enough of them that array operations cost little each, and no more.
_BATCH_CHARACTERS = 100_000
_BATCH_DOCUMENTS = 64
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Draft(NamedTuple):
    """What a strategy says of a chunk: where it is, and what else it knows.

    Attributes:
        spans: what the chunk stands for, in the order in which it reads.
        metadata: for the chunk's own.
        context: what a model or a heading path says about the chunk.
        derived: the chunk's text where a model wrote it; None where it is the source's, as nearly always.
        segments: the parts that are searched on their own, each as its spans.
    """

    spans: tuple[Span, ...]
    metadata: Mapping[str, Any] = _NOTHING
    context: str = ""
    derived: str | None = None
    segments: tuple[tuple[Span, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Chunker(ABC):
    """Cuts a text into spans of it.

    Attributes:
        counter: what sizes are measured in: a `TokenCounter` or the name of one.

    Subclasses are frozen dataclasses that `register` under a name and implement `_split`. They may also
    set `separator`, which joins the pieces of a chunk of several spans, and `tokens_only`, which says that
    `_split` is arithmetic on the text's tokens, waits for nothing, and splits each of the source's `parts`.
    """

    name: ClassVar[str] = ""
    separator: ClassVar[str] = "\n"
    tokens_only: ClassVar[bool] = False

    counter: TokenCounter | str = "cl100k_base"

    def __post_init__(self) -> None:
        for option in self.option_names():
            object.__setattr__(self, option, check_option(type(self), option, getattr(self, option)))
        object.__setattr__(self, "counter", get_counter(self.counter))
        self._validate()

    def _validate(self) -> None:
        """Raise `OptionError` where options are out of range or do not fit together."""

    @abstractmethod
    def _split(self, source: TokenizedText) -> list[tuple[Span, ...]]:
        """The chunks of a text, each as the spans that it stands for, in order."""

    def _draft(self, source: TokenizedText, document: Document | None) -> list[Draft]:
        """The same with what else is known of them; the document is None for a bare text, or for several at once."""
        return [Draft(spans) for spans in self._split(source)]

    @property
    def hard_maximum(self) -> int | None:
        """What no chunk's own text ever counts more than, in the counter's unit; None where it is not promised."""
        return None

    @property
    def token_counter(self) -> TokenCounter:
        """`counter`, as the object that it names."""
        return get_counter(self.counter)

    def spans(self, text: str) -> list[tuple[Span, ...]]:
        """The chunks of `text`, each as its spans (code points, half-open), in order.

        Raises:
            DataError: not a string.
        """
        return [_merge(spans) for spans in self._split(self._tokenize_text(text))]

    def split_text(self, text: str) -> list[str]:
        """The chunks' texts.

        Raises:
            DataError: not a string.
        """
        drafts = self._draft(self._tokenize_text(text), None)
        return [self._text(text, _merge(draft.spans)) if draft.derived is None else draft.derived for draft in drafts]

    def chunk(self, document: Document) -> list[Chunk]:
        """The chunks of a document.

        Raises:
            DataError: not a `Document`.
        """
        return self._build([document], self._tokenize([document]))[0]

    def chunk_many(self, documents: Iterable[Document], *, workers: int = 1) -> Iterator[Chunk]:
        """The chunks of many documents, lazily, in the documents' order: `chunk_each` without the lists."""
        for chunks in self.chunk_each(documents, workers=workers):
            yield from chunks

    def chunk_each(self, documents: Iterable[Document], *, workers: int = 1) -> Iterator[list[Chunk]]:
        """For each of many documents the list of its chunks, lazily, in the documents' order.

        A strategy of `tokens_only` splits small documents together, up to 100,000 characters at a time. With
        `workers` over 1 as many threads help it to tokenize, while this one splits: tokenizers release the
        interpreter's lock, and threads that also split would mostly hand it to each other. Other strategies,
        which wait for models, run in the threads, a document each. Memory holds a few documents, or
        hundreds of thousands of characters, a worker, never the whole stream.

        Raises:
            DataError: not a `Document`.
            OptionError: `workers` is under 1.
        """
        if workers < 1:
            raise OptionError(f"workers is at least 1, got {workers}")
        if workers == 1:
            if self.tokens_only:
                for batch in _batches(documents):
                    yield from self._build(batch, self._tokenize(batch))
            else:
                yield from map(self.chunk, documents)
            return
        with ThreadPoolExecutor(workers) as pool:
            ahead = 4 * workers
            if self.tokens_only:
                tokenized = ordered(pool, lambda batch: (batch, self._tokenize(batch)), _batches(documents), ahead)
                for batch, source in tokenized:
                    yield from self._build(batch, source)
            else:
                yield from ordered(pool, self.chunk, iter(documents), ahead)

    def _tokenize_text(self, text: str) -> TokenizedText:
        if not isinstance(text, str):
            raise DataError(f"a text is a string, got {type(text).__name__}; decode bytes first")
        return self.token_counter.tokenize(text)

    def _tokenize(self, documents: list[Document]) -> TokenizedText:
        """The documents' text with its tokens."""
        for document in documents:
            if not isinstance(document, Document):
                raise DataError(
                    f"expected a chunkcore Document, got {type(document).__name__}; wrap a text as Document(id, text)"
                )
        sources = [self.token_counter.tokenize(document.text) for document in documents]
        source = sources[0] if len(sources) == 1 else TokenizedText.join(sources)
        _ = source.boundaries  # now, in the thread that is here to tokenize
        return source

    def _build(self, documents: list[Document], source: TokenizedText) -> list[list[Chunk]]:
        """For each document, whose texts are the source's parts, its chunks."""
        drafts = self._draft(source, documents[0] if len(documents) == 1 else None)
        found = [_merge(draft.spans) for draft in drafts]
        texts = [
            self._text(source.text, spans) if draft.derived is None else draft.derived
            for spans, draft in zip(found, drafts, strict=True)
        ]
        counts = self._counts(source, found, drafts, texts)
        fingerprint = self.fingerprint
        if len(documents) == 1:
            name = documents[0].id
            return [
                [
                    Chunk(
                        name,
                        index,
                        spans,
                        text,
                        count,
                        context,
                        dict(metadata),
                        fingerprint,
                        segments,
                        derived is not None,
                    )
                    for index, (spans, text, count, (_, metadata, context, derived, segments)) in enumerate(
                        zip(found, texts, counts, drafts, strict=True)
                    )
                ]
            ]
        # Only strategies of `tokens_only` come by here, which know no more than spans.
        built: list[list[Chunk]] = [[] for _ in documents]
        owners = np.searchsorted(source.parts[:, 1], [spans[0].start for spans in found], side="right").tolist()
        offsets = source.parts[:, 0].tolist()
        for owner, spans, text, count in zip(owners, found, texts, counts, strict=True):
            chunks, offset = built[owner], offsets[owner]
            own = tuple([Span(span.start - offset, span.end - offset) for span in spans])
            chunks.append(Chunk(documents[owner].id, len(chunks), own, text, count, fingerprint=fingerprint))
        return built

    def _text(self, text: str, spans: tuple[Span, ...]) -> str:
        if len(spans) == 1:
            return text[spans[0].start : spans[0].end]
        return self.separator.join(span.slice(text) for span in spans)

    def _counts(
        self, source: TokenizedText, found: list[tuple[Span, ...]], drafts: list[Draft], texts: list[str]
    ) -> list[int]:
        """Tokens of each chunk's own text; a chunk of one span needs no second pass."""
        starts = np.array([spans[0].start for spans in found], dtype=np.int64)
        ends = np.array([spans[0].end for spans in found], dtype=np.int64)
        counts = source.counts(starts, ends)
        again = [i for i, spans in enumerate(found) if len(spans) > 1 or drafts[i].derived is not None]
        if again:
            counts[again] = self.token_counter.count_many([texts[i] for i in again])
        return counts.tolist()  # type: ignore[no-any-return]

    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        """The names of the strategy's options."""
        return tuple(field.name for field in fields(cls))

    def to_dict(self) -> dict[str, Any]:
        """Name and options as plain JSON values; `from_dict` is its inverse.

        Raises:
            OptionError: an option holds an object that has no name to be built from again.
        """
        options = {name: plain_option(name, getattr(self, name)) for name in self.option_names()}
        return {"strategy": self.name, **options}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Chunker:
        """The chunker that `to_dict` described.

        Raises:
            OptionError: an unknown strategy or option, or a value out of range.
        """
        options = dict(data)
        return build_chunker(options.pop("strategy", cls.name or None), options)

    @cached_property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that change when anything changes that changes the chunks."""
        options = {name: _identity(getattr(self, name)) for name in self.option_names()}
        data = json.dumps([self.name, options], sort_keys=True, ensure_ascii=True)
        return blake2b(data.encode("ascii"), digest_size=8).hexdigest()


@dataclass(frozen=True, kw_only=True)
class DraftingChunker(Chunker, ABC):
    """A strategy that knows more of its chunks than their spans: it implements `_draft`."""

    @abstractmethod
    def _draft(self, source: TokenizedText, document: Document | None) -> list[Draft]:
        """The chunks of a text, in order; the document is None for a bare text."""

    def _split(self, source: TokenizedText) -> list[tuple[Span, ...]]:
        return [draft.spans for draft in self._draft(source, None)]


def register(name: str) -> Callable[[C], C]:
    """Class decorator: make a strategy buildable by its name.

    Raises:
        OptionError: the name is taken by another class.
    """

    def add(cls: C) -> C:
        if name in _registry and _registry[name].__qualname__ != cls.__qualname__:
            raise OptionError(f"the strategy name {name!r} is taken by {_registry[name].__qualname__}")
        cls.name = name
        _registry[name] = cls
        return cls

    return add


def strategies() -> dict[str, type[Chunker]]:
    """Every registered strategy by name, in alphabetical order."""
    return dict(sorted(_registry.items()))


def find_strategy(name: str) -> type[Chunker] | None:
    """The strategy of a name; None where neither a class is registered under it nor an installed package offers one.

    Another package offers a strategy by an entry point of the group ``chunkcore.strategies``, which has the strategy's
    name and leads to its class. It is imported when it is first asked for by name, and never stands in for a
    strategy that is registered already.

    Raises:
        OptionError: a package offers it, and it cannot be loaded, or is no strategy of that name.

    >>> find_strategy("recursive").__name__
    'Recursive'
    """
    if name in _registry:
        return _registry[name]
    from chunkcore.registry import GROUP, load_plugin

    offered = load_plugin(name)
    if offered is not None and _registry.get(name) is not offered:
        raise OptionError(
            f"the entry point {name!r} of the group {GROUP} leads to {offered!r}, which is no strategy of that name: "
            f'decorate a subclass of Chunker with @register("{name}")'
        )
    return _registry.get(name)


def build_chunker(name: str | None, options: Mapping[str, Any]) -> Chunker:
    """A strategy by its name and options.

    Raises:
        OptionError: no such strategy or option, or a value out of range.
    """
    cls = find_strategy(name) if isinstance(name, str) else None
    if cls is None:
        from chunkcore.registry import plugin_names

        known = sorted({*_registry, *plugin_names()})
        raise OptionError(f"unknown strategy {name!r}: expected one of {', '.join(known)}")
    unknown = sorted(set(options) - set(cls.option_names()))
    if unknown:
        raise OptionError(
            f"{name} has no option {', '.join(map(repr, unknown))}: expected some of {', '.join(cls.option_names())}"
        )
    return cls(**options)


def _merge(spans: tuple[Span, ...]) -> tuple[Span, ...]:
    return spans if len(spans) == 1 else merge_touching(spans)


def plain_option(option: str, value: Any) -> Any:
    """An option's value as JSON knows it; counters and models become the names that build them."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return [plain_option(option, item) for item in value]
    if isinstance(value, Chunker):  # a strategy over another one
        from chunkcore.chunkers.spec import format_chunker

        return format_chunker(value)
    spec = getattr(value, "name", None)
    if isinstance(spec, str):
        return spec
    raise OptionError(
        f"the option {option} holds a {type(value).__name__}, which has no name to be built from again; "
        "give it a `name` or pass a name instead of the object"
    )


def _identity(value: Any) -> Any:
    """What tells an option's value apart from others, as JSON knows it."""
    mark = getattr(value, "fingerprint", None)
    return mark if isinstance(mark, str) else plain_option("", value)


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Neighbouring documents, as many as are not over a number of characters in all, or one."""
    batch: list[Document] = []
    size = 0
    for document in documents:
        length = len(getattr(document, "text", ""))
        if batch and (size + length > _BATCH_CHARACTERS or len(batch) == _BATCH_DOCUMENTS):
            yield batch
            batch, size = [], 0
        batch.append(document)
        size += length
    if batch:
        yield batch
