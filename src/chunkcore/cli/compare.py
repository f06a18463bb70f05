"""``chunkcore compare``: documents and questions in, a table, a verdict and a report out."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chunkcore.cli import options, running

if TYPE_CHECKING:
    from chunkcore.chunkers.base import Chunker


@options.grouped
def compare(
    data: options.Data,
    scores: options.ScoringOptions,
    statistics: options.Statistics,
    costs: options.Models,
    strategy: options.Strategies = None,
    retriever: Annotated[
        list[str] | None,
        options.retriever(help="dense, bm25, hybrid+window:1, ...; repeatable. Default: hybrid and passages."),
    ] = None,
    embedder: Annotated[
        list[str] | None,
        typer.Option("--embedder", "-e", metavar="NAME", help="A model; repeatable. Default: all-MiniLM-L6-v2."),
    ] = None,
    embed_price: Annotated[
        float | None, typer.Option(metavar="PRICE", help="Of a million tokens that the embedder reads.")
    ] = None,
    run: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="What your retriever found: scored alone, and with passages behind it."),
    ] = None,
    behind: Annotated[
        bool, typer.Option("--behind/--no-behind", help="A row of the best retriever with passages behind it.")
    ] = True,
    save_runs_to: Annotated[
        Path | None, typer.Option("--save-runs", metavar="FOLDER", help="Write what was retrieved, as run files.")
    ] = None,
    output: options.Output = Path("chunkcore-report"),
) -> None:
    """Compare chunkers, retrievers and embedders: which finds the evidence, and at what cost?

    A line of --questions is {"question": "...", "evidence": ["a verbatim excerpt"]}. Prints the table and the verdict;
    writes report.html, report.md, report.json, scores.csv and questions.csv. The last line is the path of report.html.

    With --require or --baseline the exit code is 1 if the whole 95 % interval of a score is below what is required.

      chunkcore compare docs/ --questions questions.jsonl -s recursive:size=200 -s sentence:size=50 -r passages

      chunkcore compare docs/ --questions questions.jsonl --require "HitRate@5>=0.70" --baseline earlier/report.json
    """
    from chunkcore.evaluation.costs import ModelPrices
    from chunkcore.evaluation.run_files import read_run, write_runs
    from chunkcore.models.loading import DEFAULT_MODEL
    from chunkcore.report import write_report
    from chunkcore.report.study import DEFAULT_CHUNKERS, DEFAULT_RETRIEVERS, NoEmbedder, build_chunkers, compare_systems

    prices = costs.prices()
    settings = options.study_settings(statistics, scores, prices=ModelPrices(embedding=embed_price, llm=prices))
    chunkers = strategy or DEFAULT_CHUNKERS
    options.check_output(output)
    if save_runs_to is not None:
        options.check_folder(save_runs_to)
    benchmark = data.benchmark(output)
    if costs.dry_run:
        running.say(*running.estimates(build_chunkers(chunkers, NoEmbedder()), benchmark.documents, prices))
        return
    store = costs.embeddings()
    kept: list[Chunker] = []
    resumed = running.resume(store.path, costs.answers)
    with running.reporting(sys.stderr) as progress, running.stoppable(resumed):
        page = compare_systems(
            benchmark,
            chunkers,
            retriever or DEFAULT_RETRIEVERS,
            embedder or [DEFAULT_MODEL],
            settings=settings,
            cache=store,
            prepare=partial(running.kept_chunker, kept, costs.answers),
            progress=progress,
            runs=[read_run(path, benchmark, name=path.stem) for path in run or []],
            behind=behind,
        )
    page = replace(page, settings={**data.facts(benchmark), **page.settings}, more_questions=data.more_questions)
    html = write_report(page, output).html
    if save_runs_to is not None:
        write_runs(page.comparison.reports, benchmark, save_runs_to)
    checks = [] if page.stopped else settings.checks(page.comparison.reports)
    running.finish(page, html, checks, running.used(kept, prices))
    if page.stopped:
        raise running.StoppedError(f"{page.stopped.lower().rstrip('.')}; {resumed}")
