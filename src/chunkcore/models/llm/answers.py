"""From a model's text to what was asked for: JSON in prose and fences, numbers in range and in order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

__all__ = ["BadAnswerError", "ascending", "found_json", "member", "text_of", "whole_number"]

_LONGEST = 1_000_000  # characters of an answer that are looked at
_ATTEMPTS = 1_000  # places where JSON could begin that are tried
_SHOWN = 80  # characters of an answer that an error repeats


class BadAnswerError(ValueError):
    """What a model wrote is no answer. The message is told to the model: what was seen, and what is expected."""


def found_json(text: Any) -> dict[str, Any]:
    r"""The last JSON object in a text: alone, in a code fence, or after prose and reasoning.

    Raises:
        BadAnswerError: no text, or no whole JSON object in it.

    >>> found_json('Certainly! Here it is:\n```json\n{"split_after": [3]}\n```\nI hope this helps.')
    {'split_after': [3]}
    >>> found_json('{"split_after": [3')
    Traceback (most recent call last):
    chunkcore.models.llm.answers.BadAnswerError: expected a JSON object, got '{"split_after": [3'
    """
    if not isinstance(text, str):
        raise BadAnswerError(f"expected a text, got {type(text).__name__}")
    decoder = json.JSONDecoder()
    found: dict[str, Any] | None = None
    text = text[:_LONGEST]
    place = text.find("{")
    for _ in range(_ATTEMPTS):
        if place < 0:
            break
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            place = text.find("{", place + 1)
            continue
        found = value
        place = text.find("{", end)
    if found is None:
        raise BadAnswerError(f"expected a JSON object, got {_shown(text)}")
    return found


def member(data: Mapping[str, Any], key: str) -> Any:
    """What stands under a key.

    Raises:
        BadAnswerError: there is no such key.
    """
    if key not in data:
        raise BadAnswerError(f"expected a JSON object with {key!r}, got one with {_shown(', '.join(data))}")
    return data[key]


def whole_number(value: Any, key: str, least: int, most: int) -> int:
    """A whole number in a range, both ends included.

    Raises:
        BadAnswerError: another type, or out of range.

    >>> whole_number(7, "first", 1, 5)
    Traceback (most recent call last):
    chunkcore.models.llm.answers.BadAnswerError: expected 'first' to be a whole number from 1 to 5, got 7
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadAnswerError(f"expected {key!r} to be a whole number from {least} to {most}, got {_shown(value)}")
    return value


def ascending(values: Any, key: str, least: int, most: int) -> list[int]:
    """Whole numbers in a range, each larger than the one before.

    Raises:
        BadAnswerError: no list, a number out of range, or out of order.

    >>> ascending([3, 2], "split_after", 0, 5)
    Traceback (most recent call last):
    chunkcore.models.llm.answers.BadAnswerError: expected 'split_after' in ascending order, each once, got [3, 2]
    """
    if not isinstance(values, list):
        raise BadAnswerError(f"expected {key!r} to be a list of whole numbers, got {_shown(values)}")
    numbers = [whole_number(value, key, least, most) for value in values]
    if any(after <= before for before, after in pairwise(numbers)):
        raise BadAnswerError(f"expected {key!r} in ascending order, each once, got {_shown(numbers)}")
    return numbers


def text_of(value: Any, key: str) -> str:
    """A text without white space at its ends, that is not empty.

    Raises:
        BadAnswerError: no text, or an empty one.
    """
    if not isinstance(value, str) or not value.strip():
        raise BadAnswerError(f"expected {key!r} to be a text that is not empty, got {_shown(value)}")
    return value.strip()


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
