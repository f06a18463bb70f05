"""Which passage a model is asked about next: samples of every document, drawn with a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np

from chunkcore.document import Document, Span

__all__ = ["Sample", "Schedule", "draw_sample"]


@dataclass(frozen=True, slots=True)
class Sample:
    """A passage of a document that a model is to write a question about.

    Attributes:
        document: whole.
        span: the passage, which neither begins nor ends with white space.
        number: how many samples had been drawn of this document before.
    """

    document: Document
    span: Span
    number: int

    @property
    def text(self) -> str:
        """The passage."""
        return self.span.slice(self.document.text)


def draw_sample(document: Document, size: int, seed: int, number: int) -> Sample:
    """At most `size` characters of a document that is not blank, every place being as likely as any other.

    The same document, seed and number give the same sample, whatever else was drawn.

    >>> draw_sample(Document("fox.txt", " The fox naps. "), 4000, seed=0, number=0).text
    'The fox naps.'
    """
    text = document.text
    low, high = len(text) - len(text.lstrip()), len(text.rstrip())
    if high - low > size:
        name = f"{number}:{document.id}".encode("utf-8", "surrogatepass")
        drawn = np.random.default_rng([seed, int.from_bytes(blake2b(name, digest_size=8).digest(), "little")])
        end = high
        low = int(drawn.integers(low, high - size + 1))
        while text[low].isspace():
            low += 1
        low, high = _whole_words(text, low, min(low + size, end))
    return Sample(document, Span(low, high), number)


def _whole_words(text: str, low: int, high: int) -> tuple[int, int]:
    """The range, which begins with no white space, without the words that its ends cut, and no white space there."""
    first, last = low, high
    if low > 0 and not text[low - 1].isspace():
        first += _until_space(text[low:high])
    if high < len(text) and not text[high].isspace():
        last -= _until_space(text[first:high][::-1])
    inner = text[first:last]
    if not inner.strip():  # but for those words it is blank
        return low, low + len(text[low:high].rstrip())
    return first + len(inner) - len(inner.lstrip()), first + len(inner.rstrip())


_NEAR = 100  # characters; scripts without spaces are cut where they are


def _until_space(text: str) -> int:
    return next((place for place, character in enumerate(text[:_NEAR]) if character.isspace()), 0)


@dataclass(slots=True)
class _Turn:
    """What is known of one document's questions so far."""

    document: Document
    rank: int  # in the order in which documents come first
    drawn: int = 0
    kept: int = 0
    under_way: int = 0
    failures: int = 0  # in a row


@dataclass(slots=True)
class Schedule:
    """Says which document is next, so that all have a question before one has two, and long ones get more.

    First every document in an order that the seed draws; then always the one with the most characters for each
    question that it would have (the method of D'Hondt). Of a document no more samples are under way at once
    than fit into it side by side. One whose questions were rejected `patience` times in a row is given up.

    >>> schedule = Schedule([Document("a", "x" * 90), Document("b", "x" * 10)], size=40, seed=0, patience=2)
    >>> [schedule.draw().document.id for _ in range(3)], schedule.draw()
    (['a', 'b', 'a'], None)
    """

    documents: Sequence[Document]
    size: int
    seed: int
    patience: int
    _turns: list[_Turn] = field(init=False)
    _by_id: dict[str, _Turn] = field(init=False)

    def __post_init__(self) -> None:
        askable = [each for each in self.documents if any(character.isalnum() for character in each.text)]
        ranks = np.random.default_rng([self.seed, 0]).permutation(len(askable)).tolist()
        self._turns = [_Turn(document, rank) for document, rank in zip(askable, ranks, strict=True)]
        self._by_id = {turn.document.id: turn for turn in self._turns}

    def draw(self) -> Sample | None:
        """The next sample; None while nothing can be drawn before an answer comes, or for ever."""
        open_turns = [
            turn for turn in self._turns if turn.failures < self.patience and turn.under_way < self._room(turn)
        ]
        if not open_turns:
            return None
        turn = min(open_turns, key=_urgency)
        turn.under_way += 1
        turn.drawn += 1
        return draw_sample(turn.document, self.size, self.seed, turn.drawn - 1)

    def settle(self, sample: Sample, *, kept: bool) -> None:
        """Tell what became of a sample's question."""
        turn = self._by_id[sample.document.id]
        turn.under_way -= 1
        turn.kept += kept
        turn.failures = 0 if kept else turn.failures + 1

    @property
    def given_up(self) -> list[str]:
        """Ids of the documents whose questions were rejected too often in a row."""
        return [turn.document.id for turn in self._turns if turn.failures >= self.patience]

    @property
    def unasked(self) -> list[str]:
        """Ids of the documents that hold neither a letter nor a digit."""
        return [each.id for each in self.documents if each.id not in self._by_id]

    def _room(self, turn: _Turn) -> int:
        return max(1, len(turn.document.text) // self.size)


def _urgency(turn: _Turn) -> tuple[bool, float, int]:
    """Least for the document that is next."""
    questions = turn.kept + turn.under_way
    return questions > 0, -len(turn.document.text) / (questions + 1) if questions else 0.0, turn.rank
