"""`Registry`: things by name, chunkcore's own and those of installed packages."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from chunkcore.errors import OptionError, echo, suggestion

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

T = TypeVar("T")
C = TypeVar("C")

_LISTED = 12  # names that an error lists


@dataclass(eq=False, repr=False)
class Registry(Generic[T]):
    """Things of one kind by name: chunkcore's own, and those of installed packages.

    A package adds a thing by an entry point of `group`. Nothing is imported before its name is requested.

    >>> fruits = Registry("fruit", "chunkcore.fruits", entries={"date": "datetime:date"})
    >>> @fruits.register("apple")
    ... class Apple:
    ...     '''Red, or green.'''
    >>> list(fruits), fruits["date"].__name__
    (['apple', 'date'], 'date')

    Attributes:
        noun: what errors call one thing, such as "chunker".
        group: the group of the entry points, such as "chunkcore.chunkers".
        base: the class that registered classes extend, for errors.
        attribute: the attribute of a class that is set to its name; "" for none.
        note: the end of the list of known names in an error.
        guesses: other libraries' names, and what an error suggests.
        entries: by name a thing, or "module:attribute", from which it is imported; tests may change them for a while.
    """

    noun: str
    group: str
    _: KW_ONLY
    base: type | None = None
    attribute: str = ""
    note: str = ""
    guesses: Mapping[str, str] = field(default_factory=dict)
    entries: dict[str, T | str] = field(default_factory=dict)

    def register(self, name: str) -> Callable[[C], C]:
        """Decorator: register a thing. Raises `OptionError` if another thing has the name."""

        def add(thing: C) -> C:
            entry: Any = self.entries.get(name, thing)
            taken = entry if isinstance(entry, str) else entry.__qualname__
            label = taken.rpartition(":")[2]
            if label != thing.__qualname__:  # type: ignore[attr-defined]
                raise OptionError(f"the {self.noun} name {echo(name)} is taken by {label}")
            if self.attribute:
                setattr(thing, self.attribute, name)
            self.entries[name] = thing  # type: ignore[assignment]
            return thing

        return add

    def get(self, name: str) -> T:
        """The thing of this name. Raises `OptionError` if the name is unknown or its package cannot be loaded."""
        entry = self.entries.get(str(name))
        if isinstance(entry, str):
            module, _, attribute = entry.partition(":")
            entry = self.entries[name] = getattr(import_module(module), attribute)
            if self.attribute:
                setattr(entry, self.attribute, name)
        return self._of_a_package(name) if entry is None else entry

    __getitem__ = get

    def find(self, name: object) -> T | None:
        """Like `get`, but None for an unknown name."""
        return self.get(str(name)) if name in self else None

    def _advice(self, name: object) -> str:
        """For an unknown name: the known ones, or how to list them, and the nearest."""
        names = list(self)
        if len(names) > _LISTED:
            kind = self.group.rpartition(".")[2]
            listed = f"chunkcore list {kind} shows all {len(names)}"
        else:
            listed = f"expected one of {', '.join(names)}{self.note}"
        if "," not in str(name):
            return listed + suggestion(name, names, self.guesses)
        if "=" in str(name):
            return f"{listed}; options follow a colon"
        return f"{listed}; several are given one by one"

    def _of_a_package(self, name: str) -> T:
        """The thing that an entry point leads to; it must have registered under the same name."""
        offers = [offer for offer in self._offers if offer.name == name]
        if not offers:
            raise OptionError(f"unknown {self.noun} {echo(name)}: {self._advice(name)}")
        packages = sorted(offer.dist.name if offer.dist else "(unknown)" for offer in offers)
        if len(packages) > 1:
            raise OptionError(
                f"the {self.noun} {echo(name)} is offered by several packages ({', '.join(packages)}): "
                "uninstall all but one"
            )
        try:
            thing = offers[0].load()
        except Exception as error:  # a foreign module may raise anything
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise OptionError(
                f"the {self.noun} {echo(name)} of the package {packages[0]} cannot be loaded from {offers[0].value} "
                f"({reason}): update {packages[0]} or uninstall it"
            ) from error
        if thing is not self.entries.get(name):
            what = f"a subclass of {self.base.__name__}" if self.base else f"the {self.noun}"
            raise OptionError(
                f"the entry point {name!r} of the group {self.group} leads to {thing!r}, which is no {self.noun} of "
                f'that name: decorate {what} with @{self.group.rpartition(".")[2]}.register("{name}")'
            )
        return thing  # type: ignore[return-value]

    @property
    def _offers(self) -> EntryPoints:
        return _entry_points(self.group, tuple(sys.path))

    @property
    def offered(self) -> list[str]:
        """Names from installed packages, sorted; nothing is imported."""
        return sorted(self._offers.names)

    def __iter__(self) -> Iterator[str]:
        """All names, sorted; nothing is imported."""
        return iter(sorted({*self.entries, *self._offers.names}))

    def __contains__(self, name: object) -> bool:
        return name in self.entries or name in self._offers.names

    def items(self) -> Iterator[tuple[str, T]]:
        """All names with their things. A package's thing that fails to load is skipped with a warning."""
        for name in self:
            try:
                yield name, self.get(name)
            except OptionError as error:
                warnings.warn(str(error), stacklevel=2)


@lru_cache(maxsize=64)
def _entry_points(group: str, path: tuple[str, ...]) -> EntryPoints:
    """Read once for each ``sys.path``: it opens a file of each installed package."""
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    return entry_points(group=group)
