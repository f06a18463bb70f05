"""`cite`: the places in retrieved passages that support each sentence of an answer."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain

from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.locating.alignment import Aligner
from chunkcore.plain import terminal_text
from chunkcore.retrieval.budget import part_of
from chunkcore.retrieval.lexicon import word_keys
from chunkcore.run import RankedList, Retrieved
from chunkcore.text import Document, Span

_FORM = "first5"  # of words that are compared
_MOST = 3  # parts that one sentence cites by its words
_LEAST = 0.5  # of a sentence's words that its parts must have to be cited
_GAIN = 0.1  # of a sentence's words that each further part must add


@dataclass(frozen=True)
class Citation:
    """A sentence of an answer, and what supports it.

    Attributes:
        span: of the sentence in the answer.
        sources: the supporting places, best first; empty if nothing supports it.
        match: the kind of match of `Aligner`; or "words" for parts that share its words; or "altered" where the place
            has other numbers, units or negations; or "none".
        certainty: 0 to 1: of the place by `Aligner`; by words, the share of the sentence's words that the sources have,
            rare words weighing more.
        altered: the places that the sentence contradicts, if `match` is "altered". They are no sources.
    """

    span: Span
    text: str
    sources: tuple[Retrieved, ...] = ()
    match: str = "none"
    certainty: float = 0.0
    altered: tuple[Retrieved, ...] = ()


@dataclass(frozen=True)
class CitedAnswer:
    """An answer and the citations of its sentences, in order.

    Printed, the answer has numbers after its sentences, and the numbered places below; terminal controls are visible.

    >>> print(cite("A fox naps.", [Retrieved("fox.txt", (Span(0, 22),), 1.0, "A fox naps. It snores.")]))
    A fox naps. [1]
    <BLANKLINE>
    [1] fox.txt 0-11 (exact, 1.00): A fox naps.
    """

    text: str
    citations: tuple[Citation, ...]

    @property
    def sources(self) -> tuple[Retrieved, ...]:
        """All cited places, each once, in the order of first mention: number 1 is the first."""
        cited = chain.from_iterable(citation.sources for citation in self.citations)
        return tuple(dict.fromkeys(cited))

    def __str__(self) -> str:
        places: dict[Retrieved, str] = {}
        text, end = "", 0
        for citation in self.citations:
            text += terminal_text(self.text[end : citation.span.end])
            end = citation.span.end
            for source in citation.sources:
                place = f"[{len(places) + 1}] {_shown(citation, source)}"
                number, _, _ = places.setdefault(source, place).partition(" ")
                text += f" {number}"
        return "\n".join([text + terminal_text(self.text[end:]), "", *places.values()])


def _shown(citation: Citation, source: Retrieved) -> str:
    spans = ", ".join(f"{span.start}-{span.end}" for span in source.spans)
    how = f"({citation.match}, {citation.certainty:.2f})"
    return terminal_text(f"{source.document_id} {spans} {how}: {source.text}".lstrip())


def cite(answer: str, retrieved: Sequence[Retrieved]) -> CitedAnswer:
    """For each sentence of an answer, the places in what was retrieved that support it.

    A sentence that stands in a passage, verbatim or nearly (`Aligner`), cites that place. Any other cites the parts (or
    passages without parts) whose words it shares: the one with most of them, and up to two that add a tenth or more.
    Shared words show where to look; they do not prove a claim. A sentence whose numbers, units or negations differ from
    those of the place that it resembles cites nothing: its `match` is "altered".

    `retrieved` are pieces with texts, such as passages.

    >>> passage = Retrieved("log.txt", (Span(40, 76),), 1.0, "The mill closed in 1973. Rain fell.")
    >>> closed, other = cite("They closed the mill in 1973. Nobody cared!", [passage]).citations
    >>> closed.match, closed.sources[0].spans, other.match
    ('words', (Span(start=40, end=76),), 'none')
    """
    citer = _Citer([passage for passage in retrieved if passage.text])
    citations = []
    for start, end in sentence_ranges(answer).tolist():
        span = Span(start, end)
        sentence = span.slice(answer)
        citation = citer.by_place(span, sentence) or citer.by_words(span, sentence)
        citations.append(citation)
    return CitedAnswer(answer, tuple(citations))


class _Citer:
    def __init__(self, passages: Sequence[Retrieved]) -> None:
        self._passages = passages
        texts = [Document(str(number), passage.text) for number, passage in enumerate(passages)]
        self._aligner = Aligner(texts)
        self._parts = [part for part in RankedList(passages).parts if part.text]
        self._words = [set(word_keys(part.text, _FORM)) for part in self._parts]
        self._counts = Counter(chain.from_iterable(self._words))

    def by_place(self, span: Span, sentence: str) -> Citation | None:
        """The citation of a place that holds the sentence; None where there is none."""
        hit = self._aligner.locate(sentence)
        if not hit.spans:
            return None
        passage, place = self._passages[int(hit.document_id)], hit.spans[0]
        words = word_keys(place.slice(passage.text))
        around = passage.text[max(0, place.start - 20) : place.end + 20]
        # No word is cut at either end: "no" is not in "note".
        if not words or not {words[0], words[-1]}.issubset(word_keys(around)):
            return None
        source = part_of(passage, place.start, place.end)
        citation = Citation(span, sentence, (source,), hit.match, hit.certainty)
        if not _is_altered(sentence, [source.text], whole=True):
            return citation
        return None if hit.match == "part" else _altered(citation)

    def by_words(self, span: Span, sentence: str) -> Citation:
        """The citation of the parts with most of a sentence's words; words in few parts weigh more."""
        numbers = range(len(self._parts))
        left = {}
        for word in sorted(set(word_keys(sentence, _FORM))):
            count = self._counts[word] + 0.5
            left[word] = math.log(1 + (len(numbers) - count + 1) / count)
        total = sum(left.values())

        def gain(number: int) -> tuple[float, float]:
            words = self._words[number]
            weights = [weight for word, weight in left.items() if word in words]
            return sum(weights), self._parts[number].score

        chosen: list[Retrieved] = []
        share = 0.0
        while left and len(chosen) < min(_MOST, len(numbers)):
            best = max(numbers, key=gain)
            gained, _ = gain(best)
            if gained < _GAIN * total:
                break
            chosen.append(self._parts[best])
            share += gained / total
            left = {word: weight for word, weight in left.items() if word not in self._words[best]}
        if share < _LEAST:
            return Citation(span, sentence)
        citation = Citation(span, sentence, tuple(chosen), "words", min(share, 1.0))
        if _is_altered(sentence, [source.text for source in chosen], whole=False):
            return _altered(citation)
        return citation


def _altered(citation: Citation) -> Citation:
    return Citation(citation.span, citation.text, match="altered", altered=citation.sources)


_UNITS = (
    "%|‰|°C|°F|°|mg|kg|g|µg|μg|mcg|ng|lb|oz|cm|mm|km|nm|m|ft|ml|dl|l|ms|min|h|s|kHz|MHz|GHz|Hz|kW|MW|W|kV|mV|V|mA|A|kJ|J|"
    "kcal|kPa|Pa|bar|psi|mmol|mol|IU|KB|MB|GB|TB|percent|seconds?|minutes?|hours?|days?|weeks?|months?|years?|"
    "thousand|million|billion|dollars?|euros?|pounds?|metres?|meters?|miles?"
)
_AMOUNT = re.compile(
    rf"([$€£¥]?)\s?((?<![\w.,)\]])[-−])?(\d+(?:[.,]\d+)*)(?:[\s-]?({_UNITS})(?!\w))?", re.IGNORECASE
)
_WORDS = re.findall(r"\w+", "two three four five six seven eight nine ten eleven twelve")
_NUMBERS = {word: str(number) for number, word in enumerate(_WORDS, start=2)}
_NEGATION = re.compile(
    r"\b(?:no|not|never|none|nobody|nothing|neither|nor|without|cannot)\b|n['’]t\b", re.IGNORECASE
)
_THOUSANDS = re.compile(r",(?=\d{3}(?!\d))")


def _amounts(text: str) -> Counter[tuple[str, str]]:
    """The numbers of a text, each with its unit, or ""."""
    amounts = Counter((_NUMBERS[word], "") for word in word_keys(text) if word in _NUMBERS)
    for currency, sign, digits, unit in _AMOUNT.findall(text):
        number = _THOUSANDS.sub("", digits)
        with suppress(ValueError):  # such as 1.2.3
            number = f"{float(number):g}"
        if sign:
            number = f"-{number}"
        if unit.lower() == "percent":
            unit = "%"
        elif len(unit) > 3:
            unit = unit.rstrip("s")
        amounts[number, currency or unit] += 1
    return amounts


def _is_altered(sentence: str, sources: Sequence[str], *, whole: bool) -> bool:
    """Whether numbers, units or negations of a sentence differ from its sources'.

    With `whole`, source and sentence should say the same; else the source may say more.
    """
    text = "\n\n".join(sources)  # no amount reaches over two line ends
    claims, evidence = _amounts(sentence), _amounts(text)
    negations = _NEGATION.findall(sentence)
    if whole:
        return claims != evidence or len(negations) != len(_NEGATION.findall(text))
    numbers = {number for number, _ in evidence}
    for number, unit in claims.keys() - evidence.keys():
        if unit or number not in numbers:
            return True
    nearest = [_nearest_sentence(sentence, text) for text in sources]
    return bool(negations) != any(map(_NEGATION.search, nearest))


def _nearest_sentence(sentence: str, text: str) -> str:
    """The sentence of a text that shares the most words with another sentence."""
    words = set(word_keys(sentence, _FORM))
    sentences = [text[start:end] for start, end in sentence_ranges(text).tolist()]
    return max(sentences, key=lambda other: len(words & {*word_keys(other, _FORM)}), default="")
