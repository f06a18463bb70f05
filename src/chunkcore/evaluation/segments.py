"""`score_segments`: do a strategy's chunks begin where the topic changes? Any strategy against gold boundaries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from chunkcore.chunkers.base import Chunker
from chunkcore.chunkers.spec import label
from chunkcore.document import Chunk, Document
from chunkcore.errors import DataError, OptionError
from chunkcore.evaluation.bootstrap import mean_intervals
from chunkcore.evaluation.results import Scores
from chunkcore.evaluation.segmentation import boundary_scores, boundary_similarity, pk, window_diff
from chunkcore.segmenters.labelled import LabelledText, labelled_texts

__all__ = [
    "SEGMENT_MEASURES",
    "SegmentOptions",
    "SegmentReport",
    "SegmentUnit",
    "chunk_boundaries",
    "score_baselines",
    "score_segments",
]

SegmentUnit = Literal["sentence", "character"]
Places = NDArray[np.int64]

# Errors first, for which lower is better.
SEGMENT_MEASURES = ("Pk", "WindowDiff", "Precision", "Recall", "F1", "B")
_DRAWS = 20


@dataclass(frozen=True, kw_only=True)
class SegmentOptions:
    """In what boundaries are counted, and how near is near enough.

    Attributes:
        unit: "sentence", of those that the texts come with, or "character".
        tolerance: units that a boundary may be off and still count as right for Precision, Recall and F1. B takes a
            boundary as moved where it is at most as many off, and at least 1.

    Raises:
        OptionError: another unit, or a tolerance under 0.
    """

    unit: SegmentUnit = "sentence"
    tolerance: int = 0

    def __post_init__(self) -> None:
        if self.unit not in get_args(SegmentUnit):
            raise OptionError(f"unit is sentence or character, got {self.unit!r}")
        if self.tolerance < 0:
            raise OptionError(f"tolerance is at least 0 {self.unit}s, got {self.tolerance}")


@dataclass(frozen=True, eq=False)
class SegmentReport:
    """How one way of cutting did on each text.

    Attributes:
        name: of the strategy.
        text_ids: in the texts' order; every array below is in this order too.
        segments: how many segments each text was cut into.
        scores: of each of `SEGMENT_MEASURES`, float64, 0 to 1; NaN for a text of fewer than two units.
    """

    name: str
    text_ids: tuple[str, ...]
    segments: Scores
    scores: Mapping[str, Scores]

    def mean(self, measure: str) -> float:
        """Over the texts of two units or more; NaN where there are none."""
        known = self.scores[measure][~np.isnan(self.scores[measure])]
        return float(known.mean()) if len(known) else math.nan

    def intervals(self, *, resamples: int = 10_000, seed: int = 0) -> dict[str, tuple[float, float]]:
        """Of each measure the 95 % interval of the mean: texts are resampled (see `mean_intervals`)."""
        columns = np.column_stack([self.scores[measure] for measure in SEGMENT_MEASURES])
        low, high = mean_intervals(columns, resamples=resamples, seed=seed)
        return dict(zip(SEGMENT_MEASURES, zip(low.tolist(), high.tolist(), strict=True), strict=True))


def score_segments(
    documents: Sequence[Document],
    chunkers: Sequence[Chunker],
    options: SegmentOptions | None = None,
    *,
    workers: int = 1,
) -> list[SegmentReport]:
    """One report a strategy: its chunks' boundaries against the texts' own.

    A boundary is where text begins that is in another chunk than the text before it; of chunks that overlap, where the
    one before ends. In sentences it counts for the sentence whose beginning is nearest.

    Args:
        documents: with ``metadata["boundaries"]``, the offsets at which sections begin but for the first, and
            optionally ``"sentences"``, pairs of offsets: those of `load_segmented`. Their chunks see none of it.
        chunkers: the strategies; a report is named by its strategy's label.
        options: see there.
        workers: threads that cut texts.

    Raises:
        DataError: no documents, two of one id, or one without boundaries, or with offsets that are none.
        ModelError: a strategy's model failed twice.

    Source: Nguyen et al. (2025), who score their segmenter by Pk; the measures' own sources are at the measures.

    >>> from chunkcore.chunkers import FixedSentences
    >>> text = Document("t", "Foxes nap. Foxes run. Boats sail. Boats sink.", {"boundaries": [22]})
    >>> report = score_segments([text], [FixedSentences(sentences=2)])[0]
    >>> report.mean("Pk"), report.mean("F1"), report.segments.tolist()
    (0.0, 1.0, [2.0])
    """
    options = options or SegmentOptions()
    texts = _labelled(documents)
    reports = []
    for chunker in chunkers:
        chunks: dict[str, list[Chunk]] = {text.id: [] for text in texts}
        for chunk in chunker.chunk_many((Document(text.id, text.text) for text in texts), workers=workers):
            chunks[chunk.document_id].append(chunk)
        found = [_in_units(text, chunk_boundaries(chunks[text.id]), options.unit) for text in texts]
        reports.append(_report(label(chunker), texts, found, options))
    return reports


def score_baselines(
    documents: Sequence[Document], options: SegmentOptions | None = None, *, seed: int = 0
) -> list[SegmentReport]:
    """What cutting blindly gives: every n units, at random, nowhere.

    n is the mean length of the texts' own segments, and as many boundaries are drawn as they have on average over all
    texts, by one rate, so that both know more than a strategy does. Each random score is a mean over 20 draws.

    Raises:
        DataError: as `score_segments`.
    """
    options = options or SegmentOptions()
    texts = _labelled(documents)
    sizes = [_size(text, options.unit) for text in texts]
    known = sum(len(_gold(text, options.unit)) for text in texts)
    step = max(1, round(sum(sizes) / (known + len(texts))))
    rate = known / max(1, sum(max(0, size - 1) for size in sizes))
    random = np.random.default_rng(seed)
    draws = [
        _report("", texts, [np.flatnonzero(random.random(max(0, size - 1)) < rate) + 1 for size in sizes], options)
        for _ in range(_DRAWS)
    ]
    drawn = SegmentReport(
        "random",
        draws[0].text_ids,
        np.mean([draw.segments for draw in draws], axis=0),
        {measure: np.mean([draw.scores[measure] for draw in draws], axis=0) for measure in SEGMENT_MEASURES},
    )
    every = _report(f"every {step} {options.unit}s", texts, [np.arange(step, size, step) for size in sizes], options)
    none = _report("no boundary", texts, [np.empty(0, dtype=np.int64) for _ in texts], options)
    return [every, drawn, none]


def chunk_boundaries(chunks: Iterable[Chunk]) -> list[int]:
    """The offsets of one document at which text begins that another chunk has than the text before: ascending.

    >>> from chunkcore.document import Span
    >>> spans = [(Span(0, 9), Span(20, 30)), (Span(10, 19),), (Span(25, 40),)]
    >>> chunk_boundaries(Chunk("d", number, each, "", 0) for number, each in enumerate(spans))
    [10, 20, 30]
    """
    spans = sorted((span.start, span.end, number) for number, chunk in enumerate(chunks) for span in chunk.spans)
    found, reached, owner = [], 0, None
    for start, end, number in spans:
        if end <= reached:
            continue
        if number != owner:
            found.append(max(start, reached))
        reached, owner = end, number
    return found[1:]


def _labelled(documents: Sequence[Document]) -> list[LabelledText]:
    if not documents:
        raise DataError("there are no texts to score on: expected at least one")
    if len({document.id for document in documents}) < len(documents):
        raise DataError("two texts have one id: make ids unique")
    return labelled_texts(documents)


def _report(
    name: str, texts: Sequence[LabelledText], found: Sequence[Places], options: SegmentOptions
) -> SegmentReport:
    rows = [_scores(text, places, options) for text, places in zip(texts, found, strict=True)]
    columns = np.array(rows, dtype=np.float64).T
    return SegmentReport(
        name,
        tuple(text.id for text in texts),
        np.array([len(places) + 1 for places in found], dtype=np.float64),
        dict(zip(SEGMENT_MEASURES, columns, strict=True)),
    )


def _scores(text: LabelledText, found: Places, options: SegmentOptions) -> tuple[float, ...]:
    size = _size(text, options.unit)
    if size < 2:
        return (math.nan,) * len(SEGMENT_MEASURES)
    both = _gold(text, options.unit).tolist(), found.tolist(), size
    near = max(1, options.tolerance)
    return (
        pk(*both),
        window_diff(*both),
        *boundary_scores(*both, tolerance=options.tolerance),
        boundary_similarity(*both, near=near),
    )


def _size(text: LabelledText, unit: SegmentUnit) -> int:
    return len(text.ranges) if unit == "sentence" else len(text.text)


def _gold(text: LabelledText, unit: SegmentUnit) -> Places:
    return text.starts if unit == "sentence" else _past_space(text.text, text.boundaries.tolist())


def _in_units(text: LabelledText, offsets: Sequence[int], unit: SegmentUnit) -> Places:
    places = _past_space(text.text, offsets)
    if unit == "character" or not len(text.ranges):
        return places
    begins = text.ranges[:, 0]
    after = np.clip(np.searchsorted(begins, places), 0, len(begins) - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(places - begins[before] < begins[after] - places, before, after)
    return np.unique(nearest[nearest > 0])


def _past_space(text: str, offsets: Iterable[int]) -> Places:
    """The offsets, each moved to what comes after white space: two who cut around the same space agree."""
    moved = set()
    for offset in offsets:
        while offset < len(text) and text[offset].isspace():
            offset += 1
        moved.add(offset)
    return np.array(sorted(each for each in moved if 0 < each < len(text)), dtype=np.int64)
