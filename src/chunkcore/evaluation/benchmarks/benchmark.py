"""`Benchmark`: documents, and queries with the spans that answer them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any

from chunkcore.document import Document, Span
from chunkcore.errors import DataError, check_type, echo


class ChangedDocumentsWarning(UserWarning):
    """The compared results are of different document texts."""


def documents_digest(documents: Iterable[Document]) -> str:
    """32 hexadecimal digits of all ids and texts, in order.

    >>> before, after = Document("fox.txt", "The fox naps."), Document("fox.txt", "The fox sleeps.")
    >>> documents_digest([before]) == documents_digest([after])
    False
    """
    digest = blake2b(digest_size=16)
    for document in documents:
        for text in (document.id, document.text):
            _add(digest, text)
    return digest.hexdigest()


def warn_where_they_differ(digests: Iterable[str], message: str) -> None:
    """Warn (`ChangedDocumentsWarning`) if two known digests differ; "" is unknown."""
    if len(set(digests) - {""}) > 1:
        warnings.warn(message, ChangedDocumentsWarning, stacklevel=3)


def slices_digest(text: str, spans: Sequence[Span]) -> str:
    """16 hexadecimal digits of the text at the spans."""
    digest = blake2b(digest_size=8)
    for span in spans:
        _add(digest, span.slice(text))
    return digest.hexdigest()


def _add(digest: blake2b, text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    digest.update(len(data).to_bytes(8, "little") + data)


@dataclass(frozen=True, slots=True)
class Part:
    """An original document, and its span in a stitched one."""

    document_id: str
    span: Span


def parts_of(document: Document) -> tuple[Part, ...]:
    r"""The originals of a stitched document, in order; any other document with text is its own only part.

    They come from ``metadata["parts"]``, a list of objects with ``id``, ``start`` and ``end``.

    Raises `DataError`: not such a list, or its spans overlap, are out of order or leave the text.

    >>> where = [{"id": "a", "start": 0, "end": 6}, {"id": "b", "start": 8, "end": 14}]
    >>> [part.document_id for part in parts_of(Document("ab", "A naps.\n\nB naps.", {"parts": where}))]
    ['a', 'b']
    """
    if not document.text:
        return ()
    rows = document.metadata.get("parts")
    if rows is None:
        return (Part(document.id, Span(0, len(document.text))),)
    expected = f"the parts of document {document.id!r} are"
    if not isinstance(rows, list | tuple) or not rows:
        raise DataError(f"{expected} a list of objects with id, start and end, got {type(rows).__name__}")
    parts: list[Part] = []
    end = 0
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping) or not isinstance(row.get("id"), str):
            raise DataError(f"{expected} objects with id, start and end; part {number} is {str(row)[:60]}")
        try:
            span = Span(row.get("start"), row.get("end"))  # type: ignore[arg-type]
        except DataError as error:
            raise DataError(f"{expected} spans of it; part {number}: {error}") from error
        if span.start < end or span.end > len(document.text):
            raise DataError(
                f"{expected} in order, apart, and within its {len(document.text)} characters: "
                f"part {number} is {span.start} to {span.end}, the one before ends at {end}"
            )
        parts.append(Part(row["id"], span))
        end = span.end
    return tuple(parts)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A span of a document that answers a query."""

    document_id: str
    span: Span

    def __post_init__(self) -> None:
        check_type("the document_id of evidence", self.document_id, str, "a string")
        check_type("the span of evidence", self.span, Span, "a Span")


@dataclass(frozen=True, slots=True)
class Query:
    """A question, its evidence, and its collection: the group of its results in tables."""

    id: str
    text: str
    evidence: tuple[Evidence, ...]
    collection: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("id", "text", "collection"):
            check_type(f"the {name} of a query", getattr(self, name), str, "a string")
        check_type(f"query {echo(self.id)}: its evidence", self.evidence, tuple, "a tuple of Evidence")
        for evidence in self.evidence:
            check_type(f"query {echo(self.id)}: each of its evidence", evidence, Evidence, "an Evidence")
        check_type(f"query {echo(self.id)}: its metadata", self.metadata, Mapping, "a mapping")


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
            questions). Retrieval is not scored on them; answers are.

    Raises `DataError`: documents or queries share an id, a query has no evidence, or evidence lies outside its
    document.

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
        return f"Benchmark({self.name!r}: {len(self.documents):,} documents, {len(self.queries):,} questions)"

    def __post_init__(self) -> None:
        check_type("a benchmark's name", self.name, str, "a string")
        self._check_ids("documents", self.documents, Document)
        self._check_ids("queries", self.queries, Query)
        self._check_ids("queries", [*self.queries, *self.without_evidence], Query)
        for query in self.queries:
            if not query.evidence:
                raise DataError(
                    f"query {echo(query.id)} has no evidence, so nothing can be scored: give it some or leave it out"
                )
            for evidence in query.evidence:
                document = self._by_id.get(evidence.document_id)
                place = f"query {echo(query.id)} has evidence in document {echo(evidence.document_id)}"
                if document is None:
                    raise DataError(f"{place}, which is not in the benchmark")
                if evidence.span.end > document.size:
                    raise DataError(f"{place} that ends at {evidence.span.end}, and the document at {document.size}")
        for query in self.without_evidence:
            if query.evidence:
                raise DataError(f"query {echo(query.id)} has evidence: it is one of the queries")

    def _check_ids(self, name: str, items: Sequence[Document | Query], kind: type) -> None:
        check_type(f"the {name} of a benchmark", items, Sequence, f"a list of {kind.__name__} objects")
        seen: set[str] = set()
        for item in items:
            check_type(f"one of the {name} of a benchmark", item, kind, f"a {kind.__name__}")
            if item.id in seen:
                raise DataError(f"two {name} of the benchmark {self.name!r} have the id {item.id!r}: make ids unique")
            seen.add(item.id)

    def document(self, document_id: str) -> Document:
        """The document with this id. Raises `DataError` if there is none."""
        try:
            return self._by_id[document_id]
        except KeyError:
            raise DataError(
                f"the benchmark {self.name!r} has no document {document_id!r} among its {len(self.documents)}"
            ) from None

    @cached_property
    def documents_digest(self) -> str:
        return documents_digest(self.documents)

    @cached_property
    def _by_id(self) -> dict[str, Document]:
        return {document.id: document for document in self.documents}


def question_documents(benchmark: Benchmark) -> dict[str, str]:
    """By query id, the document of the query's first evidence: the `clusters` of `compare`."""
    return {query.id: query.evidence[0].document_id for query in benchmark.queries}
