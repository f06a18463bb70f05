"""`ask_each`: one question after another, of a system that may fail at some."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

from chunkcore.errors import echo
from chunkcore.evaluation.benchmarks.benchmark import Query
from chunkcore.run import Retrieved, Run

_HOPELESS = 10  # questions: if so many fail and none was answered, the system does not work


def ask_each(
    questions: Sequence[Query], ask: Callable[[Query], Sequence[Retrieved]], name: str
) -> Run:
    """The run of the questions that were answered; `Run.failures` says why the others were not.

    Raises what `ask` raised, if no question was answered. Warns if some failed.
    """
    results: dict[str, Sequence[Retrieved]] = {}
    failures: dict[str, str] = {}
    for query in questions:
        try:
            results[query.id] = ask(query)
        except Exception as error:
            failures[query.id] = f"{type(error).__name__}: {error}"
            hopeless = len(failures) == min(_HOPELESS, len(questions))
            if hopeless and not results:
                raise
    if failures:
        first, reason = next(iter(failures.items()))
        warnings.warn(
            f"{name} failed at {len(failures):,} of {len(questions):,} questions, which count as unanswered; "
            f"the first is {echo(first)} ({reason})",
            stacklevel=3,
        )
    return Run(name, results, failures=failures)
