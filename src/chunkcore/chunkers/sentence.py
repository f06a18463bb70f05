"""Chunkers that need no model: whole sentences packed to a size, and a fixed number of tokens or sentences."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, pairwise
from math import inf
from typing import cast

import numpy as np

from chunkcore.boundaries import HTML_PAGE
from chunkcore.boundaries.sentences import (
    Splitter,
    check_splitter,
    heading_numbers,
    heading_tags,
    record_lines,
    sentence_ranges,
    whole_parts,
)
from chunkcore.chunkers.base import Chunker, chunkers
from chunkcore.chunkers.semantic import SemanticOverlap, check_overlap
from chunkcore.errors import OptionError
from chunkcore.options import Bounds
from chunkcore.packing import (
    fitting,
    halves,
    join_ranges,
    pack,
    running_counts,
    split_to_maximum,
    whole_runs,
)
from chunkcore.spans import Numbers, Range, Ranges, as_table
from chunkcore.tokens import TokenizedText

# A chunk's sentences: the first, the first new one, and the one after the last.


@chunkers.register("sentence")
@dataclass(frozen=True, kw_only=True)
class Sentence(Chunker):
    """As many whole sentences in a chunk as `size` allows.

    Sentence-based chunking of the chunking survey. A sentence counts with the white space before it. A sentence over
    `size` is a chunk of its own. A chunk over `maximum` is cut between sentences, a sentence at line ends, else at
    words, a word at graphemes. With the default splitter, what fits stays whole: a line of a log, a chat or verse, and
    a table, formula or code between marks of wikis, AsciiDoc, reStructuredText, LaTeX or Org; a heading stays with the
    sentence after it. A chunk ends before a heading of an HTML page, and where a document's mark ``section`` begins, as
    at the headings of a Word file. The minimum is soft: a smaller chunk joins the neighbour
    across less white space (ties: the one before), if `maximum` allows.

    Chunks share whole sentences: the last `overlap_sentences`, or as many as `overlap` holds (at least one) if more.
    Fewer are shared if the next sentence would not fit. Linear time and memory.

    Attributes:
        size: the target, in the counter's unit; at least 1.
        minimum: a smaller chunk joins a neighbour; ``0 <= minimum <= size``.
        maximum: no chunk's own text is over it; at least `size`. None: `size`.
        overlap: how much neighbouring chunks may share, ``0 <= overlap < size``; or "semantic": at most half of `size`,
            back to where the topic changes (see `SemanticOverlap`), which needs a model.
        overlap_sentences: how many sentences they share; at least 0.
        splitter: "default", "spacy", "spacy:<pipeline>", "regex:<pattern>", or a callable with a `name`: see
            `sentence_ranges`.

    >>> chunker = Sentence(size=5, overlap_sentences=1, counter="words")
    >>> chunker.split_text("One is short. Two is too. Three. Four has four words.")
    ['One is short.', 'Two is too. Three.', 'Three. Four has four words.']
    """

    bounded = True

    size: int = 200
    minimum: int = 0
    maximum: int | None = None
    overlap: int | str | SemanticOverlap = 0
    overlap_sentences: int = 0
    splitter: Splitter = "default"
    bounds = Bounds(size=1, minimum=(0, "size"), maximum="size", overlap_sentences=0)

    def validate(self) -> None:
        check_splitter(self.splitter)
        check_overlap(self, self.size - 1)

    def cut(self, source: TokenizedText) -> Ranges:
        is_source = HTML_PAGE.match(source.text) is not None
        edges = getattr(source.document, "edges", ())  # of a page of HTML, as a reader sees it
        sentences = sentence_ranges(source.text, self.splitter, edges)
        if self.splitter == "default" and not is_source and not edges:
            sentences = _with_whole_lines(source, sentences, self.size)
        cuts = _without_bare_headings(source.text, sentences, _headings(source))
        topics: Numbers | None = None
        if isinstance(self.overlap, SemanticOverlap):
            # The model is asked once, not for each section.
            texts = source.slices(sentences)
            topics = np.array(self.overlap.topics(texts), dtype=np.int64)
        rows = [sentences[:0]]
        for first, after in pairwise([0, *cuts, len(sentences)]):
            if first < after:
                own_topics = None if topics is None else topics[first:after] - first
                chunks = self._section(source, sentences[first:after], own_topics)
                rows.append(join_ranges(source, chunks, self.minimum, self.hard_maximum))
        return np.concatenate(rows)

    def _section(
        self, source: TokenizedText, sentences: Ranges, topics: Numbers | None
    ) -> list[Range]:
        """The chunks of some sentences. A chunk over the maximum shares nothing and is halved until it fits."""
        maximum: int = self.hard_maximum
        sums = running_counts(source, sentences)
        # For each sentence the first that a chunk may share of which that one is the first new one.
        shared = places = np.arange(len(sums))
        if topics is not None:
            shared = sums.searchsorted(sums - self.size // 2)
            shared = np.maximum(np.append(topics, 0), shared)
        elif self.overlap:
            shared = sums.searchsorted(sums - cast("int", self.overlap))
            shared = np.minimum(shared, places - 1)
        shared = np.minimum(shared, places - self.overlap_sentences)
        runs = pack(sums, self.size, firsts=shared.data)
        begins, afters = as_table(runs).T.tolist()
        starts, ends = sentences.T.tolist()
        over = source.counts(*whole_runs(sentences, runs).T) > maximum
        fits = fitting(source, sentences, maximum)
        chunks: list[Range] = []
        least = 0  # the first sentence that the next chunk may share
        for begin, first, after, is_over in zip(
            begins, chain([0], afters), afters, over, strict=False
        ):
            low = first if is_over else max(begin, least)
            if low == begin and not is_over:
                chunks.append((starts[low], ends[after - 1]))
            else:  # a chunk that begins later than it was to may be larger
                for half, end in halves(low, after, fits):
                    chunks += split_to_maximum(source, starts[half], ends[end - 1], maximum)
                    low = half
            least = after if is_over else low
        return chunks


def _headings(source: TokenizedText) -> list[int]:
    """Where the sections of a document begin: by its marks, else by tags of HTML."""
    marks = source.document.marks if source.document else ()
    headings = sorted({mark.span.start for mark in marks if mark.kind == "section"})
    if headings or not HTML_PAGE.match(source.text):
        return headings
    return heading_tags(source.text)


def _without_bare_headings(text: str, sentences: Ranges, headings: list[int]) -> list[int]:
    """The first sentence of each section; a heading right before another one begins a section with it."""
    cuts: list[int] = []
    # A heading may stand inside: after another heading, with which it is one sentence here.
    for cut in np.unique(sentences[:, 1].searchsorted(headings, side="right")).tolist():
        section = ""
        if cuts and cut - cuts[-1] == 1:
            section = text[slice(*sentences[cut - 1])]
        is_bare = section and "\n" not in section and section[-1] not in ".!?。"
        if not is_bare:
            cuts.append(cut)
    return cuts


def _with_whole_lines(source: TokenizedText, sentences: Ranges, size: int) -> Ranges:
    """The sentences of a record's line or a table that fits are one; a heading is one with the sentence after it."""
    headings = heading_numbers(source.text, sentences)
    records = record_lines(source.text)
    parts = whole_parts(source.text)
    if not (records or headings or parts):
        return sentences
    goes_on = np.zeros(len(sentences), dtype=bool)
    goes_on[headings] = True
    starts = sentences[:, 0].copy()
    lines = as_table(records)
    firsts, afters = starts.searchsorted(lines).T
    fits = (firsts < afters) & (source.counts(*lines.T) <= size)  # and a sentence begins there
    firsts, afters = firsts[fits], afters[fits]
    starts[firsts] = lines[fits, 0]  # with their indents
    for first, after in zip(firsts.tolist(), afters.tolist(), strict=True):
        goes_on[first : after - 1] = True
    for start, end in parts:
        first = begin = int(sentences[:, 1].searchsorted(start, side="right"))
        after = int(starts.searchsorted(end))
        if source.text[int(sentences[after - 1, 0])] != "|":  # the mark at the end is no heading
            goes_on[after - 1] = False
        while begin and goes_on[begin - 1]:  # a heading
            begin -= 1
        if source.count(int(starts[begin]), int(sentences[after - 1, 1])) <= size:
            goes_on[first : after - 1] = True
    begins = np.append(True, ~goes_on[:-1])[: len(sentences)]
    ends = ~goes_on
    ends[-1:] = True
    return np.column_stack((starts[begins], sentences[ends, 1]))


@chunkers.register("fixed_token")
@dataclass(frozen=True, kw_only=True)
class FixedToken(Chunker):
    """Windows of `size` tokens, one every ``size - overlap`` tokens, of the document's own tokenization.

    Equals LangChain's TokenTextSplitter wherever that returns source text. The original decodes U+FFFD where a window
    cuts a character; here the character goes whole to the windows that hold its last token. Nothing is lost. A chunk
    that begins inside a word may count a few tokens more or less on its own.

    Attributes:
        size: tokens in a window, at least 1.
        overlap: tokens that neighbouring windows share, ``0 <= overlap < size``.
        minimum: a last window of fewer tokens joins the one before it; ``0 <= minimum <= size``.
        counter: the tokenizer.

    >>> FixedToken(size=3, overlap=1, counter="words").split_text("one two three four five six")
    ['one two three ', 'three four five ', 'five six']
    """

    tokens_only = True

    size: int = 200
    overlap: int = 0
    minimum: int = 0
    bounds = Bounds(size=1, minimum=(0, "size"))

    def validate(self) -> None:
        if not 0 <= self.overlap < self.size:
            raise OptionError(
                f"overlap is at least 0 and less than size ({self.size}), got {self.overlap}"
            )

    def cut(self, source: TokenizedText) -> Ranges:
        rows = [as_table([])]
        first = np.searchsorted(source.boundaries, source.parts).tolist()
        for (start, end), (low, high) in zip(source.parts.tolist(), first, strict=True):
            if low == high and source.text[start:end].strip():
                # No token, but the text must not be lost.
                rows.append(as_table([(start, end)]))
            if low == high:
                continue
            edges = np.append(source.boundaries[low:high], end)
            edges[0] = start
            count = high - low
            # The last window is the first that reaches the end of the text.
            begins = np.arange(0, max(1, count - self.overlap), self.size - self.overlap)
            ends = np.minimum(begins + self.size, count)
            if len(begins) > 1 and ends[-1] - begins[-1] < self.minimum:
                # Only the last window holds less than `size`; it joins the one before.
                begins, ends = begins[:-1], np.delete(ends, -2)
            # Windows inside one character are empty or equal.
            windows = np.unique(np.column_stack((edges[begins], edges[ends])), axis=0)
            rows.append(windows[windows[:, 0] < windows[:, 1]])
        return np.concatenate(rows)


@chunkers.register("fixed_sentences")
@dataclass(frozen=True, kw_only=True)
class FixedSentences(Chunker):
    """The Fixed-size Chunker of Qu et al. (2024): consecutive chunks of N sentences.

    Every chunk but the last has `sentences` new sentences; each after the first begins with the last `overlap`
    sentences before them. Linear time, apart from a semantic overlap.

    Attributes:
        sentences: new sentences in a chunk, at least 1.
        chunks: chunks in a document, at least 1, instead of `sentences`: of equal numbers of sentences, or the first
            ones one longer. A document of fewer sentences has a chunk for each.
        overlap: sentences that a chunk repeats, at least 0 and, without `chunks`, at most `sentences`; or "semantic":
            at most half of a chunk, back to where the topic changes (see `SemanticOverlap`), which needs a model.
        minimum: a chunk that counts less, in the counter's unit, joins the neighbour across less white space; 0 for
            none.
        splitter: "default", "spacy", "spacy:<pipeline>", "regex:<pattern>", or a callable with a `name`: see
            `sentence_ranges`.

    >>> FixedSentences(sentences=2, overlap=1).split_text("One. Two. Three. Four.")
    ['One. Two.', 'Two. Three. Four.']
    """

    sentences: int = 5
    chunks: int | None = None
    overlap: int | str | SemanticOverlap = 0
    minimum: int = 0
    splitter: Splitter = "default"
    bounds = Bounds(sentences=1, chunks=1, minimum=0)

    def validate(self) -> None:
        check_splitter(self.splitter)
        most = self.sentences if self.chunks is None else inf
        check_overlap(self, most)

    def cut(self, source: TokenizedText) -> Ranges:
        sentences = sentence_ranges(source.text, self.splitter)
        edges = np.array(self._edges(len(sentences)))
        firsts = edges[:-1]
        if isinstance(self.overlap, int):
            shared = firsts - self.overlap
        else:
            topics = cast("SemanticOverlap", self.overlap).topics(source.slices(sentences))
            half = np.diff(firsts, prepend=0) // 2
            shared = np.maximum(np.array(topics, dtype=np.int64)[firsts], firsts - half)
        # Each chunk begins after the one before it.
        places = np.arange(len(firsts))
        begins = places + np.maximum.accumulate(np.maximum(0, shared - places))
        chunks = whole_runs(sentences, np.column_stack((begins, edges[1:])))
        return join_ranges(source, chunks, self.minimum)

    def _edges(self, total: int) -> list[int]:
        """The first new sentence of each chunk, then the number of sentences."""
        if not total:
            return [0]
        if self.chunks is None:
            return [*range(0, total, self.sentences), total]
        count = min(self.chunks, total)
        least, more = divmod(total, count)
        return [number * least + min(number, more) for number in range(count + 1)]
