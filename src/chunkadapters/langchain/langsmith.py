"""Span measures as LangSmith takes evaluators: functions of a run's inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chunkadapters._retrieval import QuestionScorer, measures_of
from chunkadapters.langchain.pieces import piece_of
from chunkcore.errors import DataError
from chunkcore.evaluation.benchmark import Benchmark
from chunkcore.evaluation.measures import Measure

__all__ = ["langsmith_evaluator"]

Evaluator = Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]


def langsmith_evaluator(
    benchmark: Benchmark | str,
    measures: Sequence[Measure | str] | str = ("Recall@5", "Precision@5", "IoU@5"),
    *,
    question_key: str = "question",
    documents_key: str = "documents",
    counter: str = "cl100k_base",
) -> Evaluator:
    """A function that scores what an application retrieved, for ``client.evaluate(app, evaluators=[...])``.

    Args:
        benchmark: documents, questions and the spans that answer them; the examples' questions are its own. Or the
            name of a collection that ships with chunkcore.
        measures: what is told, a result each.
        question_key: where an example's inputs have the question, its text or its id.
        documents_key: where the application's outputs have the retrieved documents.
        counter: whose tokens are counted.

    Returns:
        From inputs and outputs to ``{"results": [{"key": "Recall@5", "score": 0.8}, ...]}``. It raises `DataError`
        where the question is none of the benchmark's, or the outputs have no documents; LangSmith shows that.

    Raises:
        OptionError: an unknown collection, measure or counter.
    """
    wanted = measures_of(measures)
    scorer = QuestionScorer(benchmark, counter)

    def score_spans(inputs: dict[str, Any], outputs: dict[str, Any]) -> dict[str, Any]:
        question = _held(inputs, question_key, "inputs")
        documents = _held(outputs, documents_key, "outputs")
        if not isinstance(question, str) or not isinstance(documents, list | tuple):
            raise DataError(
                f"expected a question's text and a list of documents, got {type(question).__name__} and "
                f"{type(documents).__name__}"
            )
        values = scorer.scores(question, [piece_of(each) for each in documents], wanted)
        return {"results": [{"key": str(key), "score": value} for key, value in zip(wanted, values, strict=True)]}

    return score_spans


def _held(mapping: Any, key: str, what: str) -> Any:
    if not isinstance(mapping, Mapping) or key not in mapping:
        keys = ", ".join(map(str, mapping)) if isinstance(mapping, Mapping) else type(mapping).__name__
        raise DataError(f"the {what} have no {key!r}, but {keys or 'nothing'}: name the key that has it")
    return mapping[key]
