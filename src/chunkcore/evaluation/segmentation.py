"""Pk and WindowDiff: how far boundaries are from a reference's. Both slide a window and are errors: lower is better."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.chunkers.base import Chunker
from chunkcore.errors import DataError, echo
from chunkcore.evaluation.resampling import mean_intervals, mean_std
from chunkcore.files import json_lines
from chunkcore.reading.folders import documents_of
from chunkcore.spans import Flags, Numbers, Ranges, Scores
from chunkcore.text import Chunk, Document

SEGMENT_MEASURES = ("Pk", "WindowDiff")
_SPACE = re.compile(r"\s*")


def pk(
    reference: Iterable[int], hypothesis: Iterable[int], count: int, window: int | None = None
) -> float:
    """How often the two disagree whether units a window apart are in one segment (Beeferman et al., 1999).

    0 is full agreement, 1 the worst; fewer units than a window give 0. O(count) time and memory.

    Both are the units (sentences or characters) that begin a segment, except the first, in any order; `count` is the
    number of units. The window is in units; None for half the mean length of the reference's segments, rounded to even,
    at least 1, as in both papers.

    Raises `DataError`: a unit is not in ``1 .. count - 1``, or the window is under 1.

    >>> pk([3], [2], count=6, window=2)  # two of the four pairs
    0.5
    """
    one, other = _boundaries_within(reference, hypothesis, count, window)
    return _share((one == 0) != (other == 0))


def window_diff(
    reference: Iterable[int], hypothesis: Iterable[int], count: int, window: int | None = None
) -> float:
    """How often the two have different numbers of boundaries in a window (Pevzner and Hearst, 2002).

    Unlike `pk` it sees boundaries close to each other. Arguments and errors as `pk`.

    >>> window_diff([3], [3, 4], count=6, window=3), pk([3], [3, 4], count=6, window=3)
    (0.6666666666666666, 0.0)
    """
    one, other = _boundaries_within(reference, hypothesis, count, window)
    return _share(one != other)


def _boundaries_within(
    reference: Iterable[int], hypothesis: Iterable[int], count: int, window: int | None
) -> Ranges:
    """The number of boundaries in each window of the reference, and of the hypothesis."""
    starts = set(reference)
    if window is None:
        window = max(1, round(count / (2 * (len(starts) + 1))))
    if window < 1:
        raise DataError(f"the window is at least 1 unit, got {window}")
    begins = np.zeros((2, max(0, count)), dtype=np.int64)
    for row, units in zip(begins, (starts, hypothesis), strict=True):
        for unit in units:
            if isinstance(unit, float | str):
                raise DataError(f"segments begin at whole numbers, got {unit!r}")
            if not 0 < unit < count:
                raise DataError(
                    f"segments of {count} units begin at 1 to {count - 1} (0 is left out), got {unit}"
                )
            row[unit] = 1
    segments = begins.cumsum(axis=1)
    counts: Numbers = segments[:, window:] - segments[:, :-window]
    return counts


def _share(differs: Flags) -> float:
    return float(differs.mean()) if len(differs) else 0.0


# ---- Texts with known segments


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
    boundaries, ranges = _offsets(document, f"document {document.id!r}")
    begins = ranges[:, 0]
    starts = np.unique(np.searchsorted(begins, boundaries))
    starts = starts[(starts > 0) & (starts < len(ranges))]
    sentences = tuple(document.text[start:end] for start, end in ranges.tolist())
    return LabelledText(document.id, sentences, starts, document.text, begins)


def _offsets(document: Document, place: str) -> tuple[Numbers, Ranges]:
    """The boundaries and sentences of a text. Raises `DataError`, which begins with `place`."""
    size = document.size
    boundaries = document.metadata.get("boundaries")
    begins = _whole_numbers(boundaries, (-1,))
    if begins is None or (np.diff([-1, *begins, size]) < 1).any():
        raise DataError(
            f'{place}: expected "boundaries" to be ascending offsets inside the text, which has {size} characters; '
            f"got {echo(boundaries)}"
        )
    sentences = document.metadata.get("sentences")
    if sentences is None:
        return begins, sentence_ranges(document.text)
    ranges = _whole_numbers(sentences, (-1, 2))
    if ranges is None or not _are_apart(ranges, size):
        raise DataError(
            f'{place}: expected "sentences" to be pairs [start, end] of offsets, in order, that do not overlap or '
            f"lie outside the text, which has {size} characters; got {echo(sentences)}"
        )
    return begins, ranges


def _whole_numbers(value: object, shape: tuple[int, ...]) -> Numbers | None:
    """A list as an array of this shape, -1 for any length; None if it is something else."""
    if value == []:
        return np.zeros(0, dtype=np.int64).reshape(shape)
    try:
        numbers = np.array(value)
    except ValueError:  # lists of different lengths
        return None
    is_right = numbers.dtype.kind == "i" and numbers.ndim == len(shape)
    if not is_right or numbers.shape[1:] != shape[1:]:
        return None
    return numbers


def _are_apart(ranges: Ranges, size: int) -> bool:
    """Whether ranges are within the text, not empty, and do not overlap."""
    lengths = np.diff([0, *ranges.ravel(), size])  # before, of and after each range
    return bool((lengths >= 0).all() and lengths[1::2].all())


# ---- Chunkers


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
        columns = np.column_stack(list(self.scores.values()))
        edges = mean_intervals(columns, resamples=resamples, seed=seed, shares=True)
        pairs = zip(*(edge.tolist() for edge in edges), strict=True)
        return dict(zip(self.scores, pairs, strict=True))


def score_segments(
    documents: Sequence[Document], chunkers: Sequence[Chunker]
) -> list[SegmentReport]:
    """One report per chunker: its chunks' boundaries against the texts' own, in sentences.

    A boundary is where a new chunk's text begins; of overlapping chunks, where the one before ends. It counts for the
    nearest sentence start. The chunkers do not see the labels of `load_segmented`.

    Raises:
        DataError: no documents, a repeated id, or missing or invalid boundaries.
        ModelError: a chunker's model failed twice.

    Source: Nguyen et al. (2025) score their segmenter by Pk.

    >>> from chunkcore.chunkers import FixedSentences
    >>> text = Document("t", "Foxes nap. Foxes run. Boats sail. Boats sink.", {"boundaries": [22]})
    >>> report = score_segments([text], [FixedSentences(sentences=2)])[0]
    >>> report.mean("Pk"), report.segments.tolist()
    (0.0, [2.0])
    """
    texts = _all_labelled(documents)
    reports = []
    for chunker in chunkers:
        chunks: dict[str, list[Chunk]] = {text.id: [] for text in texts}
        for chunk in chunker.chunk_many(Document(text.id, text.text) for text in texts):
            chunks[chunk.document_id].append(chunk)
        boundaries = [_in_sentences(text, chunk_boundaries(chunks[text.id])) for text in texts]
        reports.append(_report(chunker.label, texts, boundaries))
    return reports


def score_baselines(documents: Sequence[Document]) -> list[SegmentReport]:
    """The scores of two blind baselines: a boundary every n sentences, the mean length of the true segments; and none.

    Raises as `score_segments`.
    """
    texts = _all_labelled(documents)
    sizes = [len(text.sentences) for text in texts]
    segments = sum(len(text.starts) + 1 for text in texts)
    step = max(1, round(sum(sizes) / segments))
    every = [np.arange(step, size, step) for size in sizes]
    none = [np.empty(0, dtype=np.int64)] * len(texts)
    return [
        _report(f"every {step} sentences", texts, every),
        _report("no boundary", texts, none),
    ]


def chunk_boundaries(chunks: Iterable[Chunk]) -> list[int]:
    """The offsets in one document where the text of another chunk begins, ascending.

    >>> from chunkcore.text import Span
    >>> spans = [(Span(0, 9), Span(20, 30)), (Span(10, 19),), (Span(25, 40),)]
    >>> chunk_boundaries(Chunk("d", number, places, "", 0) for number, places in enumerate(spans))
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
    name: str, texts: Sequence[LabelledText], boundaries: Sequence[Numbers]
) -> SegmentReport:
    errors: dict[str, list[float]] = {measure: [] for measure in SEGMENT_MEASURES}
    for text, places in zip(texts, boundaries, strict=True):
        starts, cuts, size = text.starts.tolist(), places.tolist(), len(text.sentences)
        for row, error in zip(errors.values(), (pk, window_diff), strict=True):
            row.append(error(starts, cuts, size) if size >= 2 else math.nan)
    return SegmentReport(
        name,
        tuple(text.id for text in texts),
        np.array([len(places) + 1.0 for places in boundaries]),
        {measure: np.array(row) for measure, row in errors.items()},
    )


def _in_sentences(text: LabelledText, offsets: Sequence[int]) -> Numbers:
    """The sentences whose starts are nearest to the offsets, except the first."""
    begins = [_SPACE.match(text.text, offset).end() for offset in offsets]  # type: ignore[union-attr]
    places = np.array([place for place in begins if place < len(text.text)], dtype=np.int64)
    after = np.searchsorted(text.begins, places).clip(max=len(text.begins) - 1)
    before = np.maximum(after - 1, 0)
    is_before = places - text.begins[before] < text.begins[after] - places
    nearest = np.unique(np.where(is_before, before, after))
    return nearest[nearest > 0]
