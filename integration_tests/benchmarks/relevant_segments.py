"""Relevant segment extraction of dsRAG as a stage, ``+rse``: a row of the table of passages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from chunkcore.errors import OptionError
from chunkcore.options import check_ranges
from chunkcore.retrieval.stage import PassageStage, UnitLayout, stages
from chunkcore.spans import Numbers, Scores


@stages.register("rse")
@dataclass(frozen=True, kw_only=True)
class RelevantSegments(PassageStage):
    """Relevant segment extraction of dsRAG: repeatedly the run of neighbouring chunks with the greatest value.

    The value of the hit at rank r, from 0, is ``exp(-r / decay) · relevance - penalty``, that of any other chunk
    ``-penalty``. Defaults are dsRAG's preset "balanced". Under a budget, what segments leave of it goes to the best
    other hits, so that it is compared at equal tokens.

    Attributes:
        hits: how many hits have a value.
        documents: only the documents of the first so many hits are read.
        relevance: of a hit: a number for all, or "score" for its score within 0 to 1, such as a cosine.
        decay: how slowly relevance falls with the rank.
        penalty: what a chunk costs.
        minimum: the least value of a segment.
        longest: chunks of a segment at most.
        total: chunks of all segments at most.

    Source: dsRAG (github.com/D-Star-AI/dsRAG), dsrag/rse.py.
    """

    hits: int = 200
    documents: int = 10
    relevance: float | Literal["score"] = 0.8
    decay: float = 30.0
    penalty: float = 0.18
    minimum: float = 0.5
    longest: int = 15
    total: int = 30

    def validate(self) -> None:
        super().validate()
        check_ranges(self, hits=1, documents=1, penalty=0, minimum=0, longest=1, total=1)
        if not 0 < self.decay < float("inf"):
            raise OptionError(f"rse: decay is over 0, got {self.decay}")
        if not isinstance(self.relevance, str) and not 0 < self.relevance <= 1:
            raise OptionError(f"rse: relevance is over 0 to 1, or score; got {self.relevance}")

    @property
    def least_hits(self) -> int:
        return self.hits

    def order(self, layout: UnitLayout, hits: Numbers, scores: Scores) -> Iterator[tuple[int, float]]:
        value = self._values(layout, hits[: self.hits], scores)
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

    def _values(self, layout: UnitLayout, hits: Numbers, scores: Scores) -> dict[int, float]:
        read = set(layout.first[hits[: self.documents]].tolist())
        found = {}
        for rank, hit in enumerate(hits.tolist()):
            if int(layout.first[hit]) in read:
                score = scores[rank] if isinstance(self.relevance, str) else self.relevance
                found[hit] = float(np.exp(-rank / self.decay) * np.clip(score, 0, 1) - self.penalty)
        return found

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
