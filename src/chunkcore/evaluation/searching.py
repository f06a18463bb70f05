"""Every query's answers from one pool, as deep as the measures look."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from chunkcore.document import Chunk
from chunkcore.evaluation.measures import Measure, budget_of
from chunkcore.evaluation.run import Retrieved, Run
from chunkcore.evaluation.scoring import Scorer
from chunkcore.lazy import Mapped
from chunkcore.retrieval.base import SearchMethod
from chunkcore.retrieval.pool import Pool
from chunkcore.retrieval.ranked import Ranked

__all__ = ["answer_all"]


def answer_all(
    name: str, pool: Pool, method: SearchMethod, scorer: Scorer, measures: Sequence[Measure]
) -> tuple[Run, float]:
    """The run of a way of searching on the scorer's benchmark, and the seconds that indexing and searching took.

    A budget of tokens is searched for as deep as it takes: twice as deep, until every query has its tokens, or no
    more is found.

    Args:
        name: the run's.
        pool: the chunks.
        method: how they are searched.
        scorer: its benchmark's queries are asked.
        measures: what will be scored.
    """
    pieces = Mapped(_piece, pool.chunks)
    depth = _depth(scorer, pieces, measures)
    budget = max([0, *(budget_of(measure.k) or 0 for measure in measures if measure.k is not None)])
    sizes = scorer.token_counts(pieces) if budget else np.empty(0, dtype=np.int64)
    queries = scorer.benchmark.queries
    texts = [query.text for query in queries]
    began = time.perf_counter()
    searcher = method.index(pool)
    found = searcher.search(texts, depth)
    while depth < len(pieces) and budget and _wants_more(found, depth, sizes, budget):
        depth *= 2
        found = searcher.search(texts, depth)
    seconds = time.perf_counter() - began
    # In the order of their documents, so that none of these is read from a file twice.
    answers = {i: pieces[i] for i in np.unique(found.indices[found.indices >= 0]).tolist()}
    results = {
        query.id: [_scored(answers[i], score) for i, score in zip(indices, scores, strict=True) if i >= 0]
        for query, indices, scores in zip(queries, found.indices.tolist(), found.scores.tolist(), strict=True)
    }
    return Run(name, results, pieces), seconds


def _depth(scorer: Scorer, pieces: Sequence[Retrieved], measures: Sequence[Measure]) -> int:
    """How many pieces the measures look at, budgets aside."""
    ks = {measure.k for measure in measures}
    deepest = max([1, *(k for k in ks if isinstance(k, int))])
    return max(deepest, int(scorer.depths(pieces).max(initial=0))) if "min" in ks else deepest


def _wants_more(found: Ranked, depth: int, sizes: np.ndarray[tuple[int], np.dtype[np.int64]], budget: int) -> bool:
    """Whether a query that may have more to find is under its budget."""
    full = found.counts >= depth
    tokens = np.where(found.indices >= 0, sizes[found.indices], 0).sum(axis=1)
    return bool((full & (tokens < budget)).any())


def _piece(chunk: Chunk) -> Retrieved:
    return Retrieved(chunk.document_id, chunk.spans, 0.0, chunk.text, id=chunk.id)


def _scored(piece: Retrieved, score: float) -> Retrieved:
    # dataclasses.replace would be several times slower, which a million pieces notice.
    return Retrieved(piece.document_id, piece.spans, score, piece.text, piece.how, piece.certainty, piece.id)
