"""``chunkcore answer``: a language model answers from each strategy's chunks; whose answers are better?"""

from __future__ import annotations

import datetime
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chunkcore.cli import flags
from chunkcore.cli.answer_study import ANSWERS, AnswerStudy
from chunkcore.cli.building import build_chunkers
from chunkcore.cli.caching import default_cache
from chunkcore.cli.inputs import read_benchmark
from chunkcore.cli.progress import Report as Progress
from chunkcore.cli.progress import reporting
from chunkcore.cli.signals import going_on, told_when_stopped
from chunkcore.cli.spending import estimates, keeping, read_prices, spent, used
from chunkcore.cli.stopping import StoppedError
from chunkcore.cli.wording import help_text

if TYPE_CHECKING:
    from chunkcore.answers import AnswerRun
    from chunkcore.chunkers.base import Chunker
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark
    from chunkcore.evaluation.measures import Depth
    from chunkcore.evaluation.results import Report
    from chunkcore.models import Embedder
    from chunkcore.models.llm import LLM, Prices

__all__ = ["DEFAULT_STRATEGIES", "HELP", "answer"]

DEFAULT_STRATEGIES = ("recursive:size=100", "recursive:size=200", "recursive:size=400")

HELP = help_text(
    f"""Let a language model answer questions from each strategy's chunks, and compare the answers.

Each question is asked with the best --k chunks of each strategy, or with the best chunks up to a budget such as
4096tok. --questions is a file with a line like {{"question": "...", "evidence": ["a verbatim excerpt"], "answers":
["the right answer", "another"]}}; or with "choices": ["...", "..."] and "correct": 1, the place of the right one from
0. The public collections that docs/formats.md names are read, too, also those without evidence.

Measures: ExactMatch, SquadF1, RougeL, Bleu1, Bleu4, Meteor, BertScore (words or meaning shared with a right answer),
Accuracy (multiple choice), AnswerCosine (with the question), Faithfulness and Relevancy (judged by --judge, or the
model itself). docs/answers.md explains each. The verdict is about the first.

Prints the table and the verdict, and writes answers.jsonl beside the files of a comparison's report into the output
folder. The last line is the path of report.html.

Unless --strategy is given, compares {", ".join(DEFAULT_STRATEGIES)}.

Valid answers are kept in {default_cache()}: nothing is asked twice, and a run that was stopped or killed goes on
where it was. --dry-run tells beforehand what all of it takes.

  chunkcore answer --docs docs/ --questions questions.jsonl --llm openai:qwen3:8b@http://localhost:11434/v1

  chunkcore answer --docs docs/ --questions questions.jsonl --llm openai:gpt-5-mini@https://api.openai.com/v1
  -s recursive:size=200 -s breakpoint --k 4096tok --measure RougeL --measure Faithfulness --limit 50 --dry-run
  --input-price 0.25 --output-price 2
"""
)


def answer(
    llm: Annotated[str, typer.Option(help="The language model, as openai:MODEL@URL.")],
    docs: flags.Docs = None,
    questions: Annotated[Path | None, typer.Option(help="A questions.jsonl.")] = None,
    dataset: flags.Dataset = "lochmere",
    layout: flags.Layout = "auto",
    strategy: flags.Strategies = None,
    k: Annotated[str, typer.Option("--k", "-k", help="What the model is shown: pieces, or 4096tok.")] = "5",
    measure: Annotated[
        list[str] | None,
        typer.Option(help="Once a measure; see above. Default: SquadF1, ExactMatch; Accuracy of multiple choice."),
    ] = None,
    judge: Annotated[str, typer.Option(help="The model that judges. Default: --llm.")] = "",
    embedder: Annotated[str, typer.Option(help="Of chunks and questions.")] = "all-MiniLM-L6-v2",
    bert_model: Annotated[str, typer.Option(help="Of BertScore. Default: --embedder.")] = "",
    retriever: Annotated[str, typer.Option(help="How chunks are searched: dense, bm25, hybrid, ...")] = "dense",
    limit: Annotated[int | None, typer.Option(min=1, help="Ask so many questions, drawn by the seed.")] = None,
    retries: Annotated[int, typer.Option(min=0, help="How often a model is told that its answer is none.")] = 2,
    cache: flags.EmbeddingFile = None,
    answers: Annotated[Path | None, typer.Option(help="The file that keeps answers; see above.")] = None,
    no_cache: flags.NoCache = False,
    dry_run: flags.DryRun = False,
    input_price: flags.InputPrice = None,
    output_price: flags.OutputPrice = None,
    margin: flags.Margin = 2.0,
    by: Annotated[str, typer.Option(help="What is resampled: question or document.")] = "question",
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap and of --limit.")] = 0,
    resamples: flags.Resamples = 10_000,
    output: flags.OutputFolder = Path("chunkcore-answers"),
) -> None:
    """Let a language model answer questions from each strategy's chunks, and compare the answers."""
    from rich.console import Console
    from rich.text import Text

    from chunkcore.answers.answering import answerable, retrieve
    from chunkcore.answers.scoring import check_measures
    from chunkcore.chunkers.configuration import sized_spec
    from chunkcore.escaping import terminal_text
    from chunkcore.evaluation.measures import get_measure
    from chunkcore.evaluation.statistics.comparison import compare
    from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder
    from chunkcore.models.llm import Estimator
    from chunkcore.report import ReportPage
    from chunkcore.report.rendering import require_jinja2

    require_jinja2()
    prices = read_prices(input_price, output_price)
    depth = _depth(k)
    store = None if no_cache else answers or default_cache()
    answering = _kept(llm, store, private=answers is None)
    models = _Models(answering, _kept(judge, store, private=answers is None) if judge else answering)
    given = read_benchmark(docs, questions, dataset, output, layout, [ANSWERS], require_evidence=False)
    benchmark = _limited(given, limit, seed)
    asked = answerable(benchmark)
    names = _measures(measure or [], asked)
    verdict_by = get_measure(names[0], depth)
    clusters = _clusters(benchmark, by)
    model = get_embedder(embedder)
    check_measures(asked, names, bert_model=bert_model or model, judge=models.judging)
    specs = [sized_spec(each.strip(), model) for each in strategy or DEFAULT_STRATEGIES]
    chunkers = build_chunkers(specs, model)
    if dry_run and _asks(chunkers):
        for line in estimates(dict(zip(specs, chunkers, strict=True)), benchmark.documents, prices):
            typer.echo(terminal_text(line))
        typer.echo("What answers take is known once these have cut the documents: leave them out to see the others'.")
        return
    if not dry_run:
        output.mkdir(parents=True, exist_ok=True)  # where that cannot be, before anything is paid for
    chunkers = [keeping(chunker, store) for chunker in chunkers]
    vectors = EmbeddingCache(None if no_cache else cache or default_cache(), private=cache is None)
    scored: list[Report] = []
    runs: list[AnswerRun] = []
    stopped, how_on = "", going_on(vectors.path, store)
    with reporting(sys.stderr) as progress, told_when_stopped(how_on):
        named = dict(zip(specs, chunkers, strict=True))
        cached = CachedEmbedder(model, vectors)
        found = retrieve(benchmark, named, cached, depth, retrievers=[retriever], progress=progress)
        work = _Work(asked, names, depth, bert_model or model, model, retries, progress)
        if dry_run:
            for line in work.estimate(found, Estimator(), Estimator(), models, prices):
                typer.echo(terminal_text(line))
            return
        try:
            for report in found:
                answered, answer_report = work.done(report, models)
                scores = {**report.scores, **answer_report.scores}
                scored.append(replace(report, scores=scores, unanswered=answer_report.unanswered))
                runs.append(answered)
        except KeyboardInterrupt:
            if not runs:
                raise
            stopped = f"stopped before the end; the report is of the first {len(runs)} of {len(found)} strategies"
        comparison = compare(
            scored[: len(runs)], verdict_by, resamples=resamples, seed=seed, margin=margin / 100, clusters=clusters
        )
    settings = {"Answers by": models.answering.name, "Embedder": embedder, "Retriever": retriever}
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    shown = None if benchmark.without_evidence else asked  # what stands for evidence there is not to be seen
    result = AnswerStudy(
        ReportPage(comparison, shown, settings, today, stopped=stopped and f"{stopped.capitalize()}."),
        asked,
        runs,
        names,
        depth,
    )
    page = result.write(output)
    console = Console(highlight=False)
    for table in result.tables():
        console.print(table)
    for note in result.notes():
        console.print(Text(f"! {terminal_text(note)}"), style="yellow")
    console.print(Text(terminal_text(f"\n{comparison.verdict}")), style="bold")
    for line in [*used(chunkers, prices), *models.told(prices)]:
        typer.echo(f"\n{terminal_text(line)}")
    typer.echo(f"\n{output / ANSWERS}\n{page}")
    if stopped:
        raise StoppedError(f"{stopped}; {how_on}")


@dataclass(frozen=True)
class _Models:
    """Who answers and who judges: the same object where they are the same model."""

    answering: LLM
    judging: LLM

    def told(self, prices: Prices | None) -> list[str]:
        """What each took."""
        from chunkcore.models.llm import Usage

        found = {each.name: getattr(each, "usage", Usage()) for each in (self.answering, self.judging)}
        return [f"{name}: {spent(usage, prices)}" for name, usage in found.items()]


@dataclass(frozen=True)
class _Work:
    """What is done with each strategy's run."""

    benchmark: Benchmark
    names: Sequence[str]
    depth: Depth
    bert_model: Embedder | str
    embedder: Embedder
    retries: int
    progress: Progress

    def done(self, report: Report, models: _Models) -> tuple[AnswerRun, Report]:
        """The answers, and their scores."""
        from chunkcore.answers import answer_questions, score_answers

        assert report.run is not None
        answered = answer_questions(
            self.benchmark,
            report.run,
            models.answering,
            self.depth,
            retries=self.retries,
            progress=lambda done, total: self.progress(f"answers: {report.name}", done, total),
        )
        found = score_answers(
            self.benchmark,
            answered,
            self.names,
            embedder=self.embedder,
            bert_model=self.bert_model,
            judge=models.judging,
            retries=self.retries,
            progress=lambda name, done, total: self.progress(f"{name}: {report.name}", done, total),
        )
        return answered, found

    def estimate(
        self, reports: Sequence[Report], answering: LLM, judging: LLM, models: _Models, prices: Prices | None
    ) -> Iterator[str]:
        """What the questions to models would take, a line a model, and what that rests on."""
        from chunkcore.answers.scoring import judged

        asked = judged(self.names)
        for report in reports:
            replace(self, names=asked).done(report, _Models(answering, judging))
        yield f"answers by {models.answering.name}: {spent(answering.usage, prices)}"  # type: ignore[attr-defined]
        if asked:
            yield f"verdicts by {models.judging.name}: {spent(judging.usage, prices)}"  # type: ignore[attr-defined]
        yield (
            "Tokens are counted as cl100k_base. Answers of 20 words are assumed, and verdicts on two statements; "
            "questions that must be repeated and answers that are kept already are not foreseen. Nothing was asked."
        )


def _kept(spec: str, store: Path | None, *, private: bool) -> LLM:
    """The model, with its answers kept in the file; without one, for this run."""
    from chunkcore.models.llm import CachedLLM, LLMCache, get_llm

    found = get_llm(spec)
    return found if isinstance(found, CachedLLM) else CachedLLM(found, LLMCache(store, private=private))


def _depth(text: str) -> Depth:
    """How many pieces, or tokens, a model is shown.

    Raises:
        OptionError: it is neither; "min" would depend on the evidence, which no model is told.
    """
    from chunkcore.errors import OptionError
    from chunkcore.evaluation.measures import parse_depth

    try:
        depth = parse_depth(text)
    except OptionError:
        depth = "min"
    if depth == "min":
        raise OptionError(f"--k: expected a number of pieces from 1, or a budget of tokens like 4096tok, got {text!r}")
    return depth


def _limited(benchmark: Benchmark, limit: int | None, seed: int) -> Benchmark:
    """So many questions, drawn; in their order. A larger limit asks those of a smaller one, too."""
    both = [*benchmark.queries, *benchmark.without_evidence]
    if limit is None or limit >= len(both):
        return benchmark
    order = random.Random(seed).sample(range(len(both)), len(both))[:limit]  # noqa: S311
    kept = {both[number].id for number in order}
    return replace(
        benchmark,
        queries=[query for query in benchmark.queries if query.id in kept],
        without_evidence=tuple(query for query in benchmark.without_evidence if query.id in kept),
    )


def _measures(given: Sequence[str], benchmark: Benchmark) -> list[str]:
    """The measures that are asked for; the usual ones of what the questions let score where none are.

    Raises:
        OptionError: one is no measure of answers.
        DataError: none is asked for, and no question has a right answer.
    """
    from chunkcore.answers.answering import choices_of
    from chunkcore.answers.scoring import DEFAULT_MEASURES, answer_measures, references_of
    from chunkcore.errors import DataError, OptionError

    for name in given:
        if name not in answer_measures():
            raise OptionError(f"--measure {name}: expected one of {', '.join(answer_measures())}")
    if given:
        return list(dict.fromkeys(given))  # type: ignore[arg-type]
    if any(references_of(query) for query in benchmark.queries):
        choosing = any(choices_of(query) is not None for query in benchmark.queries)
        return ["Accuracy"] if choosing else list(DEFAULT_MEASURES)
    raise DataError(
        f'no question of {benchmark.name!r} has "answers" or "choices": give the questions right answers, or ask for a '
        "measure that needs none (--measure AnswerCosine, Faithfulness or Relevancy)"
    )


def _asks(chunkers: Sequence[Chunker]) -> bool:
    from chunkcore.chunkers.llm import LLMChunker

    return any(isinstance(chunker, LLMChunker) for chunker in chunkers)


def _clusters(benchmark: Benchmark, by: str) -> dict[str, str] | None:
    from chunkcore.errors import OptionError
    from chunkcore.evaluation.benchmarks.benchmark import question_documents

    if by not in ("question", "document"):
        raise OptionError(f"--by is question or document, got {by!r}")
    if by == "question":
        return None
    if benchmark.without_evidence:
        raise OptionError("--by document needs the documents that evidence is in, and some questions have none")
    return question_documents(benchmark)
