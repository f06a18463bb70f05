"""``chunkcore score``: what other systems retrieved, scored and compared with each other."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chunkcore.cli import options, running
from chunkcore.errors import OptionError

if TYPE_CHECKING:
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark
    from chunkcore.run import Run


@options.grouped
def score(
    runs: Annotated[
        list[Path], typer.Option("--run", metavar="FILE", help="A run: JSON lines (.jsonl), else TREC; repeatable.")
    ],
    data: options.Data,
    scores: options.ScoringOptions,
    statistics: options.Statistics,
    chunks: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="The runs' chunks: one file for all, or one a run.")
    ] = None,
    output: options.Output = Path("chunkcore-report"),
) -> None:
    """Score what any system retrieved, and compare systems: a run file each (docs/guides/retrievers.md).

    chunkcore score docs/ --questions questions.jsonl --run bm25.trec --run ours.trec --chunks chunks.jsonl
    """
    from chunkcore.report import write_report

    settings = options.study_settings(statistics, scores)
    options.check_output(output)
    names = _names(runs)
    settings.gate.check_names(names)
    benchmark = data.benchmark(output)
    settings.check(benchmark)  # raises before the work
    with running.reporting(sys.stderr) as progress:
        facts = {
            **data.facts(benchmark),
            "Scores count tokens of": scores.counter,
            **dict(zip(names, map(str, runs), strict=True)),
        }
        page = settings.score_runs(_read(runs, names, chunks or [], benchmark), benchmark, facts, progress)
        html = write_report(page, output).html
    running.finish(page, html, settings.checks(page.comparison.reports))


def _names(runs: Sequence[Path]) -> list[str]:
    if len(set(runs)) < len(runs):
        repeated = next(path for number, path in enumerate(runs) if path in runs[:number])
        raise OptionError(f"--run {repeated} is given twice: give each run once")
    stems = [path.name.removesuffix(path.suffix) for path in runs]
    return stems if len(set(stems)) == len(stems) else [path.as_posix() for path in runs]


def _read(paths: Sequence[Path], names: Sequence[str], chunks: Sequence[Path], benchmark: Benchmark) -> list[Run]:
    from chunkcore.evaluation.alignment import Aligner
    from chunkcore.evaluation.run_files import read_run

    if len(chunks) not in (0, 1, len(paths)):
        raise OptionError(f"there are {len(paths)} runs and {len(chunks)} --chunks: give one for all, or one a run")
    own = list(chunks) if len(chunks) == len(paths) else [*chunks, None][:1] * len(paths)
    aligner = Aligner(benchmark.documents)
    return [
        read_run(path, benchmark, chunks=pool, name=name, aligner=aligner)
        for path, name, pool in zip(paths, names, own, strict=True)
    ]
