r"""Where a byte-pair encoding cuts whatever stands around: the boundaries that make bulk counting exact.

tiktoken first cuts a text into pre-tokens with a regular expression, then encodes each by itself. Which
pre-tokens a piece of a text has depends on where the piece begins and ends, so the tokens of a piece
cannot be read off the tokens of the text, except between *context-free* boundaries: pairs of neighbouring
characters that no pre-token can hold, in any text. They are read off the patterns (tiktoken's
``tiktoken_ext/openai_public.py``), in which

1. a letter or number is followed, inside a pre-token, only by letters, numbers, marks or an apostrophe;
2. U+0020 begins a pre-token or follows white space;
3. (cl100k, o200k) a line end is followed by white space or, in o200k, by ``/``.

The only look-ahead, ``\s+(?!\S)``, and ``\s++$`` matter for white space at the end of a piece. Before a
boundary of kind 1 or 2 there is none; before one of kind 3 both patterns take white space that ends with
a line end whole, at the end of a piece and before anything else. So a piece is cut at its boundaries as
the text is, and pre-tokens between two of them are the same in both.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["context_free_boundaries", "has_context_free_boundaries"]

# Encodings whose patterns the rules were checked against; any other is counted piece by piece.
_RULES = {
    "gpt2": 0b011,
    "r50k_base": 0b011,
    "p50k_base": 0b011,
    "p50k_edit": 0b011,
    "cl100k_base": 0b111,
    "o200k_base": 0b111,
    "o200k_harmony": 0b111,
}

# White_Space of the Unicode standard, which is what \s means in the patterns. Python's str.isspace
# also counts U+001C to U+001F.
_WHITE = frozenset("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | {chr(c) for c in range(0x2000, 0x200B)}

_PAGE = 256


def has_context_free_boundaries(encoding: str) -> bool:
    """Whether the rules hold for the tiktoken encoding of this name."""
    return encoding in _RULES


def context_free_boundaries(encoding: str, code_points: NDArray[np.unsignedinteger]) -> NDArray[np.bool_]:
    r"""For each of the n + 1 places of a text whether it is a context-free boundary; both its ends are.

    >>> text = np.array([ord(c) for c in "two words.\nEnd"], dtype=np.uint32)
    >>> np.flatnonzero(context_free_boundaries("cl100k_base", text)).tolist()
    [0, 3, 9, 11, 14]
    """
    found = np.ones(len(code_points) + 1, dtype=np.bool_)
    if len(code_points) > 1:
        roles = _roles(code_points)
        before = roles[:-1] >> np.uint8(4)
        before &= np.uint8(_RULES[encoding])
        before &= roles[1:]
        np.not_equal(before, 0, out=found[1:-1])
    return found


def _roles(code_points: NDArray[np.unsignedinteger]) -> NDArray[np.uint8]:
    """For each character, bit i: it may stand after a boundary of rule i + 1; bit i + 4: before one."""
    if code_points.dtype == np.uint8:
        ascii_roles: NDArray[np.uint8] = _page_roles(0)[code_points]
        return ascii_roles
    seen = np.zeros(int(code_points.max()) // _PAGE + 1, dtype=np.bool_)
    seen[0] = True
    seen[code_points[code_points > 127] >> 8] = True
    table = np.zeros((len(seen), _PAGE), dtype=np.uint8)
    for page in np.flatnonzero(seen).tolist():
        table[page] = _page_roles(page)
    roles: NDArray[np.uint8] = table.ravel()[code_points]
    return roles


@lru_cache(maxsize=0x110000 // _PAGE)
def _page_roles(page: int) -> NDArray[np.uint8]:
    return np.array([_role(page * _PAGE + low) for low in range(_PAGE)], dtype=np.uint8)


def _role(code_point: int) -> int:
    character = chr(code_point)
    category = unicodedata.category(character)
    is_word = category[0] in "LN"
    is_white = character in _WHITE
    # A character that this Python does not know may be a letter to a newer table.
    ends_word = not is_word and category[0] != "M" and category != "Cn" and character != "'"
    starts_line = not is_white and character != "/"
    return (
        (is_word << 4)
        | ends_word
        | (not is_white) << 5
        | (character == " ") << 1
        | (character in "\r\n") << 6
        | starts_line << 2
    )
