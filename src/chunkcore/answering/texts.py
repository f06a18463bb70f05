"""Answers as words: one reading for every measure, also of scripts that put no space between words."""

from __future__ import annotations

import string
from collections.abc import Sequence

import regex  # type: ignore[import-untyped]

__all__ = ["answers_nothing", "spaced", "squad_normalised", "words"]

# No word list comes along for these: a character is a word, as in the usual scores of Chinese and Japanese.
_UNSPACED = regex.compile(
    r"(?=[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}])\X", flags=regex.VERSION1
)
_WORD = regex.compile(r"[^\W_]+(?:\p{M}[^\W_]*)*", flags=regex.VERSION1)
_ARTICLES = regex.compile(r"\b(a|an|the)\b", flags=regex.VERSION1)
# The script's own, and what East Asian scripts use in the place of it.
_PUNCTUATION = regex.compile(
    rf"[{regex.escape(string.punctuation)}]|(?=[\u3000-\u303f\uff00-\uffef])\p{{P}}", flags=regex.VERSION1
)


def spaced(text: str) -> str:
    """The text with a space around each character of a script that puts none between words; any other as it is.

    >>> spaced("The buoy ブイ"), spaced("The buoy")
    ('The buoy  ブ  イ ', 'The buoy')
    """
    return str(_UNSPACED.sub(r" \g<0> ", text))


def words(text: str) -> list[str]:
    """Runs of letters and digits, in lower case. Of ASCII they are those of the package rouge-score.

    >>> words("It's 3.5 m, naïve_x 犬だ")
    ['it', 's', '3', '5', 'm', 'naïve', 'x', '犬', 'だ']
    """
    return [str(word) for word in _WORD.findall(spaced(text).lower())]


def squad_normalised(text: str) -> str:
    """Lower case, without punctuation, articles and needless white space: as in the SQuAD script.

    Punctuation is that of ASCII, as there, and that of East Asian scripts, whose characters count as words.

    >>> squad_normalised("The  Battle of Verdun (1916)."), squad_normalised("ヴェルダン。")
    ('battle of verdun 1916', 'ヴ ェ ル ダ ン')
    """
    return " ".join(_ARTICLES.sub(" ", spaced(_PUNCTUATION.sub("", text.lower()))).split())


def answers_nothing(references: Sequence[str]) -> bool:
    """Whether none of the references says anything: then no answer is the right one."""
    return not any(words(reference) for reference in references)
