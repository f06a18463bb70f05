"""What others do with hits, as stages: dsRAG's relevant segments, ``+rse``, and auto-merging, ``+automerge``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from chunkcore.retrieval.stage import PassageStage, UnitLayout, stages
from chunkcore.spans import Numbers, Scores


@stages.register("rse")
@dataclass(frozen=True, kw_only=True)
class RelevantSegments(PassageStage):
    """Relevant segment extraction of dsRAG: repeatedly the run of neighbouring chunks with the greatest value.

    The value of the hit at rank r, from 0, is ``exp(-r / decay) · relevance - penalty``, that of any other chunk
    ``-penalty``. Defaults are dsRAG's preset "balanced". Under a budget, what segments leave of it goes to the best
    other hits, so that it is compared at equal tokens.

    Source: dsRAG (github.com/D-Star-AI/dsRAG), dsrag/rse.py.
    """

    hits: int = 200
    documents: int = 10
    relevance: float = 0.8
    decay: float = 30.0
    penalty: float = 0.18
    minimum: float = 0.5
    longest: int = 15
    total: int = 30

    @property
    def least_hits(self) -> int:
        return self.hits

    def order(self, layout: UnitLayout, hits: Numbers, scores: Scores) -> Iterator[tuple[int, float]]:
        value = self._values(layout, hits[: self.hits])
        left = self.total
        while (best := self._best(layout, value, min(self.longest, left))) is not None:
            worth, begin, end = best
            middle = max(range(begin, end), key=lambda unit: value.get(unit, -self.penalty))
            yield from ((unit, worth) for unit in sorted(range(begin, end), key=lambda unit: abs(unit - middle)))
            value = {unit: gain for unit, gain in value.items() if not begin <= unit < end} | dict.fromkeys(
                range(begin, end), -float("inf")
            )
            left -= end - begin
        yield from ((hit, 0.0) for hit in hits.tolist())

    def _values(self, layout: UnitLayout, hits: Numbers) -> dict[int, float]:
        read = set(layout.first[hits[: self.documents]].tolist())
        values = {}
        for rank, hit in enumerate(hits.tolist()):
            if int(layout.first[hit]) in read:
                values[hit] = float(np.exp(-rank / self.decay) * self.relevance - self.penalty)
        return values

    def _best(self, layout: UnitLayout, value: Mapping[int, float], longest: int) -> tuple[float, int, int] | None:
        """The value, first unit and unit after the last of the best segment; of equal ones the first."""
        best: tuple[float, int, int] | None = None
        for begin in sorted(unit for unit, gain in value.items() if gain > 0):
            total = 0.0
            for unit in range(begin, min(begin + longest, int(layout.last[begin]))):
                total += value.get(unit, -self.penalty)
                if total >= self.minimum and (best is None or total > best[0]):
                    best = total, begin, unit + 1
        return best


@stages.register("automerge")
@dataclass(frozen=True, kw_only=True)
class AutoMerge(PassageStage):
    """A parent replaces its children when more than a share of them was found: LlamaIndex' and Haystack's auto-merging.

    The parents of the first level are neighbouring chunks up to a size, those of each further level neighbouring
    parents of the level before. Hits are taken in order; each may complete its parents.
    """

    leading: ClassVar[str] = "share"

    share: float = 0.5  # of the children: LlamaIndex' default, as is
    sizes: tuple[int, ...] = (512, 2048)  # tokens of a parent at each level

    def order(self, layout: UnitLayout, hits: Numbers, scores: Scores) -> Iterator[tuple[int, float]]:
        trees = {first: self._levels(layout, first) for first in dict.fromkeys(layout.first[hits].tolist())}
        taken: set[tuple[int, int, int]] = set()  # document, level and number of a node: a chunk, or a whole parent
        counts: dict[tuple[int, int, int], int] = {}
        for hit, score in zip(hits.tolist(), scores.tolist(), strict=True):
            yield hit, score
            first = int(layout.first[hit])
            node = hit - first
            for level, parents in enumerate(trees[first]):
                if (first, level, node) in taken:
                    break
                taken.add((first, level, node))
                parent = int(np.searchsorted(parents, node, side="right")) - 1
                key = first, level + 1, parent
                counts[key] = counts.get(key, 0) + 1
                begin, end = parents[parent], parents[parent + 1]
                if counts[key] / (end - begin) <= self.share:
                    break
                taken.update((first, level, child) for child in range(begin, end))
                for below in reversed(trees[first][:level]):
                    begin, end = below[begin], below[end]
                yield from ((first + unit, score) for unit in range(begin, end))
                node = parent

    def _levels(self, layout: UnitLayout, first: int) -> list[list[int]]:
        """Of each level the children at which its parents begin, and the number of children."""
        sizes = layout.sizes[first : layout.last[first]].tolist()
        levels = []
        for limit in self.sizes:
            begins, grown = [0], []
            total = 0
            for child, size in enumerate(sizes):
                if total and total + size > limit:
                    begins.append(child)
                    grown.append(total)
                    total = 0
                total += size
            levels.append([*begins, len(sizes)])
            sizes = [*grown, total]
        return levels
