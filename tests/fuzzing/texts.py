"""Texts out of bytes: each byte is a piece of text of an alphabet, or does something to what there is.

A recipe of bytes is drawn in one step, is shrunk well, and is what a coverage-guided engine mutates, so that both
engines make the same kinds of text.
"""

from __future__ import annotations

from functools import lru_cache

from chunkcore.datasets import load_dataset
from hypothesis import strategies as st

from tests.strategies import GAPS, GRAPHEMES, LOOK_ALIKES, POISON, RARE_GAPS, STOPS, UNSPACED, WORDS
from tests.test_code import MARKS as CODE
from tests.test_html import MARKS as HTML
from tests.test_markdown import MARKS as MARKDOWN

__all__ = ["ALPHABETS", "recipes", "text_of", "texts"]

_ASCII = tuple(map(chr, range(128)))
_PROSE = (*WORDS, *WORDS, *STOPS, *GAPS, *[" "] * 20)
# One of nearly every kind of character, and what a case or a normal form changes the length of.
_CHARACTERS = tuple("aZ09 \t\n\r\x0b\x0c\x1c\x1f\x85\xa0\xad.,;!?'\"-–—…«»()[]{}<>&#|`*_~^=+/\\@$%ßİıŉǰΐﬁſÅ①½²ªͅ")
_JOINTS = tuple(
    "\u0301\u0300\u0323\u034f\u200b\u200c\u200d\u2060\ufe0f\u20e3\u0e33\u0bc6\U0001f3fd\U0001f1e9\u1100\u1161\u11a8"
)
_DIRECTIONS = ("\u202e", "\u202d", "\u2066", "\u2069", "\u200f", "مرحبا", "שלום", "العربية ١٢٣", "עברית 12")
_DATA = (
    *"{}[]\":,-\\/.\t\n\r'#&*!|>%@`~<=?+",
    *("null", "true", "NaN", "1e999", "0", "-1", "\\ud800", "\\u0000", "\ufeff", "'=", "=cmd", "- ", ": ", "(?"),
    *("id", "text", "size", "recursive", "sentence", "regex:", "strategy"),
)

ALPHABETS: tuple[tuple[str, ...], ...] = (
    _PROSE,
    (*WORDS, *STOPS, *GAPS, *RARE_GAPS, *UNSPACED, *GRAPHEMES, *POISON),
    (*MARKDOWN, *MARKDOWN, *WORDS, *GAPS, *GRAPHEMES),
    (*HTML, *HTML, *WORDS, *GAPS, *POISON),
    (*CODE, *CODE, *WORDS, *GAPS, *POISON),
    (*UNSPACED, *GRAPHEMES, *_JOINTS, *_DIRECTIONS),
    (*_CHARACTERS, *_JOINTS, *RARE_GAPS, "\ud800", "\udc00", "\x00"),
    (*GAPS, *RARE_GAPS, "a", ".", "。"),
    (*LOOK_ALIKES, *"<|>[]/", "<|", "|>", "end", "of", "text", " "),
    _DATA,
    _ASCII,
    (*MARKDOWN, *HTML, *CODE),
)
_LONGEST = 4000  # code points, about
_REAL, _AGAIN, _CUT, _RUN, _OTHER = 240, 248, 252, 254, 255  # what a byte means from here on


def text_of(recipe: bytes) -> str:
    r"""The text that a recipe makes; any bytes make one.

    >>> text_of(bytes([10, 97, 98, 248, 1]))  # of ASCII: a, b, and both again
    'abab'
    """
    codes = iter(recipe)
    alphabet = ALPHABETS[next(codes, 0) % len(ALPHABETS)]
    parts: list[str] = []
    size = 0
    for code in codes:
        kept = len(parts)
        if code < _REAL:
            parts.append(alphabet[code % len(alphabet)])
        elif code < _AGAIN:  # so much of a real document, from anywhere to anywhere: graphemes are cut in two
            real = _real()
            place = (next(codes, 0) * 256 + next(codes, 0)) * 37 % len(real)
            parts.append(real[place : place + 1 + next(codes, 0) // 4])
        elif code < _CUT:  # the last pieces again
            parts.extend(parts[-1 - next(codes, 0) % 16 :])
        elif code < _RUN:
            if parts:
                parts[-1] = parts[-1][:-1]
        elif code < _OTHER:
            parts.extend(parts[-1:] * (next(codes, 0) % 64))
        else:
            alphabet = ALPHABETS[next(codes, 0) % len(ALPHABETS)]
        size += sum(map(len, parts[kept:]))
        if size > _LONGEST:
            break
    return "".join(parts)


@lru_cache(maxsize=1)
def _real() -> str:
    """The documents that ship with the package, one after another."""
    return "\n\n".join(document.text for document in load_dataset("lochmere").documents)


def recipes(most: int = 120) -> st.SearchStrategy[bytes]:
    """Recipes, short and long ones."""
    return st.binary(max_size=10) | st.binary(min_size=12, max_size=40) | st.binary(min_size=most // 2, max_size=most)


def texts(most: int = 120) -> st.SearchStrategy[str]:
    """Texts of up to so many pieces, and repeats of those."""
    return recipes(most).map(text_of)
