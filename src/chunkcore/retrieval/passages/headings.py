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
        edges: dict[str, list[int]] = defaultdict(list)
        for number, document in enumerate(documents):
            if document is None:
                continue
            first, end = units.firsts[number : number + 2].tolist()
            sections = list(heading_paths(document.text))
            begins = [start for start, _ in sections]
            places = np.searchsorted(units.starts[first:end], begins) + first
            ranges = pairwise([*places.tolist(), end])
            for (_, titles), (begin, after) in zip(sections, ranges, strict=True):
                if begin < after:
                    for key in set(word_keys(titles, form)):
                        edges[key] += begin, after
        # Where the headings that have a word begin to stand above units, and where they end.
        self._edges = {key: np.array(places).reshape(-1, 2).T for key, places in edges.items()}

    def gains(self, weights: Mapping[str, float], most: float) -> Scores:
        """What each unit gains: the square of the share of a question's words, by weight, that the headings above it
        have, times `most`.
        """
        steps = np.zeros(self._size + 1)
        for key, weight in weights.items():
            if key in self._edges:
                begins, ends = self._edges[key]
                steps[begins] += weight
                steps[ends] -= weight
        edges = np.flatnonzero(steps)
        shares = np.cumsum(steps[edges]) / (sum(weights.values()) or 1.0)
        # Sums that take away what they added are not exact.
        gains = most * np.append(0.0, np.round(shares, 9) ** 2)
        return np.repeat(gains, np.diff(edges, prepend=0, append=self._size))
