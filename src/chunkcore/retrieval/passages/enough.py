"""Whether the answer is there, and how many tokens a question needs: what is known without a model.

`Signs` are what a question and the index have in common; `presence` weighs them. `Enough` holds the two thresholds
that `chunkcore.study.enough.calibrate` finds. A question's budget follows from the units' scores: in their order, each
unit has a level, which rises; units up to the calibrated level are shown. A higher level shows more, and all of what a
lower one shows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from chunkcore.errors import DataError
from chunkcore.options import check_number
from chunkcore.run import Retrieved
from chunkcore.spans import Numbers, Scores
from chunkcore.text import Document

MOST = 16_000  # tokens of the units that a question may get
NEAREST = 20  # units whose text is read for phrases
_STEEP = 6.0  # how much a unit's score counts beside its place in tokens
_FIRST = 200  # tokens that cost little


class Signs(NamedTuple):
    """What a question and an index have in common.

    Attributes:
        relation: of the best unit, the share of the question's words, by weight; with vectors 1.5 times that, and the
            nearness: the cosine, of which 0 is what unrelated questions have.
        wider: the same of the best three neighbouring units.
        lead: the root of the best unit's score, less that of the best in another document.
        phrase: the share of the question's pairs of neighbouring words, by weight, that one of the best 20 units has.
    """

    relation: float
    wider: float
    lead: float
    phrase: float


# Logistic regression over seven collections' questions, asked with and without their documents; see the page
# "Enough".
WITH_VECTORS = (Signs(1.31, 1.36, 0.63, 1.04), -3.44)
BY_WORDS = (Signs(0.56, 2.98, 0.46, 2.2), -2.95)


def presence(signs: Signs, *, by_words: bool) -> float:
    """The log odds that the answer is there, if half of all questions have theirs."""
    weights, bias = BY_WORDS if by_words else WITH_VECTORS
    return float(np.dot(weights, signs)) + bias


def phrase_share(
    question: Sequence[str], weights: Mapping[str, float], texts: Sequence[Sequence[str]]
) -> float:
    """The share of the question's pairs of neighbouring words, by weight, that stand side by side in one text.

    >>> phrase_share(["blue", "fox", "naps"], {"blue": 1.0, "fox": 2.0, "naps": 1.0}, [["the", "fox", "naps"]])
    0.5
    """
    pairs = list(pairwise(question))
    total = sum(weights[one] + weights[other] for one, other in pairs)
    best = 0.0
    for text in texts:
        there = set(pairwise(text))
        shared = sum(weights[one] + weights[other] for one, other in pairs if (one, other) in there)
        best = max(best, shared)
    return best / total if total else 0.0


def levels(scores: Scores, sizes: Numbers) -> tuple[Numbers, Scores]:
    """The units in the order of their scores, and the level of each, which never falls along the order.

    A unit's level rises with the tokens up to it, and with how far its score is below the best one: a budget alone
    would give an easy question as much as a hard one. Units of the score -inf are left out.

    >>> order, level = levels(np.array([1.0, 4.0, 0.0]), np.array([50, 50, 50]))
    >>> order.tolist(), np.round(level, 2).tolist()
    ([1, 0, 2], [-0.48, 2.7, 5.86])
    """
    order = np.argsort(-scores, kind="stable")
    order = order[np.isfinite(scores[order])]
    best = scores[order[:1]].max(initial=0.0) or 1.0
    shares = scores[order] / abs(best)
    roots = np.sign(shares) * np.sqrt(np.abs(shares))
    tokens = np.cumsum(sizes[order])
    level = np.where(tokens <= MOST, np.log(tokens + _FIRST) - _STEEP * roots, math.inf)
    return order, level


def needed_level(scores: Scores, sizes: Numbers, units: Numbers) -> float:
    """The least level that shows all these units; infinite if none does."""
    order, level = levels(scores, sizes)
    places = np.full(len(scores), -1, dtype=np.int64)
    places[order] = np.arange(len(order))
    last = places[units]
    if not len(units) or (last < 0).any():
        return math.inf
    return float(level[last.max()])


def shown_units(scores: Scores, sizes: Numbers, level: float) -> Numbers:
    """The units up to a level: at least the best one, of at most 16,000 tokens."""
    order, rising = levels(scores, sizes)
    count = max(1, int(np.searchsorted(rising, level, side="right")))
    return order[:count]


def holds_all(
    pieces: Sequence[Retrieved],
    places: Sequence[Retrieved],
    documents: Mapping[str, Document],
) -> bool:
    """Whether the pieces hold all text of some places, but for white space."""
    for place in places:
        text = documents[place.document_id].text
        outside = np.ones(len(text), dtype=np.bool_)
        for piece in pieces:
            if piece.document_id == place.document_id:
                for span in piece.spans:
                    outside[span.start : span.end] = False
        for span in place.spans:
            left = np.flatnonzero(outside[span.start : span.end]) + span.start
            if not all(text[number].isspace() for number in left.tolist()):
                return False
    return True


@dataclass(frozen=True)
class IndexFacts:
    """What an index was when it was calibrated.

    Attributes:
        embedder: its name; "" without one.
        fingerprint: of the embedder.
        units: how many.
        documents: ids, of larger collections a thousand.
    """

    embedder: str = ""
    fingerprint: str = ""
    units: int = 0
    documents: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Enough:
    """The thresholds of an index, and what they promise.

    The promise is of the mean over questions like those that were labelled, whose answers are in the documents; it is
    none of a single question, and none of questions of another kind.

    Attributes:
        miss: the share of questions whose evidence is not all in the passages, at most.
        refuse: the share of questions that are called unrelated, at most.
        level: of the units that are shown.
        least: a question of less presence is unrelated.
        questions: how many were labelled.
        tokens: of the units shown for them, in the mean.
        behind: whether the level is of passages behind another retriever's hits.
        repeated: questions that another document answers in the same words, and that document; see `Needs`.
        presences: of the labelled questions.
        index: what was calibrated.
    """

    miss: float
    refuse: float
    level: float
    least: float
    questions: int
    tokens: float
    behind: bool = False
    repeated: Mapping[str, str] = field(default_factory=dict)
    presences: tuple[float, ...] = ()
    index: IndexFacts = IndexFacts()

    def __post_init__(self) -> None:
        check_number("miss", self.miss, 0, 1, whole=False)
        check_number("refuse", self.refuse, 0, 1, whole=False)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, values: object) -> Enough | None:
        """What a manifest has; None if it has none. Raises `DataError`: it is damaged."""
        if values is None:
            return None
        try:
            read = cls(**values)  # type: ignore[arg-type]
            facts: Any = read.index
            index = IndexFacts(**{**facts, "documents": tuple(facts["documents"])})
            return replace(read, presences=tuple(read.presences), index=index)
        except (TypeError, ValueError, KeyError) as error:
            raise DataError(f"the calibration of the index cannot be read: {error}") from error
