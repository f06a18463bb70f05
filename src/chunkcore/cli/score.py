"""``chunkcore score``: what other systems retrieved, scored and compared with each other."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from chunkcore.cli import flags
from chunkcore.cli.gate import read_gate
from chunkcore.cli.inputs import check_output, clusters_by, depths_and_measure, read_benchmark
from chunkcore.cli.progress import reporting
from chunkcore.cli.wording import help_text

if TYPE_CHECKING:
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark
    from chunkcore.evaluation.measures import Depth, Measure
    from chunkcore.evaluation.scoring import MinRule
    from chunkcore.run import Run

__all__ = ["HELP", "score"]

HELP = help_text(
    """Score what any system retrieved, and compare systems: a run file each.

A run is TREC's six columns, "query_id Q0 id rank score tag", or JSON lines (named .jsonl), a hit a line:
{"query_id", "document_id", "spans", "score"}, with pairs of offsets in code points, or {"query_id", "text"}, which is
sought in the documents. Hits stand best first.

The ids of TREC's columns are those of chunks, in a file that chunkcore chunk writes, given by --chunks; or those of
documents. --chunks is given once for all runs, or once a run, in their order; with it, k = min and PrecisionOmega are
known, too. "chunkcore compare --save-runs" writes such files.

  chunkcore score --run bm25.trec --run ours.trec --chunks chunks.jsonl --docs docs/ --questions questions.jsonl

  chunkcore score --run ours.jsonl --docs docs/ --questions questions.jsonl -k 5 --measure nDCG@10[document]

Prints and writes what chunkcore compare does, and takes --require and --baseline as it does. docs/retrievers.md tells
of the formats.
"""
)


def score(
    runs: Annotated[list[Path], typer.Option("--run", help="A run file, named .jsonl or else of TREC's columns.")],
    chunks: Annotated[
        list[Path] | None, typer.Option(help="The chunks that runs name: one file for all, or one a run.")
    ] = None,
    docs: flags.Docs = None,
    questions: flags.Questions = None,
    layout: flags.Layout = "auto",
    dataset: flags.Dataset = "lochmere",
    k: Annotated[
        list[str] | None,
        typer.Option("--k", "-k", help="How much to look at: pieces, min, or 4096tok; once a value. Default: 5, 10."),
    ] = None,
    measure: Annotated[
        str, typer.Option(help="What the verdict is about, such as nDCG@10. Default: Recall at the first k.")
    ] = "",
    require: Annotated[
        list[str] | None,
        typer.Option("--require", help="Fail where each run's score is surely below, as HitRate@5>=0.70."),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="An earlier report.json; fail where a run is surely worse than there.")
    ] = None,
    min_rule: flags.MinimumRule = "holding",
    counter: flags.Counter = "cl100k_base",
    margin: flags.Margin = 2.0,
    by: flags.ResampledBy = "question",
    seed: flags.Seed = 0,
    resamples: flags.Resamples = 10_000,
    output: flags.OutputFolder = Path("chunkcore-report"),
) -> None:
    """Score what any system retrieved, and compare systems."""
    from rich.console import Console

    from chunkcore.escaping import terminal_text
    from chunkcore.evaluation.scoring import Scorer
    from chunkcore.evaluation.statistics.comparison import compare as compare_reports
    from chunkcore.report import ReportPage, write_report
    from chunkcore.report.terminal import print_report

    ks, verdict_by = depths_and_measure(k or [], measure, default=("5", "10"))
    gate = read_gate(require or [], baseline)
    check_output(output)
    names = _names(runs)
    gate.check_names(names)
    benchmark = read_benchmark(docs, questions, dataset, output, layout)
    clusters = clusters_by(benchmark, by)
    scorer = Scorer(benchmark, counter=counter, min_rule=cast("MinRule", min_rule))
    with reporting(sys.stderr) as progress:
        found = []
        for number, run in enumerate(_read(runs, names, chunks or [], benchmark)):
            progress("score", number, len(runs))
            found.append(scorer.score(run, _measures(run, (*ks, *gate.ks), (verdict_by, *gate.measures))))
        progress("score", len(runs), len(runs))
        comparison = compare_reports(
            found, verdict_by, resamples=resamples, seed=seed, margin=margin / 100, clusters=clusters
        )
        today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        settings = {
            "Documents": str(docs) if docs else f"shipped: {benchmark.name}",
            **({"Questions": str(questions)} if questions else {}),
            "Scores count tokens of": counter,
            **{name: str(path) for name, path in zip(names, runs, strict=True)},
        }
        study = ReportPage(comparison, benchmark, settings, today)
        files = write_report(study, output)
        checks = gate.checks(found, verdict_by, resamples=resamples, seed=seed)
    print_report(study, Console(highlight=False))
    for check in checks:
        typer.echo(f"\n{terminal_text(check.sentence)}")
    typer.echo(f"\n{files.html}")
    if any(check.failed for check in checks):
        raise typer.Exit(1)


def _names(runs: Sequence[Path]) -> list[str]:
    """What the report calls the runs: their files' names without the ending, or the paths where two are the same."""
    from chunkcore.errors import OptionError

    if len(set(runs)) < len(runs):
        repeated = next(path for number, path in enumerate(runs) if path in runs[:number])
        raise OptionError(f"--run {repeated} is given twice: give each run once")
    stems = [path.name.removesuffix(path.suffix) for path in runs]
    return stems if len(set(stems)) == len(stems) else [path.as_posix() for path in runs]


def _read(paths: Sequence[Path], names: Sequence[str], chunks: Sequence[Path], benchmark: Benchmark) -> list[Run]:
    """The runs, each with its chunks.

    Raises:
        OptionError: there are several files of chunks, and not one a run.
        DataError: a file cannot be read, or a line of it is wrong.
    """
    from chunkcore.errors import OptionError
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


def _measures(run: Run, ks: Sequence[Depth], others: Sequence[Measure]) -> list[Measure]:
    """What is scored of a run: PrecisionOmega only where it has a pool."""
    from chunkcore.evaluation.measures import measures_at

    usual = [each for each in measures_at(tuple(dict.fromkeys(ks))) if run.pool is not None or each.k is not None]
    return list(dict.fromkeys([*usual, *others]))
