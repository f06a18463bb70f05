"""`BM25`: search by shared words."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chunkcore.lazy import needed
from chunkcore.models.base import Embedder
from chunkcore.registry import check_ranges
from chunkcore.retrieval.base import Hits, Index, RetrievalMethod, retrievers
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.retrieval.lexicon import check_words, word_keys
from chunkcore.retrieval.vectors import TextVectors
from chunkcore.spans import Numbers, Scores


@retrievers.register("bm25")
@dataclass(frozen=True, kw_only=True)
class BM25(RetrievalMethod):
    """Okapi BM25 (Robertson et al., 1995) in Lucene's variant, whose weights are never negative; by bm25s (Lù, 2024).

    A chunk's score is the sum over the query's words w, repeats included, of
    ``ln(1 + (N - n + 0.5) / (n + 0.5)) · f / (f + k1 · (1 - b + b · L / mean L))``: N chunks, n of them with w, f times
    w in this chunk, L words in it. Chunks without a shared word are not found; ties keep the chunks' order. Context and
    text are read.

    Attributes:
        k1: how fast repetitions of a word in a chunk stop counting; 0: at once. Lucene's default.
        b: how much long chunks are held back, 0 to 1. Lucene's default.
        words: what counts as one word: "whole", or "first5", cut to the first 5 characters; see `word_keys`.

    Cost: no model. Indexing is O(words), 8 bytes a word; the index takes about 20 bytes for each distinct word of a
    chunk; a query is O(chunks).

    Raises:
        OptionError: k1 is negative, b is not 0 to 1, or words is neither.
        MissingExtraError: bm25s is not installed.
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

    def check(self, embedder: Embedder) -> None:
        _bm25s()

    def build(self, corpus: ChunkedCorpus, vectors: TextVectors | None = None) -> Index:
        return _ByWords(corpus, self.k1, self.b, self.words)


class _ByWords(Index):
    def __init__(self, corpus: ChunkedCorpus, k1: float, b: float, form: str) -> None:
        super().__init__(corpus)
        self._form = form
        number: dict[str, int] = {}
        texts = corpus.lexical_texts
        chunks = [[number.setdefault(word, len(number)) for word in word_keys(text, form)] for text in texts]
        self._numbers = number
        self._index = None
        if self._numbers:
            self._index = _bm25s().BM25(k1=k1, b=b, method="lucene", backend="numpy", csc_backend="numpy")
            self._index.index((chunks, self._numbers), create_empty_token=False, show_progress=False)

    def search(self, queries: Sequence[str], k: int) -> Hits:
        return Hits.of([self._best(query, k) for query in queries])

    def _best(self, query: str, k: int) -> tuple[Numbers, Scores]:
        known = [self._numbers[word] for word in word_keys(query, self._form) if word in self._numbers]
        if not known or self._index is None:
            return np.empty(0, dtype=np.int64), np.empty(0)
        scores = self._index.get_scores_from_ids(known)
        found = np.flatnonzero(scores > 0)
        if len(found) > k:
            least = np.partition(scores[found], -k)[-k]
            found = found[scores[found] >= least]
        best = found[np.lexsort((found, -scores[found]))[:k]]
        return best, scores[best].astype(np.float64)


def _bm25s() -> Any:
    bm25s = needed("bm25s", "lexical", "search by words")
    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it sets another level on import
    return bm25s
