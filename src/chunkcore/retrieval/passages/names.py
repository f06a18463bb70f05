"""Names: which documents a question names, what headings stand above each unit, and which names link documents."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np
import regex

from chunkcore.boundaries.records import marked_headings
from chunkcore.retrieval.lexicon import odds_against, word_keys, words
from chunkcore.retrieval.passages.windows import Units
from chunkcore.spans import Scores
from chunkcore.text import Document

_FIELDS = ("title", "company", "year")
_YEAR = re.compile(r"(?:19|20)\d\d")
_NUMBER = re.compile(r"\d{5,}")  # of a filing, which nobody asks for
_ONE_WORD = 2.0  # a weight that may be chance
_LEAST = 0.3  # a match of a word or two that a title happens to have
_TAG = re.compile(r"<[^<>]*>")

# Of names that link documents.
_WORD = r"[\p{L}\p{M}\p{N}_]+(?:[-.'’/][\p{L}\p{M}\p{N}_]+)*"
_CAPITAL = rf"(?=\p{{Lu}}){_WORD}"
_TOKEN = regex.compile(rf"{_CAPITAL}(?: {_CAPITAL})+|{_WORD}")
_IDENTIFIER = regex.compile(r"(?=.*\p{N})\p{L}.{3,}|.+_.+")
_IN_SENTENCE = regex.compile(r"[\p{Ll},] $")
_FEW = (
    8  # at most one word in so many is a name of one word: German writes every noun with a capital
)


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


# ---- Headings


def heading_paths(text: str) -> Iterator[tuple[int, str]]:
    r"""Where each section begins, and the titles above it with its own.

    >>> list(heading_paths("# Report 2023\n\n## Liquidity\n\nCash fell."))
    [(0, 'Report 2023'), (15, 'Report 2023 Liquidity')]
    """
    path: list[tuple[int, str]] = []
    for heading in marked_headings(text):
        path = [above for above in path if above[0] < heading.level]
        path.append((heading.level, _TAG.sub(" ", heading.title)))
        yield heading.start, " ".join([title for _, title in path])


class Headings:
    """The words of the headings above units.

    Args:
        units: the units.
        documents: of each document with units, in their order; None for one that is not given.
        form: of words, see `word_keys`.
    """

    def __init__(self, units: Units, documents: Sequence[Document | None], form: str) -> None:
        self._size = len(units)
        edges: dict[str, list[int]] = defaultdict(list)
        for number, document in enumerate(documents):
            if document is None:
                continue
            first, end = units.firsts[number : number + 2].tolist()
            sections = list(heading_paths(document.text))
            begins = [start for start, _ in sections]
            places = np.searchsorted(units.starts[first:end], begins) + first
            ranges = pairwise([*places.tolist(), end])
            for (_, titles), (begin, after) in zip(sections, ranges, strict=True):
                if begin < after:
                    for key in set(word_keys(titles, form)):
                        edges[key] += begin, after
        # Where the headings that have a word begin to stand above units, and where they end.
        self._edges = {key: np.array(places).reshape(-1, 2).T for key, places in edges.items()}

    def gains(self, weights: Mapping[str, float], most: float) -> Scores:
        """What each unit gains: the square of the share of a question's words, by weight, that the headings above it
        have, times `most`.
        """
        steps = np.zeros(self._size + 1)
        for key, weight in weights.items():
            if key in self._edges:
                begins, ends = self._edges[key]
                steps[begins] += weight
                steps[ends] -= weight
        edges = np.flatnonzero(steps)
        shares = np.cumsum(steps[edges]) / (sum(weights.values()) or 1.0)
        # Sums that take away what they added are not exact.
        gains = most * np.append(0.0, np.round(shares, 9) ** 2)
        return np.repeat(gains, np.diff(edges, prepend=0, append=self._size))


# ---- Names that link documents


def names_in(text: str) -> list[str]:
    """The names in a text: words in a row that begin with a capital, one inside a sentence, and identifiers.

    >>> names_in("The clock by Ana Holt, of Valby, has ticket OPS-4412.")
    ['Ana Holt', 'Valby', 'OPS-4412']
    """
    names, single = [], []
    tokens = list(_TOKEN.finditer(text))
    for token in tokens:
        if " " in token[0] or _IDENTIFIER.fullmatch(token[0]):
            names.append(token[0])
        elif token[0].istitle() and _IN_SENTENCE.search(
            text, max(0, token.start() - 2), token.start()
        ):
            names.append(token[0])
            single.append(token[0])
    if _FEW * len(single) > len(tokens):
        common = set(single)
        names = [name for name in names if name not in common]
    return list(dict.fromkeys(names))


class Lead(NamedTuple):
    """A unit that a name leads to. `gain`: the weight of the question's words that it has and the source has not."""

    gain: float
    unit: int
    source: int
