"""A text as the words that a lexical search compares, in any script."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

import regex  # type: ignore[import-untyped]

__all__ = ["words"]

# Scripts that put no spaces between words; and Hangul, whose words carry their particles with them.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}ー\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_RUN = regex.compile(rf"(?V1)([{_UNSPACED}]+)|[[\p{{L}}\p{{M}}\p{{N}}_]--[{_UNSPACED}]]+")
_GRAPHEME = regex.compile(r"\X")
# Marks in a row are put in order in a time that grows with the square of their number. Unicode's stream-safe form
# (UAX #15, section 13) parts them by a joiner after each 30; the last two become marks in compatibility form.
_MARKS = regex.compile(r"[\p{M}\uff9e\uff9f]{30}(?=[\p{M}\uff9e\uff9f])")
_JOINER = "\u034f"


def words(text: str) -> list[str]:
    """The text's words: runs of letters, digits, marks and _, in Unicode's compatibility form (NFKC), case-folded.

    A run of a script that puts no spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese), or of
    Korean, gives each pair of neighbouring characters, as Lucene's CJKAnalyzer does: they are found without a
    dictionary. Nothing is stemmed, accents stay, and there are no stop words: BM25 weighs frequent words by little
    anyway, and a list of them is of one language. Linear time.

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


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", _MARKS.sub(rf"\g<0>{_JOINER}", text)).casefold()
