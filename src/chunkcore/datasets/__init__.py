"""The dataset that ships with the package: a demonstration and a fixture, not a benchmark.

Its documents and questions were written for this project about an invented place, Lochmere. It is small: differences
between chunkers on it say little about your data.
"""

from __future__ import annotations

from pathlib import Path

from chunkcore.errors import DataError, OptionError, echo
from chunkcore.evaluation.benchmarks import load_benchmark
from chunkcore.evaluation.benchmarks.benchmark import Benchmark

# The shipped datasets with their descriptions.
DATASETS = {
    "lochmere": "12 invented documents (manual, API reference, contract, minutes, chat, German, Japanese, ...) "
    "and 90 questions with verbatim evidence; a demonstration, not a benchmark",
}


def dataset_path(name: str = "lochmere") -> Path:
    """The folder of a shipped dataset: ``documents/`` and ``questions.jsonl``. Raises `OptionError`: there is none.

    >>> (dataset_path("lochmere") / "questions.jsonl").is_file()
    True
    """
    if not isinstance(name, str) or name not in DATASETS:
        known, yours = ", ".join(DATASETS), "load_benchmark(documents, questions)"
        raise OptionError(f"no collection {echo(name)} ships, only {known}; yours: {yours}")
    return Path(__file__).resolve().parent / name


def load_dataset(name: str = "lochmere") -> Benchmark:
    """A shipped dataset. A query's `collection` is the kind of the document that answers it.

    Raises:
        OptionError: no dataset has this name.
        DataError: its files were changed.

    >>> loaded = load_dataset("lochmere")
    >>> len(loaded.documents), len(loaded.queries), loaded.problems
    (12, 90, ())
    """
    folder = dataset_path(name)
    loaded = load_benchmark(folder, name=name)
    if loaded.problems:
        first = loaded.problems[0]
        raise DataError(
            f"the collection {name} in {folder} is not as it was shipped: {len(loaded.problems)} of its questions "
            f"cannot be used, {first.query_id!r} first ({first.reason}); install the package again"
        )
    return loaded
