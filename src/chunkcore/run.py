"""`Retrieved`, `Retriever`, `Run`: what a retrieval system returns, as plain data.

>>> class FirstParagraphs:
...     def retrieve(self, query, k=None, max_tokens=None):
...         return [Retrieved("guide.txt", (Span(0, 120),), score=1.0)][:k]
>>> isinstance(FirstParagraphs(), Retriever)
True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal, Protocol, runtime_checkable

from chunkcore.document import Span

__all__ = ["MatchKind", "Retrieved", "Retriever", "Run"]

MatchKind = Literal["spans", "exact", "whitespace", "folded", "order", "fuzzy", "part", "ambiguous", "unlocated"]


@dataclass(frozen=True, slots=True)
class Retrieved:
    """One retrieved piece.

    Attributes:
        document_id: the benchmark document; "" if unknown.
        spans: the place in that document; empty if not located.
        score: the retriever's score, higher is better.
        text: the returned text. Its tokens count as retrieved where the piece is not located.
        parts: the parts of a passage, each with its score.
        how: how the piece was located; see `Aligner`.
        certainty: of the place, 0 to 1: the share of matching text / the number of equally good places.
        id: the system's own id, such as a chunk's; "" if unknown.
    """

    document_id: str
    spans: tuple[Span, ...]
    score: float = 0.0
    text: str = ""
    parts: tuple[Retrieved, ...] = ()
    _: KW_ONLY
    how: MatchKind = "spans"
    certainty: float = 1.0
    id: str = ""

    def with_score(self, score: float) -> Retrieved:
        """The same piece with another score.  # dataclasses.replace is several times slower"""
        return Retrieved(
            self.document_id,
            self.spans,
            score,
            self.text,
            self.parts,
            how=self.how,
            certainty=self.certainty,
            id=self.id,
        )


@runtime_checkable
class Retriever(Protocol):
    """Answers a query with ranked pieces. A class with this one method is a retriever."""

    def retrieve(self, query: str, k: int | None = None, max_tokens: int | None = None) -> Sequence[Retrieved]:
        """The best pieces, best first: at most `k`, and at most `max_tokens` tokens in all; None for no limit."""
        ...


@dataclass(frozen=True, slots=True)
class Run:
    """A retriever's answers to a benchmark's queries.

    Attributes:
        name: the system's name in tables.
        results: by query id, best first. A missing query counts as answered with nothing.
        pool: every piece that the system can return (its chunks); PrecisionOmega and k = "min" need it. None if
            unknown.
        seconds: by step, such as "chunk", "embed", "search".
        failures: by query id, why the system gave no answer. `results` lacks these queries.
    """

    name: str
    results: Mapping[str, Sequence[Retrieved]]
    pool: Sequence[Retrieved] | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
