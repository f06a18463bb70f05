"""What every strategy shares: the `Chunker` protocol, the registry of names, and configuration.

A strategy is a frozen dataclass. Its fields are its options, and it implements one method, `_split`,
which answers with spans. Everything else is here.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from typing import Any, ClassVar, TypeVar

import numpy as np

from chunkcore.chunkers.options import check_option
from chunkcore.document import Chunk, Document, Span
from chunkcore.errors import DataError, OptionError
from chunkcore.spans import merge_touching
from chunkcore.tokens import TokenCounter, TokenizedText, get_counter

__all__ = ["Chunker", "build_chunker", "register", "strategies"]

C = TypeVar("C", bound="type[Chunker]")
R = TypeVar("R")
_registry: dict[str, type[Chunker]] = {}


@dataclass(frozen=True, kw_only=True)
class Chunker(ABC):
    """Cuts a text into spans of it.

    Attributes:
        counter: what sizes are measured in: a `TokenCounter` or the name of one.

    Subclasses are frozen dataclasses that `register` under a name and implement `_split`. They may also
    set `separator`, which joins the pieces of a chunk of several spans, and `tokens_only`, which says that
    `_split` is arithmetic on the text's tokens and waits for nothing.
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
        if not isinstance(text, str):
            raise DataError(f"a text is a string, got {type(text).__name__}; decode bytes first")
        return [_merge(spans) for spans in self._split(self.token_counter.tokenize(text))]

    def split_text(self, text: str) -> list[str]:
        """The chunks' texts."""
        return [self._text(text, spans) for spans in self.spans(text)]

    def chunk(self, document: Document) -> list[Chunk]:
        """The chunks of a document.

        Raises:
            DataError: not a `Document`.
        """
        return self._chunk(*self._read(document))

    def _read(self, document: Document) -> tuple[Document, TokenizedText]:
        if not isinstance(document, Document):
            raise DataError(
                f"expected a chunkcore Document, got {type(document).__name__}; wrap a text as Document(id, text)"
            )
        return document, self.token_counter.tokenize(document.text)

    def _chunk(self, document: Document, source: TokenizedText) -> list[Chunk]:
        found = [_merge(spans) for spans in self._split(source)]
        texts = [self._text(document.text, spans) for spans in found]
        counts = self._counts(source, found, texts)
        fingerprint = self.fingerprint
        return [
            Chunk(document.id, index, spans, text, count, fingerprint=fingerprint)
            for index, (spans, text, count) in enumerate(zip(found, texts, counts, strict=True))
        ]

    def chunk_many(self, documents: Iterable[Document], *, workers: int = 1) -> Iterator[Chunk]:
        """The chunks of many documents, lazily, in the documents' order.

        With `workers` over 1 as many threads help. Tokenizers release the interpreter's lock and the rest of
        a strategy of `tokens_only` does not, so there they tokenize, and this thread does the rest; threads
        that also did the rest would mostly hand the lock to each other. Other strategies, which wait for
        models, run in the threads whole. Memory holds a few documents a worker, never the whole stream.
        """
        if workers < 1:
            raise OptionError(f"workers is at least 1, got {workers}")
        if workers == 1:
            for document in documents:
                yield from self.chunk(document)
            return
        with ThreadPoolExecutor(workers) as pool:
            if self.tokens_only:
                for document, source in _ordered(pool, self._tokenized, iter(documents), ahead=4 * workers):
                    yield from self._chunk(document, source)
            else:
                for chunks in _ordered(pool, self.chunk, iter(documents), ahead=4 * workers):
                    yield from chunks

    def _tokenized(self, document: Document) -> tuple[Document, TokenizedText]:
        document, source = self._read(document)
        _ = source.boundaries
        return document, source

    def _text(self, text: str, spans: tuple[Span, ...]) -> str:
        if len(spans) == 1:
            return text[spans[0].start : spans[0].end]
        return self.separator.join(span.slice(text) for span in spans)

    def _counts(self, source: TokenizedText, found: list[tuple[Span, ...]], texts: list[str]) -> list[int]:
        """Tokens of each chunk's own text; a chunk of one span needs no second pass."""
        starts = np.array([spans[0].start for spans in found], dtype=np.int64)
        ends = np.array([spans[0].end for spans in found], dtype=np.int64)
        counts = source.counts(starts, ends)
        parts = [i for i, spans in enumerate(found) if len(spans) > 1]
        if parts:
            counts[parts] = self.token_counter.count_many([texts[i] for i in parts])
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
        options = {name: _plain(name, getattr(self, name)) for name in self.option_names()}
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


def build_chunker(name: str | None, options: Mapping[str, Any]) -> Chunker:
    """A strategy by its name and options.

    Raises:
        OptionError: no such strategy or option, or a value out of range.
    """
    if name not in _registry:
        raise OptionError(f"unknown strategy {name!r}: expected one of {', '.join(strategies())}")
    cls = _registry[name]
    unknown = sorted(set(options) - set(cls.option_names()))
    if unknown:
        raise OptionError(
            f"{name} has no option {', '.join(map(repr, unknown))}: expected some of {', '.join(cls.option_names())}"
        )
    return cls(**options)


def _merge(spans: tuple[Span, ...]) -> tuple[Span, ...]:
    return spans if len(spans) == 1 else merge_touching(spans)


def _plain(option: str, value: Any) -> Any:
    """An option's value as JSON knows it; counters and models become the names that build them."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return [_plain(option, item) for item in value]
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
    return mark if isinstance(mark, str) else _plain("", value)


def _ordered(
    pool: ThreadPoolExecutor,
    work: Callable[[Document], R],
    documents: Iterator[Document],
    ahead: int,
) -> Iterator[R]:
    """Results in the order of the documents, with at most `ahead` of them under way."""
    waiting: list[Future[R]] = [pool.submit(work, each) for each in islice(documents, ahead)]
    while waiting:
        first = waiting.pop(0)
        yield first.result()
        waiting.extend(pool.submit(work, each) for each in islice(documents, 1))
