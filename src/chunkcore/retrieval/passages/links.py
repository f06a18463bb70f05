"""Names that link documents: one that the question has not leads from the best units to the rest of the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import regex

from chunkcore.retrieval.passages.windows import LexicalWindows, Units
from chunkcore.spans import Numbers

_WORD = r"[\p{L}\p{M}\p{N}_]+(?:[-.'’/][\p{L}\p{M}\p{N}_]+)*"
_CAPITAL = rf"(?=\p{{Lu}}){_WORD}"
_TOKEN = regex.compile(rf"{_CAPITAL}(?: {_CAPITAL})+|{_WORD}")
_IDENTIFIER = regex.compile(r"(?=.*\p{N})\p{L}.{3,}|.+_.+")
_IN_SENTENCE = regex.compile(r"[\p{Ll},] $")
_FEW = (
    8  # at most one word in so many is a name of one word: German writes every noun with a capital
)

SOURCES = 3  # of the best units, whose names may lead on
NEAR = 0.5  # of the best unit's score: what such a unit has at least
MOST = 2  # units that names lead to
NEXT = 0.9  # of the score of the unit that names it
SHARE = 0.25  # of the budget for them
_MOST_DOCUMENTS = 2  # other ones that have the name
_MOST_UNITS = 8  # of these that have it


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


class Links:
    """Where names in units lead: names that the question has not, and only one or two other documents have.

    `weights` has the question's words, `text_of` gives what is shown of a unit; "": nothing.
    """

    def __init__(
        self,
        lexical: LexicalWindows,
        units: Units,
        weights: Mapping[str, float],
        text_of: Callable[[int], str],
    ) -> None:
        self._lexical = lexical
        self._documents = units.documents
        self._weights = weights
        self._text_of = text_of

    def of(self, unit: int) -> list[Lead]:
        """For each name in a unit and each other document that has it, the unit that says most of the question."""
        text = self._text_of(unit)
        rest = self._weights.keys() - self._lexical.keys(text)
        leads = []
        for name in names_in(text):
            for holders in self._holders(name, unit):
                texts = {holder: self._text_of(holder) for holder in holders.tolist()}
                gains = {
                    holder: self._weight(rest.intersection(self._lexical.keys(other)))
                    for holder, other in texts.items()
                    if name in other
                }
                if gains:
                    best = max(gains, key=gains.__getitem__)
                    leads.append(Lead(gains[best], best, unit))
        return leads

    def _weight(self, keys: set[str]) -> float:
        return sum(self._weights[key] for key in keys)

    def _holders(self, name: str, unit: int) -> list[Numbers]:
        """The units of each other document that have the name's words; none if it does not tell documents apart."""
        keys = self._lexical.keys(name)
        if not keys or self._weights.keys() >= set(keys):
            return []
        units = self._lexical.units_with(keys)
        units = units[self._documents[units] != self._documents[unit]]
        if not 0 < len(units) <= _MOST_UNITS:
            return []
        rows = np.split(units, np.flatnonzero(np.diff(self._documents[units])) + 1)
        return rows if len(rows) <= _MOST_DOCUMENTS else []
