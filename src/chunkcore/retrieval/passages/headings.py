"""`Headings`: which of a question's words stand in the headings above each unit."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from chunkcore.boundaries.records import marked_headings
from chunkcore.retrieval.lexicon import word_keys
from chunkcore.retrieval.passages.windows import Units
from chunkcore.spans import Scores
from chunkcore.text import Document

_TAG = re.compile(r"<[^<>]*>")


def heading_paths(text: str) -> Iterator[tuple[int, str]]:
    r"""Where each section begins, and the titles above it with its own.

    >>> list(heading_paths("# Report 2023\n\n## Liquidity\n\nCash fell."))
    [(0, 'Report 2023'), (15, 'Report 2023 Liquidity')]
    """
    path: list[tuple[int, str]] = []
    for heading in marked_headings(text):
        path = [above for above in path if above[0] < heading.level]
        path.append((heading.level, _TAG.sub(" ", heading.title)))
        yield heading.start, " ".join([title for _, title in path])


class Headings:
    """The words of the headings above units.

    Args:
        units: the units.
        documents: of each document with units, in their order; None for one that is not given.
        form: of words, see `word_keys`.
    """

    def __init__(self, units: Units, documents: Sequence[Document | None], form: str) -> None:
        self._size = len(units)
        self._ranges: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, document in enumerate(documents):
            if document is not None:
                first, end = units.firsts[number : number + 2].tolist()
                self._add(document.text, units.starts[first:end], first, form)

    def _add(self, text: str, starts: np.ndarray, first: int, form: str) -> None:
        sections = list(heading_paths(text))
        places = np.searchsorted(starts, [start for start, _ in sections]) + first
        ends = [*places.tolist(), first + len(starts)]
        for (_, titles), (begin, end) in zip(sections, pairwise(ends), strict=True):
            if begin == end:
                continue
            for key in set(word_keys(titles, form)):
                ranges = self._ranges[key]
                if ranges and ranges[-1][1] == begin:
                    begin_of_range, _ = ranges.pop()
                    ranges.append((begin_of_range, end))
                else:
                    ranges.append((begin, end))

    def matches(self, weights: Mapping[str, float]) -> Scores:
        """Of each unit the square of the share of a question's words, by weight, that the headings above it have."""
        shares = np.zeros(self._size)
        for key, weight in weights.items():
            for begin, end in self._ranges.get(key, ()):
                shares[begin:end] += weight
        shares /= sum(weights.values()) or 1.0
        return shares**2
