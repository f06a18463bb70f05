"""`recursive`: split at the first separator that occurs, large pieces at the next, and merge neighbours."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Literal

import numpy as np

from chunkcore.boundaries.separators import (
    Keep,
    Places,
    characters,
    compiled,
    find_literal,
    find_regex,
    pieces_between,
)
from chunkcore.chunkers.base import Chunker, chunkers
from chunkcore.errors import OptionError
from chunkcore.options import Bounds
from chunkcore.packing import (
    join_ranges,
    pack,
    pack_words,
    split_ranges_to_maximum,
    trim_ranges,
    word_ends,
)
from chunkcore.spans import Ranges, as_table
from chunkcore.tokens import TokenizedText
from chunkcore.tokens.tokenized import BytePairText

# The Chroma report's separators, for chunkers that group small pieces.
PROSE_SEPARATORS = ("\n\n", "\n", ".", "?", "!", " ", "")
# The marks that end a word or a clause where words have no spaces between them.
_MARKS = ("\u200b", "\u0f0b", "。", "，", "、")
SEPARATORS = ("\n\n", "\n", " ", *_MARKS, "")
_WORD_END = "\0"  # before the last of them: where a dictionary knows that a word ends
_NONE: Ranges = np.empty((0, 2), dtype=np.int64)


@chunkers.register("recursive")
@dataclass(frozen=True, kw_only=True)
class Recursive(Chunker):
    r"""LangChain's RecursiveCharacterTextSplitter on offsets: the same chunks, with exact spans.

    A text is split at the first of `separators` that occurs in it. Pieces of `size` or more are split at the remaining
    separators; smaller neighbours are merged up to `size`. Where the original drops separators and glues the pieces,
    the chunk here spans the first piece to the last.

    Sizes are the original's: sums over the pieces and the dropped separators between them. So a chunk's own text can be
    a few tokens over or under `size`, and a piece without a separator is kept whole. ``size_of="text"`` cuts each chunk
    whose own text is over `size` at words, else graphemes. Time is linear in the text and in `separators`.

    Attributes:
        size: the target, in the counter's unit; at least 1.
        overlap: how much neighbouring chunks may share, ``0 <= overlap <= size``; whole pieces only.
        separators: tried in this order; "" splits into characters. The default is the original's, with the marks of
            scripts without spaces, which end a piece: zero width space, tsheg, full stop and commas of Chinese, and
            with the extra ``words`` the ends of words.
        keep: where a separator goes: to the "start" of the piece after it, the "end" of the piece before it, or "drop".
            A separator dropped between two chunks is in no chunk. A dropped regular expression's groups are kept, as
            pieces.
        regex: separators are regular expressions of Python's `re`, each with a time limit.
        strip: chunks lose the white space at their ends, and chunks of white space alone are left out.
        size_of: "pieces": sizes are LangChain's sums over pieces; "text": no chunk's own text is over `size`.
        minimum: a chunk whose own text counts less joins the neighbour that is fewer characters away; ``0 <= minimum <=
            size``. The two may be over `size` by less than `minimum`; with ``size_of="text"`` not at all, so a fragment
            with no room beside it stays.

    Raises `DataError`: a regular expression takes too long on a text (`chunkcore.boundaries.separators`).

    >>> chunker = Recursive(size=14, counter="characters")
    >>> chunker.split_text("One line.\n\nAnother, longer line.")
    ['One line.', 'Another,', 'longer line.']
    """

    bounded = True
    tokens_only = True

    size: int = 200
    overlap: int = 0
    separators: tuple[str, ...] = SEPARATORS
    keep: Keep = "start"
    regex: bool = False
    strip: bool = True
    size_of: Literal["pieces", "text"] = "pieces"
    minimum: int = 0
    bounds = Bounds(size=1, minimum=(0, "size"), overlap=(0, "size"))

    def validate(self) -> None:
        if not self.separators:
            raise OptionError(
                'separators holds at least one string ("" splits into characters), got none'
            )
        for separator in self.separators if self.regex else ():
            self._pattern(separator)

    def _pattern(self, separator: str) -> re.Pattern[str]:
        return compiled(
            separator, "the separator", "correct it, or set regex=false to take it literally"
        )

    def cut(self, source: TokenizedText) -> Ranges:
        # The original recurses into each large piece; here each separator is searched once, in all texts to split.
        merged, texts = [_NONE], source.parts
        levels = list(self.separators)
        is_default = self.separators == SEPARATORS and not self.regex
        marks = _MARKS if is_default and self.keep == "start" else ()
        if is_default:
            levels.insert(-1, _WORD_END)
        is_plain = self.keep == "start" and not self.regex and not self.overlap
        for level, separator in enumerate(levels):
            is_last = separator == "" or level == len(levels) - 1
            words = left = large = _NONE
            if separator == " " and is_plain and not is_last and isinstance(source, BytePairText):
                rows, words, texts = pack_words(source, texts, self.size)
                merged.append(rows)
            if len(texts):
                keep: Keep = "end" if separator in marks else self.keep
                pieces, left = self.pieces(source, separator, texts, keep, is_last=is_last)
                rows, large = self._merge(source, separator, pieces)
                merged.append(rows)
            if is_last or not len(left) + len(large) + len(words):
                break
            texts = np.sort(np.concatenate((left, large, words)), axis=0)
        rows = np.concatenate(merged)
        if self.strip:  # but what it could not split, as the original
            rows = trim_ranges(source, rows)
        rows = np.concatenate((rows, large))
        rows = rows[rows[:, 0].argsort(kind="stable")]
        maximum = self.size + self.minimum - 1
        if self.size_of == "text":
            parts = split_ranges_to_maximum(source, rows, self.size, strip=self.strip)
            parts = np.unique(parts, axis=0)
            reached = np.append(0, np.maximum.accumulate(parts[:, 1]))[:-1]
            rows, maximum = parts[parts[:, 1] > reached], self.size
        return join_ranges(source, rows, self.minimum, maximum)

    def pieces(
        self, source: TokenizedText, separator: str, texts: Ranges, keep: Keep, *, is_last: bool
    ) -> tuple[Places, Ranges]:
        """The pieces of the texts that hold the separator, and the other texts (none after the last separator)."""
        if separator == "":
            return characters(texts), _NONE
        if self.regex:
            pattern = self._pattern(separator)
            matches = find_regex(source, pattern, texts, keep_groups=self.keep == "drop")
        elif separator == _WORD_END:
            matches = _word_ends(source.text, texts)
        else:
            matches = find_literal(source, separator, texts)
        occurs = (np.bincount(matches.texts, minlength=len(texts)) > 0) | is_last
        renumbered = matches._replace(texts=(np.cumsum(occurs) - 1)[matches.texts])
        return pieces_between(texts[occurs], renumbered, keep), texts[~occurs]

    def _merge(
        self, source: TokenizedText, separator: str, pieces: Places
    ) -> tuple[Ranges, Ranges]:
        """Runs of neighbouring small pieces of one text, merged up to `size`; and the large pieces."""
        sizes = source.counts(pieces.starts, pieces.ends)
        is_small = sizes < self.size
        small = is_small.nonzero()[0]
        is_dropped = self.keep == "drop" and separator != _WORD_END
        gap = source.counter.count(separator) if is_dropped else 0
        sums = np.append(0, np.cumsum(sizes[small] + gap))
        texts = pieces.texts[small]
        is_end = (small[1:] - small[:-1] > 1) | (texts[1:] > texts[:-1])
        edges = [0, *(is_end.nonzero()[0] + 1).tolist(), len(small)]
        runs = pack(sums, self.size, self.overlap, gap=gap, runs=pairwise(edges))
        firsts, afters = as_table(runs).T
        merged = np.column_stack((pieces.starts[small[firsts]], pieces.ends[small[afters - 1]]))
        return merged, np.column_stack((pieces.starts, pieces.ends))[~is_small]


def _word_ends(text: str, texts: Ranges) -> Places:
    """Where words end that no mark ends, as separators without a width."""
    ends = [word_ends(text, start, end, end) for start, end in texts.tolist()]
    places = np.array([*chain.from_iterable(ends)], dtype=np.int64)
    return Places(places, places, np.repeat(np.arange(len(ends)), [*map(len, ends)]))


def small_pieces(
    source: TokenizedText,
    size: int,
    size_of: Literal["pieces", "text"] = "text",
    separators: tuple[str, ...] = PROSE_SEPARATORS,
) -> Ranges:
    """Pieces of prose of at most `size`, for chunkers that group them: shape (n, 2)."""
    splitter = Recursive(size=size, separators=separators, size_of=size_of, counter=source.counter)
    return splitter.cut(source)
