r"""Regular expressions that a user wrote, over text that a stranger wrote: what Python's `re` finds, in bounded time.

`re` backtracks, and cannot be stopped: a pattern such as ``(\w+\s?)+:`` takes longer than anybody waits on a text
made for it. An engine of linear time (RE2) knows no look-behind, with which most sentence patterns begin. So a pattern
that can repeat something runs on the package `regex`, which backtracks too, and can be stopped. It is told what `re`
means by words and white space, which it takes in another way.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import regex  # type: ignore[import-untyped]

from chunkcore.errors import DataError

__all__ = ["Find", "finder"]

Find = Callable[[str], Sequence["re.Match[str]"]]

_SECONDS = 5.0  # of the processor, whatever the text
_SECONDS_A_CHARACTER = 1e-5  # some hundred times what a usual pattern takes
_CHOICES = 8  # alternatives and optional parts of a pattern that is bounded by its own length

_ESCAPE = r"\\N\{[^}]*\}|\\."
_IN_SET = re.compile(rf"{_ESCAPE}|.", re.DOTALL)
_PARTS = (
    rf"{_ESCAPE}|\(\?#[^)]*\)"
    r"|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])"
    r"|(?P<brace>\{(?!(?:\d+(?:,\d*)?|,\d*)\}))"  # one that counts nothing stands for itself
)
_PART = re.compile(_PARTS, re.DOTALL)
_PART_OR_COMMENT = re.compile(rf"{_PARTS}|#[^\n]*", re.DOTALL)

_WORD, _SPACE, _ANY = r"\p{L}\p{N}_", r"\s\x1c-\x1f", r"\s\S"
_KEPT = {r"\w": _WORD, r"\s": _SPACE, r"\b": r"\x08", "[": r"\["}
_COMPLEMENTS = {r"\W": f"[^{_WORD}]", r"\S": f"[^{_SPACE}]"}
_EDGE = rf"(?:(?<=[{_WORD}])(?![{_WORD}])|(?<![{_WORD}])(?=[{_WORD}]))"
_INSIDE = rf"(?:(?<=[{_WORD}])(?=[{_WORD}])|(?<![{_WORD}])(?![{_WORD}]))"
_OUTSIDE = _COMPLEMENTS | {r"\w": f"[{_WORD}]", r"\s": f"[{_SPACE}]", r"\b": _EDGE, r"\B": _INSIDE}

# The numbers differ.
_FLAGS = [(getattr(re, name), int(getattr(regex, name))) for name in "IMSXA"]


def finder(pattern: re.Pattern[str], length: int) -> Find:
    r"""What finds all matches of a pattern in parts of one text, as ``finditer`` of `re` does.

    Args:
        pattern: compiled by `re`, whose syntax it is of.
        length: code points of all the parts together, with which the time grows that all calls may take.

    Returns:
        A function that raises `DataError` when the time is over: 5 seconds of the processor and 10 for each million
        code points.

    >>> [match.span() for match in finder(re.compile(r"(?<=[.?!])\s+"), 12)("One. Two!  3")]
    [(4, 5), (9, 11)]
    """
    if _is_bounded(pattern.pattern):
        return lambda text: list(pattern.finditer(text))
    stoppable = _stoppable(pattern)
    allowed = _SECONDS + _SECONDS_A_CHARACTER * length
    end = time.thread_time() + allowed

    def find(text: str) -> Sequence[Any]:
        patience = max(end - time.thread_time(), 1e-3)
        while True:
            try:
                return list(stoppable.finditer(text, timeout=patience))
            except TimeoutError:
                if time.thread_time() >= end:
                    break
            patience *= 2  # the package's clock had run with the work of other threads
        raise DataError(
            f"the regular expression {pattern.pattern!r} was stopped after {allowed:.0f} s on a text of {length:,} "
            "characters: it tries too many ways to match; let nothing repeat that repeats itself, and no two "
            "neighbours repeat what is alike"
        )

    return find


def _is_bounded(pattern: str) -> bool:
    """Whether nothing repeats, so that at each place there is little to try, whatever the text."""
    return not any(mark in pattern for mark in "*+{") and sum(map(pattern.count, "|?")) < _CHOICES


@lru_cache(maxsize=64)
def _stoppable(pattern: re.Pattern[str]) -> Any:
    flags = [theirs for ours, theirs in _FLAGS if pattern.flags & ours]
    return regex.compile(_translated(pattern), sum(flags, int(regex.VERSION0)))


def _translated(pattern: re.Pattern[str]) -> str:
    r"""The pattern with what `regex` reads otherwise spelt out: classes, nested sets, fuzzy matching.

    >>> print(_translated(re.compile(r"[^\W\d]\s{e}")))
    (?:(?![^\p{L}\p{N}_])[^\d])[\s\x1c-\x1f]\{e}
    """
    is_ascii = bool(pattern.flags & re.ASCII)

    def part(match: re.Match[str]) -> str:
        if match["brace"]:
            return r"\{"
        if match["set"]:
            return _set(match[0], is_ascii)
        return match[0] if is_ascii else _OUTSIDE.get(match[0], match[0])

    return (_PART_OR_COMMENT if pattern.flags & re.VERBOSE else _PART).sub(part, pattern.pattern)


def _set(written: str, is_ascii: bool) -> str:
    negated = written.startswith("[^")
    items = _IN_SET.findall(written[1 + negated : -1])
    if is_ascii:
        return "".join(["[", "^" * negated, *(r"\[" if item == "[" else item for item in items), "]"])
    others = "|".join(_COMPLEMENTS[item] for item in items if item in _COMPLEMENTS)
    kept = "".join(_KEPT.get(item, item) for item in items if item not in _COMPLEMENTS)
    if not others:
        return f"[{'^' * negated}{kept}]"
    if negated:
        return rf"(?:(?!{others})[{'^' + kept if kept else _ANY}])"
    return f"(?:{others}|[{kept}])" if kept else f"(?:{others})"
