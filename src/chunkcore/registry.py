"""`Registry`: things by name. Also typed options of frozen dataclasses, and ``name:option=value`` strings."""

from __future__ import annotations

import json
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import lru_cache
from importlib import import_module
from inspect import cleandoc
from numbers import Integral, Real
from pathlib import Path
from threading import RLock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from chunkcore.errors import OptionError, echo

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
C = TypeVar("C")


_LISTED = 12  # names that an error lists

# What other libraries call an option: the first that a thing has is suggested.
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "chunk_size": ("size", "sentences"),
    "chunk_overlap": ("overlap",),
    "keep_separator": ("keep",),
    "is_separator_regex": ("regex",),
    "length_function": ("counter",),
    "strip_whitespace": ("strip",),
    "buffer_size": ("buffer",),
    "breakpoint_threshold_type": ("threshold",),
    "breakpoint_threshold_amount": ("amount",),
    "embeddings": ("embedder",),
    "embed_model": ("embedder",),
    "tokenizer": ("counter",),
    "separator": ("separators",),
    "min_chunk_size": ("minimum",),
    "max_chunk_size": ("maximum", "size"),
}


class Registry(Generic[T]):
    """Things of one kind by name: chunkcore's own, and those of installed packages.

    A package adds a thing by an entry point of `group`, whose value leads to the registered thing. Its module is
    imported when the name is first requested.

    Args:
        noun: what errors call one thing, such as "strategy".
        group: the group of the entry points, such as "chunkcore.strategies".
        base: the class that registered classes extend, for errors.
        attribute: the class attribute that `register` sets to the name; "" for none.
        note: ends the list of known names in an error.
        modules: modules that register chunkcore's own things, imported when a name is unknown.
        guesses: names of other libraries, and what an error suggests for them.

    >>> fruits = Registry("fruit", "chunkcore.fruits")
    >>> @fruits.register("apple")
    ... class Apple:
    ...     '''Red, or green.'''
    >>> list(fruits), fruits["apple"].__name__, fruits.describe()[0].title
    (['apple'], 'Apple', 'Red, or green.')
    """

    def __init__(
        self,
        noun: str,
        group: str,
        *,
        base: type | None = None,
        attribute: str = "",
        note: str = "",
        modules: tuple[str, ...] = (),
        guesses: Mapping[str, str] | None = None,
    ) -> None:
        self.noun = noun
        self.group = group
        self._base = base
        self._attribute = attribute
        self._note = note
        self._modules = modules
        self._guesses = guesses or {}
        self._known: dict[str, T] = {}
        self._importing = RLock()

    def register(self, name: str) -> Callable[[C], C]:
        """Decorator: register a thing. Raises `OptionError` if another thing has the name."""

        def add(thing: C) -> C:
            taken = getattr(self._known.get(name), "__qualname__", None)
            if taken not in (None, getattr(thing, "__qualname__", None)):
                raise OptionError(f"the {self.noun} name {echo(name)} is taken by {taken}")
            if self._attribute:
                setattr(thing, self._attribute, name)
            self._known[name] = cast(T, thing)
            return thing

        return add

    def get(self, name: str) -> T:
        """The thing of this name. Raises `OptionError` if the name is unknown or its package cannot be loaded."""
        found = self.find(name)
        if found is None:
            known = list(self)
            listed = f"expected one of {', '.join(known)}{self._note}"
            if len(known) > _LISTED:
                listed = f"chunkcore list {self.group.rpartition('.')[2]} shows all {len(known)}"
            raise OptionError(f"unknown {self.noun} {echo(name)}: {listed}{suggestion(name, known, self._guesses)}")
        return found

    __getitem__ = get

    def find(self, name: object, *, packages: bool = True) -> T | None:
        """Like `get`, but None for an unknown name. Without `packages`, installed packages are not searched."""
        if not isinstance(name, str):
            return None
        if name not in self._known and name.isidentifier() and name[0] != "_":
            for each in self._modules:
                with suppress(ModuleNotFoundError):  # most things have a module of their name
                    import_module(f"{each}.{name}")
        if name not in self._known:
            self._import()
        if name not in self._known and packages:
            offers = self._offers().get(name, [])
            if offers and self._load(name, offers) is not self._known.get(name):
                what = f"a subclass of {self._base.__name__}" if self._base else f"the {self.noun}"
                raise OptionError(
                    f"the entry point {name!r} of the group {self.group} leads to {self._load(name, offers)!r}, which "
                    f"is no {self.noun} of that name: "
                    f'decorate {what} with @{self.group.rpartition(".")[2]}.register("{name}")'
                )
        return self._known.get(name)

    def _import(self) -> None:
        with self._importing:  # another thread waits until all are known
            modules, self._modules = self._modules, ()
            for each in modules:
                module = import_module(each)
                for name in dir(module):
                    getattr(module, name)  # a package may import its modules on first use

    def _load(self, name: str, offers: list[EntryPoint]) -> object:
        offer, *others = offers
        if others:
            packages = ", ".join(sorted(map(_package, offers)))
            raise OptionError(
                f"the {self.noun} {echo(name)} is offered by several packages ({packages}): uninstall all but one"
            )
        try:
            return offer.load()
        except Exception as error:  # a foreign module may raise anything
            package, told = _package(offer), " ".join(str(error).split())
            raise OptionError(
                f"the {self.noun} {echo(name)} of the package {package} cannot be loaded from {offer.value} "
                f"({type(error).__name__}: {told}): update {package} or uninstall it"
            ) from error

    def _offers(self) -> dict[str, list[EntryPoint]]:
        found: dict[str, list[EntryPoint]] = {}
        for each in _entry_points(self.group, tuple(map(_changed, sys.path))):
            found.setdefault(each.name, []).append(each)
        return found

    @property
    def offered(self) -> list[str]:
        """Names from installed packages, sorted; nothing is imported."""
        return sorted(self._offers())

    def __iter__(self) -> Iterator[str]:
        """All names, sorted; no package's module is imported."""
        self._import()
        return iter(sorted({*self._known, *self._offers()}))

    def __contains__(self, name: object) -> bool:
        return any(name == each for each in self)

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
        return [describe(name, thing) for name, thing in self.items()]

    def build(self, name: str, options: Mapping[str, Any]) -> Any:
        """Call the thing of this name with options. Raises `OptionError` for a wrong name, option or value."""
        thing = self.get(name)
        check_option_names(f"the {self.noun} {name}", options, [each.name for each in fields(cast(Any, thing))])
        return cast(Callable[..., Any], thing)(**options)


def _changed(folder: str) -> tuple[str, int]:
    """The folder, and when something was last installed in it (0: it is not there)."""
    try:
        return folder, Path(folder).stat().st_mtime_ns
    except OSError:
        return folder, 0


@lru_cache(maxsize=64)
def _entry_points(group: str, folders: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    """Read once: it opens a file of each installed package. The first of a package that is on the path twice."""
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    return tuple(entry_points(group=group))


def _package(offer: EntryPoint) -> str:
    return offer.dist.name if offer.dist else "(unknown)"


def suggestion(wrong: object, known: Iterable[str], guesses: Mapping[str, str] = MappingProxyType({})) -> str:
    """The end of an error message: what `guesses` has for it or each of a list, the nearest known name, or "".

    >>> suggestion("recursiv", ["markdown", "recursive"])
    "; did you mean 'recursive'?"
    """
    from difflib import get_close_matches

    by_lower_case = {name.casefold(): name for name in known}
    found = []
    for each in wrong if isinstance(wrong, list) else [wrong]:
        asked = str(each)[:100].casefold()
        near = get_close_matches(asked, list(by_lower_case), n=1)
        found += [guesses[asked]] if asked in guesses else [repr(by_lower_case[name]) for name in near]
    return f"; did you mean {' and '.join(dict.fromkeys(found))}?" if found else ""


@dataclass(frozen=True)
class Option:
    """An option of a dataclass, for users.

    Attributes:
        kind: the accepted values, in words.
        default: dataclasses.MISSING if the option is required.
        meaning: the entry under "Attributes:" in the class or its nearest base; "" without one.
    """

    name: str
    kind: str
    default: Any
    meaning: str

    @property
    def shown_default(self) -> str:
        """The default as Python source; a counter or a model by its name."""
        return "(must be given)" if self.default is MISSING else repr(getattr(self.default, "name", self.default))


@dataclass(frozen=True)
class Description:
    """A registered thing: its name, the first line of its docstring, and its options."""

    name: str
    title: str
    options: tuple[Option, ...]


def describe(name: str, thing: object) -> Description:
    """The `Description` of a thing."""
    title = cleandoc(getattr(thing, "__doc__", None) or "").split("\n", 1)[0]
    return Description(name, title, options_of(thing) if isinstance(thing, type) else ())


def options_of(cls: type) -> tuple[Option, ...]:
    """The options of a dataclass in field order; none for other classes."""
    if not is_dataclass(cls):
        return ()
    return tuple(
        Option(each.name, described(_hints(cls)[each.name]), default_of(each), _meaning(cls, each.name))
        for each in fields(cls)
    )


def default_of(field: Any) -> Any:
    """The default of a dataclass field, or MISSING."""
    return field.default if field.default_factory is MISSING else field.default_factory()


_SEE = re.compile(r"see `(\w+)`(?:[;:,.] *(.*))?", re.DOTALL)


def _meaning(cls: type, option: str) -> str:
    """The option's entry in the nearest documenting class; "see `Base`" becomes the base's entry."""
    for each in cls.__mro__:
        told = _attributes(each).get(option)
        if told is None:
            continue
        see = _SEE.fullmatch(told)
        base = next((base for base in cls.__mro__ if see and base.__name__ == see[1] and base is not each), None)
        if see is None or base is None:
            return told
        more = see[2] or ""
        return f"{_meaning(base, option)} {more[:1].upper()}{more[1:]}".strip()
    return ""


@lru_cache(maxsize=256)
def _attributes(cls: type) -> dict[str, str]:
    for block in re.split(r"\n{2,}", cleandoc(cls.__dict__.get("__doc__") or "")):
        head, _, rest = block.partition("\n")
        if head == "Attributes:":
            found = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", rest, flags=re.MULTILINE)
            return {name: " ".join(told.split()) for name, told in found}
    return {}


def check_option_names(owner: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise `OptionError` for unknown options.

    >>> check_option_names("the strategy blank", ["sise"], ["size"])
    Traceback (most recent call last):
    chunkcore.errors.OptionError: the strategy blank has no option 'sise': expected some of size; did you mean 'size'?
    """
    known = list(known)
    unknown = sorted(set(given) - set(known))
    if unknown:
        guesses = {name: repr(each) for name, own in _OPTIONS.items() for each in own[::-1] if each in known}
        told = (
            f"expected some of {', '.join(known)}{suggestion(unknown[:3], known, guesses)}" if known else "it has none"
        )
        raise OptionError(f"{owner} has no option {', '.join(map(echo, unknown[:3]))}: {told}")


# Of the numbers in options. Larger ones overflow in arrays of 64 bits.
LARGEST = 2**63 - 1

_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a string", type(None): "null"}


class _WrongTypeError(Exception):
    pass


def check_options(thing: Any) -> None:
    """Check every option of a frozen dataclass instance and store what `check_option` returns."""
    for field in fields(thing):
        object.__setattr__(thing, field.name, check_option(type(thing), field.name, getattr(thing, field.name)))


def check_option(cls: type, name: str, value: Any) -> Any:
    """The value as stored: a list becomes a tuple, numpy numbers become Python's. Raises `OptionError` for another
    type.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Strategy:
    ...     sizes: tuple[int, ...]
    >>> check_option(Strategy, "sizes", [1, 2])
    (1, 2)
    """
    hint = _hints(cls)[name]
    try:
        return _checked(value, hint)
    except _WrongTypeError:
        limit = f" of at most {LARGEST}" if _is_large(value) else ""
        # A strategy's name, or a retriever's kind: its name is an instance property.
        named = (getattr(cls, attribute, "") for attribute in ("name", "kind"))
        called = next((each for each in named if isinstance(each, str) and each), cls.__name__)
        raise OptionError(f"{called}: {name} is {described(hint)}{limit}; got {echo(value)}") from None


def _is_large(value: Any) -> bool:
    return isinstance(value, Real) and abs(cast(Any, value)) > LARGEST


def check_number(name: str, value: Any, least: float = 0, most: float = LARGEST, *, whole: bool = True) -> None:
    """Raise `OptionError` for anything but a number from `least` to `most`; `whole`: an integer.

    >>> check_number("k", 0, least=1)
    Traceback (most recent call last):
    chunkcore.errors.OptionError: k is at least 1, got 0
    """
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or value != value:
        raise OptionError(f"{name} is a {'whole ' * whole}number, got {echo(value)}")
    if not least <= value <= most:
        bound = f"least {least:,}" if value < least else f"most {most:,}"
        raise OptionError(f"{name} is at {bound}, got {echo(value)}")


def check_ranges(thing: Any, **ranges: float | str | tuple[float | str, float | str]) -> None:
    """Raise `OptionError` for options outside their bounds: a minimum, or (minimum, maximum). None passes, NaN fails.

    A bound is a number or the name of an option that holds it.

    >>> from types import SimpleNamespace
    >>> check_ranges(SimpleNamespace(size=5, minimum=6), size=1, minimum=(0, "size"))
    Traceback (most recent call last):
    chunkcore.errors.OptionError: minimum is at least 0 and at most size (5), got 6
    """
    cls: Any = type(thing)
    for name, bounds in ranges.items():
        value = getattr(thing, name)
        limits = bounds if isinstance(bounds, tuple) else (bounds,)
        numbers = [getattr(thing, each) if isinstance(each, str) else each for each in limits]
        if value is None or numbers[0] <= value <= [*numbers, float("inf")][1]:
            continue
        told = [
            f"{each} ({n})" if isinstance(each, str) else f"{each:.15g}"
            for each, n in zip(limits, numbers, strict=True)
        ]
        if len(told) > 1:
            told[0] += f" and at most {told[1]}"
        elif type(None) in get_args(_hints(cls).get(name)):
            told[0] += ", or null for none"
        raise OptionError(f"{name} is at least {told[0]}, got {value}")


@lru_cache(maxsize=256)
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _checked(value: Any, hint: Any) -> Any:
    origin = get_origin(hint)
    if hint is Any:
        return value
    items = get_args(hint)
    if origin in (Union, types.UnionType):
        for choice in items:
            with suppress(_WrongTypeError):
                return _checked(value, choice)
    elif origin is Literal:
        if any(type(value) is type(choice) and value == choice for choice in items):
            return value
    elif origin is tuple:
        if isinstance(value, tuple | list):
            hints = items[:1] * len(value) if items[1:] == (...,) else items
            if len(hints) == len(value):
                return tuple(map(_checked, value, hints))
    elif hint in (int, float):
        kind = Integral if hint is int else Real
        # NaN is refused here: no range check would catch it.
        if isinstance(value, kind) and not isinstance(value, bool) and not _is_large(value) and value == value:
            return hint(value)
    elif isinstance(value, origin or hint):
        return hint(value) if hint is str else value
    raise _WrongTypeError


def described(hint: Any) -> str:
    """A type in words.

    >>> described(tuple[str, ...]), described(int | None)
    ('a list of: a string', 'a whole number or null')
    """
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(described, parts)))
    if origin is Literal:
        return f"one of {', '.join(map(repr, parts))}"
    if origin is tuple:
        return f"a list of: {', '.join(described(part) for part in parts if part is not ...)}"
    name = getattr(origin or hint, "__name__", str(hint))
    article = "an" if name[0] in "AEIO" or name == "LLM" else "a"
    return _NAMES.get(hint) or ("a callable" if name == "Callable" else f"{article} {name}")


# Written without quotes: no separator, quote, or white space at the ends.
_BARE = re.compile(r"[^\s,\"'\[\]{}=]([^,\"'\[\]{}]*[^\s,\"'\[\]{}])?")


def split_spec(spec: str, noun: str = "strategy") -> tuple[str, dict[str, Any]]:
    """The name and options in ``name:option=value,...``; neither is looked up. Raises `OptionError` if malformed.

    A value is JSON if it parses as JSON, else a plain string. Commas inside brackets and double quotes belong to it.

    >>> split_spec("recursive:size=50,keep=end")
    ('recursive', {'size': 50, 'keep': 'end'})
    """
    if not isinstance(spec, str):
        raise OptionError(f"a {noun} is given as name:option=value,...; got {echo(spec)}")
    name, _, rest = spec.partition(":")
    return name.strip(), split_options(rest, spec, noun)


def split_options(
    text: str,
    spec: str,
    noun: str,
    unnamed: list[str] | None = None,
    read: Callable[[str, str], Any] | None = None,
) -> dict[str, Any]:
    """The options in ``option=value,option=value``.

    `spec` and `noun` appear in errors. `unnamed` collects parts without "="; None makes them errors. `read` makes a
    value of its text and its option's name; None: `read_value`.
    """
    options: dict[str, Any] = {}
    for part in map(str.strip, split_parts(text, spec, noun)):
        option, equals, value = part.partition("=")
        option = option.strip()
        if unnamed is not None and part.startswith('"'):
            unnamed.append(str(read_value(part, noun)))
        elif unnamed is not None and not equals:
            unnamed.append(part)
        elif not equals or not option:
            raise OptionError(f"expected option=value, got {echo(part)} in the {noun} {echo(spec)}")
        elif option in options:
            raise OptionError(f"the option {option} is given twice in the {noun} {echo(spec)}; keep one")
        else:
            options[option] = (read or read_value)(value.strip(), option)
    return options


def plain_options(thing: Any, *, changed: bool = False) -> dict[str, Any]:
    """The options of a dataclass instance as JSON values; with `changed`, only non-default ones."""
    found = {}
    for field in fields(thing):
        value, default = getattr(thing, field.name), default_of(field)
        plain = plain_option(field.name, value)
        if changed:
            if default is not MISSING and plain == plain_option(field.name, default):
                continue
            plain = getattr(value, "label", plain)  # a strategy over another one
        found[field.name] = plain
    return found


def plain_option(option: str, value: Any) -> Any:
    """An option's value as JSON. A strategy, counter or model becomes its string."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return [plain_option(option, item) for item in value]
    for attribute in ("spec", "name"):
        if isinstance(name := getattr(value, attribute, None), str):
            return name
    raise OptionError(
        f"the option {option} holds a {type(value).__name__}, which has no name to be built from again; "
        "give it a `name` or pass a name instead of the object"
    )


def format_spec(name: str, options: Mapping[str, Any]) -> str:
    r"""The inverse of `split_spec`, for JSON values.

    >>> format_spec("recursive", {"size": 200, "separators": ["\n", " "], "counter": "words"})
    'recursive:size=200,separators=["\\n", " "],counter=words'
    """
    settings = ",".join(f"{option}={_write(value)}" for option, value in options.items())
    return f"{name}:{settings}" if settings else name


def split_parts(text: str, spec: str, kind: str) -> list[str]:
    """Split `text` at commas outside brackets and double quotes. Raises `OptionError` if one is not closed."""
    parts, start, depth, quoted, place = [], 0, 0, False, 0
    while place < len(text):
        character = text[place]
        if quoted:
            place += character == "\\"
            quoted = character != '"'
        elif character == '"':
            quoted = True
        elif character in "[{":
            depth += 1
        elif character in "]}":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
        place += 1
    if quoted or depth:
        raise OptionError(f"a {'quote' if quoted else 'bracket'} is not closed in the {kind} {echo(spec)}")
    parts.append(text[start:])
    return parts if text.strip() else []


def read_value(value: str, option: str) -> Any:
    """The value as JSON, else a plain string. Raises `OptionError` for malformed JSON after a quote or bracket."""
    try:
        return json.loads(value, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        if value[:1] in ('"', "[", "{"):
            raise OptionError(f"the option {option} is no JSON: {echo(value)} ({error}); correct its quotes") from error
        return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number here")  # NaN, Infinity: no option accepts them


def _write(value: Any) -> str:
    if isinstance(value, str) and _BARE.fullmatch(value):
        with suppress(OptionError):
            if isinstance(read_value(value, ""), str):
                return value
    return json.dumps(value)
