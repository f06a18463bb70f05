"""`TokenCounter` counts tokens; `TokenizedText` holds a text's tokens and counts many pieces at once."""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from chunkcore.columns import distinct
from chunkcore.errors import OptionError
from chunkcore.spans import Flags, Numbers
from chunkcore.text import Document

# The context-free boundary rules checked for each encoding's pattern, as bits. Other encodings are counted piece by
# piece.
RULES = {
    "gpt2": 0b011,
    "r50k_base": 0b011,
    "p50k_base": 0b011,
    "p50k_edit": 0b011,
    "cl100k_base": 0b111,
    "o200k_base": 0b111,
    "o200k_harmony": 0b111,
}

# Unicode's White_Space, as \s in the patterns. Python's str.isspace also includes U+001C to U+001F.
_WHITE = frozenset("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | {
    chr(c) for c in range(0x2000, 0x200B)
}
# Whether a code point is white space, as `str.isspace` says and as BERT's tokenizers do; the last value is that of all
# further ones.
IS_WHITE = np.array([*[chr(code).isspace() for code in range(0x3001)], False])
BERT_WHITE = np.array([chr(code) in " \t\n\r" for code in range(34)])
_GAP = re.compile(r"[ \t\n\r]")
_WORD = re.compile(r"[^ \t\n\r]+")
# `_role` by code point, of those seen so far: none is 0.
_ROLES = np.zeros(0x110000, dtype=np.uint8)
_KNOWN = 4_000_000  # characters of words
_BLOCK = 2_000_000  # code points
_FEW = 12  # pieces, for which arrays cost more than they save
CodePoints = NDArray[np.unsignedinteger]
T = TypeVar("T")


def context_free_boundaries(encoding: str, code_points: CodePoints) -> Flags:
    r"""Whether each of the n + 1 places of a text is a context-free boundary; its ends always are.

    The tokens on one side of such a place do not depend on the text on the other.

    >>> text = np.array([ord(c) for c in "two words.\nEnd"], dtype=np.uint32)
    >>> np.flatnonzero(context_free_boundaries("cl100k_base", text)).tolist()
    [0, 3, 9, 11, 14]
    """
    boundaries = np.ones(len(code_points) + 1, dtype=np.bool_)
    if len(code_points) > 1:
        roles = _ROLES.take(code_points)
        if not roles.all():
            for code_point in np.unique(code_points[roles == 0]).tolist():
                _ROLES[code_point] = _role(code_point)
            roles = _ROLES.take(code_points)
        before = roles[:-1] >> np.uint8(4)
        before &= np.uint8(RULES[encoding])
        before &= roles[1:]
        np.not_equal(before, 0, out=boundaries[1:-1])
    return boundaries


def _role(code_point: int) -> int:
    """Of a character: bit i, it may follow a boundary of rule i + 1; bit i + 4, it may precede one."""
    character = chr(code_point)
    category = unicodedata.category(character)
    is_word = category[0] in "LN"
    is_white = character in _WHITE
    # An unassigned character (Cn) may be a letter in a newer Unicode table.
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


class _Once(cached_property[T]):
    """`functools.cached_property` without the lock that all instances share before Python 3.12.

    With the lock, threads would tokenize one at a time; without it, two may compute one value twice.
    """

    def __get__(self, instance: Any, owner: type | None = None) -> T:  # type: ignore[override]
        value: T = self.func(instance)
        vars(instance)[self.func.__name__] = value
        return value


class TokenizedText:
    """A text, or several that are joined, and the tokens of each, computed once, on first use.

    `counts(starts, ends)` is the number of tokens of each ``text[start:end]``, encoded separately; each inside a part.

    Attributes:
        text: the texts, joined.
        counter: the counter of the tokens.
        parts: the range of each text, ``(n, 2)``.
        documents: whose texts they are; none for bare texts.

    >>> from chunkcore.tokens import TiktokenCounter
    >>> source = TiktokenCounter("cl100k_base").tokenize("Chunks of text, counted in bulk.")
    >>> source.counts(np.array([0, 6, 7]), np.array([6, 9, 32])).tolist()
    [1, 1, 7]
    """

    def __init__(self, texts: Sequence[str], counter: TokenCounter) -> None:
        self.text = "".join(texts)
        self.counter = counter
        edges = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        self.parts = np.column_stack((edges[:-1], edges[1:]))
        self.documents: Sequence[Document] = ()

    @property
    def document(self) -> Document | None:
        """Whose text it is; None for a bare text, or several joined ones."""
        return self.documents[0] if len(self.documents) == 1 else None

    @_Once
    def flags(self) -> bytearray:
        """A byte for each of the n + 1 places of the text: 1 for a context-free boundary, as the parts' ends are."""
        flags = np.zeros(len(self.text) + 1, dtype=np.bool_)
        flags[self.parts] = True
        return bytearray(flags)

    @_Once
    def edges(self) -> NDArray[np.unsignedinteger]:
        """The places of the context-free boundaries."""
        places = np.flatnonzero(np.frombuffer(self.flags, dtype=np.bool_))
        return places.astype(np.min_scalar_type(len(self.text)))

    @_Once
    def boundaries(self) -> Numbers:
        # A long text is encoded in blocks, for their memory; no token reaches over their edges.
        edges: list[int] = []
        for start, end in self.parts.tolist():
            edges.append(start)
            edges += [self.flags.index(1, least) for least in range(start + _BLOCK, end, _BLOCK)]
        if len(edges) == 1:  # the usual text is not copied
            return self.counter.boundaries(self.text)
        pieces = [
            self.counter.boundaries(self.text[start:end]) + start
            for start, end in pairwise([*edges, len(self.text)])
        ]
        return np.concatenate(pieces)

    @_Once
    def code_points(self) -> CodePoints:
        """The text as numbers: uint8 if ASCII, else uint32."""
        if self.text.isascii():
            return np.frombuffer(self.text.encode("ascii"), np.uint8)
        return np.frombuffer(self.text.encode("utf-32-le", "surrogatepass"), "<u4")

    def slices(self, ranges: Numbers) -> list[str]:
        """Each ``text[start:end]`` of ranges of shape (n, 2)."""
        starts, ends = ranges.T.tolist()  # two lists, not one a range
        return [self.text[start:end] for start, end in zip(starts, ends, strict=True)]

    def count(self, start: int, end: int) -> int:
        """Tokens of ``text[start:end]``, encoded separately."""
        first = self.flags.find(1, start, end + 1)
        if first < 0:
            return self.counter.count(self.text[start:end])
        last = self.flags.rfind(1, first, end + 1)
        numbers = self.boundaries.data  # faster to bisect: no array scalars
        before = bisect_left(numbers, first)
        tokens = bisect_left(numbers, last, before) - before
        for begin, stop in ((start, first), (last, end)):
            if begin < stop:
                tokens += self.counter.count(self.text[begin:stop])
        return tokens

    def counts(self, starts: Numbers, ends: Numbers) -> Numbers:
        """Tokens of each ``text[start:end]``, encoded separately; int64. Needs ``0 <= start <= end <= len(text)``.

        Of a piece only the head up to its first context-free boundary and the tail after the last one are encoded.
        Linear in the pieces' summed length.
        """
        if len(starts) < _FEW:
            counts = map(self.count, starts.tolist(), ends.tolist())
            return np.array(list(counts), dtype=np.int64)
        is_boundary = np.frombuffer(self.flags, dtype=np.bool_)
        first, last = starts.copy(), ends.copy()
        heads = (~is_boundary[starts]).nonzero()[0]
        tails = (~is_boundary[ends]).nonzero()[0]
        kind = self.edges.dtype  # of another one, all edges would be copied
        first[heads] = self.edges[self.edges.searchsorted(starts[heads].astype(kind))]
        last[tails] = self.edges[self.edges.searchsorted(ends[tails].astype(kind)) - 1]
        is_apart = first > last
        first[is_apart] = last[is_apart] = ends[is_apart]
        tails = tails[~is_apart[tails]]
        tokens: Numbers = self.boundaries.searchsorted(last) - self.boundaries.searchsorted(first)
        begins = np.concatenate((starts[heads], last[tails]))
        stops = np.concatenate((first[heads], ends[tails]))
        ragged = self.counter.count_many(self.slices(np.column_stack((begins, stops))))
        tokens[heads] += ragged[: len(heads)]
        tokens[tails] += ragged[len(heads) :]
        return tokens


class TokenCounter(ABC):
    """Counts tokens and returns the code point where each begins.

    Attributes:
        name: `get_counter` builds an equal counter from this string.
        splits_at_space: whether no token depends on what is beyond a space, tab or line end.
    """

    name: str
    splits_at_space = False

    @abstractmethod
    def boundaries(self, text: str) -> Numbers:
        """The code-point offset where each token begins: int64, ascending, ``count(text)`` of them.

        A token that begins inside a character (as in a three-token emoji) has the character's offset: they repeat.
        """

    def count(self, text: str) -> int:
        return len(self.boundaries(text))

    def count_many(self, texts: Sequence[str]) -> Numbers:
        """How many tokens each text has; each distinct text is read once."""
        unique, places = distinct(texts)
        return np.array(self.count_each(unique), dtype=np.int64)[places]

    def count_each(self, texts: Sequence[str]) -> Sequence[int]:
        """How many tokens each of some distinct texts has."""
        return list(map(self.count, texts))

    def tokenize(self, *texts: str) -> TokenizedText:
        """The texts as one, each tokenized by itself."""
        kind = SpacedText if self.splits_at_space else TokenizedText
        return kind(texts, self)

    @classmethod
    def read(cls, options: str) -> TokenCounter:
        """Build the counter of ``kind:options``. Raises `OptionError` if it has no options."""
        if options:
            raise OptionError(f"the token counter {cls.name!r} has no options, got {options!r}")
        return cls()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TokenCounter) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class CharacterText(TokenizedText):
    """Every code point is a token."""

    def counts(self, starts: Numbers, ends: Numbers) -> Numbers:
        return (ends - starts).astype(np.int64)


class BytePairText(TokenizedText):
    """A text in a byte-pair encoding that has context-free boundary rules."""

    @_Once
    def flags(self) -> bytearray:
        flags = np.ones(len(self.text) + 1, dtype=np.bool_)
        for begin in range(0, len(self.text), _BLOCK):
            # Of a long text not all at once, which other steps may not need: four bytes a character.
            part = self.text[begin : begin + _BLOCK + 1]
            block = self if part == self.text else BytePairText([part], self.counter)
            inner = context_free_boundaries(self.counter.name, block.code_points)[1:-1]
            flags[begin + 1 : begin + 1 + len(inner)] = inner
        flags[self.parts] = True
        return bytearray(flags)


class WordText(TokenizedText):
    """A text of which no token depends on what is beyond white space; `white` says what that is, by code point."""

    white: ClassVar[Flags] = IS_WHITE

    @_Once
    def is_white(self) -> Flags:
        return self.white.take(self.code_points, mode="clip")

    @_Once
    def flags(self) -> bytearray:
        boundaries = np.ones(len(self.text) + 1, dtype=np.bool_)
        np.logical_or(self.is_white[1:], self.is_white[:-1], out=boundaries[1:-1])
        boundaries[self.parts] = True
        return bytearray(boundaries)

    @_Once
    def starts(self) -> Numbers:
        """Where each run of characters that are not white begins."""
        begins = np.append(True, self.is_white)
        begins[self.parts] = True
        starts: Numbers = (begins[:-1] & ~self.is_white).nonzero()[0]
        return starts

    def counts(self, starts: Numbers, ends: Numbers) -> Numbers:
        """Runs that begin inside each piece, plus one if the piece begins inside a run."""
        counts: Numbers = self.starts.searchsorted(ends) - self.starts.searchsorted(starts)
        inside = (starts < ends) & ~np.append(self.is_white, True)[starts]
        inside &= np.append(self.starts, -1)[self.starts.searchsorted(starts)] != starts
        counts += inside
        return counts


class SpacedText(WordText):
    """A text for a tokenizer that `splits_at_space`: each distinct word is encoded once."""

    white = BERT_WHITE
    counts = TokenizedText.counts

    @_Once
    def boundaries(self) -> Numbers:
        cache: KnownWords = vars(self.counter).setdefault("_known_words", KnownWords())
        # Python knows more white space, and control characters that these tokenizers leave out.
        is_usual = np.array_equal(self.is_white, IS_WHITE.take(self.code_points, mode="clip"))
        words_of = str.split if is_usual else _WORD.findall
        words = list(chain.from_iterable(map(words_of, self.slices(self.parts))))
        rows = cache.tokens(words, self.counter)
        counts = np.array(list(map(len, rows)), dtype=np.int64)
        places = np.array([*chain.from_iterable(rows)], dtype=np.int64)
        places += np.repeat(self.starts, counts)
        return places


class KnownWords:
    """The tokens of words that were seen, for a tokenizer that `splits_at_space`.

    It forgets all of them at four million characters. Threads may share it; a copy in another process starts empty.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, ...]] = {}
        self._size = 0

    def __reduce__(self) -> tuple[type[KnownWords], tuple[()]]:
        return KnownWords, ()

    def tokens(self, words: Sequence[str], counter: TokenCounter) -> list[tuple[int, ...]]:
        """Where the tokens of each word begin in it; the counter is given only new words, as one text."""
        tokens_by_word = self._known
        new = [*set(words).difference(tokens_by_word)]
        if new:
            ends = np.cumsum([len(word) + 1 for word in new])
            tokens = counter.boundaries("\n".join(new))
            edges = [0, *tokens.searchsorted(ends).tolist()]
            begins = np.repeat(np.append(0, ends[:-1]), np.diff(edges))
            inside = (tokens - begins).tolist()
            owned = [tuple(inside[first:last]) for first, last in pairwise(edges)]
            tokens_by_word.update(zip(new, owned, strict=True))
            self._size += int(ends[-1])
            if self._size > _KNOWN:
                self._known, self._size = {}, 0
        return [tokens_by_word[word] for word in words]


def splits_at_space(tokenizer: Any) -> bool:
    """Whether a `tokenizers.Tokenizer` is BERT's: no token depends on what is beyond a space, tab or line end.

    BERT's normaliser changes characters one by one and combining marks within a word, and its pre-tokenizer cuts at
    white space before the model reads. An added token could still reach over white space.
    """
    parts = (tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.model)
    if [type(part).__name__ for part in parts] != [
        "BertNormalizer",
        "BertPreTokenizer",
        "WordPiece",
    ]:
        return False
    added = tokenizer.get_added_tokens_decoder().values()
    return not any(token.lstrip or token.rstrip or _GAP.search(token.content) for token in added)
