"""The user's own functions: with a name that tells them apart, and as a `TokenCounter`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from operator import itemgetter
from types import CellType, CodeType, ModuleType
from typing import Any

import numpy as np

from chunkcore.tokens import CharacterCounter, Offsets, TiktokenCounter, TokenCounter

__all__ = ["FunctionCounter", "Named", "counter_of"]

_ADDRESS = re.compile(r"0x[0-9a-f]+")
_EMPTY = CellType()
# Keys, and what watches the work or is made by it: none of it changes a text.
_IRRELEVANT = re.compile(r"api_?key|secret|passw|credential|bearer|callback|client|cache|^_?warm", re.IGNORECASE)


class Named:
    """A function as an option: its name tells it apart from others, though nothing can be built from it.

    The name changes with the function's code, with what it has taken from where it was defined, with what is bound by
    `functools.partial`, and with what its object is set to.

    >>> Named(len).name == Named(len).name, Named(lambda: 1).name == Named(lambda: 2).name
    (True, False)
    >>> Named(len)("four")
    4
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = self.fingerprint = f"function:{_mark(function)}"

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class FunctionCounter(TokenCounter):
    """Counts by a function of a text, one call a text.

    Where its tokens begin it can't know: they are spread evenly. Nothing that cuts by the places of tokens is to be
    given it.

    >>> FunctionCounter(lambda text: text.count(" ") + 1).count("one two")
    2
    """

    def __init__(self, function: Callable[[str], int]) -> None:
        self.function = function
        self.name = f"function:{_mark(function)}"

    def count(self, text: str) -> int:
        return int(self.function(text))

    def boundaries(self, text: str) -> Offsets:
        spread: Offsets = np.linspace(0, len(text), self.count(text), endpoint=False).astype(np.int64)
        return spread


def counter_of(length: Callable[[str], int]) -> TokenCounter:
    """The counter that gives the same numbers as a function, as a fast one where the function is known.

    >>> counter_of(len)
    CharacterCounter('characters')
    """
    if length is len:
        return CharacterCounter()
    owner: Any = getattr(length, "__self__", None)
    if isinstance(owner, TokenCounter) and getattr(length, "__func__", None) is type(owner).count:
        return owner
    inside = _closed_over(length)
    if getattr(length, "__qualname__", "").endswith("._tiktoken_encoder") and not inside.get("allowed_special"):
        return TiktokenCounter(inside["enc"].name)
    return FunctionCounter(length)


def _closed_over(function: Any) -> dict[str, Any]:
    """What a function has taken from where it was defined, by name."""
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    cells = getattr(function, "__closure__", None) or ()
    return {name: cell.cell_contents for name, cell in zip(names, cells, strict=True) if cell != _EMPTY}


def _mark(function: Callable[..., Any]) -> str:
    """A function's name, with eight digits that change with what `_seen` sees of it."""
    seen = _ADDRESS.sub("", repr(_seen(function)))
    name = getattr(function, "__qualname__", type(function).__qualname__)
    digest = blake2b(seen.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{getattr(function, '__module__', '')}.{name}-{digest}"


def _seen(function: Callable[..., Any], depth: int = 2) -> Any:
    """A function's code, and what it works with: its object, what it has taken from where it was defined or was bound.

    The settings of an object are seen, and functions among them; a function may hold itself, hence the `depth`.
    """
    if isinstance(function, partial):
        bound = (*function.args, *(value for _, value in sorted(function.keywords.items())))
        return _seen(function.func, depth), [_settings(value, depth) for value in bound], sorted(function.keywords)
    code = getattr(function, "__code__", None)
    taken = (*_closed_over(function).values(), *(getattr(function, "__defaults__", None) or ()))
    return (
        _settings(code, 0),
        [_settings(value, depth) for value in taken],
        _settings(getattr(function, "__self__", None), depth),
    )


def _settings(value: Any, depth: int) -> Any:
    if isinstance(value, set | frozenset):  # their order differs from process to process
        return sorted(map(repr, value))
    if isinstance(value, CodeType):  # with that of the functions inside it
        return value.co_code, [_settings(each, 0) for each in value.co_consts], value.co_names
    if depth and (isinstance(value, partial) or hasattr(value, "__code__")):
        return _seen(value, depth - 1)
    if not depth or isinstance(value, type | ModuleType) or not hasattr(value, "__dict__"):
        return value
    # Names with two underlines are a framework's own state, such as what a component of Haystack is connected to.
    named = (
        (name, _settings(each, depth - 1))
        for name, each in vars(value).items()
        if not (name.startswith("__") or _IRRELEVANT.search(name))
    )
    return type(value), sorted(named, key=itemgetter(0))
