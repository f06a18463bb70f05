"""Where a hit of any retriever stands in the documents: `Locator`; a hit in, a verdict out.

A hit comes with the names and the place that its metadata state, and with its text. The verdict is about that hit
alone: it does not depend on earlier hits. That a document has changed, only its own source can say.

alignment.py    locates a text in the documents by its words
text_search.py  finds candidates
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property, lru_cache
from itertools import islice, zip_longest
from os.path import commonprefix
from pathlib import PurePath, PurePosixPath
from typing import Any, Literal
from urllib.parse import unquote, urlsplit
from uuid import UUID

from chunkcore.locating.alignment import Aligner, unlocated
from chunkcore.locating.text_search import cuts_words, occurrences, squeeze, wording
from chunkcore.run import MatchKind, Retrieved
from chunkcore.spans import shifted
from chunkcore.text import Document, Span, page_marks, text_of_spans

_LONGEST_NUMBER = 40  # characters: longer numbers are no places
_LARGEST_NUMBER = 2**63
_SPANS = re.compile(r"[\d\s.,;()\[\]-]+")  # "0-12,40-55" and "[[0, 12], [40.0, 55.0]]"
_WHOLE_NUMBERS = re.compile(r"\d+(?:\.0*)?")


def whole_number(value: Any) -> int | None:
    """A whole number of any type, as stores return them; None for anything else.

    Stores turn 44 into ``44.0``, ``"44"``, ``b"44"``, ``[44]``, NumPy's numbers, a `Decimal` or protobuf's ``Value``.

    >>> whole_number([44.0]), whole_number(b"44"), whole_number(44.5), whole_number(True)
    (44, 44, None, None)
    """
    if hasattr(value, "WhichOneof"):  # protobuf's
        value = getattr(value, value.WhichOneof("kind") or "", None)
    if hasattr(value, "item"):  # NumPy's
        with suppress(ValueError, TypeError):  # of arrays of several numbers
            value = value.item()
    if isinstance(value, list | tuple) and len(value) == 1:
        (value,) = value
    if isinstance(value, bytes):
        value = value.decode("ascii", "replace")
    written = str(value).strip()
    if len(written) > _LONGEST_NUMBER:
        return None
    try:
        number = Decimal(written)
    except InvalidOperation:
        return None
    if not number.is_finite() or abs(number) >= _LARGEST_NUMBER or number % 1:
        return None
    return int(number)


def read_spans(value: object) -> tuple[Span, ...]:
    """Spans as text or as pairs of numbers; () for anything else.

    >>> read_spans("0-12,40-55") == read_spans([[0, 12.0], ["40", 55]]) == read_spans("[[0, 12], [40, 55]]")
    True
    >>> read_spans("pages 3-4")
    ()
    """
    pairs: Any = value
    if isinstance(value, str):
        if not _SPANS.fullmatch(value):
            return ()
        ends = _WHOLE_NUMBERS.findall(value)
        pairs = zip_longest(ends[::2], ends[1::2])
    try:
        return tuple([Span(*map(whole_number, pair)) for pair in pairs])  # type: ignore[arg-type]  # refuses None
    except (TypeError, ValueError):
        return ()


@dataclass(frozen=True, slots=True)
class StatedPlace:
    """The place that metadata state for a text.

    Attributes:
        spans: the place; () if none is stated, or none can be read.
        problem: why a stated place cannot be read; "" if it can, or if there is none.
        searched: the splitter searched for its chunk in the text, so that a text that stands several times may have
            the place of another occurrence.
    """

    spans: tuple[Span, ...] = ()
    problem: str = ""
    searched: bool = False


NO_PLACE = StatedPlace()
Page = tuple[int | None, str]
NO_PAGE: Page = (None, "")


def spans_between(
    source: str,
    text: str,
    place: Span,
) -> tuple[Span, ...]:
    r"""The spans of a text in two pieces whose first starts and whose last ends `place`; () if there are none.

    Some stores keep the keys of their first chunk alone: a table's rows then lose the spans that name their header.

    >>> spans_between("| a |\n|---|\n| 1 |\n| 2 |", "| a |\n|---|\n| 2 |", Span(0, 23))
    (Span(start=0, end=11), Span(start=18, end=23))
    """
    longest = len(commonprefix([place.slice(source), text]))  # noqa: RUF071  # characters are meant
    for joint in ("\n", "", " "):  # pieces of whole lines first
        for length in range(min(longest, len(text) - 1), 0, -1):
            end = place.start + length
            start = place.end - len(text) + length + len(joint)
            if end < start < place.end and text.startswith(joint, length):
                pieces = Span(place.start, end), Span(start, place.end)
                is_end = text.endswith(pieces[1].slice(source))  # soon known
                if is_end and text_of_spans(source, pieces) == text:
                    return pieces
    return ()


_HEADER = 4  # lines of a table's header, at most


def rows_below_header(source: str, text: str) -> tuple[Span, ...]:
    r"""The spans of a table's header and of later rows, where a splitter puts the one above the others; () elsewhere.

    >>> rows_below_header("| a |\n|---|\n| 1 |\n| 2 |", "| a |\n|---|\n| 2 |")
    (Span(start=0, end=11), Span(start=18, end=23))
    """
    lines = text.split("\n")
    for count in range(1, min(len(lines), _HEADER + 1)):
        header, rows = "\n".join(lines[:count]), "\n".join(lines[count:])
        start = source.find(rows)
        begin = source.rfind(header, 0, max(start, 0))
        is_once = source.find(rows, start + 1) < 0
        if not header or begin < 0 or not is_once or "\n\n" in source[begin:start]:
            continue  # of another table
        spans = Span(begin, begin + len(header)), Span(start, start + len(rows))
        if text_of_spans(source, spans) == text:
            return spans
    return ()


_NUMBER = re.compile(r"#\d+$")  # several documents of one name get numbers: tea.md#2
_FRAGMENT = re.compile(r"#[^/#]*$")  # of an address, as in tea.pdf#page=2


def plain_name(name: str) -> str:
    r"""The form in which names are compared: composed letters, forward slashes, unquoted, without ``file://``.

    >>> plain_name("Mein%20Bericht.md"), plain_name("file:///srv/tea.md"), plain_name("notes\\tea.md")
    ('Mein Bericht.md', '/srv/tea.md', 'notes/tea.md')
    """
    plain = name.strip().replace("\\", "/")
    if plain.startswith("file:"):
        plain = urlsplit(plain).path
    return unicodedata.normalize("NFC", unquote(plain))


class DocumentNames:
    """Finds documents by their names.

    A name means the document of that id, however it is written; else the documents whose path ends as the name does,
    or the other way round, with or without suffix or the fragment of an address (tea.pdf#page=2). Where several
    documents have one name, the text has to decide.

    >>> names = DocumentNames(["files/tea.md", "ice.md", "old/ice.md", "fog.md#1", "fog.md#2"])
    >>> names.groups(["/srv/files/tea.md"]), names.groups(["other/tea.md", "ice.md"]), names.groups(["fog.md"])
    ([['files/tea.md']], [['ice.md']], [['fog.md#1', 'fog.md#2']])
    >>> names.groups(["tea.md#page=2"])
    [['files/tea.md']]
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self._paths: dict[str, PurePosixPath] = {}
        self._by_name: dict[str, list[str]] = {}
        self._by_file: dict[str, list[str]] = {}
        for document_id in ids:
            plain = plain_name(document_id)
            unnumbered = _NUMBER.sub("", plain)
            path = PurePosixPath(unnumbered)
            self._paths[document_id] = path
            for name in {plain, unnumbered}:
                self._by_name.setdefault(name, []).append(document_id)
            for name in {path.name, path.stem}:
                self._by_file.setdefault(name, []).append(document_id)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(self.groups([name]))

    def groups(
        self,
        candidates: Iterable[str],
        *,
        loosely: bool = False,
    ) -> list[list[str]]:
        """The documents of each name, in the names' order, those of equal ids first.

        `loosely`: a file's name is enough, whatever its folders and suffix, where none has these.
        """
        by_id, by_path = [], []
        for name in candidates:
            if name in self._paths:
                by_id.append([name])
                continue
            plain = plain_name(name)
            if plain in self._by_name:
                by_id.append(self._by_name[plain])
                continue
            path = PurePosixPath(_FRAGMENT.sub("", plain) or plain)
            for key in (path.name, path.stem):
                files = self._by_file.get(key, [])
                same = [file for file in files if _same_file(path, self._paths[file])]
                if loosely:
                    same = same or files
                if same:
                    by_path.append(same)
                    break
        return by_id + by_path


def _same_file(one: PurePosixPath, other: PurePosixPath) -> bool:
    """Whether the shorter path is the end of the longer one; one of them may lack the suffix."""
    depth = min(len(one.parts), len(other.parts))
    if one.parts[-depth:-1] != other.parts[-depth:-1]:
        return False
    return one.name in (other.name, other.stem) or other.name == one.stem


# Where loaders, readers and converters write a document's name.
NAMING_KEYS = ("source", "file_path", "file_name", "path", "url")
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
        page: the number and the label of the page in which `stated` is a place; `NO_PAGE` if it is one in the document.
    """

    text: str
    score: float = 0.0
    names: tuple[str, ...] = ()
    stated: StatedPlace = NO_PLACE
    derived: bool = False
    document: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict, compare=False)
    id: str = ""
    page: Page = NO_PAGE

    @property
    def spans(self) -> tuple[Span, ...]:
        return self.stated.spans


def names_of(*candidates: object) -> tuple[str, ...]:
    """The paths, whole numbers, UUIDs and non-empty strings among the candidates, as strings, each once."""
    names = []
    for name in candidates:
        if not isinstance(name, str | PurePath | UUID):
            name = whole_number(name)
        if name not in (None, ""):
            names.append(str(name))
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


@dataclass(eq=False)
class Locator:
    """Finds hits in documents: by the places that they state where these hold their text, else by their text.

    A hit belongs to a document that it names, by the document's id or else by a name in the document's metadata. A hit
    that names no document of these belongs to the only one with its text, unless it names another file. Of several
    documents of one name, the text decides.

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

    documents: Mapping[str, Document]
    _: KW_ONLY
    lenient: bool = False
    changed: Callable[[Iterable[str]], Collection[str]] = lambda names: ()

    def __post_init__(self) -> None:
        self._names = DocumentNames(self.documents)
        self._aligner = lru_cache(_ALIGNERS)(self._new_aligner)

    def locate(self, hit: Hit) -> Verdict:
        """The verdict on one hit."""
        return self.locate_all([hit])[0]

    def locate_all(self, hits: Sequence[Hit]) -> list[Verdict]:
        """The verdicts on the hits of one answer.

        Some stores write their own address over the name of each hit. Where all hits have one name that is no
        document's, and their texts stand in several documents, it names none of them.
        """
        verdicts = [self._verdict(hit) for hit in hits]
        shared: set[str] = set()
        if len(hits) > 1:
            shared = set.intersection(*[set(hit.names) for hit in hits])
        if shared and not self._groups(list(shared)):
            verdicts = self._without_names(hits, verdicts, shared)
        changed = self.changed(_documents_of(verdicts))
        for number, verdict in enumerate(verdicts):
            if verdict.piece.document_id in changed:
                reason: Reason = "its document has changed since it was indexed"
                verdicts[number] = Verdict("changed", unplaced(hits[number]), reason)
        return verdicts

    def _without_names(
        self, hits: Sequence[Hit], verdicts: list[Verdict], shared: Collection[str]
    ) -> list[Verdict]:
        nameless = verdicts.copy()
        for number, hit in enumerate(hits):
            if verdicts[number].kind == "elsewhere":
                names = tuple(name for name in hit.names if name not in shared)
                nameless[number] = self._verdict(replace(hit, names=names))
        return nameless if len(_documents_of(nameless)) > 1 else verdicts

    def _verdict(self, hit: Hit) -> Verdict:
        if not hit.text.strip() and not (self.lenient and hit.spans):
            return _elsewhere(hit, "it has no text")
        groups = self._groups(hit.names)
        for group in groups:
            if hit.page != NO_PAGE and len(group) == 1:
                verdict = self._on_page(hit, group[0])
                if verdict is not None:
                    return verdict
            tried = [self._in_document(hit, document_id) for document_id in group]
            pieces = list(filter(None, tried))
            pieces = [piece for piece in pieces if piece.match == "spans"] or pieces
            if len(pieces) == 1:
                return self._placed(hit, pieces[0])
            if pieces:
                return self._ambiguous(hit, pieces)
        if self.lenient or not groups:
            verdict = self._without_name(hit)
            if verdict.piece.spans or not groups:
                return verdict
        return _elsewhere(hit, "its document does not have its text", groups[0][0])

    def _ambiguous(self, hit: Hit, pieces: Sequence[Retrieved]) -> Verdict:
        piece = unplaced(hit)
        if self.lenient:
            certainty = pieces[0].certainty / len(pieces)
            piece = replace(pieces[0], match="ambiguous", certainty=certainty)
        return Verdict("ambiguous", piece, "several documents of its name have its text")

    def _on_page(self, hit: Hit, name: str) -> Verdict | None:
        """The verdict on a hit of a page that a loader gave as a document; None if the page does not have its text."""
        source = self.documents[name]
        number, label = hit.page
        for mark in page_marks(source.marks):
            other = mark.data.get("label", "")
            is_same = label == other or (number is not None and "" in (label, other))
            if not is_same or number not in (None, mark.data["number"]):
                continue
            page = Document(name, mark.span.slice(source.text))
            locator = Locator({name: page}, lenient=not hit.text)
            verdict = locator.locate(replace(hit, names=(name,), page=NO_PAGE))
            piece = verdict.piece
            # Other programs say the page of a place that is one of the whole document.
            if piece.match != "spans" and text_of_spans(source.text, hit.spans) == hit.text:
                return None
            if piece.spans:
                spans = shifted(piece.spans, mark.span.start)
                return replace(verdict, piece=replace(piece, spans=spans))
        return None

    def _groups(self, names: Sequence[str]) -> list[list[str]]:
        """The documents of each name, by their ids, else by the names in their metadata."""
        groups = self._names.groups(names, loosely=self.lenient)
        if groups:
            return groups
        others, documents = self._other_names
        for group in others.groups(names, loosely=self.lenient):
            document_ids = {document_id for name in group for document_id in documents[name]}
            if len(document_ids) <= _ALIGNERS:  # a name of more of them says nothing
                groups.append(sorted(document_ids))
        return groups

    def _without_name(self, hit: Hit) -> Verdict:
        """The verdict on a hit that is in no document that it names.

        By its stated place, if one document alone has the text there; else by the text alone.
        """
        if not self.lenient:
            if any(PurePath(name).suffix for name in hit.names):
                return _elsewhere(hit, "it names another file")
            if len(hit.text.strip()) < _SHORTEST:
                return _elsewhere(hit, "no document has its text")
        holding = []
        for name, document in self.documents.items():
            spans = _spans_of_text(document.text, hit)
            if spans and hit.text.strip() and not hit.derived:
                holding.append(Retrieved(name, spans, hit.score, hit.text))
        if len(holding) == 1:
            return self._placed(hit, holding[0])
        piece = self._aligner("").locate(hit.text, score=hit.score)
        is_one = self.lenient or piece.match != "ambiguous"
        if is_one and self._has_text(piece):
            return self._placed(hit, piece)
        return _elsewhere(hit, "no document has its text")

    def _placed(self, hit: Hit, piece: Retrieved) -> Verdict:
        reason: Reason = ""
        if hit.stated.problem:
            reason = "its stated place cannot be read"
        elif hit.stated.spans and piece.match != "spans":
            reason = "another text stands at its stated place"
        elif hit.stated.searched and hit.text and not hit.derived and piece.match == "spans":
            times = len(list(occurrences(self.documents[piece.document_id].text, hit.text)))
            if times > 1:
                reason = "its splitter searched for its place, and its text stands several times"
                piece = replace(piece, match="ambiguous", certainty=1 / times)
        if piece.match == "ambiguous":
            return Verdict("ambiguous", piece, reason or "its text stands several times")
        return Verdict("placed", piece, reason)

    def _in_document(self, hit: Hit, document_id: str) -> Retrieved | None:
        source = self.documents[document_id].text
        spans = _spans_of_text(source, hit)
        if spans:
            return Retrieved(document_id, spans, hit.score, hit.text)
        if hit.derived or not hit.text.strip():
            return None
        starts = list(islice(occurrences(source, hit.text), 2))
        if len(starts) == 1:
            span = Span(starts[0], starts[0] + len(hit.text))
            return Retrieved(document_id, (span,), hit.score, hit.text, match="exact")
        spans = () if starts else rows_below_header(source, hit.text)
        if spans:
            is_stated = hit.spans[:1] and hit.spans[0].start == spans[1].start  # the rows alone
            match: MatchKind = "spans" if is_stated else "exact"
            return Retrieved(document_id, spans, hit.score, hit.text, match=match)
        searched = "" if self.lenient else document_id
        aligner = self._aligner(searched)
        piece = aligner.locate(hit.text, document_id=document_id, spans=hit.spans, score=hit.score)
        has_text = self._has_text(piece)
        if piece.match == "part" and not has_text:  # a context was put before it
            ending = piece.spans[-1].slice(source).rstrip()
            has_text = hit.text.rstrip().endswith(ending)
        return piece if has_text else None

    def _has_text(self, piece: Retrieved) -> bool:
        """Whether the text stands there, but for white space, case, and signs at the edges of words."""
        if self.lenient or piece.match == "spans" or not piece.spans:
            return bool(piece.spans)
        source, span = self.documents[piece.document_id].text, piece.spans[0]
        held = span.slice(source)
        is_long = len(piece.text) >= _SHORTEST
        if wording(held) == wording(piece.text):
            return is_long or held == piece.text or not cuts_words(source, span)
        # A long text is nowhere by chance, whatever white space a loader puts into words.
        return is_long and squeeze(held).text == squeeze(piece.text).text

    @cached_property
    def _other_names(self) -> tuple[DocumentNames, dict[str, list[str]]]:
        """The names in the documents' metadata, and the documents of each.

        Readers may give a file another id at every run, so that the hits of a saved store have ids of an earlier one.
        """
        documents: dict[str, list[str]] = {}
        for document_id, document in self.documents.items():
            for name in names_of(*(document.metadata.get(key) for key in NAMING_KEYS)):
                documents.setdefault(name, []).append(document_id)
        return DocumentNames(documents), documents

    def _new_aligner(self, document_id: str) -> Aligner:
        """The aligner of a document, or of all."""
        if document_id:
            return Aligner([self.documents[document_id]])
        return Aligner(self.documents.values())


def _spans_of_text(source: str, hit: Hit) -> tuple[Span, ...]:
    """The stated spans if they hold the text, character by character; of one span, its two pieces that do; else ().

    The place of a text that a model wrote, or that is empty, is all that can be believed.
    """
    stated = hit.stated.spans
    if not stated or max(span.end for span in stated) > len(source):
        return ()
    is_believed = hit.derived or not hit.text.strip()
    if is_believed or text_of_spans(source, stated) == hit.text:
        return stated
    return spans_between(source, hit.text, stated[0]) if len(stated) == 1 else ()


def _documents_of(verdicts: Iterable[Verdict]) -> set[str]:
    return {verdict.piece.document_id for verdict in verdicts if verdict.piece.spans}


def unplaced(hit: Hit) -> Retrieved:
    """A hit without a place."""
    return unlocated(hit.text, hit.score)


def _elsewhere(hit: Hit, reason: Reason, document: str = "") -> Verdict:
    return Verdict("elsewhere", unplaced(hit), reason, document)
