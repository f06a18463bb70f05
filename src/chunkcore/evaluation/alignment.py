"""Where retrieved text stands in the documents: by the spans that came with it, else by the text itself.

One index serves both searches. Documents are kept without their white space, and a hash of every
eighth window of 16 characters leads to the few places where a text can stand; each is then compared
in full. A place where even the white space agrees is exact.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from chunkcore.document import Document, Span
from chunkcore.errors import DataError
from chunkcore.evaluation.run import How, Retrieved

__all__ = ["Aligner"]

_WINDOW = 16  # characters that a hash stands for; a power of two
_STRIDE = 8  # every eighth window is indexed, so the index stays small
_INDEXED_FROM = _WINDOW + _STRIDE - 1  # a text of so many characters holds an indexed window wherever it stands
_BASE = 0x9E3779B97F4A7C15

# Every character that Python calls white space lies at or below U+3000.
_SPACE = np.array([chr(code).isspace() for code in range(0x3001)])

_Place = tuple[str, tuple[Span, ...], How]
_NOWHERE: _Place = ("", (), "unlocated")


class Aligner:
    """Finds retrieved text in a benchmark's documents.

    The index is built when a text is first searched: about 15 bytes a character, a second for 10 MB.

    Raises:
        DataError: two documents share an id.

    >>> aligner = Aligner([Document("fox.txt", "The quick fox naps. The dog barks.")])
    >>> aligner.locate("The quick  fox")
    Retrieved(document_id='fox.txt', spans=(Span(start=0, end=13),), score=0.0, text='The quick  fox', how='whitespace')
    """

    def __init__(self, documents: Iterable[Document]) -> None:
        self._documents = list(documents)
        self._numbers = {document.id: number for number, document in enumerate(self._documents)}
        if len(self._numbers) < len(self._documents):
            raise DataError("two documents share an id, so a place could not be named: make the ids unique")
        self._known: dict[tuple[str, str], _Place] = {}

    def locate(
        self,
        text: str,
        *,
        document_id: str = "",
        spans: Iterable[Span | tuple[int, int]] = (),
        score: float = 0.0,
    ) -> Retrieved:
        """Where a retrieved text stands.

        Given spans are taken where their slices are the text, white space aside (or where there is no
        text to hold them against). Otherwise the text is searched: verbatim, then with white space left
        out of account. Where it stands at several places the first is taken and `how` is "ambiguous";
        where it stands nowhere there are no spans and `how` is "unlocated".

        Args:
            text: what the retriever returned.
            document_id: searched in this document alone; an id that is not among the documents (many
                systems make up their own) is left out of account.
            spans: offsets that came with the text.
            score: the retriever's own.
        """
        number = self._numbers.get(document_id)
        offered = list(spans)
        if offered and number is not None:
            verified = _verified(self._documents[number].text, text, offered)
            if verified:
                return Retrieved(document_id, verified, score, text, "spans")
        key = (text, document_id if number is not None else "")
        if key not in self._known:
            self._known[key] = self._search(text, number)
        found_in, found, how = self._known[key]
        return Retrieved(found_in, found, score, text, how)

    def _search(self, text: str, number: int | None) -> _Place:
        squeezed = "".join(text.split())
        if not squeezed:
            return self._search_blank(text, number)
        loose: list[tuple[int, Span]] = []
        exact: list[tuple[int, Span]] = []
        lead = len(text) - len(text.lstrip())
        for found, place in self._places(squeezed, number):
            source = self._documents[found].text
            first, last = self._squeezed[found].originals(place, len(squeezed))
            begin = first - lead
            if begin >= 0 and source.startswith(text, begin):
                exact.append((found, Span(begin, begin + len(text))))
                if len(exact) == 2:
                    break
            elif len(loose) < 2:
                loose.append((found, Span(first, last + 1)))
        return self._first(exact, "exact") if exact else self._first(loose, "whitespace")

    def _search_blank(self, text: str, number: int | None) -> _Place:
        """A text of nothing but white space can only stand somewhere verbatim."""
        chosen = range(len(self._documents)) if number is None else [number]
        found = [(each, self._documents[each].text.find(text)) for each in chosen] if text else []
        places = [(each, Span(at, at + len(text))) for each, at in found if at >= 0]
        places += [
            (each, Span(again, again + len(text)))
            for each, span in places[:1]
            if (again := self._documents[each].text.find(text, span.start + 1)) >= 0
        ]
        return self._first(places, "exact")

    def _first(self, places: Sequence[tuple[int, Span]], how: How) -> _Place:
        if not places:
            return _NOWHERE
        number, span = places[0]
        return self._documents[number].id, (span,), how if len(places) == 1 else "ambiguous"

    def _places(self, squeezed: str, number: int | None) -> Iterator[tuple[int, int]]:
        """Each document and squeezed offset at which the squeezed text stands, in order."""
        if len(squeezed) >= _INDEXED_FROM:
            for found, place in self._index.candidates(squeezed, number):
                if self._squeezed[found].text.startswith(squeezed, place):
                    yield found, place
            return
        for each in range(len(self._documents)) if number is None else [number]:
            place = self._squeezed[each].text.find(squeezed)
            while place >= 0:
                yield each, place
                place = self._squeezed[each].text.find(squeezed, place + 1)

    @cached_property
    def _squeezed(self) -> list[_Squeezed]:
        return [_Squeezed.of(document.text) for document in self._documents]

    @cached_property
    def _index(self) -> _WindowIndex:
        return _WindowIndex([squeezed.text for squeezed in self._squeezed])


def _verified(source: str, text: str, offered: Sequence[Span | tuple[int, int]]) -> tuple[Span, ...]:
    """The offered spans where they are in bounds and stand for the text, else none."""
    try:
        spans = tuple(each if isinstance(each, Span) else Span(*each) for each in offered)
    except (DataError, TypeError):
        return ()
    if any(span.end > len(source) for span in spans):
        return ()
    slices = [span.slice(source) for span in spans]
    if not text or slices == [text]:
        return spans
    return spans if "".join("".join(slices).split()) == "".join(text.split()) else ()


@dataclass(frozen=True, eq=False)
class _Squeezed:
    """A text without its white space, and where each character was."""

    text: str
    kept: NDArray[np.uint32]

    @classmethod
    def of(cls, text: str) -> _Squeezed:
        codes = _codes(text)
        blank = _SPACE[np.minimum(codes, len(_SPACE) - 1)] & (codes < len(_SPACE))
        return cls("".join(text.split()), np.flatnonzero(~blank).astype(np.uint32))

    def originals(self, place: int, length: int) -> tuple[int, int]:
        """The offsets in the text itself of the first and of the last of `length` characters."""
        return int(self.kept[place]), int(self.kept[place + length - 1])


class _WindowIndex:
    """From the hash of a window to the places where such a window stands."""

    def __init__(self, texts: Sequence[str]) -> None:
        sizes = [len(text) for text in texts]
        self._bases: list[int] = [0, *np.cumsum(sizes).tolist()]
        hashes = [_window_hashes(text)[::_STRIDE] for text in texts]
        places = [
            base + _STRIDE * np.arange(len(each), dtype=np.int64)
            for base, each in zip(self._bases, hashes, strict=False)
        ]
        # A stable sort keeps the places of equal hashes in order.
        joined = np.concatenate([*hashes, np.empty(0, dtype=np.uint64)])
        order = np.argsort(joined, kind="stable")
        self._hashes = joined[order]
        self._places = np.concatenate([*places, np.empty(0, dtype=np.int64)])[order]

    def candidates(self, text: str, number: int | None) -> Iterator[tuple[int, int]]:
        """Every document and offset at which the text may stand, in order; none is missed.

        Wherever it stands, one window of it at each residue of the stride is indexed. Of the windows of
        a residue the rarest is looked up, so that a rule of dashes inside of a text costs nothing.
        """
        hashes = _window_hashes(text)
        first = np.searchsorted(self._hashes, hashes, side="left")
        counts = np.searchsorted(self._hashes, hashes, side="right") - first
        found = []
        for residue in range(_STRIDE):
            rarest = residue + _STRIDE * int(np.argmin(counts[residue::_STRIDE]))
            found.append(self._places[first[rarest] : first[rarest] + counts[rarest]] - rarest)
        places = np.unique(np.concatenate(found))
        low, high = (0, self._bases[-1]) if number is None else (self._bases[number], self._bases[number + 1])
        for place in places[(places >= low) & (places < high)].tolist():
            document = bisect_right(self._bases, place) - 1
            yield document, place - self._bases[document]


def _codes(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def _window_hashes(text: str) -> NDArray[np.uint64]:
    """A polynomial hash, modulo 2**64, of the window that begins at each character; by doubling."""
    hashes = _codes(text).astype(np.uint64) + np.uint64(1)
    width, factor = 1, _BASE
    while width < _WINDOW:
        if len(hashes) <= width:
            return np.empty(0, dtype=np.uint64)
        hashes = hashes[:-width] * np.uint64(factor) + hashes[width:]
        width, factor = 2 * width, factor * factor % 2**64
    return hashes
