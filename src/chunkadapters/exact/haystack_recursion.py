"""How Haystack's recursive splitter and its sentence splitter cut, on the offsets of one text.

The rules are Haystack's, and its own code where a rule is one; what is measured again and again there is measured
once here: lengths from one pass over the text, and a pair of sentences against the one quotation that can matter.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np
from haystack.components.preprocessors import RecursiveDocumentSplitter
from haystack.components.preprocessors.sentence_tokenizer import QUOTE_SPANS_RE

from chunkcore.tokens import Offsets, TokenizedText, get_counter
from chunkcore.tokens.tokenized import Runs

__all__ = ["edges_after", "recursive_pieces", "sentence_pieces"]

Piece = tuple[int, int]


def edges_after(separator: str, text: str, start: int, end: int) -> list[int]:
    """The start, the end of every occurrence of the separator in ``text[start:end]``, and the end.

    >>> edges_after(", ", "a, b, c", 0, 7)
    [0, 3, 6, 7]
    """
    ends = [match.end() for match in re.compile(re.escape(separator)).finditer(text, start, end)]
    return [start, *ends, end]


def sentence_pieces(splitter: Any, text: str) -> list[Piece]:
    """Where the sentences stand that Haystack's `SentenceSplitter.split_sentences` finds, in linear time."""
    found: list[Piece] = []
    quotes = [match.span() for match in QUOTE_SPANS_RE.finditer(text)] if splitter.use_split_rules else []
    begins = [start for start, _ in quotes]
    for piece in splitter.sentence_tokenizer.span_tokenize(text):
        if found and splitter.use_split_rules and _belong_together(splitter, text, found[-1], piece, quotes, begins):
            found[-1] = (found[-1][0], piece[1])
        else:
            found.append(piece)
    return found


def _belong_together(
    splitter: Any, text: str, piece: Piece, following: Piece, quotes: list[Piece], begins: list[int]
) -> bool:
    """Haystack's rule, asked with the last quotation that begins before the piece's end: no other can hold that."""
    end = piece[0] + len(text[slice(*piece)].rstrip())
    place = bisect_left(begins, end)
    return bool(splitter._needs_join(text, piece, following, quotes[max(0, place - 1) : place]))


def recursive_pieces(splitter: RecursiveDocumentSplitter, source: TokenizedText) -> list[str]:
    """What the splitter's own `_chunk_text` makes of the text; measured in one pass over it."""
    return _Recursion(splitter, source.text, _ruler(splitter, source)).cut(0, len(source.text))


class _Characters:
    def counts(self, starts: Offsets, ends: Offsets) -> Offsets:
        return ends - starts


def _ruler(splitter: RecursiveDocumentSplitter, source: TokenizedText) -> Any:
    """What tells the lengths of many pieces of the text, in the splitter's units."""
    if splitter.split_units == "char":
        return _Characters()
    if splitter.split_units == "word":  # Haystack's words are between spaces, and lines do not part them
        return Runs(source.code_points != ord(" "))
    return source if source.counter.name == "o200k_base" else get_counter("o200k_base").tokenize(source.text)


@dataclass(frozen=True)
class _Recursion:
    splitter: RecursiveDocumentSplitter
    text: str
    ruler: Any

    def cut(self, start: int, end: int) -> list[str]:
        """The pieces of ``text[start:end]``; the first separator that parts it is used, as Haystack does."""
        splitter, size = self.splitter, self.splitter.split_length
        if self._lengths([start, end])[0] <= size:
            return [self.text[start:end]]
        for separator in splitter.separators:
            edges = self._edges(separator, start, end)
            if len(edges) == 2:
                continue
            pieces = self._packed(edges, is_last=separator == splitter.separators[-1])
            if pieces:
                pieces[-1] += self.text[edges[-1] : end]
                return pieces
        return self._fixed(start, end)

    def _packed(self, edges: list[int], *, is_last: bool) -> list[str]:
        """Neighbouring splits together while they fit, and those apart that are too long by themselves."""
        size, found = self.splitter.split_length, []
        begin, held = (edges or [0])[0], 0
        for start, end, length in zip(edges, edges[1:], self._lengths(edges), strict=False):
            if held + length > size:
                if begin < start or held:
                    found.append(self.text[begin:start])
                begin, held = start, 0
                if length > size:
                    found.extend(self._fixed(start, end) if is_last else self.cut(start, end))
                    begin = end
                    continue
            held += length
        if edges and begin < edges[-1]:
            found.append(self.text[begin : edges[-1]])
        return found

    def _edges(self, separator: str, start: int, end: int) -> list[int]:
        """Where splits begin, and the last one's end."""
        if separator != "sentence":
            edges = edges_after(separator, self.text, start, end)
            return edges[:-1] if len(edges) > 2 and edges[-2] == end else edges
        pieces = sentence_pieces(self.splitter.nltk_tokenizer, self.text[start:end])
        return [start + begin for begin, _ in pieces] + [start + each for _, each in pieces[-1:]]

    def _lengths(self, edges: list[int]) -> list[int]:
        places = np.array(edges, dtype=np.int64)
        return self.ruler.counts(places[:-1], places[1:]).tolist()  # type: ignore[no-any-return]

    def _fixed(self, start: int, end: int) -> list[str]:
        return self.splitter._fall_back_to_fixed_chunking(self.text[start:end], self.splitter.split_units)
