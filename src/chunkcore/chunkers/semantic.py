"""Chunkers that cut between sentences whose vectors are far apart."""

from __future__ import annotations

import re
from abc import ABC
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import sqrt
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from chunkcore.boundaries.sentences import Splitter, check_splitter, sentence_ranges
from chunkcore.chunkers.base import Chunker, chunkers
from chunkcore.chunkers.recursive import small_pieces
from chunkcore.errors import OptionError, echo
from chunkcore.models.base import Embedder, Vectors, embed, unit_rows
from chunkcore.models.loading import DEFAULT_MODEL, embedder_name, get_embedder
from chunkcore.options import Bounds, check_ranges
from chunkcore.packing import (
    join_ranges,
    pack,
    running_counts,
    split_ranges_to_maximum,
    whole_runs,
)
from chunkcore.spans import Flags, Ranges
from chunkcore.tokens import TokenizedText

Floats = NDArray[np.float64]

_THRESHOLD = 0.3
_SEMANTIC = re.compile(r"semantic(?::(-?\d*\.?\d+(?:e-?\d+)?)?(?::(.*))?)?")
_BLOCK_ROWS = 4096


def neighbour_distances(vectors: Vectors) -> Floats:
    """1 minus the cosine similarity of each row and the next: float64, shape (n - 1,). O(n·d) time.

    >>> neighbour_distances(np.array([[2, 0], [1, 0], [0, 3]], dtype=np.float32)).tolist()
    [0.0, 1.0]
    """
    distances = np.empty(max(0, len(vectors) - 1))
    for start in range(0, len(distances), _BLOCK_ROWS):
        unit = unit_rows(vectors[start : start + _BLOCK_ROWS + 1])
        distances[start : start + _BLOCK_ROWS] = 1.0 - np.einsum("ij,ij->i", unit[:-1], unit[1:])
    return distances


@dataclass(frozen=True, kw_only=True)
class SemanticOverlap:
    """Overlap that goes back from a chunk's beginning for as long as the topic stays.

    The chunking survey, "Overlap Methods": "Semantic: Include until topic similarity drops". The topic drops between
    neighbouring sentences whose cosine similarity is not over the threshold. A chunk shares nothing before the last
    drop, and at most half of the chunker's size.

    As an option of a chunker: "semantic", "semantic:0.4" or "semantic:0.4:all-MiniLM-L6-v2".

    Cost: one call of the model for the distinct sentences; then linear time and memory.

    Attributes:
        threshold: -1 to 1; the default keeps about two of five neighbouring sentences of plain prose together.
        embedder: the name of a model, as `get_embedder` knows them, or an `Embedder`. Loaded when first used.

    >>> SemanticOverlap(threshold=0.5).name
    'semantic:0.5'
    """

    threshold: float = _THRESHOLD
    embedder: Embedder | str = DEFAULT_MODEL

    def __post_init__(self) -> None:
        if not -1 <= self.threshold <= 1:
            raise OptionError(
                f"the threshold of a semantic overlap is -1 to 1, got {self.threshold}"
            )
        embedder_name(self.embedder)

    @property
    def name(self) -> str:
        """The shortest string that says it."""
        model = self.embedder if isinstance(self.embedder, str) else self.embedder.name
        if model != DEFAULT_MODEL:
            return f"semantic:{self.threshold:g}:{model}"
        return "semantic" if self.threshold == _THRESHOLD else f"semantic:{self.threshold:g}"

    @cached_property
    def fingerprint(self) -> str:
        return f"semantic:{self.threshold!r}:{get_embedder(self.embedder).fingerprint}"

    def topics(self, sentences: list[str]) -> list[int]:
        """For each sentence the first of its topic."""
        firsts = np.arange(len(sentences))
        if len(sentences) > 1:
            similarity = 1.0 - neighbour_distances(embed(get_embedder(self.embedder), sentences))
            firsts[1:][similarity > self.threshold] = 0
        return cast("list[int]", np.maximum.accumulate(firsts).tolist())


def check_overlap(chunker: Any, most: float) -> None:
    """Read a chunker's option `overlap`: a number from 0 to `most`, or the string of a `SemanticOverlap`.

    >>> from types import SimpleNamespace
    >>> chunker = SimpleNamespace(overlap="semantic:0.5")
    >>> check_overlap(chunker, 9)
    >>> chunker.overlap.name
    'semantic:0.5'
    """
    overlap = chunker.overlap
    if isinstance(overlap, int):
        check_ranges(chunker, overlap=(0, most))
    if not isinstance(overlap, str):
        return
    match = _SEMANTIC.fullmatch(overlap)
    if match is None:
        expected = (
            'a whole number, "semantic", "semantic:<threshold>" or "semantic:<threshold>:<model>"'
        )
        raise OptionError(f"overlap is {expected}, got {echo(overlap)}")
    threshold, model = float(match[1] or _THRESHOLD), match[2] or DEFAULT_MODEL
    semantic = SemanticOverlap(threshold=threshold, embedder=model)
    object.__setattr__(chunker, "overlap", semantic)


SENTENCE_END = r"regex:(?<=[.?!])\s+"
Threshold = Literal[
    "percentile", "standard_deviation", "interquartile", "gradient", "distance", "absolute_gradient"
]
_LARGEST = 1e6  # any finite bound
# Each threshold's default amount, the least and the most.
_AMOUNTS: dict[Threshold, tuple[float, float, float]] = {
    "percentile": (95, 0, 100),
    "standard_deviation": (3, -_LARGEST, _LARGEST),
    "interquartile": (1.5, -_LARGEST, _LARGEST),
    "gradient": (95, 0, 100),
    "distance": (0.3, 0, 2),
    "absolute_gradient": (0.1, -_LARGEST, _LARGEST),
}
_PRODUCT_ROWS = 16
_TIE = 1e-12  # a smaller excess over a threshold is rounding


@dataclass(frozen=True, kw_only=True)
class SentenceChunker(Chunker, ABC):
    """A chunker that embeds sentences and cuts between them.

    Attributes:
        splitter: "default", "spacy", "spacy:<pipeline>", "regex:<pattern>", or a callable with a `name`: see
            `sentence_ranges`. The default is that of Kamradt's code: white space after ".", "?" or "!".
        embedder: the name of a model, as `get_embedder` knows them, or an `Embedder`. Loaded when first used.
    """

    splitter: Splitter = SENTENCE_END
    embedder: Embedder | str = DEFAULT_MODEL

    def validate(self) -> None:
        check_splitter(self.splitter)

    def _embed(self, texts: list[str]) -> Vectors:
        return embed(get_embedder(self.embedder), texts)

    def _embed_windows(self, sentences: list[str], buffer: int) -> Vectors:
        """The vectors of `window_texts`; of fewer than two sentences none, as there is nothing to compare."""
        if len(sentences) < 2:
            return np.empty((0, 1), dtype=np.float32)
        return self._embed(window_texts(sentences, buffer))


def window_texts(sentences: list[str], buffer: int) -> list[str]:
    """Each sentence with up to `buffer` sentences before and after it, joined by spaces.

    >>> window_texts(["a", "b", "c"], 1)
    ['a b', 'a b c', 'b c']
    """
    return [
        " ".join(sentences[max(0, place - buffer) : place + buffer + 1])
        for place in range(len(sentences))
    ]


@chunkers.register("breakpoint")
@dataclass(frozen=True, kw_only=True)
class Breakpoint(SentenceChunker):
    """Cuts where the cosine distance of neighbouring sentence windows is over a threshold.

    Qu, Tu and Bao, "Is Semantic Chunking Worth the Computational Cost?" (2024), section 2.2 and appendix B: Kamradt's
    chunker as in LangChain, with two more absolute thresholds. A window is a sentence with `buffer` sentences on each
    side, joined by spaces. A chunk ends after each sentence whose value is over the threshold.

    | threshold | value | over | default amount |
    |---|---|---|---|
    | percentile | distance | the amount-th percentile of all | 95 |
    | standard_deviation | distance | mean + amount · standard deviation | 3 |
    | interquartile | distance | mean + amount · interquartile range | 1.5 |
    | gradient | gradient of the distances | its amount-th percentile | 95 |
    | distance | distance | amount | 0.3 |
    | absolute_gradient | gradient of the distances | amount | 0.1 |

    The gradient is ``(distance[i + 1] - distance[i - 1]) / 2``, one-sided at the ends. The originals have no size
    bounds. Here a chunk over `size` is packed again from its sentences; a sentence over it is cut at words, else
    graphemes. A chunk under `minimum` joins the neighbour nearer by distance, else the other, if `size` allows.

    Attributes:
        buffer: sentences on each side of a window; 0 compares the sentences alone.
        threshold: "percentile", "standard_deviation", "interquartile", "gradient", "distance" or "absolute_gradient".
        amount: the threshold's number: 0 to 100 for percentiles, 0 to 2 for a distance; None: 95, 3, 1.5, 95, 0.3
            or 0.1, in the order above.
        minimum: a chunk under it, in the counter's unit, joins a neighbour.
        size: the maximum of a chunk's text, in the counter's unit; None: no maximum.
        empty_end: add an empty sentence where a match of the splitter's pattern ends the text, as the original's
            ``re.split`` does. It changes percentiles and means a little.

    Cost: one call of the model for the distinct windows; then O(n·d) time and memory for n sentences of d dimensions.
    """

    bounded = True

    buffer: int = 1
    threshold: Threshold = "percentile"
    amount: float | None = None
    minimum: int = 0
    size: int | None = None
    empty_end: bool = False

    def validate(self) -> None:
        super().validate()
        check_ranges(
            self, buffer=0, size=1, minimum=(0, "size"), amount=_AMOUNTS[self.threshold][1:]
        )

    def cut(self, source: TokenizedText) -> Ranges:
        pieces = sentence_ranges(source.text, self.splitter)
        texts = source.slices(pieces)
        kind, _, pattern = str(self.splitter).partition(":")
        matches = re.finditer(pattern, source.text) if self.empty_end and kind == "regex" else ()
        if any(match.end() == len(source.text) for match in matches):
            texts.append("")
        distances = neighbour_distances(self._embed_windows(texts, self.buffer))
        amount = _AMOUNTS[self.threshold][0] if self.amount is None else self.amount
        cuts = breakpoints(distances, self.threshold, amount)
        gaps = len(pieces) - 1  # without that before an empty end
        return group_pieces(source, pieces, distances[:gaps], cuts[:gaps], self.minimum, self.size)


def breakpoints(distances: Floats, threshold: Threshold, amount: float) -> Flags:
    """Whether a chunk ends after each sentence but the last, from neighbour distances (Qu et al., 2024, appendix B).

    >>> breakpoints(np.array([0.1, 0.5, 0.1, 0.2]), "percentile", 60).tolist()
    [False, True, False, True]
    """
    is_gradient = threshold in ("gradient", "absolute_gradient")
    if len(distances) < (2 if is_gradient else 1):
        return np.zeros(len(distances), dtype=np.bool_)
    values = np.gradient(distances) if is_gradient else distances
    level = amount
    if threshold in ("percentile", "gradient"):
        level = float(np.percentile(values, amount))
    elif threshold == "standard_deviation":
        level = float(values.mean() + amount * values.std())
    elif threshold == "interquartile":
        lower, upper = np.percentile(values, [25, 75])
        level = float(values.mean() + amount * (upper - lower))
    return np.asarray(values > level + _TIE)


def group_pieces(
    source: TokenizedText,
    pieces: Ranges,
    distances: Floats,
    cuts: Flags,
    minimum: int = 0,
    maximum: int | None = None,
) -> Ranges:
    """Chunks of neighbouring pieces, shape (n, 2), bounded in size. O(n) time.

    `distances` and `cuts` have n - 1 values: how far the next piece is, and whether a chunk ends before it. A chunk
    under `minimum` joins its nearer neighbour; one over `maximum` is packed from its pieces, of which a larger is cut.
    """
    if not len(pieces):
        return pieces
    begins = np.append(True, cuts)
    if maximum is not None:
        runs = _runs(begins)
        is_over = source.counts(*whole_runs(pieces, runs).T) > maximum
        sums = running_counts(source, pieces)
        packed = pack(sums, maximum, runs=runs[is_over].tolist())
        begins[[begin for begin, _ in packed]] = True
    rows = whole_runs(pieces, _runs(begins))
    parts = split_ranges_to_maximum(source, rows, maximum)
    gaps = np.zeros(len(parts))
    gaps[parts[:, 0].searchsorted(rows[:, 0])] = np.append(0.0, distances)[begins]
    return join_ranges(source, parts, minimum, maximum, gaps.tolist())


def _runs(begins: Flags) -> Ranges:
    """The chunks as runs of pieces, from each that begins one to the next."""
    edges = np.append(begins.nonzero()[0], len(begins))
    return np.column_stack((edges[:-1], edges[1:]))


@chunkers.register("kamradt")
@dataclass(frozen=True, kw_only=True)
class Kamradt(Breakpoint):
    """`Breakpoint` with Kamradt's defaults.

    The Chroma report (2024), "KamradtSemanticChunker": cuts over the 95th percentile of the text's distances, so about
    one sentence in twenty ends a chunk. Options and cost are those of `Breakpoint`.
    """


@chunkers.register("kamradt_modified")
@dataclass(frozen=True, kw_only=True)
class KamradtModified(SentenceChunker):
    """Kamradt's chunker with the threshold that gives chunks of a stated size.

    The Chroma report (2024), "KamradtModifiedChunker": "a binary search over discontinuity thresholds such that the
    largest chunk is shorter than the specified length". One threshold serves the whole text: the greatest that leaves
    no chunk of several sentences over `size`. The most even passage decides, so chunks can be far smaller elsewhere. A
    single sentence over `size` is cut at words, else graphemes.

    The report's code differs from its text: ``goal="mean", piece_size=50, buffer=3``. It searches, to 1e-6 between 0
    and 1, the threshold whose number of cuts gives a *mean* size, and takes the last one tried, often one cut too many.
    Chunks then have no maximum.

    Attributes:
        size: of the largest chunk's own text, or the mean, in the counter's unit.
        goal: "maximum": no chunk is over `size`; "mean": `size` is the mean, without a maximum.
        minimum: a smaller chunk joins its nearer neighbour, where `size` allows; with ``goal="mean"`` always.
        piece_size: None for sentences; else the most tokens in a piece of the recursive splitter.
        buffer: sentences, or pieces, on each side of a window.

    Cost: as of `Breakpoint`, and O(n log n) for the search.
    """

    size: int = 200
    minimum: int = 0
    goal: Literal["maximum", "mean"] = "maximum"
    piece_size: int | None = None
    buffer: int = 1
    bounds = Bounds(size=1, minimum=(0, "size"), piece_size=(1, "size"), buffer=0)

    @property
    def hard_maximum(self) -> int | None:
        return self.size if self.goal == "maximum" else None

    def cut(self, source: TokenizedText) -> Ranges:
        if self.piece_size is None:
            pieces = sentence_ranges(source.text, self.splitter)
        else:
            pieces = small_pieces(source, self.piece_size, size_of="pieces")
        vectors = self._embed_windows(source.slices(pieces), self.buffer)
        if self.goal == "maximum":
            distances = neighbour_distances(vectors)
            threshold = self._largest_within(source, pieces, distances)
        else:
            distances = _float32_distances(vectors)
            cut_count = int(source.counts(*pieces.T).sum()) // self.size
            # As the report's code: the last threshold that is tried.
            lower, upper, threshold = 0.0, 1.0, 0.5
            while upper - lower > 1e-6:
                threshold = (lower + upper) / 2
                if np.count_nonzero(distances > threshold) > cut_count:
                    lower = threshold
                else:
                    upper = threshold
        cuts = distances > threshold
        return group_pieces(source, pieces, distances, cuts, self.minimum, self.hard_maximum)

    def _largest_within(self, source: TokenizedText, pieces: Ranges, distances: Floats) -> float:
        """The threshold of the fewest cuts that leave no chunk of several pieces over `size`."""

        def too_large(threshold: float) -> bool:
            runs = _runs(np.append(True, distances > threshold))
            several = whole_runs(pieces, runs[runs[:, 1] - runs[:, 0] > 1])
            return bool((source.counts(*several.T) > self.size).any())

        # Only the distances change the cuts; below all of them each piece is a chunk.
        thresholds = [-np.inf, *np.unique(distances).tolist()]
        first_too_large = bisect_left(thresholds, True, key=too_large)
        return float(thresholds[max(0, first_too_large - 1)])


def _float32_distances(vectors: Vectors) -> Floats:
    """The digits of the report's code: BLAS gives them for a product of a few rows, a NumPy sum does not."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(norms == 0, np.float32(1), norms)
    distances = np.empty(max(0, len(unit) - 1))
    for start in range(0, len(distances), _PRODUCT_ROWS):
        rows = unit[start : start + _PRODUCT_ROWS + 1]
        distances[start : start + _PRODUCT_ROWS] = 1 - np.diagonal(rows @ rows.T, 1)
    return distances


@chunkers.register("dual_semantic")
@dataclass(frozen=True, kw_only=True)
class DualSemantic(SentenceChunker):
    """Chunks whose sentences are all similar to each other, by a threshold from the text itself.

    The Dual Semantic Chunker of Toresan et al., section 3. Each sentence is a block. The threshold is θ = mean + k · σ
    of the cosine similarities of blocks at most `d` apart (equations 1 and 2). Blocks are taken in order (section 3.3,
    figure 3):

    1. a block that finds the chunk under `minimum` joins it, even over `size`;
    2. a block that would take the chunk over `size` begins the next chunk;
    3. else it joins if its similarity to *every* block in the chunk is over θ (equation 3), or begins the next. The one
       similarity of two blocks is θ, which is not over it: two blocks are two chunks.

    With ``size_of="text"`` no chunk's own text is over `size`: step 2 comes first, and a chunk still under `minimum`
    joins the one before, if `size` allows. Equation 1 prints ``i < j < min(i + d, N - 1)``; here
    ``i < j <= min(i + d, N - 1)``, as the text says. Equation 2 prints √σ, and the paper's code uses σ, as here.

    Attributes:
        k: standard deviations over the mean; the paper's 3 leaves most sentences alone.
        d: how far apart, in blocks, the pairs are that make the threshold.
        minimum: the least size of a chunk, in the counter's unit.
        size: the greatest size of a chunk, in the counter's unit.
        size_of: "text": no chunk's own text is over `size`; "pieces": sizes are sums over the sentences, as in the
            paper's code. A sentence over `size` is cut at words, else graphemes, or with "pieces" is a chunk.
        splitter: see `SentenceChunker`; the paper uses spaCy.

    Cost: one call of the model for the distinct blocks; then O(n·(d + w)·D) time and O(n·D) memory for n blocks of D
    dimensions and w blocks in a chunk.
    """

    bounded = True

    k: float = 3.0
    d: int = 10
    minimum: int = 0
    size: int = 200
    size_of: Literal["pieces", "text"] = "pieces"
    bounds = Bounds(d=1, size=1, minimum=(0, "size"))

    def cut(self, source: TokenizedText) -> Ranges:
        blocks = sentence_ranges(source.text, self.splitter)
        if self.size_of == "text":
            blocks = split_ranges_to_maximum(source, blocks, self.size)
        if len(blocks) < 2:
            return blocks
        unit = unit_rows(self._embed(source.slices(blocks)))
        mean, deviation = band_statistics(unit, self.d)
        threshold = mean + self.k * deviation + _TIE  # equation 2
        sizes = source.counts(*blocks.T).tolist()
        is_sum = self.size_of == "pieces"
        firsts, size = [0], sizes[0]
        for block in range(1, len(blocks)):  # section 3.3
            first = firsts[-1]
            joined = size + sizes[block]
            if not is_sum:
                joined = source.count(int(blocks[first, 0]), int(blocks[block, 1]))
            fits = joined <= self.size
            is_small = size < self.minimum and (fits or is_sum)
            if is_small or (fits and (unit[first:block] @ unit[block] > threshold).all()):
                size = joined
            else:
                firsts.append(block)
                size = sizes[block]
        rows = whole_runs(blocks, list(pairwise([*firsts, len(blocks)])))
        return rows if is_sum else join_ranges(source, rows, self.minimum, self.size)


def band_statistics(unit: Floats, reach: int) -> tuple[float, float]:
    """Mean and standard deviation of the dot products of rows at most `reach` apart; O(n·reach·D) time.

    0 and 0 without pairs.

    >>> band_statistics(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), 1)
    (0.5, 0.5)
    """
    distances = range(1, min(reach, len(unit) - 1) + 1)
    count = sum(len(unit) - apart for apart in distances)
    if not count:
        return 0.0, 0.0

    def moment(power: int, centre: float) -> float:
        products = (np.einsum("ij,ij->i", unit[:-apart], unit[apart:]) for apart in distances)
        return sum(float(((some - centre) ** power).sum()) for some in products) / count

    mean = moment(1, 0.0)
    return mean, sqrt(moment(2, mean))
