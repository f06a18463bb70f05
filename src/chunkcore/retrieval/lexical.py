"""`BM25`: search by shared words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chunkcore.options import check_ranges
from chunkcore.retrieval.base import Hits, Index, RetrievalMethod, retrievers
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.retrieval.lexicon import check_words, word_keys
from chunkcore.retrieval.search import best_of
from chunkcore.retrieval.vectors import TextVectors
from chunkcore.spans import Numbers, Scores


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

    def validate(self) -> None:
        check_ranges(self, k1=0, b=(0, 1))
        check_words(self.words)

    @property
    def embeds(self) -> bool:
        return False

    def build(self, corpus: ChunkedCorpus, vectors: TextVectors | None = None) -> Index:
        return WordIndex(corpus, self)


class WordIndex(Index):
    """BM25 scores from a corpus's postings."""

    def __init__(self, corpus: ChunkedCorpus, method: BM25) -> None:
        super().__init__(corpus)
        self._form = method.words
        self._postings = corpus.postings(method.words)
        self._norms = length_norms(self._postings.lengths, method.k1, method.b)

    def rank(self, queries: Sequence[str], k: int) -> Hits:
        return Hits.of([self._best(query, k) for query in queries])

    def _best(self, query: str, k: int) -> tuple[Numbers, Scores]:
        scores = np.zeros(len(self.corpus))
        for key, repeats in Counter(word_keys(query, self._form)).items():
            chunks, counts = self._postings.of_word(key)
            weight = repeats * inverse_document_frequency(len(chunks), len(scores))
            scores[chunks] += weight * counts / (counts + self._norms[chunks])
        hits = np.flatnonzero(scores > 0)
        best = hits[best_of(scores[hits], k)]
        return best, scores[best]


def length_norms(lengths: Numbers, k1: float, b: float) -> Scores:
    """What BM25 adds to a word's frequency below the fraction; above 0, so that a word that is not there scores 0."""
    mean = float(lengths.mean()) if len(lengths) else 0.0
    norms: Scores = np.maximum(k1 * (1 - b + b / (mean or 1.0) * lengths), 1e-30)
    return norms


def inverse_document_frequency(count: int, size: int) -> float:
    """The weight of a word that `count` of `size` texts have."""
    return float(np.log1p((size - count + 0.5) / (count + 0.5)))
