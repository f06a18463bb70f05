"""Two cosine filters on generated questions: duplicates, and questions whose excerpts do not fit.

Both follow the Chroma report, "Dataset Prefiltering". The report set its thresholds by hand; here the data propose
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import OptionError, echo
from chunkcore.evaluation.benchmarks.benchmark import Evidence
from chunkcore.evaluation.counting import meeting_pairs
from chunkcore.models import Embedder, embed
from chunkcore.spans import Numbers, as_ranges

Floats = NDArray[np.float64]
Threshold = float | Literal["propose"] | None

_ENOUGH = 20  # questions; fewer give no threshold
_NEAREST = 95  # percentile


@dataclass(frozen=True, kw_only=True)
class FilterThresholds:
    """Cosines; "propose" takes them from the data, None disables a filter.

    Attributes:
        duplicate: of two questions more alike than this, the later is dropped.
        relevance: a question with an excerpt less like it than this is dropped.
    """

    duplicate: Threshold = "propose"
    relevance: Threshold = "propose"

    def __post_init__(self) -> None:
        for name, value in (("duplicate", self.duplicate), ("relevance", self.relevance)):
            is_cosine = isinstance(value, Real) and not isinstance(value, bool) and -1 <= value <= 1
            if not (value is None or value == "propose" or is_cosine):
                raise OptionError(f"the {name} threshold is a cosine from -1 to 1, propose, or none; got {echo(value)}")


@dataclass(frozen=True, slots=True)
class Dropped:
    """A dropped question's place, and why."""

    index: int
    stage: Literal["duplicate", "relevance"]
    reason: str


@dataclass(frozen=True, eq=False)
class Similarities:
    """Cosines of n questions with each other and with all m excerpts."""

    questions: Floats  # (n, n)
    excerpts: Floats  # (n, m)
    is_answer: NDArray[np.bool_]  # (n, m): which excerpts belong to the question
    elsewhere: NDArray[np.bool_]  # (n, m): which excerpts share no character with the question's
    apart: NDArray[np.bool_]  # (n, n): which questions share no character of evidence

    @cached_property
    def least(self) -> Floats:
        """For each question, the cosine of its least similar excerpt."""
        least: Floats = np.where(self.is_answer, self.excerpts, np.inf).min(axis=1)
        return least

    def propose_duplicate(self) -> float | None:
        """The cosine over which two questions are duplicates; None with fewer than 20 questions.

        The 95th percentile, over questions, of the cosine with the most similar question of disjoint evidence.
        """
        likest = np.where(self.apart, self.questions, -np.inf).max(axis=1, initial=-np.inf)
        likest = likest[np.isfinite(likest)]
        return float(np.percentile(likest, _NEAREST)) if len(likest) >= _ENOUGH else None

    def propose_relevance(self) -> float | None:
        """The cosine under which an excerpt is unrelated to its question; None with fewer than 20 questions.

        It minimises the share of a question's excerpts under it plus the share of other questions' excerpts over it
        (Youden, "Index for rating diagnostic tests", Cancer 3, 1950).
        """
        if len(self.questions) < _ENOUGH or not self.elsewhere.any():
            return None
        answers = np.sort(self.excerpts[self.is_answer])
        others = np.sort(self.excerpts[self.elsewhere])
        under = np.arange(len(answers)) / len(answers)
        over = 1 - np.searchsorted(others, answers, side="left") / len(others)
        return float(answers[int(np.argmin(under + over))])


@dataclass(frozen=True, eq=False)
class Filtered:
    """What the filters did: the cosines, the thresholds (None without a filter), and the dropped questions in order."""

    similarities: Similarities
    duplicate: float | None
    relevance: float | None
    dropped: tuple[Dropped, ...]


def filter_questions(
    questions: Sequence[str],
    evidence: Sequence[Sequence[Evidence]],
    excerpts: Sequence[Sequence[str]],
    embedder: Embedder,
    thresholds: FilterThresholds,
) -> Filtered:
    """Questions to drop: first those with an unrelated excerpt, then duplicates, of which the first stays.

    `evidence` and `excerpts` hold each question's places and texts. Questions are embedded as queries, excerpts as
    documents. O(n²) time and memory for n questions.
    """
    similarities = _similarities(questions, evidence, excerpts, embedder)
    duplicate = similarities.propose_duplicate() if thresholds.duplicate == "propose" else thresholds.duplicate
    relevance = similarities.propose_relevance() if thresholds.relevance == "propose" else thresholds.relevance
    dropped: list[Dropped] = []
    kept: list[int] = []
    for index, cosines in enumerate(similarities.questions):
        least = float(similarities.least[index])
        likest = max(kept, key=cosines.__getitem__, default=None)
        if relevance is not None and least < relevance:
            reason = f"an excerpt has cosine {least:.3f} with the question, under {relevance:.3f}"
            dropped.append(Dropped(index, "relevance", reason))
        elif duplicate is not None and likest is not None and cosines[likest] > duplicate:
            cosine = f"cosine {cosines[likest]:.3f}, over {duplicate:.3f}"
            dropped.append(Dropped(index, "duplicate", f"it has {cosine}, with the question {questions[likest]!r}"))
        else:
            kept.append(index)
    used = [None if threshold is None else float(threshold) for threshold in (duplicate, relevance)]
    return Filtered(similarities, used[0], used[1], tuple(dropped))


def _similarities(
    questions: Sequence[str],
    evidence: Sequence[Sequence[Evidence]],
    excerpts: Sequence[Sequence[str]],
    embedder: Embedder,
) -> Similarities:
    queries = directions(embedder, questions, queries=True)
    answers = directions(embedder, [text for texts in excerpts for text in texts])
    owners = np.repeat(np.arange(len(questions)), list(map(len, excerpts)))
    is_answer = owners[None, :] == np.arange(len(questions))[:, None]
    shared = _overlapping(evidence, owners)
    apart = np.ones((len(questions), len(questions)), dtype=bool)
    for index, row in enumerate(shared):
        apart[index, owners[row]] = False
    return Similarities(queries @ queries.T, queries @ answers.T, is_answer, ~shared & ~is_answer, apart & apart.T)


def directions(embedder: Embedder, texts: Sequence[str], *, queries: bool = False) -> Floats:
    """The texts' vectors of length 1, float64; an all-zero vector stays."""
    vectors = embed(embedder, texts, queries=queries).astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1.0)


def _overlapping(evidence: Sequence[Sequence[Evidence]], owners: Numbers) -> NDArray[np.bool_]:
    """Which of all pieces of evidence share a character with those of each question: shape (questions, pieces)."""
    pieces = [piece for several in evidence for piece in several]
    far = max((piece.span.end for piece in pieces), default=0)
    bases = {name: number * far for number, name in enumerate(dict.fromkeys(piece.document_id for piece in pieces))}
    shifts = np.array([bases[piece.document_id] for piece in pieces], dtype=np.int64)
    places = as_ranges([piece.span for piece in pieces]) + shifts[:, None]
    shared = np.zeros((len(evidence), len(pieces)), dtype=bool)
    one, other = meeting_pairs(places, places)
    shared[owners[one], other] = True
    return shared
