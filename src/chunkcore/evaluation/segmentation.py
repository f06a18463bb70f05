"""Segmentation measures: how far boundaries are from a reference.

Pk and WindowDiff slide a window and are errors: lower is better. Precision, recall and F1 compare boundaries.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from pathlib import Path
from typing import NamedTuple

import numpy as np

from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.chunkers.base import Chunker
from chunkcore.errors import DataError, echo
from chunkcore.evaluation.resampling import mean_intervals, mean_std
from chunkcore.files import json_lines
from chunkcore.options import check_number
from chunkcore.reading.folders import documents_of
from chunkcore.spans import Flags, Numbers, Ranges, Scores
from chunkcore.text import Chunk, Document


def pk(
    reference: Iterable[int],
    hypothesis: Iterable[int],
    count: int,
    window: int | None = None,
) -> float:
    """How often the two disagree whether units a window apart are in one segment (Beeferman et al., 1999).

    0 is full agreement, 1 the worst; fewer units than a window give 0. O(count) time and memory.

    Both are the units (sentences or characters) that begin a segment, except the first, in any order; `count` is the
    number of units. The window is in units; None for `window_size`.

    Raises `DataError`: a unit is not in ``1 .. count - 1``, or the window is under 1.

    >>> pk([3], [2], count=6, window=2)  # two of the four pairs
    0.5
    """
    first, second, window = _prepared(reference, hypothesis, count, window)
    return _share((first[window:] == first[:-window]) != (second[window:] == second[:-window]))


def window_diff(
    reference: Iterable[int],
    hypothesis: Iterable[int],
    count: int,
    window: int | None = None,
) -> float:
    """How often the two have different numbers of boundaries in a window (Pevzner and Hearst, 2002).

    Unlike `pk` it sees boundaries close to each other. Arguments and errors as `pk`.

    >>> window_diff([3], [3, 4], count=6, window=3), pk([3], [3, 4], count=6, window=3)
    (0.6666666666666666, 0.0)
    """
    first, second, window = _prepared(reference, hypothesis, count, window)
    return _share(first[window:] - first[:-window] != second[window:] - second[:-window])


def window_size(reference: Iterable[int], count: int) -> int:
    """Half the mean length of the reference's segments, rounded to even, at least 1, as in both papers.

    >>> window_size([10], count=20)
    5
    """
    return max(
        1,
        round(count / (2 * (len(set(reference)) + 1))),
    )


class BoundaryScores(NamedTuple):
    """Scores of boundaries, each 0 to 1."""

    precision: float
    recall: float
    f1: float


def boundary_scores(
    reference: Iterable[int],
    hypothesis: Iterable[int],
    count: int,
    tolerance: int = 0,
) -> BoundaryScores:
    """Precision, recall and F1 of boundaries.

    A boundary is right if it pairs with a reference boundary at most `tolerance` units away; each pairs once, and as
    many pairs as possible are made. Arguments and errors as `pk`. O(n log n) in the boundaries. Without boundaries
    found, precision is 0; without boundaries to find, recall is 1; if both are empty, all are 1.

    >>> boundary_scores([10, 20], [11, 12, 30], count=40, tolerance=1)
    BoundaryScores(precision=0.3333333333333333, recall=0.5, f1=0.4)
    """
    if tolerance < 0:
        raise DataError(f"the tolerance is at least 0 units, got {tolerance}")
    right, guessed = _begins(reference, count), _begins(hypothesis, count)
    if not right and not guessed:
        return BoundaryScores(1.0, 1.0, 1.0)
    pairs = place = 0
    for start in right:
        while place < len(guessed) and guessed[place] < start - tolerance:
            place += 1
        if place < len(guessed) and guessed[place] <= start + tolerance:
            pairs += 1
            place += 1
    precision = pairs / len(guessed) if guessed else 0.0
    recall = pairs / len(right) if right else 1.0
    return BoundaryScores(
        precision,
        recall,
        2 * pairs / (len(right) + len(guessed)),
    )


def _begins(
    starts: Iterable[int],
    count: int,
) -> list[int]:
    try:
        begins = sorted({index(start) for start in starts})
    except TypeError as error:
        raise DataError(f"segments begin at whole numbers: {error}") from error
    if begins and not 0 < begins[0] <= begins[-1] < count:
        wrong = begins[0] if begins[0] < 1 else begins[-1]
        raise DataError(
            f"segments of {count} units begin at 1 to {count - 1} (0 is left out), got {wrong}"
        )
    return begins


def _prepared(
    reference: Iterable[int],
    hypothesis: Iterable[int],
    count: int,
    window: int | None,
) -> tuple[Numbers, Numbers, int]:
    right = list(reference)
    if window is None:
        window = window_size(right, count)
    if window < 1:
        raise DataError(f"the window is at least 1 unit, got {window}")
    segments = np.zeros(
        (2, max(0, count)),
        dtype=np.int64,
    )
    for row, starts in zip(segments, (right, hypothesis), strict=True):
        row[_begins(starts, count)] = 1
    first, second = segments.cumsum(axis=1)
    return first, second, window


def _share(differs: Flags) -> float:
    return float(differs.mean()) if len(differs) else 0.0


class LabelledText(NamedTuple):
    """A text with known segments."""

    id: str
    sentences: tuple[str, ...]
    starts: Numbers  # the sentences that begin a segment, except the first
    text: str
    begins: Numbers  # the sentences' first offsets


def load_segmented(path: str | Path) -> list[Document]:
    """Texts with known sections, from JSON lines, or from a folder's ``documents.jsonl``.

    ``metadata["boundaries"]`` has the ascending offsets where sections begin, except the first. A boundary inside a
    sentence counts for the next one. ``metadata["sentences"]`` has the sentences as ascending pairs of offsets; the
    default splitter finds missing ones. Headings are not part of the texts.

    Raises `DataError`: an unreadable file, a malformed line, no text, or offsets outside the text or out of order.
    """
    root = Path(path)
    file = root / "documents.jsonl" if root.is_dir() else root
    rows = [(f"{file}, line {number}", row) for number, row in json_lines(file)]
    documents = documents_of(rows)
    if not documents:
        raise DataError(f"{path} holds no texts: expected one a line")
    for document, (place, _) in zip(documents, rows, strict=True):
        _offsets(document, place)
    return documents


def load_labelled(path: Path) -> list[LabelledText]:
    """The texts of `load_segmented` with their sentences."""
    return list(map(_labelled, load_segmented(path)))


def _labelled(document: Document) -> LabelledText:
    text = document.text
    boundaries, sentences = _offsets(document, f"document {document.id!r}")
    ranges = sentence_ranges(text) if sentences is None else sentences
    starts = np.unique(np.searchsorted(ranges[:, 0], boundaries, side="left"))
    starts = starts[(starts > 0) & (starts < len(ranges))]
    parts = tuple(text[start:end] for start, end in ranges.tolist())
    return LabelledText(
        document.id,
        parts,
        starts,
        text,
        ranges[:, 0],
    )


def _offsets(document: Document, place: str) -> tuple[Numbers, Ranges | None]:
    """The boundaries and sentences of a text. Raises `DataError`, which begins with `place`."""
    size = len(document.text)
    boundaries = document.metadata.get("boundaries")
    begins = _whole_numbers(boundaries)
    if begins is None or begins.ndim != 1 or not _rises(begins, 0, size - 1):
        raise DataError(
            f'{place}: expected "boundaries" to be ascending offsets inside the text, which has {size} characters; '
            f"got {echo(boundaries)}"
        )
    sentences = document.metadata.get("sentences")
    if sentences is None:
        return begins, None
    pairs = _whole_numbers(sentences)
    if pairs is not None and len(pairs) == 0:
        pairs = pairs.reshape(0, 2)
    is_right = pairs is not None and pairs.shape[1:] == (2,)
    if pairs is None or not is_right or not _rises(pairs[:, 0], 0, size) or not _touch(pairs, size):
        raise DataError(
            f'{place}: expected "sentences" to be pairs [start, end] of offsets, in order, that do not overlap or '
            f"lie outside the text, which has {size} characters; got {echo(sentences)}"
        )
    return begins, pairs


def _whole_numbers(value: object) -> Numbers | None:
    """A list of whole numbers, or of lists of as many each, as an array; None for anything else."""
    if value == []:
        return np.zeros(0, dtype=np.int64)
    try:
        numbers = np.array(value)
    except ValueError:  # lists of different lengths
        return None
    return numbers if isinstance(value, list) and numbers.dtype.kind == "i" else None


def _rises(numbers: Numbers, least: int, most: int) -> bool:
    is_within = bool(((least <= numbers) & (numbers <= most)).all())
    return is_within and bool((np.diff(numbers) > 0).all())


def _touch(pairs: Ranges, size: int) -> bool:
    """Whether ranges are not empty, end within the text and do not overlap."""
    starts, ends = pairs.T
    is_disjoint = bool((ends[:-1] <= starts[1:]).all())
    return is_disjoint and bool((starts < ends).all()) and bool((ends <= size).all())


# Pk and WindowDiff are errors: lower is better.
SEGMENT_MEASURES = ("Pk", "WindowDiff", "Precision", "Recall", "F1")


@dataclass(frozen=True, eq=False)
class SegmentReport:
    """One chunker's scores on each text.

    Attributes:
        text_ids: in the texts' order, as every array below.
        segments: the number of segments of each text.
        scores: by `SEGMENT_MEASURES`, float64, 0 to 1; NaN for a text of fewer than two units.
    """

    name: str
    text_ids: tuple[str, ...]
    segments: Scores
    scores: Mapping[str, Scores]

    def mean(self, measure: str) -> float:
        return mean_std(self.scores[measure])[0]

    def intervals(
        self, *, resamples: int = 10_000, seed: int = 0
    ) -> dict[str, tuple[float, float]]:
        """The 95 % interval of each measure's mean, resampling texts (see `mean_intervals`)."""
        columns = np.column_stack([self.scores[measure] for measure in SEGMENT_MEASURES])
        low, high = mean_intervals(
            columns,
            resamples=resamples,
            seed=seed,
            shares=True,
        )
        return dict(
            zip(SEGMENT_MEASURES, zip(low.tolist(), high.tolist(), strict=True), strict=True)
        )


def score_segments(
    documents: Sequence[Document],
    chunkers: Sequence[Chunker],
    *,
    tolerance: int = 0,
) -> list[SegmentReport]:
    """One report per chunker: its chunks' boundaries against the texts' own, in sentences.

    A boundary is where a new chunk's text begins; of overlapping chunks, where the one before ends. It counts for the
    nearest sentence start. The chunkers do not see the labels of `load_segmented`.

    Args:
        tolerance: sentences that a boundary may be off and still count as right for Precision, Recall and F1.

    Raises:
        OptionError: a negative tolerance.
        DataError: no documents, a repeated id, or missing or invalid boundaries.
        ModelError: a chunker's model failed twice.

    Source: Nguyen et al. (2025) score their segmenter by Pk.

    >>> from chunkcore.chunkers import FixedSentences
    >>> text = Document("t", "Foxes nap. Foxes run. Boats sail. Boats sink.", {"boundaries": [22]})
    >>> report = score_segments([text], [FixedSentences(sentences=2)])[0]
    >>> report.mean("Pk"), report.mean("F1"), report.segments.tolist()
    (0.0, 1.0, [2.0])
    """
    check_number("tolerance", tolerance)
    texts = _all_labelled(documents)
    reports = []
    for chunker in chunkers:
        chunks: dict[str, list[Chunk]] = {text.id: [] for text in texts}
        for chunk in chunker.chunk_many(Document(text.id, text.text) for text in texts):
            chunks[chunk.document_id].append(chunk)
        boundaries = [_in_sentences(text, chunk_boundaries(chunks[text.id])) for text in texts]
        reports.append(_report(chunker.label, texts, boundaries, tolerance))
    return reports


def score_baselines(
    documents: Sequence[Document],
    *,
    tolerance: int = 0,
) -> list[SegmentReport]:
    """The scores of two blind baselines: a boundary every n sentences, the mean length of the true segments; and none.

    Raises as `score_segments`.
    """
    texts = _all_labelled(documents)
    sizes = [len(text.sentences) for text in texts]
    step = max(
        1,
        round(sum(sizes) / (sum(len(text.starts) for text in texts) + len(texts))),
    )
    every = [np.arange(step, size, step) for size in sizes]
    none = [np.empty(0, dtype=np.int64) for _ in texts]
    named = {f"every {step} sentences": every, "no boundary": none}
    return [_report(name, texts, boundaries, tolerance) for name, boundaries in named.items()]


def chunk_boundaries(chunks: Iterable[Chunk]) -> list[int]:
    """The offsets in one document where the text of another chunk begins, ascending.

    >>> from chunkcore.text import Span
    >>> spans = [(Span(0, 9), Span(20, 30)), (Span(10, 19),), (Span(25, 40),)]
    >>> chunk_boundaries(Chunk("d", number, each, "", 0) for number, each in enumerate(spans))
    [10, 20, 30]
    """
    spans = sorted(
        (span.start, span.end, number)
        for number, chunk in enumerate(chunks)
        for span in chunk.spans
    )
    begins, reached, owner = [], 0, None
    for start, end, number in spans:
        if end <= reached:
            continue
        if number != owner:
            begins.append(max(start, reached))
        reached, owner = end, number
    return begins[1:]


def _all_labelled(documents: Sequence[Document]) -> list[LabelledText]:
    if not documents:
        raise DataError("there are no texts to score on: expected at least one")
    if len({document.id for document in documents}) < len(documents):
        raise DataError("two texts have one id: make ids unique")
    return list(map(_labelled, documents))


def _report(
    name: str,
    texts: Sequence[LabelledText],
    boundaries: Sequence[Numbers],
    tolerance: int,
) -> SegmentReport:
    columns = np.full(
        (len(SEGMENT_MEASURES), len(texts)),
        math.nan,
    )
    for number, (text, places) in enumerate(zip(texts, boundaries, strict=True)):
        size = len(text.sentences)
        if size >= 2:
            starts, cuts = text.starts.tolist(), places.tolist()
            errors = pk(starts, cuts, size), window_diff(starts, cuts, size)
            columns[:, number] = [*errors, *boundary_scores(starts, cuts, size, tolerance)]
    names = tuple(text.id for text in texts)
    segments = np.array(
        [len(places) + 1 for places in boundaries],
        dtype=np.float64,
    )
    return SegmentReport(
        name,
        names,
        segments,
        dict(zip(SEGMENT_MEASURES, columns, strict=True)),
    )


def _past_space(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def _in_sentences(text: LabelledText, offsets: Sequence[int]) -> Numbers:
    """The sentences whose starts are nearest to the offsets, except the first."""
    begins = [_past_space(text.text, offset) for offset in offsets]
    places = np.array(
        [place for place in begins if 0 < place < len(text.text)],
        dtype=np.int64,
    )
    if not len(text.begins):
        return places
    after = np.clip(
        np.searchsorted(text.begins, places),
        0,
        len(text.begins) - 1,
    )
    before = np.maximum(after - 1, 0)
    nearest = np.where(
        places - text.begins[before] < text.begins[after] - places,
        before,
        after,
    )
    return np.unique(nearest[nearest > 0])
