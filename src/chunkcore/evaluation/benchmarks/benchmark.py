"""`Benchmark`: documents, and queries with the spans that answer them; files of both."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from chunkcore.errors import DataError, counted, echo, warn_user
from chunkcore.files import (
    TABLES,
    check_unchanged,
    csv_rows,
    json_lines,
    text_lines,
)
from chunkcore.plain import JsonObject, digest_of_texts
from chunkcore.reading.opening import Row
from chunkcore.text import Document, Span, check_document


class ChangedDocumentsWarning(UserWarning):
    """The compared results are of different document texts."""


def documents_digest(documents: Iterable[Document]) -> str:
    """32 hexadecimal digits of all ids and texts, in order."""
    return digest_of_texts(text for document in documents for text in (document.id, document.text))


def warn_where_they_differ(digests: Iterable[str], message: str) -> None:
    """Warn (`ChangedDocumentsWarning`) if two known digests differ; "" is unknown."""
    if len(set(digests) - {""}) > 1:
        warn_user(message, ChangedDocumentsWarning)


def slices_digest(text: str, spans: Sequence[Span]) -> str:
    """16 hexadecimal digits of the text at the spans."""
    return digest_of_texts((span.slice(text) for span in spans), 8)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A span of a document that answers a query."""

    document_id: str
    span: Span


@dataclass(frozen=True, slots=True)
class Query:
    """A question and its evidence.

    Attributes:
        collection: the group of its results in tables.
        where: the question's own filter, which a search for it gets, such as ``{"tenant": "a"}``; None for none.
    """

    id: str
    text: str
    evidence: tuple[Evidence, ...]
    collection: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    where: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class DataProblem:
    """A question that was left out, and why; `kind` is one of `chunkcore.questions.validate.KINDS`."""

    query_id: str
    reason: str
    kind: str = "malformed"


@dataclass(frozen=True)
class Benchmark:
    """Documents, and queries with evidence.

    Attributes:
        documents: the sources of the evidence.
        queries: the scored questions.
        problems: the questions left out, with the reasons.
        without_evidence: questions that have no evidence on purpose (multiple choice over a whole story, unanswerable
            questions). They are not scored.

    Raises `DataError`: two documents or queries share an id, or a query has no evidence or some outside its document.

    >>> story = Document("fox.txt", "The quick fox naps.")
    >>> query = Query("q1", "Who naps?", (Evidence("fox.txt", Span(4, 13)),))
    >>> Benchmark("toy", [story], [query]).document("fox.txt").id
    'fox.txt'
    """

    name: str
    documents: Sequence[Document]
    queries: Sequence[Query]
    problems: tuple[DataProblem, ...] = ()
    without_evidence: tuple[Query, ...] = ()

    def __repr__(self) -> str:
        documents = counted(len(self.documents), "document")
        return f"Benchmark({self.name!r}: {documents}, {counted(len(self.queries), 'question')})"

    def __post_init__(self) -> None:
        for document in self.documents:
            check_document(document, "one of the documents of a benchmark")
        self._check_ids("documents", self.documents)
        self._check_ids("queries", [*self.queries, *self.without_evidence])
        for query in self.queries:
            if not query.evidence:
                raise DataError(
                    f"query {echo(query.id)} has no evidence: give it some, or leave it out"
                )
            for evidence in query.evidence:
                name, end = evidence.document_id, evidence.span.end
                place = f"query {echo(query.id)} has evidence in document {echo(name)}"
                if name not in self._by_id:
                    raise DataError(f"{place}, which is not in the benchmark")
                size = self._by_id[name].size
                if end > size:
                    raise DataError(f"{place} that ends at {end}, and the document at {size}")
        for query in self.without_evidence:
            if query.evidence:
                raise DataError(f"query {echo(query.id)} has evidence: it is one of the queries")

    def _check_ids(self, name: str, items: Sequence[Document | Query]) -> None:
        for identity, count in Counter(item.id for item in items).items():
            if count > 1:
                raise DataError(
                    f"two {name} of the benchmark {self.name!r} have the id {identity!r}: make ids unique"
                )

    def document(self, document_id: str) -> Document:
        """The document with this id. Raises `DataError` if there is none."""
        if document_id not in self._by_id:
            raise DataError(f"the benchmark {self.name!r} has no document {document_id!r}")
        return self._by_id[document_id]

    @property
    def question_documents(self) -> tuple[str, ...]:
        """The document of each query's first evidence."""
        return tuple(query.evidence[0].document_id for query in self.queries)

    @cached_property
    def documents_digest(self) -> str:
        return documents_digest(self.documents)

    @cached_property
    def _by_id(self) -> dict[str, Document]:
        return {document.id: document for document in self.documents}


QuestionRow = Mapping[str, Any]  # as a line of a file has it
Questions = str | Path | Iterable[QuestionRow]


def question_rows(questions: Questions) -> Iterable[Row]:
    """Questions with their places, from JSON lines, a CSV, or objects; docs/reference/formats.md has their keys.

    A line may also have ``spans``, pairs of offsets into its document, and ``evidence`` spells out their texts. Raises
    `DataError`: the file cannot be read, or a line is not a JSON object.
    """
    if not isinstance(questions, str | Path):
        return [(f"question {number}", row) for number, row in enumerate(questions, start=1)]
    path = Path(questions)
    kind = path.suffix.lower()
    if kind in TABLES:
        return _table_rows(path)
    if kind == ".xlsx":
        raise DataError(f"{path} is a workbook: save its sheet with the questions as CSV UTF-8")
    _, first = next(text_lines(path))
    if kind == ".txt" and not first.startswith("{"):
        raise DataError(
            f"{path} is without evidence: mark it with chunkcore questions label DOCS --questions {path}"
        )
    check_unchanged(path)
    return ((f"line {number}", row) for number, row in json_lines(path))


def _table_rows(path: Path) -> Iterator[Row]:
    """The rows of the Chroma report's CSV, or of another with columns that `understood` knows."""
    for number, (line, row) in enumerate(csv_rows(path, ()), start=1):
        if row.keys() >= _COLUMNS:
            yield f"row {number}", _chroma_row(number, row)
        else:
            values = {key: value for key, value in row.items() if value}
            if values.get("evidence", "").startswith("["):  # a list, as under other names
                values["excerpts"] = values.pop("evidence")
            yield f"line {line}", values


_COLUMNS = {"question", "references", "corpus_id"}


def _chroma_row(number: int, row: Mapping[str, str | None]) -> JsonObject:
    corpus = row["corpus_id"] or ""
    evidence: Any = row["references"]
    with suppress(ValueError, RecursionError):
        references = json.loads(evidence or "")
        if isinstance(references, list):
            evidence = list(map(_chroma_evidence, references))
    others = {key: value for key, value in row.items() if key not in _COLUMNS}
    return others | {
        "id": f"{corpus}-{number}",
        "question": row["question"],
        "document_id": corpus,
        "collection": corpus,
        "evidence": evidence,
    }


def _chroma_evidence(reference: Any) -> Any:
    if not isinstance(reference, dict):
        return reference
    keys = {"start": "start_index", "end": "end_index", "text": "content"}
    return {ours: reference.get(theirs) for ours, theirs in keys.items()}
