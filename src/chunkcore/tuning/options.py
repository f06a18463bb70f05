"""`TuneOptions`: how to search."""

from __future__ import annotations

import math
from dataclasses import dataclass

from chunkcore.chunkers.spec import parse_chunker
from chunkcore.errors import OptionError
from chunkcore.evaluation.measures import Measure, as_measure
from chunkcore.retrieval import get_search
from chunkcore.tokens import TokenCounter, get_counter
from chunkcore.tuning.folds import By

__all__ = ["TuneOptions"]


@dataclass(frozen=True, kw_only=True)
class TuneOptions:
    """How to search, and how to say what was found.

    Attributes:
        trials: how many configurations are tried, the baseline not counted.
        timeout: seconds after which no new one is begun; None for no such limit.
        seed: of the proposals, the folds and the bootstrap.
        folds: how many parts the questions are held out in.
        by: what is held out together, and resampled: "question", or "document" with all its questions.
        measure: what is to be high. At a budget of retrieved tokens, such as ``Recall@1000tok``, chunks of all sizes
            are compared fairly; at a number of chunks, retrieved tokens are to be low, too.
        counter: whose tokens are scored.
        retriever: how the chunks are searched, as `run_chunkers` takes it: "dense", "bm25", "hybrid" and others.
        baseline: what the choice is compared with, as `parse_chunker` reads it.
        margin: how much of the measure is given away for fewer retrieved tokens, and then for a lower cost.
        resamples: of the bootstrap.
        llm_tokens: what language models may read and write in all, by the strategies' own estimates; strategies that
            ask one are not tried without it.

    Raises:
        OptionError: an option is out of range.
    """

    trials: int = 60
    timeout: float | None = None
    seed: int = 0
    folds: int = 5
    by: By = "question"
    measure: Measure | str = "Recall@1000tok"
    counter: TokenCounter | str = "cl100k_base"
    retriever: str = "dense"
    baseline: str = "recursive:size=200"
    margin: float = 0.0
    resamples: int = 10_000
    llm_tokens: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "measure", as_measure(self.measure))
        object.__setattr__(self, "counter", get_counter(self.counter))
        parse_chunker(self.baseline)
        get_search(self.retriever)
        for name, least in (("trials", 1), ("seed", 0), ("folds", 2), ("resamples", 100)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise OptionError(f"{name} is a whole number from {least} on, got {value!r}")
        if self.timeout is not None and not self.timeout > 0:
            raise OptionError(f"timeout is over 0 seconds, got {self.timeout!r}")
        if not 0 <= self.margin < math.inf:
            raise OptionError(f"margin is at least 0, in the measure's unit, got {self.margin!r}")
        if self.llm_tokens is not None and self.llm_tokens < 0:
            raise OptionError(f"llm_tokens is at least 0, got {self.llm_tokens!r}")
