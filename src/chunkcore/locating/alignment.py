"""`Aligner`: locates retrieved text in the documents, by its spans or else by the text.

The search loosens step by step: verbatim; without white space; letters and digits only; by resemblance.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

from chunkcore.errors import DataError, OptionError
from chunkcore.locating.text_search import (
    NormalizedText,
    Searchable,
    WindowHashes,
    fold,
    occurrences,
    squeeze,
)
from chunkcore.run import MatchKind, Retrieved
from chunkcore.spans import Numbers, Ranges, as_ranges
from chunkcore.text import Document, Span

_PLACES = 1000  # places of one text are counted up to this
_RESEMBLING_FROM = 24  # letters and digits; shorter texts resemble too much
_WORD = 8  # missing letters and digits at an end beyond this are no typing errors: only a part was found
_PART = 0.5  # the least part of a text that counts as found
_ALIKE = 0.98  # of the most matches: places with this share count as equally good

_Place = tuple[int, Span]


class _Found(NamedTuple):
    places: list[_Place]
    match: MatchKind = "unlocated"
    similarity: float = 1.0


class Aligner:
    """Finds retrieved text in a benchmark's documents.

    `Retrieved.match` is the first kind of match that succeeds; docs/reference/alignment.md lists them.
    `Retrieved.certainty` is the similarity / the number of equally good places. The similarity is 1, except for "fuzzy"
    and "part": matching characters / columns of the alignment.

    Indexes are built on first use: about 7 bytes a character and 1 s per 10 MB, three times that for changed letters.

    Args:
        similarity: the least for a match, over 0.5 to 1; None for no resemblance.

    Raises:
        DataError: two documents share an id.
        OptionError: `similarity` is out of range.

    >>> aligner = Aligner([Document("fox.txt", "The quick fox naps. The dog barks.")])
    >>> aligner.locate("The quick  fox").match, aligner.locate("the QUICK fox").spans
    ('whitespace', (Span(start=0, end=13),))
    >>> aligner.locate("The quikc fox naps. The dog barks.")
    Retrieved(document_id='fox.txt', spans=(Span(start=0, end=34),), score=0.0,
        text='The quikc fox naps. The dog barks.', parts=(), match='fuzzy', certainty=0.925...)
    """

    def __init__(self, documents: Iterable[Document], *, similarity: float | None = 0.8) -> None:
        if similarity is not None and not 0.5 < similarity <= 1:
            raise OptionError(
                f"similarity is over 0.5 to 1, or None to seek no resemblance, got {similarity!r}"
            )
        self.similarity = similarity
        self._documents = list(documents)
        self._numbers = {document.id: number for number, document in enumerate(self._documents)}
        if len(self._numbers) < len(self._documents):
            raise DataError(
                "two documents share an id, so a place could not be named: make the ids unique"
            )
        self._known: dict[tuple[str, int | None], _Found] = {}

    def locate(
        self,
        text: str,
        *,
        document_id: str = "",
        spans: Iterable[Span | tuple[int, int]] = (),
        score: float = 0.0,
    ) -> Retrieved:
        """Locate a retrieved text; without a place it has no spans, and `match` is "unlocated".

        Given `spans` are used if they hold the text (white space and spelling aside) or most of it (a context was
        added), or if the text is empty. Otherwise the text is searched, in `document_id` alone if it is known. Of
        several equally good places the one nearest to `spans` is taken, else the first, and `match` is "ambiguous".
        """
        number = self._numbers.get(document_id)
        offered: tuple[Span, ...] = ()
        if number is not None:
            source = self._documents[number].text
            with suppress(DataError, TypeError):
                offered = tuple(span if isinstance(span, Span) else Span(*span) for span in spans)
            if any(span.end > len(source) for span in offered):
                offered = ()
            if offered and self._hold(source, offered, text):
                return Retrieved(document_id, offered, score, text, match="spans")
        matches = self._search(text, number)
        if not matches.places:
            return Retrieved("", (), score, text, match="unlocated", certainty=0.0)
        place = matches.places[0]
        if offered:
            place = min(matches.places, key=lambda option: abs(option[1].start - offered[0].start))
        return self._retrieved(text, matches, place, len(matches.places), score)

    def locate_in_order(self, texts: Sequence[str], *, document_id: str) -> list[Retrieved]:
        """Locate the pieces of one document that come in its own order, such as all its chunks.

        A repeated text gets the place that fits its neighbours: each piece begins after the one before, with the usual
        gap (or overlap). With one best place `match` is "order"; else "ambiguous", and the equally good places share
        the certainty. Raises `DataError`: no such document.

        >>> aligner = Aligner([Document("log", "ok. One fell. ok. Two fell. ok.")])
        >>> found = aligner.locate_in_order(["One fell.", "ok.", "Two fell."], document_id="log")
        >>> [(piece.spans[0].start, piece.match) for piece in found]
        [(4, 'exact'), (14, 'order'), (18, 'exact')]
        """
        if document_id not in self._numbers:
            raise DataError(
                f"there is no document {document_id!r} among the {len(self._documents)} to find text in"
            )
        matches = [self._search(text, self._numbers[document_id]) for text in texts]
        spans = {id(match): [span for _, span in match.places] for match in matches}
        choices = choose_in_order(
            [spans[id(match)] for match in matches], [len(text) for text in texts]
        )
        located = []
        for text, match, choice in zip(texts, matches, choices, strict=True):
            if choice is None:
                located.append(Retrieved("", (), 0.0, text, match="unlocated", certainty=0.0))
                continue
            place, equals = choice
            sure = match._replace(match="order") if len(match.places) > 1 and equals == 1 else match
            located.append(self._retrieved(text, sure, match.places[place], equals, 0.0))
        return located

    def _retrieved(
        self, text: str, located: _Found, place: _Place, equals: int, score: float
    ) -> Retrieved:
        owner, span = place
        match: MatchKind = "ambiguous" if equals > 1 else located.match
        return Retrieved(
            self._documents[owner].id,
            (span,),
            score,
            text,
            match=match,
            certainty=located.similarity / equals,
        )

    def _hold(self, source: str, spans: Sequence[Span], text: str) -> bool:
        held = "".join(span.slice(source) for span in spans)
        if not text or held == text or "".join(held.split()) == "".join(text.split()):
            return True
        inner, form = fold(held).text, fold(text)
        start = form.text.find(inner)
        if not inner or start < 0 or len(inner) < _PART * len(form.text):
            return False
        part = form.span(start, start + len(inner))
        return not (text[: part.start][-1:].isalnum() or text[part.end :][:1].isalnum())

    def _search(self, text: str, number: int | None) -> _Found:
        key = (text, number)
        if key not in self._known:
            steps = (
                step(text, number) for step in (self._verbatim, self._folded, self._resembling)
            )
            self._known[key] = next((item for item in steps if item.places), _Found([]))
        return self._known[key]

    def _verbatim(self, text: str, number: int | None) -> _Found:
        squeezed = "".join(text.split())
        if not squeezed:
            return self._blank(text, number)
        lead = len(text) - len(text.lstrip())
        loose: list[_Place] = []
        exact: list[_Place] = []
        for owner, start in self._squeezed.places(squeezed, number):
            span = self._squeezed.forms[owner].span(start, start + len(squeezed))
            begin = span.start - lead
            if begin >= 0 and self._documents[owner].text.startswith(text, begin):
                exact.append((owner, Span(begin, begin + len(text))))
            elif len(loose) < _PLACES:
                loose.append((owner, span))
            if len(exact) == _PLACES:
                break
        return _Found(exact, "exact") if exact else _Found(loose, "whitespace")

    def _blank(self, text: str, number: int | None) -> _Found:
        owners = range(len(self._documents)) if number is None else [number]
        places = (
            (owner, Span(start, start + len(text)))
            for owner in (owners if text else ())
            for start in occurrences(self._documents[owner].text, text)
        )
        return _Found(list(islice(places, _PLACES)), "exact")

    def _folded(self, text: str, number: int | None) -> _Found:
        form = fold(text)
        size = len(form.text)
        starts = islice(self._folds.places(form.text, number), _PLACES) if size else ()
        places = [
            self._widened(text, form, (0, size), owner, (start, start + size))
            for owner, start in starts
        ]
        return _Found(places, "folded")

    def _resembling(self, text: str, number: int | None) -> _Found:
        form = fold(text)
        size = len(form.text)
        if self.similarity is None or size < _RESEMBLING_FROM:
            return _Found([])
        least = max(_RESEMBLING_FROM, _PART * size)
        good = [
            item
            for item in resemblances(form.text, self._folds.texts, self._folds.index, number)
            if item.similarity >= self.similarity and item.part[1] - item.part[0] >= least
        ]
        if not good:
            return _Found([])
        first = good[0]
        alike = [item for item in good if item.matches >= _ALIKE * first.matches]
        places = [self._widened(text, form, item.part, item.owner, item.place) for item in alike]
        whole = max(first.part[0], size - first.part[1]) < _WORD
        return _Found(places, "fuzzy" if whole else "part", first.similarity)

    def _widened(
        self,
        text: str,
        form: NormalizedText,
        part: tuple[int, int],
        owner: int,
        place: tuple[int, int],
    ) -> _Place:
        source, folded = self._documents[owner].text, self._folds.forms[owner]
        span = folded.span(*place)
        before = _signs(source, folded.left_out(source, place[0]))
        behind = _signs(source, folded.left_out(source, place[1]))
        marks = next(
            (count for count, at in enumerate(behind) if not unicodedata.combining(source[at])),
            len(behind),
        )
        first = len(before) - min(len(before), len(_signs(text, form.left_out(text, part[0]))))
        last = max(marks, min(len(behind), len(_signs(text, form.left_out(text, part[1])))))
        return owner, Span([*before, span.start][first], [span.end - 1, *behind][last] + 1)

    @cached_property
    def _squeezed(self) -> Searchable:
        return Searchable(
            [document.text for document in self._documents], squeeze, window=16, stride=8
        )

    @cached_property
    def _folds(self) -> Searchable:
        # Shorter and denser windows: some must be unchanged.
        return Searchable([document.text for document in self._documents], fold, window=8, stride=4)


def _signs(text: str, between: Span | None) -> list[int]:
    return (
        [at for at in range(between.start, between.end) if not text[at].isspace()]
        if between
        else []
    )


# Resemblance: the likeliest stretches by shared windows, then aligned.

_HITS = 20_000  # shared windows examined, rarest first
_TRIED = 4  # bands of diagonals aligned
_LONGEST = 50_000  # characters; alignment takes quadratic time
_BAND = 64  # minimum diagonals between two windows of one passage
_SLACK = 16  # characters by which a region is widened
# The cost of a difference; a match gains 1. In unrelated texts about 3 letters in 10 align, which must not pay; a
# mistyped letter followed by one right letter must.
_COST = 0.8
_RUN = 16  # letters of one insertion or deletion that cost; more are free: a page footer inside a passage


class Resemblance(NamedTuple):
    """A stretch of a source, and the part of a text that it resembles; offsets are of the compared forms.

    `similarity` is matches (shared characters, in order) / columns of the alignment (matches and differences).
    """

    owner: int  # the source's number
    place: tuple[int, int]
    part: tuple[int, int]
    matches: int
    similarity: float


def resemblances(
    text: str, sources: Sequence[str], index: WindowHashes, number: int | None
) -> list[Resemblance]:
    """The likeliest stretches, most matches first, without overlaps in one source; `number`: search one source only."""
    if len(text) > _LONGEST:
        return []
    regions = _regions(text, sources, index, number)
    aligned = (_align(text, sources[owner], owner, low, high) for owner, low, high in regions)
    ranked = sorted(
        filter(None, aligned),
        key=lambda item: (-item.matches, -item.similarity, item.owner, item.place),
    )
    kept: list[Resemblance] = []
    for item in ranked:
        (start, end), same = item.place, [one.place for one in kept if one.owner == item.owner]
        if not any(start < other_end and other_start < end for other_start, other_end in same):
            kept.append(item)
    return kept


def _regions(
    text: str, sources: Sequence[str], index: WindowHashes, number: int | None
) -> Iterator[tuple[int, int, int]]:
    offsets, owners, places = index.hits(text, number, _HITS)
    if not len(offsets):
        return
    diagonals = places - offsets
    width = max(_BAND, len(text) // 4)
    bands = (diagonals + len(text)) // width  # a diagonal is at least -len(text), so never negative
    stride = int(bands.max()) + 2
    keys = owners * stride + bands
    votes = Counter(key for key, _ in set(zip(keys.tolist(), offsets.tolist(), strict=True)))
    taken: set[int] = set()
    for key in sorted(votes, key=lambda key: (-votes[key] - votes[key + 1], key)):
        if {key - 1, key + 1} & taken or len(taken) == _TRIED:
            continue
        taken.add(key)
        owner = key // stride
        held, counts = np.unique(diagonals[(keys == key) | (keys == key + 1)], return_counts=True)
        held = held[counts > 1] if (counts > 1).any() else held
        low, high = int(held.min()) - _SLACK, int(held.max()) + len(text) + _SLACK
        yield owner, max(0, low), min(len(sources[owner]), high)


def _align(text: str, source: str, owner: int, low: int, high: int) -> Resemblance | None:
    from rapidfuzz.distance import Levenshtein

    region = source[low:high]
    opcodes = list(Levenshtein.opcodes(text, region))
    score = best = 0.0
    start = matches = columns = 0
    best_part: tuple[int, int, int, int, int, int] | None = None
    for place, operation in enumerate(opcodes):
        size = max(
            operation.src_end - operation.src_start, operation.dest_end - operation.dest_start
        )
        equal = operation.tag == "equal"
        if score <= 0:
            score, start, matches, columns = 0.0, place, 0, 0
        score += (
            size if equal else -_COST * (size if operation.tag == "replace" else min(size, _RUN))
        )
        columns += size
        matches += size if equal else 0
        if score > best:
            best = score
            first = opcodes[start]
            best_part = (
                first.src_start,
                operation.src_end,
                first.dest_start,
                operation.dest_end,
                matches,
                columns,
            )
    if best_part is None:
        return None
    part_start, part_end, begin, end, matches, columns = best_part
    # An equally good alignment may place the passage's first letter elsewhere.
    while part_start and begin and text[part_start - 1] == region[begin - 1]:
        part_start, begin, matches, columns = part_start - 1, begin - 1, matches + 1, columns + 1
    while part_end < len(text) and end < len(region) and text[part_end] == region[end]:
        part_end, end, matches, columns = part_end + 1, end + 1, matches + 1, columns + 1
    return Resemblance(
        owner, (low + begin, low + end), (part_start, part_end), matches, matches / columns
    )


# Order: the places that make the sequence most even.

_BACKWARDS = 10**12  # cost of a piece that does not begin after the one before: more than any gaps


def choose_in_order(
    places: Sequence[Sequence[Span]], lengths: Sequence[int]
) -> list[tuple[int, int] | None]:
    """Of each piece, the place that makes the sequence most even, and how many places are as good, itself included.

    By dynamic programming. Each piece begins after the one before, if it can. A gap costs its difference from the usual
    gap: the median between neighbours with one place each (0 if there are none, negative for overlaps). `lengths` (in
    characters) widen the gap over pieces that have no place; their choice is None. Time and memory: the number of all
    places, times a logarithm of the overlap, times the number of lengths that one piece's places have.
    """
    placed = [number for number, spans in enumerate(places) if spans]
    read = {id(place): as_ranges(place) for place in places}  # a repeated text has one list
    ranges = [read[id(places[number])] for number in placed]
    gaps = [b[0].start - a[0].end for a, b in pairwise(places) if len(a) == len(b) == 1]
    gap = int(np.median(gaps)) if gaps else 0
    jumps = [
        gap + sum(lengths[lost] + gap for lost in range(a + 1, b)) for a, b in pairwise(placed)
    ]
    until = [np.zeros(len(item), dtype=np.int64) for item in ranges[:1]]
    for step, jump in enumerate(jumps):
        until.append(_least_before(until[step], ranges[step], ranges[step + 1], jump))
    chosen: list[tuple[int, int] | None] = [None] * len(places)
    place = int(until[-1].argmin()) if placed else 0
    after = np.zeros(len(until[-1]) if placed else 0, dtype=np.int64)
    for step in reversed(range(len(placed))):
        total = until[step] + after
        chosen[placed[step]] = place, int(np.count_nonzero(total == total.min()))
        if step:
            before, here, jump = ranges[step - 1], ranges[step], jumps[step - 1]
            uneven = np.abs(here[place, 0] - before[:, 1] - jump)
            backwards = np.where(here[place, 0] > before[:, 0], 0, _BACKWARDS)
            place = int((until[step - 1] + uneven + backwards).argmin())
            # From the end: for each place before, the least of `after` and the cost of going on to a place here.
            after = _least(after, -here[:, 0], -before[:, 1] - jump, -before[:, 0])
    return chosen


_FEW = 4096  # pairs of places whose costs are quickly computed one by one
_NEVER = 2**61


def _least_before(until: Numbers, before: Ranges, after: Ranges, jump: int) -> Numbers:
    """For each place after, the least of `until` and the cost of coming from a place before."""
    shifts = (
        before[:, 1] + jump - before[:, 0]
    )  # from where a piece begins to where the next is expected
    at = after[:, 0]
    least = np.full(len(at), _NEVER)
    for shift in np.unique(shifts).tolist():
        rows = shifts == shift
        least = np.minimum(least, _least(until[rows], before[rows, 0], at - shift, at))
    return least


def _least(values: Numbers, places: Numbers, due: Numbers, here: Numbers) -> Numbers:
    """For each of `due`, the least of ``values + |places - due|``, and `_BACKWARDS` more for places from `here` on."""
    if len(places) * len(due) <= _FEW:
        late = np.where(places[:, None] >= here, _BACKWARDS, 0)
        return np.asarray((values[:, None] + np.abs(places[:, None] - due) + late).min(axis=0))
    order = np.argsort(places, kind="stable")
    places, values = places[order], values[order]
    early, late = values - places, values + places
    due_at, last = np.searchsorted(places, due), np.searchsorted(places, here)
    low, high = np.minimum(due_at, last), np.maximum(due_at, last)
    first = np.concatenate(([_NEVER], np.minimum.accumulate(early)))[low] + due
    end = (
        np.concatenate((np.minimum.accumulate(late[::-1])[::-1], [_NEVER]))[high] - due + _BACKWARDS
    )
    forward = _range_least(late, due_at, last) - due
    backward = _range_least(early, last, due_at) + due + _BACKWARDS
    return np.asarray(np.minimum.reduce((first, end, forward, backward)))


def _range_least(values: Numbers, first: Numbers, after: Numbers) -> Numbers:
    """The least value of each range of places; `_NEVER` of an empty one. Widths take a logarithm of passes."""
    widths = after - first
    least = np.full(len(first), _NEVER)
    size = 1
    while True:
        # `values` holds the least of `size` neighbours; two of these cover a range of up to twice as many.
        some = np.flatnonzero((widths >= size) & (widths < 2 * size))
        least[some] = np.minimum(values[first[some]], values[after[some] - size])
        if not (widths >= 2 * size).any():
            return least
        values = np.minimum(values[:-size], values[size:])
        size *= 2
