"""``chunkcore answer``: a language model answers from each strategy's chunks; whose answers are better?"""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chunkcore.cli import options, running
from chunkcore.errors import DataError, OptionError, echo
from chunkcore.escaping import plain_json, terminal_text
from chunkcore.outputs import ANSWERS

if TYPE_CHECKING:
    from rich.table import Table

    from chunkcore.answers import AnswerRun
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark
    from chunkcore.evaluation.measures import Depth, Scores
    from chunkcore.evaluation.results import Report
    from chunkcore.models.llm import LLM, CachedLLM
    from chunkcore.report import ReportPage

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
    from chunkcore.answers import answer_questions, score_answers
    from chunkcore.answers.answering import check_measures, judged
    from chunkcore.chunkers.llm import LLMChunker
    from chunkcore.evaluation.experiment import run_experiment
    from chunkcore.evaluation.measures import get_measure, measures_at
    from chunkcore.models import CachedEmbedder
    from chunkcore.models.llm import Estimator
    from chunkcore.models.loading import lazy_embedder
    from chunkcore.report import ReportPage
    from chunkcore.report.rendering import require_jinja2
    from chunkcore.report.study import build_chunkers, today

    require_jinja2()
    prices = costs.prices()
    depth = _depth(k)
    store = None if costs.no_cache else answers or options.default_cache()
    answering = _kept(llm, store)
    judging = _kept(judge, store) if judge else answering
    benchmark = _limited(data.benchmark(output, [ANSWERS]), limit or None, statistics.seed)
    names = _measures(measure or [], benchmark)
    settings = options.study_settings(statistics)
    settings.check(benchmark)  # raises before anything is asked
    model = lazy_embedder(embedder)
    check_measures(benchmark, names, bert_model=bert_model or model, judge=judging)
    chunkers = build_chunkers(strategy or DEFAULT_STRATEGIES, model)
    if costs.dry_run and any(isinstance(chunker, LLMChunker) for chunker in chunkers.values()):
        running.say(*running.estimates(chunkers, benchmark.documents, prices))
        running.say("What answers take is known once these have cut the documents: leave them out to see the others'.")
        return
    if not costs.dry_run:
        output.mkdir(parents=True, exist_ok=True)  # where that cannot be, before anything is paid for
    chunkers = {spec: running.keeping(chunker, store) for spec, chunker in chunkers.items()}
    vectors = costs.embeddings()
    scored: list[Report] = []
    runs: list[AnswerRun] = []
    stopped, how_on = "", running.resume(vectors.path, store)
    with running.reporting(sys.stderr) as progress, running.stoppable(how_on):
        cached = CachedEmbedder(model, vectors)
        found = run_experiment(
            benchmark, chunkers, cached, measures=measures_at((depth,)), retrievers=[retriever], progress=progress
        )

        def ask(report: Report, names: Sequence[str], llm: LLM, judge: LLM) -> tuple[AnswerRun, Report]:
            assert report.run is not None

            def named(step: str, done: int, total: int) -> None:
                progress(f"{step}: {report.name}", done, total)

            run = answer_questions(benchmark, report.run, llm, depth, retries=retries, progress=named)
            return run, score_answers(
                benchmark,
                run,
                names,
                embedder=model,
                bert_model=bert_model or model,
                judge=judge,
                retries=retries,
                progress=named,
            )

        if costs.dry_run:
            answers_of, verdicts_of, by_judge = Estimator(), Estimator(), judged(names)
            for report in found:
                ask(report, by_judge, answers_of, verdicts_of)
            running.say(f"answers by {answering.name}: {running.spent(answers_of.usage, prices)}")
            if by_judge:
                running.say(f"verdicts by {judging.name}: {running.spent(verdicts_of.usage, prices)}")
            running.say(
                "Tokens are counted as cl100k_base. Answers of 20 words are assumed, and verdicts on two statements; "
                "questions that must be repeated and answers that are kept already are not foreseen. Nothing was asked."
            )
            return
        try:
            for report in found:
                run, own = ask(report, names, answering, judging)
                scored.append(replace(report, scores={**report.scores, **own.scores}, unanswered=own.unanswered))
                runs.append(run)
        except KeyboardInterrupt:
            if not runs:
                raise
            stopped = f"stopped before the end; the report is of the first {len(runs)} of {len(found)} strategies"
        comparison = settings.compare(scored[: len(runs)], get_measure(names[0], depth))
    facts = {"Answers by": answering.name, "Embedder": embedder, "Retriever": retriever}
    page = ReportPage(comparison, benchmark, facts, today(), stopped=stopped and f"{stopped.capitalize()}.")
    answered = _Answered(page, benchmark, runs, names, depth)
    html = answered.write(output)
    answered.show()
    asked_of = {each.name: f"{each.name}: {running.spent(each.usage, prices)}" for each in (answering, judging)}
    for line in [*running.used(chunkers.values(), prices), *asked_of.values()]:
        typer.echo(f"\n{terminal_text(line)}")
    typer.echo(f"\n{output / ANSWERS}\n{html}")
    if stopped:
        raise running.StoppedError(f"{stopped}; {how_on}")


@dataclass(frozen=True, eq=False)
class _Answered:
    """A comparison of answers, with the answers in the order of its reports."""

    page: ReportPage
    benchmark: Benchmark
    runs: Sequence[AnswerRun]
    names: Sequence[str]
    depth: Depth

    def write(self, folder: Path) -> Path | None:
        """Write the report and ``answers.jsonl``, a line for each strategy and question; return the page's path."""
        from chunkcore.files import write_parts
        from chunkcore.report import write_report

        write_parts(folder / ANSWERS, self._lines())
        return write_report(self.page, folder).html

    def show(self) -> None:
        """Print the tables, the notes and the verdict."""
        from rich.console import Console
        from rich.text import Text

        console = Console(highlight=False)
        for first in range(0, len(self.names), _AT_ONCE):
            console.print(self._table(self.names[first : first + _AT_ONCE], retrieved=not first))
        for note in self._notes():
            console.print(Text(f"! {terminal_text(note)}"), style="yellow")
        console.print(Text(terminal_text(f"\n{self.page.comparison.verdict}")), style="bold")

    def _table(self, names: Sequence[str], *, retrieved: bool) -> Table:
        from chunkcore.evaluation.measures import describe_depth, get_measure
        from chunkcore.report.tables import amount, percent

        def cells(report: Report) -> list[str]:
            recall = report.mean(get_measure("Recall", self.depth))
            more = [percent(recall), amount(report.mean_tokens(self.depth))] if retrieved else []
            measures = [get_measure(name, self.depth) for name in names]
            scores = [(report.mean(each), *self.page.interval(report, each)) for each in measures]
            return [*(f"{percent(mean)}\n{percent(low, 0)}–{percent(high, 0)}" for mean, low, high in scores), *more]

        level = f"{100 * self.page.comparison.confidence:g} %"
        title = f"Answers from {describe_depth(self.depth)}: means in %, {level} intervals" if retrieved else None
        headings = [*names, *(("Recall", "Tokens") if retrieved else ())]
        return running.strategy_table(title, headings, [(each.name, cells(each)) for each in self.page.reports])

    def _notes(self) -> Iterator[str]:
        from chunkcore.answers.answering import judged
        from chunkcore.report.tables import warnings

        yield from warnings(self.page)
        for report, run in zip(self.page.comparison.reports, self.runs, strict=True):
            failures = [found.failure for found in run.answers.values() if found.failure]
            if failures:
                count = f"{len(failures):,} of {len(run.answers):,} questions"
                yield f"{report.name}: {count} have no valid answer and score 0; the first: {failures[0]}"
            empty = sum(not found.text and not found.failure for found in run.answers.values())
            if empty:
                yield f"{report.name}: of {empty:,} questions the model says that the passages do not answer them."
            answered = [bool(run.answers[query].text) for query in report.query_ids]
            for name in judged(self.names):
                values = self._values(report, name).tolist()
                unknown = sum(math.isnan(value) and some for value, some in zip(values, answered, strict=True))
                if unknown:
                    yield f"{report.name}: {name} leaves out {unknown:,} answers that got no valid verdict."

    def _lines(self) -> Iterator[bytes]:
        from chunkcore.answers.answering import references_of

        for report, run in zip(self.page.comparison.reports, self.runs, strict=True):
            columns = {name: self._values(report, name).tolist() for name in self.names}
            for number, query in enumerate(self.benchmark.queries):
                found = run.answers[query.id]
                row = {
                    "strategy": report.name,
                    "question_id": query.id,
                    "question": query.text,
                    "answer": found.text,
                    **({"failure": found.failure} if found.failure else {}),
                    "right": list(references_of(query)),
                    "scores": plain_json({name: values[number] for name, values in columns.items()}),
                    "passages": list(found.passages),
                }
                yield f"{json.dumps(row)}\n".encode("ascii")  # a surrogate in a document is no UTF-8

    def _values(self, report: Report, name: str) -> Scores:
        from chunkcore.evaluation.measures import get_measure

        return report.values(get_measure(name, self.depth))


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


def _limited(benchmark: Benchmark, limit: int | None, seed: int) -> Benchmark:
    """The benchmark with `limit` drawn questions, in their order. A larger limit has the questions of a smaller one."""
    queries = benchmark.queries
    if limit is None or limit >= len(queries):
        return benchmark
    order = random.Random(seed).sample(range(len(queries)), len(queries))[:limit]  # noqa: S311
    return replace(benchmark, queries=[queries[number] for number in sorted(order)])


def _measures(given: Sequence[str], benchmark: Benchmark) -> list[str]:
    from chunkcore.answers.answering import DEFAULT_MEASURES, answer_measures, references_of

    for name in given:
        if name not in answer_measures():
            raise OptionError(f"--measure {name}: expected one of {', '.join(answer_measures())}")
    if given:
        return list(dict.fromkeys(given))
    if any(references_of(query) for query in benchmark.queries):
        return list(DEFAULT_MEASURES)
    raise DataError(
        f'no question of {benchmark.name!r} has "answers": give the questions right answers, or ask for a '
        "measure that needs none (--measure AnswerCosine, Faithfulness or Relevancy)"
    )
