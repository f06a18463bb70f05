"""Where a question's evidence stands: offsets are verified, excerpts are searched, nothing is guessed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from operator import attrgetter
from typing import Any

from chunkcore.document import Document, Span
from chunkcore.errors import DataError
from chunkcore.evaluation.alignment import Aligner
from chunkcore.evaluation.benchmark import Evidence
from chunkcore.evaluation.window_index import WindowIndex
from chunkcore.lazy import Mapped

__all__ = ["EvidenceError", "EvidenceFinder", "document_name"]

_COUNTED = 1000  # occurrences of an excerpt beyond these are not told apart
_NAMED = 3  # occurrences that a message names
_READ = 50  # excerpts for which all documents are read; for more, an index pays
_WINDOW = _STRIDE = 16  # characters; the index takes a byte a character of the documents
_HINTS = 200  # excerpts that are not found and are searched for in other spellings, which takes a while each


class EvidenceError(DataError):
    """Evidence that is not there, or is there more than once; the reason why a question is left out."""


class EvidenceFinder:
    """Turns what a benchmark file says about evidence into spans.

    >>> finder = EvidenceFinder([Document("fox.txt", "The fox naps. The dog naps.")])
    >>> finder.find("The dog")
    Evidence(document_id='fox.txt', span=Span(start=14, end=21))
    >>> finder.find({"text": "naps", "occurrence": 2}).span
    Span(start=22, end=26)
    """

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = {document.id: document for document in documents}
        self._listed = list(self._documents.values())
        self._hints = _HINTS
        self._sought = 0

    def find(self, entry: Any, document_id: str = "") -> Evidence:
        """The span of one entry.

        Args:
            entry: a verbatim excerpt; or an object with ``start`` and ``end`` (and ``text``, which must
                then be what stands there); or one with ``text`` (and ``occurrence``, from 1, where the
                excerpt stands several times); or one whose ``whole`` is true, for all of a document. An object may
                name its ``document`` or ``document_id``.
            document_id: of the question, for entries that name none; "" for all documents.

        Raises:
            EvidenceError: no such place, or more than one.
        """
        if isinstance(entry, str):
            return self._excerpt(entry, self._chosen(document_id), None)
        if not isinstance(entry, Mapping):
            raise EvidenceError(
                f"evidence is an excerpt or an object with start and end or text, got {type(entry).__name__}"
            )
        chosen = self._chosen(document_name(entry.get("document_id", entry.get("document", document_id))))
        if entry.get("start") is not None or entry.get("end") is not None:
            return self._offsets(entry, chosen)
        if entry.get("whole") is True:
            return self._whole(chosen)
        if isinstance(entry.get("text"), str):
            return self._excerpt(entry["text"], chosen, entry.get("occurrence"))
        raise EvidenceError(f"evidence needs start and end, or text, got {', '.join(map(repr, entry)) or 'nothing'}")

    def _chosen(self, document_id: str) -> Sequence[Document]:
        if not document_id:
            return self._listed
        if document_id not in self._documents:
            raise EvidenceError(f"its document {document_id!r} is not among the {len(self._documents)} documents")
        return [self._documents[document_id]]

    def _whole(self, chosen: Sequence[Document]) -> Evidence:
        if len(chosen) != 1:
            raise EvidenceError("a whole document as evidence must be named, and this names none")
        if not chosen[0].text:
            raise EvidenceError(f"its document {chosen[0].id!r} is empty")
        return Evidence(chosen[0].id, Span(0, len(chosen[0].text)))

    def _offsets(self, entry: Mapping[str, Any], chosen: Sequence[Document]) -> Evidence:
        if len(chosen) != 1:
            raise EvidenceError("evidence with offsets must name its document, and this names none")
        document = chosen[0]
        try:
            span = Span(entry.get("start"), entry.get("end"))  # type: ignore[arg-type]
        except DataError as error:
            raise EvidenceError(str(error)) from error
        if span.end > len(document.text):
            raise EvidenceError(f"evidence ends at {span.end}, its document {document.id!r} at {len(document.text)}")
        expected = entry.get("text")
        seen = span.slice(document.text)
        if expected is not None and expected != seen:
            raise EvidenceError(
                f"at {span.start}-{span.end} of {document.id!r} stands {_short(seen)}, not {_short(expected)}"
            )
        return Evidence(document.id, span)

    def _excerpt(self, text: str, chosen: Sequence[Document], occurrence: Any) -> Evidence:
        if not text.strip():
            raise EvidenceError("an excerpt is blank")
        if occurrence is not None and (type(occurrence) is not int or occurrence < 1):
            raise EvidenceError(f"occurrence counts from 1, got {occurrence!r}")
        places = list(islice(_places(text, chosen) if len(chosen) == 1 else self._anywhere(text), _COUNTED))
        if not places:
            raise EvidenceError(f"the excerpt {_short(text)} is not found {_where(chosen)}{self._hint(text, chosen)}")
        if occurrence is None and len(places) > 1:
            named = ", ".join(f"{document.id!r} at {start}" for document, start in places[:_NAMED])
            more = ", ..." if len(places) > _NAMED else ""
            raise EvidenceError(
                f"the excerpt {_short(text)} occurs {_times(len(places))} ({named}{more}): "
                "give occurrence, or start and end"
            )
        if occurrence is not None and occurrence > len(places):
            raise EvidenceError(
                f"the excerpt {_short(text)} occurs {_times(len(places))} {_where(chosen)}, not {occurrence} times"
            )
        document, start = places[(occurrence or 1) - 1]
        return Evidence(document.id, Span(start, start + len(text)))

    def _anywhere(self, text: str) -> Iterator[tuple[Document, int]]:
        """`_places` in all documents. Ten thousand excerpts in a gigabyte would take hours without an index."""
        self._sought += 1
        if self._sought <= _READ or len(text) < _WINDOW + _STRIDE - 1:
            return _places(text, self._listed)
        found = ((self._listed[owner], start) for owner, start in self._index.candidates(text, None))
        return ((document, start) for document, start in found if document.text.startswith(text, start))

    @cached_property
    def _index(self) -> WindowIndex:
        return WindowIndex(Mapped(attrgetter("text"), self._listed), window=_WINDOW, stride=_STRIDE)

    def _hint(self, text: str, chosen: Sequence[Document]) -> str:
        if not self._hints:
            return ""
        self._hints -= 1
        only = chosen[0].id if len(chosen) == 1 else ""
        found = self._aligner.locate(text, document_id=only)
        if not found.spans:
            return ""
        span = found.spans[0]
        place = f"in {found.document_id!r} at {span.start}-{span.end}"
        if found.how in ("fuzzy", "part"):
            return f"; what resembles it most (certainty {found.certainty:.2f}) stands {place}"
        return f"; with other white space or spelling it stands {place}"

    @cached_property
    def _aligner(self) -> Aligner:
        return Aligner(self._documents.values())


def document_name(given: Any) -> str:
    """The id of a document as a question or its evidence names it; a number is the id that it spells, as in a
    ``documents.jsonl``.

    Raises:
        EvidenceError: it is neither a string nor a whole number.

    >>> document_name("fox.txt"), document_name(7)
    ('fox.txt', '7')
    """
    if isinstance(given, str):
        return given
    if type(given) is not int:
        raise EvidenceError(f"a document is named with a string or a whole number, got {given!r}")
    return str(given)


def _places(text: str, documents: Sequence[Document]) -> Iterator[tuple[Document, int]]:
    """Every place at which the text stands, overlapping ones included, in order."""
    for document in documents:
        start = document.text.find(text)
        while start >= 0:
            yield document, start
            start = document.text.find(text, start + 1)


def _where(chosen: Sequence[Document]) -> str:
    return f"in {chosen[0].id!r}" if len(chosen) == 1 else f"in any of the {len(chosen)} documents"


def _times(count: int) -> str:
    if count == 1:
        return "once"
    return f"{count} times" if count < _COUNTED else f"{count} times or more"


def _short(text: Any, limit: int = 60) -> str:
    shown = repr(text)
    return shown if len(shown) <= limit else f"{shown[: limit - 4]}...{shown[0]}"
