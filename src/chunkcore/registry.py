"""`Registry`: things by name, chunkcore's own and those of installed packages."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import lru_cache
from importlib import import_module
from inspect import cleandoc
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from chunkcore.errors import OptionError, echo, suggestion
from chunkcore.options import Option, check_option_names, options_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
C = TypeVar("C")

_LISTED = 12  # names that an error lists


@dataclass(eq=False, repr=False)
class Registry(Generic[T]):
    """Things of one kind by name: chunkcore's own, and those of installed packages.

    A package adds a thing by an entry point of `group`, imported when the name is first requested.

    >>> fruits = Registry("fruit", "chunkcore.fruits")
    >>> @fruits.register("apple")
    ... class Apple:
    ...     '''Red, or green.'''
    >>> list(fruits), fruits["apple"].__name__, fruits.describe()[0].title
    (['apple'], 'Apple', 'Red, or green.')
    """

    noun: str  # what errors call one thing, such as "chunker"
    group: str  # of the entry points, such as "chunkcore.chunkers"
    _: KW_ONLY
    base: type | None = None  # the class that registered classes extend, for errors
    attribute: str = ""  # of a class, which `register` sets to the name; "" for none
    note: str = ""  # ends the list of known names in an error
    modules: tuple[
        str, ...
    ] = ()  # that register chunkcore's own things, imported when a name is unknown
    guesses: Mapping[str, str] = field(
        default_factory=dict
    )  # other libraries' names, and what an error suggests
    _known: dict[str, T] = field(default_factory=dict, init=False)
    _importing: Any = field(default_factory=RLock, init=False)

    def register(self, name: str) -> Callable[[C], C]:
        """Decorator: register a thing. Raises `OptionError` if another thing has the name."""

        def add(thing: C) -> C:
            taken = getattr(self._known.get(name), "__qualname__", None)
            if taken not in (None, getattr(thing, "__qualname__", None)):
                raise OptionError(f"the {self.noun} name {echo(name)} is taken by {taken}")
            if self.attribute:
                setattr(thing, self.attribute, name)
            self._known[name] = cast(T, thing)
            return thing

        return add

    def get(self, name: str) -> T:
        """The thing of this name. Raises `OptionError` if the name is unknown or its package cannot be loaded."""
        thing = self.find(name)
        if thing is None:
            names = list(self)
            listed = f"expected one of {', '.join(names)}{self.note}"
            if len(names) > _LISTED:
                kind = self.group.rpartition(".")[2]
                listed = f"chunkcore list {kind} shows all {len(names)}"
            near = suggestion(name, names, self.guesses)
            if "," in str(name):
                near = (
                    "; options follow a colon"
                    if "=" in str(name)
                    else "; several are given one by one"
                )
            raise OptionError(f"unknown {self.noun} {echo(name)}: {listed}{near}")
        return thing

    __getitem__ = get

    def find(self, name: object, *, packages: bool = True) -> T | None:
        """Like `get`, but None for an unknown name. Without `packages`, installed packages are not searched."""
        if not isinstance(name, str):
            return None
        if name not in self._known:
            for module in map(import_module, self.modules):
                # Most things have a class of their name; to import one is quicker than to import all.
                for attribute in dir(module):
                    if attribute.lower() == name.replace("_", ""):
                        getattr(module, attribute)
        if name not in self._known:
            self._import()
        if name not in self._known and packages:
            offers = self._offers().get(name, [])
            if offers and self._load(name, offers) is not self._known.get(name):
                what = f"a subclass of {self.base.__name__}" if self.base else f"the {self.noun}"
                raise OptionError(
                    f"the entry point {name!r} of the group {self.group} leads to {self._load(name, offers)!r}, which "
                    f"is no {self.noun} of that name: "
                    f'decorate {what} with @{self.group.rpartition(".")[2]}.register("{name}")'
                )
        return self._known.get(name)

    def _import(self) -> None:
        with self._importing:  # another thread waits until all are known
            modules, self.modules = self.modules, ()
            for module in map(import_module, modules):
                for name in dir(module):
                    getattr(module, name)  # a package may import its modules on first use

    def _load(self, name: str, offers: list[EntryPoint]) -> object:
        packages = sorted(offer.dist.name if offer.dist else "(unknown)" for offer in offers)
        if len(packages) > 1:
            raise OptionError(
                f"the {self.noun} {echo(name)} is offered by several packages ({', '.join(packages)}): "
                "uninstall all but one"
            )
        try:
            return offers[0].load()
        except Exception as error:  # a foreign module may raise anything
            raise OptionError(
                f"the {self.noun} {echo(name)} of the package {packages[0]} cannot be loaded from {offers[0].value} "
                f"({type(error).__name__}: {' '.join(str(error).split())}): update {packages[0]} or uninstall it"
            ) from error

    def _offers(self) -> dict[str, list[EntryPoint]]:
        offers: dict[str, list[EntryPoint]] = {}
        for offer in _entry_points(self.group, tuple(sys.path)):
            offers.setdefault(offer.name, []).append(offer)
        return offers

    @property
    def offered(self) -> list[str]:
        """Names from installed packages, sorted; nothing is imported."""
        return sorted(self._offers())

    def __iter__(self) -> Iterator[str]:
        """All names, sorted; no package's module is imported."""
        self._import()
        return iter(sorted({*self._known, *self._offers()}))

    def __contains__(self, name: object) -> bool:
        return name in list(self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def items(self) -> Iterator[tuple[str, T]]:
        """All names with their things. A package's thing that fails to load is skipped with a warning."""
        for name in self:
            try:
                yield name, self.get(name)
            except OptionError as error:
                warnings.warn(str(error), stacklevel=2)

    def describe(self) -> list[Description]:
        """A `Description` of each thing, by name."""
        descriptions = []
        for name, thing in self.items():
            title = cleandoc(getattr(thing, "__doc__", None) or "").split("\n", 1)[0]
            descriptions.append(
                Description(name, title, options_of(thing) if isinstance(thing, type) else ())
            )
        return descriptions

    def build(self, name: str, options: Mapping[str, Any]) -> Any:
        """Call the thing of this name with options. Raises `OptionError` for a wrong name, option or value."""
        thing: Any = self.get(name)
        check_option_names(
            f"the {self.noun} {name}", options, [field.name for field in fields(thing)]
        )
        return thing(**options)


@dataclass(frozen=True)
class Description:
    """A registered thing: its name, the first line of its docstring, and its options."""

    name: str
    title: str
    options: tuple[Option, ...]


@lru_cache(maxsize=64)
def _entry_points(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Read once for each ``sys.path``: it opens a file of each installed package."""
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    return tuple(entry_points(group=group))
