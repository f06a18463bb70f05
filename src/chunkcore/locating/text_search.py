"""Finds the candidate places of a text, by hashes of short windows of the searched texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from chunkcore.boundaries import one_line
from chunkcore.spans import Flags, Numbers, ragged_indices
from chunkcore.text import Span

# All of Python's white space is at or below U+3000.
_SPACE = np.array([chr(code).isspace() for code in range(0x3001)])


@dataclass(frozen=True, eq=False)
class NormalizedText:
    """A reduced text, and each of its characters' offset in the original: uint32, ascending.

    >>> fold("“Naïve” ﬁts").text, squeeze("a   b").origins.tolist()
    ('naivefits', [0, 4])
    """

    text: str
    origins: NDArray[np.uint32]

    def span(self, start: int, end: int) -> Span:
        return Span(int(self.origins[start]), int(self.origins[end - 1]) + 1)

    def signs_before(self, place: int, original: str) -> list[int]:
        """Where signs stand in the original that are left out before ``text[place]``, or before the end."""
        begin = int(self.origins[place - 1]) + 1 if place else 0
        end = int(self.origins[place]) if place < len(self.text) else len(original)
        return [at for at in range(begin, end) if not original[at].isspace()]


def code_points(text: str) -> NDArray[np.uint32]:
    """The text's code points, unpaired surrogates included."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def squeeze(text: str) -> NormalizedText:
    """The text without white space. Linear time; 4 bytes a character."""
    codes = code_points(text)
    blank = _SPACE[np.minimum(codes, len(_SPACE) - 1)] & (codes < len(_SPACE))
    return NormalizedText("".join(text.split()), np.flatnonzero(~blank).astype(np.uint32))


def fold(text: str) -> NormalizedText:
    """The text's letters and digits, in compatibility form (NFKD), case-folded, without diacritics.

    Quotation marks, dashes, markup, ligatures and composed accents then make no difference. Vowel signs stay, as they
    are part of their letter. Linear time.
    """
    return _reduced(text, _folded)


def loosen(text: str) -> NormalizedText:
    r"""The text in compatibility form (NFKD), case-folded, without white space, with one kind of quote and dash.

    Unlike `fold` it keeps punctuation and diacritics. Characters without a shape, such as soft hyphens, are left out.

    >>> loosen("“Tea”\n is\u00ad hot").text == loosen("'tea' is hot").text
    True
    """
    return _reduced(text, _loosened)


_TAG = re.compile(r"<[/!]?[A-Za-z][^<>]*>")


def without_tags(text: str) -> str:
    """The text with a space for each tag."""
    return _TAG.sub(" ", text)


# Scripts that write no spaces between words: Thai to Burmese, Khmer, and those of China and Japan.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WITHIN_WORD = re.compile(rf"[^\W_{_UNSPACED}]{{2}}")
_LETTER = r"[^\W\d_]"
_JOINED = re.compile(rf"(?<={_LETTER})- (?={_LETTER})| (?=[{_UNSPACED}])|(?<=[{_UNSPACED}]) ")
_DASH = re.compile(rf"(?<={_LETTER}) ?-+ ?(?={_LETTER})")
# A sign counts within a word ("x+1"), before a number ("-5"), and as a word of a sum ("5 - 3").
_WORDS = re.compile(
    r"""(?x)(?:[-<>≤≥](?=\.?\d))?[^\W_](?:\S*[^\W_])?
    | (?<=\d\s)[-*>](?=\s\d) | (?<!\S)[+/<=≤≥±×÷](?!\S)"""
)


def cuts_words(text: str, span: Span) -> bool:
    """Whether the span begins or ends within a word."""
    ends = [place for place in (span.start, span.end) if place]
    return any(_WITHIN_WORD.match(text, place - 1) for place in ends)


def wording(text: str) -> str:
    r"""The text's words, with the signs that may change what they say; case, accents and kinds of quotes left out.

    >>> wording("The **Light-\nhouse** - at “x+1”: -5 %")
    'the lighthouse at x+1 -5'
    """
    plain = one_line("".join(map(_written, text)))
    plain = _DASH.sub(" ", _JOINED.sub("", plain))
    return " ".join(_WORDS.findall(plain))


def _reduced(text: str, reduce: Callable[[str], str]) -> NormalizedText:
    reduced = {ord(character): reduce(character) for character in set(text)}
    sizes = np.zeros(max(reduced, default=0) + 1, np.uint8)
    for code, letters in reduced.items():
        sizes[code] = len(letters)
    places = np.arange(len(text), dtype=np.uint32)
    return NormalizedText(text.translate(reduced), np.repeat(places, sizes[code_points(text)]))


@cache
def _folded(character: str) -> str:
    return "".join(filter(_is_kept, _compatible(character)))


def _compatible(character: str) -> str:
    folded = unicodedata.normalize("NFKD", character).casefold()
    return unicodedata.normalize("NFKD", folded)


_QUOTES = str.maketrans(dict.fromkeys('‘’‚‛“”„‟«»‹›′″ʼ`´"', "'") | dict.fromkeys("‐‑‒–—―−", "-"))


@cache
def _loosened(character: str) -> str:
    if character.isspace() or unicodedata.category(character) == "Cf":
        return ""
    return "".join(_compatible(character.translate(_QUOTES)).split())


@cache
def _written(character: str) -> str:
    """A character's letters and signs, without case and accents."""
    if character.isspace():
        return " "
    if unicodedata.category(character) == "Cf":
        return ""
    letters = _compatible(character.translate(_QUOTES))
    return "".join(sign for sign in letters if not unicodedata.combining(sign))


def _is_kept(character: str) -> bool:
    kind = unicodedata.category(character)[0]
    if kind != "M":
        return kind in "LN"
    # Diacritics have a combining class; vowel signs and variation selectors have none.
    name = unicodedata.name(character, "")
    return not unicodedata.combining(character) and "VARIATION SELECTOR" not in name


_BASE = 0x9E3779B97F4A7C15


def _window_hashes(text: str, window: int) -> NDArray[np.uint64]:
    hashes = code_points(text).astype(np.uint64) + np.uint64(1)
    width, factor = 1, _BASE
    while width < window:
        if len(hashes) <= width:
            return np.empty(0, np.uint64)
        hashes = hashes[:-width] * np.uint64(factor) + hashes[width:]
        width, factor = 2 * width, factor * factor % 2**64
    return hashes


class Searchable:
    """Texts, in the form that `reduce` makes of them, and an index of them, which the first long query builds.

    The index has the hash of every `stride`-th window of `window` characters, a power of two: 16 / `stride` bytes a
    character.
    """

    def __init__(
        self,
        originals: Sequence[str],
        reduce: Callable[[str], NormalizedText] | None,
        window: int,
        stride: int,
    ) -> None:
        self.forms = list(map(reduce, originals)) if reduce else []
        self.texts = [form.text for form in self.forms] if reduce else originals
        self._window, self._stride = window, stride
        self._bases = np.cumsum([0, *map(len, self.texts)])  # where each text begins in all

    @cached_property
    def _windows(self) -> tuple[NDArray[np.uint64], Numbers]:
        """The hashes, sorted, and the places of their windows in all texts."""
        hashes = [np.empty(0, np.uint64)]
        places = [np.empty(0, np.int64)]
        for text, base in zip(self.texts, self._bases.tolist(), strict=False):
            hashed = _window_hashes(text, self._window)[:: self._stride]
            hashes.append(hashed.copy())  # a view would keep all hashes in memory
            places.append(base + self._stride * np.arange(len(hashed)))
        # A stable sort keeps the places of equal hashes in order.
        joined = np.concatenate(hashes)
        order = np.argsort(joined, kind="stable")
        return joined[order], np.concatenate(places)[order]

    def places(self, text: str, number: int | None) -> Iterator[tuple[int, int]]:
        """Each text's number and each offset at which the reduced, non-empty `text` occurs, in order.

        A text of window + stride - 1 characters contains an indexed window at each residue of the stride, wherever it
        occurs. The rarest window of a residue is looked up, so that repetitive text costs nothing.
        """
        if len(text) < self._window + self._stride - 1:
            for owner in range(len(self.texts)) if number is None else [number]:
                for start in occurrences(self.texts[owner], text):
                    yield owner, start
            return
        first, counts = self._look_up(text)
        rarest = [
            residue + self._stride * int(counts[residue :: self._stride].argmin())
            for residue in range(self._stride)
        ]
        row, at = ragged_indices(first[rarest], counts[rarest])
        begins = np.unique(self._windows[1][at] - np.array(rarest)[row])
        _, owners, offsets = self._owned(begins, number)
        for owner, start in zip(owners.tolist(), offsets.tolist(), strict=True):
            if self.texts[owner].startswith(text, start):
                yield owner, start

    def hits(self, text: str, number: int | None, limit: int) -> tuple[Numbers, Numbers, Numbers]:
        """The offset in `text`, the text, and the offset in it, of each shared window.

        The rarest windows come first, up to `limit` hits.
        """
        first, counts = self._look_up(text)
        shared = np.flatnonzero(counts)
        shared = shared[np.argsort(counts[shared], kind="stable")]
        shared = shared[np.cumsum(counts[shared]) <= limit]
        row, at = ragged_indices(first[shared], counts[shared])
        inside, owners, offsets = self._owned(self._windows[1][at], number)
        return shared[row][inside], owners, offsets

    def _look_up(self, text: str) -> tuple[Numbers, Numbers]:
        indexed, _ = self._windows
        hashes = _window_hashes(text, self._window)
        first = np.searchsorted(indexed, hashes, side="left")
        return first, np.searchsorted(indexed, hashes, side="right") - first

    def _owned(self, places: Numbers, number: int | None) -> tuple[Flags, Numbers, Numbers]:
        """Which places are in this text, or in any; of these, each one's text, and the offset in it."""
        owners = np.searchsorted(self._bases, places, side="right") - 1
        inside = places >= 0 if number is None else owners == number
        owners = owners[inside]
        return inside, owners, places[inside] - self._bases[owners]


def occurrences(text: str, sought: str) -> Iterator[int]:
    """Every offset at which a text that is not empty occurs, in order; occurrences may overlap."""
    place = text.find(sought)
    while place >= 0:
        yield place
        place = text.find(sought, place + 1)
