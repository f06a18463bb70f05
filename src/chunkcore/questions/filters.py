"""Two filters on what a model wrote: questions that were asked already, and excerpts that have nothing to do with them.

Both as in the section "Dataset Prefiltering" of the Chroma report, by cosine. The report set its thresholds by hand,
reading pairs; here they are proposed from the data, by what is known to be no duplicate and no relevant excerpt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import OptionError
from chunkcore.evaluation.benchmarks.benchmark import Evidence
from chunkcore.models import Embedder, embed

__all__ = ["Dropped", "FilterThresholds", "Filtered", "Similarities", "Threshold", "filter_questions"]

Floats = NDArray[np.float64]
Threshold = float | Literal["propose"] | None

_ENOUGH = 20  # questions; of fewer no threshold can be told
_NEAREST = 95  # percentile


@dataclass(frozen=True, kw_only=True)
class FilterThresholds:
    """Cosines; "propose" takes them from the data, None leaves a filter out.

    Attributes:
        duplicate: of two questions that are more alike the later one is dropped.
        relevance: a question with an excerpt that is less like it is dropped.

    Raises:
        OptionError: a threshold is neither a cosine, nor "propose", nor None.
    """

    duplicate: Threshold = "propose"
    relevance: Threshold = "propose"

    def __post_init__(self) -> None:
        for name, value in (("duplicate", self.duplicate), ("relevance", self.relevance)):
            if isinstance(value, str):
                good = value == "propose"
            else:
                good = value is None or (not isinstance(value, bool) and -1 <= value <= 1)
            if not good:
                raise OptionError(f"the {name} threshold is a cosine from -1 to 1, propose, or none; got {value!r}")


@dataclass(frozen=True, slots=True)
class Dropped:
    """A question that a filter dropped, by its place, and why."""

    index: int
    stage: Literal["duplicate", "relevance"]
    reason: str


@dataclass(frozen=True, eq=False)
class Similarities:
    """Cosines of questions with each other, and with excerpts.

    Attributes:
        questions: of each pair, float64, shape (n, n).
        excerpts: of each question with each excerpt of all, float64, shape (n, m).
        own: which excerpts are the question's own, bool, shape (n, m).
        elsewhere: which excerpts share no character with the question's own, bool, shape (n, m).
        apart: which pairs of questions share no character of evidence, bool, shape (n, n).
    """

    questions: Floats
    excerpts: Floats
    own: NDArray[np.bool_]
    elsewhere: NDArray[np.bool_]
    apart: NDArray[np.bool_]

    @cached_property
    def least(self) -> Floats:
        """Of each question the cosine of the excerpt that is least like it."""
        least: Floats = np.where(self.own, self.excerpts, np.inf).min(axis=1)
        return least

    @cached_property
    def pairs(self) -> Floats:
        """The cosine of every two questions, once."""
        return self.questions[np.triu_indices(len(self.questions), 1)]

    def propose_duplicate(self) -> float | None:
        """Over which cosine two questions are the same.

        Questions whose evidence shares nothing are different ones. So of each question its likest among those is
        taken, and of these cosines the 95th percentile: what is more alike is more so than 19 of 20 questions are to
        the likest different one. None with fewer than 20 questions.
        """
        different = np.where(self.apart, self.questions, -np.inf)
        likest = different.max(axis=1, initial=-np.inf)
        likest = likest[np.isfinite(likest)]
        return float(np.percentile(likest, _NEAREST)) if len(likest) >= _ENOUGH else None

    def propose_relevance(self) -> float | None:
        """Under which cosine an excerpt has nothing to do with its question.

        The cosine that best tells a question's own excerpts from those of other questions: the one with the least
        sum of the share of own excerpts under it and of others over it (Youden's index). None with fewer than 20
        questions.

        Source: Youden, "Index for rating diagnostic tests", Cancer 3, 1950.
        """
        if len(self.questions) < _ENOUGH or not self.elsewhere.any():
            return None
        own = np.sort(self.excerpts[self.own])
        others = np.sort(self.excerpts[self.elsewhere])
        under = np.arange(len(own)) / len(own)  # of own excerpts, with each one's cosine as the threshold
        over = 1 - np.searchsorted(others, own, side="left") / len(others)
        return float(own[int(np.argmin(under + over))])


@dataclass(frozen=True, eq=False)
class Filtered:
    """What the filters did.

    Attributes:
        questions: all that were filtered.
        excerpts: of each question.
        similarities: that the filters went by.
        duplicate: the threshold; None where there was no filter.
        relevance: likewise.
        dropped: the questions, in order.
    """

    questions: Sequence[str]
    excerpts: Sequence[Sequence[str]]
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
    """Which questions to drop: first those with an excerpt that has nothing to do with them, then duplicates.

    Of duplicates the first one stays. O(n²) time and memory for n questions.

    Args:
        questions: their texts.
        evidence: of each question, where its excerpts stand.
        excerpts: of each question, what stands there.
        embedder: a question is a query to it, and an excerpt a document.
        thresholds: cosines, or how to find them.

    Raises:
        ModelError: the embedder failed.
    """
    found = _similarities(questions, evidence, excerpts, embedder)
    duplicate = found.propose_duplicate() if thresholds.duplicate == "propose" else _number(thresholds.duplicate)
    relevance = found.propose_relevance() if thresholds.relevance == "propose" else _number(thresholds.relevance)
    dropped: list[Dropped] = []
    kept: list[int] = []
    for index in range(len(questions)):
        least = float(found.least[index])
        if relevance is not None and least < relevance:
            reason = f"an excerpt has cosine {least:.3f} with the question, under {relevance:.3f}"
            dropped.append(Dropped(index, "relevance", reason))
            continue
        likest = max(kept, key=lambda other: found.questions[index, other], default=None)
        if duplicate is not None and likest is not None and found.questions[index, likest] > duplicate:
            cosine = float(found.questions[index, likest])
            reason = f"it has cosine {cosine:.3f}, over {duplicate:.3f}, with the question {questions[likest]!r}"
            dropped.append(Dropped(index, "duplicate", reason))
            continue
        kept.append(index)
    return Filtered(questions, excerpts, found, duplicate, relevance, tuple(dropped))


def _number(given: float | str | None) -> float | None:
    return None if given is None else float(given)


def _similarities(
    questions: Sequence[str],
    evidence: Sequence[Sequence[Evidence]],
    excerpts: Sequence[Sequence[str]],
    embedder: Embedder,
) -> Similarities:
    asked = _directions(embedder, questions, queries=True)
    flat = _directions(embedder, [each for several in excerpts for each in several], queries=False)
    owners = np.repeat(np.arange(len(questions)), [len(several) for several in excerpts])
    own = owners[None, :] == np.arange(len(questions))[:, None]
    shared = _overlapping(evidence)
    apart = np.ones((len(questions), len(questions)), dtype=bool)
    for index, row in enumerate(shared):
        apart[index, owners[row]] = False
    return Similarities(asked @ asked.T, asked @ flat.T, own, ~shared & ~own, apart & apart.T)


def _directions(embedder: Embedder, texts: Sequence[str], *, queries: bool) -> Floats:
    """Unit vectors: float64, shape (len(texts), dimensions)."""
    vectors = embed(embedder, texts, queries=queries).astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1.0)


def _overlapping(evidence: Sequence[Sequence[Evidence]]) -> NDArray[np.bool_]:
    """Which excerpts share a character with any of a question's: bool, shape (questions, excerpts)."""
    flat = [each for several in evidence for each in several]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(each.document_id for each in flat))}
    documents = np.array([numbers[each.document_id] for each in flat])
    starts = np.array([each.span.start for each in flat])
    ends = np.array([each.span.end for each in flat])
    shared = np.zeros((len(evidence), len(flat)), dtype=bool)
    for index, several in enumerate(evidence):
        for each in several:
            shared[index] |= (
                (documents == numbers[each.document_id]) & (starts < each.span.end) & (ends > each.span.start)
            )
    return shared
