"""`Benchmark`: documents, and queries with the spans that answer them. It knows nothing of chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chunkcore.document import Document, Span

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
    """Documents, queries with evidence, and the questions that had to be left out."""

    name: str
    documents: Sequence[Document]
    queries: Sequence[Query]
    problems: tuple[Problem, ...] = ()
