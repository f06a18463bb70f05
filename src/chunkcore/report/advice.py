"""`Advice`: what to use, why, and what to avoid; `missed_by`: the questions of which the advised system found least."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from chunkcore.chunkers.base import get_chunker
from chunkcore.errors import ChunkcoreError
from chunkcore.escaping import markdown_cell
from chunkcore.evaluation.benchmarks.benchmark import Evidence, Query
from chunkcore.evaluation.comparison import Comparison
from chunkcore.evaluation.measures import Depth, budget_of, describe_depth
from chunkcore.evaluation.results import Report
from chunkcore.models.loading import DEFAULT_MODEL
from chunkcore.report.pasting import snippets
from chunkcore.report.tables import Column, Table, cost_axis, listed, percent
from chunkcore.retrieval.lexicon import word_keys
from chunkcore.run import Retrieved, Run
from chunkcore.spans import Numbers
from chunkcore.study.comparing import overlap
from chunkcore.study.page import FEW, ReportPage, mean
from chunkcore.study.tuning import CHOICE, Tuning
from chunkcore.text import text_of_spans
from chunkcore.tokens import TokenCounter, get_counter

_ALIKE = 1.05  # costs within 5 % count as equal
_DEAR = 2.0  # a tied system that costs so many times as much is named


@dataclass(frozen=True)
class Advice:
    """What to do after a comparison or a search."""

    use: str  # the system to use, as its report names it; "" if none can be advised
    lines: tuple[tuple[str, str], ...]  # labels and sentences, the most important first
    pasted: Mapping[str, str] = field(default_factory=dict)  # by title, code that builds the system
    command: str = ""  # what to run next

    @classmethod
    def of(cls, page: ReportPage) -> Advice:
        """Of the tied: the cheapest whose mean is within the comparison's margin of the highest."""
        if page.tuning is not None:
            return cls._of_tuning(page, page.tuning)
        comparison, measure = page.comparison, page.comparison.measure
        standing = {report.name: report for report in comparison.standing}
        if not standing:
            return cls(
                "", (("Use", f"Nothing can be advised: {measure} is not defined for any of them."),)
            )
        questions = int(np.count_nonzero(~np.isnan(standing[comparison.tied[0]].values(measure))))
        costs = _Costs.on(page)
        near = _near(comparison, standing)
        least = min(costs.of[name] for name in near)
        use = next(name for name in near if not costs.of[name] > _ALIKE * least)
        few = questions < FEW
        lines = [("For now" if few else "Use", f"{use}: {_quality(page, use)}")]
        others = (name for name in standing if name != use)
        tied = [
            name
            for name in others
            if not _worse(comparison, name, use) and not _worse(comparison, use, name)
        ]
        if tied:
            margin = f" Under the margin of {comparison.within} a difference would not matter."
            shown = f"{listed(tied)}: {questions:,} questions show no significant difference."
            lines.append(("Tied", shown + margin if comparison.margin else shown))
            lines.append(("Why this one", _reason(use, near, costs, comparison.within)))
        if avoid := _avoided(page, use, tied, costs):
            lines.append(("Avoid", avoid))
        if page.balances is not None:
            lines.append(("Balance", _balance(page.balances)))
        if few:
            lines.append(("Next", f"{_few(questions)}, and compare again."))
        elif settled := _settled(page, use, tied, questions):
            lines.append(("To settle it", settled))
        return cls(
            use, tuple(lines), _pasted(standing[use], page), page.more_questions if few else ""
        )

    @classmethod
    def _of_tuning(cls, page: ReportPage, tuning: Tuning) -> Advice:
        """The winner if held-out questions show a gain over the default, else the default."""
        measure = tuning.measure
        report = tuning.held_out if tuning.gain else tuning.comparison.reports[1]
        few = len(report.query_ids) < FEW
        expected = f"expect a {measure} of {measure.show(report.mean(measure))}{measure.suffix} on other questions"
        if tuning.gain:
            low, high = map(measure.show, tuning.comparison.intervals[CHOICE])
            why = f"On questions that did not choose it, its lead over the default, {tuning.default}, is {_lead(tuning)}."  # noqa: E501
            lines = [
                ("For now" if few else "Use", f"{tuning.use}: {expected} ({low} to {high})."),
                ("Why", why),
            ]
        else:
            why = f"On questions that did not choose it, the lead of the choice is {_lead(tuning)}: no significant gain."  # noqa: E501
            lines = [("Keep the default", f"{tuning.use}: {expected}."), ("Why", why)]
        if few:
            lines.append(("Next", f"{_few(len(report.query_ids))}, tune again."))
        command = page.more_questions if few else ""
        return cls(tuning.use, tuple(lines), _pasted(tuning.report(tuning.use), page), command)

    def markdown(self) -> str:
        """The lines as a list, then the first block of code to paste, folded."""
        parts = ["\n".join(f"- **{label}** {markdown_cell(text)}" for label, text in self.lines)]
        if self.command:
            parts.append(_fenced(self.command))
        if self.pasted:
            title, text = next(iter(self.pasted.items()))  # the page has the others
            block = f"{markdown_cell(title)}:\n\n{_fenced(text)}"
            parts += ["<details><summary>Lines to paste</summary>", block, "</details>"]
        return "\n\n".join(parts)


def _pasted(use: Report, page: ReportPage) -> Mapping[str, str]:
    """The code that builds a system; none for a deployed system, which is no chunker."""
    system = use.system
    if system.embedder.rpartition(":")[2] == DEFAULT_MODEL:
        system = replace(system, embedder="")
    system = replace(system, chunker=use.chunker)
    try:
        get_chunker(system.chunker)
    except ChunkcoreError:
        return {}
    return snippets(system, get_counter(page.counter).name, page.folder)


def _few(questions: int) -> str:
    return f"{questions} questions settle little: label {FEW - questions} more at least"


def _lead(tuning: Tuning) -> str:
    """The difference of the held-out scores from the default's, with its interval."""
    measure, change = tuning.measure, tuning.difference
    low, high = measure.show(change.low, signed=True), measure.show(change.high, signed=True)
    return (
        f"{measure.show(change.mean, signed=True)}{measure.points} (95 % interval {low} to {high})"
    )


def _balance(tuning: Tuning) -> str:
    """Whether passages at another balance of vectors and words do better on questions that did not choose it."""
    winner = tuning.configurations[tuning.winner]
    if tuning.gain:
        lead = f"on held-out questions its lead over the default is {_lead(tuning)}"
        return f"{winner.retriever} over {winner.chunker}: {lead}."
    others = len(tuning.reports) - 1
    lead = f"the best of {others} others has a lead of {_lead(tuning)} on held-out questions"
    return f"Keep the default of passages: {lead}."


def _near(comparison: Comparison, standing: Mapping[str, Report]) -> list[str]:
    """The systems within the margin of the highest mean that none of the tied beats."""
    measure, tied = comparison.measure, comparison.tied
    # Being tied is no chain: one of the tied may still be significantly worse than another.
    beaten = {
        name
        for name in standing
        for other in tied
        if other != name and _worse(comparison, name, other)
    }
    best = mean(standing[tied[0]], measure)
    near = (
        name
        for name, report in standing.items()
        if abs(best - mean(report, measure)) <= comparison.margin
    )
    return [name for name in near if name not in beaten]


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def _worse(comparison: Comparison, name: str, other: str) -> bool:
    """Whether one is worse than the other by more than chance explains, and not equivalent to it."""
    gap = comparison.between(other, name)
    return gap.distinct and not gap.equivalent and comparison.measure.sign * gap.mean > 0


def _quality(page: ReportPage, name: str) -> str:
    measure = page.comparison.measure
    report = next(report for report in page.reports if report.name == name)
    low, high = map(measure.show, page.comparison.intervals[name])
    score = f"{measure.show(mean(report, measure))}{measure.suffix}"
    sentence = f"its {measure} is {score}"
    if measure.kind == "Recall" and measure.unit == "token" and measure.k is not None:
        budget = budget_of(measure.k)
        where = describe_depth(measure.k) if budget is None else f"{budget:,} retrieved tokens"
        sentence = f"it finds {score} of the evidence in {where}"
    return f"{sentence} ({page.level} interval {low} to {high})."


class _Costs(NamedTuple):
    """What should be low: retrieved tokens; where all retrieve a budget, the cost of indexing. NaN if unknown."""

    of: Mapping[str, float]
    noun: str
    shown: str

    @classmethod
    def on(cls, page: ReportPage) -> _Costs:
        k = page.comparison.measure.k
        names = [report.name for report in page.reports]
        retrieved = {
            report.name: math.nan if k is None else report.mean_tokens(k) for report in page.reports
        }
        if k is not None and budget_of(k) is None and all(map(math.isfinite, retrieved.values())):
            return cls(retrieved, "retrieved tokens", "{0:,.0f} a question, others up to {1:,.0f}")
        axis = cost_axis(page)
        values = axis.values if axis else [math.nan] * len(names)
        shown = "models read {0:.1f} times the documents' tokens, others up to {1:.1f} times"
        if axis and axis.title == "cost":
            shown = "{0:.3g} for a million tokens, others up to {1:.3g}"
        return cls(dict(zip(names, values, strict=True)), "cost to index", shown)


def _reason(use: str, near: Sequence[str], costs: _Costs, within: str) -> str:
    if len(near) == 1:
        return f"It has the highest score; the tied are more than {within} lower, though that may be chance."
    least, dearest = costs.of[use], max(costs.of[name] for name in near)
    if not dearest > _ALIKE * least:
        return (
            f"It has the highest score, and no other within {within} of it is known to cost less."
        )
    most = "fewest" if costs.noun.endswith("s") else "lowest"
    amounts = costs.shown.format(least, dearest)
    return (
        f"It has the {most} {costs.noun} of those within {within} of the highest score: {amounts}."
    )


def _avoided(page: ReportPage, use: str, tied: Sequence[str], costs: _Costs) -> str:
    comparison, measure = page.comparison, page.comparison.measure
    word = "lower" if measure.higher_is_better else "higher"
    gaps = [comparison.between(use, report.name) for report in page.reports if report.name != use]
    worse = sorted(
        (gap for gap in gaps if _worse(comparison, gap.b, use)), key=lambda gap: -abs(gap.mean)
    )
    sentences = []
    if worse:
        names = [f"{gap.b} ({measure.show(abs(gap.mean))}{measure.points} {word})" for gap in worse]
        sentences.append(f"{listed(names)}: more than chance explains.")
    ratios = {
        name: costs.of[name] / costs.of[use]
        for name in tied
        if costs.of[name] > _DEAR * costs.of[use] > 0
    }
    if ratios:
        names = [f"{name} ({ratio:.1f} times the {costs.noun})" for name, ratio in ratios.items()]
        sentences.append(f"{listed(names)}: no gain that these questions show.")
    return " ".join(sentences)


def _settled(page: ReportPage, use: str, tied: Sequence[str], questions: int) -> str:
    comparison = page.comparison
    if tied and all(comparison.between(use, name).equivalent for name in tied):
        return f"Nothing: all of these are within {comparison.within} of each other (equivalent)."
    if not tied or comparison.questions_needed is None:
        return ""
    low, high = (
        f"{max(0, int(float(f'{needed:.1e}')) - questions):,}"
        for needed in comparison.questions_needed
    )
    return f"{low} to {high} more questions; so many show a difference of {comparison.within} in 8 of 10 cases."


# ---- what it missed

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
    reason: str  # why, in one sentence, from the ranking


def missed_by(page: ReportPage, name: str) -> list[Missed]:
    """The ten questions of which a page's system found least at the verdict's depth.

    None if it found everything, or without its run or the benchmark.
    """
    report, k, benchmark = (
        next((row for row in page.reports if row.name == name), None),
        page.chosen_k,
        page.benchmark,
    )
    if benchmark is None or report is None or report.run is None or k not in report.found:
        return []
    queries = {query.id: query for query in benchmark.queries}
    rows = [
        (float(np.nanmean(shares)), query, shares)
        for query, shares in zip(report.query_ids, report.found[k], strict=True)
        if query in queries and len(shares) and not np.isnan(shares).all()
    ]
    texts = {document.id: document.text for document in benchmark.documents}
    worst = sorted((row for row in rows if row[0] < 1), key=lambda row: row[0])[:MOST]
    above = page.above and partial(page.above, report)
    missed = partial(
        _missed, run=report.run, texts=texts, k=k, above=above, counter=get_counter(page.counter)
    )
    return [missed(queries[query], recall, shares) for recall, query, shares in worst]


def _missed(
    query: Query,
    recall: float,
    shares: Sequence[float],
    run: Run,
    texts: Mapping[str, str],
    k: Depth,
    above: Callable[[str, Evidence], Numbers | None] | None,
    counter: TokenCounter,
) -> Missed:
    piece = query.evidence[int(np.nanargmin(shares))]
    evidence = texts[piece.document_id][piece.span.start : piece.span.end]
    hits = run.results.get(query.id, ())
    overlaps = [overlap(hit, piece) for hit in hits]
    sizes = counter.count_many([_text(hit, texts) for hit in hits]).tolist()
    ranks = [rank for rank, overlap in enumerate(overlaps) if overlap]
    best = _text(hits[ranks[0] if ranks else 0], texts) if len(hits) else ""
    if ranks:
        cause = _found_in_part(overlaps, ranks, sizes, len(piece.span), k)
    elif not set(word_keys(query.text, _MATCHING)) & set(word_keys(evidence, _MATCHING)):
        cause = "No shared word: question and evidence have none in common."
    elif not len(hits):
        cause = "No answer: nothing was retrieved for this question."
    elif above is not None and (better := above(query.text, piece)) is not None:
        cause = _outranked(better, k)
    else:
        same = any(hit.document_id == piece.document_id for hit in hits)
        place = (
            "another part of its document was preferred"
            if same
            else "other documents were preferred"
        )
        cause = f"Outranked: it is not among the {len(hits):,} passages ({sum(sizes):,} tokens) retrieved; {place}."
    return Missed(query.text, recall, _excerpt(evidence), _excerpt(best), cause)


def _outranked(better: Numbers, k: Depth) -> str:
    """How far down a ranking evidence is; `better` has the tokens of each chunk above it."""
    budget, place = budget_of(k), f"its best chunk is number {len(better) + 1:,}"
    over = int(better.sum()) - budget if budget else len(better) - (k if isinstance(k, int) else 1)
    if over < 0:
        return f"Outranked: {place}, but the passages were made of other chunks."
    return f"Outranked by {max(1, over):,} tokens: {place}." if budget else f"Outranked: {place}."


def _found_in_part(
    overlaps: Sequence[int], ranks: Sequence[int], sizes: Sequence[int], length: int, k: Depth
) -> str:
    """Why evidence that hits overlap is not found: outranked, cut by the budget, or split by a boundary."""
    before = [0, *np.cumsum(sizes).tolist()]  # tokens before each hit
    budget, pieces = budget_of(k), k if isinstance(k, int) else 1
    inside = [rank for rank in ranks if (before[rank] < budget if budget else rank < pieces)]
    if not inside:
        deep = f", {max(1, before[ranks[0]] - budget):,} tokens too deep" if budget else ""
        return f"Outranked: its passage is number {ranks[0] + 1:,}{deep}."
    if budget and (over := before[inside[-1] + 1] - budget) > 0:
        return f"Cut by the budget: the passage with it ends {over:,} tokens past it."
    if sum(overlaps[rank] for rank in inside) < length:
        return "Split by a boundary: a neighbouring chunk has the rest of it and was not retrieved."
    return "Found in part: other evidence of the question was retrieved, this piece not whole."


def _text(hit: Retrieved, texts: Mapping[str, str]) -> str:
    if hit.document_id not in texts or not hit.spans:
        return hit.text
    return text_of_spans(texts[hit.document_id], hit.spans)


def _excerpt(text: str) -> str:
    shown = " ".join(text.split())
    return (
        shown
        if len(shown) <= _EXCERPT
        else f"{shown[:_EXCERPT].rpartition(' ')[0] or shown[:_EXCERPT]} […]"
    )


def missed_table(missed: Sequence[Missed]) -> Table[Missed] | None:
    """A row a question; None without one."""
    columns = (
        Column[Missed]("Question", lambda row: row.question, kind="text"),
        Column[Missed]("Found, %", lambda row: percent(row.recall, 0)),
        Column[Missed]("Why", lambda row: row.reason, kind="text"),
        Column[Missed]("Evidence", lambda row: row.evidence, kind="text"),
        Column[Missed](
            "Best passage", lambda row: row.passage or "none was retrieved", kind="text"
        ),
    )
    return Table("What it missed", columns, tuple(missed)) if missed else None
