"""`score_answers`: a report from answers, query by query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from chunkcore.answers.answering import Answer, AnswerRun, choices_of
from chunkcore.concurrency import Progress
from chunkcore.errors import DataError, OptionError, echo
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Query
from chunkcore.evaluation.measures import Depth, get_measure, known_measures
from chunkcore.evaluation.measures.answers import AnsweredQuestion, AnswerMeasure, AnswerModels
from chunkcore.evaluation.results import Report
from chunkcore.models.base import Embedder
from chunkcore.models.llm import LLM
from chunkcore.models.loading import DEFAULT_MODEL

DEFAULT_MEASURES = ("SquadF1", "ExactMatch")


def score_answers(
    benchmark: Benchmark,
    answered: AnswerRun,
    measures: Iterable[str] = DEFAULT_MEASURES,
    *,
    embedder: Embedder | str = DEFAULT_MODEL,
    bert_model: Embedder | str | None = None,
    judge: LLM | str | None = None,
    retries: int = 2,
    progress: Progress | None = None,
) -> Report:
    """A report of answers' scores, query by query, at `answered.k`: "SquadF1@5".

    - **Right answers** are ``metadata["answers"]`` (a text or a list), else ``metadata["answer"]``; of a multiple
    choice the correct choice. Without them, measures that need one are NaN. An empty text, "unanswerable", or
    ``metadata["unanswerable"]`` means that no answer is right.
    - **No answer** (`Answer.failure`, or a missing query) scores 0 by every measure but Faithfulness, and is listed in
    `Report.unanswered`.
    - **Faithfulness** is NaN for an empty answer, and without a valid verdict.

    Args:
        benchmark: the queries.
        answered: any system's answers.
        measures: kinds of answer measures, such as "SquadF1".
        embedder: of AnswerCosine.
        bert_model: of BertScore, a model with token vectors; by default the embedder.
        judge: the language model of Faithfulness and Relevancy.
        retries: after an invalid verdict.
        progress: called with the kind of a judged measure, the number done, and of all.

    Raises:
        OptionError: no such measure, a missing judge, or a BertScore model without token vectors.
        DataError: malformed answers or choices, or no query has what a measure needs.

    >>> from chunkcore import Benchmark, Document, Evidence, Query, Span
    >>> evidence = (Evidence("fox.txt", Span(4, 7)),)
    >>> query = Query("q1", "Who naps?", evidence, metadata={"answers": ["the fox"]})
    >>> toy = Benchmark("toy", [Document("fox.txt", "The fox naps.")], [query])
    >>> report = score_answers(toy, AnswerRun("mine", {"q1": Answer("A brown fox")}), ["SquadF1"])
    >>> round(report.mean("SquadF1@5"), 3)
    0.667
    """
    models = AnswerModels(embedder=embedder, bert_model=bert_model, judge=judge, retries=retries, progress=progress)
    wanted = _checked(benchmark, measures, answered.k, models)
    cases = _cases(benchmark, answered)
    return Report(
        name=answered.name,
        benchmark=benchmark.name,
        query_ids=tuple(query.id for query in benchmark.queries),
        collections=tuple(query.collection for query in benchmark.queries),
        scores={each: np.array(each.compute(cases, models), dtype=np.float64) for each in wanted},
        unanswered=tuple(query.id for query, case in zip(benchmark.queries, cases, strict=True) if case.failed),
        documents_digest=benchmark.documents_digest,
    )


def answer_measures() -> list[str]:
    """The kinds of all answer measures, in column order."""
    return [each.kind for each in known_measures() if issubclass(each, AnswerMeasure)]


def judged(kinds: Iterable[str]) -> list[str]:
    """The measures that ask a judge, in column order."""
    found = [each for each in known_measures() if issubclass(each, AnswerMeasure) and "judge" in each.needs]
    return [each.kind for each in found if each.kind in kinds]


def check_measures(
    benchmark: Benchmark,
    measures: Iterable[str],
    *,
    bert_model: Embedder | str = DEFAULT_MODEL,
    judge: LLM | str | None = None,
) -> list[str]:
    """The distinct measures, if this benchmark's answers can be scored by all of them.

    Call before paying for answers. Raises as `score_answers`.
    """
    models = AnswerModels(bert_model=bert_model, judge=judge)
    return [each.kind for each in _checked(benchmark, measures, 1, models)]


def _checked(benchmark: Benchmark, kinds: Iterable[str], k: Depth, models: AnswerModels) -> list[AnswerMeasure]:
    wanted = []
    for kind in dict.fromkeys(kinds):
        if kind not in answer_measures():
            raise OptionError(f"{echo(kind)} is no measure of answers: expected some of {', '.join(answer_measures())}")
        measure = get_measure(kind, k)
        assert isinstance(measure, AnswerMeasure)
        if "judge" in measure.needs and models.judge is None:
            raise OptionError(f"{kind} is judged by a language model: give one as judge")
        measure.check()
        wanted.append(measure)
    for kind, needs in ((each.kind, each.needs) for each in wanted):
        if "choices" in needs and not any(_correct(query) is not None for query in benchmark.queries):
            raise DataError(f'no question of {echo(benchmark.name)} has "choices" and "correct", which {kind} needs')
        if "references" in needs and not any(map(references_of, benchmark.queries)):
            raise DataError(f'no question of {echo(benchmark.name)} has right "answers", which {kind} needs')
        if "tokens" in needs:
            _ = models.tokens
    return wanted


def references_of(query: Query) -> tuple[str, ...]:
    """The query's right answers; none if unknown. Raises `DataError` if malformed."""
    choices = choices_of(query)
    if choices is not None:
        return () if choices.correct is None else (choices.texts[choices.correct],)
    if query.metadata.get("unanswerable") is True:
        return ("",)
    given = query.metadata.get("answers")
    if given is None:
        given = query.metadata.get("answer")
        return (_reference(given),) if isinstance(given, str) else ()
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, Sequence) or not all(isinstance(each, str) for each in listed):
        raise DataError(
            f'query {echo(query.id)}: expected "answers" to be a list of texts, got {echo(str(given)[:80])}'
        )
    return tuple(map(_reference, listed))


def _reference(text: str) -> str:
    """Maps "unanswerable" to an empty text."""
    return "" if text.strip().casefold() == "unanswerable" else text


def _correct(query: Query) -> int | None:
    choices = choices_of(query)
    return None if choices is None else choices.correct


def _cases(benchmark: Benchmark, answered: AnswerRun) -> list[AnsweredQuestion]:
    known = {query.id for query in benchmark.queries}
    if answered.answers and not known & answered.answers.keys():
        raise DataError(
            f"{answered.name!r} answers none of the benchmark's queries: it has {next(iter(answered.answers))!r}, the "
            f"benchmark {echo(next(iter(known), 'none'))}"
        )
    missing = Answer("", failure="the query is not among the answers")
    return [_case(query, answered.answers.get(query.id, missing)) for query in benchmark.queries]


def _case(query: Query, answer: Answer) -> AnsweredQuestion:
    return AnsweredQuestion(
        question=query.text,
        answer=answer.text,
        passages=tuple(answer.passages),
        references=references_of(query),
        failed=bool(answer.failure),
        choice=answer.choice,
        correct=_correct(query),
    )
