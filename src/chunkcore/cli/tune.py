"""``chunkcore tune``: documents and questions in, the configuration to use and what to expect of it out."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from chunkcore.cli import options, running
from chunkcore.errors import OptionError
from chunkcore.files import TUNE_NAMES

if TYPE_CHECKING:
    from chunkcore.chunkers.base import Chunker
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark
    from chunkcore.evaluation.measures import Measure, RetrievalMeasure, Unit
    from chunkcore.tuning import Space
    from chunkcore.tuning.trials import By

STUDY = TUNE_NAMES[0]


@options.grouped
def tune(
    data: options.Data,
    costs: Annotated[
        options.Models, options.OmittedOptions("input_price output_price", panel="Options")
    ],  # fits a screen
    strategy: options.Strategies = None,
    space: Annotated[Path | None, typer.Option(metavar="FILE", help="A YAML file of a space or of grids.")] = None,
    retriever: Annotated[
        list[str] | None,
        options.retriever(help="Repeatable, or with {a,b}: searched. Default: dense."),
    ] = None,
    embedder: options.EmbedderName = "all-MiniLM-L6-v2",
    measure: Annotated[str, typer.Option(metavar="NAME", help="Maximised. Default: Recall@1000tok.")] = "",
    k: Annotated[
        list[str] | None,
        typer.Option("--k", "-k", metavar="DEPTH", help="Depths to average over; repeatable."),
    ] = None,
    unit: Annotated[str, typer.Option(metavar="UNIT", help="Counts token, sentence, document, part.")] = "",
    counter: options.Counter = "cl100k_base",
    queries: Annotated[int, typer.Option(min=0, metavar="N", help="Draw N of the questions.")] = 0,
    trials: Annotated[int, typer.Option(min=1, metavar="N", help="To try; grids run whole.")] = 60,
    timeout: Annotated[float | None, typer.Option(metavar="SECONDS", help="After which none begins.")] = None,
    folds: Annotated[int | None, typer.Option(min=2, metavar="N", help="Parts held out in turn. Default: 5.")] = None,
    by: options.By = "question",
    baseline: Annotated[str, typer.Option(metavar="SPEC", help="To compare with.")] = ("recursive:size=200"),
    margin: Annotated[float, typer.Option(min=0, metavar="POINTS", help="Given for fewer tokens.")] = 0.0,
    llm_tokens: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="The most tokens of language models.")
    ] = None,
    seed: options.Seed = 0,
    resamples: options.Resamples = 10_000,
    output: options.Output = Path("chunkcore-tuning"),
) -> None:
    """Search strategies, options and grids; score the choice on other questions (docs/guides/tuning.md).

    chunkcore tune -s "recursive:size={50,100,200}" --docs docs/ --questions questions.jsonl
    """
    from rich.console import Console

    from chunkcore.evaluation.benchmarks.benchmark import question_documents
    from chunkcore.models import get_embedder
    from chunkcore.report import write_tuning
    from chunkcore.report.advice import Advice
    from chunkcore.report.terminal import print_tuning
    from chunkcore.tuning import TuneOptions, default_space
    from chunkcore.tuning import tune as search
    from chunkcore.tuning.space import retriever_values

    asked = retriever_values(retriever or ["dense"])
    searched = (_space(strategy or [], space) or default_space()).with_retrievers(asked)
    grids = searched.exhaustive
    measures = _measures(measure, k, cast("Unit", unit), grids=grids)
    benchmark = _prepared(data.benchmark(output, TUNE_NAMES), measures, queries, seed)
    usual_folds = 5
    if grids:  # whose choices halves of the questions hold out
        units = set(question_documents(benchmark).values()) if by == "document" else benchmark.queries
        usual_folds = max(2, min(5, len(units)))
    tuning = TuneOptions(
        trials=trials,
        timeout=timeout,
        seed=seed,
        folds=folds or usual_folds,
        by=cast("By", by),
        measure=measures,
        counter=counter,
        retriever=asked.values[0],
        baseline=baseline,
        margin=margin / 100 if measures[0].is_share else margin,
        resamples=resamples,
        llm_tokens=sys.maxsize if grids and llm_tokens is None else llm_tokens,  # a grid says itself what is run
    )
    if costs.dry_run:
        running.say(*_listed(searched, benchmark, trials))
        return
    options.check_output(output)
    store = costs.embeddings()
    model = get_embedder(embedder)
    chunkers: list[Chunker] = []

    def kept(chunker: Chunker) -> Chunker:
        chunkers.append(running.keeping(chunker, costs.answers))
        return chunkers[-1]

    how_on = f"nothing is chosen yet; {running.resume(store.path)}"
    with running.reporting(sys.stderr) as progress, running.stoppable(how_on):
        found = search(
            benchmark,
            searched,
            model,
            options=tuning,
            study=output / STUDY,
            cache=store,
            keeping=kept,
            progress=progress,
        )
    settings = {
        "Documents": f"{data.docs or data.dataset} ({len(benchmark.documents):,})",
        "Questions": f"{len(benchmark.queries):,}",
        "Embedder": model.name,
        "Held out": f"by {by}, seed {seed}",
        "Date": datetime.now(timezone.utc).date().isoformat(),
    }
    advice = Advice.of_search(found, embedder, data.more_questions)
    files = write_tuning(found, output, settings, embedder=embedder, advice=advice)
    print_tuning(found, Console(highlight=False), advice)
    running.say(*running.used(chunkers, None))
    typer.echo()
    running.say(str(files.json))
    if found.stopped == "interrupted":
        raise typer.Exit(130)


def _space(strategies: Sequence[str], path: Path | None) -> Space | None:
    from chunkcore.tuning import Space, load_space, parse_space

    specs = [each.strip() for each in strategies]
    repeated = next((each for number, each in enumerate(specs) if each in specs[:number]), None)
    if repeated is not None:
        raise OptionError(f"--strategy {repeated} is given twice: give each once")
    given = parse_space(specs) if specs else None
    read = load_space(path) if path is not None else None
    if given is None or read is None:
        return given or read
    if given.exhaustive != read.exhaustive:
        raise OptionError(
            f"--strategy and {path} are not both grids (values in braces): write the grid's lists into the file"
        )
    return Space(branches=(*given.branches, *read.branches), exhaustive=given.exhaustive)


def _measures(measure: str, ks: Sequence[str] | None, unit: Unit, *, grids: bool) -> list[RetrievalMeasure]:
    from chunkcore.evaluation.measures import get_measure, retrieval_measures

    name = measure or ("Recall" if ks else "Recall@1000tok")
    if ks and "@" in name:
        raise OptionError(f"--measure {name} has its own depth: give the name alone, or leave --k out")
    given = [get_measure(name, k) for k in options.read_depths(ks)] if ks else [get_measure(name)]
    found = retrieval_measures([get_measure(each.kind, each.k, unit) if unit else each for each in given])
    if grids and not found[0].is_share:
        raise OptionError(f"--measure of grids is a share, which tables show in percent, got {name}")
    return found


def _prepared(benchmark: Benchmark, measures: Sequence[Measure], queries: int, seed: int) -> Benchmark:
    from chunkcore.evaluation.benchmarks.stitching import sample_queries, whole_sentences

    for problem in benchmark.problems:
        running.say(f"left out: {problem.query_id}: {problem.reason}", err=True)
    if queries:
        benchmark = sample_queries(benchmark, queries, seed=seed)
    return whole_sentences(benchmark) if measures[0].unit == "sentence" else benchmark


def _listed(space: Space, benchmark: Benchmark, trials: int) -> Iterator[str]:
    from chunkcore.chunkers import get_chunker
    from chunkcore.chunkers.llm import LLMChunker

    chunkers = {spec: get_chunker(spec) for spec in space.specs}
    asking = {spec: chunker for spec, chunker in chunkers.items() if isinstance(chunker, LLMChunker)}
    yield from (spec for spec in chunkers if spec not in asking)
    if asking:
        yield from running.estimates(asking, benchmark.documents, None)
    count = running.several(len(chunkers), "configuration")
    if not space.exhaustive:
        count = f"{trials:,} trials of {space.size:,} or more"
    yield f"{count}, {running.several(len(benchmark.queries), 'question')}"
