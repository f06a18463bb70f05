"""`Names`: which documents a question names, by their file's name, title, company and year."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import Any

import numpy as np

from chunkcore.retrieval.lexicon import odds_against, word_keys, words
from chunkcore.spans import Scores

_FIELDS = ("title", "company", "year")
_YEAR = re.compile(r"(?:19|20)\d\d")
_NUMBER = re.compile(r"\d{5,}")  # of a filing, which nobody asks for
_ONE_WORD = 2.0  # a weight that may be chance
_LEAST = 0.3  # a match of a word or two that a title happens to have


def name_of(document_id: str, metadata: Mapping[str, Any]) -> str:
    """The text of a document's name.

    >>> name_of("filings/Acme_10K.pdf", {"year": 2019})
    'filings/Acme_10K 2019'
    """
    path = PurePath(document_id)
    fields = [str(metadata[field]) for field in _FIELDS if field in metadata]
    return " ".join([str(path.with_suffix("")) if path.name else document_id, *fields])


class Names:
    """The words of the documents' names.

    A word's weight is the logarithm of how many times as many names are without it; 0 if most have it. A name's match
    with a question is the square of the share of its words, by weight, that the question has, times W / (W + 2), W
    their weight; under 0.3 it is 0.

    >>> names = Names(["BestBuy 2019", "Bolt 2019", "Bolt 2020", "Cord 2020", "Dell 2020"])
    >>> matches, left = names.of("What did Best Buy earn in 2019?")
    >>> matches.round(1).tolist(), sorted(left)
    ([0.4, 0.0, 0.0, 0.0, 0.0], ['2019', 'bestbuy'])
    """

    def __init__(self, names: Sequence[str], form: str = "whole") -> None:
        self._form = form
        documents = defaultdict(list)
        for number, name in enumerate(names):
            for key in set(self._keys(name)):
                documents[key].append(number)
        self._documents: dict[str, list[int]] = {}
        self._weights: dict[str, float] = {}
        self._totals = np.zeros(len(names))
        for key, numbers in documents.items():
            weight = math.log(odds_against(len(numbers), len(names)))
            if weight > 0:
                self._documents[key] = numbers
                self._weights[key] = weight
                self._totals[numbers] += weight

    def _keys(self, text: str) -> Iterator[str]:
        text = text.replace("_", " ")
        yield from _YEAR.findall(text)
        for key in word_keys(text, self._form):
            if not _NUMBER.fullmatch(key):
                yield key

    def of(self, question: str) -> tuple[Scores, dict[str, float]]:
        """Each name's match with a question, 0 to 1; and what is left of the weight of words that name a document.

        These are the words of the best match: its text need not have them, and its first page has them most.
        """
        keys = set(self._keys(question))
        for first, second in pairwise(words(question)):  # "Best Buy" names BESTBUY.pdf
            keys.update(word_keys(first + second, self._form))
        keys &= self._weights.keys()
        matched = np.zeros(len(self._totals))
        for key in keys:
            matched[self._documents[key]] += self._weights[key]
        share = matched / np.maximum(self._totals, 1e-9)
        matches: Scores = share**2 * matched / (matched + _ONE_WORD)
        matches[matches < _LEAST] = 0.0
        if not matches.any():
            return matches, {}
        best = int(matches.argmax())
        left = 1 - float(matches[best])
        return matches, {key: left for key in keys if best in self._documents[key]}
