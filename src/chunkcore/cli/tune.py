"""``chunkcore tune``: documents and questions in, the configuration to use and what to expect of it out."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from chunkcore.cli import options, running

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from chunkcore.chunkers.base import Chunker
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark
    from chunkcore.evaluation.comparison import By
    from chunkcore.tuning import TuneOptions


@options.grouped
def tune(
    data: options.Data,
    costs: Annotated[options.Models, options.OmittedOptions("input_price output_price", panel="Options")],
    strategy: options.Strategies = None,
    retriever: Annotated[
        list[str] | None,
        options.retriever(help="Repeatable, or with {a,b}. Default: passages with four balances, and hybrid."),
    ] = None,
    embedder: options.EmbedderName = "all-MiniLM-L6-v2",
    measure: Annotated[str, typer.Option(metavar="NAME", help="What is maximised.")] = "Recall@1000tok",
    counter: options.Counter = "cl100k_base",
    limit: options.Limit = 0,
    draws: Annotated[int, typer.Option(min=0, metavar="N", help="Random configurations of the grid; 0: all.")] = 0,
    folds: Annotated[int, typer.Option(min=2, metavar="N", help="Parts held out in turn.")] = 5,
    by: Annotated[str, typer.Option(metavar="UNIT", help="Kept together: auto, document or question.")] = "auto",
    default: Annotated[str, typer.Option(metavar="SPEC", help="To keep unless another is better.")] = "",
    seed: options.Seed = 0,
    resamples: options.Resamples = 10_000,
    output: options.Output = Path("chunkcore-report"),
) -> None:
    """Search chunkers, options and retrievers; score the choice on questions that did not choose it.

    Values in braces make a grid. The choice of each part of the questions is made by the others. The default is kept
    unless that shows a gain.

      chunkcore tune docs/ --questions questions.jsonl -s "recursive:size={50,100,200}" -r passages -r hybrid
    """
    from chunkcore.evaluation.benchmarks.benchmark import sample_queries
    from chunkcore.evaluation.comparison import compare
    from chunkcore.models.cache import CachedEmbedder
    from chunkcore.models.loading import lazy_embedder
    from chunkcore.report import ReportPage, write_report
    from chunkcore.report.study import today
    from chunkcore.tuning import DEFAULT_CHUNKERS, DEFAULT_RETRIEVERS, TuneOptions, plan
    from chunkcore.tuning import tune as search

    settings = TuneOptions(
        measure=measure,
        draws=draws,
        folds=folds,
        by=cast("By", by),
        default=default,
        counter=counter,
        seed=seed,
        resamples=resamples,
    )
    chunkers, retrievers = strategy or DEFAULT_CHUNKERS, retriever or DEFAULT_RETRIEVERS
    plan(chunkers, retrievers, settings)  # raises before the documents are read
    benchmark = data.benchmark(output)
    benchmark = sample_queries(benchmark, limit, seed=seed) if limit else benchmark
    if costs.dry_run:
        running.say(*_planned(chunkers, retrievers, settings, benchmark))
        return
    options.check_output(output)
    store = costs.embeddings()
    model = CachedEmbedder(lazy_embedder(embedder), store)
    prepared: list[Chunker] = []

    def prepare(chunker: Chunker) -> Chunker:
        prepared.append(running.keeping(chunker, costs.answers))
        return prepared[-1]

    with running.reporting(sys.stderr) as progress, running.stoppable(running.resume(store.path)):
        tuning = search(
            benchmark,
            chunkers,
            model,
            retrievers=retrievers,
            options=settings,
            prepare=prepare,
            progress=progress,
        )
    comparison = compare(tuning.shown, settings.goal, resamples=resamples, seed=seed, by=tuning.comparison.by)
    held_out = tuning.comparison.by
    facts = {**data.facts(benchmark), "Embedder": model.name, "Held out": f"{len(tuning.folds)} parts, by {held_out}"}
    page = replace(
        ReportPage(comparison, benchmark, facts, today()),
        tuning=tuning,
        embedders={model.name: embedder},
        more_questions=data.more_questions,
    )
    running.finish(page, write_report(page, output).html, [], running.used(prepared, None))


def _planned(
    chunkers: Sequence[str], retrievers: Sequence[str], settings: TuneOptions, benchmark: Benchmark
) -> Iterator[str]:
    from chunkcore.chunkers import get_chunker
    from chunkcore.chunkers.llm import LLMChunker
    from chunkcore.tuning import plan

    _, configurations = plan(chunkers, retrievers, settings)
    yield from (configuration.name for configuration in configurations)
    built = {spec: get_chunker(spec) for spec in dict.fromkeys(each.chunker for each in configurations)}
    asking = {spec: chunker for spec, chunker in built.items() if isinstance(chunker, LLMChunker)}
    if asking:
        yield from running.estimates(asking, benchmark.documents, None)
    count = running.several(len(configurations), "configuration")
    yield f"{count}, {running.several(len(benchmark.queries), 'question')}"
