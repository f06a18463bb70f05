"""Copies: units that say nothing of the question that a better unit of another document has not said."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from chunkcore.retrieval.lexicon import has_unspaced, word_keys

_SENTENCE = re.compile(r"[^.!?。！？؟।\n]+(?:[.!?。！？؟।]+(?!\s)[^.!?。！？؟।\n]*)*")
_WORD = re.compile(r"[^\W_]+(?:['’.,:/-][^\W_]+)*")
_SHARE = 0.15  # of a sentence's words may be new
_LEAST = 0.4  # of a text's words are in the sentences that are said again
_NEGATIONS_AND_NUMBERS = """
no not never none nor neither without cannot except unless nobody nothing nowhere hardly only but
nicht nie kein keine keinen keiner ohne außer weder ne pas jamais sans aucun aucune ni sin nunca jamás ningún
non mai senza nessun nessuna não sem nenhum niet geen zonder не нет без никогда ни
one two three four five six seven eight nine ten eleven twelve thirteen fifteen twenty thirty forty fifty sixty
seventy eighty ninety hundred thousand million billion half twice double first second third
"""
_DECISIVE = frozenset(_NEGATIONS_AND_NUMBERS.split())


class _Sentence(NamedTuple):
    words: frozenset[str]
    decisive: frozenset[str]  # names, numbers, negations; words of scripts without spaces


class Said:
    """What an answer has said of a question, sentence by sentence.

    What a text says of the question is its sentences with more than half as much of the question's words, by weight,
    as the best of them, if these are nearly half of it. A sentence is said again where at most one in seven of its
    words are new, and its words of the question, numbers, names and negations are the same.

    >>> said = Said({"pump": 1.0, "prime": 2.0}, "first5")
    >>> said.sayer("Version 1. The pump is primed with two litres of clean water.", "a", 1)
    >>> said.sayer("Version 2. The pump is primed with two litres of fresh water!", "b", 2)
    1
    >>> said.sayer("Version 3. The pump is primed with six litres of clean water.", "c", 3)
    """

    def __init__(self, weights: Mapping[str, float], form: str) -> None:
        self._form = form
        self._weights = weights
        self._keys = frozenset(weights)
        self._texts: dict[str, tuple[str, int]] = {}
        self._by_keys: defaultdict[frozenset[str], list[tuple[_Sentence, str, int]]] = defaultdict(
            list
        )

    def sayer(self, text: str, document_id: str, number: int) -> int | None:
        """The number of another document's text that has said what this text says of the question; None: it is new."""
        name, first = self._texts.get(text, (document_id, number))
        if name != document_id:
            return first
        sentences = _sentences(text, self._form)
        worths = [sum(self._weights[key] for key in row.words & self._keys) for row in sentences]
        least = max(worths, default=0.0) / 2
        relevant = [row for row, worth in zip(sentences, worths, strict=True) if worth > least]
        relevant = relevant or list(sentences)
        size = sum(len(row.words) for row in relevant)
        sayers = [self._sayer(row, document_id) for row in relevant]
        if (
            sayers
            and None not in sayers
            and size >= _LEAST * sum(len(row.words) for row in sentences)
        ):
            return sayers[0]
        self._texts[text] = document_id, number
        for row in relevant:
            self._by_keys[row.words & self._keys].append((row, document_id, number))
        return None

    def _sayer(self, sentence: _Sentence, document_id: str) -> int | None:
        for other, name, number in self._by_keys[sentence.words & self._keys]:
            new = len(sentence.words - other.words)
            is_same = new <= _SHARE * len(sentence.words) and sentence.decisive == other.decisive
            if is_same and name != document_id:
                return number
        return None


@lru_cache(maxsize=2**14)
def _sentences(text: str, form: str) -> tuple[_Sentence, ...]:
    rows = []
    for match in _SENTENCE.finditer(text):
        words = frozenset(word_keys(match[0], form))
        decisive = {word.casefold() for word in _WORD.findall(match[0]) if _decides(word)}
        decisive.update(filter(has_unspaced, words))
        if words:
            rows.append(_Sentence(words, frozenset(decisive)))
    return tuple(rows)


def _decides(word: str) -> bool:
    """Whether a word is a name, a number or a negation."""
    folded = word.casefold()
    is_number = any(map(str.isdigit, word))
    return is_number or word != folded or folded in _DECISIVE or folded.endswith(("n't", "n’t"))
