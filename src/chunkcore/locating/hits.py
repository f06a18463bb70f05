"""`Locator`: where a hit of any retriever stands in the documents.

A hit comes with the names and the place that its metadata state, and with its text. The verdict is about that hit
alone: it does not depend on earlier hits. That a document has changed, only its own source can say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import PurePath
from typing import Any, Literal

from chunkcore.locating.alignment import Aligner, unlocated
from chunkcore.locating.names import DocumentNames
from chunkcore.locating.stated import NO_PLACE, StatedPlace, spans_between
from chunkcore.locating.text_search import cuts_words, occurrences, squeeze, wording
from chunkcore.run import Retrieved
from chunkcore.text import Document, Span, text_of_spans

_ALIGNERS = 100  # documents whose texts are kept ready for a search; up to 20 bytes a character
_SHORTEST = 24  # characters: shorter texts without a name are in many documents by chance

VerdictKind = Literal["placed", "changed", "ambiguous", "elsewhere"]
Reason = Literal[
    "",
    "its document has changed since it was indexed",
    "another text stands at its stated place",
    "its stated place cannot be read",
    "its splitter searched for its place, and its text stands several times",
    "its text stands several times",
    "several documents of its name have its text",
    "its document does not have its text",
    "it names another file",
    "no document has its text",
    "it has no text",
]


@dataclass(frozen=True, slots=True)
class Hit:
    """One result of a retriever.

    Attributes:
        text: the source text, without anything that a framework wrote around it.
        score: the retriever's score, higher is better; 0 if there is none. Hits count by their order.
        names: candidate names of the source document, the most telling first.
        stated: the place that the metadata state.
        derived: whether a model wrote the text; `stated` is then the passage it was written from.
        document: the document that `stated` refers to; "" if nothing names it.
        metadata: the framework's.
        id: the chunk's own in its store; "" if it has none.
    """

    text: str
    score: float = 0.0
    names: tuple[str, ...] = ()
    stated: StatedPlace = NO_PLACE
    derived: bool = False
    document: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict, compare=False)
    id: str = ""

    @property
    def spans(self) -> tuple[Span, ...]:
        return self.stated.spans


def score_of(value: object) -> float:
    """A hit's score as a finite float; 0 for anything else, as hits count by their order.

    >>> score_of("0.5"), score_of(float("nan")), score_of(None)
    (0.5, 0.0, 0.0)
    """
    try:
        score = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return score if math.isfinite(score) else 0.0


def names_of(*candidates: object) -> tuple[str, ...]:
    """The non-empty strings among the candidates, each once."""
    names = [name for name in candidates if isinstance(name, str) and name]
    return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class Verdict:
    """Where a hit stands.

    Attributes:
        kind: "placed"; "ambiguous", it may stand at several places, of which `piece` has the likeliest, or none if
            they are in several documents; "changed", its document's source has another text now; "elsewhere", it is in
            none of the documents.
        piece: the hit with its place; without spans if it is not placed.
        reason: why it is not placed, or why it does not stand where it says; "" if all is well.
        document: the document of these that the hit names first; "" if none.
    """

    kind: VerdictKind
    piece: Retrieved
    reason: Reason = ""
    document: str = ""

    @property
    def is_placed(self) -> bool:
        return bool(self.piece.spans)


class Locator:
    """Finds hits in documents: by the places that they state where these hold their text, else by their text.

    A hit belongs to a document that it names. A hit that names no document of these belongs to the only one with its
    text, unless it names another file. Of several documents of one name, the text decides.

    Args:
        documents: by id.
        lenient: for scores, which show no text: the name of a file is enough, whatever its folders; a text that
            resembles the hit's counts; and a hit that is not in its own document is sought in all.
        changed: of the ids of documents, those whose source has another text now.

    >>> tea = Document("tea.md", "Tea is hot. Ice is cold. Tea is hot.")
    >>> locator = Locator({"tea.md": tea})
    >>> verdict = locator.locate(Hit("Ice is cold.", names=("/srv/tea.md",)))
    >>> verdict.kind, verdict.piece.spans
    ('placed', (Span(start=12, end=24),))
    >>> locator.locate(Hit("Tea is hot.", names=("tea.md",))).reason
    'its text stands several times'
    """

    def __init__(
        self,
        documents: Mapping[str, Document],
        *,
        lenient: bool = False,
        changed: Callable[[Iterable[str]], Collection[str]] = lambda names: (),
    ) -> None:
        self._documents = documents
        self._lenient = lenient
        self._changed = changed
        self._aligner = lru_cache(_ALIGNERS)(self._new_aligner)

    def locate(self, hit: Hit) -> Verdict:
        """The verdict on one hit."""
        return self.locate_all([hit])[0]

    def locate_all(self, hits: Sequence[Hit]) -> list[Verdict]:
        """The verdicts on the hits of one answer.

        Some stores write their own address over the name of each hit. Where all hits have one name, and their texts
        stand in several documents, it names none of them.
        """
        verdicts = [self._verdict(hit) for hit in hits]
        if len(hits) > 1:
            verdicts = self._without_shared_names(hits, verdicts)
        changed = self._changed(_documents_of(verdicts))
        for number, verdict in enumerate(verdicts):
            if verdict.piece.document_id in changed:
                reason: Reason = "its document has changed since it was indexed"
                verdicts[number] = Verdict("changed", unplaced(hits[number]), reason)
        return verdicts

    def _without_shared_names(self, hits: Sequence[Hit], verdicts: list[Verdict]) -> list[Verdict]:
        shared = set.intersection(*[set(hit.names) for hit in hits])
        if not shared:
            return verdicts
        nameless = verdicts.copy()
        for number, hit in enumerate(hits):
            if verdicts[number].kind == "elsewhere":
                names = tuple(name for name in hit.names if name not in shared)
                nameless[number] = self._verdict(replace(hit, names=names))
        return nameless if len(_documents_of(nameless)) > 1 else verdicts

    def _verdict(self, hit: Hit) -> Verdict:
        if not hit.text.strip() and not (self._lenient and hit.spans):
            return _elsewhere(hit, "it has no text")
        groups = self._names.groups(hit.names, loosely=self._lenient)
        for group in groups:
            verdict = self._in_one_of(hit, group)
            if verdict is not None:
                return verdict
        if self._lenient or not groups:
            verdict = self._without_name(hit)
            if verdict.is_placed or not groups:
                return verdict
        verdict = _elsewhere(hit, "its document does not have its text")
        return replace(verdict, document=groups[0][0])

    def _without_name(self, hit: Hit) -> Verdict:
        """The verdict on a hit that is in no document that it names."""
        if not self._lenient:
            if any(PurePath(name).suffix for name in hit.names):
                return _elsewhere(hit, "it names another file")
            if len(hit.text.strip()) < _SHORTEST:
                return _elsewhere(hit, "no document has its text")
        return self._anywhere(hit)

    def _in_one_of(self, hit: Hit, document_ids: Iterable[str]) -> Verdict | None:
        """The verdict on the hit in documents of one name; None if none of them has its text."""
        pieces = []
        for document_id in document_ids:
            piece = self._in_document(hit, document_id)
            if piece is not None:
                pieces.append(piece)
        pieces = [piece for piece in pieces if piece.match == "spans"] or pieces
        if len(pieces) < 2:
            return self._placed(hit, pieces[0]) if pieces else None
        piece = unplaced(hit)
        if self._lenient:
            certainty = pieces[0].certainty / len(pieces)
            piece = replace(pieces[0], match="ambiguous", certainty=certainty)
        return Verdict("ambiguous", piece, "several documents of its name have its text")

    def _placed(self, hit: Hit, piece: Retrieved) -> Verdict:
        reason: Reason = ""
        if hit.stated.problem:
            reason = "its stated place cannot be read"
        elif hit.spans and piece.match != "spans":
            reason = "another text stands at its stated place"
        elif hit.stated.searched and hit.text and not hit.derived and piece.match == "spans":
            source = self._documents[piece.document_id].text
            times = len(list(occurrences(source, hit.text)))
            if times > 1:
                reason = "its splitter searched for its place, and its text stands several times"
                piece = replace(piece, match="ambiguous", certainty=1 / times)
        if piece.match == "ambiguous":
            return Verdict("ambiguous", piece, reason or "its text stands several times")
        return Verdict("placed", piece, reason)

    def _anywhere(self, hit: Hit) -> Verdict:
        """By the stated place, if one document alone has the text there; else by the text alone."""
        holding = []
        for name, document in self._documents.items():
            spans = _spans_of_text(document.text, hit)
            if spans and hit.text.strip() and not hit.derived:
                holding.append(Retrieved(name, spans, hit.score, hit.text))
        if len(holding) == 1:
            return self._placed(hit, holding[0])
        piece = self._aligner("").locate(hit.text, score=hit.score)
        is_one = self._lenient or piece.match != "ambiguous"
        if is_one and self._has_text(piece):
            return self._placed(hit, piece)
        return _elsewhere(hit, "no document has its text")

    def _in_document(self, hit: Hit, document_id: str) -> Retrieved | None:
        source = self._documents[document_id].text
        spans = _spans_of_text(source, hit)
        if spans:
            return Retrieved(document_id, spans, hit.score, hit.text)
        if hit.derived or not hit.text.strip():
            return None
        starts = list(islice(occurrences(source, hit.text), 2))
        if len(starts) == 1:
            span = Span(starts[0], starts[0] + len(hit.text))
            return Retrieved(document_id, (span,), hit.score, hit.text, match="exact")
        aligner = self._aligner("" if self._lenient else document_id)
        piece = aligner.locate(hit.text, document_id=document_id, spans=hit.spans, score=hit.score)
        has_text = self._has_text(piece)
        if piece.match == "part" and not has_text:  # a context was put before it
            ending = piece.spans[-1].slice(source).rstrip()
            has_text = hit.text.rstrip().endswith(ending)
        return piece if has_text else None

    def _has_text(self, piece: Retrieved) -> bool:
        """Whether the text stands there, but for white space, case, and signs at the edges of words."""
        if self._lenient or piece.match == "spans" or not piece.spans:
            return bool(piece.spans)
        source, span = self._documents[piece.document_id].text, piece.spans[0]
        held = span.slice(source)
        is_long = len(piece.text) >= _SHORTEST
        if wording(held) == wording(piece.text):
            return is_long or held == piece.text or not cuts_words(source, span)
        # A long text is nowhere by chance, whatever white space a loader puts into words.
        return is_long and squeeze(held).text == squeeze(piece.text).text

    @cached_property
    def _names(self) -> DocumentNames:
        return DocumentNames(self._documents)

    def _new_aligner(self, document_id: str) -> Aligner:
        """The aligner of a document, or of all."""
        return Aligner([self._documents[document_id]] if document_id else self._documents.values())


def _spans_of_text(source: str, hit: Hit) -> tuple[Span, ...]:
    """The stated spans if they hold the text, character by character; of one span, its two pieces that do; else ().

    The place of a text that a model wrote, or that is empty, is all that can be believed.
    """
    stated = hit.spans
    if not stated or max(span.end for span in stated) > len(source):
        return ()
    is_believed = hit.derived or not hit.text.strip()
    if is_believed or text_of_spans(source, stated) == hit.text:
        return stated
    return spans_between(source, hit.text, stated[0]) if len(stated) == 1 else ()


def _documents_of(verdicts: Iterable[Verdict]) -> set[str]:
    return {verdict.piece.document_id for verdict in verdicts if verdict.is_placed}


def unplaced(hit: Hit) -> Retrieved:
    """A hit without a place."""
    return unlocated(hit.text, hit.score)


def _elsewhere(hit: Hit, reason: Reason) -> Verdict:
    return Verdict("elsewhere", unplaced(hit), reason)
