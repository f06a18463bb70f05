"""`Breakpoint`: cut where neighbouring sentence windows are far apart, within size bounds."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.chunkers.base import strategies
from chunkcore.chunkers.semantic import Floats, SentenceChunker, neighbour_distances, window_texts
from chunkcore.errors import OptionError
from chunkcore.options import check_ranges
from chunkcore.packing import join_ranges, pack, running_counts, split_to_maximum
from chunkcore.spans import Ranges
from chunkcore.tokens import TokenizedText

Threshold = Literal["percentile", "standard_deviation", "interquartile", "gradient", "distance", "absolute_gradient"]

_AMOUNTS: dict[Threshold, float] = {
    "percentile": 95,
    "standard_deviation": 3,
    "interquartile": 1.5,
    "gradient": 95,
    "distance": 0.3,
    "absolute_gradient": 0.1,
}
_RANGES: dict[str, tuple[float, float]] = {"percentile": (0, 100), "gradient": (0, 100), "distance": (0, 2)}
_LARGEST = 1e6  # any finite bound
# Smaller excesses over a threshold are rounding.
_TIE = 1e-12


@strategies.register("breakpoint")
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
    graphemes. A chunk under `minimum` joins the neighbour nearer by distance, else the other one, if `size`
    allows.

    Attributes:
        buffer: sentences on each side of a window; 0 compares the sentences alone.
        threshold: "percentile", "standard_deviation", "interquartile", "gradient", "distance" or "absolute_gradient".
        amount: of the threshold, 0 to 100 for percentiles, 0 to 2 for a distance; None for 95, 3, 1.5, 95, 0.3 or 0.1,
            in the order above.
        minimum: of a chunk's own text, in the counter's unit; a smaller chunk joins a neighbour.
        size: of a chunk's own text, in the counter's unit; None for no maximum.
        empty_end: add an empty sentence where a match of the splitter's pattern ends the text, as the original's
            ``re.split`` does. It changes percentiles and means a little.

    Cost: one call of the model for the distinct windows; then O(n·d) time (O(n log n) for percentiles) and O(n·d)
    memory for n sentences of d dimensions.
    """

    buffer: int = 1
    threshold: Threshold = "percentile"
    amount: float | None = None
    minimum: int = 0
    size: int | None = None
    empty_end: bool = False

    def validate(self) -> None:
        super().validate()
        check_ranges(self, buffer=0, minimum=0)
        if self.amount is not None:
            least, most = _RANGES.get(self.threshold, (-_LARGEST, _LARGEST))
            if not least <= self.amount <= most:
                raise OptionError(
                    f"amount of the threshold {self.threshold} is {least:g} to {most:g}, got {self.amount}"
                )
        if self.size is not None and self.size < max(1, self.minimum):
            raise OptionError(f"size is at least 1 and minimum ({self.minimum}), got {self.size}")

    @property
    def hard_maximum(self) -> int | None:
        return self.size

    def ranges(self, source: TokenizedText) -> list[tuple[int, int]]:
        pieces = sentence_ranges(source.text, self.splitter)
        distances = np.empty(0)
        if len(pieces) > 1:
            texts = [source.text[start:end] for start, end in pieces.tolist()]
            if self.empty_end and _match_ends(source.text, self.splitter):
                texts.append("")
            distances = neighbour_distances(self._embed(window_texts(texts, self.buffer)))
        amount = _AMOUNTS[self.threshold] if self.amount is None else self.amount
        inside = max(0, len(pieces) - 1)
        cuts, distances = breakpoints(distances, self.threshold, amount)[:inside], distances[:inside]
        return group_pieces(source, pieces, distances, cuts, minimum=self.minimum, maximum=self.size)


def _match_ends(text: str, splitter: str | Callable[[str], Any]) -> bool:
    kind, _, pattern = splitter.partition(":") if isinstance(splitter, str) else ("", "", "")
    return kind == "regex" and any(match.end() == len(text) for match in re.finditer(pattern, text))


def breakpoints(distances: Floats, threshold: Threshold, amount: float) -> NDArray[np.bool_]:
    """Whether a chunk ends after each sentence but the last, from neighbour distances (Qu et al., 2024, appendix B).

    >>> breakpoints(np.array([0.1, 0.5, 0.1, 0.2]), "percentile", 60).tolist()
    [False, True, False, True]
    """
    if threshold in ("gradient", "absolute_gradient"):
        if len(distances) < 2:
            return np.zeros(len(distances), dtype=np.bool_)
        values = np.gradient(distances)
    else:
        values = distances
    if not len(values):
        return np.zeros(0, dtype=np.bool_)
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
    cuts: NDArray[np.bool_],
    *,
    minimum: int = 0,
    maximum: int | None = None,
) -> list[tuple[int, int]]:
    """Chunks of neighbouring pieces, bounded in size. O(n) time.

    Args:
        source: the text.
        pieces: shape (n, 2), in order.
        distances: of each piece to the next, n - 1.
        cuts: whether a chunk ends after each piece but the last, n - 1.
        minimum: a smaller chunk joins its nearer neighbour.
        maximum: a larger chunk is packed from its pieces; a larger piece is cut.
    """
    if not len(pieces):
        return []
    before = np.concatenate(([0.0], distances))
    firsts = np.concatenate(([0], np.flatnonzero(cuts) + 1))
    afters = np.concatenate((firsts[1:], [len(pieces)]))
    whole = np.column_stack((pieces[firsts, 0], pieces[afters - 1, 1]))
    rows, gaps = [(start, end) for start, end in whole.tolist()], before[firsts].tolist()
    over = source.counts(whole[:, 0], whole[:, 1]) > (np.inf if maximum is None else maximum)
    if maximum is not None and over.any():
        sums = running_counts(source, pieces)
        chunks = zip(rows, gaps, firsts.tolist(), afters.tolist(), over.tolist(), strict=True)
        rows, gaps = [], []
        for row, gap, first, after, is_over in chunks:
            if not is_over:
                rows.append(row)
                gaps.append(gap)
                continue
            for begin, end in pack(sums, maximum, first=first, last=after):
                bounds = split_to_maximum(source, int(pieces[begin, 0]), int(pieces[end - 1, 1]), maximum)
                rows += bounds
                gaps += [float(before[begin]), *[0.0] * len(bounds)][: len(bounds)]  # white space has no bounds
    return join_ranges(source, rows, minimum, maximum, gaps)
