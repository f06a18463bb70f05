"""``chunkcore sweep``: grids of options in, the best of each strategy by one half of the questions out, with plots."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from chunkcore.cli import flags
from chunkcore.cli.caching import default_cache, shown
from chunkcore.cli.inputs import check_output, clusters_by, depths_and_measure, read_benchmark
from chunkcore.cli.progress import reporting
from chunkcore.cli.signals import going_on, told_when_stopped
from chunkcore.cli.spending import estimates, keeping, used
from chunkcore.cli.wording import help_text

if TYPE_CHECKING:
    from chunkcore.chunkers.base import Chunker
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark
    from chunkcore.evaluation.measures import Unit
    from chunkcore.tuning import Branch
    from chunkcore.tuning.trials import By

__all__ = ["DEFAULT_GRIDS", "HELP", "sweep"]

# The three chunkers of Qu et al. (2024), with some of the values of its appendix B and some beyond them.
DEFAULT_GRIDS = (
    "fixed_sentences:chunks={5,10,20,40,80},overlap={0,1}",
    "breakpoint:buffer=0,amount={10,30,50,70,90}",
    "single_linkage:max_size=null,position_weight={0.25,0.75},chunks={10,20,40,80}",
)

HELP = help_text(
    f"""Try every combination of some options, and choose each strategy's best without fooling yourself.

A grid is a strategy with values in braces, quoted, as shells read braces, too: "recursive:size={{50,100,200}}". All
configurations are run at once, each distinct text embedded once. Half of the questions, drawn by --seed, choose each
strategy's configuration with the highest F1, averaged over k; its scores are told on the other half, with an interval,
and how much a choice flatters on the questions that it was made by.

Prints the choices, and writes sweep.html, with plots of recall, precision and F1 against each option, sweep.md and
sweep.json into the output folder. The last line is the path of sweep.html.

What is counted is the --unit: token, character, sentence (evidence is widened to whole sentences), document, or part:
the originals of documents that were stitched, by chunkcore stitch or by --stitch.

Unless --strategy or --config is given, sweeps {", ".join(DEFAULT_GRIDS)}.

Embeddings are kept, so that a second run is quick, in {shown(default_cache())} unless --cache names another file.

  chunkcore sweep -s "recursive:size={{50,100,200,400}}" -s "breakpoint:amount={{70,80,90}}"

  chunkcore sweep --docs abstracts/ --questions questions.jsonl --stitch 100 --unit part

  chunkcore sweep --docs papers/ --questions questions.jsonl --unit sentence --config grids.yaml

The protocols of Qu et al. (2024), "Is Semantic Chunking Worth the Computational Cost?"; see docs/protocols.md.
"""
)


def sweep(
    docs: flags.Docs = None,
    questions: flags.Questions = None,
    dataset: flags.Dataset = "lochmere",
    layout: flags.Layout = "auto",
    strategy: Annotated[
        list[str] | None,
        typer.Option("--strategy", "-s", help='"name:option={value,value},..."; give it once a grid.'),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A YAML file of grids, beside those given here.")] = None,
    embedder: Annotated[str, typer.Option(help="A sentence-transformers model, by name or path.")] = "all-MiniLM-L6-v2",
    k: Annotated[
        list[str] | None,
        typer.Option("--k", "-k", help="How many pieces, min, or 4096tok; once a value. Default: 1, 3, 5, 10."),
    ] = None,
    unit: Annotated[str, typer.Option(help="What is counted; see above.")] = "token",
    measure: Annotated[str, typer.Option(help="What choices are made by, averaged over k.")] = "F1",
    stitch: Annotated[int, typer.Option(min=0, help="Stitch documents to so many sentences first; 0: do not.")] = 0,
    queries: Annotated[int, typer.Option(min=0, help="Draw so many of the questions; 0: all.")] = 0,
    by: Annotated[str, typer.Option(help="What is halved and resampled: question, or document.")] = "question",
    counter: flags.Counter = "cl100k_base",
    cache: flags.EmbeddingFile = None,
    no_cache: flags.NoCache = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the configurations, and end.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of stitching, drawing, halving and resampling.")] = 0,
    resamples: flags.Resamples = 10_000,
    output: flags.OutputFolder = Path("chunkcore-sweep"),
) -> None:
    """Try every combination of some options, and choose each strategy's best without fooling yourself."""
    from rich.console import Console

    from chunkcore.escaping import terminal_text
    from chunkcore.evaluation.benchmarks.benchmark import question_documents
    from chunkcore.evaluation.measures import get_measure
    from chunkcore.files import SWEEP_NAMES
    from chunkcore.models import EmbeddingCache, get_embedder
    from chunkcore.report import write_tuning
    from chunkcore.report.terminal import print_choices
    from chunkcore.tuning import TuneOptions, grid_space, tune

    grids = _grids(strategy or [], config)
    depths, _ = depths_and_measure(k or [], "", ("1", "3", "5", "10"))
    wanted, name = _measured(unit, measure)
    given = read_benchmark(docs, questions, dataset, output, layout, SWEEP_NAMES)
    benchmark = _prepared(given, wanted, stitch, queries, seed)
    clusters_by(benchmark, by)
    space = grid_space(grids)
    specs = space.specs
    if dry_run:
        for line in _listed(specs, benchmark):
            typer.echo(terminal_text(line))
        return
    check_output(output)
    answers = None if no_cache else default_cache()
    chunkers: list[Chunker] = []

    def kept(chunker: Chunker) -> Chunker:
        chunkers.append(keeping(chunker, answers))
        return chunkers[-1]

    model = get_embedder(embedder)
    store = EmbeddingCache(None if no_cache else cache or default_cache(), private=cache is None)
    units = len(set(question_documents(benchmark).values())) if by == "document" else len(benchmark.queries)
    options = TuneOptions(
        measure=[get_measure(name, k, wanted) for k in depths],
        seed=seed,
        folds=max(2, min(5, units)),
        by=cast("By", by),
        counter=counter,
        resamples=resamples,
        llm_tokens=sys.maxsize,
    )
    with reporting(sys.stderr) as progress, told_when_stopped(f"nothing is chosen yet; {going_on(store.path)}"):
        found = tune(benchmark, space, model, options=options, cache=store, keeping=kept, progress=progress)
    settings = {
        "Documents": f"{docs or dataset} ({len(benchmark.documents):,})",
        "Questions": f"{len(benchmark.queries):,}",
        "Configurations": f"{len(found.configurations):,}",
        "Embedder": model.name,
        "Counts": f"{wanted}s",
        "Halves": f"by {by}, seed {seed}",
        "Date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }
    page = write_tuning(found, output, settings, embedder=embedder, name="sweep").html
    print_choices(found, Console(highlight=False))
    for line in used(chunkers, None):
        typer.echo(terminal_text(line))
    typer.echo(f"\n{terminal_text(str(page))}")
    if found.stopped == "interrupted":
        raise typer.Exit(130)


def _grids(strategies: Sequence[str], config: Path | None) -> list[Branch]:
    """The grids of the command line and of the file, or the default ones where there is neither.

    Raises:
        OptionError: one is malformed, or stands there twice.
        DataError: the file cannot be read.
    """
    from chunkcore.errors import OptionError
    from chunkcore.tuning import parse_grid

    given = [each.strip() for each in strategies]
    if config is not None:
        from chunkcore.chunkers.configuration import read_specs

        given += read_specs(config, parse_grid)
    repeated = next((each for number, each in enumerate(given) if each in given[:number]), None)
    if repeated is not None:
        raise OptionError(f"the grid {repeated} is given twice: give each once")
    return [parse_grid(each) for each in given or DEFAULT_GRIDS]


def _measured(unit: str, measure: str) -> tuple[Unit, str]:
    """The unit and the measure, which must go together at any k.

    Raises:
        OptionError: there is no such unit or measure, it takes no k, or it is of answers.
    """
    from chunkcore.errors import OptionError
    from chunkcore.evaluation.measures import get_measure, measures
    from chunkcore.evaluation.measures.answers import AnswerMeasure

    if issubclass(measures.get(measure), AnswerMeasure):
        raise OptionError(f"--measure {measure} is of answers, which a sweep asks for none: see chunkcore answer")
    if unit == "answer":
        raise OptionError("--unit is what evidence is counted in, and answer is none: see chunkcore answer")
    found = get_measure(measure, 1, cast("Unit", unit))
    if not found.is_share:
        raise OptionError(f"--measure is a share, so that percent can be told of it, got {measure}")
    return found.unit, found.kind


def _prepared(benchmark: Benchmark, unit: Unit, sentences: int, queries: int, seed: int) -> Benchmark:
    """The benchmark as the protocol wants it."""
    from chunkcore.escaping import terminal_text
    from chunkcore.evaluation.benchmarks.stitching import sample_queries, stitch, whole_sentences

    for problem in benchmark.problems:
        typer.echo(terminal_text(f"left out: {problem.query_id}: {problem.reason}"), err=True)
    if queries:
        benchmark = sample_queries(benchmark, queries, seed=seed)
    if sentences:
        benchmark = stitch(benchmark, sentences=sentences, seed=seed)
    return whole_sentences(benchmark) if unit == "sentence" else benchmark


def _listed(specs: Sequence[str], benchmark: Benchmark) -> list[str]:
    """What a dry run tells: the configurations, and what their language models would be asked."""
    from chunkcore.chunkers.base import get_chunker
    from chunkcore.chunkers.llm import LLMChunker

    chunkers = {spec: get_chunker(spec) for spec in specs}
    asking = {spec: chunker for spec, chunker in chunkers.items() if isinstance(chunker, LLMChunker)}
    lines = [spec for spec in chunkers if spec not in asking]
    if asking:
        lines += estimates(asking, benchmark.documents, None)
    return [*lines, f"{len(chunkers):,} configurations, {len(benchmark.queries):,} questions"]
