"""Haystack's document and recursive splitters on offsets."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal

import numpy as np
from haystack import Document as HaystackDocument
from haystack.components.preprocessors import DocumentSplitter, RecursiveDocumentSplitter
from haystack.components.preprocessors.sentence_tokenizer import QUOTE_SPANS_RE

from chunkadapters.exact.base import Aligned, Joined, Piece, Unplaced, check_sizes
from chunkcore.chunkers import Chunker, Draft, strategies
from chunkcore.document import Document, Span
from chunkcore.errors import OptionError
from chunkcore.spans import Numbers
from chunkcore.tokens import TokenCounter, TokenizedText, get_counter
from chunkcore.tokens.tokenized import Runs
from haystack_integrations.components.preprocessors.chunkadapters.document_splitter import ChunkcoreDocumentSplitter


def edges_after(separator: str, text: str, start: int, end: int) -> list[int]:
    """The start, the end of every separator in ``text[start:end]``, and the end.

    >>> edges_after(", ", "a, b, c", 0, 7)
    [0, 3, 6, 7]
    """
    ends = [match.end() for match in re.compile(re.escape(separator)).finditer(text, start, end)]
    return [start, *ends, end]


def sentence_pieces(splitter: Any, text: str) -> list[Piece]:
    """The sentence ranges of Haystack's `SentenceSplitter.split_sentences`, in linear time."""
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
    """Haystack's rule for joining sentences, checked with the only quotation that can contain the piece's end."""
    end = piece[0] + len(text[slice(*piece)].rstrip())
    place = bisect_left(begins, end)
    return bool(splitter._needs_join(text, piece, following, quotes[max(0, place - 1) : place]))


def recursive_pieces(splitter: RecursiveDocumentSplitter, source: TokenizedText) -> list[str]:
    """The pieces of the splitter's `_chunk_text`, measured in one pass over the text."""
    return _Recursion(splitter, source.text, _ruler(splitter, source)).cut(0, len(source.text))


class _Characters:
    def counts(self, starts: Numbers, ends: Numbers) -> Numbers:
        return ends - starts


def _ruler(splitter: RecursiveDocumentSplitter, source: TokenizedText) -> Any:
    """An object whose `counts` measures many pieces in the splitter's units."""
    if splitter.split_units == "char":
        return _Characters()
    if splitter.split_units == "word":  # Haystack's words end at spaces only, not at line ends
        return Runs(source.code_points != ord(" "))
    return source if source.counter.name == "o200k_base" else get_counter("o200k_base").tokenize(source.text)


@dataclass(frozen=True)
class _Recursion:
    splitter: RecursiveDocumentSplitter
    text: str
    ruler: Any

    def cut(self, start: int, end: int) -> list[str]:
        """The pieces of ``text[start:end]``, by the first separator in it."""
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
        """Neighbouring splits merged while they fit; a split over the size is cut again."""
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


Unit = Literal["page", "passage", "period", "word", "line", "sentence", "token"]

# Metadata of a place, which our component writes.
_OWN = frozenset(("source_id", "page_number", "split_id", "split_idx_start", "_split_overlap"))
_COUNTERS = {"word": "words", "char": "characters"}
_SEPARATORS = {"page": "\f", "passage": "\n\n", "period": ".", "word": " ", "line": "\n"}


def exact(splitter: Any, unplaced: Unplaced = "mark") -> ChunkcoreDocumentSplitter:
    """See `chunkadapters.exact.exact`."""
    if isinstance(splitter, ChunkcoreDocumentSplitter):
        return splitter
    inputs, outputs = (getattr(splitter, f"__haystack_{side}__", None) for side in ("input", "output"))
    if not all("documents" in getattr(each, "_sockets_dict", {}) for each in (inputs, outputs)):
        raise OptionError(f"expected a splitter, which takes and gives documents; {type(splitter).__name__} does not")
    return ChunkcoreDocumentSplitter(_equivalent(splitter, unplaced), keep_white_space=False)


def _equivalent(splitter: Any, unplaced: Unplaced) -> Chunker:
    if type(splitter) is DocumentSplitter and splitter.split_by != "function":
        return HaystackUnits(
            unit=splitter.split_by,
            size=splitter.split_length,
            overlap=splitter.split_overlap,
            threshold=splitter.split_threshold,
            whole_sentences=splitter.respect_sentence_boundary,
            language=splitter.language,
            use_split_rules=splitter.use_split_rules,
            extend_abbreviations=splitter.extend_abbreviations,
            counter=splitter.tokenizer_encoding
            if splitter.split_by == "token"
            else _COUNTERS.get(splitter.split_by, "words"),
        )
    if type(splitter) is RecursiveDocumentSplitter and not _writes_anew(splitter):
        return HaystackRecursive(
            unit=splitter.split_units,
            size=splitter.split_length,
            overlap=splitter.split_overlap,
            separators=tuple(splitter.separators),
            **{"keep_white_spaces": False, **splitter.sentence_splitter_params},
            counter=_COUNTERS.get(splitter.split_units, "o200k_base"),
        )
    return Aligned(split=partial(_documents, splitter), unplaced=unplaced)


def _writes_anew(splitter: RecursiveDocumentSplitter) -> bool:
    """Whether overlapping chunks are joined words instead of slices, as before Haystack 3.4."""
    overlaps = splitter.split_units == "word" and splitter.split_overlap > 0
    return overlaps and not hasattr(splitter, "_apply_word_overlap")


def _documents(splitter: Any, text: str) -> list[tuple[str, dict[str, Any]]]:
    warm_up = getattr(splitter, "warm_up", None)
    if warm_up:
        warm_up()
    documents = splitter.run(documents=[HaystackDocument(content=text)])["documents"]
    return [(each.content or "", {key: each.meta[key] for key in each.meta if key not in _OWN}) for each in documents]


@lru_cache(maxsize=8)
def _sentence_splitter(language: Any, rules: bool, abbreviations: bool, white_space: bool) -> Any:
    from haystack.components.preprocessors.sentence_tokenizer import SentenceSplitter

    return SentenceSplitter(
        language=language,
        use_split_rules=rules,
        extend_abbreviations=abbreviations,
        keep_white_spaces=white_space,
    )


@strategies.register("haystack_units")
@dataclass(frozen=True, kw_only=True)
class HaystackUnits(Joined):
    r"""Haystack's DocumentSplitter on offsets: windows of `size` units, each sharing `overlap` with the last. Linear.

    A unit is a word with the following space, a line, a sentence, a token, and so on. With `whole_sentences`, a window
    is whole sentences of about `size` words. If Haystack's sentence splitter drops white space, the original glues
    sentences: the chunk then has several spans and the original's text.

    Attributes:
        unit: "word", "line", "passage" (between blank lines), "page" (between form feeds), "period", "sentence" (by
            Haystack's sentence splitter, which uses nltk), or "token" (of the counter).
        size: units per chunk; words with `whole_sentences`.
        overlap: units shared by neighbours, under `size`; about as many words with `whole_sentences`.
        threshold: a last window of fewer units joins the one before it.
        whole_sentences: never cut inside a sentence; for words.
        language: of sentences, two letters.
        use_split_rules: add Haystack's rules to nltk's.
        extend_abbreviations: add Haystack's abbreviations to nltk's.

    Raises:
        OptionError: an option is out of range.

    >>> HaystackUnits(size=2, overlap=1).split_text("one two three")
    ['one two ', 'two three']
    """

    unit: Unit = "word"
    size: int = 200
    overlap: int = 0
    threshold: int = 0
    whole_sentences: bool = False
    language: str = "en"
    use_split_rules: bool = True
    extend_abbreviations: bool = True

    def validate(self) -> None:
        check_sizes(self.size, self.overlap, self.size - 1)

    def draft(self, source: TokenizedText, document: Document | None) -> list[Draft]:
        if not source.text:
            return []
        if self.whole_sentences or self.unit == "sentence":
            return self._of_sentences(source.text)
        edges = self._edges(source)
        rows = self._windows(len(edges) - 1, lambda first, last: edges[first] == edges[last])
        spans = ((edges[first], edges[last]) for first, last in rows)
        return [Draft((Span(start, end),)) for start, end in spans if start < end]

    def _edges(self, source: TokenizedText) -> list[int]:
        if self.unit == "token":
            return [*source.boundaries.tolist(), len(source.text)]
        return edges_after(_SEPARATORS[self.unit], source.text, 0, len(source.text))

    def _of_sentences(self, text: str) -> list[Draft]:
        splitter = _sentence_splitter(self.language, self.use_split_rules, self.extend_abbreviations, True)
        sentences = sentence_pieces(splitter, text)
        rows = self._whole(text, sentences) if self.whole_sentences else self._windows(len(sentences))
        return self._drafts(text, sentences, rows)

    def _windows(self, units: int, empty: Callable[[int, int], bool] = lambda first, last: False) -> list[Piece]:
        """The windows as rows of units; a window with only `empty` new units is dropped."""
        found: list[Piece] = []
        reached = 0
        for first in range(0, units, self.size - self.overlap):
            last = min(first + self.size, units)
            if self.overlap and found and empty(max(first, reached), last):
                continue
            reached = last
            if last - first < self.threshold and found:
                found[-1] = (found[-1][0], last)
            else:
                found.append((first, last))
            if last == units:
                break
        return found

    def _whole(self, text: str, sentences: Sequence[Piece]) -> Iterator[Piece]:
        words = [len(text[start:end].split()) for start, end in sentences]
        first = count = 0
        for place, size in enumerate(words):
            count += size
            following = words[place + 1] if place + 1 < len(words) else 0
            if place + 1 == len(words) or count + following > self.size:
                yield first, place + 1
                first = self._kept(words, first, place + 1)
                count = sum(words[first : place + 1])

    def _kept(self, words: Sequence[int], first: int, last: int) -> int:
        """The first sentence of the next window: it repeats as much of the last one as fits into the overlap."""
        begin, count = last, 0
        while self.overlap and begin - 1 > first:
            count += words[begin - 1]
            if count > self.size:
                break
            begin -= 1
            if count > self.overlap:
                break
        return begin


@strategies.register("haystack_recursive")
@dataclass(frozen=True, kw_only=True)
class HaystackRecursive(Chunker):
    """Haystack's RecursiveDocumentSplitter, with the offsets of its chunks.

    Its own rules cut, measured in one pass; consecutive pieces' lengths give their places. A piece that differs from
    the text (U+FFFD for a character cut between tokens) keeps the original's text; its span is the text between its
    neighbours.

    Attributes:
        unit: of sizes: "word", "char", or "token" (of o200k_base).
        size: the maximum of a chunk.
        overlap: shared by neighbours, under `size`.
        separators: tried in this order; "sentence" for Haystack's sentence splitter.
        language: of sentences, two letters.
        use_split_rules: add Haystack's rules to nltk's.
        extend_abbreviations: add Haystack's abbreviations to nltk's.
        keep_white_spaces: sentences keep the white space between them.

    Raises:
        OptionError: an option is out of range.

    >>> HaystackRecursive(size=2, separators=(" ",)).spans("one two three four")
    [(Span(start=0, end=8),), (Span(start=8, end=18),)]
    """

    unit: Literal["word", "char", "token"] = "word"
    size: int = 200
    overlap: int = 0
    separators: tuple[str, ...] = ("\n\n", "sentence", "\n", " ")
    language: str = "en"
    use_split_rules: bool = True
    extend_abbreviations: bool = True
    keep_white_spaces: bool = True
    counter: TokenCounter | str = "o200k_base"

    def validate(self) -> None:
        check_sizes(self.size, self.overlap, self.size - 1)

    def draft(self, source: TokenizedText, document: Document | None) -> list[Draft]:
        text = source.text
        if not text:
            return []
        splitter = _recursive_splitter(self)
        pieces = recursive_pieces(splitter, source)
        if not self.overlap:
            return list(_placed(text, pieces, [0] * len(pieces)))
        if self.unit == "word":
            return [Draft((Span(start, end),)) for start, end in splitter._apply_word_overlap(pieces)]
        overlapped = splitter._apply_overlap(list(pieces))
        shared = [0, *(len(splitter._get_overlap([piece])[0]) for piece in overlapped[:-1])]
        return list(_placed(text, overlapped, shared))


@lru_cache(maxsize=8)
def _recursive_splitter(chunker: HaystackRecursive) -> RecursiveDocumentSplitter:
    splitter = RecursiveDocumentSplitter(
        split_length=chunker.size,
        split_overlap=chunker.overlap,
        split_unit=chunker.unit,
        separators=list(chunker.separators),
        sentence_splitter_params={
            "language": chunker.language,
            "use_split_rules": chunker.use_split_rules,
            "extend_abbreviations": chunker.extend_abbreviations,
            "keep_white_spaces": chunker.keep_white_spaces,
        },
    )
    splitter.warm_up()
    return splitter


def _placed(text: str, pieces: Sequence[str], shared: Sequence[int]) -> Iterator[Draft]:
    """Consecutive pieces, each sharing a number of characters with the one before."""
    end = 0
    for piece, overlap in zip(pieces, shared, strict=True):
        start = max(0, end - overlap)
        end = min(start + len(piece), len(text))
        if start < end:
            yield Draft((Span(start, end),), derived=None if text[start:end] == piece else piece)
