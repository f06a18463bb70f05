"""How deep the brackets of source code nest, comments and strings apart: before a parser finds out at its own cost."""

from __future__ import annotations

import re

import numpy as np

__all__ = ["nests_deeper"]

_QUOTED = rb'"(?:\\.|[^"\\\n])*"?'
_QUOTED_ONCE = rb"'(?:\\.|[^'\\\n])*'?"
_CHARACTER = rb"'(?:\\.[^'\n]{0,8}|[^'\\\n])'"  # elsewhere the mark is of a lifetime, or parts digits
_COMMENTS = rb"/\*.*?\*/|//[^\n]*"
_C = re.compile(rb"|".join([_COMMENTS, _QUOTED, _CHARACTER]), re.DOTALL)
_GO = re.compile(rb"|".join([_COMMENTS, _QUOTED, _CHARACTER, rb"`[^`]*`"]), re.DOTALL)
_SCRIPT = re.compile(rb"|".join([_COMMENTS, _QUOTED, _QUOTED_ONCE, rb"`(?:\\.|[^`\\])*`"]), re.DOTALL)
_PYTHON = re.compile(rb"|".join([rb'""".*?"""', rb"'''.*?'''", rb"#[^\n]*", _QUOTED, _QUOTED_ONCE]), re.DOTALL)
_TEXTS = {"python": _PYTHON, "go": _GO, **dict.fromkeys(("javascript", "typescript", "tsx"), _SCRIPT)}
_PAIRS = (b"()", b"[]", b"{}")
_RAW = 3  # times as many, strings and all, are too many: what hides brackets from us need not hide them from a parser


def nests_deeper(data: bytes, language: str, most: int) -> bool:
    """Whether, somewhere, more brackets of one kind than `most` are open. O(n).

    What is a comment or a string is told as from a distance: a language's rarer strings are read as code.

    >>> nests_deeper(b"((((", "c", 3), nests_deeper(b"(()(((", "c", 4), nests_deeper(b"() '(' /* ( */", "c", 1)
    (True, False, False)
    """
    if all(data.count(pair[:1]) <= most for pair in _PAIRS):
        return False
    if any(_depth(np.frombuffer(data, dtype=np.uint8), *pair) > _RAW * most for pair in _PAIRS):
        return True
    codes = np.frombuffer(_code(data, _TEXTS.get(language, _C)), dtype=np.uint8)
    return any(_depth(codes, *pair) > most for pair in _PAIRS)


def _code(data: bytes, texts: re.Pattern[bytes]) -> bytes:
    """What is left without comments and strings."""
    if texts is _PYTHON:
        return texts.sub(b"", data)
    # A comment without an end is none, to a parser; and would be sought from each of its beginnings.
    last = data.rfind(b"*/") + 2 if b"*/" in data else 0
    return texts.sub(b"", data[:last]) + texts.sub(b"", data[last:].replace(b"/*", b""))


def _depth(codes: np.ndarray, opening: int, closing: int) -> int:
    """How many are open at once, at most; one that closes nothing is passed over."""
    steps = (codes == opening).astype(np.int32) - (codes == closing)
    reached = np.cumsum(steps, dtype=np.int32)
    return int((reached - np.minimum(np.minimum.accumulate(reached), 0)).max(initial=0))
