"""`Trial`: one configuration and what came of it, question by question; and how it is run."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from chunkcore.chunkers.base import Chunker
from chunkcore.errors import DataError
from chunkcore.evaluation.benchmark import Benchmark
from chunkcore.evaluation.experiment import run_chunkers
from chunkcore.evaluation.measures import Measure
from chunkcore.evaluation.results import Scores
from chunkcore.models.base import Embedder, TokenCountingEmbedder, Vectors, is_symmetric
from chunkcore.tokens import TokenCounter, get_counter

__all__ = ["CountedEmbedder", "Trial", "run_trial"]

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
        embedded: the embedder's tokens of all distinct texts that it was given: chunks, and what a strategy embeds to
            find them. Counted as the scores' tokens where the embedder does not tell its own.
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
            if type(value) is not _PLAIN[name] and not (_PLAIN[name] is float and type(value) is int):
                raise DataError(f"{name} is {_PLAIN[name].__name__}, got {value!r}")
        drawn = data.get("drawn")
        if not isinstance(drawn, dict) or not all(isinstance(each, int | float) for each in drawn.values()):
            raise DataError(f"drawn is an object of numbers, got {drawn!r}")
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
    embedder: CountedEmbedder,
    measure: Measure,
    counter: TokenCounter,
    progress: Callable[[str, int, int], None] | None = None,
) -> Trial:
    """The trial with what came of its configuration.

    Raises:
        ChunkcoreError: whatever `run_chunkers` raises.
    """
    embedder.given.clear()
    # A measure without a depth looks at as many chunks as the deepest of the others.
    ks = (10,) if measure.k is None else (measure.k,)
    (report,) = run_chunkers(
        benchmark, [chunker], embedder, ks=ks, measures=[measure], counter=counter, progress=progress
    )
    nothing = np.full(len(benchmark.queries), math.nan)
    return replace(
        trial,
        scores=report.values(measure),
        tokens=nothing if measure.k is None else report.retrieved_tokens[measure.k],
        embedded=embedder.tokens(counter),
        chunks=report.chunks.count if report.chunks else 0,
        seconds=report.seconds["chunk"] + report.seconds["embed"],
    )


class CountedEmbedder:
    """An embedder that remembers which documents it was given, whether or not they had been kept before.

    Attributes:
        embedder: the model, or the cache before it.
        given: every distinct text that was to be embedded as a document.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.name = embedder.name
        self.fingerprint = embedder.fingerprint
        self.max_tokens = embedder.max_tokens
        self.symmetric = is_symmetric(embedder)
        self.given: set[str] = set()
        if isinstance(embedder, TokenCountingEmbedder):
            self.count_tokens = embedder.count_tokens

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One row a text: float32, shape (len(texts), dimensions)."""
        self.given.update(texts)
        return self.embedder.embed_documents(texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """One row a query: float32, shape (len(texts), dimensions)."""
        return self.embedder.embed_queries(texts)

    def tokens(self, counter: TokenCounter | str) -> int:
        """Of all texts given: the model's own tokens where it tells them, else the counter's."""
        texts = sorted(self.given)
        if not texts:
            return 0
        counts = self.count_tokens(texts) if hasattr(self, "count_tokens") else get_counter(counter).count_many(texts)
        return int(np.sum(counts))


def _mean(values: Scores) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


def _nulls(values: Scores) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]


def _floats(data: Mapping[str, Any], name: str, size: int) -> Scores:
    values = data.get(name)
    if not isinstance(values, list) or len(values) != size:
        raise DataError(f"{name} is a list of {size} numbers, got {json.dumps(values)[:60]}")
    if not all(value is None or type(value) in (int, float) for value in values):
        raise DataError(f"{name} holds numbers and nulls alone, got {json.dumps(values)[:60]}")
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)
