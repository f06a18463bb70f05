"""Tree-sitter's parsers: they take bytes and tell places in bytes, which no one but this file's users sees."""

from __future__ import annotations

import re
import time
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from chunkcore.boundaries.nesting import nests_deeper
from chunkcore.errors import MissingExtraError
from chunkcore.tokens import Offsets

if TYPE_CHECKING:
    from tree_sitter import Language, Tree

__all__ = ["Parsed", "load_grammar"]


# The parser reports every 100 steps, and reads a text bit by bit. Code takes it under a hundredth of a report a byte,
# code of another language about as much, and one reading. But where it finds little that its grammar knows, its
# search grows with the square of the text, and so does what it reads in search of the ends of comments without one.
# And to give up an expression that goes on and on ("f<f<f<") takes it time and memory that grow with the square of its
# length, in one step: five gigabytes for 12 kB. Brackets that nest without end are as bad: to free what it tried, it
# calls itself once a level, until the stack ends, and the process with it (at 10,000 levels where a thread has half a
# megabyte, as on macOS). So such texts are not given to it. There is a limit to its time, too: some forty times what
# code takes, and four times what the slowest grammar takes for code of another language.
_LEAST = 1000
_REPORTS_A_BYTE = 0.05
_READ = 8192  # bytes at once
_READINGS = 50
_SECONDS, _SECONDS_A_BYTE = 0.5, 1e-5  # of the processor
_OPERATORS = 500  # of one statement, of those that go on to the right
_LEVELS = 1000  # of brackets of one kind; of 53,000 files that we looked at one has over 300, and none so many
_BY_LINES = ("go", "python")  # whose statements end with their lines: their grammars give up expressions sooner
_STATEMENT_END, _OPERATOR = re.compile(rb"[;{}#]"), re.compile(rb"[<=?]+|->")


class Parsed:
    """A text, as a parser knows it.

    Args:
        text: the source.
        language: that it is of.
        grammar: of the language.

    Attributes:
        data: the text in UTF-8; an unpaired surrogate, which UTF-8 cannot say, is a question mark.
        tree: the parser's tree, with places in `data`; None where the parser was stopped, having done so many times
            the work that code takes that this is no code of its language, or was not asked for that reason.
    """

    def __init__(self, text: str, language: str, grammar: Language) -> None:
        self.data = text.encode("utf-8", "replace")
        self.tree = _parse(self.data, grammar) if _is_bounded(self.data, language) else None
        # As signed numbers the bytes that continue a character are the lowest.
        self._continue = (np.frombuffer(self.data, dtype=np.int8) < -64).nonzero()[0]

    def code_points(self, places: Offsets) -> Offsets:
        """Places in `data` as places in the text: of each, how many characters begin before it."""
        found: Offsets = places - self._continue.searchsorted(places)
        return found


def _is_bounded(data: bytes, language: str) -> bool:
    """Whether neither an expression nor brackets in brackets go on and on."""
    return (language in _BY_LINES or not _goes_on(data)) and not nests_deeper(data, language, _LEVELS)


def _goes_on(data: bytes) -> bool:
    """Whether an expression has more operators than any that a person or a program writes."""
    statements = (each for each in _STATEMENT_END.split(data) if len(each) > _OPERATORS)
    return any(len(_OPERATOR.findall(each)) > _OPERATORS for each in statements)


def _parse(data: bytes, grammar: Language) -> Tree | None:
    from tree_sitter import Parser

    work = _Work(data)
    try:
        tree = Parser(grammar).parse(work.read, encoding="utf8", progress_callback=work.is_too_much)
    except ValueError:  # which is how it says that it was stopped
        return None
    return None if work.reads <= 0 else tree


class _Work:
    """What a parser is allowed to do: it reads from here, and reports to here."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.reports = 0
        self.reads = _LEAST + _READINGS * len(data) // _READ
        self.begun = time.thread_time()

    def read(self, offset: int, _: object) -> bytes:
        self.reads -= 1
        return self.data[offset : offset + _READ] if self.reads > 0 else b""

    def is_too_much(self, offset: int, _: object) -> bool:
        """Whether it is more than code takes up to this byte."""
        self.reports += 1
        spent = time.thread_time() - self.begun
        allowed = self.reports < _LEAST + _REPORTS_A_BYTE * offset and spent < _SECONDS + _SECONDS_A_BYTE * offset
        return not allowed or self.reads <= 0


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
