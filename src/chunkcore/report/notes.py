"""What a reader must know before believing the numbers: few questions, truncated chunks, unlocated pieces."""

from __future__ import annotations

from typing import get_args

import numpy as np

from chunkcore.evaluation.measures import budget_of, describe_depth
from chunkcore.evaluation.results import Report
from chunkcore.evaluation.run import How
from chunkcore.report.study import Study
from chunkcore.report.tables import Cell, Column, Table, amount, named, percent

__all__ = ["located_table", "warnings"]

# Of 2,000 samples from a strategy whose recall is 90 % (a question is found or not), the 95 % interval held the
# 90 % in 64 % with 10 questions, 86 % with 20, 95 % with 30.
FEW = 30

HOW: dict[str, str] = {
    "spans": "by its spans",
    "exact": "by its text",
    "whitespace": "by its text but for white space",
    "folded": "by its letters and digits",
    "order": "by its text and its neighbours",
    "fuzzy": "by resemblance",
    "part": "by a part of its text",
    "ambiguous": "at one of several places",
    "unlocated": "nowhere",
}


def warnings(study: Study) -> list[str]:
    """One sentence each, of the study and then in the order of the reports; empty where there is nothing to warn of."""
    found = [study.stopped] if study.stopped else []
    if len({report.documents_digest for report in study.reports} - {""}) > 1:
        found.append("The systems were scored on different documents, or on different versions of them.")
    if (count := len(study.reports[0].query_ids)) < FEW:
        found.append(f"Only {plural(count, 'question')} asked: with fewer than {FEW}, intervals are often too narrow.")
    found += [text for report in study.reports for text in _about(report)]
    left_out = len(study.benchmark.problems) if study.benchmark else 0
    if left_out:
        found.append(
            f"{plural(left_out, 'question')} left out because the evidence could not be placed; the report lists each."
        )
    without = len(study.benchmark.without_evidence) if study.benchmark else 0
    if without:
        found.append(f"{plural(without, 'question')} not scored because the collection marks no evidence for them.")
    return found


def _about(report: Report) -> list[str]:
    found = []
    if report.chunks is not None and report.chunks.truncated:
        cut = report.chunks.truncated
        chunks = f"{cut:,} of {report.chunks.count:,} chunks {'is' if cut == 1 else 'are'}"
        found.append(
            f"{report.name}: {chunks} longer than the embedder reads; "
            f"{amount(report.chunks.tokens_lost)} of its tokens were cut off and had no part in the search."
        )
    if report.search_recall is not None:
        found.append(f"{report.name}: the search is approximate and found {report.search_recall}.")
    for k, tokens in report.retrieved_tokens.items():
        # The last piece may end a few tokens early, where a cut would be inside of a character.
        short = int(np.count_nonzero(tokens < 0.95 * (budget_of(k) or 0)))
        if short:
            asked = plural(short, "question")
            found.append(f"{report.name}: {asked} answered with fewer than {describe_depth(k)}, all that the run has.")
    if report.unanswered:
        asked = plural(len(report.unanswered), "question")
        found.append(f"{report.name}: {asked} not answered by this run and scored 0.")
    if lost := report.located.get("unlocated", 0):
        pieces = plural(lost, "retrieved piece")
        found.append(f"{report.name}: {pieces} to be found in no document and counted as irrelevant.")
    return found


def plural(count: int, noun: str) -> str:
    """A count with its noun and "is" or "are".

    >>> plural(1, "chunk"), plural(2, "chunk")
    ('1 chunk is', '2 chunks are')
    """
    return f"{count:,} {noun} is" if count == 1 else f"{count:,} {noun}s are"


def located_table(study: Study) -> Table | None:
    """How many retrieved pieces were located how; None where every one came with right spans."""
    if all(how == "spans" or not count for report in study.reports for how, count in report.located.items()):
        return None
    hows: tuple[How, ...] = get_args(How)
    columns = (Column("Strategy", kind="text"), *(Column(HOW[how], "Pieces located") for how in hows))
    rows = tuple(
        (named(report.name, number), *(_located(report, how) for how in hows))
        for number, report in enumerate(study.reports, 1)
    )
    return Table("How pieces were located", columns, rows)


def _located(report: Report, how: How) -> Cell:
    """A count, and how sure the places are where they may be wrong."""
    sure = report.certainty.get(how, 1.0)
    return Cell(amount(report.located.get(how, 0)), (f"{percent(sure, 0)} % sure",) if sure < 1 else ())
