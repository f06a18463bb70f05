"""What a run is scored by, built before the first question is asked: asking may take hours, and cost money."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chunkcore.datasets import load_dataset
from chunkcore.errors import OptionError
from chunkcore.evaluation.benchmark import Benchmark
from chunkcore.evaluation.measures import Depth, Measure, measures_at, retrieval_measures

__all__ = ["benchmark_of", "depth_measures", "measures_of"]


def benchmark_of(benchmark: Any) -> Benchmark:
    """The benchmark, or the collection of that name that ships with chunkcore.

    Raises:
        OptionError: there is no such collection, or it is neither.
    """
    if isinstance(benchmark, Benchmark):
        return benchmark
    if isinstance(benchmark, str):
        return load_dataset(benchmark)
    raise OptionError(f"expected a Benchmark or a collection's name, got {type(benchmark).__name__}")


def measures_of(measures: Sequence[Measure | str] | Measure | str) -> list[Measure]:
    """The measures; one alone counts as a list of it.

    Raises:
        OptionError: one is none, or is of answers; or there are none.

    >>> [str(each) for each in measures_of("Recall@5")]
    ['Recall@5']
    """
    found = retrieval_measures([measures] if isinstance(measures, Measure | str) else _listed("measures", measures))
    if not found:
        raise OptionError('measures is empty: expected some, such as ["Recall@5", "IoU@5"]')
    return found


def depth_measures(k: Depth | Sequence[Depth], *, pooled: bool) -> list[Measure]:
    """The usual measures at `k`; those that need a pool only where there is one.

    Raises:
        OptionError: a depth is none.
    """
    depths = [k] if isinstance(k, int | str) else _listed("k", k)
    return [each for each in measures_at(depths, ["token"]) if pooled or _needs_no_pool(each)]


def _listed(option: str, values: Any) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        raise OptionError(f"{option}: expected one or a list of them, got {type(values).__name__}") from None


def _needs_no_pool(measure: Measure) -> bool:
    return measure.name != "PrecisionOmega" and measure.k != "min"
