"""What an option may be, read from a strategy's type hints: checked at construction, told in the error."""

from __future__ import annotations

import types
from collections import defaultdict
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from numbers import Integral, Real
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from chunkcore.errors import OptionError

__all__ = ["GROUP", "check_option", "check_sizes", "described", "load_plugin", "plugin_names"]

_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a string", type(None): "null"}


class _WrongTypeError(Exception):
    pass


def check_option(cls: type, name: str, value: Any) -> Any:
    """The value as the option keeps it: lists become tuples, numpy's numbers plain ones.

    Raises:
        OptionError: the value is none of the types that the class states for the option. A bool is no
            number, and a string of digits is none either.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Strategy:
    ...     sizes: tuple[int, ...]
    >>> check_option(Strategy, "sizes", [1, 2])
    (1, 2)
    >>> check_option(Strategy, "sizes", ["1"])
    Traceback (most recent call last):
    chunkcore.errors.OptionError: Strategy: sizes is a list of: a whole number; got ['1']
    """
    hint = _hints(cls)[name]
    try:
        return _checked(value, hint)
    except _WrongTypeError:
        raise OptionError(f"{_called(cls)}: {name} is {described(hint)}; got {value!r}") from None


def check_sizes(size: int, minimum: int, maximum: int | None) -> None:
    """Hold a target, a soft minimum and a hard maximum (None: the target) to ``0 <= minimum <= size <= maximum``.

    Raises:
        OptionError: they are not in that order, or the size is under 1.
    """
    if size < 1:
        raise OptionError(f"size is at least 1, got {size}")
    if not 0 <= minimum <= size:
        raise OptionError(f"minimum is at least 0 and at most size ({size}), got {minimum}")
    if maximum is not None and maximum < size:
        raise OptionError(f"maximum is at least size ({size}), got {maximum}")


def _called(cls: type) -> str:
    """A strategy's name, a retriever's kind (its name is that of an instance, with its options), or the class's."""
    named = (getattr(cls, attribute, "") for attribute in ("name", "kind"))
    return next((name for name in named if isinstance(name, str) and name), cls.__name__)


@lru_cache(maxsize=256)
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _checked(value: Any, hint: Any) -> Any:
    origin = get_origin(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        return _checked_union(value, get_args(hint))
    if origin is Literal:
        if any(type(value) is type(choice) and value == choice for choice in get_args(hint)):
            return value
    elif origin is tuple:
        return _checked_tuple(value, get_args(hint))
    elif hint in (int, float, bool, str):
        return _checked_plain(value, hint)
    elif isinstance(value, origin or hint):
        return value
    raise _WrongTypeError


def _checked_union(value: Any, choices: tuple[Any, ...]) -> Any:
    for choice in choices:
        try:
            return _checked(value, choice)
        except _WrongTypeError:
            continue
    raise _WrongTypeError


def _checked_tuple(value: Any, items: tuple[Any, ...]) -> tuple[Any, ...]:
    if not isinstance(value, tuple | list):
        raise _WrongTypeError
    if len(items) == 2 and items[1] is ...:
        items = items[:1] * len(value)
    if len(items) != len(value):
        raise _WrongTypeError
    return tuple(_checked(item, hint) for item, hint in zip(value, items, strict=True))


def _checked_plain(value: Any, hint: type) -> Any:
    if isinstance(value, bool):
        fits = hint is bool
    elif isinstance(value, Integral):
        fits = hint in (int, float)
    elif isinstance(value, Real):
        fits = hint is float and value == value  # not NaN, which no range check would catch
    else:
        fits = isinstance(value, str) and hint is str
    if not fits:
        raise _WrongTypeError
    return hint(value)


def described(hint: Any) -> str:
    """A type as users are told it.

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
    return _NAMES.get(hint) or _with_article(getattr(origin or hint, "__name__", str(hint)))


def _with_article(name: str) -> str:
    if name == "Callable":
        return "a callable"
    return f"{'an' if name[0] in 'AEIO' or name == 'LLM' else 'a'} {name}"


GROUP = "chunkcore.strategies"


def plugin_names() -> list[str]:
    """The names under which installed packages offer strategies, in alphabetical order; nothing is imported.

    >>> "recursive" in plugin_names()  # ours need no entry point
    False
    """
    return sorted(_offers())


def load_plugin(name: str) -> Any:
    """What an installed package offers under a name; None where none does. Its module is imported now.

    Raises:
        OptionError: several packages offer the name, or the package's module cannot be imported.

    >>> load_plugin("recursive") is None
    True
    """
    offers = _offers().get(name, [])
    if not offers:
        return None
    if len(offers) > 1:
        packages = ", ".join(sorted(map(package_of, offers)))
        raise OptionError(f"the strategy {name!r} is offered by several packages ({packages}): uninstall all but one")
    try:
        return offers[0].load()
    except Exception as error:  # whatever a foreign module does when it is imported
        told = " ".join(str(error).split())
        package = package_of(offers[0])
        raise OptionError(
            f"the strategy {name!r} of the package {package} cannot be loaded from {offers[0].value} "
            f"({type(error).__name__}: {told}): update {package} or uninstall it"
        ) from error


def package_of(offer: EntryPoint) -> str:
    """The name of the package that makes an offer."""
    return offer.dist.name if offer.dist else "(unknown)"


def _offers() -> dict[str, list[EntryPoint]]:
    """Entry points by name. Of a package that stands on the path twice, `entry_points` gives the first alone."""
    found: dict[str, list[EntryPoint]] = defaultdict(list)
    for each in entry_points(group=GROUP):
        found[each.name].append(each)
    return found
