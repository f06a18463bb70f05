"""What a retriever returned, as plain data: anyone's system enters the evaluation here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from chunkcore.document import Span

__all__ = ["MatchKind", "Retrieved", "Retriever", "Run"]

MatchKind = Literal["spans", "exact", "whitespace", "folded", "order", "fuzzy", "part", "ambiguous", "unlocated"]


@dataclass(frozen=True, slots=True)
class Retrieved:
    """One retrieved piece.

    Attributes:
        document_id: the benchmark document that it comes from; "" where that is not known.
        spans: where in that document; empty where it could not be located.
        score: the retriever's own, higher is better.
        text: what came back. Of a piece that was not located it is all there is, and its tokens still
            count as retrieved.
        how: how it was located; `Aligner` says what each word means. "ambiguous": the text stands at several
            places that are equally good, and one of them was taken.
        certainty: how sure the place is, 0 to 1: how much of what was found matches, divided by the number of
            places that are equally good.
        id: what the system calls it, such as a chunk's id; "" where that is not known.
    """

    document_id: str
    spans: tuple[Span, ...]
    score: float = 0.0
    text: str = ""
    how: MatchKind = "spans"
    certainty: float = 1.0
    id: str = ""


@runtime_checkable
class Retriever(Protocol):
    """Answers a query with ranked pieces."""

    def retrieve(self, query: str, k: int) -> Sequence[Retrieved]:
        """The best `k` pieces, best first."""
        ...


@dataclass(frozen=True, slots=True)
class Run:
    """A retriever's answers to a benchmark's queries.

    Attributes:
        name: the system's name, as tables show it.
        results: by query id, best first. A query that is missing is answered with nothing, and scored so.
        pool: every piece that the system could have returned, where that is known (its chunks).
            PrecisionOmega and k = "min" need it.
        failures: by query id, why the system gave no answer. Such a query is missing from `results`.
    """

    name: str
    results: Mapping[str, Sequence[Retrieved]]
    pool: Sequence[Retrieved] | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
