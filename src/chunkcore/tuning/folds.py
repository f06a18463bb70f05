"""Which questions are held out together."""

from __future__ import annotations

from collections import Counter
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import OptionError
from chunkcore.evaluation.benchmark import Benchmark
from chunkcore.evaluation.clusters import question_documents

__all__ = ["By", "assign_folds"]

By = Literal["question", "document"]


def assign_folds(benchmark: Benchmark, folds: int, *, by: By = "question", seed: int = 0) -> NDArray[np.int64]:
    """Each question's fold, from 0: int64, shape (queries,).

    Args:
        benchmark: the questions.
        folds: how many parts.
        by: "question" deals the shuffled questions out in turn; "document" keeps the questions about one document
            (that of their first evidence) together, the documents with the most questions dealt first, each
            to the fold with the fewest.
        seed: of the shuffling.

    Raises:
        OptionError: fewer than two folds, or more than there are questions or documents with questions.

    >>> from chunkcore.datasets import load_dataset
    >>> np.bincount(assign_folds(load_dataset("lochmere"), 5)).tolist()
    [18, 18, 18, 18, 18]
    """
    if by not in get_args(By):
        raise OptionError(f"by is question or document, got {by!r}")
    documents = question_documents(benchmark)
    owners = [documents[query.id] for query in benchmark.queries] if by == "document" else range(len(documents))
    units = list(dict.fromkeys(owners))
    if not 2 <= folds <= len(units):
        raise OptionError(
            f"folds is at least 2 and at most the number of {by}s that are asked about ({len(units)}), got {folds}"
        )
    shuffled = [units[place] for place in np.random.default_rng(seed).permutation(len(units))]
    sizes = Counter(owners)
    loads = [0] * folds
    fold_of = {}
    for unit in sorted(shuffled, key=lambda unit: -sizes[unit]):
        fold_of[unit] = loads.index(min(loads))
        loads[fold_of[unit]] += sizes[unit]
    return np.array([fold_of[owner] for owner in owners], dtype=np.int64)
