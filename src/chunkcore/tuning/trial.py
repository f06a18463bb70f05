"""`Trial`: one configuration and what came of it, question by question; and how it is run."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from chunkcore.chunkers.base import Chunker
from chunkcore.errors import DataError
from chunkcore.evaluation.benchmark import Benchmark
from chunkcore.evaluation.experiment import run_chunkers
from chunkcore.evaluation.measures import as_measure
from chunkcore.evaluation.results import ChunkStatistics, Scores
from chunkcore.models.base import Embedder
from chunkcore.progress import Progress
from chunkcore.tuning.options import TuneOptions

__all__ = ["Trial", "run_trial"]

_NOTHING = np.empty(0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """A configuration that was tried.

    Attributes:
        number: from 0, in the order in which they were tried; the baseline's is -1.
        origin: "baseline", "default", "random", or "fold 2" where it was proposed from the scores of all questions
            but those of fold 2.
        spec: the configuration, as `parse_chunker` reads it.
        branch: of the search space; "" of the baseline.
        drawn: what was drawn for each of the branch's parameters.
        scores: the measure's, of each question; float64, shape (queries,).
        tokens: retrieved, of each question; NaN where the measure looks at no ranking.
        embedded: tokens that the embedder reads of all distinct texts: chunks, and what a strategy embeds to find
            them (`Cost.embedded_tokens`), kept from before or not. Where it does not tell its tokens, the chunks' by
            the scores' counter.
        asked: tokens of language models, of questions and answers, as estimated beforehand.
        chunks: how many.
        seconds: cutting and embedding; little where the embeddings were kept from before.
        failure: why there are no scores; "" where there are.
    """

    number: int
    origin: str
    spec: str
    branch: str = ""
    drawn: Mapping[str, Any] = field(default_factory=dict)
    scores: Scores = field(default_factory=lambda: _NOTHING)
    tokens: Scores = field(default_factory=lambda: _NOTHING)
    embedded: int = 0
    asked: int = 0
    chunks: int = 0
    seconds: float = 0.0
    failure: str = ""

    @property
    def cost(self) -> int:
        """Tokens that models read or write to cut and index the documents once."""
        return self.embedded + self.asked

    @property
    def quality(self) -> float:
        """The mean of the scores; NaN where there is none."""
        return _mean(self.scores)

    @property
    def mean_tokens(self) -> float:
        """Retrieved tokens per question; NaN where the measure looks at no ranking."""
        return _mean(self.tokens)

    @property
    def fold(self) -> int | None:
        """The fold whose scores had no part in proposing it; None where no scores had."""
        return int(self.origin[5:]) if self.origin.startswith("fold ") else None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, NaN as null; `from_dict` is its inverse."""
        told = {name: getattr(self, name) for name in _PLAIN}
        return told | {
            "drawn": dict(self.drawn),
            "scores": _nulls(self.scores),
            "tokens": _nulls(self.tokens),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], queries: int) -> Trial:
        """The trial that `to_dict` described, of so many questions.

        Raises:
            DataError: a part is missing or of the wrong kind.
        """
        found = {name: data.get(name) for name in _PLAIN}
        for name, value in found.items():
            if not _is_plain(value, _PLAIN[name]):
                raise DataError(f"{name} is {_KINDS[_PLAIN[name]]}, got {json.dumps(value)[:60]}")
        drawn = data.get("drawn")
        if not isinstance(drawn, dict) or not all(_is_plain(each, float) for each in drawn.values()):
            raise DataError(f"drawn is an object of numbers, got {json.dumps(drawn)[:60]}")
        if not str(found["origin"]).replace("fold ", "", 1).isdecimal() and found["origin"] not in _ORIGINS:
            raise DataError(f"origin is one of {', '.join(_ORIGINS)} or a fold, got {found['origin']!r}")
        size = 0 if found["failure"] else queries
        return cls(
            drawn=drawn,
            scores=_floats(data, "scores", size),
            tokens=_floats(data, "tokens", size),
            **found,  # type: ignore[arg-type]
        )


_ORIGINS = ("baseline", "default", "random")
_PLAIN: dict[str, type] = {
    "number": int,
    "origin": str,
    "spec": str,
    "branch": str,
    "embedded": int,
    "asked": int,
    "chunks": int,
    "seconds": float,
    "failure": str,
}


def run_trial(
    trial: Trial,
    chunker: Chunker,
    benchmark: Benchmark,
    embedder: Embedder,
    options: TuneOptions,
    progress: Progress | None = None,
) -> Trial:
    """The trial with what came of its configuration.

    Raises:
        ChunkcoreError: whatever `run_chunkers` raises.
    """
    measure = as_measure(options.measure)
    (report,) = run_chunkers(
        benchmark,
        [chunker],
        embedder,
        # A measure without a depth looks at as many chunks as the deepest of the others.
        ks=(10,) if measure.k is None else (measure.k,),
        measures=[measure],
        counter=options.counter,
        retrievers=[options.retriever],
        progress=progress,
    )
    nothing = np.full(len(benchmark.queries), math.nan)
    embedded = report.cost.embedded_tokens if report.cost else None
    chunks = report.chunks or ChunkStatistics(np.empty(0, dtype=np.int64))
    return replace(
        trial,
        scores=report.values(measure),
        tokens=nothing if measure.k is None else report.retrieved_tokens[measure.k],
        embedded=chunks.total if embedded is None else embedded,
        chunks=chunks.count,
        seconds=report.seconds.get("chunk", 0.0) + report.seconds.get("embed", 0.0),
    )


_KINDS = {int: "a whole number", float: "a number", str: "a string"}
_LARGEST = 2.0**53


def _is_plain(value: Any, kind: type) -> bool:
    """Whether it is a string, or a number that a float holds; a whole one may stand for one that need not be."""
    if kind is str:
        return isinstance(value, str)
    return type(value) in ((int,) if kind is int else (int, float)) and -_LARGEST < value < _LARGEST


def _mean(values: Scores) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


def _nulls(values: Scores) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]


def _floats(data: Mapping[str, Any], name: str, size: int) -> Scores:
    values = data.get(name)
    if not isinstance(values, list) or len(values) != size:
        raise DataError(f"{name} is a list of {size} numbers, got {json.dumps(values)[:60]}")
    if not all(value is None or _is_plain(value, float) for value in values):
        raise DataError(f"{name} holds numbers and nulls alone, got {json.dumps(values)[:60]}")
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)
