"""A measure over spans, for evaluation pipelines and Haystack's `EvaluationRunResult`."""

from __future__ import annotations

import math
from typing import Any

from haystack import Document, component

from chunkadapters.haystack.documents import Serialized, Values, check_documents, hit_of
from chunkadapters.scores import QuestionScorer
from chunkcore.errors import OptionError
from chunkcore.evaluation.benchmarks.benchmark import Benchmark
from chunkcore.evaluation.measures import get_measure


@component
class ChunkcoreSpanEvaluator(Serialized):
    """Scores retrieved documents by the spans that answer the questions. One component per measure, like Haystack's.

    Args:
        benchmark: documents, questions and evidence; or the name of a collection that ships with chunkcore, for YAML.
        measure: such as ``"Recall@1000tok"`` or ``"IoU@5"``.
        counter: counts the tokens.

    Raises `OptionError` (a `ValueError`): unknown collection or measure.

    >>> from chunkcore import load_dataset
    >>> question = load_dataset("lochmere").queries[0].text
    >>> found = ChunkcoreSpanEvaluator("lochmere", "Recall@5").run([question], [[]])
    >>> found["score"], found["individual_scores"]
    (0.0, [0.0])
    """

    def __init__(
        self,
        benchmark: Benchmark | str,
        measure: str = "Recall@1000tok",
        counter: str = "cl100k_base",
    ) -> None:
        self.benchmark, self.counter = benchmark, counter
        self.measure = str(get_measure(measure))
        self._scorer = QuestionScorer(benchmark, counter)

    def _arguments(self) -> Values:
        if not isinstance(self.benchmark, str):
            raise OptionError(
                "a benchmark that was given as an object cannot be written down: name a collection"
            )
        return Serialized._arguments(self)

    @component.output_types(score=float, individual_scores=list[float])
    def run(
        self, questions: list[str], retrieved_documents: list[list[Document]]
    ) -> dict[str, Any]:
        """Score hits. Returns ``score``, the mean over questions with a defined measure, and ``individual_scores``.

        `questions` are texts or ids of the benchmark; `retrieved_documents` are the hits of each question, best first.
        Raises `TypeError`; `ValueError`: the lists have different lengths, or the benchmark lacks a question.
        """
        scores = []
        for question, documents in zip(questions, retrieved_documents, strict=True):
            check_documents(self, documents)
            scores += self._scorer.scores(question, list(map(hit_of, documents)), [self.measure])
        defined = [score for score in scores if not math.isnan(score)]
        return {
            "score": sum(defined) / len(defined) if defined else 0.0,
            "individual_scores": scores,
        }
