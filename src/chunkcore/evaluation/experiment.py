"""`run_chunkers`: cut, embed, search and score with any number of strategies, each distinct text embedded once."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from chunkcore.chunkers.base import Chunker
from chunkcore.chunkers.overlap import SemanticOverlap
from chunkcore.chunkers.spec import label
from chunkcore.document import Chunk, Span
from chunkcore.errors import OptionError
from chunkcore.evaluation.benchmark import Benchmark
from chunkcore.evaluation.measures import Depth, Measure, as_measure, budget_of, measures_at
from chunkcore.evaluation.metering import MeteredEmbedder
from chunkcore.evaluation.results import ChunkStatistics, Report
from chunkcore.evaluation.run import Retrieved, Run
from chunkcore.evaluation.scoring import MinRule, OmegaRule, Scorer
from chunkcore.index.multi_vector import chunk_vectors, searched_texts, top_k_owners
from chunkcore.index.search import Indices
from chunkcore.models.base import Embedder, TokenCountingEmbedder, Vectors
from chunkcore.models.cache import EmbeddingCache
from chunkcore.models.cached import CachedEmbedder
from chunkcore.models.counter import EmbedderCounter
from chunkcore.models.late import LateEmbedder
from chunkcore.models.loading import DEFAULT_MODEL, get_embedder
from chunkcore.tokens import TokenCounter

__all__ = ["run_chunkers"]

Progress = Callable[[str, int, int], None]


def run_chunkers(
    benchmark: Benchmark,
    chunkers: Sequence[Chunker],
    embedder: Embedder | str = DEFAULT_MODEL,
    *,
    ks: Sequence[Depth] = (5, 10, "min"),
    measures: Iterable[Measure | str] = (),
    counter: str | TokenCounter = "cl100k_base",
    min_rule: MinRule = "holding",
    omega_rule: OmegaRule = "once",
    cache: EmbeddingCache | Path | str | None = None,
    late: bool = False,
    cluster_only: bool = False,
    workers: int | None = None,
    progress: Progress | None = None,
) -> list[Report]:
    """Score strategies by exact search over their chunks.

    The distinct chunks of all strategies are embedded in one call, the longest first. A strategy that
    embeds for itself is given the run's embedder where its own is the default or the same model, so that
    no text is embedded twice; one whose counter is "embedder" counts that model's tokens. All chunks of all
    documents are searched for every query.

    A report's `seconds` are those of its strategy alone: "chunk" is its cutting, the embedding of its
    pieces included; "embed" is the embedding of its distinct chunks and of the queries, a shared call's
    time being split by the texts' lengths; "search" and "score" are its own. What several strategies
    share is counted for each of them, so together they come to more than the run took.

    Args:
        benchmark: documents and queries.
        chunkers: the strategies; a report is named by its strategy's label.
        embedder: of chunks and queries, or the name of one.
        ks: how many chunks are retrieved; "min" for as many as hold a query's evidence, "4096tok" for as many
            as come to 4,096 tokens. Recall, Precision, IoU and F1 are scored at each.
        measures: what else is scored, such as "nDCG@10". MRR, MAP and nDCG without a depth look at as many
            chunks as the deepest of the others.
        counter: whose tokens are scored, and in which chunk lengths are told.
        min_rule: see `evaluate`.
        omega_rule: see `evaluate`.
        cache: of embeddings, or its file; in memory by default. An embedder that has one keeps its own.
        late: a chunk's vector is the mean of its tokens, read with their whole document (see `LateEmbedder`): a
            document is read once for all strategies, which is counted for each. A report's name then ends in
            " (late)". Such a chunk has no vectors of its segments.
        cluster_only: chunks that have segments are searched by the mean of their segments' vectors alone, and not
            by each of them, too (see `MultiVectorIndex`).
        workers: threads that cut documents; as many as there are cores by default.
        progress: called with a step ("chunk", "embed", "queries", "search"), what is done, and of how much.

    Returns:
        One report a strategy, in their order.

    Raises:
        OptionError: no strategy, two with one label, or an option out of range; or with `late`, a model whose
            token vectors have no context.
        ModelError: the embedder failed twice.
    """
    wanted = [*measures_at(ks), *map(as_measure, measures)]
    ks = [measure.k for measure in wanted if measure.k is not None]
    names = [f"{name} (late)" if late else name for name in _names(chunkers)]
    report = progress or (lambda step, done, total: None)
    scorer = Scorer(benchmark, counter=counter, min_rule=min_rule, omega_rule=omega_rule)
    metered = _metered(embedder, cache)
    reader = LateEmbedder(metered) if late else None
    cut = _cut(benchmark, names, [_sharing(each, metered) for each in chunkers], metered, workers, report)
    read = _read_late(cut, benchmark, reader, report) if reader else None
    rows, vectors = ({}, np.empty((0, 0), np.float32)) if read else _embed_chunks(cut, metered, report)
    questions = [query.text for query in benchmark.queries]
    _watch(metered, "queries", report)
    query_vectors = metered.embed_queries(questions)
    tokens = _model_tokens(metered.embedder, list(rows))
    reports = []
    for number, strategy in enumerate(cut):
        report("search", number, len(cut))
        cost = read.seconds if read else metered.cost(strategy.texts)
        seconds = {"chunk": strategy.seconds, "embed": cost + metered.cost(questions)}
        if read:
            own, owners = read.vectors[number], np.arange(len(strategy.chunks))
        else:
            own = vectors[[rows[text] for text in strategy.texts]]
            own, owners = chunk_vectors(own, strategy.owners, cluster_only=cluster_only)
        run = _search(strategy, own, owners, query_vectors, benchmark, scorer, ks, seconds)
        statistics = _statistics(strategy, scorer.counter, rows, tokens, metered.max_tokens)
        reports.append(replace(scorer.score(run, wanted), chunks=statistics))
    report("search", len(cut), len(cut))
    return reports


@dataclass(frozen=True, eq=False)
class _Cut:
    """A strategy's chunks, what is embedded of them, whose each text is, and the seconds that cutting took."""

    name: str
    chunker: Chunker
    chunks: list[Chunk]
    seconds: float
    texts: list[str] = field(init=False)
    owners: Indices = field(init=False)

    def __post_init__(self) -> None:
        texts, owners = searched_texts(self.chunks)
        object.__setattr__(self, "texts", texts)
        object.__setattr__(self, "owners", owners)


def _names(chunkers: Sequence[Chunker]) -> list[str]:
    if not chunkers:
        raise OptionError("there is no strategy to run: expected at least one")
    names = [label(chunker) for chunker in chunkers]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise OptionError(f"the strategy {repeated[0]} is given twice: give each once")
    return names


def _metered(embedder: Embedder | str, cache: EmbeddingCache | Path | str | None) -> MeteredEmbedder:
    model = get_embedder(embedder)
    if isinstance(model, CachedEmbedder):
        if cache is not None:
            raise OptionError("the embedder has a cache of its own: give the cache, or the embedder without it")
        # A wrapper of our own around the same model and cache: progress is this run's alone.
        return MeteredEmbedder(CachedEmbedder(model.embedder, model.cache, batch_size=model.batch_size))
    if not isinstance(cache, EmbeddingCache):
        cache = EmbeddingCache(cache)
    return MeteredEmbedder(CachedEmbedder(model, cache))


def _watch(metered: MeteredEmbedder, step: str, report: Progress) -> None:
    metered.embedder.progress = lambda done, total: report(step, done, total)


def _sharing(chunker: Chunker, metered: MeteredEmbedder) -> Chunker:
    """The strategy with the run's embedder, where it is to have it, and with its tokens, where it counts them."""
    if chunker.token_counter == EmbedderCounter():
        chunker = replace(chunker, counter=EmbedderCounter(metered.embedder))
    overlap = getattr(chunker, "overlap", None)
    if isinstance(overlap, SemanticOverlap) and overlap.embedder == DEFAULT_MODEL:
        chunker = replace(chunker, overlap=replace(overlap, embedder=metered))  # type: ignore[call-arg]
    if "embedder" not in chunker.option_names():
        return chunker
    own: Any = chunker.embedder  # type: ignore[attr-defined]
    if own == type(chunker).embedder or get_embedder(own).fingerprint == metered.fingerprint:  # type: ignore[attr-defined]
        return replace(chunker, embedder=metered)  # type: ignore[call-arg]
    return chunker


def _cut(
    benchmark: Benchmark,
    names: Sequence[str],
    chunkers: Sequence[Chunker],
    metered: MeteredEmbedder,
    workers: int | None,
    report: Progress,
) -> list[_Cut]:
    documents = benchmark.documents
    place = {document.id: number for number, document in enumerate(documents, start=1)}
    threads = (os.cpu_count() or 1) if workers is None else workers
    found = []
    for number, (name, chunker) in enumerate(zip(names, chunkers, strict=True)):
        before, total = number * len(documents), len(chunkers) * len(documents)
        report("chunk", before, total)
        began = time.perf_counter()
        chunks: list[Chunk] = []
        with metered.billed() as bill:
            for chunk in chunker.chunk_many(documents, workers=threads):
                if chunks and chunk.document_id != chunks[-1].document_id:
                    report("chunk", before + place[chunks[-1].document_id], total)
                chunks.append(chunk)
        elapsed = time.perf_counter() - began
        found.append(_Cut(name, chunker, chunks, max(elapsed - bill.seconds, 0.0) + metered.cost(bill.texts)))
    report("chunk", len(chunkers) * len(documents), len(chunkers) * len(documents))
    return found


def _embed_chunks(cut: Sequence[_Cut], metered: MeteredEmbedder, report: Progress) -> tuple[dict[str, int], Vectors]:
    """The row of each distinct text, and the rows."""
    rows: dict[str, int] = {}
    for strategy in cut:
        for text in strategy.texts:
            rows.setdefault(text, len(rows))
    _watch(metered, "embed", report)
    vectors = metered.embed_documents(list(rows))
    report("embed", len(rows), len(rows))
    return rows, vectors


class _Late(NamedTuple):
    """The vectors of each strategy's chunks, and the seconds that reading the documents took."""

    vectors: list[Vectors]
    seconds: float


def _read_late(cut: Sequence[_Cut], benchmark: Benchmark, reader: LateEmbedder, report: Progress) -> _Late:
    """Late chunking: all strategies' chunks from one reading of each document."""
    places: dict[tuple[str, tuple[Span, ...]], int] = {}
    distinct: list[Chunk] = []
    rows = []
    for strategy in cut:
        for chunk in strategy.chunks:
            if places.setdefault((chunk.document_id, chunk.spans), len(distinct)) == len(distinct):
                distinct.append(chunk)
        rows.append([places[chunk.document_id, chunk.spans] for chunk in strategy.chunks])
    began = time.perf_counter()
    vectors = reader.embed_chunks(benchmark.documents, distinct, progress=lambda *done: report("embed", *done))
    return _Late([vectors[own] for own in rows], time.perf_counter() - began)


def _search(
    strategy: _Cut,
    vectors: Vectors,
    owners: Indices,
    queries: Vectors,
    benchmark: Benchmark,
    scorer: Scorer,
    ks: Sequence[Depth],
    seconds: dict[str, float],
) -> Run:
    pool = [Retrieved(each.document_id, each.spans, 0.0, each.text) for each in strategy.chunks]
    deepest = max([1, *(k for k in ks if isinstance(k, int))])
    if "min" in ks:
        deepest = max(deepest, int(scorer.depths(pool).max(initial=0)))
    budget = max([0, *(budget_of(k) or 0 for k in ks)])
    sizes = scorer.token_counts(pool) if budget else np.empty(0, dtype=np.int64)
    began = time.perf_counter()
    indices, scores = top_k_owners(queries, vectors, owners, deepest)
    while deepest < len(pool) and budget and sizes[indices].sum(axis=1).min(initial=budget) < budget:
        deepest *= 2
        indices, scores = top_k_owners(queries, vectors, owners, deepest)
    seconds["search"] = time.perf_counter() - began
    results = {
        query.id: [_scored(pool[i], score) for i, score in zip(found, values, strict=True)]
        for query, found, values in zip(benchmark.queries, indices.tolist(), scores.tolist(), strict=True)
    }
    return Run(strategy.name, results, pool, seconds)


def _scored(piece: Retrieved, score: float) -> Retrieved:
    # dataclasses.replace would be several times slower, which a million pieces notice.
    return Retrieved(piece.document_id, piece.spans, score, piece.text, piece.how)


def _model_tokens(embedder: CachedEmbedder, texts: list[str]) -> np.ndarray[Any, np.dtype[np.int64]] | None:
    """How long each text is to the model; None where it does not cut texts off, or can't say."""
    if embedder.max_tokens is None or not isinstance(embedder, TokenCountingEmbedder) or not texts:
        return None
    return embedder.count_tokens(texts)


def _statistics(
    strategy: _Cut,
    counter: TokenCounter,
    rows: dict[str, int],
    tokens: np.ndarray[Any, np.dtype[np.int64]] | None,
    most: int | None,
) -> ChunkStatistics:
    if strategy.chunker.token_counter == counter:
        lengths = np.array([chunk.token_count for chunk in strategy.chunks], dtype=np.int64)
    else:
        lengths = counter.count_many([chunk.text for chunk in strategy.chunks])
    if tokens is None or most is None:
        return ChunkStatistics(lengths)
    own = tokens[sorted({rows[text] for text in strategy.texts})]
    return ChunkStatistics(lengths, int((own > most).sum()), int(np.maximum(own - most, 0).sum()))
