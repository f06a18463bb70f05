"""Separators in many texts at once, and the pieces between them.

A *text* is a range of a document's code points, searched by itself. Texts and pieces: sorted, disjoint, ``(n, 2)``
int64.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
import regex

from chunkcore.errors import DataError, OptionError, echo
from chunkcore.spans import Numbers, Range, Ranges, ragged_indices
from chunkcore.tokens import TokenizedText

Find = Callable[[str], Sequence["re.Match[str]"]]
Keep = Literal["start", "end", "drop"]

SECONDS = 5.0  # processor time allowed for any text
SECONDS_A_CHARACTER = 1e-5  # about a hundred times a usual pattern's time

_ESCAPE = r"\\N\{[^}]*\}|\\."
_IN_SET = re.compile(rf"(?s){_ESCAPE}|.")
_PARTS = (
    rf"{_ESCAPE}|\(\?#[^)]*\)"
    r"|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])"
    r"|(?P<brace>\{(?!(?:\d+(?:,\d*)?|,\d*)\}))"  # a brace without a count is a literal
)
_PART = re.compile(_PARTS, re.DOTALL)
_PART_OR_COMMENT = re.compile(rf"(?s){_PARTS}|#[^\n]*")

_WORD, _SPACE, _ANY = r"\p{L}\p{N}_", r"\s\x1c-\x1f", r"\s\S"
_KEPT = {r"\w": _WORD, r"\s": _SPACE, r"\b": r"\x08", "[": r"\["}
_BRACKET = {"[": r"\["}
_NONE: dict[str, str] = {}
_COMPLEMENTS = {r"\W": f"[^{_WORD}]", r"\S": f"[^{_SPACE}]"}
_EDGE = rf"(?:(?<=[{_WORD}])(?![{_WORD}])|(?<![{_WORD}])(?=[{_WORD}]))"
_INSIDE = rf"(?:(?<=[{_WORD}])(?=[{_WORD}])|(?<![{_WORD}])(?![{_WORD}]))"
_OUTSIDE = _COMPLEMENTS | {r"\w": f"[{_WORD}]", r"\s": f"[{_SPACE}]", r"\b": _EDGE, r"\B": _INSIDE}

# The numbers of the flags differ.
_FLAGS = [(getattr(re, name), int(getattr(regex, name))) for name in "IMSXA"]


def compiled(pattern: str, what: str, remedy: str = "correct it") -> re.Pattern[str]:
    """An option's regular expression. Raises `OptionError`: it is none; `what` names the option.

    >>> compiled("a{99999999999}", "the separator")
    Traceback (most recent call last):
    chunkcore.errors.OptionError: the separator 'a{99999999999}' is no regular expression (the repetition number is ...
    """
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise OptionError(
            f"{what} {echo(pattern)} is no regular expression ({error}); {remedy}"
        ) from error


def finder(pattern: re.Pattern[str], length: int) -> Find:
    r"""A function that finds a pattern's matches in parts of one text, as `re`'s ``finditer`` does.

    It raises `DataError` once all calls took over 5 seconds of processor time plus 10 per million code points; `length`
    is the code points of all parts together.

    >>> [match.span() for match in finder(re.compile(r"(?<=[.?!])\s+"), 12)("One. Two!  3")]
    [(4, 5), (9, 11)]
    """
    stoppable_pattern = stoppable(pattern)
    allowed = SECONDS + SECONDS_A_CHARACTER * length
    end = time.thread_time() + allowed

    def find(text: str) -> Sequence[Any]:
        patience = max(end - time.thread_time(), 1e-3)
        while True:
            try:
                return list(stoppable_pattern.finditer(text, timeout=patience))
            except TimeoutError:
                if time.thread_time() >= end:
                    break
            patience *= 2  # regex's clock includes other threads
        raise DataError(
            f"the regular expression {pattern.pattern!r} was stopped after {allowed:.0f} s on a text of {length:,} "
            "characters: it tries too many ways to match; let nothing repeat that repeats itself, and no two "
            "neighbours repeat what is alike"
        )

    return find


@lru_cache(maxsize=64)
def stoppable(pattern: re.Pattern[str]) -> Any:
    """The pattern as `regex` compiles it, whose search takes a time limit."""
    flags = [theirs for ours, theirs in _FLAGS if pattern.flags & ours]
    return regex.compile(_translated(pattern), sum(flags, int(regex.VERSION0)))


def _translated(pattern: re.Pattern[str]) -> str:
    r"""The pattern for `regex`: spells out what it reads differently (classes, nested sets, fuzzy matching).

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
    complements, spelled = (_NONE, _BRACKET) if is_ascii else (_COMPLEMENTS, _KEPT)
    others = "|".join(complements[item] for item in items if item in complements)
    kept = "".join(spelled.get(item, item) for item in items if item not in complements)
    if not others:
        return f"[{'^' * negated}{kept}]"
    if negated:
        return rf"(?:(?!{others})[{'^' + kept if kept else _ANY}])"
    return f"(?:{others}|[{kept}])" if kept else f"(?:{others})"


class Places(NamedTuple):
    """Code-point ranges, each inside a text: int64 arrays of one length, in order."""

    starts: Numbers
    ends: Numbers
    texts: Numbers  # index of the range's text


def find_literal(source: TokenizedText, separator: str, texts: Ranges) -> Places:
    r"""Each occurrence of a string in every text (at least one), from left to right, without overlap.

    >>> from chunkcore.tokens import CharacterCounter
    >>> source = CharacterCounter().tokenize("a\n\nb\n\n\n\nc")
    >>> find_literal(source, "\n\n", np.array([[0, 4], [4, 9]])).starts.tolist()
    [1, 4, 6]
    """
    if len(separator) == 1:
        # One comparison over the whole range serves many texts.
        begin, end = int(texts[0, 0]), int(texts[-1, 1])
        starts = (source.code_points[begin:end] == ord(separator)).nonzero()[0] + begin
    else:
        literal = re.compile(re.escape(separator))
        matches = (literal.finditer(source.text, *ends) for ends in texts.tolist())
        places = (match.start() for match in chain.from_iterable(matches))
        starts = np.fromiter(places, np.int64)
    owners = texts[:, 0].searchsorted(starts, side="right") - 1
    inside = starts < texts[owners, 1]  # not between two texts
    starts = starts[inside]
    return Places(starts, starts + len(separator), owners[inside])


def find_regex(
    source: TokenizedText, pattern: re.Pattern[str], texts: Ranges, *, keep_groups: bool
) -> Places:
    r"""Each match of a pattern in every text; look-behind and anchors see the text's ends.

    With `keep_groups`, the groups are cut out of each match. Raises `DataError` if the search takes too long.

    >>> from chunkcore.tokens import CharacterCounter
    >>> source = CharacterCounter().tokenize("One. Two! ")
    >>> found = find_regex(source, re.compile(r"([.!])\s"), np.array([[0, 10]]), keep_groups=True)
    >>> list(zip(found.starts.tolist(), found.ends.tolist()))
    [(3, 3), (4, 5), (8, 8), (9, 10)]
    """
    rows = []
    find = finder(pattern, int((texts[:, 1] - texts[:, 0]).sum()))
    for number, (begin, end) in enumerate(texts.tolist()):
        for match in find(source.text[begin:end]):
            spans = _outside_groups(match) if keep_groups else [match.span()]
            rows += [(begin + start, begin + stop, number) for start, stop in spans]
    return Places(*np.array(rows, np.int64).reshape(-1, 3).T.copy())


def _outside_groups(match: re.Match[str]) -> Iterator[Range]:
    place = match.start()
    for start, end in match.regs[1:]:
        if place <= start < end <= match.end():
            yield place, start
            place = end
    yield place, match.end()


def pieces_between(texts: Ranges, separators: Places, keep: Keep) -> Places:
    """The pieces between separators, without empty ones.

    A separator joins the "start" of the next piece or the "end" of the piece before, or is dropped ("drop").

    >>> here = Places(np.array([3]), np.array([5]), np.array([0]))
    >>> [pieces_between(np.array([[0, 9]]), here, keep).starts.tolist() for keep in ("start", "end", "drop")]
    [[0, 3], [0, 5], [0, 5]]
    """
    numbers = np.arange(len(texts))
    first = separators.texts.searchsorted(numbers, side="left")
    after = separators.texts.searchsorted(numbers, side="right")
    begins = separators.starts if keep == "start" else separators.ends
    stops = separators.ends if keep == "end" else separators.starts
    starts = np.insert(begins, first, texts[:, 0])
    ends = np.insert(stops, after, texts[:, 1])
    owners = np.insert(separators.texts, first, numbers)
    some = (starts < ends).nonzero()[0]
    return Places(starts[some], ends[some], owners[some])


def characters(texts: Ranges) -> Places:
    """Every code point as a piece.

    >>> characters(np.array([[0, 2], [5, 6]])).starts.tolist()
    [0, 1, 5]
    """
    owners, starts = ragged_indices(texts[:, 0], texts[:, 1] - texts[:, 0])
    return Places(starts, starts + 1, owners)
