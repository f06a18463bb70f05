"""The page's list of questions: each with its evidence, and the shares that each system found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from chunkcore.document import Document
from chunkcore.evaluation.benchmark import Evidence, Query
from chunkcore.evaluation.measures import Depth
from chunkcore.report.study import Study
from chunkcore.report.text import page_text

__all__ = ["questions", "whole_percent"]

# Longer excerpts are cut in the page, which says so; the spans still tell the whole.
EXCERPT = 1500
EXCERPTS = 3_000_000  # characters, all together: of very many questions each has less


def questions(study: Study, documents: Mapping[str, int]) -> dict[str, Any]:
    """The block that the page's script reads first: every question, its evidence, and the shares found, in percent.

    Args:
        study: where no system tells what it found at any k, there are no questions.
        documents: the number of each document that the viewer lists.
    """
    benchmark = study.benchmark
    ks = [k for k in study.ks if any(k in report.found for report in study.reports)]
    asked = benchmark.queries if benchmark and ks else ()
    longest = min(EXCERPT, EXCERPTS // max(1, sum(len(query.evidence) for query in asked)))
    shown = _Shown(benchmark.documents if benchmark else (), documents, longest)
    places = [{query: row for row, query in enumerate(report.query_ids)} for report in study.reports]

    def found(query: Query, k: Depth) -> list[list[int | None]]:
        pairs = zip(study.reports, places, strict=True)
        return [_shares(report.found.get(k, ()), place.get(query.id)) for report, place in pairs]

    return {
        "systems": [page_text(report.name) for report in study.reports],
        "ks": [str(k) for k in ks],
        "questions": [shown.question(query) | {"found": [found(query, k) for k in ks]} for query in asked],
    }


class _Shown:
    """How a question and its evidence are shown."""

    def __init__(self, documents: Sequence[Document], numbers: Mapping[str, int], longest: int) -> None:
        self._documents = {document.id: document for document in documents}
        self._numbers = numbers
        self._longest = longest

    def question(self, query: Query) -> dict[str, Any]:
        answer = query.metadata.get("answer")
        return {
            "id": page_text(query.id),
            "text": page_text(query.text),
            "collection": page_text(query.collection),
            "answer": page_text(answer) if isinstance(answer, str) else "",
            "evidence": [self._evidence(each) for each in query.evidence],
        }

    def _evidence(self, each: Evidence) -> list[Any]:
        """Document, start, end, excerpt, and the document's number in the viewer (-1: it is not listed there)."""
        excerpt = self._documents[each.document_id].text[
            each.span.start : min(each.span.end, each.span.start + self._longest)
        ]
        more = " […]" if len(each.span) > self._longest else ""
        place = (page_text(each.document_id), each.span.start, each.span.end)
        return [*place, f"{page_text(excerpt)}{more}", self._numbers.get(each.document_id, -1)]


def _shares(rows: tuple[tuple[float, ...], ...], row: int | None) -> list[int | None]:
    return [] if row is None or row >= len(rows) else [whole_percent(share) for share in rows[row]]


def whole_percent(share: float) -> int | None:
    """A share as whole percent in which 0 means nothing and 100 means all; None where it is not known.

    >>> whole_percent(0.001), whole_percent(0.999), whole_percent(1.0), whole_percent(math.nan)
    (1, 99, 100, None)
    """
    if math.isnan(share):
        return None
    if share <= 0:
        return 0
    return 100 if share >= 1 else min(99, max(1, round(100 * share)))
