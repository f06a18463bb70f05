"""`missed_by`: the questions of which a system found least, each with the reason from its ranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chunkcore.evaluation.benchmarks.benchmark import Evidence, Query
from chunkcore.evaluation.measures import Depth, budget_of
from chunkcore.evaluation.results import Report
from chunkcore.report.tables import Column, Table, percent, text_column
from chunkcore.retrieval.lexicon import word_keys
from chunkcore.run import Retrieved
from chunkcore.study.comparing import ReportPage
from chunkcore.text import Span, text_of_spans
from chunkcore.tokens import get_counter

MOST = 10  # questions
_EXCERPT = 300  # characters
_MATCHING = "first5"  # words are compared as the passages' lexical search does


@dataclass(frozen=True, slots=True)
class Missed:
    """A question of which a system found little."""

    question: str
    recall: float  # the share of its evidence that was found, 0 to 1
    evidence: str  # the piece of which least was found
    passage: str  # the first that overlaps that piece, else the first retrieved; "" for none
    marked: tuple[int, int] | None  # where that piece's part stands in `passage`
    reason: str  # why, in one sentence, from the ranking


def missed_by(page: ReportPage, name: str) -> list[Missed]:
    """The ten questions of which a page's system found least at the verdict's depth.

    None if it found everything, or without its run or the benchmark.
    """
    benchmark, k = page.benchmark, page.chosen_k
    reports = {report.name: report for report in page.reports}
    report = reports.get(name)
    if benchmark is None or report is None or report.run is None or k not in report.found:
        return []
    queries = {query.id: query for query in benchmark.queries}
    rows = []
    for query, shares in zip(report.query_ids, report.found[k], strict=True):
        if query in queries and not np.isnan(shares).all():
            recall = float(np.nanmean(shares))
            if recall < 1:
                rows.append((recall, queries[query], shares))
    worst = sorted(rows, key=lambda row: row[0])[:MOST]
    ranking = _Ranking(page, report)
    return [ranking.missed(query, recall, shares) for recall, query, shares in worst]


class _Ranking:
    """What a system retrieved, and the documents' texts."""

    def __init__(self, page: ReportPage, report: Report) -> None:
        assert page.benchmark is not None
        assert report.run is not None
        self._texts = {document.id: document.text for document in page.benchmark.documents}
        self._results, self._k = report.run.results, page.chosen_k
        self._counter = get_counter(page.counter)

    def missed(self, query: Query, recall: float, shares: Sequence[float]) -> Missed:
        piece = query.evidence[int(np.nanargmin(shares))]
        evidence = piece.span.slice(self._texts[piece.document_id])
        hits = self._results.get(query.id, ())
        texts = list(map(self._text, hits))
        sizes = self._counter.count_many(texts).tolist()
        parts = [_parts_in(hit, piece) for hit in hits]
        passage, marked = _excerpt(texts[0]) if texts else "", None
        if any(parts):
            reason = _found_in_part(parts, sizes, len(piece.span), self._k)
            best = next(rank for rank, held in enumerate(parts) if held)
            held = parts[best][0].slice(self._texts[piece.document_id])
            passage, marked = _marked(texts[best], held)
        elif set(word_keys(query.text, _MATCHING)).isdisjoint(word_keys(evidence, _MATCHING)):
            reason = "No shared word: question and evidence have none in common."
        elif not texts:
            reason = "No answer: nothing was retrieved for this question."
        else:
            place = "other documents were preferred"
            if any(hit.document_id == piece.document_id for hit in hits):
                place = "another part of its document was preferred"
            retrieved = f"{len(texts):,} passages ({sum(sizes):,} tokens) retrieved"
            reason = f"Outranked: it is not among the {retrieved}; {place}."
        return Missed(query.text, recall, _excerpt(evidence), passage, marked, reason)

    def _text(self, hit: Retrieved) -> str:
        if hit.document_id not in self._texts or not hit.spans:
            return hit.text
        return text_of_spans(self._texts[hit.document_id], hit.spans)


def _parts_in(hit: Retrieved, piece: Evidence) -> list[Span]:
    """The parts of a piece of evidence that a hit has."""
    parts = []
    for span in hit.spans if hit.document_id == piece.document_id else ():
        start, end = max(span.start, piece.span.start), min(span.end, piece.span.end)
        if start < end:
            parts.append(Span(start, end))
    return parts


def _found_in_part(
    parts: Sequence[Sequence[Span]], sizes: Sequence[int], length: int, k: Depth
) -> str:
    """Why evidence of which hits have parts is not found: outranked, cut by the budget, or split by a boundary."""
    budget, depth = budget_of(k), k if isinstance(k, int) else 1
    before = held = over = 0
    for rank, (spans, size) in enumerate(zip(parts, sizes, strict=True)):
        is_inside = rank < depth
        if budget:
            is_inside = before < budget
        if spans and is_inside:
            held += sum(map(len, spans))
            over = before + size - budget if budget else 0
        elif spans and not held:
            deep = f", {max(1, before - budget):,} tokens too deep" if budget else ""
            return f"Outranked: its passage is number {rank + 1:,}{deep}."
        before += size
    if over > 0:
        return f"Cut by the budget: the passage with it ends {over:,} tokens past it."
    if held < length:
        return "Split by a boundary: a neighbouring chunk has the rest of it and was not retrieved."
    return "Found in part: other evidence of the question was retrieved, this piece not whole."


def _excerpt(text: str) -> str:
    shown = " ".join(text.split())
    if len(shown) <= _EXCERPT:
        return shown
    words = shown[:_EXCERPT].rpartition(" ")[0] or shown[:_EXCERPT]
    return f"{words} […]"


def _marked(passage: str, held: str) -> tuple[str, tuple[int, int] | None]:
    """An excerpt of a passage that shows the evidence it holds, and where that stands in it."""
    shown, evidence = " ".join(passage.split()), _excerpt(held).removesuffix(" […]")
    start = shown.find(evidence)
    if not evidence or start < 0:
        return _excerpt(passage), None
    if start + len(evidence) > _EXCERPT:  # begins half an excerpt before the evidence
        cut = shown.rfind(" ", 0, max(0, start - _EXCERPT // 2)) + 1
        if cut:
            shown = f"[…] {shown[cut:]}"
        start = shown.find(evidence)
    end = start + len(evidence)
    if len(shown) > max(end, _EXCERPT):
        shown = f"{shown[:end]}{_excerpt(shown[end:])}"
    return shown, (start, end)


def missed_table(missed: Sequence[Missed]) -> Table[Missed] | None:
    """A row a question; None without one."""
    if not missed:
        return None
    columns: tuple[Column[Missed], ...] = (
        text_column("Question", lambda row: row.question),
        Column("Found, %", lambda row: percent(row.recall, 0)),
        text_column("Why", lambda row: row.reason),
        text_column("Evidence", lambda row: row.evidence),
        text_column("Best passage", lambda row: row.passage or "none was retrieved"),
    )
    return Table("What it missed", columns, tuple(missed))
