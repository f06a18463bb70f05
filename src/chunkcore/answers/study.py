"""`AnswerStudy`: a language model answers from each chunker's chunks, as ``chunkcore answer`` has it."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from chunkcore.answers.answering import (
    DEFAULT_MEASURES,
    AnswerRun,
    answer_measures,
    answer_questions,
    check_measures,
    judged,
    references_of,
    score_answers,
)
from chunkcore.chunkers.base import Chunker
from chunkcore.concurrency import Progress
from chunkcore.errors import DataError, OptionError
from chunkcore.escaping import plain_json
from chunkcore.evaluation.benchmarks.benchmark import Benchmark
from chunkcore.evaluation.experiment import run_experiment
from chunkcore.evaluation.measures import Depth, Scores, get_measure, measures_at
from chunkcore.evaluation.results import Report
from chunkcore.files import write_parts
from chunkcore.models.base import Embedder
from chunkcore.models.cache import CachedEmbedder
from chunkcore.models.llm import LLM, Estimator, Usage
from chunkcore.outputs import ANSWERS
from chunkcore.report.page import ReportPage
from chunkcore.report.records import write_report
from chunkcore.report.study import StudySettings, today
from chunkcore.report.tables import warnings


@dataclass(frozen=True, kw_only=True)
class AnswerSettings:
    """What a model is shown, how its answers are scored, and how systems are compared.

    Attributes:
        measures: of answers; by default `usual_measures` of the benchmark.
        depth: what the model is shown: so many pieces, or a budget of tokens.
        judge: the model that judges; by default the one that answers.
        bert_model: of BertScore; by default the embedder.
        retries: after an invalid answer.
        study: the statistics.
    """

    measures: tuple[str, ...] = ()
    depth: Depth = 5
    judge: LLM | None = None
    bert_model: str = ""
    retries: int = 2
    study: StudySettings = field(default_factory=StudySettings)


@dataclass(frozen=True, eq=False)
class AnswerComparison:
    """A comparison of answers, with the answers in the order of its reports."""

    page: ReportPage
    benchmark: Benchmark
    runs: Sequence[AnswerRun]
    measures: Sequence[str]
    depth: Depth

    def write(self, folder: Path) -> Path | None:
        """Write the report and ``answers.jsonl``, a line for each chunker and question; return the page's path."""
        # ASCII: a surrogate in a document is no UTF-8.
        write_parts(folder / ANSWERS, (f"{json.dumps(row)}\n".encode("ascii") for row in self.rows()))
        return write_report(self.page, folder).html

    def rows(self) -> Iterator[dict[str, Any]]:
        """For each chunker and question: the answer, the right ones, the scores, the passages shown."""
        for report, run in zip(self.page.comparison.reports, self.runs, strict=True):
            columns = {name: self._values(report, name).tolist() for name in self.measures}
            for number, query in enumerate(self.benchmark.queries):
                answer = run.answers[query.id]
                yield {
                    "strategy": report.name,
                    "question_id": query.id,
                    "question": query.text,
                    "answer": answer.text,
                    **({"failure": answer.failure} if answer.failure else {}),
                    "right": list(references_of(query)),
                    "scores": plain_json({name: values[number] for name, values in columns.items()}),
                    "passages": list(answer.passages),
                }

    def notes(self) -> Iterator[str]:
        """Caveats to read before the numbers, one sentence each."""
        yield from warnings(self.page)
        for report, run in zip(self.page.comparison.reports, self.runs, strict=True):
            failures = [answer.failure for answer in run.answers.values() if answer.failure]
            if failures:
                count = f"{len(failures):,} of {len(run.answers):,} questions"
                yield f"{report.name}: {count} have no valid answer and score 0; the first: {failures[0]}"
            empty = sum(not answer.text and not answer.failure for answer in run.answers.values())
            if empty:
                yield f"{report.name}: of {empty:,} questions the model says that the passages do not answer them."
            answered = [bool(run.answers[query].text) for query in report.query_ids]
            for name in judged(self.measures):
                values = self._values(report, name).tolist()
                unknown = sum(math.isnan(value) and some for value, some in zip(values, answered, strict=True))
                if unknown:
                    yield f"{report.name}: {name} leaves out {unknown:,} answers that got no valid verdict."

    def _values(self, report: Report, name: str) -> Scores:
        return report.values(get_measure(name, self.depth))


class AnswerStudy:
    """The passages of each chunker for each question, of which a model's answers are estimated or asked.

    Args:
        chunkers: by name.
        embedder: of the chunks.
        retriever: its spec.

    Raises:
        OptionError: a measure is unknown, or needs what is not installed.
        DataError: no question has right answers, and a measure needs them.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        chunkers: Mapping[str, Chunker],
        embedder: CachedEmbedder,
        retriever: str,
        settings: AnswerSettings,
        progress: Progress | None = None,
    ) -> None:
        self.benchmark, self.settings = benchmark, settings
        self.measures = list(settings.measures) or usual_measures(benchmark)
        self.embedder = embedder
        self._progress = progress or (lambda step, done, total: None)
        self.reports = run_experiment(
            benchmark,
            chunkers,
            embedder,
            measures=measures_at((settings.depth,)),
            retrievers=[retriever],
            progress=progress,
        )

    def _ask(self, report: Report, measures: Sequence[str], llm: LLM, judge: LLM) -> tuple[AnswerRun, Report]:
        assert report.run is not None
        settings, model = self.settings, self.embedder.embedder

        def progress(step: str, done: int, total: int) -> None:
            self._progress(f"{step}: {report.name}", done, total)

        run = answer_questions(
            self.benchmark, report.run, llm, settings.depth, retries=settings.retries, progress=progress
        )
        scored = score_answers(
            self.benchmark,
            run,
            measures,
            embedder=model,
            bert_model=settings.bert_model or model,
            judge=judge,
            retries=settings.retries,
            progress=progress,
        )
        return run, scored

    def estimate(self) -> tuple[Usage, Usage]:
        """What answers and verdicts would take, without asking."""
        answers, verdicts = Estimator(), Estimator()
        for report in self.reports:
            self._ask(report, judged(self.measures), answers, verdicts)
        return answers.usage, verdicts.usage

    def compare(self, llm: LLM, facts: Mapping[str, str] | None = None) -> AnswerComparison:
        """Ask, score and compare. Stopped by Ctrl-C, the chunkers that were answered for are compared."""
        scored: list[Report] = []
        runs: list[AnswerRun] = []
        stopped = ""
        try:
            for report in self.reports:
                run, answered = self._ask(report, self.measures, llm, self.settings.judge or llm)
                scores = {**report.scores, **answered.scores}
                scored.append(replace(report, scores=scores, unanswered=answered.unanswered))
                runs.append(run)
        except KeyboardInterrupt:
            if not runs:
                raise
            count = f"{len(runs)} of {len(self.reports)}"
            stopped = f"Stopped before the end; the report is of the first {count} strategies."
        measure = get_measure(self.measures[0], self.settings.depth)
        comparison = self.settings.study.compare(scored[: len(runs)], measure)
        page = ReportPage(comparison, self.benchmark, facts or {}, today(), stopped=stopped)
        return AnswerComparison(page, self.benchmark, runs, self.measures, self.settings.depth)


def check_answer_settings(benchmark: Benchmark, settings: AnswerSettings, embedder: Embedder, llm: LLM) -> None:
    """Check before long work that the measures can be scored. Raises `OptionError` or `DataError`."""
    measures = list(settings.measures) or usual_measures(benchmark)
    check_measures(benchmark, measures, bert_model=settings.bert_model or embedder, judge=settings.judge or llm)
    settings.study.check(benchmark)


def checked_measures(names: Sequence[str]) -> tuple[str, ...]:
    """The names of measures of answers, each once. Raises `OptionError`: another name."""
    for name in names:
        if name not in answer_measures():
            raise OptionError(f"--measure {name}: expected one of {', '.join(answer_measures())}")
    return tuple(dict.fromkeys(names))


def usual_measures(benchmark: Benchmark) -> list[str]:
    """SquadF1 and ExactMatch. Raises `DataError`: no question has right answers."""
    if any(references_of(query) for query in benchmark.queries):
        return list(DEFAULT_MEASURES)
    raise DataError(
        f'no question of {benchmark.name!r} has "answers": give the questions right answers, or ask for a '
        "measure that needs none (--measure AnswerCosine, Faithfulness or Relevancy)"
    )


def limited(benchmark: Benchmark, limit: int, seed: int = 0) -> Benchmark:
    """The benchmark with `limit` drawn questions, in their order; 0: all. A larger limit has those of a smaller one."""
    queries = benchmark.queries
    if not limit or limit >= len(queries):
        return benchmark
    order = random.Random(seed).sample(range(len(queries)), len(queries))[:limit]  # noqa: S311
    return replace(benchmark, queries=[queries[number] for number in sorted(order)])
