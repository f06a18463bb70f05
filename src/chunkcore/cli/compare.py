"""``chunkcore compare``: documents and questions in, a table, a verdict and a report out."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from chunkcore.cli import options, running
from chunkcore.errors import OptionError

if TYPE_CHECKING:
    from chunkcore.chunkers.base import Chunker
    from chunkcore.evaluation.results import Report
    from chunkcore.evaluation.scoring import MinRule
    from chunkcore.models import Embedder

# A plain cut; structure at half the size, at the size and with overlap; twice the size, which is more than the default
# model reads; and meaning.
DEFAULT_STRATEGIES = (
    "fixed_token:size=200",
    "recursive:size=100",
    "recursive:size=200",
    "recursive:size=200,overlap=100",
    "recursive:size=400",
    "cluster_semantic:size=200",
)


@partial(options.grouped, strategies=DEFAULT_STRATEGIES)
def compare(
    data: options.Data,
    scores: options.ScoringOptions,
    statistics: options.Statistics,
    costs: options.Models,
    strategy: options.Strategies = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="A YAML file of more strategies.")] = None,
    retriever: Annotated[
        list[str] | None,
        options.retriever(help="dense, bm25, hybrid+window:1, ...; repeatable. Default: dense."),
    ] = None,
    embedder: Annotated[
        list[str] | None,
        typer.Option("--embedder", "-e", metavar="NAME", help="A model; repeatable. Default: all-MiniLM-L6-v2."),
    ] = None,
    late: Annotated[bool, typer.Option("--late", hidden=True)] = False,
    embed_price: Annotated[
        float | None, typer.Option(metavar="PRICE", help="Of a million tokens that the embedder reads.")
    ] = None,
    save_runs_to: Annotated[
        Path | None, typer.Option("--save-runs", metavar="FOLDER", help="Write what was retrieved, as run files.")
    ] = None,
    output: options.Output = Path("chunkcore-report"),
) -> None:
    """Compare chunking strategies, retrievers and embedders: which finds the evidence, and at what cost?

    A line of --questions is {"question": "...", "evidence": ["a verbatim excerpt"]}. Prints the table and the verdict;
    writes report.html, report.md, report.json, scores.csv and questions.csv. The last line is the path of report.html.

    Without --strategy and --config compares <strategies>.

    With --require or --baseline the exit code is 1 if the whole 95 % interval of a score is below what is required.

      chunkcore compare --docs docs/ --questions questions.jsonl -s recursive:size=200 -r dense -r bm25 -r hybrid

      chunkcore compare -s recursive:size=200 --require "HitRate@5>=0.70" --baseline earlier/report.json
    """
    from chunkcore.chunkers.configuration import read_specs
    from chunkcore.chunkers.llm import LLMChunker
    from chunkcore.evaluation.costs import ModelPrices
    from chunkcore.evaluation.experiment import run_experiment
    from chunkcore.evaluation.measures import DEFAULT_DEPTHS, measures_at
    from chunkcore.evaluation.scoring import Scorer
    from chunkcore.models import CachedEmbedder, get_embedder
    from chunkcore.report import write_report
    from chunkcore.retrieval import get_retriever

    if late:
        raise OptionError("--late is a retriever now: give --retriever dense --retriever late")
    ks, verdict_by = scores.depths(tuple(map(str, DEFAULT_DEPTHS)))
    gate = scores.gate()
    prices = costs.prices()
    model_prices = ModelPrices(embedding=embed_price, llm=prices)
    options.check_output(output)
    if save_runs_to is not None:
        options.check_folder(save_runs_to)
    retrievers = [get_retriever(spec).name for spec in retriever or ["dense"]]
    benchmark = data.benchmark(output)
    if save_runs_to is not None:
        running.check_savable(benchmark)
    statistics.check(benchmark)
    given = [each.strip() for each in strategy or []] + (read_specs(config) if config is not None else [])
    store = costs.embeddings()
    models = [get_embedder(each) for each in embedder or ["all-MiniLM-L6-v2"]]
    specs = given or list(DEFAULT_STRATEGIES)
    if len(models) == len(retrievers) == 1:
        gate.check_names(specs)
    # A strategy is shown as it was asked for, so that a size is seen though it is the strategy's default.
    chunkers = options.build_chunkers(specs, models[0])
    if costs.dry_run:
        running.say(*running.estimates(chunkers, benchmark.documents, prices))
        return
    answers = costs.answers if any(isinstance(each, LLMChunker) for each in chunkers.values()) else None
    made: list[Chunker] = []

    def strategies(model: Embedder) -> dict[str, Chunker]:
        built = options.build_chunkers(specs, model)
        own = {spec: running.keeping(chunker, answers) for spec, chunker in built.items()}
        made.extend(own.values())
        return own

    reports: list[Report] = []
    stopped, how_on = "", running.resume(store.path, answers)
    with running.reporting(sys.stderr) as progress, running.stoppable(how_on):
        try:
            run_experiment(
                Scorer(benchmark, counter=scores.counter, min_rule=cast("MinRule", scores.min_rule)),
                strategies,
                [CachedEmbedder(model, store) for model in models],
                measures=[*measures_at(tuple(dict.fromkeys([*ks, *gate.ks]))), verdict_by, *gate.measures],
                retrievers=retrievers,
                progress=progress,
                done=reports.append,
                prices=model_prices,
            )
        except KeyboardInterrupt:
            if not reports:
                raise
            stopped = f"stopped before the end; the report is of the first {len(reports):,} to be scored"
        progress("compare", 0, 1)
        comparison = statistics.compare(reports, verdict_by)
        settings = {
            "Documents": data.docs or f"shipped: {benchmark.name}",
            "Questions": data.questions,
            "Embedder": "; ".join(
                f"{each.name}, which reads "
                + (f"its first {each.max_tokens} tokens of a text" if each.max_tokens else "whole texts")
                for each in models
            ),
            "Retrievers": ", ".join(retrievers) if retrievers != ["dense"] else "",
            "Scores count tokens of": scores.counter,
            # With all options, so that somebody else can repeat the run.
            **{spec: chunker.spec for spec, chunker in chunkers.items()},
        }
        page = replace(
            running.report_page(comparison, benchmark, settings, stopped),
            embedders={model.name: name for model, name in zip(models, embedder or ["all-MiniLM-L6-v2"], strict=True)},
            more_questions=data.more_questions,
        )
        html = write_report(page, output).html
        if save_runs_to is not None:
            running.save_runs(reports, benchmark, save_runs_to)
        seed, resamples = statistics.seed, statistics.resamples
        checks = [] if stopped else gate.checks(reports, verdict_by, resamples=resamples, seed=seed)
        progress("compare", 1, 1)
    running.finish(page, html, checks, running.used(made, prices))
    if stopped:
        raise running.StoppedError(f"{stopped}; {how_on}")
