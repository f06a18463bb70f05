"""What two spellings of one passage share: texts without their white space, and texts as bare letters and digits."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from chunkcore.document import Span

__all__ = ["Form", "code_points", "fold", "squeeze"]

# Every character that Python calls white space lies at or below U+3000.
_SPACE = np.array([chr(code).isspace() for code in range(0x3001)])


@dataclass(frozen=True, eq=False)
class Form:
    """A text reduced to what matters, and where each of its characters stood.

    Attributes:
        text: the reduced text.
        origins: of each of its characters, the offset in the text itself; uint32, ascending.

    >>> fold("“Naïve” ﬁts").text, squeeze("a   b").origins.tolist()
    ('naivefits', [0, 4])
    """

    text: str
    origins: NDArray[np.uint32]

    def span(self, start: int, end: int) -> Span:
        """The characters of the text itself that the reduced ``text[start:end]`` came from, `start` < `end`."""
        return Span(int(self.origins[start]), int(self.origins[end - 1]) + 1)

    def left_out(self, whole: str, place: int) -> Span | None:
        """Where in the text itself, `whole`, stands what was left out before the reduced ``text[place]``; None where
        that is nothing. The end of the reduced text is a place, too.
        """
        begin = int(self.origins[place - 1]) + 1 if place else 0
        end = int(self.origins[place]) if place < len(self.text) else len(whole)
        return Span(begin, end) if begin < end else None


def code_points(text: str) -> NDArray[np.uint32]:
    """The text's code points; unpaired surrogates are welcome."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def squeeze(text: str) -> Form:
    """The text without its white space. Linear time; 4 bytes a character."""
    codes = code_points(text)
    blank = _SPACE[np.minimum(codes, len(_SPACE) - 1)] & (codes < len(_SPACE))
    return Form("".join(text.split()), np.flatnonzero(~blank).astype(np.uint32))


def fold(text: str) -> Form:
    """The text's letters and digits alone, in compatibility form (NFKD), case folded, without diacritics.

    Quotation marks, dashes, hyphens, markup, ligatures and the two ways to write an accented letter make no
    difference, then. Vowel signs are kept, as a letter is not itself without them. O(n log n) time.
    """
    codes = code_points(text)
    distinct, which = np.unique(codes, return_inverse=True)
    folded = [_folded(chr(code)) for code in distinct.tolist()]
    sizes = np.array([len(each) for each in folded], dtype=np.int64)
    lengths = sizes[which]
    origins = np.repeat(np.arange(len(codes), dtype=np.uint32), lengths)
    within = np.arange(len(origins)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    first = np.cumsum(sizes) - sizes
    letters = code_points("".join(folded))[first[which[origins]] + within]
    return Form(letters.tobytes().decode("utf-32-le"), origins)


@cache
def _folded(character: str) -> str:
    spelled = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold())
    return "".join(filter(_is_kept, spelled))


def _is_kept(character: str) -> bool:
    kind = unicodedata.category(character)[0]
    if kind != "M":
        return kind in "LN"
    # Diacritics have a combining class; vowel signs have none, nor have the selectors of how a sign is drawn.
    return not unicodedata.combining(character) and "VARIATION SELECTOR" not in unicodedata.name(character, "")
