"""``chunkcore answer``: a language model answers from each strategy's chunks; whose answers are better?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chunkcore.cli import options, running
from chunkcore.errors import OptionError, echo
from chunkcore.escaping import terminal_text
from chunkcore.evaluation.benchmarks.documents import ANSWERS

if TYPE_CHECKING:
    from rich.table import Table

    from chunkcore.answers.answering import AnswerComparison, AnswerStudy
    from chunkcore.evaluation.measures import Depth
    from chunkcore.evaluation.results import Report
    from chunkcore.models.llm import CachedLLM, Prices

DEFAULT_STRATEGIES = ("recursive:size=100", "recursive:size=200", "recursive:size=400")
_AT_ONCE = 3  # measures in a table


@options.grouped
def answer(
    llm: options.Llm,
    data: options.Data,
    statistics: options.Statistics,
    costs: options.Models,
    strategy: options.Strategies = None,
    retriever: options.Retriever = "dense",
    embedder: options.EmbedderName = "all-MiniLM-L6-v2",
    k: Annotated[str, typer.Option("--k", "-k", metavar="DEPTH", help="What the model is shown: 5, or 4096tok.")] = "5",
    measure: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Repeatable. Default: SquadF1 and ExactMatch."),
    ] = None,
    judge: Annotated[str, typer.Option(metavar="NAME", help="The model that judges. Default: --llm.")] = "",
    bert_model: Annotated[str, typer.Option(metavar="NAME", help="Of BertScore. Default: --embedder.")] = "",
    limit: options.Limit = 0,
    retries: Annotated[int, typer.Option(min=0, metavar="N", help="After an invalid answer.")] = 2,
    answers: Annotated[Path | None, typer.Option(metavar="FILE", help="Keeps the model's answers.")] = None,
    output: options.Output = Path("chunkcore-answers"),
) -> None:
    """Let a language model answer from each strategy's chunks, and compare (docs/guides/answers.md)."""
    from chunkcore.answers.answering import DEFAULT_MEASURES, AnswerModels, AnswerSettings, AnswerStudy
    from chunkcore.chunkers.llm import LLMChunker
    from chunkcore.evaluation.benchmarks.benchmark import sample_queries
    from chunkcore.models import CachedEmbedder
    from chunkcore.models.loading import lazy_embedder
    from chunkcore.report.rendering import require_jinja2
    from chunkcore.report.study import build_chunkers

    require_jinja2()
    prices = costs.prices()
    store = None if costs.no_cache else answers or options.default_cache()
    answering = _kept(llm, store)
    judging = _kept(judge, store) if judge else answering
    model = lazy_embedder(embedder)
    settings = AnswerSettings(
        measures=tuple(measure or DEFAULT_MEASURES),
        depth=_depth(k),
        models=AnswerModels(embedder=model, bert_model=bert_model or None, judge=judging, retries=retries),
        study=options.study_settings(statistics),
    )
    benchmark = data.benchmark(output, [ANSWERS])
    benchmark = sample_queries(benchmark, limit, seed=statistics.seed) if limit else benchmark
    settings.check(benchmark)
    chunkers = build_chunkers(strategy or DEFAULT_STRATEGIES, model)
    if costs.dry_run and any(isinstance(chunker, LLMChunker) for chunker in chunkers.values()):
        running.say(*running.estimates(chunkers, benchmark.documents, prices), _UNKNOWN)
        return
    if not costs.dry_run:
        output.mkdir(parents=True, exist_ok=True)  # where that cannot be, before anything is paid for
    chunkers = {spec: running.keeping(chunker, store) for spec, chunker in chunkers.items()}
    vectors = costs.embeddings()
    resumed = running.resume(vectors.path, store)
    with running.reporting(sys.stderr) as progress, running.stoppable(resumed):
        cached = CachedEmbedder(model, vectors)
        study = AnswerStudy(benchmark, chunkers, cached, retriever, settings, progress)
        if costs.dry_run:
            _estimated(study, answering, judging, prices)
            return
        facts = {"Answers by": answering.name, "Embedder": embedder, "Retriever": retriever}
        comparison = study.compare(answering, facts)
    html = comparison.write(output)
    _show(comparison)
    usages = {each.name: f"{each.name}: {running.spent(each.usage, prices)}" for each in (answering, judging)}
    for line in [*running.used(chunkers.values(), prices), *usages.values()]:
        typer.echo(f"\n{terminal_text(line)}")
    typer.echo(f"\n{output / ANSWERS}\n{html}")
    if comparison.page.stopped:
        raise running.StoppedError(f"{comparison.page.stopped.lower().rstrip('.')}; {resumed}")


_UNKNOWN = "What answers take is known once these have cut the documents: leave them out to see the others'."
_ASSUMED = (
    "Tokens are counted as cl100k_base. Answers of 20 words are assumed, and verdicts on two statements; questions "
    "that must be repeated and answers that are kept already are not foreseen. Nothing was asked."
)


def _estimated(study: AnswerStudy, answering: CachedLLM, judging: CachedLLM, prices: Prices | None) -> None:
    from chunkcore.answers.answering import judged

    answers, verdicts = study.estimate()
    running.say(f"answers by {answering.name}: {running.spent(answers, prices)}")
    if judged(study.settings.measures):
        running.say(f"verdicts by {judging.name}: {running.spent(verdicts, prices)}")
    running.say(_ASSUMED)


def _show(comparison: AnswerComparison) -> None:
    """Print the tables, the notes and the verdict."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    names = comparison.measures
    for first in range(0, len(names), _AT_ONCE):
        console.print(_table(comparison, names[first : first + _AT_ONCE], retrieved=not first))
    for note in comparison.notes():
        console.print(Text(f"! {terminal_text(note)}"), style="yellow")
    console.print(Text(terminal_text(f"\n{comparison.page.comparison.verdict}")), style="bold")


def _table(comparison: AnswerComparison, names: Sequence[str], *, retrieved: bool) -> Table:
    from chunkcore.evaluation.measures import describe_depth, get_measure
    from chunkcore.report.tables import amount, percent

    page, depth = comparison.page, comparison.depth

    def cells(report: Report) -> list[str]:
        recall = report.mean(get_measure("Recall", depth))
        more = [percent(recall), amount(report.mean_tokens(depth))] if retrieved else []
        measures = [get_measure(name, depth) for name in names]
        scores = [(report.mean(measure), *page.interval(report, measure)) for measure in measures]
        return [*(f"{percent(mean)}\n{percent(low, 0)}–{percent(high, 0)}" for mean, low, high in scores), *more]

    level = f"{100 * page.comparison.confidence:g} %"
    title = f"Answers from {describe_depth(depth)}: means in %, {level} intervals" if retrieved else None
    headings = [*names, *(("Recall", "Tokens") if retrieved else ())]
    return running.strategy_table(title, headings, [(report.name, cells(report)) for report in page.reports])


def _kept(spec: str, store: Path | None) -> CachedLLM:
    from chunkcore.models.llm import CachedLLM, LLMCache, get_llm

    found = get_llm(spec)
    return found if isinstance(found, CachedLLM) else CachedLLM(found, LLMCache(store))


def _depth(text: str) -> Depth:
    """How many pieces, or tokens, a model is shown; "min" depends on the evidence, which no model knows."""
    try:
        (depth,) = options.read_depths([text])
    except OptionError:
        depth = "min"
    if depth == "min":
        raise OptionError(
            f"--k: expected a number of pieces from 1, or a budget of tokens like 4096tok, got {echo(text)}"
        )
    return depth
