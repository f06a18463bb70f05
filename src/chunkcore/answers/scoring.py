"""`score_answers`: answers to a report, query by query."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from chunkcore.answers.answering import Answer, AnswerRun, asking, choices_of
from chunkcore.answers.measures import (
    answer_cosines,
    bert_scores,
    bleu,
    exact_match,
    faithfulness_question,
    meteor,
    relevancy_question,
    rouge_l,
    squad_f1,
)
from chunkcore.concurrency import Progress
from chunkcore.errors import DataError, NoAnswerError, OptionError
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Query
from chunkcore.evaluation.measures import ANSWER_MEASURES, Measure, MeasureName
from chunkcore.evaluation.results import Report, Scores
from chunkcore.models.base import Embedder
from chunkcore.models.late import get_token_embedder
from chunkcore.models.llm import LLM, Question, ask, get_llm
from chunkcore.models.loading import DEFAULT_MODEL, get_embedder

__all__ = ["DEFAULT_MEASURES", "JUDGED", "check_measures", "references_of", "score_answers"]

DEFAULT_MEASURES: tuple[MeasureName, ...] = ("SquadF1", "ExactMatch")
JUDGED: tuple[MeasureName, ...] = ("Faithfulness", "Relevancy")

# Of an answer and its references, from 0 to 1.
_BY_WORDS: dict[MeasureName, Callable[[str, Sequence[str]], float]] = {
    "ExactMatch": exact_match,
    "SquadF1": squad_f1,
    "RougeL": rouge_l,
    "Bleu1": partial(bleu, order=1),
    "Bleu4": partial(bleu, order=4),
    "Meteor": meteor,
}


def score_answers(
    benchmark: Benchmark,
    answered: AnswerRun,
    measures: Iterable[MeasureName] = DEFAULT_MEASURES,
    *,
    embedder: Embedder | str = DEFAULT_MODEL,
    bert_model: Embedder | str | None = None,
    judge: LLM | str | None = None,
    retries: int = 2,
    progress: Progress | None = None,
) -> Report:
    """Score answers, query by query, so that `compare` can say which system's are better.

    - **Right answers** are a query's ``metadata["answers"]``, a text or a list of them, any of which is right, or where
      it has none a text ``metadata["answer"]``; of a multiple choice the correct choice. Where a query has none of
      these, the measures that need one are NaN. An empty text, "unanswerable", or ``metadata["unanswerable"]`` says
      that nothing is the right answer.
    - **No answer** (`Answer.failure`, or a query that is missing) scores 0 by every measure but Faithfulness.
    - **Faithfulness** is NaN for an empty answer, which says nothing; so is what the judge gave no valid verdict on.

    Args:
        benchmark: the queries.
        answered: a system's answers, of `answer_questions` or anyone's.
        measures: names of `ANSWER_MEASURES`.
        embedder: of AnswerCosine.
        bert_model: of BertScore, a model with token vectors; by default the embedder.
        judge: the language model that Faithfulness and Relevancy ask.
        retries: how often a judge is told what was wrong with its verdict.
        progress: called with the name of a measure that asks the judge, what is done, and of how much.

    Returns:
        A report whose measures are ``Measure(name, answered.k)``; `Report.unanswered` are those without an answer.

    Raises:
        OptionError: no such measure of answers; a judge is needed and none is given; or the model of BertScore gives no
            token vectors.
        DataError: a query's answers or choices are malformed, or none of the queries has what a measure needs.
        MissingExtraError: the package behind a measure is not installed.
        ModelError: a model cannot be asked at all, or failed twice.

    >>> from chunkcore.document import Document, Span
    >>> from chunkcore.evaluation.benchmarks.benchmark import Evidence
    >>> evidence = (Evidence("fox.txt", Span(4, 7)),)
    >>> query = Query("q1", "Who naps?", evidence, metadata={"answers": ["the fox"]})
    >>> toy = Benchmark("toy", [Document("fox.txt", "The fox naps.")], [query])
    >>> report = score_answers(toy, AnswerRun("mine", {"q1": Answer("A brown fox")}), ["SquadF1", "ExactMatch"])
    >>> round(report.mean("SquadF1@5"), 3), report.mean("ExactMatch@5")
    (0.667, 0.0)
    """
    bert_model = embedder if bert_model is None else bert_model
    names = check_measures(benchmark, measures, bert_model=bert_model, judge=judge)
    cases = _cases(benchmark, answered)
    report = progress or (lambda name, done, total: None)
    scores: dict[Measure, Scores] = {}
    for name in names:
        if name in _BY_WORDS:
            values = [_worded(_BY_WORDS[name], case) for case in cases]
        elif name == "Accuracy":
            values = [_accuracy(case) for case in cases]
        elif name == "BertScore":
            values = _bert(cases, bert_model)
        elif name == "AnswerCosine":
            texts = [case.answer.text for case in cases]
            values = answer_cosines(get_embedder(embedder), [case.query.text for case in cases], texts)
        else:
            assert judge is not None
            values = _judged(name, cases, get_llm(judge), retries, partial(report, name))
        scores[Measure(name, answered.k)] = np.array(values, dtype=np.float64)
    return Report(
        name=answered.name,
        benchmark=benchmark.name,
        query_ids=tuple(case.query.id for case in cases),
        collections=tuple(case.query.collection for case in cases),
        scores=scores,
        unanswered=tuple(case.query.id for case in cases if case.answer.failure),
        documents_digest=benchmark.documents_digest,
    )


def check_measures(
    benchmark: Benchmark,
    measures: Iterable[MeasureName],
    *,
    bert_model: Embedder | str = DEFAULT_MODEL,
    judge: LLM | str | None = None,
) -> list[MeasureName]:
    """The measures, each once, after seeing that answers to this benchmark can be scored by all of them.

    Whoever pays for answers looks here first. Arguments and errors are those of `score_answers`.
    """
    names = list(dict.fromkeys(measures))
    for name in names:
        if name not in ANSWER_MEASURES:
            raise OptionError(f"{name!r} is no measure of answers: expected some of {', '.join(ANSWER_MEASURES)}")
        if name in JUDGED and judge is None:
            raise OptionError(f"{name} is judged by a language model: give one as judge")
        if name in _BY_WORDS:
            _BY_WORDS[name]("word", ["word"])  # whose package may be missing
    if "Accuracy" in names and not any(_right_choice(query) is not None for query in benchmark.queries):
        raise DataError(f'no question of {benchmark.name!r} has "choices" and "correct", which Accuracy needs')
    worded = next((name for name in names if name in _BY_WORDS or name == "BertScore"), None)
    if worded and not any(map(references_of, benchmark.queries)):
        raise DataError(f'no question of {benchmark.name!r} has right "answers", which {worded} needs')
    if "BertScore" in names:
        get_token_embedder(bert_model)
    return names


def references_of(query: Query) -> tuple[str, ...]:
    """The query's right answers; none where they are not known.

    Raises:
        DataError: they are neither a text nor a list of texts.
    """
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
        raise DataError(f'query {query.id!r}: expected "answers" to be a list of texts, got {str(given)[:80]!r}')
    return tuple(map(_reference, listed))


def _reference(text: str) -> str:
    """The right answer that the text stands for: none at all, where it says so."""
    return "" if text.strip().casefold() == "unanswerable" else text


@dataclass(frozen=True, slots=True)
class _Case:
    """A query, what was answered, and what would have been right."""

    query: Query
    answer: Answer
    references: tuple[str, ...]


def _cases(benchmark: Benchmark, answered: AnswerRun) -> list[_Case]:
    known = {query.id for query in benchmark.queries}
    if answered.answers and not known & answered.answers.keys():
        raise DataError(
            f"{answered.name!r} answers none of the benchmark's queries: it has {next(iter(answered.answers))!r}, the "
            f"benchmark {next(iter(known), 'none')!r}"
        )
    missing = Answer("", failure="the query is not among the answers")
    return [_Case(each, answered.answers.get(each.id, missing), references_of(each)) for each in benchmark.queries]


def _worded(measure: Callable[[str, Sequence[str]], float], case: _Case) -> float:
    if not case.references:
        return math.nan
    return 0.0 if case.answer.failure else measure(case.answer.text, case.references)


def _accuracy(case: _Case) -> float:
    right = _right_choice(case.query)
    if right is None:
        return math.nan
    return float(not case.answer.failure and case.answer.choice == right)


def _right_choice(query: Query) -> int | None:
    choices = choices_of(query)
    return None if choices is None else choices.correct


def _bert(cases: Sequence[_Case], model: Embedder | str) -> list[float]:
    """Each answer's F1 with the reference that it is nearest to."""
    pairs = [(i, each) for i, case in enumerate(cases) if not case.answer.failure for each in case.references]
    texts = [cases[i].answer.text for i, _ in pairs]
    values = [math.nan if not case.references else 0.0 for case in cases]
    found = bert_scores(get_token_embedder(model), texts, [reference for _, reference in pairs])
    for (i, _), score in zip(pairs, found, strict=True):
        values[i] = max(values[i], score.f1)
    return values


def _judged(
    name: MeasureName, cases: Sequence[_Case], judge: LLM, retries: int, progress: Callable[[int, int], None]
) -> list[float]:
    """The judge's verdicts, as many asked for at once as it takes."""
    values = [math.nan if name == "Faithfulness" else 0.0] * len(cases)
    asked = [number for number, case in enumerate(cases) if case.answer.text]

    def verdict(number: int) -> float:
        try:
            return ask(judge, _judgement(name, cases[number]), retries=retries)
        except NoAnswerError:
            return math.nan

    for done, value in enumerate(asking(judge, verdict, asked)):
        values[asked[done]] = value
        progress(done + 1, len(asked))
    return values


def _judgement(name: MeasureName, case: _Case) -> Question[float]:
    if name == "Faithfulness":
        return faithfulness_question(case.query.text, case.answer.text, case.answer.passages)
    return relevancy_question(case.query.text, case.answer.text)
