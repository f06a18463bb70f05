"""`Dense`, `Late`, `BM25` and `Hybrid`: search by vectors, by words, and by both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from chunkcore.errors import OptionError
from chunkcore.models.base import Embedder
from chunkcore.models.late import get_token_embedder
from chunkcore.options import Bounds
from chunkcore.retrieval.base import Hits, Index, RetrievalMethod, best_of, retrievers
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.retrieval.lexicon import (
    check_words,
    length_norms,
    odds_against,
    word_keys,
)
from chunkcore.retrieval.stage import get_retriever
from chunkcore.retrieval.vectors import Rows, TextVectors, search_lengths, top_k
from chunkcore.spans import Numbers, Scores


@retrievers.register("dense")
@dataclass(frozen=True, kw_only=True)
class Dense(RetrievalMethod):
    """Exact search by cosine similarity.

    A chunk with segments scores as the best of its vectors: its segments' and their mean (Nguyen, Nguyen and Nguyen,
    2025, equation 2).

    Attributes:
        cluster_only: search chunks with segments by their mean vector only.

    Cost: one embedding per chunk and query; a search is O(queries · chunks · dimensions).

    >>> Dense().name, Dense(cluster_only=True).name
    ('dense', 'dense:cluster_only=true')
    """

    cluster_only: bool = False

    def build(self, corpus: ChunkedCorpus, vectors: TextVectors) -> Index:
        return VectorIndex(corpus, *vectors.chunks(corpus, cluster_only=self.cluster_only))


@retrievers.register("late")
@dataclass(frozen=True, kw_only=True)
class Late(RetrievalMethod):
    """Exact search by the vectors of late chunking: a chunk's tokens are read with their document (`LateEmbedder`).

    Segments are ignored. Cost: the model reads each document once; about twice its tokens if it is over the limit.
    """

    def check(self, embedder: Embedder) -> None:
        get_token_embedder(embedder)

    def build(self, corpus: ChunkedCorpus, vectors: TextVectors) -> Index:
        return VectorIndex(corpus, *vectors.late(corpus))


class VectorIndex(Index):
    """Cosine similarity of vectors; several rows may belong to one chunk."""

    def __init__(
        self,
        corpus: ChunkedCorpus,
        rows: Rows,
        owners: Numbers,
    ) -> None:
        super().__init__(corpus)
        self._rows = rows
        self._owners = owners

    def rank(
        self,
        queries: Sequence[str],
        k: int,
    ) -> Hits:
        assert self.vectors is not None
        questions = self.vectors.queries(queries)
        indices, scores = top_k(
            questions, self._rows, k, owners=self._owners, lengths=self._lengths
        )
        return Hits(indices, scores.astype(np.float64))

    @cached_property
    def _lengths(self) -> Scores:
        return search_lengths(self._rows)


@retrievers.register("bm25")
@dataclass(frozen=True, kw_only=True)
class BM25(RetrievalMethod):
    """Okapi BM25 (Robertson et al., 1995) in Lucene's variant, whose weights are never negative.

    A chunk's score is the sum over the query's words w, repeats included, of
    ``ln(1 + (N - n + 0.5) / (n + 0.5)) · f / (f + k1 · (1 - b + b · L / mean L))``: N chunks, n of them with w, f times
    w in this chunk, L words in it. Chunks without a shared word are not found; ties keep the chunks' order. Context and
    text are read.

    Attributes:
        k1: how fast repetitions of a word in a chunk stop counting; 0: at once. Lucene's default.
        b: how much long chunks are held back, 0 to 1. Lucene's default.
        words: what counts as one word: "whole", or "first5", cut to the first 5 characters; see `word_keys`.

    Cost: no model. Indexing is O(words); the index takes 5 to 8 bytes for each distinct word of a chunk, shared with
    `Passages` of the same words; a query is O(chunks).

    Raises `OptionError`: k1 is negative, b is not 0 to 1, or words is neither.
    """

    k1: float = 1.2
    b: float = 0.75
    words: str = "whole"
    bounds = Bounds(k1=0, b=(0, 1))
    embeds = False

    def validate(self) -> None:
        check_words(self.words)

    def build(self, corpus: ChunkedCorpus, vectors: TextVectors) -> Index:
        return WordIndex(corpus, self)


class WordIndex(Index):
    """BM25 scores from a corpus's postings."""

    def __init__(self, corpus: ChunkedCorpus, method: BM25) -> None:
        super().__init__(corpus)
        self._form = method.words
        self._postings = corpus.postings(method.words)
        self._norms = length_norms(self._postings.lengths, method.k1, method.b)

    def rank(
        self,
        queries: Sequence[str],
        k: int,
    ) -> Hits:
        rows = []
        for query in queries:
            scores = np.zeros(len(self.corpus))
            for key, repeats in Counter(word_keys(query, self._form)).items():
                chunks, counts = self._postings.of_word(key)
                weight = repeats * np.log1p(odds_against(len(chunks), len(scores)))
                scores[chunks] += weight * counts / (counts + self._norms[chunks])
            best = best_of(np.where(scores > 0, scores, -np.inf), k)
            rows.append((best, scores[best]))
        return Hits.of(rows)


@retrievers.register("hybrid")
@dataclass(frozen=True, kw_only=True)
class Hybrid(RetrievalMethod):
    """Several methods fused: by scores, or by reciprocal ranks (Cormack, Clarke and Büttcher, SIGIR 2009, equation 1).

    By ranks, a chunk's score is the sum of ``1 / (k + rank)`` over the methods that found it, ranks from 1. By scores,
    it is the sum over all methods of ``(score - mean) / deviation`` (0 where the deviation is 0) over the chunks that
    any method found. A chunk that a method has not found gets that method's last score if it found `depth` chunks, else
    0 or its last score, whichever is lower: a chunk without a shared word has 0 by BM25. Ties go to the chunk that the
    first method, then the second, ranked higher.

    The first `depth` of each method are fused. A deeper search doubles `depth` and appends the new chunks, so the best
    5 are the same at any k.

    Attributes:
        methods: what is fused. As a string: ``hybrid:dense,bm25``, or quoted, where one has several options:
            ``hybrid:dense,"bm25:k1=2,b=0.5"``.
        k: of ranks, how little the first ones stand out; the paper's 60.
        depth: how many of each method are fused.
        fusion: "scores" for the sum of standardised scores, which finds more on the evidence page's collections; or
            "ranks".

    Cost: that of the methods, each at least `depth` deep.

    Raises `OptionError`: fewer than two methods, an option out of range, or `k` without ranks.

    >>> Hybrid().name, Hybrid(methods=(Dense(), BM25(k1=2.0)), k=10, fusion="ranks").name
    ('hybrid', 'hybrid:dense,"bm25:k1=2.0",k=10,fusion=ranks')
    """

    methods: tuple[RetrievalMethod, ...] = (Dense(), BM25())
    k: int = 60
    depth: int = 100
    fusion: Literal["scores", "ranks"] = "scores"
    leading = "methods"
    bounds = Bounds(k=0, depth=1)

    def validate(self) -> None:
        if len(self.methods) < 2:
            raise OptionError(f"hybrid fuses two retrievers or more, got {len(self.methods)}")
        for method in self.methods:
            if method.makes_passages:
                raise OptionError(
                    f"hybrid fuses chunks, and {method.name} makes passages: put its stage after hybrid"
                )
        if self.fusion == "scores" and self.k != Hybrid.k:
            raise OptionError(
                f"hybrid: k is of reciprocal ranks: write k={self.k},fusion=ranks, or leave it out"
            )

    @classmethod
    def read(
        cls,
        parts: Sequence[Any],
        options: Mapping[str, Any],
    ) -> RetrievalMethod:
        return super().read(list(map(get_retriever, parts)), options)

    @property
    def inner(self) -> tuple[RetrievalMethod, ...]:
        return self.methods

    def build(self, corpus: ChunkedCorpus, vectors: TextVectors) -> Index:
        return _Fused(corpus, *[method.index(corpus, vectors) for method in self.methods])


class _Fused(Index):
    method: Hybrid

    def rank(
        self,
        queries: Sequence[str],
        k: int,
    ) -> Hits:
        size = len(self.corpus)
        depth = min(self.method.depth, size) or 1
        hits = self._at(queries, depth)
        while depth < min(k, size):
            depth = min(2 * depth, size)
            hits = hits.then(self._at(queries, depth))
        return hits.best(k)

    def _at(self, queries: Sequence[str], depth: int) -> Hits:
        """The fused rankings of this depth."""
        rankings = [index.rank(queries, depth) for index in self.inner]
        k = self.method.k if self.method.fusion == "ranks" else None
        return fuse(rankings, depth, k)


def fuse(rankings: Sequence[Hits], depth: int, k: int | None = None) -> Hits:
    """The fusion of rankings of the same queries, each searched to `depth`, see `Hybrid`: by reciprocal ranks with `k`,
    else by scores. Ties go to the first place.

    >>> one, other = Hits.of([([7, 3], [9.0, 1.0])]), Hits.of([([3, 9], [2.0, 2.0])])
    >>> ranks = fuse([one, other], 2, k=60)
    >>> ranks.indices.tolist(), ranks.scores.round(4).tolist()  # 1/62 + 1/61, 1/61, 1/62
    ([[3, 7, 9]], [[0.0325, 0.0164, 0.0161]])
    >>> fuse([one, Hits.of([([3], [2.0])])], 2).scores.tolist()
    [[0.0, 0.0]]
    """
    rows = []
    for row in range(len(rankings[0].indices)):
        lists = [ranking.row(row) for ranking in rankings]
        numbers = np.concatenate([indices for indices, _ in lists])
        distinct, first = np.unique(numbers, return_index=True)
        total = np.zeros(len(distinct))
        for indices, scores in lists:
            places = np.searchsorted(distinct, indices)
            if k is None:
                total += _standardised(places, scores, len(distinct), depth)
            else:
                total[places] += 1 / (k + 1.0 + np.arange(len(scores)))
        order = np.lexsort((first, -total))
        rows.append((distinct[order], total[order]))
    return Hits.of(rows)


def _standardised(places: Numbers, scores: Scores, count: int, depth: int) -> Scores:
    """Of `count` chunks the scores of those at some places, and of the others what `Hybrid` says, standardised."""
    unseen = float(scores[-1]) if len(scores) else 0.0
    if len(scores) < depth:
        unseen = min(unseen, 0.0)
    values = np.full(count, unseen)
    values[places] = scores
    if not count or np.ptp(values) == 0:
        return np.zeros(count)
    return np.asarray((values - values.mean()) / values.std())
