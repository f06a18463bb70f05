"""``chunkcore tune``: documents and questions in, the configuration to use and what to expect of it out."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, cast

import typer

from chunkcore.cli import flags
from chunkcore.cli.caching import default_cache
from chunkcore.cli.inputs import check_output
from chunkcore.cli.progress import reporting
from chunkcore.cli.spending import keeping
from chunkcore.cli.wording import help_text
from chunkcore.files import TUNE_NAMES

if TYPE_CHECKING:
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark
    from chunkcore.tuning import Space
    from chunkcore.tuning.trials import By

__all__ = ["HELP", "tune"]

STUDY, RESULT, WINNER, *_ = TUNE_NAMES

HELP = help_text(
    """Search strategies and their options for the configuration that retrieves best on your questions.

Documents and questions are those of compare. Each configuration is run once on all questions. What the winner
is worth is told by questions that had no part in choosing it: for each of --folds parts of the questions a
configuration is searched and chosen without them, and scored on them. The choice is compared with --baseline on these
scores; a difference that chance explains is called that.

Prints the configurations that no other one beats, the winner with its held-out score, and what to paste into
LangChain, LlamaIndex and Haystack. Writes tune.json, winner.yaml (for compare --config) and study.jsonl into the output
folder. The same command goes on with a study that was stopped, by Ctrl-C or anything else: nothing is run twice.

Unless --strategy or --space says otherwise, all strategies are searched that need no more than the embedder. A
strategy that asks a language model is searched where it is named, and --llm-tokens says what it may spend.

  chunkcore tune --docs docs/ --questions questions.jsonl

  chunkcore tune -s recursive -s sentence:minimum=0 --measure Recall@5 --trials 40

  chunkcore tune --space space.yaml --by document --timeout 600

docs/tuning.md tells what is searched, how scores stay honest, and how a space is written.
"""
)


def tune(
    docs: flags.Docs = None,
    questions: flags.Questions = None,
    dataset: flags.Dataset = "lochmere",
    strategy: Annotated[
        list[str] | None,
        typer.Option("--strategy", "-s", help="Search this, stated options fixed; values in braces are a grid."),
    ] = None,
    space: Annotated[Path | None, typer.Option(help="A YAML file of what to search, beside those given here.")] = None,
    embedder: Annotated[str, typer.Option(help="A sentence-transformers model, by name or path.")] = "all-MiniLM-L6-v2",
    retriever: Annotated[str, typer.Option(help="How chunks are searched: dense, bm25, hybrid, ….")] = "dense",
    measure: Annotated[str, typer.Option(help="What is to be high, such as Recall@5 or nDCG@10.")] = "Recall@1000tok",
    trials: Annotated[int, typer.Option(min=1, help="How many configurations to try.")] = 60,
    timeout: Annotated[float | None, typer.Option(help="Seconds after which no new one is begun.")] = None,
    folds: Annotated[int, typer.Option(min=2, help="How many parts the questions are held out in.")] = 5,
    by: Annotated[
        str, typer.Option(help="What is held out and resampled: question, or document with all its questions.")
    ] = "question",
    baseline: Annotated[str, typer.Option(help="What the choice is compared with.")] = "recursive:size=200",
    margin: Annotated[
        float,
        typer.Option(min=0, help="Points of the measure to give away for fewer retrieved tokens, then cost."),
    ] = 0.0,
    llm_tokens: Annotated[
        int | None, typer.Option(min=0, help="What language models may read and write in all, as estimated.")
    ] = None,
    counter: flags.Counter = "cl100k_base",
    cache: flags.EmbeddingFile = None,
    no_cache: flags.NoCache = False,
    seed: Annotated[int, typer.Option(min=0, help="Of proposals, folds and bootstrap.")] = 0,
    resamples: flags.Resamples = 10_000,
    output: flags.OutputFolder = Path("chunkcore-tuning"),
) -> None:
    """Search strategies and their options for the configuration that retrieves best on your questions."""
    from rich.console import Console

    from chunkcore.escaping import terminal_text
    from chunkcore.evaluation.measures import get_measure
    from chunkcore.models import EmbeddingCache, get_embedder
    from chunkcore.report import write_tuning
    from chunkcore.report.terminal import print_tuning
    from chunkcore.tuning import TuneOptions
    from chunkcore.tuning import tune as search
    from chunkcore.tuning.result import snippets
    from chunkcore.tuning.tuner import require_optuna

    require_optuna()
    check_output(output)
    wanted = get_measure(measure)
    options = TuneOptions(
        trials=trials,
        timeout=timeout,
        seed=seed,
        folds=folds,
        by=cast("By", by),
        measure=wanted,
        counter=counter,
        retriever=retriever,
        baseline=baseline,
        margin=margin / 100 if wanted.is_share else margin,
        resamples=resamples,
        llm_tokens=llm_tokens,
    )
    searched = _space(strategy or [], space)
    benchmark = _benchmark(docs, questions, dataset, output)
    answers = None if no_cache else default_cache()
    store = EmbeddingCache(None if no_cache else cache or default_cache(), private=cache is None)
    model = get_embedder(embedder)
    with reporting(sys.stderr) as progress:
        found = search(
            benchmark,
            searched,
            model,
            options=options,
            study=output / STUDY,
            cache=store,
            keeping=lambda chunker: keeping(chunker, answers),
            progress=progress,
        )
    pasted = snippets(found.winner.spec, embedder)
    result = write_tuning(found, output, embedder=embedder).json
    print_tuning(found, Console(highlight=False))
    for title, text in pasted.items():
        typer.echo(f"\n{title}:\n")
        typer.echo(indent(_printable(text), "    "))
    typer.echo(f"\n{terminal_text(str(result))}")
    if found.stopped == "interrupted":
        raise typer.Exit(130)


def _printable(text: str) -> str:
    """Code as it has to be pasted: white space stays, what could steer a terminal does not."""
    return "".join(each if each.isprintable() or each == "\n" else ascii(each)[1:-1] for each in text)


def _space(strategies: list[str], path: Path | None) -> Space | None:
    """What the command line and the file say; None for what is usual.

    Raises:
        OptionError: a strategy or an option is wrong.
        DataError: the file cannot be read.
    """
    from chunkcore.errors import OptionError
    from chunkcore.tuning import Space, load_space, parse_space

    given = parse_space(strategies) if strategies else None
    if path is None:
        return given
    if given is not None and given.exhaustive:
        raise OptionError("a grid (values in braces) and --space were both given: write the grid's lists into the file")
    return Space(branches=(*(given.branches if given else ()), *load_space(path).branches))


def _benchmark(docs: Path | None, questions: Path | None, dataset: str, output: Path) -> Benchmark:
    from chunkcore.datasets import load_dataset
    from chunkcore.errors import OptionError
    from chunkcore.evaluation.benchmarks import load_benchmark

    if docs is not None:
        return load_benchmark(docs, questions, leave_out=[output / name for name in TUNE_NAMES])
    if questions is not None:
        raise OptionError(f"--questions {questions} was given without --docs: give the documents that it asks about")
    return load_dataset(dataset)
