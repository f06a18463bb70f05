"""`words`: what a word is, in any script; `word_keys`: how words are compared; `Postings`: which texts have them."""

from __future__ import annotations

import html
import re
import unicodedata
from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import chain, count, pairwise
from typing import Any

import numpy as np
import regex
from numpy.typing import NDArray

from chunkcore.boundaries.formats import format_of
from chunkcore.boundaries.html import UNREAD, hidden_ranges
from chunkcore.columns import Keys, places_of, text_keys
from chunkcore.errors import OptionError
from chunkcore.plain import text_key
from chunkcore.reading.visible import has_markup
from chunkcore.spans import Numbers, Scores
from chunkcore.text import Document

# Scripts without spaces between words; and Hangul, whose words include their particles.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}ー\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
# Signs inside a word that a reader does not see: soft hyphen, zero-width non-joiner, word joiner, byte-order mark.
_UNSEEN_JOINTS = "\u00ad\u200c\u2060\ufeff"
_LETTERS = rf"\p{{L}}\p{{M}}\p{{N}}_{_UNSEEN_JOINTS}"
_RUN = regex.compile(rf"(?V1)([{_UNSPACED}]+)|[[{_LETTERS}]--[{_UNSPACED}]]+")
# Of each sign of ASCII the letter in lower case, the digit or the underscore, else a space.
_SMALL = "".join(map(chr, range(256))).lower()
_ASCII = re.sub(r"\W", " ", _SMALL, flags=re.ASCII).encode()
_SPACED = regex.compile(rf"[{_LETTERS}]+")
# May be a sign of such a script: none of Europe, the Near East or India, and no punctuation.
_MAY_BE_UNSPACED = re.compile("[^\x00-\u0dff\u1e00-\u2e7f]")
HAS_UNSPACED = regex.compile(rf"[{_UNSPACED}]")  # a sign of such a script
_JOINTS = re.compile(f"[_{_UNSEEN_JOINTS}]+")
_JOINTS_TO_DROP = re.compile(f"[{_UNSEEN_JOINTS}]+")
_JOINTS_IN_UNSPACED = regex.compile(rf"(?<=[{_UNSPACED}])[{_UNSEEN_JOINTS}]+(?=[{_UNSPACED}])")
# What does not make another word: Arabic tatweel and vowel marks, Hebrew points, joiners and marks of direction.
_IGNORED = re.compile(
    "[\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed"
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u034f\u061c\u200d-\u200f\u2061-\u2064\ufe00-\ufe0f]+"
)
# Letters that people write for one another in Arabic and Persian, as in Lucene's ArabicNormalizer; and digits.
_ALIKE = dict(
    zip(
        "\u0622\u0623\u0625\u0671\u0649\u06cc\u0629\u06a9",
        "\u0627\u0627\u0627\u0627\u064a\u064a\u0647\u0643",
        strict=True,
    )
)
_EXCHANGED = re.compile(rf"[{''.join(_ALIKE)}]|[^\D0-9]")
_GRAPHEME = regex.compile(r"\X")
# A sign means something alone; kana and Thai letters do not.
_MEANINGFUL = regex.compile(r"[\p{Han}\p{Hangul}]")
# Normalizing sorts marks in a row in quadratic time. Unicode's stream-safe form (UAX #15, section 13) puts a joiner
# after each 30; the last two characters here become marks in compatibility form.
_MARKS = regex.compile(r"[\p{M}\uff9e\uff9f]{30}(?=[\p{M}\uff9e\uff9f])")
_JOINER = "\u034f"
_TAG = re.compile(r"<[/!?a-zA-Z][^<>]*>")
# Tags inside a word, which a reader sees as one word; two links in a row are two words.
_IN_WORD = re.compile(
    r"(?is)(?<=\w)(?!</a\s*><a\b)(?:<!--(?:(?!-->).){0,200}-->|</?(?:a|abbr|b|bdi|bdo|big|cite|code|data|del|dfn|em|font|i"
    r"|ins|kbd|mark|nobr|q|s|samp|small|span|strike|strong|sub|sup|tt|u|var|wbr)(?:\s[^<>]*)?/?>)+(?=[\w&])"
)
# The same of Markdown: HTML's tags, and marks of emphasis.
_MARKS_IN_WORD = re.compile(rf"{_IN_WORD.pattern}|(?<=[^\W\d_])\*{{1,3}}(?=[^\W\d_])")
_WORD_JOINER = "\u2060"
_END_OF_NAVIGATION = re.compile(r"(?i)</nav\s*>")
# From its first tag to the first that closes one.
_NAVIGATION = re.compile(r"(?is)<nav\b[^<>]*>.*?</nav\s*>")
_ENTITY = re.compile(r"&#?\w{1,31};")
_FIRST = re.compile(r"first([2-9]|[1-9]\d)")
# "And" and the article before an Arabic word, as in light stemming (Larkey, Ballesteros and Connell, SIGIR 2002).
_ARABIC = regex.compile(r"^(?:[وف]?(?:ال|بال|كال|لل)(?=\w\w)|و(?=\w\w\w))")


def words(text: str) -> list[str]:
    """The text's words: runs of letters, digits, marks and _, in Unicode's compatibility form (NFKC), case-folded.

    A word with _, a soft hyphen or another joint inside is followed by its parts. Vowel marks of Arabic and Hebrew do
    not count, nor which alef, yeh, kaf or digits are written. Scripts without spaces (Chinese, Japanese, Thai, Lao,
    Khmer, Burmese) and Korean give pairs of neighbouring characters, as Lucene's CJKAnalyzer does. No stemming, no stop
    words; accents stay. Linear time.

    >>> words("The Fox's DEN, n° 7: ﬁne Straße, MAX_TEA")
    ['the', 'fox', 's', 'den', 'n', '7', 'fine', 'strasse', 'max_tea', 'max', 'tea']
    >>> words("東京都 tower")
    ['東京', '京都', 'tower']
    """
    return _words(text)[0]


def _words(text: str) -> tuple[list[str], list[str]]:
    """The text's words, and the single characters of its pairs of characters."""
    if text.isascii():
        runs = text.encode().translate(_ASCII).decode().split()  # in 0.4 of the time of a pattern
        return (_with_parts(runs) if "_" in text else runs), []
    folded = unicodedata.normalize("NFKC", _MARKS.sub(rf"\g<0>{_JOINER}", text))
    folded = _IGNORED.sub("", folded).casefold()
    folded = _EXCHANGED.sub(lambda sign: _ALIKE.get(sign[0]) or str(int(sign[0])), folded)
    folded = folded.replace("i\u0307", "i").replace("ı", "i")  # Turkish: IŞIK is ışık
    is_unspaced = _MAY_BE_UNSPACED.search(folded) and HAS_UNSPACED.search(folded)
    if not is_unspaced:
        runs = _SPACED.findall(folded)
        return (_with_parts(runs) if _JOINTS.search(folded) else runs), []
    pieces = []
    singles = []
    for match in _RUN.finditer(_JOINTS_IN_UNSPACED.sub("", folded)):
        if match[1] is None:
            pieces += _with_parts([match[0]])
            continue
        characters = _GRAPHEME.findall(match[0])
        if len(characters) == 1:
            pieces += characters
        else:
            pieces += [a + b for a, b in pairwise(characters)]
            singles += characters
    return pieces, singles


def _with_parts(runs: Iterable[str]) -> list[str]:
    """Words without the joints that nobody sees, each followed by its parts between joints."""
    pieces = []
    for run in runs:
        if not _JOINTS.search(run):
            pieces.append(run)
            continue
        whole = _JOINTS_TO_DROP.sub("", run)
        parts = [part for part in _JOINTS.split(run) if part]
        if whole:
            pieces.append(whole)
        if parts != [whole]:
            pieces += parts
    return pieces


def without_tags(document: Document, fill: str = " ") -> str:
    """The document's text; of HTML what a reader sees of it, as long as the text.

    A space and `fill` stand in place of each tag, comment, script, style, navigation and hidden element, word joiners
    in place of tags inside a word; an entity is what it means, then `fill`.

    >>> without_tags(Document("a.html", "<b>Tea</b>!")), without_tags(Document("a.txt", "<b>"))
    ('   Tea    !', '<b>')
    >>> without_tags(Document("a.html", "<nav>Home</nav>T&eacute;"))
    '               Té       '
    """
    if not has_markup(document):
        return document.text

    def blank(match: re.Match[str]) -> str:
        return " " + fill * (len(match[0]) - 1)

    pieces = []
    place = 0
    for start, stop in hidden_ranges(document.text):
        pieces += [document.text[place:start], " ", fill * (stop - start - 1)]
        place = stop
    text = "".join([*pieces, document.text[place:]])
    text = UNREAD.sub(blank, _IN_WORD.sub(_joined, text))
    # Up to the last end every navigation is closed.
    closed = max((tag.end() for tag in _END_OF_NAVIGATION.finditer(text)), default=0)
    text = _NAVIGATION.sub(blank, text[:closed]) + text[closed:]
    text = _TAG.sub(blank, text)

    def meant(entity: re.Match[str]) -> str:
        meaning = html.unescape(entity[0])
        after = text[entity.end() : entity.end() + 1]
        is_in_word = after.isalnum() or after in (_WORD_JOINER, "&")
        rest = _WORD_JOINER if is_in_word else fill
        return meaning + rest * (len(entity[0]) - len(meaning))

    return _ENTITY.sub(meant, text)


def may_part_words(document: Document) -> bool:
    """Whether tags or marks may stand inside a document's words."""
    if "<" not in document.text and "*" not in document.text:
        return has_markup(document)
    return format_of("", document).kind == "markdown" or has_markup(document)


def with_whole_words(document: Document) -> str:
    """The document `without_tags`; of Markdown its text with word joiners in place of marks inside a word.

    >>> words(with_whole_words(Document("a.md", "Tea**pot**")))
    ['teapot', 'tea', 'pot']
    """
    if format_of("", document).kind == "markdown":
        return _MARKS_IN_WORD.sub(_joined, document.text)
    return without_tags(document)


def _joined(marks: re.Match[str]) -> str:
    return _WORD_JOINER * len(marks[0])


def end_of_sign(document: Document, place: int) -> int:
    """Where the sign that begins at a place ends: of HTML, an entity is one sign.

    >>> end_of_sign(Document("a.html", "R&amp;D"), 1), end_of_sign(Document("a.txt", "R&amp;D"), 1)
    (6, 2)
    """
    entity = _ENTITY.match(document.text, place) if has_markup(document) else None
    return entity.end() if entity else place + 1


def word_keys(
    text: str,
    form: str = "whole",
    *,
    singles: bool = False,
) -> list[str]:
    """The text's `words` as they are compared: "whole", or "first5", cut to their first 5 characters.

    A word with a digit among these stays whole, and so do the pairs of characters of scripts without spaces. An Arabic
    word loses its article and "and" before it is cut. Raises `OptionError`: another form.

    Args:
        text: of any length.
        form: of the words.
        singles: for a question: each Chinese character and Korean syllable of its pairs follows. Pairs that reach over
            the end of a word are rare by chance, and would outweigh the words.

    >>> word_keys("Terminating 20250101", "first5"), word_keys("والكتاب", "first5"), word_keys("東京都", "first5")
    (['termi', '20250101'], ['كتاب'], ['東京', '京都'])
    >>> word_keys("東京都 tower", "first5", singles=True)
    ['東京', '京都', 'tower', '東', '京', '都']
    """
    letters = check_words(form)
    text_words, characters = _words(text)
    keys = [_cut(word, letters) for word in text_words]
    if singles:
        keys += filter(_MEANINGFUL.match, characters)
    return keys


@cache
def check_words(form: str) -> int:
    """The characters that a form of words keeps; 0: all. Raises `OptionError` for an unknown form."""
    match = _FIRST.fullmatch(form)
    if form != "whole" and match is None:
        raise OptionError(f"words is whole, or first2 to first99, such as first5; got {form!r}")
    return int(match[1]) if match else 0


@lru_cache(maxsize=2**16)
def _cut(word: str, letters: int) -> str:
    if not letters or any(map(str.isdigit, word[:letters])):
        return word
    if "\u0600" <= word[0] <= "\u06ff":
        word = _ARABIC.sub("", word)
    return word[:letters]


@dataclass(frozen=True, eq=False)
class Postings:
    """Which texts have which words, and how often: an inverted index as arrays.

    Attributes:
        keys: `text_key` of each distinct word, sorted; a word's number is its place here.
        begins: where each word's postings begin, and the number of all.
        texts: the text of each posting, ascending for each word.
        counts: how often the word is in it.
        lengths: the words of each text.
        places: of a selection each text's number in it, -1 for a text outside.

    >>> postings = Postings.of(["a fox and a hen", "", "the fox"])
    >>> [postings.of_word(word)[0].tolist() for word in ("fox", "a", "cow")]
    [[0, 2], [0], []]
    >>> postings.selected(np.array([2, 1])).of_word("fox")[0].tolist()
    [0]
    """

    keys: Keys
    begins: Numbers
    texts: NDArray[np.int32]
    counts: NDArray[Any]
    lengths: Numbers
    places: Numbers | None = None

    @classmethod
    def of(
        cls,
        texts: Iterable[str],
        form: str = "whole",
    ) -> Postings:
        """Of the texts' `word_keys`. Time O(n log n) in the words, 12 bytes of memory a word."""
        numbers = defaultdict[str, int](count().__next__)
        occurrences, lengths, sizes_of_texts = array("i"), array("q"), array("q")
        for text in texts:
            # A question of one character finds it in longer runs. Single characters make no text longer.
            text_words, singles = _words(text)
            lengths.append(len(text_words))
            sizes_of_texts.append(len(text_words) + len(singles))
            occurrences.extend(map(numbers.__getitem__, chain(text_words, singles)))
        letters = check_words(form)
        keys_of_words = text_keys(_cut(word, letters) for word in numbers)
        keys, which = np.unique(keys_of_words, return_inverse=True)
        # One large array is changed in place: there are millions of occurrences.
        places = which[np.frombuffer(occurrences, np.int32)]  # `take` would copy the numbers
        places *= len(lengths)
        places += np.repeat(np.arange(len(lengths), dtype=np.int32), sizes_of_texts)
        del occurrences, numbers
        places.sort()
        is_last = np.append(places[1:] != places[:-1], True)[: len(places)]
        ends = np.flatnonzero(is_last).astype(np.int32)
        counts = np.diff(ends, prepend=np.int32(-1))
        del ends
        places = places[is_last]
        return cls._sorted(keys, places, counts, np.array(lengths, np.int64))

    @classmethod
    def _sorted(
        cls,
        keys: Keys,
        places: Numbers,
        counts: NDArray[Any],
        lengths: Numbers,
    ) -> Postings:
        """`places`: word number x texts + text, ascending; they are changed in place."""
        size = max(1, len(lengths))
        begins = np.searchsorted(places, np.arange(len(keys) + 1, dtype=np.int64) * size)
        kind = np.min_scalar_type(int(counts.max(initial=0)))
        places %= size
        return cls(keys, begins, places.astype(np.int32), counts.astype(kind), lengths)

    @classmethod
    def joined(
        cls,
        parts: Sequence[tuple[Postings, Numbers]],
        size: int,
    ) -> Postings:
        """The texts of several as one index of `size` texts. Each comes with its texts' new numbers, -1 for none."""
        keys = np.unique(np.concatenate([part.keys for part, _ in parts]))
        lengths = np.zeros(size + 1, np.int64)  # the last is of texts without a number
        width = max(1, size)
        rows, counts = [], []
        for part, numbers in parts:
            lengths[numbers] = part.lengths
            words = np.repeat(np.searchsorted(keys, part.keys), np.diff(part.begins))
            new = numbers[part.texts]
            rows.append((words * width + new)[new >= 0])
            counts.append(part.counts[new >= 0])
        places = np.concatenate(rows)
        order = np.argsort(places, kind="stable")
        kept, words = np.unique(places[order] // width, return_inverse=True)  # some lost all texts
        places = words * width + places[order] % width
        return cls._sorted(keys[kept], places, np.concatenate(counts)[order], lengths[:-1])

    def selected(self, numbers: Numbers) -> Postings:
        """The postings of these texts, numbered from 0 in this order; the arrays are shared. For `of_word` only."""
        if np.array_equal(numbers, np.arange(len(self.lengths))):
            return self
        places = places_of(numbers, len(self.lengths))
        if self.places is not None:
            places = np.append(places, -1)[self.places]
        return replace(self, lengths=self.lengths[numbers], places=places)

    def of_word(self, key: str) -> tuple[Numbers, NDArray[Any]]:
        """The texts that have the word, ascending, and how often each has it."""
        name = np.array(text_key(key), self.keys.dtype)
        first, end = self.keys.searchsorted(name), self.keys.searchsorted(name, "right")
        rows = slice(self.begins[first], self.begins[end])
        texts, counts = self.texts[rows].astype(np.int64), self.counts[rows]
        if self.places is None:
            return texts, counts
        texts = self.places[texts]
        inside = np.flatnonzero(texts >= 0)
        order = inside[np.argsort(texts[inside], kind="stable")]
        return texts[order], counts[order]


def length_norms(lengths: Numbers, k1: float, b: float) -> Scores:
    """What BM25 adds to a word's frequency below the fraction; above 0, so that a word that is not there scores 0."""
    mean = float(lengths.sum()) / max(len(lengths), 1)
    norms: Scores = np.maximum(k1 * (1 - b + b / (mean or 1.0) * lengths), 1e-30)
    return norms


def odds_against(count: int, size: int) -> float:
    """How many times as many of `size` texts are without a word as the `count` that have it."""
    return (size - count + 0.5) / (count + 0.5)
