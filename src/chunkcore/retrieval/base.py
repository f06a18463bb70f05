"""What a way of searching must be able to do, as two protocols; and the options and names of those that are here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

from chunkcore.chunkers.base import plain_option
from chunkcore.chunkers.options import check_option
from chunkcore.chunkers.spec import format_spec
from chunkcore.errors import OptionError
from chunkcore.models.base import Embedder
from chunkcore.retrieval.pool import Pool
from chunkcore.retrieval.ranked import Ranked

__all__ = ["Search", "SearchMethod", "Searcher", "build_search", "check_search", "register_search", "searches"]

S = TypeVar("S", bound="type[Search]")


@runtime_checkable
class Searcher(Protocol):
    """A pool of chunks, indexed."""

    def search(self, queries: Sequence[str], k: int) -> Ranked:
        """The best `k` chunks of each query, best first; fewer where no more are found.

        The best 5 are the first 5 of the best 10: how deep one looks changes nothing above.
        """
        ...


@runtime_checkable
class SearchMethod(Protocol):
    """A way of searching chunks: whoever has these is one.

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> @dataclass(frozen=True)
    ... class Longest:
    ...     name: str = "longest"
    ...     embeds: bool = False
    ...     def index(self, pool: Pool) -> "Order":
    ...         return Order(np.argsort([-len(text) for text in pool.texts], kind="stable"))
    >>> @dataclass(frozen=True)
    ... class Order:
    ...     order: np.ndarray
    ...     def search(self, queries, k):
    ...         return Ranked.of([(self.order[:k], -np.arange(float(min(k, len(self.order)))))] * len(queries))
    >>> isinstance(Longest(), SearchMethod)
    True
    """

    @property
    def name(self) -> str:
        """How tables name it."""
        ...

    @property
    def embeds(self) -> bool:
        """Whether it asks the pool for vectors: then its results are another embedder's with another embedder."""
        ...

    def index(self, pool: Pool) -> Searcher:
        """Make the chunks ready to be searched, once for all queries."""
        ...


@dataclass(frozen=True, kw_only=True)
class Search(ABC):
    """A `SearchMethod` with options, which a string can describe; see `parse_search`."""

    kind: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, check_option(type(self), field.name, getattr(self, field.name)))
        self._validate()

    def _validate(self) -> None:
        """Raise `OptionError` where an option is out of range."""

    @abstractmethod
    def index(self, pool: Pool) -> Searcher:
        """Make the chunks ready to be searched, once for all queries."""

    def check(self, embedder: Embedder) -> None:
        """Find out before the long work whether what it needs is there.

        Raises:
            OptionError: a model is not to be had, or can't do what is asked of it.
            MissingExtraError: a package is not installed.
        """

    @classmethod
    def read(cls, parts: Sequence[str], options: Mapping[str, Any]) -> Search:
        """The search that a string describes by parts without a name, and by options.

        Raises:
            OptionError: no such option, or a value that it cannot have.
        """
        known = tuple(field.name for field in fields(cls))
        if parts:
            raise OptionError(f"{cls.kind} takes options as option=value, got {parts[0]!r}")
        unknown = sorted(set(options) - set(known))
        if unknown:
            told = f"expected some of {', '.join(known)}" if known else "it has none"
            raise OptionError(f"the retriever {cls.kind} has no option {', '.join(map(repr, unknown))}: {told}")
        return cls(**options)

    @property
    def embeds(self) -> bool:
        """Whether it asks the pool for vectors."""
        return True

    @property
    def name(self) -> str:
        """The shortest string that describes it: only the options that differ from their defaults."""
        return format_spec(self.kind, self._told())

    def _told(self) -> dict[str, Any]:
        return {
            field.name: plain_option(field.name, getattr(self, field.name))
            for field in fields(self)
            if field.default is MISSING or getattr(self, field.name) != field.default
        }


_registry: dict[str, type[Search]] = {}


def register_search(kind: str) -> Callable[[S], S]:
    """Class decorator: make a search buildable by its name.

    Raises:
        OptionError: the name is taken by another class.
    """

    def add(cls: S) -> S:
        if kind in _registry and _registry[kind].__qualname__ != cls.__qualname__:
            raise OptionError(f"the retriever name {kind!r} is taken by {_registry[kind].__qualname__}")
        cls.kind = kind
        _registry[kind] = cls
        return cls

    return add


def searches() -> dict[str, type[Search]]:
    """Every registered search by name, in alphabetical order."""
    return dict(sorted(_registry.items()))


def check_search(method: SearchMethod, embedder: Embedder) -> None:
    """`Search.check`, of a method that has it."""
    if isinstance(method, Search):
        method.check(embedder)


def build_search(kind: str, parts: Sequence[str], options: Mapping[str, Any]) -> Search:
    """A search by its name and options.

    Raises:
        OptionError: no such search or option, or a value that it cannot have.
    """
    if kind not in _registry:
        raise OptionError(
            f"unknown retriever {kind!r}: expected one of {', '.join(searches())}, with or without +rerank after it"
        )
    return _registry[kind].read(parts, options)
