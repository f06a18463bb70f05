"""Tree-sitter's parsers: they take bytes and tell places in bytes, which no one but this file's users sees."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from chunkcore.errors import MissingExtraError
from chunkcore.tokens import Offsets

if TYPE_CHECKING:
    from tree_sitter import Language, Tree

__all__ = ["Parsed", "load_grammar"]


# The parser reports every 100 steps, and reads a text bit by bit. Code takes it under a hundredth of a report a byte,
# code of another language about as much, and one reading. But where it finds little that its grammar knows, its
# search grows with the square of the text, and so does what it reads in search of the ends of comments without one.
_LEAST = 1000
_REPORTS_A_BYTE = 0.05
_READ = 8192  # bytes at once
_READINGS = 50


class Parsed:
    """A text, as a parser knows it.

    Attributes:
        data: the text in UTF-8; an unpaired surrogate, which UTF-8 cannot say, is a question mark.
        tree: the parser's tree, with places in `data`; None where it was stopped, having done so many times the
            work that code takes that this is no code of its language. That depends on nothing but the text.
    """

    def __init__(self, text: str, grammar: Language) -> None:
        self.data = text.encode("utf-8", "replace")
        self.tree = _parse(self.data, grammar)
        # As signed numbers the bytes that continue a character are the lowest.
        self._continue = (np.frombuffer(self.data, dtype=np.int8) < -64).nonzero()[0]

    def code_points(self, places: Offsets) -> Offsets:
        """Places in `data` as places in the text: of each, how many characters begin before it."""
        found: Offsets = places - self._continue.searchsorted(places)
        return found


def _parse(data: bytes, grammar: Language) -> Tree | None:
    from tree_sitter import Parser

    work = _Work(data)
    try:
        tree = Parser(grammar).parse(work.read, encoding="utf8", progress_callback=work.is_too_much)
    except ValueError:  # which is how it says that it was stopped
        return None
    return None if work.is_too_much() else tree


class _Work:
    """What a parser is allowed to do: it reads from here, and reports to here."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.reports = _LEAST + int(_REPORTS_A_BYTE * len(data))
        self.reads = _LEAST + _READINGS * len(data) // _READ

    def read(self, offset: int, _: object) -> bytes:
        self.reads -= 1
        return self.data[offset : offset + _READ] if self.reads > 0 else b""

    def is_too_much(self, *_: object) -> bool:
        self.reports -= 1
        return self.reports <= 0 or self.reads <= 0


@lru_cache(maxsize=32)
def load_grammar(package: str, function: str = "language") -> Language:
    """The grammar of a package, loaded once.

    Raises:
        MissingExtraError: the package, or tree-sitter, is not installed.
    """
    try:
        from tree_sitter import Language

        module = import_module(package)
    except ImportError as error:
        name = package.replace("_", "-")
        raise MissingExtraError.of(f"{name} (with tree-sitter)", "structure", "read its language") from error
    return Language(getattr(module, function)())
