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
        document_id: the benchmark document that it comes from; "" where that is not known.
        spans: where in that document; empty where it could not be located.
        score: the retriever's own, higher is better.
        text: what came back. Tokens of a piece that was not located are counted in it.
        parts: of a passage, its parts with their own scores.
        how: how it was located; `Aligner` explains each kind. "ambiguous": the text stands at several places that
            match equally well, and one of them was taken.
        certainty: how sure the place is, 0 to 1: the share of the text that matches, divided by the number of places
            that match equally well.
        id: the system's own name of it, such as a chunk's id; "" where that is not known.
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
        """The same piece with another score."""  # dataclasses.replace would be several times slower
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
        """The best pieces, best first.

        Args:
            query: the question.
            k: at most so many pieces; None for no such limit.
            max_tokens: at most so many tokens in all; None for no such limit.
        """
        ...


@dataclass(frozen=True, slots=True)
class Run:
    """A retriever's answers to a benchmark's queries.

    Attributes:
        name: the system's name, as tables show it.
        results: by query id, best first. A missing query counts as answered with nothing.
        pool: every piece that the system could have returned (its chunks); None where that is not known.
            PrecisionOmega and k = "min" need it.
        seconds: by step, such as "chunk", "embed", "search".
        failures: by query id, why the system gave no answer. Such a query is missing from `results`.
    """

    name: str
    results: Mapping[str, Sequence[Retrieved]]
    pool: Sequence[Retrieved] | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
