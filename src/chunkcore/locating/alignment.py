"""`Aligner`: locates retrieved text in the documents, by its spans or else by the text.

The search loosens step by step: verbatim; without white space; letters and digits only; by resemblance.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property, partial
from itertools import islice, pairwise, takewhile
from os.path import commonprefix
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from chunkcore.errors import DataError
from chunkcore.locating.text_search import (
    NormalizedText,
    Searchable,
    cuts_words,
    fold,
    occurrences,
    squeeze,
    without_tags,
    wording,
)
from chunkcore.options import check_number
from chunkcore.run import MatchKind, Retrieved
from chunkcore.spans import Numbers, Range, Ranges, as_ranges
from chunkcore.text import Document, Span

if TYPE_CHECKING:
    from rapidfuzz.distance import Opcode

_PLACES = 1000  # places of one text are counted up to this
_RESEMBLING_FROM = 24  # letters and digits; shorter texts resemble too much
_WORD = 8  # missing letters and digits at an end beyond this are no typing errors: only a part was found
_PART = 0.5  # the least part of a text that counts as found
_ALIKE = 0.98  # of the most matches: places with this share count as equally good

_Place = tuple[int, Span]


class _Found(NamedTuple):
    places: Sequence[_Place] = ()
    match: MatchKind = "unlocated"
    similarity: float = 1.0


class Aligner:
    """Finds retrieved text in a benchmark's documents.

    `Retrieved.match` is the first kind of match that succeeds; docs/reference/alignment.md lists them.
    `Retrieved.certainty` is the similarity / the number of equally good places. The similarity is of the letters and
    digits for "fuzzy" and "part": matching characters / columns of the alignment. For "whitespace" and "folded" it is 1
    unless white space or signs within words differ, as of "x-1" and "x+1".

    Indexes are built on first use: about 7 bytes a character and 1 s per 10 MB, three times that for changed letters.

    Args:
        similarity: the least for a match, 0.5 to 1; None for no resemblance.

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
        if similarity is not None:
            check_number("similarity", similarity, _PART, 1, whole=False)
        self.similarity = similarity
        listed = list(documents)
        self._texts = [document.text for document in listed]
        self._names = [document.id for document in listed]
        self._numbers = {name: number for number, name in enumerate(self._names)}
        if len(self._numbers) < len(listed):
            raise DataError(
                "two documents share an id, so a place could not be named: make the ids unique"
            )
        self._search = cache(self._first)

    def locate(
        self, text: str, *, document_id: str = "", spans: Iterable[Span] = (), score: float = 0.0
    ) -> Retrieved:
        """Locate a retrieved text; without a place it has no spans, and `match` is "unlocated".

        Given `spans` are used if they hold the text (white space and spelling aside), or all of it but a context that
        was added, or if the text is empty. Otherwise the text is searched, in `document_id` alone if it is known. Of
        several equally good places the one nearest to `spans` is taken, else the first, and `match` is "ambiguous".
        """
        number = self._numbers.get(document_id)
        source = "" if number is None else self._texts[number]
        offered = tuple(spans)
        if len(offered) == 1:
            offered = _behind_context(source, offered[0].start, text) or offered
        if any(span.end > len(source) for span in offered):
            offered = ()
        if offered and _holds(source, offered, text):
            return Retrieved(document_id, offered, score, text, match="spans")
        matches = self._search(text, number)
        places = matches.places
        if not places:
            return unlocated(text, score)
        place = places[0]
        if offered:
            place = min(places, key=lambda option: abs(option[1].start - offered[0].start))
        return self._retrieved(text, matches, place, len(places), score)

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
                f"there is no document {document_id!r} among the {len(self._texts)} to find text in"
            )
        matches = [self._search(text, self._numbers[document_id]) for text in texts]
        places = [as_ranges(span for _, span in match.places) for match in matches]
        located = list(map(unlocated, texts))
        for number, place, equals in choose_in_order(places, list(map(len, texts))):
            match = matches[number]
            if len(match.places) > 1 and equals == 1:
                match = match._replace(match="order")
            best = match.places[place]
            located[number] = self._retrieved(texts[number], match, best, equals, 0.0)
        return located

    def _retrieved(
        self, text: str, located: _Found, place: _Place, equals: int, score: float
    ) -> Retrieved:
        owner, span = place
        match: MatchKind = "ambiguous" if equals > 1 else located.match
        certainty = located.similarity / equals
        return Retrieved(self._names[owner], (span,), score, text, match=match, certainty=certainty)

    def _by_steps(self, text: str, number: int | None = None) -> Iterator[_Found]:
        """What the searches find, each looser than the one before."""
        for step in (self._verbatim, self._folded, self._resembling):
            yield step(text, number)

    def _first(self, text: str, number: int | None) -> _Found:
        return next((found for found in self._by_steps(text, number) if found.places), _Found())

    def _verbatim(self, text: str, number: int | None) -> _Found:
        squeezed = "".join(text.split())
        loose: list[_Place] = []
        exact: list[_Place] = []
        if not squeezed:
            for owner, source in enumerate(self._texts):
                if text and number in (None, owner):
                    starts = islice(occurrences(source, text), _PLACES - len(exact))
                    exact += [(owner, Span(start, start + len(text))) for start in starts]
            return _Found(exact, "exact")
        lead = len(text) - len(text.lstrip())
        for owner, start in self._squeezed.places(squeezed, number):
            span = self._squeezed.forms[owner].span(start, start + len(squeezed))
            begin = span.start - lead
            if begin >= 0 and self._texts[owner].startswith(text, begin):
                exact.append((owner, Span(begin, begin + len(text))))
            elif len(loose) < _PLACES:
                loose.append((owner, span))
            if len(exact) == _PLACES:
                break
        return _Found(exact, "exact") if exact else self._likest(text, loose, "whitespace")

    def _folded(self, text: str, number: int | None) -> _Found:
        form = fold(text)
        if not form.text:
            return _Found()
        size = len(form.text)
        places = [
            self._widened(text, form, (0, size), owner, (start, start + size))
            for owner, start in islice(self._folds.places(form.text, number), _PLACES)
        ]
        return self._likest(text, places, "folded")

    def _likest(self, text: str, places: list[_Place], match: MatchKind) -> _Found:
        """The places whose words are most like the text's."""
        from rapidfuzz.distance import Levenshtein

        held = [span.slice(self._texts[owner]) for owner, span in places]
        # 1 for the same words, else the share of their characters that match.
        likeness = partial(Levenshtein.normalized_similarity, wording(text))
        alike = {part: likeness(wording(part)) for part in set(held)}
        most = max(alike.values(), default=1.0)
        likest = [place for place, part in zip(places, held, strict=True) if alike[part] == most]
        return _Found(likest, match, most)

    def _resembling(self, text: str, number: int | None) -> _Found:
        form = fold(text)
        size = len(form.text)
        if self.similarity is None or not _RESEMBLING_FROM <= size <= _LONGEST:
            return _Found()
        least = max(_RESEMBLING_FROM, _PART * size)
        likely = [
            item
            for item in _resemblances(form.text, self._folds, number)
            if item.part[1] - item.part[0] >= least and item.similarity >= self.similarity
        ]
        if not likely:
            return _Found()
        best = likely[0]
        places = [
            self._widened(text, form, item.part, item.owner, item.place)
            for item in likely
            if item.matches >= _ALIKE * best.matches
        ]
        is_whole = max(best.part[0], size - best.part[1]) < _WORD
        match: MatchKind = "fuzzy" if is_whole else "part"
        return _Found(places, match, best.similarity)

    def _widened(
        self, text: str, form: NormalizedText, part: Range, owner: int, place: Range
    ) -> _Place:
        """The place in the source, with as many signs at its ends as the text has there."""
        source = self._texts[owner]
        folded = self._folds.forms[owner]
        span = folded.span(*place)
        leading, trailing = (form.signs_before(end, text) for end in part)
        if part[0]:  # a context stands before it; its last word keeps its full stop
            word_end = int(form.origins[part[0] - 1]) + 1
            leading = [at for number, at in enumerate(leading) if at - number > word_end]
        before, behind = (folded.signs_before(end, source) for end in place)
        # Accents belong to the last letter.
        accents = list(takewhile(lambda at: unicodedata.combining(source[at]), behind))
        taken = [*before[::-1][: len(leading)], *behind[: max(len(accents), len(trailing))]]
        first, last = min([span.start, *taken]), max([span.end - 1, *taken])
        return owner, Span(first, last + 1)

    @cached_property
    def _squeezed(self) -> Searchable:
        return Searchable(self._texts, squeeze, window=16, stride=8)

    @cached_property
    def _folds(self) -> Searchable:
        # Shorter and denser windows: some must be unchanged.
        return Searchable(self._texts, fold, window=8, stride=4)


def unlocated(text: str, score: float = 0.0) -> Retrieved:
    """A text without a place."""
    return Retrieved("", (), score, text, match="unlocated", certainty=0.0)


def _holds(source: str, spans: Sequence[Span], text: str) -> bool:
    """Whether the spans hold the text, or all of it but a context, which is not beside them."""
    held = "".join(span.slice(source) for span in spans)
    if not text or "".join(held.split()) == "".join(text.split()):
        return True
    inner, form = fold(held).text, fold(text)
    if inner != form.text and text.strip() in source:  # elsewhere, and without a context
        return False
    least = min(_RESEMBLING_FROM, _PART * len(form.text))
    if not inner or inner not in form.text or len(inner) < least:
        return False
    before, _, behind = form.text.partition(inner)
    part = form.span(len(before), len(before) + len(inner))
    if cuts_words(text, part) or wording(part.slice(text)) != wording(held):
        return False
    # A context stands nowhere near. The rest of a text whose place is some characters off does.
    first, last, near = spans[0].start, spans[-1].end, 2 * len(text)
    leading = fold(source[max(0, first - near) : first]).text
    trailing = fold(source[last : last + near]).text
    goes_on = behind and trailing.startswith(behind)
    return not (goes_on or (before and leading.endswith(before)))


def _behind_context(source: str, start: int, text: str) -> tuple[Span, ...]:
    """The place from `start` on of the end of a text, which has a context before it; () if there is no such place."""
    begin = text.find(source[start : start + _RESEMBLING_FROM])
    rest = text[begin:].rstrip()
    if begin < 1 or not rest or not source.startswith(rest, start):
        return ()
    return (Span(start, start + len(rest)),)


_QUOTED = 0.9  # of a resemblance: most words have to be the same


class Quote(NamedTuple):
    """Where words stand in a text; `certainty` is 1 where the words are the same, whatever their case and accents."""

    span: Span
    certainty: float = 1.0


def find_quote(text: str, words: str) -> Quote | None:
    """The likest place of the words in the text, by letters and digits, else by resemblance; None if there is none.

    >>> find_quote("Valves. Never open the lid.", "never <em>open</em>  the lid").span
    Span(start=8, end=26)
    """
    aligner = Aligner([Document("text", text)], similarity=_QUOTED)
    for written in (words, without_tags(words)):
        letters = len(fold(written).text)
        for matches in aligner._by_steps(written):
            for _, span in matches.places:
                # A short text is within other words by chance.
                is_quote = letters >= _RESEMBLING_FROM or not cuts_words(text, span)
                if letters and is_quote and matches.match != "part":
                    return Quote(span, matches.similarity)
    return None


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
    place: Range
    part: Range
    matches: int
    similarity: float


def _resemblances(text: str, sources: Searchable, number: int | None) -> list[Resemblance]:
    """The likeliest stretches, most matches first, without overlaps in one source; `number`: search one source only."""
    regions = _regions(text, sources, number)
    tried = [_align(text, sources.texts[owner], owner, low, high) for owner, low, high in regions]
    aligned = filter(None, tried)
    kept: list[Resemblance] = []
    for item in sorted(
        aligned, key=lambda item: (-item.matches, -item.similarity, item.owner, item.place)
    ):
        start, end = item.place
        others = [other.place for other in kept if other.owner == item.owner]
        if all(other_end <= start or end <= other_start for other_start, other_end in others):
            kept.append(item)
    return kept


def _regions(text: str, sources: Searchable, number: int | None) -> Iterator[tuple[int, int, int]]:
    """The source and the range of each stretch to align, by the bands of diagonals with most shared windows."""
    offsets, owners, places = sources.hits(text, number, _HITS)
    diagonals = places - offsets
    width = max(_BAND, len(text) // 4)
    bands = (diagonals + len(text)) // width  # a diagonal is at least -len(text), so never negative
    stride = int(bands.max(initial=0)) + 2
    keys = owners * stride + bands
    pairs = set(zip(keys.tolist(), offsets.tolist(), strict=True))
    votes = Counter(key for key, _ in pairs)
    taken: set[int] = set()
    for key in sorted(votes, key=lambda key: (-votes[key] - votes[key + 1], key)):
        if len(taken) == _TRIED:
            return
        if key - 1 in taken or key + 1 in taken:
            continue
        taken.add(key)
        in_band = (keys == key) | (keys == key + 1)
        held, counts = np.unique(diagonals[in_band], return_counts=True)
        repeated = held[counts > 1]
        if len(repeated):
            held = repeated
        owner = key // stride
        low = int(held[0]) - _SLACK
        high = int(held[-1]) + len(text) + _SLACK
        yield owner, max(0, low), min(len(sources.texts[owner]), high)


def _align(text: str, source: str, owner: int, low: int, high: int) -> Resemblance | None:
    from rapidfuzz.distance import Levenshtein

    region = source[low:high]
    stretch = _best_stretch(Levenshtein.opcodes(text, region))
    if stretch is None:  # a shared window at other offsets costs more than to replace all
        return None
    first, last, matches, columns = stretch
    # An equally good alignment may place the passage's first letter elsewhere.
    heads = text[: first.src_start][::-1], region[: first.dest_start][::-1]
    before = len(commonprefix(heads))  # noqa: RUF071  # characters are meant
    behind = len(commonprefix([text[last.src_end :], region[last.dest_end :]]))  # noqa: RUF071
    matches += before + behind
    similarity = matches / (columns + before + behind)
    place = (low + first.dest_start - before, low + last.dest_end + behind)
    part = (first.src_start - before, last.src_end + behind)
    return Resemblance(owner, place, part, matches, similarity)


def _best_stretch(opcodes: Iterable[Opcode]) -> tuple[Opcode, Opcode, int, int] | None:
    """The first and the last operation of the run that gains most; its matches and its columns."""
    best = None
    best_score = score = 0.0
    for operation in opcodes:
        source_size = operation.src_end - operation.src_start
        size = max(source_size, operation.dest_end - operation.dest_start)
        if score <= 0:
            first, score = operation, 0.0
            matches = columns = 0
        columns += size
        if operation.tag == "equal":
            score += size
            matches += size
        elif operation.tag == "replace":
            score -= _COST * size
        else:
            score -= _COST * min(size, _RUN)
        if score > best_score:
            best_score = score
            best = (first, operation, matches, columns)
    return best


# Order: the places that make the sequence most even.

_BACKWARDS = 10**12  # cost of a piece that does not begin after the one before: more than any gaps


def choose_in_order(
    places: Sequence[Ranges], lengths: Sequence[int]
) -> Iterator[tuple[int, int, int]]:
    """Each piece with places: its number, the place that makes the sequence most even, and how many are as good.

    By dynamic programming. Each piece begins after the one before, if it can. A gap costs its difference from the usual
    gap: the median between neighbours with one place each (0 if there are none, negative for overlaps). `lengths` (in
    characters) widen the gap over pieces that have no place. Memory: the number of all places.
    Time: that, times the places that overlap one, times the number of lengths that one piece's places have.
    """
    placed = [number for number, ranges in enumerate(places) if len(ranges)]
    if not placed:
        return
    ranges = [places[number] for number in placed]
    jumps = _jumps(places, lengths, placed)
    until = [np.zeros(len(ranges[0]), np.int64)]
    for (before, here), jump in zip(pairwise(ranges), jumps, strict=True):
        until.append(_least_before(until[-1], before, here, jump))
    place = int(until[-1].argmin())
    after = np.zeros(len(until[-1]), np.int64)
    for step in reversed(range(len(placed))):
        total = until[step] + after
        yield placed[step], place, int(np.count_nonzero(total == total.min()))
        if step:
            before, here, jump = ranges[step - 1], ranges[step], jumps[step - 1]
            uneven = np.abs(here[place, 0] - before[:, 1] - jump)
            backwards = np.where(here[place, 0] > before[:, 0], 0, _BACKWARDS)
            place = int((until[step - 1] + uneven + backwards).argmin())
            # From the end: for each place before, the least of `after` and the cost of going on to a place here.
            after = _least(after, -here[:, 0], -before[:, 1] - jump, -before[:, 0])


def _jumps(places: Sequence[Ranges], lengths: Sequence[int], placed: Sequence[int]) -> list[int]:
    """The usual gap between neighbours that have places, wider over pieces without one."""
    gaps = [
        here[0, 0] - before[0, 1]
        for before, here in pairwise(places)
        if len(before) == len(here) == 1
    ]
    gap = int(np.median(gaps or [0]))
    return [
        gap * (second - first) + sum(lengths[first + 1 : second])
        for first, second in pairwise(placed)
    ]


_NEVER = 2**61


def _least_before(until: Numbers, before: Ranges, after: Ranges, jump: int) -> Numbers:
    """For each place after, the least of `until` and the cost of coming from a place before."""
    # From where a piece begins to where the next is expected.
    shifts = before[:, 1] + jump - before[:, 0]
    at = after[:, 0]
    least = np.full(len(at), _NEVER)
    for shift in np.unique(shifts).tolist():
        rows = shifts == shift
        least = np.minimum(least, _least(until[rows], before[rows, 0], at - shift, at))
    return least


def _least(values: Numbers, places: Numbers, due: Numbers, here: Numbers) -> Numbers:
    """For each of `due`, the least of ``values + |places - due|``, and `_BACKWARDS` more for places from `here` on."""
    order = np.argsort(places, kind="stable")
    places, values = places[order], values[order]
    early, late = values - places, values + places
    due_at = np.searchsorted(places, due)
    last = np.searchsorted(places, here)
    least_up_to = np.append(_NEVER, np.minimum.accumulate(early))
    least_from = np.append(np.minimum.accumulate(late[::-1])[::-1], _NEVER)
    first = least_up_to[np.minimum(due_at, last)] + due
    ends = np.column_stack((due_at, last)).reshape(-1)
    between = np.minimum.reduceat(np.append(late, _NEVER), ends)[::2] - due
    forward = np.where(due_at < last, between, _NEVER)
    anywhere = np.minimum(least_up_to[due_at] + due, least_from[due_at] - due) + _BACKWARDS
    return np.asarray(np.minimum.reduce((first, forward, anywhere)))
