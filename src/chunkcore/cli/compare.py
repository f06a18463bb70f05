"""``chunkcore compare``: documents and questions in, a table, a verdict and a report out."""

from __future__ import annotations

import datetime
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from chunkcore.cli import flags
from chunkcore.cli.building import build_chunkers
from chunkcore.cli.caching import default_cache
from chunkcore.cli.gate import read_gate
from chunkcore.cli.inputs import check_folder, check_output, clusters_by, depths_and_measure, read_benchmark
from chunkcore.cli.progress import reporting
from chunkcore.cli.saving import check_savable, save_runs
from chunkcore.cli.signals import going_on, told_when_stopped
from chunkcore.cli.spending import estimates, keeping, read_prices, used
from chunkcore.cli.stopping import StoppedError
from chunkcore.cli.wording import help_text

if TYPE_CHECKING:
    from chunkcore.chunkers.base import Chunker
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark
    from chunkcore.evaluation.results import Report
    from chunkcore.evaluation.scoring import MinRule
    from chunkcore.models import Embedder

__all__ = ["DEFAULT_STRATEGIES", "HELP", "compare", "default_cache"]

# Six that teach something: the plain cut; structure at half the size, at the size and with overlap; twice the size,
# which is more than the default model reads; and meaning.
DEFAULT_STRATEGIES = (
    "fixed_token:size=200",
    "recursive:size=100",
    "recursive:size=200",
    "recursive:size=200,overlap=100",
    "recursive:size=400",
    "cluster_semantic:max_size=200",
)


HELP = help_text(
    f"""Compare chunking strategies: which one retrieves the evidence, and at what cost.

Without --docs and --questions the small collection that ships with the package is used. --docs is a folder of
text files (or a documents.jsonl; images and other files without text are left out with a warning); --questions is
a file with a line like {{"question": "...", "evidence": ["a verbatim excerpt"]}} for each question.

Prints the table and the verdict, and writes report.html, report.md, report.json, scores.csv and questions.csv
into the output folder. The last line is the path of report.html.

A strategy without a size has one of 60 % of what the embedder reads, in its own tokens; its name says so.

Unless --strategy or --config is given, compares {", ".join(DEFAULT_STRATEGIES)}.

Embeddings are kept, so that a second run is quick, in {default_cache()} unless --cache names another file. Answers of
language models are kept in {default_cache()}; --dry-run tells beforehand what they take.

  chunkcore compare

  chunkcore compare --docs docs/ --questions questions.jsonl

  chunkcore compare -s recursive:size=200 -s fixed_token:size=200 -k 5 --measure IoU@5

  chunkcore compare --config strategies.yaml

  chunkcore compare -s recursive:size=100 -s recursive:size=400 -r dense -r bm25 -r hybrid --save-runs runs/

  chunkcore compare -s recursive:size=200 --require "HitRate@5>=0.70" --baseline earlier/report.json

With --require or --baseline the exit code is 1 where, and only where, the questions support that a score is below
what is required, or that it fell: where all of its 95 % interval is. docs/measures.md explains every measure.
"""
)


def compare(
    docs: flags.Docs = None,
    questions: flags.Questions = None,
    layout: flags.Layout = "auto",
    dataset: flags.Dataset = "lochmere",
    strategy: flags.Strategies = None,
    config: Annotated[Path | None, typer.Option(help="A YAML file of strategies, beside those given here.")] = None,
    embedder: Annotated[
        list[str] | None,
        typer.Option(
            "--embedder",
            "-e",
            help="A sentence-transformers model, by name or path; once a model. Default: all-MiniLM-L6-v2.",
        ),
    ] = None,
    retriever: Annotated[
        list[str] | None,
        typer.Option(
            "--retriever",
            "-r",
            help="dense, hnsw, bm25, hybrid, late, or one of them and +rerank; once a retriever. Default: dense.",
        ),
    ] = None,
    k: Annotated[
        list[str] | None,
        typer.Option(
            "--k", "-k", help="How much to retrieve: pieces, min, or 4096tok; once a value. Default: 5, 10, min."
        ),
    ] = None,
    measure: Annotated[
        str,
        typer.Option(help="What the verdict is about, such as IoU@10. Default: Recall at the first k."),
    ] = "",
    require: Annotated[
        list[str] | None,
        typer.Option("--require", help="Fail where each strategy's score is surely below, as HitRate@5>=0.70."),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="An earlier report.json; fail where a strategy is surely worse than there.")
    ] = None,
    min_rule: flags.MinimumRule = "holding",
    counter: flags.Counter = "cl100k_base",
    late: Annotated[
        bool, typer.Option("--late", help="Score each strategy also with late chunking: vectors in context.")
    ] = False,
    cache: flags.EmbeddingFile = None,
    no_cache: flags.NoCache = False,
    dry_run: flags.DryRun = False,
    input_price: flags.InputPrice = None,
    output_price: flags.OutputPrice = None,
    embed_price: Annotated[
        float | None, typer.Option(help="Of a million tokens that the embedder reads; 0 for one of your own.")
    ] = None,
    save_runs_to: Annotated[
        Path | None,
        typer.Option("--save-runs", help="A folder for what was retrieved: JSON lines, and TREC's columns."),
    ] = None,
    margin: flags.Margin = 2.0,
    by: flags.ResampledBy = "question",
    seed: flags.Seed = 0,
    resamples: flags.Resamples = 10_000,
    output: flags.OutputFolder = Path("chunkcore-report"),
) -> None:
    """Compare chunking strategies: which one retrieves the evidence, and at what cost."""
    from rich.console import Console

    from chunkcore.chunkers.configuration import sized_spec
    from chunkcore.chunkers.llm import LLMChunker
    from chunkcore.escaping import terminal_text
    from chunkcore.evaluation.experiment import run_experiment
    from chunkcore.evaluation.measures import measures_at
    from chunkcore.evaluation.results import Cost
    from chunkcore.evaluation.scoring import Scorer
    from chunkcore.evaluation.statistics.comparison import compare as compare_reports
    from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder, get_token_embedder
    from chunkcore.report import ReportPage, write_report
    from chunkcore.report.terminal import print_report

    ks, verdict_by = depths_and_measure(k or [], measure)
    gate = read_gate(require or [], baseline)
    prices = read_prices(input_price, output_price)
    Cost().priced(embedding=embed_price)  # raises before the work
    check_output(output)
    if save_runs_to is not None:
        check_folder(save_runs_to)
    retrievers = _retrievers(retriever or [], late)
    benchmark = read_benchmark(docs, questions, dataset, output, layout)
    if save_runs_to is not None:
        check_savable(benchmark)
    clusters = clusters_by(benchmark, by)
    given = _specs(strategy or [], config)
    store = EmbeddingCache(None if no_cache else cache or default_cache(), private=cache is None)
    models = [get_embedder(each) for each in embedder or ["all-MiniLM-L6-v2"]]
    # With several models a size is for the one that reads least, so that strategies stay the same.
    least = min(models, key=lambda model: model.max_tokens or math.inf)
    specs = [sized_spec(each, least) for each in given]
    if late:
        get_token_embedder(models[0])  # which says so if it cannot, before the long work
    if len(models) == len(retrievers) == 1:
        # A strategy is shown as it was asked for, so that a size is seen though it is the strategy's default.
        gate.check_names([*specs, *(f"{spec} (late)" for spec in specs if late)])
    chunkers = build_chunkers(specs, models[0])
    if dry_run:
        for line in estimates(dict(zip(specs, chunkers, strict=True)), benchmark.documents, prices):
            typer.echo(terminal_text(line))
        return
    answers = None if no_cache else default_cache()
    how_on = going_on(store.path, answers if any(isinstance(each, LLMChunker) for each in chunkers) else None)
    made: list[Chunker] = []

    def strategies(suffix: str, model: Embedder) -> dict[str, Chunker]:
        own = [keeping(chunker, answers) for chunker in build_chunkers(specs, model)]
        made.extend(own)
        return {f"{spec}{suffix}": chunker for spec, chunker in zip(specs, own, strict=True)}

    def keep(report: Report) -> None:
        cost = report.cost and report.cost.priced(embedding=embed_price, llm=prices)
        reports.append(replace(report, cost=cost))

    stopped = ""
    reports: list[Report] = []
    with reporting(sys.stderr) as progress, told_when_stopped(how_on):
        try:
            scorer = Scorer(benchmark, counter=counter, min_rule=cast("MinRule", min_rule))
            for lately in (False, True) if late else (False,):
                run_experiment(
                    scorer,
                    partial(strategies, " (late)" if lately else ""),
                    [CachedEmbedder(model, store) for model in models],
                    measures=[*measures_at(tuple(dict.fromkeys([*ks, *gate.ks]))), verdict_by, *gate.measures],
                    retrievers=["late"] if lately else retrievers,
                    progress=progress,
                    done=keep,
                )
        except KeyboardInterrupt:
            if not reports:
                raise
            stopped = f"stopped before the end; the report is of the first {len(reports):,} to be scored"
        progress("compare", 0, 1)
        comparison = compare_reports(
            reports, verdict_by, resamples=resamples, seed=seed, margin=margin / 100, clusters=clusters
        )
        described = dict(zip(specs, chunkers, strict=True))
        settings = _settings(benchmark, docs, questions, models, retrievers, described, counter)
        today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        study = ReportPage(comparison, benchmark, settings, today, stopped=stopped and f"{stopped.capitalize()}.")
        files = write_report(study, output)
        if save_runs_to is not None:
            save_runs(reports, benchmark, save_runs_to)
        checks = [] if stopped else gate.checks(reports, verdict_by, resamples=resamples, seed=seed)
        progress("compare", 1, 1)
    print_report(study, Console(highlight=False))
    for line in used(made, prices):
        typer.echo(f"\n{terminal_text(line)}")
    for check in checks:
        typer.echo(f"\n{terminal_text(check.sentence)}")
    typer.echo(f"\n{files.html}")
    if stopped:
        raise StoppedError(f"{stopped}; {how_on}")
    if any(check.failed for check in checks):
        raise typer.Exit(1)


def _specs(strategies: Sequence[str], config: Path | None) -> list[str]:
    """The strategies of the command line and of the file, or the default ones where there is neither.

    Raises:
        OptionError: the file describes something that is no strategy.
        DataError: it cannot be read.
    """
    given = [each.strip() for each in strategies]
    if config is not None:
        from chunkcore.chunkers.configuration import read_specs

        given += read_specs(config)
    return given or list(DEFAULT_STRATEGIES)


def _retrievers(specs: Sequence[str], late: bool) -> list[str]:
    """The ways of searching that are asked for.

    Raises:
        OptionError: one is malformed, or --late is given beside them.
    """
    from chunkcore.errors import OptionError
    from chunkcore.retrieval import get_retriever

    if specs and late:
        raise OptionError("--late and --retriever were both given: name late among the retrievers, --retriever late")
    return [get_retriever(spec).name for spec in specs] or ["dense"]


def _settings(
    benchmark: Benchmark,
    docs: Path | None,
    questions: Path | None,
    models: Sequence[Embedder],
    retrievers: Sequence[str],
    chunkers: Mapping[str, Chunker],
    counter: str,
) -> dict[str, str]:
    """What the report's footer tells, so that somebody else can do the same."""
    read = [
        f"{model.name}, which reads "
        + (f"its first {model.max_tokens} tokens of a text" if model.max_tokens else "whole texts")
        for model in models
    ]
    given = {
        "Documents": str(docs) if docs else f"shipped: {benchmark.name}",
        "Questions": str(questions) if questions else "",
        "Embedder": "; ".join(read),
        "Retrievers": ", ".join(retrievers) if retrievers != ["dense"] else "",
        "Scores count tokens of": counter,
    }
    full = {spec: chunker.spec for spec, chunker in chunkers.items()}
    return {name: value for name, value in given.items() if value} | full
