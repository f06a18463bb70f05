"""The user's own functions: with a name that tells them apart, and as a `TokenCounter`."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import numpy as np

from chunkcore.tokens import CharacterCounter, Offsets, TiktokenCounter, TokenCounter

__all__ = ["FunctionCounter", "Named", "counter_of"]

_ADDRESS = re.compile(r"0x[0-9a-f]+")


class Named:
    """A function as an option: its name tells it apart from others, though nothing can be built from it.

    The name changes with the function's code, and with what its object is set to.

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
    return {name: cell.cell_contents for name, cell in zip(names, function.__closure__ or (), strict=True)}


def _mark(function: Callable[..., Any]) -> str:
    """A function's name, with eight digits that change with its code, and with what its object is set to."""
    code = getattr(function, "__code__", None)
    owner = getattr(function, "__self__", None)
    settings = sorted(vars(owner).items()) if hasattr(owner, "__dict__") else ()
    seen = _ADDRESS.sub("", repr((code and (code.co_code, code.co_consts), type(owner), settings)))
    name = getattr(function, "__qualname__", type(function).__qualname__)
    digest = blake2b(seen.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{getattr(function, '__module__', '')}.{name}-{digest}"
