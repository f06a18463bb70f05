"""What a system missed: the questions with the least evidence found, each with its best passage and one reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Evidence, Query
from chunkcore.evaluation.measures import Depth, budget_of
from chunkcore.evaluation.results import Report
from chunkcore.report.page import ReportPage
from chunkcore.report.tables import Column, Table, percent
from chunkcore.retrieval.lexicon import word_keys
from chunkcore.run import Retrieved
from chunkcore.tokens import get_counter

MOST = 10  # questions
_EXCERPT = 300  # characters
_MATCHING = "first5"  # words are compared as the passages' lexical search does


@dataclass(frozen=True, slots=True)
class Missed:
    """A question of which a system found little.

    Attributes:
        recall: the share of its evidence that was found, 0 to 1.
        evidence: the piece of which least was found, as text.
        passage: the best passage for that piece: the first that overlaps it, else the first retrieved; "" for none.
        reason: why, in one sentence, from the ranking.
    """

    question_id: str
    question: str
    recall: float
    evidence: str
    passage: str
    reason: str


def missed_questions(report: Report, benchmark: Benchmark, k: Depth) -> list[Missed]:
    """The ten questions of which the system found least at `k`; none if it has no run, or found everything."""
    if report.run is None or k not in report.found:
        return []
    queries = {query.id: query for query in benchmark.queries}
    texts = {document.id: document.text for document in benchmark.documents}
    rows = [
        (float(np.nanmean(shares)), query, shares)
        for query, shares in zip(report.query_ids, report.found[k], strict=True)
        if query in queries and len(shares) and not np.isnan(shares).all()
    ]
    worst = sorted((row for row in rows if row[0] < 1), key=lambda row: row[0])[:MOST]
    return [_missed(queries[query], recall, shares, report, texts, k) for recall, query, shares in worst]


def missed_by(page: ReportPage, name: str) -> list[Missed]:
    """`missed_questions` of a system of a page, at the verdict's depth; none without the benchmark."""
    reports = [report for report in page.reports if report.name == name]
    return missed_questions(reports[0], page.benchmark, page.chosen_k) if reports and page.benchmark else []


def _missed(
    query: Query, recall: float, shares: Sequence[float], report: Report, texts: dict[str, str], k: Depth
) -> Missed:
    assert report.run is not None
    piece = query.evidence[int(np.nanargmin(shares))]
    hits = report.run.results.get(query.id, ())
    ranks = [rank for rank, hit in enumerate(hits) if _overlap(hit, piece)]
    best = hits[ranks[0] if ranks else 0] if len(hits) else None
    return Missed(
        query.id,
        query.text,
        recall,
        _excerpt(texts[piece.document_id][piece.span.start : piece.span.end]),
        _excerpt(_text(best, texts)) if best else "",
        _reason(query, piece, hits, ranks, report, texts, k),
    )


def _reason(
    query: Query,
    piece: Evidence,
    hits: Sequence[Retrieved],
    ranks: Sequence[int],
    report: Report,
    texts: dict[str, str],
    k: Depth,
) -> str:
    """The first reason that holds: cut by the budget, outranked, split by a boundary, no shared word, not retrieved."""
    budget = budget_of(k)
    before = [0, *np.cumsum(get_counter("cl100k_base").count_many([_text(hit, texts) for hit in hits])).tolist()]
    if ranks:
        inside = [rank for rank in ranks if (before[rank] < budget if budget else rank < _pieces(k))]
        if not inside:
            over = before[ranks[0]] - budget if budget else before[ranks[0]] - before[min(_pieces(k), len(hits))]
            return f"Outranked: its passage is number {ranks[0] + 1:,}, {max(1, over):,} tokens too deep."
        if budget and before[inside[-1] + 1] > budget:
            return f"Cut by the budget: the passage with it ends {before[inside[-1] + 1] - budget:,} tokens past it."
        if _covered(hits, inside, piece) < len(piece.span):
            return "Split by a boundary: a neighbouring chunk has the rest of it and was not retrieved."
        return "Found in part: other evidence of the question was retrieved, this piece not whole."
    words = set(word_keys(query.text, _MATCHING))
    if not words & set(word_keys(texts[piece.document_id][piece.span.start : piece.span.end], _MATCHING)):
        return "No shared word: question and evidence have none in common."
    same = any(hit.document_id == piece.document_id for hit in hits)
    place = "another part of its document was preferred" if same else "other documents were preferred"
    return f"Outranked: it is not among the {len(hits):,} passages retrieved; {place}."


def _pieces(k: Depth) -> int:
    return k if isinstance(k, int) else 1


def _overlap(hit: Retrieved, piece: Evidence) -> int:
    if hit.document_id != piece.document_id:
        return 0
    return sum(max(0, min(span.end, piece.span.end) - max(span.start, piece.span.start)) for span in hit.spans)


def _covered(hits: Sequence[Retrieved], ranks: Sequence[int], piece: Evidence) -> int:
    return sum(_overlap(hits[rank], piece) for rank in ranks)


def _text(hit: Retrieved, texts: dict[str, str]) -> str:
    if hit.document_id not in texts or not hit.spans:
        return hit.text
    return "".join(texts[hit.document_id][span.start : span.end] for span in hit.spans)


def _excerpt(text: str) -> str:
    shown = " ".join(text.split())
    return shown if len(shown) <= _EXCERPT else f"{shown[:_EXCERPT].rstrip()} […]"


def missed_table(missed: Sequence[Missed]) -> Table[Missed] | None:
    """A row a question; None without one."""
    columns = (
        Column[Missed]("Question", lambda row: row.question, kind="text"),
        Column[Missed]("Found, %", lambda row: percent(row.recall, 0)),
        Column[Missed]("Why", lambda row: row.reason, kind="text"),
        Column[Missed]("Evidence", lambda row: row.evidence, kind="text"),
        Column[Missed]("Best passage", lambda row: row.passage or "none was retrieved", kind="text"),
    )
    return Table("What it missed", columns, tuple(missed)) if missed else None
