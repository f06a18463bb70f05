"""Scores for any LlamaIndex retriever or query engine, as it is deployed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, ClassVar

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.evaluation import RetrieverEvaluator
from llama_index.core.evaluation.retrieval.base import RetrievalEvalMode, RetrievalEvalResult
from llama_index.core.evaluation.retrieval.metrics import METRIC_REGISTRY, resolve_metrics
from llama_index.core.evaluation.retrieval.metrics_base import BaseRetrievalMetric, RetrievalMetricResult
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import (
    BaseNode,
    IndexNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    TextNode,
)
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from chunkadapters.models import secrets_within
from chunkadapters.places import (
    DERIVED,
    GAP,
    MERGED_IDS,
    SEGMENTS,
    SEPARATOR,
    SPANS,
    Hit,
    Merging,
    United,
    decode_segments,
    encode_spans,
    late_vectors,
    merged_id,
    merged_metadata,
    segment_texts,
    unused_id,
)
from chunkadapters.retrieval import Piece, QuestionScorer, RetrieverHooks, System, names, settings_mark, stated_spans
from chunkcore.errors import DataError
from chunkcore.evaluation.benchmarks.benchmark import Benchmark
from chunkcore.models import DEFAULT_MODEL, Embedder, LateEmbedder

__all__ = [
    "MergeOverlaps",
    "SpanF1",
    "SpanIoU",
    "SpanPrecision",
    "SpanRecall",
    "SpanRetrieverEvaluator",
    "aevaluate_retriever",
    "arun_retriever",
    "embed_late",
    "evaluate_retriever",
    "hit_of",
    "merge_overlaps",
    "piece_of",
    "run_retriever",
    "segment_nodes",
]


def piece_of(found: Any) -> Piece:
    """What a node, with a score or without, says of itself. Raises `DataError` where it is none."""
    node = found.node if isinstance(found, NodeWithScore) else found
    if not isinstance(node, BaseNode):
        raise DataError(f"expected nodes with scores, got a {type(node).__name__} among the answers")
    text = node.get_content(metadata_mode=MetadataMode.NONE)
    known = node.metadata
    return Piece(
        text=text,
        score=float(found.score or 0.0) if isinstance(found, NodeWithScore) else 0.0,
        document_ids=names(
            node.ref_doc_id, known.get("source_id"), known.get("file_path"), known.get("file_name"), known.get("source")
        ),
        derived=known.get(DERIVED) is True,
        spans=stated_spans(
            known.get(SPANS), getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None), text
        ),
    )


def hit_of(node: BaseNode) -> Hit:
    """A node with the document that its place is in."""
    piece = piece_of(node)
    document = node.ref_doc_id or node.metadata.get("source_id")
    return Hit(document if isinstance(document, str) else "", piece.spans, piece.text, piece.derived)


def _system(retriever: BaseRetriever | BaseQueryEngine) -> System:
    if isinstance(retriever, BaseRetriever):
        return _told(retriever, retriever.retrieve, retriever.aretrieve)
    if isinstance(retriever, BaseQueryEngine):
        return _of_engine(retriever)
    if hasattr(retriever, "as_retriever"):
        raise DataError(f"{type(retriever).__name__} is an index, not a retriever: pass its .as_retriever()")
    raise DataError(f"expected a LlamaIndex retriever, got {type(retriever).__name__}; subclass BaseRetriever")


def _of_engine(engine: BaseQueryEngine) -> System:
    """What a query engine retrieves, after its post-processors; no answer is written."""
    if type(engine).retrieve is BaseQueryEngine.retrieve:
        raise DataError(f"{type(engine).__name__} does not tell what it retrieves: pass its retriever")
    asynchronous = getattr(engine, "aretrieve", None)

    def ask(question: str) -> Any:
        return engine.retrieve(QueryBundle(question))

    async def aask(question: str) -> Any:
        if asynchronous is None:
            return await asyncio.to_thread(ask, question)
        return await asynchronous(QueryBundle(question))

    return _told(engine, ask, aask)


def _told(asked: Any, ask: Callable[[str], Any], aask: Callable[[str], Awaitable[Any]]) -> System:
    return System(
        name=type(asked).__name__,
        ask=ask,
        aask=aask,
        settings=partial(settings_mark, asked, _is_part),
        secrets=partial(secrets_within, asked),
    )


_PARTS = (BaseRetriever, BaseQueryEngine, BaseNodePostprocessor, BaseEmbedding, MetadataFilters, MetadataFilter)


def _is_part(value: Any) -> bool:
    return isinstance(value, _PARTS)


def _pieces(answer: Any) -> list[Piece]:
    if not isinstance(answer, list | tuple):
        raise DataError(f"expected a list of nodes with scores, got a {type(answer).__name__}")
    return [piece_of(each) for each in answer]


_hooks: RetrieverHooks[BaseRetriever | BaseQueryEngine, BaseNode] = RetrieverHooks(_system, _pieces)
run_retriever = _hooks.run_retriever
arun_retriever = _hooks.arun_retriever
evaluate_retriever = _hooks.evaluate_retriever
aevaluate_retriever = _hooks.aevaluate_retriever


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


class MergeOverlaps(BaseNodePostprocessor):
    """Unites hits of one document that overlap or are adjacent, so that no token goes to the model twice.

    For ``node_postprocessors=[..., MergeOverlaps()]`` of a query engine, best as the last of them.

    The result is in the order of the best hit of each, with its score. A united node has the document's text at
    ``start_char_idx`` and ``end_char_idx`` (and its metadata's ``spans``, where that is several places); the other
    metadata and the relationships of the hits at its ends; and ``merged_ids``, the hits' ids, the best first. A hit
    stays as it is where it does not say where it stands, or where its text is not what stands there.

    Args:
        max_gap: hits with so many characters between them are adjacent; set is what a paragraph break may have. What
            stands there is not known: the texts are joined by the separator, and the node is of several spans.
        separator: what joins texts between which something stands.

    Raises:
        pydantic.ValidationError: (a ValueError) an option is out of range.

    >>> from llama_index.core.schema import RelatedNodeInfo
    >>> source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="tea")}
    >>> hits = [
    ...     NodeWithScore(node=TextNode(text=text, start_char_idx=start, end_char_idx=end, relationships=source))
    ...     for start, end, text in [(8, 15, "is hot."), (0, 10, "The tea is")]
    ... ]
    >>> [(each.text, each.node.end_char_idx) for each in MergeOverlaps().postprocess_nodes(hits)]
    [('The tea is hot.', 15)]
    """

    max_gap: int = Field(default=GAP, ge=0, strict=True, description="So many characters between hits are none.")
    separator: str = Field(default=SEPARATOR, description="What joins texts between which something stands.")
    _merging: Merging = PrivateAttr()

    def model_post_init(self, context: object) -> None:
        super().model_post_init(context)
        self._merging = Merging(max_gap=self.max_gap, separator=self.separator)

    @classmethod
    def class_name(cls) -> str:
        return "ChunkcoreMergeOverlaps"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        united = self._merging.unite([hit_of(each.node) for each in nodes])
        return [_node(each, nodes) for each in united]


def merge_overlaps(
    nodes: Sequence[NodeWithScore], *, max_gap: int = GAP, separator: str = SEPARATOR
) -> list[NodeWithScore]:
    """The hits, united: `MergeOverlaps` at once."""
    return MergeOverlaps(max_gap=max_gap, separator=separator).postprocess_nodes(list(nodes))


def _node(united: United, hits: Sequence[NodeWithScore]) -> NodeWithScore:
    if len(united.members) == 1:
        return hits[united.first]
    members = [hits[place] for place in united.members]
    first = hits[united.first].node
    last = max((each.node for each in members), key=lambda node: getattr(node, "end_char_idx", None) or 0)
    ids = [each.node.node_id for each in members]
    metadata = merged_metadata(first.metadata, ids)
    if len(united.spans) > 1:
        metadata[SPANS] = encode_spans(united.spans)
    related = {NodeRelationship.SOURCE: first, NodeRelationship.PREVIOUS: first, NodeRelationship.NEXT: last}
    return NodeWithScore(
        score=members[0].score,
        node=TextNode(
            id_=merged_id(ids),
            text=united.text,
            metadata=metadata,
            start_char_idx=united.spans[0].start,
            end_char_idx=united.spans[-1].end,
            relationships={key: node.relationships[key] for key, node in related.items() if key in node.relationships},
            excluded_embed_metadata_keys=_unread(first.excluded_embed_metadata_keys),
            excluded_llm_metadata_keys=_unread(first.excluded_llm_metadata_keys),
            metadata_separator=getattr(first, "metadata_seperator", "\n"),
        ),
    )


def _unread(keys: Sequence[str]) -> list[str]:
    """The keys that a model does not read: those of the first hit, and what only says where the node comes from."""
    return list(dict.fromkeys([*keys, SPANS, MERGED_IDS]))


def embed_late(
    nodes: Sequence[BaseNode], documents: Sequence[BaseNode], model: LateEmbedder | Embedder | str = DEFAULT_MODEL
) -> list[BaseNode]:
    """The nodes, each with its vector in the context of its whole document (late chunking; see `LateEmbedder`).

    An index embeds no node that has a vector: ``VectorStoreIndex(embed_late(nodes, documents, model),
    embed_model=ChunkcoreEmbedding(model))``. Metadata are not read.

    Args:
        nodes: as `ChunkcoreNodeParser` makes them; copied.
        documents: those that they were cut from.
        model: with token vectors.

    Raises:
        DataError: a node does not stand where it says in one of the documents.
        OptionError: the model gives no token vectors.
        ModelError: the model failed, or answered with something that is no answer, twice.
    """
    texts = {each.node_id: each.get_content(metadata_mode=MetadataMode.NONE) for each in documents}
    vectors = late_vectors([hit_of(each) for each in nodes], texts, model)
    return [node.model_copy(update={"embedding": vector}) for node, vector in zip(nodes, vectors, strict=True)]


def segment_nodes(nodes: Sequence[TextNode]) -> list[IndexNode]:
    """The segments of nodes that have some (``hierarchical``), and the other nodes as they are, as small index nodes.

    An index over them answers with the node that each stands for: its retriever follows ``IndexNode.obj``. For nodes
    that are cut again by size, LlamaIndex' ``HierarchicalNodeParser`` takes `ChunkcoreNodeParser` in its
    ``node_parser_map``, and ``AutoMergingRetriever`` what that makes.

    Args:
        nodes: as `ChunkcoreNodeParser` makes them.
    """
    found = []
    taken: set[str] = set()
    for node in nodes:
        segments = decode_segments(node.metadata.get(SEGMENTS))
        known = {key: value for key, value in node.metadata.items() if key not in (SEGMENTS, SPANS)}
        for spans, text in segment_texts(hit_of(node), segments):
            several = {SPANS: encode_spans(spans)} if len(spans) > 1 else {}
            small = IndexNode(
                id_=unused_id(merged_id([node.node_id, str(spans)]), taken),
                text=text,
                index_id=node.node_id,
                obj=node,
                extra_info=known | several,
                start_char_idx=min(span.start for span in spans) if spans else None,
                end_char_idx=max(span.end for span in spans) if spans else None,
                relationships=node.relationships,
                excluded_embed_metadata_keys=[*node.excluded_embed_metadata_keys, *several],
                excluded_llm_metadata_keys=[*node.excluded_llm_metadata_keys, *several],
            )
            found.append(small)
    return found
