"""`BM25`: search by shared words."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import regex  # type: ignore[import-untyped]

from chunkcore.errors import MissingExtraError, OptionError
from chunkcore.models.base import Embedder
from chunkcore.registry import check_ranges
from chunkcore.retrieval.base import Hits, Index, RetrievalMethod, Scores, retrievers
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.retrieval.vectors import TextVectors
from chunkcore.spans import Numbers

__all__ = ["BM25", "check_words", "word_keys", "words"]

# Scripts without spaces between words; and Hangul, whose words include their particles.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}ー\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_RUN = regex.compile(rf"(?V1)([{_UNSPACED}]+)|[[\p{{L}}\p{{M}}\p{{N}}_]--[{_UNSPACED}]]+")
_GRAPHEME = regex.compile(r"\X")
# Normalizing sorts marks in a row in quadratic time. Unicode's stream-safe form (UAX #15, section 13) puts a joiner
# after each 30; the last two characters here become marks in compatibility form.
_MARKS = regex.compile(r"[\p{M}\uff9e\uff9f]{30}(?=[\p{M}\uff9e\uff9f])")
_JOINER = "\u034f"
_FIRST = regex.compile(r"first([1-9]\d?)")
# "And" and the article before an Arabic word, as in light stemming (Larkey, Ballesteros and Connell, SIGIR 2002).
_ARABIC = regex.compile(r"[وف]?(?:ال|بال|كال|لل)(?=\w\w)|و(?=\w\w\w)")


def words(text: str) -> list[str]:
    """The text's words: runs of letters, digits, marks and _, in Unicode's compatibility form (NFKC), case-folded.

    Scripts without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese) and Korean give pairs of neighbouring
    characters, as Lucene's CJKAnalyzer does. No stemming, no stop words; accents stay. Linear time.

    >>> words("The Fox's DEN, n° 7: ﬁne Straße")
    ['the', 'fox', 's', 'den', 'n', '7', 'fine', 'strasse']
    >>> words("東京都 tower")
    ['東京', '京都', 'tower']
    """
    found: list[str] = []
    for match in _RUN.finditer(_folded(text)):
        if match[1] is None:
            found.append(match[0])
        else:
            characters = _GRAPHEME.findall(match[0])
            found += [a + b for a, b in pairwise(characters)] or characters
    return found


def word_keys(text: str, form: str = "whole") -> list[str]:
    """The text's `words` as they are compared: "whole", or "first5", cut to their first 5 characters.

    A word with a digit among these stays whole, and so do the pairs of characters of scripts without spaces. An Arabic
    word loses its article and "and" before it is cut. Raises `OptionError`: another form.

    >>> word_keys("Terminating 20250101", "first5"), word_keys("والكتاب", "first5"), word_keys("東京都", "first5")
    (['termi', '20250101'], ['كتاب'], ['東京', '京都'])
    """
    letters = check_words(form)
    found = words(text)
    return [_cut(word, letters) for word in found] if letters else found


def check_words(form: str) -> int:
    """The characters that a form of words keeps; 0: all. Raises `OptionError` for an unknown form."""
    match = _FIRST.fullmatch(form)
    if form != "whole" and (match is None or int(match[1]) < 2):
        raise OptionError(f"words is whole, or first2 to first99, such as first5; got {form!r}")
    return int(match[1]) if match else 0


@lru_cache(maxsize=2**16)
def _cut(word: str, letters: int) -> str:
    if any(map(str.isdigit, word[:letters])):
        return word
    if "\u0600" <= word[0] <= "\u06ff" and (prefix := _ARABIC.match(word)):
        word = word[prefix.end() :]
    return word[:letters]


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", _MARKS.sub(rf"\g<0>{_JOINER}", text)).casefold()


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

    def index(self, corpus: ChunkedCorpus, vectors: TextVectors | None = None) -> Index:
        return _ByWords(corpus, self.k1, self.b, self.words)


class _ByWords(Index):
    def __init__(self, corpus: ChunkedCorpus, k1: float, b: float, form: str) -> None:
        super().__init__(corpus)
        self._form = form
        number: dict[str, int] = {}
        chunks = [[number.setdefault(word, len(number)) for word in word_keys(text, form)] for text in corpus.texts]
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
    try:
        bm25s: Any = import_module("bm25s")
    except ImportError as error:
        raise MissingExtraError.of("bm25s", "lexical", "search by words") from error
    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it sets another level on import
    return bm25s
