"""`missed_by`: the questions of which a system found least, each with the reason from its ranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from chunkcore.evaluation.benchmarks.benchmark import Evidence, Query
from chunkcore.evaluation.measures import Depth, budget_of
from chunkcore.evaluation.results import Report
from chunkcore.report.tables import Column, Table, percent, text_column
from chunkcore.retrieval.lexicon import word_keys
from chunkcore.run import Retrieved
from chunkcore.study.comparing import ReportPage
from chunkcore.text import text_of_spans
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
        self._texts = {document.id: document.text for document in page.benchmark.documents}
        self._report, self._k = report, page.chosen_k
        self._counter = get_counter(page.counter)

    def missed(self, query: Query, recall: float, shares: Sequence[float]) -> Missed:
        piece = query.evidence[int(np.nanargmin(shares))]
        assert self._report.run is not None
        hits = self._report.run.results.get(query.id, ())
        ranks = [rank for rank, hit in enumerate(hits) if overlap(hit, piece)]
        passage, held = "", ""
        if ranks:
            best = hits[ranks[0]]
            passage, held = self._text(best), self._held(best, piece)
        elif len(hits):
            passage = self._text(hits[0])
        evidence = text_of_spans(self._texts[piece.document_id], [piece.span])
        reason = self._reason(query, piece, hits, ranks)
        return Missed(query.text, recall, _excerpt(evidence), *_marked(passage, held), reason)

    def _held(self, hit: Retrieved, piece: Evidence) -> str:
        """The first part of a piece of evidence that is in a hit."""
        for span in hit.spans:
            start, end = max(span.start, piece.span.start), min(span.end, piece.span.end)
            if start < end:
                return self._texts[piece.document_id][start:end]
        return ""

    def _reason(
        self, query: Query, piece: Evidence, hits: Sequence[Retrieved], ranks: Sequence[int]
    ) -> str:
        sizes = self._counter.count_many([self._text(hit) for hit in hits]).tolist()
        if ranks:
            overlaps = [overlap(hits[rank], piece) for rank in ranks]
            return _found_in_part(ranks, overlaps, sizes, len(piece.span), self._k)
        evidence = text_of_spans(self._texts[piece.document_id], [piece.span])
        asked_words = set(word_keys(query.text, _MATCHING))
        if asked_words.isdisjoint(word_keys(evidence, _MATCHING)):
            return "No shared word: question and evidence have none in common."
        if not len(hits):
            return "No answer: nothing was retrieved for this question."
        place = "other documents were preferred"
        if any(hit.document_id == piece.document_id for hit in hits):
            place = "another part of its document was preferred"
        retrieved = f"{len(hits):,} passages ({sum(sizes):,} tokens) retrieved"
        return f"Outranked: it is not among the {retrieved}; {place}."

    def _text(self, hit: Retrieved) -> str:
        if hit.document_id not in self._texts or not hit.spans:
            return hit.text
        return text_of_spans(self._texts[hit.document_id], hit.spans)


def overlap(hit: Retrieved, piece: Evidence) -> int:
    """The characters that a hit shares with evidence; those of two of its spans twice."""
    if hit.document_id != piece.document_id:
        return 0
    start, end = piece.span.start, piece.span.end
    return sum(max(0, min(span.end, end) - max(span.start, start)) for span in hit.spans)


def _found_in_part(
    ranks: Sequence[int], overlaps: Sequence[int], sizes: Sequence[int], length: int, k: Depth
) -> str:
    """Why evidence that hits overlap is not found: outranked, cut by the budget, or split by a boundary."""
    before = [0, *accumulate(sizes)]  # tokens before each hit
    budget = budget_of(k)
    if budget:
        inside = [rank for rank in ranks if before[rank] < budget]
    else:
        inside = [rank for rank in ranks if rank < (k if isinstance(k, int) else 1)]
    if not inside:
        number = f"Outranked: its passage is number {ranks[0] + 1:,}"
        if budget:
            number += f", {max(1, before[ranks[0]] - budget):,} tokens too deep"
        return f"{number}."
    over = before[inside[-1] + 1] - budget if budget else 0
    if over > 0:
        return f"Cut by the budget: the passage with it ends {over:,} tokens past it."
    if sum(overlaps[: len(inside)]) < length:
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
