"""`Retrieved`, `Retriever`, `Run`: what a retrieval system returns, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import chain, starmap
from numbers import Real
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from chunkcore.columns import LazySequence
from chunkcore.errors import DataError, echo
from chunkcore.plain import Frame, FrameList, columns_of, shortened
from chunkcore.spans import Numbers, ragged_indices
from chunkcore.text import Span
from chunkcore.tokens import get_counter

MatchKind = Literal[
    "spans",
    "exact",
    "whitespace",
    "folded",
    "order",
    "fuzzy",
    "part",
    "quoted",
    "ambiguous",
    "unlocated",
]


@dataclass(frozen=True, slots=True)
class Retrieved:
    """One retrieved piece.

    Attributes:
        document_id: the benchmark document; "" if unknown.
        spans: the place in that document; empty if not located.
        score: the retriever's score, higher is better.
        text: the returned text. Its tokens count as retrieved where the piece is not located.
        parts: the parts of a passage, each with its score.
        match: how the piece was located; see `Aligner`.
        certainty: of the place, 0 to 1: the share of matching text / the number of equally good places.
        id: the system's own id, such as a chunk's; "" if unknown.
        sources: other places that say the same, which the answer does not repeat.
    """

    document_id: str
    spans: tuple[Span, ...]
    score: float = 0.0
    text: str = ""
    parts: tuple[Retrieved, ...] = ()
    _: KW_ONLY
    match: MatchKind = "spans"
    certainty: float = 1.0
    id: str = ""
    sources: tuple[Retrieved, ...] = ()

    def __post_init__(self) -> None:
        if self.spans and type(self.spans[0]) is not Span:
            raise DataError(
                f"the spans of a Retrieved are a tuple of Spans, got {echo(self.spans)}"
            )
        if not isinstance(self.score, (float, Real)) or self.score != self.score:
            raise DataError(f"the score of a Retrieved is a number, got {self.score!r}")

    def __repr__(self) -> str:
        place = f"document_id={self.document_id!r}, spans={self.spans}, score={self.score}, text={shortened(self.text)}"
        parts = f"<{len(self.parts)} parts>" if self.parts else "()"
        more = f"parts={parts}, match={self.match!r}, certainty={self.certainty}, id={self.id!r}"
        return f"Retrieved({place}, {more})"


class RankedList(FrameList[Retrieved]):
    """Pieces, best first: a list that is a table, too; `plot` shows where in their documents they lie."""

    __slots__ = ()

    @property
    def parts(self) -> RankedList:
        """The parts of all pieces, a row each; a piece without parts is its own."""
        return RankedList(part for piece in self for part in piece.parts or (piece,))

    def tidy(self) -> dict[str, Sequence[Any]]:
        """A row a piece: rank, document, start, end, score, parts, text, how it was located; tokens by cl100k_base."""
        texts = [piece.text for piece in self]
        columns = columns_of(_HIT, starmap(_hit, enumerate(self, 1)))
        columns["tokens"] = get_counter("cl100k_base").count_many(texts).tolist()
        return columns


_HIT = ("rank", "document", "start", "end", "score", "parts", "text", "match")


def _hit(rank: int, piece: Retrieved) -> tuple[Any, ...]:
    start = min((span.start for span in piece.spans), default=-1)
    end = max((span.end for span in piece.spans), default=-1)
    return (
        rank,
        piece.document_id,
        start,
        end,
        piece.score,
        len(piece.parts),
        piece.text,
        piece.match,
    )


class PieceColumns(LazySequence[int, Retrieved]):
    """Pieces of one span each as columns; `read` makes the `Retrieved` of a piece's number, on each access.

    `document`: each piece's place in `documents`; -1 for a piece of more than one span, which is read when needed.
    """

    def __init__(
        self,
        read: Callable[[int], Retrieved],
        documents: Sequence[str],
        document: Numbers,
        starts: Numbers,
        ends: Numbers,
    ) -> None:
        super().__init__(read, range(len(document)))
        self.documents = documents
        self.document, self.starts, self.ends = document, starts, ends


class RankedPieces(LazySequence[int, LazySequence[int, Retrieved]]):
    """The pieces of many queries, best first, as columns; `Retrieved` objects are made when they are read.

    `pieces` has each piece once, with any score; `counts` the number of answers of each query; `numbers` and `scores`
    the piece and the score of each answer, by query and rank.

    >>> pool = [Retrieved("a.txt", (Span(0, 9),)), Retrieved("b.txt", (Span(4, 7),))]
    >>> first, second = RankedPieces(pool, np.array([2, 0]), np.array([1, 0]), np.array([0.9, 0.4]))
    >>> [(piece.document_id, piece.score) for piece in first], len(second)
    ([('b.txt', 0.9), ('a.txt', 0.4)], 0)
    """

    def __init__(
        self,
        pieces: Sequence[Retrieved],
        counts: Numbers,
        numbers: Numbers,
        scores: NDArray[np.float64],
    ) -> None:
        super().__init__(self._row, range(len(counts)))
        self.pieces, self.counts = pieces, counts
        self.numbers, self.scores = numbers, scores
        self.starts: Numbers = np.cumsum(counts) - counts

    def of_rows(self, rows: Sequence[int]) -> RankedPieces:
        """Some of the queries, in this order; no pieces for a row of -1."""
        chosen = np.array(rows, np.int64)
        counts = np.append(self.counts, 0)[chosen]  # the last is that of -1
        starts = np.append(self.starts, 0)[chosen]
        places = ragged_indices(starts, counts)[1]
        return RankedPieces(self.pieces, counts, self.numbers[places], self.scores[places])

    def _row(self, row: int) -> LazySequence[int, Retrieved]:
        start = int(self.starts[row])
        stop = start + int(self.counts[row])
        return LazySequence(self._piece, range(start, stop))

    def _piece(self, place: int) -> Retrieved:
        piece = self.pieces[int(self.numbers[place])]
        return replace(piece, score=float(self.scores[place]))


class Answers(Mapping[str, Sequence[Retrieved]]):
    """The pieces of every query, by its id, as columns: `ranked`, whose rows are in the order of `ids`."""

    def __init__(self, ids: Sequence[str], ranked: RankedPieces) -> None:
        self.rows = {name: row for row, name in enumerate(ids)}
        self.ranked = ranked

    @classmethod
    def of(
        cls,
        ids: Sequence[str],
        results: Sequence[Sequence[Retrieved]],
    ) -> Answers:
        if isinstance(results, RankedPieces):
            return cls(ids, results)
        pieces = list(chain.from_iterable(results))
        counts = np.array(list(map(len, results)), np.int64)
        scores = np.array([piece.score for piece in pieces], float)
        numbers = np.arange(len(pieces))
        return cls(ids, RankedPieces(pieces, counts, numbers, scores))

    def __getitem__(self, query: str) -> Sequence[Retrieved]:
        return self.ranked[self.rows[query]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


@runtime_checkable
class Retriever(Protocol):
    """Answers a query with ranked pieces. A class with this one method is a retriever."""

    def retrieve(
        self,
        query: str,
        k: int | None = None,
        max_tokens: int | None = None,
    ) -> Sequence[Retrieved]:
        """The best pieces, best first: at most `k`, and at most `max_tokens` tokens in all; None for no limit."""
        ...


@dataclass(frozen=True, slots=True)
class Run(Frame):
    """A retriever's answers to a benchmark's queries.

    Attributes:
        results: by query id, best first. A missing query counts as answered with nothing.
        pool: every piece that the system can return (its chunks), for PrecisionOmega and k = "min"; None if unknown.
        seconds: by step, such as "chunk", "embed", "search".
        failures: by query id, why the system gave no answer. `results` lacks these queries.
    """

    name: str
    results: Mapping[str, Sequence[Retrieved]]
    pool: Sequence[Retrieved] | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        pool = "no pool" if self.pool is None else f"a pool of {len(self.pool):,} pieces"
        return f"Run({self.name!r}: {len(self.results):,} questions, {pool})"

    def tidy(self) -> dict[str, Sequence[Any]]:
        """A row a hit: question, rank, document, start, end, score, parts, text, and how it was located.

        >>> Run("r", {"q": [Retrieved("a.txt", (Span(3, 9),), 0.5)]}).tidy()["start"]
        [3]
        """
        rows = [
            (query, *_hit(*item))
            for query, hits in self.results.items()
            for item in enumerate(hits, 1)
        ]
        return columns_of(("question", *_HIT), rows)
