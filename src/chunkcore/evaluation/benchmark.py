"""`Benchmark`: documents, and queries with the spans that answer them. It knows nothing of chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from chunkcore.document import Document, Span
from chunkcore.errors import DataError
from chunkcore.evaluation.digests import documents_digest

__all__ = ["Benchmark", "Evidence", "Problem", "Query"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A span of a document that answers a query."""

    document_id: str
    span: Span


@dataclass(frozen=True, slots=True)
class Query:
    """A question, its evidence, and the collection that its results are tabled under."""

    id: str
    text: str
    evidence: tuple[Evidence, ...]
    collection: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Problem:
    """A question that was left out, and why."""

    query_id: str
    reason: str


@dataclass(frozen=True)
class Benchmark:
    """Documents, queries with evidence, and the questions that had to be left out.

    Attributes:
        name: what it is called in reports.
        documents: where the evidence stands.
        queries: what is scored.
        problems: the questions that were left out, with the reasons.
        without_evidence: questions whose collection marks no evidence on purpose (multiple choice over a whole story,
            a question that the document does not answer). No retrieval can be scored on them, but answers can.

    Raises:
        DataError: two documents or two queries share an id, a query has no evidence, or evidence lies
            outside of its document.

    >>> story = Document("fox.txt", "The quick fox naps.")
    >>> query = Query("q1", "Who naps?", (Evidence("fox.txt", Span(4, 13)),))
    >>> Benchmark("toy", [story], [query]).document("fox.txt").id
    'fox.txt'
    """

    name: str
    documents: Sequence[Document]
    queries: Sequence[Query]
    problems: tuple[Problem, ...] = ()
    without_evidence: tuple[Query, ...] = ()

    def __post_init__(self) -> None:
        for kind, ids in (
            ("documents", [each.id for each in self.documents]),
            ("queries", [q.id for q in (*self.queries, *self.without_evidence)]),
        ):
            repeated = [each for each, count in Counter(ids).items() if count > 1]
            if repeated:
                raise DataError(
                    f"two {kind} of the benchmark {self.name!r} have the id {repeated[0]!r}: make ids unique"
                )
        for query in self.queries:
            self._check(query)
        for query in self.without_evidence:
            if query.evidence:
                raise DataError(f"query {query.id!r} has evidence: it is one of the queries")

    def _check(self, query: Query) -> None:
        if not query.evidence:
            raise DataError(
                f"query {query.id!r} has no evidence, so nothing can be scored: give it some or leave it out"
            )
        for evidence in query.evidence:
            if evidence.document_id not in self._by_id:
                raise DataError(
                    f"query {query.id!r} has evidence in document {evidence.document_id!r}, "
                    "which is not in the benchmark"
                )
            size = self._by_id[evidence.document_id].size
            if evidence.span.end > size:
                raise DataError(
                    f"query {query.id!r}: evidence ends at {evidence.span.end}, its document "
                    f"{evidence.document_id!r} at {size}"
                )

    def document(self, document_id: str) -> Document:
        """The document with this id.

        Raises:
            DataError: there is none.
        """
        try:
            return self._by_id[document_id]
        except KeyError:
            raise DataError(
                f"the benchmark {self.name!r} has no document {document_id!r} among its {len(self.documents)}"
            ) from None

    @cached_property
    def documents_digest(self) -> str:
        """32 hexadecimal digits that change with the documents' ids and texts."""
        return documents_digest(self.documents)

    @cached_property
    def _by_id(self) -> dict[str, Document]:
        return {document.id: document for document in self.documents}
