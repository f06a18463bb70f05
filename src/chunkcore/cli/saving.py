"""``--save-runs``: what each system retrieved, for other programs and for ``chunkcore score``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark
    from chunkcore.evaluation.results import Report

__all__ = ["check_savable", "save_runs"]

_NO_FILE_NAME = re.compile(r"[^\w.=-]+")


def check_savable(benchmark: Benchmark) -> None:
    """Find out before the long work whether TREC's columns, which `save_runs` writes, can hold the queries' ids.

    Raises:
        OptionError: one has white space, or what cannot be printed.
    """
    from chunkcore.errors import OptionError
    from chunkcore.evaluation.run_files import is_column

    for query in benchmark.queries:
        if not is_column(query.id):
            raise OptionError(
                f"--save-runs writes TREC's columns, which are parted by spaces, and the question's id {query.id!r} "
                "cannot be one: rename it, or leave --save-runs out"
            )


def save_runs(reports: Sequence[Report], benchmark: Benchmark, folder: Path) -> list[Path]:
    """Write each report's run as JSON lines and in TREC's columns, and the chunks that they name.

    A system's files have one stem, its number and its name, and the endings ``.jsonl``, ``.trec`` and
    ``.chunks.jsonl``.

    Raises:
        DataError: a query's id has white space, which TREC's columns cannot hold.
        OSError: the folder cannot be written to.
    """
    from chunkcore.evaluation.run_files import write_pool, write_run

    digits = len(str(len(reports)))
    written = []
    for number, report in enumerate(reports, start=1):
        if report.run is None or report.run.pool is None:
            continue
        stem = f"{number:0{digits}}-{_NO_FILE_NAME.sub('_', report.name)[:80].strip('_')}"
        written += [
            write_run(report.run, folder / f"{stem}.jsonl", benchmark),
            write_run(report.run, folder / f"{stem}.trec"),
            write_pool(report.run.pool, folder / f"{stem}.chunks.jsonl", benchmark),
        ]
    return written
