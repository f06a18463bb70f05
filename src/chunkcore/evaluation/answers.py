"""`Answers`: what each query was answered with, in order, and the ways to look at less of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from chunkcore.evaluation.pieces import Numbers, Pieces, flatten
from chunkcore.evaluation.run import Retrieved
from chunkcore.evaluation.units import CharacterAxis, StartAxis

__all__ = ["Answers", "running"]


@dataclass(frozen=True, eq=False)
class Answers:
    """Pieces, and who is answered with which: three arrays side by side, by query and then by rank.

    Attributes:
        pieces: all pieces, each of one answer.
        piece: of each answer, its number among them; ascending.
        query: of each answer, the query's number; ascending.
        rank: of each answer, from 0.
    """

    pieces: Pieces
    piece: Numbers
    query: Numbers
    rank: Numbers

    @classmethod
    def of(cls, results: Sequence[Sequence[Retrieved]], axis: CharacterAxis, source: str) -> Answers:
        """Every query's results, in the queries' order."""
        retrieved, query, rank = flatten(results)
        return cls(Pieces.of(retrieved, axis, source), np.arange(len(retrieved), dtype=np.int64), query, rank)

    def best(self, k: int | Numbers) -> Answers:
        """The best k of each query; k is one for all queries or one of each."""
        kept = np.flatnonzero(self.rank < (k if isinstance(k, int) else k[self.query]))
        return Answers(self.pieces, self.piece[kept], self.query[kept], self.rank[kept])

    def documents(self, axis: CharacterAxis) -> Answers:
        """The documents that the pieces come from, each once a query, where it first comes up.

        A piece of no known document is an irrelevant one; two of one unknown id are of one.
        """
        document = self.pieces.documents[self.piece]
        least = document.min(initial=0)
        # One number for each pair of query and document, which sorts many times faster than pairs.
        pair = self.query * (document.max(initial=0) - least + 1) + (document - least)
        first = np.sort(np.unique(pair, return_index=True)[1])
        query, document = self.query[first], document[first]
        number = np.arange(len(first), dtype=np.int64)
        known = np.flatnonzero((document >= 0) & (document < len(axis.sizes)))
        begins = axis.bases[document[known]]
        unknown = np.setdiff1d(number, known).tolist()
        pieces = Pieces(len(first), known, np.column_stack((begins, begins + 1)), dict.fromkeys(unknown, ""), document)
        return Answers(pieces, number, query, running(np.ones_like(query), query))

    def within(self, budget: int, axis: StartAxis, sizes: Numbers, cut_text: Callable[[str, int], str]) -> Answers:
        """The best pieces of each query until it has `budget` tokens; the last one is cut there.

        Args:
            budget: tokens, counted as retrieved ones are: repeats included.
            axis: the tokens'.
            sizes: of every piece, its tokens.
            cut_text: the beginning of a text that stands nowhere, so many tokens long.
        """
        left = budget - running(sizes[self.piece], self.query)
        kept = np.flatnonzero(left > 0)
        piece, left = self.piece[kept], left[kept]
        answer, span = self.pieces.spans_of(piece)
        characters = self.pieces.characters[span]
        tokens = axis.ranges(characters)
        lengths = tokens[:, 1] - tokens[:, 0]
        room = left[answer] - running(lengths, answer)
        over = np.flatnonzero((lengths > room) & (room > 0))
        characters[over, 1] = axis.begin(tokens[over, 0] + room[over])
        # Tokens of one character begin at the same place: where the cut is between them, nothing is left.
        whole = (room > 0) & (characters[:, 1] > characters[:, 0])
        texts = (
            {
                number: cut_text(self.pieces.texts[old], int(left[number]))
                for number, old in enumerate(piece.tolist())
                if old in self.pieces.texts
            }
            if self.pieces.texts
            else {}
        )
        pieces = Pieces(len(kept), answer[whole], characters[whole], texts, self.pieces.documents[piece])
        return Answers(pieces, np.arange(len(kept), dtype=np.int64), self.query[kept], self.rank[kept])


_Number = TypeVar("_Number", np.int64, np.float64)


def running(values: NDArray[_Number], group: Numbers) -> NDArray[_Number]:
    """The sum of the values before each one in its group; groups are ascending.

    >>> running(np.array([5, 2, 1, 4]), np.array([0, 0, 0, 3])).tolist()
    [0, 5, 7, 0]
    """
    before: NDArray[_Number] = np.cumsum(values) - values
    before -= before[np.searchsorted(group, group, side="left")]
    return before
