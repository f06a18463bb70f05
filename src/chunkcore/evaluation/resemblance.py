"""Where a text stands that was changed on its way: the stretch of a source that resembles it, or a part of it, most.

Short windows that text and source share say on which diagonals the text may lie. There the two are aligned
(Levenshtein), and of that alignment the stretch is kept in which matches most outnumber differences: what a
splitter wrote before or after the passage falls off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from chunkcore.evaluation.window_index import Numbers, WindowIndex

__all__ = ["Resemblance", "resemblances"]

_HITS = 20_000  # shared windows that are looked at, the rarest first
_TRIED = 4  # bands of diagonals that are aligned
_LONGEST = 50_000  # characters; aligning a text takes time that grows with the square of its length
_BAND = 64  # diagonals at least that may lie between two windows of one passage
_SLACK = 16  # characters by which a region is widened
# What a difference costs where a match gains 1. Of two unrelated texts about 3 letters in 10 are aligned with their
# like, which must not pay; a mistyped letter with one right letter behind it must.
_COST = 0.8
_RUN = 16  # letters left out or put in at one go, beyond which more cost nothing: a page's foot inside a passage


@dataclass(frozen=True, slots=True)
class Resemblance:
    """A stretch of a source beside the part of a text that it resembles; all offsets are of what was compared.

    Attributes:
        owner: the source's number.
        start: where the stretch begins in the source.
        end: where it ends.
        part_start: where the part begins in the text.
        part_end: where it ends.
        matches: characters that the two share, in order.
        similarity: matches / columns of the alignment, a column being a match or a difference.
    """

    owner: int
    start: int
    end: int
    part_start: int
    part_end: int
    matches: int
    similarity: float


def resemblances(text: str, sources: Sequence[str], index: WindowIndex, number: int | None) -> list[Resemblance]:
    """The likeliest stretches, the one with most matches first; stretches of one source do not overlap.

    Args:
        text: what is sought.
        sources: where.
        index: of the sources.
        number: of the one source to look in; None for all.
    """
    if len(text) > _LONGEST:
        return []
    found: list[Resemblance] = []
    for owner, low, high in _regions(text, sources, index, number):
        best = _align(text, sources[owner], owner, low, high)
        if best is not None:
            found.append(best)
    found.sort(key=lambda each: (-each.matches, -each.similarity, each.owner, each.start))
    kept: list[Resemblance] = []
    for each in found:
        if not any(each.owner == one.owner and each.start < one.end and one.start < each.end for one in kept):
            kept.append(each)
    return kept


def _regions(
    text: str, sources: Sequence[str], index: WindowIndex, number: int | None
) -> Iterator[tuple[int, int, int]]:
    """Source, start and end of the regions in which most windows of the text stand along one band of diagonals."""
    offsets, owners, places = index.hits(text, number, _HITS)
    if not len(offsets):
        return
    diagonals = places - offsets
    width = max(_BAND, len(text) // 4)
    bands = (diagonals + len(text)) // width  # a diagonal is at least -len(text), so never negative
    stride = int(bands.max()) + 2
    keys = owners * stride + bands
    for key in _best_pairs(keys, offsets):
        owner = key // stride
        held = _repeated(diagonals[(keys == key) | (keys == key + 1)])
        low, high = int(held.min()) - _SLACK, int(held.max()) + len(text) + _SLACK
        yield owner, max(0, low), min(len(sources[owner]), high)


def _best_pairs(keys: Numbers, offsets: Numbers) -> list[int]:
    """Those keys whose hits, with those of the next key, are at most distinct offsets; no two of them neighbours."""
    pairs = np.unique(np.column_stack((keys, offsets)), axis=0)
    distinct, counts = np.unique(pairs[:, 0], return_counts=True)
    votes = dict(zip(distinct.tolist(), counts.tolist(), strict=True))
    taken: list[int] = []
    for key in sorted(votes, key=lambda key: (-votes[key] - votes.get(key + 1, 0), key)):
        if not {key - 1, key + 1} & set(taken):
            taken.append(key)
            if len(taken) == _TRIED:
                break
    return taken


def _repeated(diagonals: Numbers) -> Numbers:
    """The diagonals of several hits, where there are such: a single one may be chance."""
    distinct, counts = np.unique(diagonals, return_counts=True)
    return distinct[counts > 1] if (counts > 1).any() else distinct


def _align(text: str, source: str, owner: int, low: int, high: int) -> Resemblance | None:
    """The best stretch of ``source[low:high]``."""
    from rapidfuzz.distance import Levenshtein

    region = source[low:high]
    opcodes = list(Levenshtein.opcodes(text, region))
    score = best = 0.0
    start = matches = columns = 0
    found: tuple[int, int, int, int, int, int] | None = None
    for place, operation in enumerate(opcodes):
        size = max(operation.src_end - operation.src_start, operation.dest_end - operation.dest_start)
        equal = operation.tag == "equal"
        if score <= 0:
            score, start, matches, columns = 0.0, place, 0, 0
        score += size if equal else -_COST * (size if operation.tag == "replace" else min(size, _RUN))
        columns += size
        matches += size if equal else 0
        if score > best:
            best = score
            first = opcodes[start]
            found = (first.src_start, operation.src_end, first.dest_start, operation.dest_end, matches, columns)
    if found is None:
        return None
    part_start, part_end, begin, end, matches, columns = found
    # Of alignments that cost the same, one may have put the passage's first letter elsewhere.
    while part_start and begin and text[part_start - 1] == region[begin - 1]:
        part_start, begin, matches, columns = part_start - 1, begin - 1, matches + 1, columns + 1
    while part_end < len(text) and end < len(region) and text[part_end] == region[end]:
        part_end, end, matches, columns = part_end + 1, end + 1, matches + 1, columns + 1
    return Resemblance(owner, low + begin, low + end, part_start, part_end, matches, matches / columns)
