"""`SearchRecall`: how much of what exact search finds an approximate one found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from chunkcore.errors import DataError

__all__ = ["SearchRecall"]


@dataclass(frozen=True)
class SearchRecall:
    """Measured on a sample of a run's own questions.

    Attributes:
        share: of the best `depth` that exact search finds, how many the approximate one found; the questions' mean.
        queries: how many questions were asked both ways.
        depth: how many of the best were compared.

    >>> print(SearchRecall(0.9731, 100, 10))
    97.3 % of the best 10 chunks that exact search finds, measured on 100 questions
    """

    share: float
    queries: int
    depth: int

    def __str__(self) -> str:
        asked = "1 question" if self.queries == 1 else f"{self.queries:,} questions"
        best = "best chunk" if self.depth == 1 else f"best {self.depth:,} chunks"
        return f"{100 * self.share:.1f} % of the {best} that exact search finds, measured on {asked}"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; `from_dict` is its inverse."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SearchRecall:
        """What `to_dict` described.

        Raises:
            DataError: a part is missing or no number of its range.
        """
        share, queries, depth = (data.get(name) for name in ("share", "queries", "depth"))
        if not (isinstance(share, int | float) and 0 <= share <= 1 and type(queries) is int and type(depth) is int):
            raise DataError(f"an approximate search tells a share of 0 to 1, queries and depth; got {data!r:.80}")
        return cls(float(share), queries, depth)
