"""``chunkcore score``: what other systems retrieved, scored and compared with each other."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from chunkcore.cli import options, running
from chunkcore.errors import OptionError

if TYPE_CHECKING:
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark
    from chunkcore.evaluation.scoring import MinRule
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

    chunkcore score --run bm25.trec --run ours.trec --chunks chunks.jsonl --docs docs/ --questions questions.jsonl
    """
    from chunkcore.evaluation.measures import measures_at
    from chunkcore.evaluation.scoring import Scorer
    from chunkcore.report import write_report

    ks, verdict_by = scores.depths(("5", "10"))
    gate = scores.gate()
    options.check_output(output)
    depths = tuple(dict.fromkeys([*ks, *gate.ks]))
    names = _names(runs)
    gate.check_names(names)
    benchmark = data.benchmark(output)
    statistics.check(benchmark)
    scorer = Scorer(benchmark, counter=scores.counter, min_rule=cast("MinRule", scores.min_rule))
    with running.reporting(sys.stderr) as progress:
        reports = []
        for number, run in enumerate(_read(runs, names, chunks or [], benchmark)):
            progress("score", number, len(runs))
            # PrecisionOmega only of a run whose chunks are known.
            usual = [each for each in measures_at(depths) if run.pool is not None or each.k is not None]
            reports.append(scorer.score(run, list(dict.fromkeys([*usual, verdict_by, *gate.measures]))))
        progress("score", len(runs), len(runs))
        comparison = statistics.compare(reports, verdict_by)
        settings = {
            "Documents": data.docs or f"shipped: {benchmark.name}",
            "Questions": data.questions,
            "Scores count tokens of": scores.counter,
            **dict(zip(names, runs, strict=True)),
        }
        page = running.report_page(comparison, benchmark, settings)
        html = write_report(page, output).html
        checks = gate.checks(reports, verdict_by, resamples=statistics.resamples, seed=statistics.seed)
    running.finish(page, html, checks)


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
