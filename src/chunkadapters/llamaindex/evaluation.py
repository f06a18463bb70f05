"""Span measures as LlamaIndex' retrieval metrics, and the evaluator that shows them the spans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.evaluation import RetrieverEvaluator
from llama_index.core.evaluation.retrieval.base import RetrievalEvalMode, RetrievalEvalResult
from llama_index.core.evaluation.retrieval.metrics import METRIC_REGISTRY, resolve_metrics
from llama_index.core.evaluation.retrieval.metrics_base import BaseRetrievalMetric, RetrievalMetricResult
from llama_index.core.postprocessor.types import BaseNodePostprocessor

from chunkadapters._retrieval import Piece, QuestionScorer
from chunkadapters.llamaindex.pieces import piece_of
from chunkcore.errors import DataError
from chunkcore.evaluation.benchmark import Benchmark

__all__ = ["SpanF1", "SpanIoU", "SpanPrecision", "SpanRecall", "SpanRetrieverEvaluator"]

_METRICS = ("span_recall", "span_precision", "span_iou", "span_f1")


class _SpanMetric(BaseRetrievalMetric):
    """A measure of tokens over everything that was retrieved."""

    measure: ClassVar[str]

    def compute(
        self,
        query: str | None = None,
        expected_ids: list[str] | None = None,
        retrieved_ids: list[str] | None = None,
        expected_texts: list[str] | None = None,
        retrieved_texts: list[str] | None = None,
        *,
        scorer: QuestionScorer | None = None,
        pieces: Sequence[Piece] | None = None,
        **kwargs: Any,
    ) -> RetrievalMetricResult:
        """The question's score, by the spans that `SpanRetrieverEvaluator` hands on.

        Raises:
            DataError: (a ValueError) another evaluator asks, which sees no spans; or no such question.
        """
        if query is None or scorer is None or pieces is None:
            raise DataError(f"{type(self).__name__} needs spans, which only SpanRetrieverEvaluator sees: use that")
        (score,) = scorer.scores(query, pieces, [f"{self.measure}@{max(1, len(pieces))}"])
        return RetrievalMetricResult(score=score)


class SpanRecall(_SpanMetric):
    """The share of the evidence's tokens that was retrieved."""

    metric_name: ClassVar[str] = "span_recall"
    measure: ClassVar[str] = "Recall"


class SpanPrecision(_SpanMetric):
    """The share of the retrieved tokens that are evidence."""

    metric_name: ClassVar[str] = "span_precision"
    measure: ClassVar[str] = "Precision"


class SpanIoU(_SpanMetric):
    """Retrieved tokens of the evidence, by those of either."""

    metric_name: ClassVar[str] = "span_iou"
    measure: ClassVar[str] = "IoU"


class SpanF1(_SpanMetric):
    """The harmonic mean of precision and recall."""

    metric_name: ClassVar[str] = "span_f1"
    measure: ClassVar[str] = "F1"


# LlamaIndex' registry is how metrics are named in its evaluators.
for _metric in (SpanRecall, SpanPrecision, SpanIoU, SpanF1):
    METRIC_REGISTRY.setdefault(_metric.metric_name, _metric)


class SpanRetrieverEvaluator(RetrieverEvaluator):
    """LlamaIndex' `RetrieverEvaluator` by a benchmark's spans: of any retriever, with node post-processors.

    Args:
        benchmark: documents, questions and the spans that answer them; or a shipped collection's name.
        retriever: what is evaluated.
        metrics: instances or names, or one; by default all span metrics. LlamaIndex' own are welcome beside them, where
            ``expected_ids`` are given.
        node_postprocessors: applied to what was retrieved.
        counter: whose tokens are counted.

    Raises:
        ValueError: an unknown metric.
    """

    _scorer: QuestionScorer = PrivateAttr()

    def __init__(
        self,
        benchmark: Benchmark | str,
        *,
        retriever: BaseRetriever,
        metrics: Sequence[BaseRetrievalMetric | str] | BaseRetrievalMetric | str = _METRICS,
        node_postprocessors: list[BaseNodePostprocessor] | None = None,
        counter: str = "cl100k_base",
    ) -> None:
        listed = [metrics] if isinstance(metrics, BaseRetrievalMetric | str) else metrics
        made = [resolve_metrics([each])[0]() if isinstance(each, str) else each for each in listed]
        super().__init__(retriever=retriever, metrics=made, node_postprocessors=node_postprocessors)
        self._scorer = QuestionScorer(benchmark, counter)

    def evaluate(
        self,
        query: str,
        expected_ids: list[str] | None = None,
        expected_texts: list[str] | None = None,
        mode: RetrievalEvalMode = RetrievalEvalMode.TEXT,
        **kwargs: Any,
    ) -> RetrievalEvalResult:
        """Retrieve for a question of the benchmark, and score what comes back."""
        return super().evaluate(query, expected_ids or [], expected_texts, mode, **kwargs)

    async def aevaluate(
        self,
        query: str,
        expected_ids: list[str] | None = None,
        expected_texts: list[str] | None = None,
        mode: RetrievalEvalMode = RetrievalEvalMode.TEXT,
        **kwargs: Any,
    ) -> RetrievalEvalResult:
        """`evaluate`, asynchronously.

        Raises:
            DataError: (a ValueError) the benchmark has no such question.
        """
        nodes = await self.retriever.aretrieve(query)
        for postprocessor in self.node_postprocessors or ():
            nodes = postprocessor.postprocess_nodes(nodes, query_str=query)
        ids, texts = [each.node.node_id for each in nodes], [each.text for each in nodes]
        seen = {"scorer": self._scorer, "pieces": [piece_of(each) for each in nodes]}
        found = {
            metric.metric_name: metric.compute(
                query,
                expected_ids or [],
                ids,
                expected_texts,
                texts,
                **(seen if isinstance(metric, _SpanMetric) else {}),
            )
            for metric in self.metrics
        }
        return RetrievalEvalResult(
            query=query,
            expected_ids=expected_ids or [],
            expected_texts=expected_texts,
            retrieved_ids=ids,
            retrieved_texts=texts,
            mode=mode,
            metric_dict=found,
        )
