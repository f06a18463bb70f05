"""`StatedPlace`: the place that metadata state for a text, after a store has changed the values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import zip_longest
from os.path import commonprefix
from typing import Any

from chunkcore.errors import DataError, echo
from chunkcore.text import Span, text_of_spans

_LONGEST_NUMBER = 40  # characters: longer numbers are no places
_SPANS = re.compile(r"[\d\s.,;()\[\]-]+")  # "0-12,40-55" and "[[0, 12], [40.0, 55.0]]"
_WHOLE_NUMBERS = re.compile(r"\d+(?:\.0*)?")


def whole_number(value: object) -> int | None:
    """A whole number of any type, as stores return them; None for anything else.

    Stores turn 44 into ``44.0``, ``"44"``, NumPy's numbers, a `Decimal` or protobuf's ``Value``.

    >>> whole_number(44.0), whole_number("44"), whole_number(44.5), whole_number(True)
    (44, 44, None, None)
    """
    value = getattr(value, "number_value", value)
    with suppress(ValueError, TypeError):  # of arrays of several numbers
        value = value.item() if hasattr(value, "item") else value  # NumPy's
    if isinstance(value, bool):
        return None
    written = str(value).strip()
    if len(written) > _LONGEST_NUMBER:
        return None
    try:
        number = Decimal(written)
    except InvalidOperation:
        return None
    if not number.is_finite() or number.adjusted() > _LONGEST_NUMBER or number % 1:
        return None
    return int(number)


def read_spans(value: object) -> tuple[Span, ...]:
    """Spans as text or as pairs of numbers; () for anything else.

    >>> read_spans("0-12,40-55") == read_spans([[0, 12.0], ["40", 55]]) == read_spans("[[0, 12], [40, 55]]")
    True
    >>> read_spans("pages 3-4")
    ()
    """
    pairs: Any = value
    if isinstance(value, str):
        if not _SPANS.fullmatch(value):
            return ()
        ends = _WHOLE_NUMBERS.findall(value)
        pairs = zip_longest(ends[::2], ends[1::2])
    spans = []
    try:
        for start, end in pairs:
            spans.append(Span(whole_number(start), whole_number(end)))  # type: ignore[arg-type]  # refuses None
    except (TypeError, ValueError, DataError):
        return ()
    return tuple(spans)


@dataclass(frozen=True, slots=True)
class StatedPlace:
    """The place that metadata state for a text.

    Attributes:
        spans: the place; () if none is stated, or none can be read.
        problem: why a stated place cannot be read; "" if it can, or if there is none.
        searched: the splitter searched for its chunk in the text, so that a text that stands several times may have
            the place of another occurrence.
    """

    spans: tuple[Span, ...] = ()
    problem: str = ""
    searched: bool = False

    @property
    def start(self) -> int | None:
        return min((span.start for span in self.spans), default=None)

    @property
    def end(self) -> int | None:
        return max((span.end for span in self.spans), default=None)


NO_PLACE = StatedPlace()


def read_place(
    metadata: Mapping[str, object],
    text: str,
    *,
    start: str,
    end: str,
    spans: str = "spans",
    searched: bool = False,
) -> StatedPlace:
    """The place that metadata state for `text` under these keys; the text gives the end if only the start is there.

    Negative ends state no place: LangChain writes -1 where it finds a chunk nowhere. Spans whose ends are not the
    stated ones are inherited from the chunk that the text was cut from, and do not count.

    >>> read_place({"start": 44.0}, "tea", start="start", end="end").spans
    (Span(start=44, end=47),)
    >>> read_place({"start": "chapter 1"}, "tea", start="start", end="end").problem
    "start is 'chapter 1', no whole number"
    """
    for key in (start, end):
        value = metadata.get(key)
        if value is not None and whole_number(value) is None:
            return StatedPlace((), f"{key} is {echo(value)}, no whole number")
    first, last = whole_number(metadata.get(start)), whole_number(metadata.get(end))
    written = metadata.get(spans)
    several = read_spans(written)
    if several:
        ends = min(span.start for span in several), max(span.end for span in several)
        if (first, last) in ((None, None), ends):
            return StatedPlace(several, searched=searched)
    elif first is None and last is None and written is not None:
        return StatedPlace((), f"{spans} is {echo(written)}, no spans")
    if first is None or first < 0:
        return NO_PLACE
    last = first + len(text) if last is None else last
    return StatedPlace((Span(first, last),), searched=searched) if first < last else NO_PLACE


def spans_between(source: str, text: str, place: Span) -> tuple[Span, ...]:
    r"""The spans of a text in two pieces whose first starts and whose last ends `place`; () if there are none.

    Some stores keep the keys of their first chunk alone: a table's rows then lose the spans that name their header.

    >>> spans_between("| a |\n|---|\n| 1 |\n| 2 |", "| a |\n|---|\n| 2 |", Span(0, 23))
    (Span(start=0, end=11), Span(start=18, end=23))
    """
    longest = len(commonprefix([place.slice(source), text]))  # noqa: RUF071  # characters are meant
    for joint in ("\n", "", " "):  # pieces of whole lines first
        for length in range(min(longest, len(text) - 1), 0, -1):
            rest = len(text) - length - len(joint)
            if rest < 1 or place.end - rest <= place.start + length:
                continue
            if not text.startswith(joint, length):
                continue
            first = Span(place.start, place.start + length)
            last = Span(place.end - rest, place.end)
            if text.endswith(last.slice(source)) and text_of_spans(source, (first, last)) == text:
                return first, last
    return ()
