"""Scores for LlamaIndex retrievers; late embeddings, and segments as small nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.evaluation import RetrieverEvaluator
from llama_index.core.evaluation.retrieval.base import RetrievalEvalMode, RetrievalEvalResult
from llama_index.core.evaluation.retrieval.metrics import METRIC_REGISTRY, resolve_metrics
from llama_index.core.evaluation.retrieval.metrics_base import BaseRetrievalMetric, RetrievalMetricResult
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import (
    BaseNode,
    IndexNode,
    MetadataMode,
    NodeWithScore,
    QueryBundle,
    TextNode,
)

from chunkadapters.hits import Hit, late_vectors, names, segments_of
from chunkadapters.llamaindex.node_parser import KEYS, node_place, stated_place
from chunkadapters.places import DERIVED, SEGMENTS, SPANS, digest, unused_id
from chunkadapters.retrieval import DeployedRetriever, QuestionScorer, RetrieverHooks
from chunkcore.errors import DataError
from chunkcore.models import DEFAULT_MODEL, Embedder, LateEmbedder

if TYPE_CHECKING:
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark


def hit_of(found: Any) -> Hit:
    """A node, with a score or without, as a hit. Raises `DataError` for anything else."""
    node = found.node if isinstance(found, NodeWithScore) else found
    if not isinstance(node, BaseNode):
        raise DataError(f"expected nodes with scores, got a {type(node).__name__} among the answers")
    text, known = node.get_content(metadata_mode=MetadataMode.NONE), node.metadata
    document = node.ref_doc_id or known.get("source_id")
    return Hit(
        text=text,
        score=float(found.score or 0.0) if isinstance(found, NodeWithScore) else 0.0,
        document_ids=names(
            node.ref_doc_id, known.get("source_id"), known.get("file_path"), known.get("file_name"), known.get("source")
        ),
        spans=KEYS.spans_of(stated_place(node), text),
        derived=known.get(DERIVED) is True,
        document=document if isinstance(document, str) else "",
    )


# ---- Scores


def _system(retriever: BaseRetriever | BaseQueryEngine) -> DeployedRetriever:
    ask: Callable[[str], Any]
    aask: Callable[[str], Awaitable[Any]]
    if isinstance(retriever, BaseRetriever):
        ask, aask = retriever.retrieve, retriever.aretrieve
    elif isinstance(retriever, BaseQueryEngine):
        ask, aask = _of_engine(retriever)
    elif hasattr(retriever, "as_retriever"):
        raise DataError(f"{type(retriever).__name__} is an index, not a retriever: pass its .as_retriever()")
    else:
        raise DataError(f"expected a LlamaIndex retriever, got {type(retriever).__name__}; subclass BaseRetriever")
    return DeployedRetriever(type(retriever).__name__, ask, aask, retriever)


def _of_engine(engine: BaseQueryEngine) -> tuple[Callable[[str], Any], Callable[[str], Awaitable[Any]]]:
    """Functions that ask a query engine for its hits after post-processing; no answer is written."""
    if type(engine).retrieve is BaseQueryEngine.retrieve:
        raise DataError(f"{type(engine).__name__} does not tell what it retrieves: pass its retriever")
    asynchronous = getattr(engine, "aretrieve", None)

    def ask(question: str) -> Any:
        return engine.retrieve(QueryBundle(question))

    async def aask(question: str) -> Any:
        if asynchronous is None:
            return await asyncio.to_thread(ask, question)
        return await asynchronous(QueryBundle(question))

    return ask, aask


def _hits(answer: Any) -> list[Hit]:
    if not isinstance(answer, list | tuple):
        raise DataError(f"expected a list of nodes with scores, got a {type(answer).__name__}")
    return list(map(hit_of, answer))


_hooks: RetrieverHooks[BaseRetriever | BaseQueryEngine, BaseNode] = RetrieverHooks(_system, _hits)
run_retriever = _hooks.run_retriever
arun_retriever = _hooks.arun_retriever
evaluate_retriever = _hooks.evaluate_retriever
aevaluate_retriever = _hooks.aevaluate_retriever


_METRICS = ("span_recall", "span_precision", "span_iou", "span_f1")


class _SpanMetric(BaseRetrievalMetric):
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
        hits: Sequence[Hit] | None = None,
        **kwargs: Any,
    ) -> RetrievalMetricResult:
        """The question's score by the hits' spans.

        Raises `DataError` (a ValueError) for an unknown question, or if not called by `SpanRetrieverEvaluator`.
        """
        if query is None or scorer is None or hits is None:
            raise DataError(f"{type(self).__name__} needs spans, which only SpanRetrieverEvaluator sees: use that")
        (score,) = scorer.scores(query, hits, [f"{self.measure}@{max(1, len(hits))}"])
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
    """Retrieved tokens of the evidence, divided by the tokens of either."""

    metric_name: ClassVar[str] = "span_iou"
    measure: ClassVar[str] = "IoU"


class SpanF1(_SpanMetric):
    """The harmonic mean of precision and recall."""

    metric_name: ClassVar[str] = "span_f1"
    measure: ClassVar[str] = "F1"


# LlamaIndex' evaluators find metrics by name in this registry.
for _metric in (SpanRecall, SpanPrecision, SpanIoU, SpanF1):
    METRIC_REGISTRY.setdefault(_metric.metric_name, _metric)


class SpanRetrieverEvaluator(RetrieverEvaluator):
    """LlamaIndex' `RetrieverEvaluator` with the spans of a benchmark, for any retriever.

    Args:
        benchmark: documents, questions and evidence; or the name of a collection that ships with chunkcore.
        metrics: instances or names, or one; by default all span metrics. LlamaIndex' own need ``expected_ids``.
        node_postprocessors: applied to the hits.
        counter: counts the tokens.

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
        """Retrieve for a question of the benchmark, and score the hits."""
        return super().evaluate(query, expected_ids or [], expected_texts, mode, **kwargs)

    async def aevaluate(
        self,
        query: str,
        expected_ids: list[str] | None = None,
        expected_texts: list[str] | None = None,
        mode: RetrievalEvalMode = RetrievalEvalMode.TEXT,
        **kwargs: Any,
    ) -> RetrievalEvalResult:
        """`evaluate`, asynchronously. Raises `DataError` (a ValueError) if the benchmark lacks the question."""
        nodes = await self.retriever.aretrieve(query)
        for postprocessor in self.node_postprocessors or ():
            nodes = postprocessor.postprocess_nodes(nodes, query_str=query)
        ids, texts = [each.node.node_id for each in nodes], [each.text for each in nodes]
        seen = {"scorer": self._scorer, "hits": _hits(nodes)}
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


# ---- Late vectors and segments


def embed_late(
    nodes: Sequence[BaseNode], documents: Sequence[BaseNode], model: LateEmbedder | Embedder | str = DEFAULT_MODEL
) -> list[BaseNode]:
    """Copies of the nodes, each with its vector in the context of its whole document (late chunking).

    An index does not embed nodes that have a vector: ``VectorStoreIndex(embed_late(nodes, documents, model),
    embed_model=ChunkcoreEmbedding(model))``. Metadata are not embedded. See `LateEmbedder`.

    Args:
        nodes: from `ChunkcoreNodeParser`.
        documents: the nodes' documents.
        model: a model with token vectors.

    Raises:
        DataError: a node is not at its stated place in one of the documents.
        OptionError: the model gives no token vectors.
        ModelError: the model failed, or gave a wrong answer, twice.
    """
    texts = {each.node_id: each.get_content(metadata_mode=MetadataMode.NONE) for each in documents}
    vectors = late_vectors(_hits(nodes), texts, model)
    return [node.model_copy(update={"embedding": vector}) for node, vector in zip(nodes, vectors, strict=True)]


def segment_nodes(nodes: Sequence[TextNode]) -> list[IndexNode]:
    """Small index nodes to search with: the segments of nodes that have some (``hierarchical``), else the nodes.

    A retriever over them returns the whole nodes, by ``IndexNode.obj``. To cut nodes again by size, use LlamaIndex'
    ``HierarchicalNodeParser`` with `ChunkcoreNodeParser` in its ``node_parser_map``, and ``AutoMergingRetriever``.
    """
    found = []
    taken: set[str] = set()
    for node in nodes:
        known = {key: value for key, value in node.metadata.items() if key not in (SEGMENTS, SPANS)}
        for spans, text in segments_of(hit_of(node), node.metadata):
            attributes, several = node_place(spans)
            small = IndexNode(
                id_=unused_id(digest(f"{node.node_id}{spans}"), taken),
                text=text,
                index_id=node.node_id,
                obj=node,
                extra_info=known | several,
                **attributes,
                relationships=node.relationships,
                excluded_embed_metadata_keys=[*node.excluded_embed_metadata_keys, *several],
                excluded_llm_metadata_keys=[*node.excluded_llm_metadata_keys, *several],
            )
            found.append(small)
    return found
