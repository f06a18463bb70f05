"""Questions from a ``questions.jsonl``, each with its evidence located or the reason why it is left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from chunkcore.document import Document
from chunkcore.evaluation.benchmark import Evidence, Problem, Query
from chunkcore.evaluation.evidence import EvidenceError, EvidenceFinder, document_name
from chunkcore.evaluation.textfiles import json_lines

__all__ = ["QuestionReader", "question_lines", "read_questions"]

_TAKEN = ("id", "question", "evidence", "spans", "collection", "without_evidence")


def question_lines(path: Path) -> Iterable[tuple[str, dict[str, Any]]]:
    """The lines of a ``questions.jsonl``, with their places.

    A line is ``{"id"?, "question", "document_id"?, "evidence": [...]}``, where an entry of the evidence is
    what `EvidenceFinder.find` takes; or it has ``spans``, pairs of offsets into its document, which
    ``evidence`` then spells out. Other keys become metadata.

    Raises:
        DataError: the file cannot be read, or a line is no JSON object.
    """
    return ((f"line {number}", row) for number, row in json_lines(path))


def read_questions(rows: Iterable[tuple[str, Mapping[str, Any]]], documents: Sequence[Document]) -> QuestionReader:
    """A reader that has read rows, which each come with their place in a file."""
    listed = list(rows)
    reader = QuestionReader(documents, given=[str(row.get("id")) for _, row in listed])
    for place, row in listed:
        reader.add(place, row)
    return reader


class QuestionReader:
    """Collects queries, and a problem for each question that cannot be one.

    A row whose ``without_evidence`` is true is a question whose collection marks none: it can be answered, and is kept
    in `without_evidence`. One with ``left_out`` is left out for the reason that it gives.

    Args:
        documents: where the evidence stands.
        given: ids that rows to come have, which no row without one must get.
    """

    def __init__(self, documents: Sequence[Document], given: Iterable[str] = ()) -> None:
        self.queries: list[Query] = []
        self.without_evidence: list[Query] = []
        self.problems: list[Problem] = []
        self._finder = EvidenceFinder(documents)
        self._collections = {document.id: _collection(document) for document in documents}
        self._seen: dict[str, str] = {}
        self._given = frozenset(given)

    def add(self, place: str, row: Mapping[str, Any]) -> None:
        """Read one row; `place` is where it stands, for messages and for an id where it has none."""
        identity = _identity(row.get("id")) or self._unused()
        if identity in self._seen:
            self.problems.append(
                Problem(identity, f"{place}: the id was given before, at {self._seen[identity]}; make ids unique")
            )
            return
        self._seen[identity] = place
        try:
            query = self._query(identity, row)
        except EvidenceError as error:
            self.problems.append(Problem(identity, f"{place}: {error}"))
        else:
            (self.queries if query.evidence else self.without_evidence).append(query)

    def _unused(self) -> str:
        """``q`` and a number: the row's, where no question has it."""
        numbered = (f"q{number}" for number in count(len(self._seen) + 1))
        return next(each for each in numbered if each not in self._seen and each not in self._given)

    def _query(self, identity: str, row: Mapping[str, Any]) -> Query:
        if isinstance(row.get("left_out"), str):
            raise EvidenceError(row["left_out"])
        question = row.get("question")
        if not isinstance(question, str) or not question.strip():
            raise EvidenceError(f"the question is a text that is not blank, got {question!r}")
        document_id = row.get("document_id")
        document_id = "" if document_id is None else document_name(document_id)
        evidence = () if _is_without(row) else self._evidence(row, document_id)
        collection = row.get("collection")
        if not isinstance(collection, str):
            collection = self._collections.get(evidence[0].document_id if evidence else document_id, "")
        metadata = {key: value for key, value in row.items() if key not in _TAKEN}
        return Query(identity, question, evidence, collection, metadata)

    def _evidence(self, row: Mapping[str, Any], document_id: str) -> tuple[Evidence, ...]:
        entries = _entries(row)
        if not entries:
            raise EvidenceError("it has no evidence")
        return tuple(self._finder.find(entry, document_id) for entry in entries)


def _is_without(row: Mapping[str, Any]) -> bool:
    """Whether the row says that there is no evidence on purpose."""
    said = row.get("without_evidence")
    if said is not True:
        return False
    if row.get("evidence") or row.get("spans"):
        raise EvidenceError("it has evidence, and says that it is without_evidence: take one of them out")
    return True


def _entries(row: Mapping[str, Any]) -> list[Any]:
    """The entries of `evidence`, or of `spans` with `evidence` as what they spell out."""
    evidence = row.get("evidence")
    if evidence is not None and not isinstance(evidence, list):
        raise EvidenceError(f"evidence is a list, got {type(evidence).__name__}")
    spans = row.get("spans")
    if spans is None:
        return evidence or []
    if not isinstance(spans, list) or not all(isinstance(each, list) and len(each) == 2 for each in spans):
        raise EvidenceError("spans is a list of pairs [start, end]")
    texts = evidence or [None] * len(spans)
    if len(texts) != len(spans):
        raise EvidenceError(f"there are {len(spans)} spans and {len(texts)} pieces of evidence: give as many of each")
    return [{"start": start, "end": end, "text": text} for (start, end), text in zip(spans, texts, strict=True)]


def _identity(given: Any) -> str:
    """The id as text; empty where there is none."""
    return "" if given is None else str(given)


def _collection(document: Document) -> str:
    """What a document's questions are tabled under: its metadata's word, else its top-level folder."""
    named = document.metadata.get("collection")
    if isinstance(named, str):
        return named
    folder, slash, _ = document.id.partition("/")
    return folder if slash else ""
