"""`Advice`: what to use, why, what to avoid, what would settle the rest; `missed_by`: what it missed."""

from __future__ import annotations

import math
import shlex
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from chunkcore.chunkers.base import chunkers, get_chunker
from chunkcore.errors import ChunkcoreError, counted
from chunkcore.evaluation.benchmarks import Evidence
from chunkcore.evaluation.comparison import (
    Difference,
    listed,
    rounded,
    unsettled_words,
)
from chunkcore.evaluation.measures import Depth, budget_of, describe_depth, get_measure
from chunkcore.evaluation.resampling import mean_std
from chunkcore.evaluation.results import Cost, Report, System
from chunkcore.models.loading import DEFAULT_MODEL
from chunkcore.options import format_spec, split_spec
from chunkcore.retrieval import get_retriever
from chunkcore.retrieval.lexicon import word_keys
from chunkcore.run import Retrieved
from chunkcore.spans import as_ranges, clip_ranges
from chunkcore.study.behind import HITS, UNITS, WORDS
from chunkcore.study.comparing import FEW, ReportPage
from chunkcore.study.tuning import Tuning
from chunkcore.text import Span, text_of_spans
from chunkcore.tokens import get_counter

DEFAULT_COUNTER = "cl100k_base"
# The measured system: the same chunks, retriever, model and budget.
_SYSTEM = """from chunkcore import load_documents
from chunkcore.retrieval import chunk_corpus, get_retriever

documents = load_documents("{folder}")
corpus = chunk_corpus(documents, "{spec}")
index = get_retriever("{retriever}").index(corpus{vectors})"""
_SAVED = """
index.save("index")  # once; later the folder is enough
"""
_WORDS = f"""units = chunk_corpus(documents, "{{units}}")
get_retriever("{WORDS}").index(units).save("words")
"""
_PLAIN = """

for passage in index.retrieve("your question", {limit}):
    print(passage.document_id, passage.text)"""
# A chunker alone.
_SPLITTERS = {
    "LangChain": """from chunkadapters.langchain import ChunkcoreTextSplitter

splitter = ChunkcoreTextSplitter("{spec}"{fitted})""",
    "LlamaIndex": """from chunkadapters.llamaindex import ChunkcoreNodeParser

parser = ChunkcoreNodeParser("{spec}"{fitted})""",
    "Haystack": """from chunkadapters.haystack import ChunkcoreDocumentSplitter

splitter = ChunkcoreDocumentSplitter("{spec}"{fitted})""",
}
# The retriever of a saved index.
_RETRIEVERS = {
    "LangChain": """
from chunkadapters.langchain import IndexRetriever

retriever = IndexRetriever("index", {limit}{counting})""",
    "LlamaIndex": """
from chunkadapters.llamaindex import IndexRetriever

retriever = IndexRetriever("index", {limit}{counting})""",
    "Haystack": """
from chunkadapters.haystack import ChunkcoreIndexRetriever

retriever = ChunkcoreIndexRetriever("index", {limit}{counting})""",
}
# Passages behind it.
_BEHIND = {
    "LangChain": f"""
from chunkadapters.langchain import IndexRetriever, PassageRetriever

yours = IndexRetriever("index", k={HITS}, max_tokens=100_000)  # or yours
retriever = PassageRetriever(yours, index="words", {{limit}}{{showing}}{{counting}})""",
    "LlamaIndex": f"""
from chunkadapters.llamaindex import IndexRetriever, PassageRetriever

yours = IndexRetriever("index", k={HITS}, max_tokens=100_000)  # or yours
retriever = PassageRetriever(yours, index="words", {{limit}}{{showing}}{{counting}})""",
    "Haystack": f"""
from haystack import Pipeline

from chunkadapters.haystack import ChunkcoreIndexRetriever, ChunkcorePassageRanker

yours = ChunkcoreIndexRetriever("index", k={HITS}, max_tokens=100_000)  # or yours
retriever = Pipeline()
retriever.add_component("yours", yours)
retriever.add_component("passages", ChunkcorePassageRanker(index="words", {{limit}}{{showing}}{{counting}}))
retriever.connect("yours.documents", "passages.documents")""",
}
_PACKAGES = {"LangChain": "langchain_core", "LlamaIndex": "llama_index", "Haystack": "haystack"}


def snippets(
    system: System,
    counter: str = DEFAULT_COUNTER,
    folder: str = "docs/",
    k: Depth | None = None,
) -> Mapping[str, str]:
    """Code to paste, by title: the chunker in each framework; with a retriever, the whole system as it was measured.

    The frameworks that are installed come first, then plain Python.

    Args:
        system: its embedder is a name for `get_embedder`; "" for the default.
        counter: of the budget's tokens, for `get_counter`.
        folder: of the user's documents.
        k: how much is retrieved, as of a measure; 1,000 tokens without one, and for "min".

    >>> print(snippets(System("sentence:size=100"))["LangChain"])
    from chunkadapters.langchain import ChunkcoreTextSplitter
    <BLANKLINE>
    splitter = ChunkcoreTextSplitter("sentence:size=100")
    """
    name, options = split_spec(system.chunker)
    spec, model = system.chunker, system.embedder or DEFAULT_MODEL
    embeds = "embedder" in chunkers[name].option_names() and "embedder" not in options
    # The chunker would default to another.
    if embeds and model != DEFAULT_MODEL:
        spec = format_spec(name, {**options, "embedder": model})
    start, templates = "", _SPLITTERS
    if system.retriever:
        start, templates = _SYSTEM + _SAVED, _RETRIEVERS
    if system.retriever and system.behind:
        start, templates = start + _WORDS, _BEHIND
    values = _values(system, spec, model, counter, folder, k)
    blocks = {title: (start + text).format(**values) for title, text in templates.items()}
    # An index counts in its own tokens.
    if templates is _RETRIEVERS and counter == DEFAULT_COUNTER:
        blocks["Python"] = (_SYSTEM + _PLAIN).format(**values)
    missing = [title for title, package in _PACKAGES.items() if not find_spec(package)]
    ordered = sorted(blocks, key=missing.__contains__)
    command = f"chunkcore chunk {shlex.quote(folder)} --chunker {shlex.quote(spec)}"
    return {title: blocks[title] for title in ordered} | {"Command line": command}


def _values(
    system: System, spec: str, model: str, counter: str, folder: str, k: Depth | None
) -> dict[str, str]:
    """What the blocks show of a system, and the arguments that they need."""
    texts = {"folder": folder, "spec": spec, "retriever": system.retriever, "units": UNITS}
    fitted = vectors = counting = showing = ""
    # For sizes in the embedder's own tokens, the adapter needs the embedder.
    if split_spec(spec)[1].get("counter") == "embedder":
        fitted = f', fit_to="{_escaped(model)}"'
    limit = f"max_tokens={budget_of(k) or 1000}"
    if system.retriever:
        method = get_retriever(system.retriever)
        if method.embeds:
            vectors = f', "{_escaped(model)}"'
        if isinstance(k, int):
            limit = f"k={k}"
            # The best passages are of an answer of 1,000 tokens.
            if not (system.behind or method.makes_passages):
                limit += ", max_tokens=100_000"
    if counter != DEFAULT_COUNTER:
        texts["units"] += f",counter={counter}"
        counting = f', counter="{_escaped(counter)}"'
    if system.behind != "hits":
        showing = f', show="{system.behind}"'
    arguments = {"fitted": fitted, "vectors": vectors, "counting": counting, "showing": showing}
    return {name: _escaped(text) for name, text in texts.items()} | arguments | {"limit": limit}


def _escaped(text: str) -> str:
    """Text for a Python string in double quotes: ASCII, without quotes or terminal controls."""
    shown = ascii(text + '"')[1:-1].removesuffix('"')
    return shown.replace("\\'", "'").replace('"', '\\"')


_ALIKE = 1.05  # costs within 5 % count as equal


class Advice(NamedTuple):
    """What to do after a comparison or a search."""

    use: str  # the system to use, as its report names it; "" if none can be advised
    lines: tuple[tuple[str, str], ...]  # labels and sentences, the most important first
    pasted: Mapping[str, str] = {}  # by title, code that builds the system
    command: str = ""  # what to run next

    @classmethod
    def of(cls, page: ReportPage) -> Advice:
        """Of the tied: the cheapest whose mean is within the comparison's margin of the best."""
        if page.tuning:
            return cls._of_tuning(page, page.tuning)
        comparison = page.comparison
        if not comparison.standing:
            nothing = f"{comparison.measure} is not defined for any of them"
            return cls("", (("Use", f"Nothing can be advised: {nothing}."),))
        choice = _Choice(page)
        command = page.more_questions if choice.questions < FEW else ""
        return cls(choice.use, tuple(choice.lines()), _pasted(choice.chosen, page), command)

    @classmethod
    def _of_tuning(cls, page: ReportPage, tuning: Tuning) -> Advice:
        """The winner if held-out questions show a gain over the default, else the default."""
        measure = tuning.measure
        report = tuning.held_out if tuning.gain else tuning.comparison.reports[1]
        score = f"{measure.show(report.mean(measure))}{measure.suffix}"
        questions = len(report.query_ids)
        few = questions < FEW
        label = "Keep the default"
        if tuning.gain:
            label = "For now" if few else "Use"
        expected = f"{tuning.use}: expect a {measure} of {score} on other questions."
        lines = {label: expected, "Why": tuning.verdict}
        if few:
            lines["Next"] = f"{_few(questions)}, tune again."
        command = page.more_questions if few else ""
        pasted = _pasted(tuning.report(tuning.use), page)
        return cls(tuning.use, tuple(lines.items()), pasted, command)


class _Choice:
    """The system to use, of those that a comparison leaves, and what to say of the others."""

    def __init__(self, page: ReportPage) -> None:
        comparison = self.comparison = page.comparison
        self.measure = comparison.measure
        standing = comparison.standing
        first = standing[0].values(self.measure)
        self.questions = int(np.count_nonzero(~np.isnan(first)))
        complete = [report for report in standing if not report.asked] or standing
        self._lowest, self._amounts, costs = _costs(page)
        near = self._within_margin(complete)
        self._costs = [costs[report.name] for report in near]
        # NaN is unknown: no system is chosen for a cost that is not known, and none is cheaper than it.
        most = _ALIKE * min(self._costs)
        cheap = (report for report in near if costs[report.name] <= most)
        self.chosen = next(cheap, near[0])
        self.use = self.chosen.name
        self._cost = costs[self.use]
        others = [report.name for report in complete if report is not self.chosen]
        self._gaps = {name: comparison.between(self.use, name) for name in others}
        self._tied = [name for name in others if not self._gaps[name].likely]

    def _within_margin(self, reports: Sequence[Report]) -> list[Report]:
        """The systems within the margin of the best mean that none of the tied beats."""
        comparison, best = self.comparison, reports[0].mean(self.measure)
        near = []
        for report in reports:
            # Being tied is no chain: one of the tied may still be worse than another.
            others = [name for name in comparison.tied if name != report.name]
            is_beaten = any(_beats(comparison.between(name, report.name)) for name in others)
            if abs(best - report.mean(self.measure)) <= comparison.margin and not is_beaten:
                near.append(report)
        return near

    def lines(self) -> Iterator[tuple[str, str]]:
        few = self.questions < FEW
        yield "For now" if few else "Use", f"{self.use}: {self._quality()}"
        sentences = {
            "Against the baseline": self._against(),
            "Tied": self._tie(),
            "Why this one": self._reason(),
            "Likely worse": self._likely_worse(),
            "Avoid": self._avoided(),
        }
        if few:
            sentences["Next"] = f"{_few(self.questions)}, and compare again."
        else:
            sentences["To settle it"] = self._settled()
        yield from filter(itemgetter(1), sentences.items())

    def _quality(self) -> str:
        measure = self.measure
        low, high = map(measure.show, self.comparison.intervals[self.use])
        score = f"{measure.show(self.chosen.mean(measure))}{measure.suffix}"
        sentence = f"its {measure} is {score}"
        if measure.kind == "Recall" and measure.unit == "token" and measure.k:
            budget = budget_of(measure.k)
            where = describe_depth(measure.k)
            if budget:
                where = f"{budget:,} retrieved tokens"
            sentence = f"it finds {score} of the evidence in {where}"
        return f"{sentence} (95 % interval {low} to {high})."

    def _against(self) -> str:
        """How the advised system compares with the baseline; "" without one, or without others."""
        baseline = self.comparison.baseline
        if not self._gaps:
            return ""
        if baseline == self.use:
            ahead = [gap.b for gap in self._gaps.values() if gap.distinct and gap.mean < 0]
            rest = "no other is shown to be better"
            if ahead:
                rest = f"{listed(ahead)}: shown to be better"
            return f"{baseline} is the baseline; {rest}."
        gap = self.comparison.between(self.use, baseline)
        if math.isnan(gap.mean):
            return f"{baseline}: {self.measure} is not defined for it."
        shown = "no significant difference"
        if gap.distinct:
            shown = "more than chance explains"
        elif gap.likely:
            shown = "likely, but not shown among so many systems"
        elif gap.low * gap.high > 0:
            shown = "too few questions differ to tell"
        place = "ahead of" if gap.mean >= 0 else "behind"
        low = gap.measure.show(gap.low, signed=True)
        high = gap.measure.show(gap.high, signed=True)
        lead = f"{_points(gap)} {place} {baseline} (95 % interval {low} to {high})"
        return f"{self.use} is {lead}: {shown}."

    def _tie(self) -> str:
        if not self._tied:
            return ""
        questions = counted(self.questions, "question")
        tie = f"{listed(self._tied)}: no significant difference on {questions}."
        if self.comparison.margin:
            tie += f" Under the margin of {self.comparison.within} a difference would not matter."
        return tie

    def _reason(self) -> str:
        within = self.comparison.within
        if len(self._costs) == 1:
            far = f"any tied system is more than {within} worse, though that may be chance"
            return f"It has the best score; {far}." if self._tied else ""
        dearest = max(self._costs)
        if not dearest > _ALIKE * self._cost:
            return (
                f"It has the best score, and no other within {within} of it is known to cost less."
            )
        amounts = self._amounts.format(self._cost, dearest)
        return f"It has the {self._lowest} of those within {within} of the best score: {amounts}."

    def _likely_worse(self) -> str:
        unsettled = [gap for gap in self._gaps.values() if gap.likely and not gap.distinct]
        likely = [gap for gap in unsettled if gap.mean > 0 and not gap.equivalent]
        return unsettled_words(self.comparison, likely) if likely else ""

    def _avoided(self) -> str:
        worse = sorted(filter(_beats, self._gaps.values()), key=lambda gap: -gap.mean)
        names = [f"{gap.b} ({_points(gap)} lower)" for gap in worse]
        return f"{listed(names)}: more than chance explains." if names else ""

    def _settled(self) -> str:
        """How many documents and questions settle a tie; "" where nothing is known of it."""
        comparison = self.comparison
        if self._tied and all(self._gaps[name].equivalent for name in self._tied):
            return f"Nothing: any tied system is within {comparison.within} of it (equivalent)."
        if not self._tied or not comparison.questions_needed:
            return ""
        fewest, most = comparison.questions_needed
        low, high = max(0, fewest - self.questions), max(0, most - self.questions)
        more = f"{rounded(low)} to {rounded(high)} more questions"
        if comparison.by == "document":
            size = self.questions / comparison.units
            more += f", which is {rounded(low / size)} to {rounded(high / size)} more documents like these,"
        return f"{more} show a difference of {comparison.within} in 8 of 10 cases."


def _beats(gap: Difference) -> bool:
    """Whether the first of a pair is better by more than chance explains, and not equivalent."""
    return gap.distinct and not gap.equivalent and gap.mean > 0


def _points(gap: Difference) -> str:
    return f"{gap.measure.show(abs(gap.mean))}{gap.measure.points}"


def _costs(page: ReportPage) -> tuple[str, str, Mapping[str, float]]:
    """What should be low, in words, of the lowest and the highest, and of each system; NaN where it is unknown.

    That is retrieved tokens; where all retrieve a budget, the cost of indexing.
    """
    k = page.comparison.measure.k
    if k and not budget_of(k):
        tokens = {report.name: report.mean_tokens(k) for report in page.reports}
        if all(map(math.isfinite, tokens.values())):
            return "fewest retrieved tokens", "{0:,.0f} a question, others up to {1:,.0f}", tokens
    costs = {report.name: report.cost or Cost() for report in page.reports}
    prices = {name: cost.money_per_million for name, cost in costs.items()}
    noun = "lowest cost to index"
    if any(price > 0 for price in prices.values()):
        return noun, "{0:.3g} for a million tokens, others up to {1:.3g}", prices
    shown = "models read {0:.1f} times the documents' tokens, others up to {1:.1f} times"
    return noun, shown, {name: _model_tokens(cost) for name, cost in costs.items()}


def _model_tokens(cost: Cost) -> float:
    """Tokens that embedders and language models read and wrote, per token of the source."""
    llm_tokens = cost.llm_input_tokens + cost.llm_output_tokens
    return cost.tokens_ratio + llm_tokens / (cost.source_tokens or math.nan)


def _pasted(use: Report, page: ReportPage) -> Mapping[str, str]:
    """The code that builds a system; none for a deployed system, which is no chunker."""
    system = replace(use.system, chunker=use.chunker)
    if system.embedder.rpartition(":")[2] == DEFAULT_MODEL:
        system = replace(system, embedder="")
    try:
        get_chunker(system.chunker)
    except ChunkcoreError:
        return {}
    counter = get_counter(page.counter).name
    return snippets(system, counter, page.folder, page.comparison.measure.k)


def _few(questions: int) -> str:
    return (
        f"{counted(questions, 'question')} can settle little: label {FEW - questions} more at least"
    )


# ---- what it missed

MOST = 10  # questions
_EXCERPT = 300  # characters
_MATCHING = "first5"  # words are compared as the passages' lexical search does


class Missed(NamedTuple):
    """A question of which a system found little."""

    question: str
    recall: float  # see `recall_of`
    evidence: str  # the piece of which least was found
    passage: str  # the first that overlaps that piece, else the first retrieved; "" for none
    marked: tuple[int, int] | None  # where that piece's part stands in `passage`
    reason: str  # why, in one sentence, from the ranking


def missed_by(page: ReportPage, name: str) -> list[Missed]:
    """The ten questions of which a page's system found least at the verdict's depth.

    None if it found everything, or without its run or the benchmark.
    """
    benchmark, k = page.benchmark, page.chosen_k
    report = next((report for report in page.reports if report.name == name), None)
    if not benchmark or not report or not report.run:
        return []
    queries = {query.id: query for query in benchmark.queries}
    rows = []
    for number, shares in enumerate(report.found.get(k, ())):
        recall, query = recall_of(report, k, number), queries.get(report.query_ids[number])
        if query and recall < 1:
            rows.append((recall, query, shares))
    rows.sort(key=itemgetter(0))
    texts = {document.id: document.text for document in benchmark.documents}
    counter = get_counter(page.counter)
    missed = []
    for recall, query, shares in rows[:MOST]:
        piece = query.evidence[int(np.nanargmin(shares))]
        source = texts[piece.document_id]
        evidence = piece.span.slice(source)
        hits = report.run.results.get(query.id, ())
        retrieved = [_text(hit, texts) for hit in hits]
        parts = [_parts_in(hit, piece) for hit in hits]
        sizes = counter.count_many(retrieved).tolist()
        passage, marked = _excerpt("".join(retrieved[:1])), None
        if any(parts):
            reason = _found_in_part(parts, sizes, k)
            number = next(number for number, held in enumerate(parts) if held)
            passage, marked = _marked(retrieved[number], parts[number][0].slice(source))
        elif set(word_keys(query.text, _MATCHING)).isdisjoint(word_keys(evidence, _MATCHING)):
            reason = "No shared word: question and evidence have none in common."
        else:
            names = [hit.document_id for hit in hits]
            reason = _preferred(names, piece.document_id, sum(sizes))
        missed.append(Missed(query.text, recall, _excerpt(evidence), passage, marked, reason))
    return missed


def recall_of(report: Report, k: Depth, number: int) -> float:
    """The share of a question's evidence found at k: its recall in tokens; the mean over its pieces if that is not
    scored.
    """
    recall = get_measure("Recall", k)
    if recall in report.scores:
        return float(report.scores[recall][number])
    return mean_std(np.array(report.found[k][number]))[0]


def _preferred(names: Sequence[str], document_id: str, tokens: int) -> str:
    """Why evidence is not found of which no hit has a part; `names` are the hits' documents."""
    if not names:
        return "No answer: nothing was retrieved for this question."
    place = "other documents were preferred"
    if document_id in names:
        place = "another part of its document was preferred"
    count = f"{counted(len(names), 'passage')} ({counted(tokens, 'token')}) retrieved"
    return f"Outranked: it is not among the {count}; {place}."


def _text(hit: Retrieved, texts: Mapping[str, str]) -> str:
    if hit.document_id not in texts or not hit.spans:
        return hit.text
    return text_of_spans(texts[hit.document_id], hit.spans)


def _parts_in(hit: Retrieved, piece: Evidence) -> list[Span]:
    """The parts of a piece of evidence that a hit has."""
    if hit.document_id != piece.document_id:
        return []
    parts, _ = clip_ranges(as_ranges(hit.spans), as_ranges([piece.span]))
    return [Span(*ends) for ends in parts.tolist()]


def _found_in_part(parts: Sequence[Sequence[Span]], sizes: Sequence[int], k: Depth) -> str:
    """Why evidence of which hits have parts is not found: outranked, cut by the budget, or split by a boundary."""
    budget = budget_of(k)
    begins = list(accumulate(sizes, initial=0))
    depth = k if isinstance(k, int) else 1
    if budget:
        depth = bisect_left(begins, budget)
    ranks = [rank for rank, spans in enumerate(parts) if spans]
    inside = [rank for rank in ranks if rank < depth]
    if not inside:
        deep = ""
        if budget:
            deep = f", {counted(max(1, begins[ranks[0]] - budget), 'token')} too deep"
        return f"Outranked: its passage is number {ranks[0] + 1:,}{deep}."
    end = begins[inside[-1] + 1]
    if budget and end > budget:
        return f"Cut by the budget: the passage with it ends {end - budget:,} tokens past it."
    return "Split by a boundary: a neighbouring chunk has the rest of it and was not retrieved."


def _excerpt(text: str) -> str:
    shown = " ".join(text.split())
    if len(shown) <= _EXCERPT:
        return shown
    words = shown[:_EXCERPT].rpartition(" ")[0] or shown[:_EXCERPT]
    return f"{words} […]"


def _marked(passage: str, held: str) -> tuple[str, tuple[int, int] | None]:
    """An excerpt of a passage that shows the evidence it holds, and where that stands in it."""
    passage = " ".join(passage.split())
    evidence = _excerpt(held).removesuffix(" […]")
    if not evidence or evidence not in passage:
        return _excerpt(passage), None
    before, _, after = passage.partition(evidence)
    if len(before + evidence) > _EXCERPT:  # begins half an excerpt before the evidence
        cut = before.rfind(" ", 0, max(0, len(before) - _EXCERPT // 2)) + 1
        if cut:
            before = f"[…] {before[cut:]}"
    if len(before + evidence + after) > _EXCERPT:
        after = _excerpt(after)
    return before + evidence + after, (len(before), len(before + evidence))
