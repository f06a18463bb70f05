"""Measures that look at the order, at every unit and depth: by hand, and against Python sets."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import pytest
from chunkcore import Benchmark, Document, Evidence, Query, Retrieved, Run, Span, get_counter, score
from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.evaluation.measures import Measure, Unit, budget_of, get_measure
from hypothesis import given
from hypothesis import strategies as st

from tests.test_scoring import cases

DIGITS = Document("digits", "0123456789" * 4)
OTHER = Document("other", "abcdefghij")
ONE = Benchmark("one", [DIGITS, OTHER], [Query("q", "?", (Evidence("digits", Span(10, 20)),))])


def piece(*spans: tuple[int, int], document: str = "digits") -> Retrieved:
    return Retrieved(document, tuple(Span(*each) for each in spans))


def mean_of(measure: str, *retrieved: Retrieved, benchmark: Benchmark = ONE, **options: Any) -> float:
    options.setdefault("counter", "characters")
    pool = options.pop("pool", None)
    return score(Run("r", {"q": list(retrieved)}, pool), benchmark, [measure], **options).mean(measure)


def test_the_best_ranking_has_a_piece_for_each_document_the_richest_first() -> None:
    evidence = (Evidence("other", Span(0, 2)), Evidence("digits", Span(10, 14)), Evidence("digits", Span(30, 34)))
    benchmark = Benchmark("b", ONE.documents, [Query("q", "?", evidence)])
    ideal = 8 + 2 / math.log2(3)
    both = [piece((10, 34)), piece((0, 2), document="other")]
    assert mean_of("nDCG@5", *both, benchmark=benchmark) == 1
    assert mean_of("nDCG@5", *both[::-1], benchmark=benchmark) == pytest.approx((2 + 8 / math.log2(3)) / ideal)
    # At a depth of one nothing better than the richest document can be had.
    assert mean_of("nDCG@1", both[0], benchmark=benchmark) == 1
    assert mean_of("nDCG@1", both[1], benchmark=benchmark) == 2 / 8


def test_the_last_piece_is_cut_at_the_budget() -> None:
    ranking = [piece((15, 25)), piece((0, 12)), piece((12, 15))]
    # 10 characters, then 5 of the second piece's 12; the third is never reached.
    assert mean_of("Recall@15tok", *ranking) == 5 / 10
    assert mean_of("Precision@15tok", *ranking) == 5 / 15
    # With 22, the second piece is whole: 10 and 11 are relevant; with 24, two more.
    assert [mean_of(f"Recall@{budget}tok", *ranking) for budget in (21, 22, 23, 24, 25, 99)] == [
        0.6, 0.7, 0.8, 0.9, 1, 1,
    ]  # fmt: skip


STORY = Document("story", "The fox naps. The hen runs. The owl sees both. Night falls.")
#                          0             14            28                 47


def test_sentences_are_counted_whole() -> None:
    evidence = (Evidence("story", Span(18, 26)),)  # "hen runs", inside of the second sentence
    benchmark = Benchmark("b", [STORY], [Query("q", "?", evidence)])
    found = piece((14, 46), document="story")
    assert mean_of("Recall@5[sentence]", found, benchmark=benchmark) == 1
    assert mean_of("Precision@5[sentence]", found, benchmark=benchmark) == 1 / 2
    assert mean_of("F1@5[sentence]", found, found, benchmark=benchmark) == 2 * 1 / (1 + 4)
    # What begins in the middle of a sentence holds the next ones.
    assert mean_of("Recall@5[sentence]", piece((16, 46), document="story"), benchmark=benchmark) == 0


TEN = [Document(f"d{number}", f"Document {number}.") for number in range(10)]
DOCUMENTS = Benchmark("ten", TEN, [Query("q", "?", (Evidence("d1", Span(0, 4)), Evidence("d4", Span(0, 4))))])


def of(*numbers: int) -> list[Retrieved]:
    return [piece((5, 9), document=f"d{number}") for number in numbers]


def test_a_document_is_retrieved_with_any_chunk_of_it_and_counts_once() -> None:
    ranking = of(0, 4, 4, 2, 1)
    assert mean_of("Recall@4[document]", *ranking, benchmark=DOCUMENTS) == 1 / 2
    assert mean_of("Precision@4[document]", *ranking, benchmark=DOCUMENTS) == 1 / 3
    assert mean_of("F1@5[document]", *ranking, benchmark=DOCUMENTS) == pytest.approx(2 * 2 / (2 + 4))
    assert mean_of("IoU@5[document]", *ranking, benchmark=DOCUMENTS) == 2 / 4


def test_documents_are_ranked_where_they_first_come_up() -> None:
    ranking = of(0, 4, 4, 2, 1)  # 0, 4, 2, 1
    assert mean_of("MRR[document]", *ranking, benchmark=DOCUMENTS) == 1 / 2
    assert mean_of("MAP[document]", *ranking, benchmark=DOCUMENTS) == pytest.approx((1 / 2 + 2 / 4) / 2)
    ideal = 1 + 1 / math.log2(3)
    gain = 1 / math.log2(3) + 1 / math.log2(5)
    assert mean_of("DCG@9[document]", *ranking, benchmark=DOCUMENTS) == pytest.approx(gain)
    assert mean_of("nDCG@9[document]", *ranking, benchmark=DOCUMENTS) == pytest.approx(gain / ideal)


def test_a_piece_that_says_only_its_document_is_of_that_document() -> None:
    ranking = [Retrieved("d1", ()), Retrieved("elsewhere", ()), Retrieved("elsewhere", (), 0, "two"), Retrieved("", ())]
    assert mean_of("Recall@5[document]", *ranking, benchmark=DOCUMENTS) == 1 / 2
    assert mean_of("Precision@5[document]", *ranking, benchmark=DOCUMENTS) == 1 / 3
    for other in (Retrieved("", ()), Retrieved("another", ())):
        assert mean_of("Precision@5[document]", *ranking, other, benchmark=DOCUMENTS) == 1 / 4


class BySets:
    """The definitions, word for word, a unit at a time."""

    def __init__(self, benchmark: Benchmark, run: Run, counter: str, unit: Unit, min_rule: str) -> None:
        self.benchmark, self.run, self.unit, self.min_rule = benchmark, run, unit, min_rule
        self.counter = get_counter(counter)
        self.texts = {document.id: document.text for document in benchmark.documents}
        self.begins = {name: self.starts(text, unit) for name, text in self.texts.items()}
        self.tokens = {name: self.starts(text, "token") for name, text in self.texts.items()}

    def starts(self, text: str, unit: Unit) -> list[int]:
        if unit == "character":
            return list(range(len(text)))
        if unit == "sentence":
            return list(sentence_ranges(text)[:, 0].tolist())
        return list(self.counter.boundaries(text).tolist())

    def held(self, begins: list[int], start: int, end: int) -> list[int]:
        inside = [i for i, begin in enumerate(begins) if start <= begin < end]
        return inside or [i for i, begin in enumerate(begins) if begin < start][-1:]

    def units(self, piece: Retrieved) -> list[Hashable]:
        """Every unit that the piece holds, as often as it does."""
        if not piece.spans:
            return [("nowhere", i) for i in range(len(self.starts(piece.text, self.unit)))]
        begins = self.begins[piece.document_id]
        return [(piece.document_id, i) for span in piece.spans for i in self.held(begins, span.start, span.end)]

    def cut(self, ranking: list[Retrieved], budget: int) -> list[Retrieved]:
        found = []
        for piece in ranking:
            if budget <= 0:
                break
            if not piece.spans:
                begins = self.starts(piece.text, "token")
                text = piece.text if len(begins) <= budget else piece.text[: begins[budget]]
                found.append(Retrieved("", (), 0, text))
                budget -= len(begins)
                continue
            begins = self.tokens[piece.document_id]
            spans = []
            for span in piece.spans:
                held = self.held(begins, span.start, span.end)
                if budget > 0:
                    end = span.end if len(held) <= budget else begins[held[budget]]
                    spans += [Span(span.start, end)] if end > span.start else []
                budget -= len(held)
            found.append(Retrieved(piece.document_id, tuple(spans)))
        return found

    def holding(self, query: Query) -> list[Retrieved]:
        """The chunks that hold evidence, or with "touching" stand next to it."""
        reach = 1 if self.min_rule == "touching" else 0
        return [
            piece
            for piece in self.run.pool or ()
            if any(
                piece.document_id == each.document_id
                and span.start < each.span.end + reach
                and each.span.start - reach < span.end
                for span in piece.spans
                for each in query.evidence
            )
        ]

    def ranking(self, query: Query, measure: Measure) -> list[list[Hashable]]:
        ranking = list(self.run.results.get(query.id, []))
        if measure.k == "min":
            ranking = ranking[: len(self.holding(query))]
        if (budget := budget_of(measure.k)) is not None:
            ranking = self.cut(ranking, budget)
        elif isinstance(measure.k, int):
            ranking = ranking[: measure.k]
        if self.unit != "document":
            return [self.units(piece) for piece in ranking]
        names: list[Hashable] = [each.document_id or ("nowhere", i) for i, each in enumerate(ranking)]
        return [[name] for name in dict.fromkeys(names)]

    def relevant(self, query: Query) -> dict[str, set[Hashable]]:
        found: dict[str, set[Hashable]] = {}
        for each in query.evidence:
            units: Iterable[Hashable] = self.units(Retrieved(each.document_id, (each.span,)))
            found.setdefault(each.document_id, set()).update([each.document_id] if self.unit == "document" else units)
        return found

    def score(self, query: Query, measure: Measure) -> float:
        by_document = self.relevant(query)
        relevant = set().union(*by_document.values())
        if not relevant or (measure.needs_pool and self.run.pool is None):
            return math.nan
        if measure.kind == "PrecisionOmega":
            held = {unit for piece in self.holding(query) for unit in self.units(piece)}
            return len(held & relevant) / len(held) if held else 0.0
        ranking = self.ranking(query, measure)
        known: set[Hashable] = set()
        new = []
        for units in ranking:
            new.append(len((set(units) & relevant) - known))
            known |= set(units)
        sizes = [len(units) for units in ranking]
        hit, retrieved = sum(new), sum(sizes)
        shares = [brings / size if size else 0.0 for brings, size in zip(new, sizes, strict=True)]
        discounts = [1 / math.log2(rank + 1) for rank in range(1, len(ranking) + 1)]
        richest = sorted(map(len, by_document.values()), reverse=True)
        depth = measure.k if isinstance(measure.k, int) else len(richest)
        ideal = sum(amount / math.log2(rank + 1) for rank, amount in enumerate(richest[:depth], 1))
        precision = 0.0
        for rank, brings in enumerate(new, 1):
            precision += brings and brings * sum(new[:rank]) / sum(sizes[:rank])
        return {
            "Recall": hit / len(relevant),
            "Precision": hit / retrieved if retrieved else 0.0,
            "IoU": hit / (len(relevant) + retrieved - hit),
            "F1": 2 * hit / (len(relevant) + retrieved),
            "HitRate": float(hit > 0),
            "MRR": next((1 / rank for rank, brings in enumerate(new, 1) if brings), 0.0),
            "MAP": precision / len(relevant),
            "nDCG": sum(map(float.__mul__, map(float, new), discounts)) / ideal,
            "DCG": sum(map(float.__mul__, shares, discounts)),
            "ChunkPrecision": sum(shares) / len(shares) if shares else 0.0,
        }[measure.kind]


NAMES = ("Recall", "Precision", "IoU", "F1", "HitRate", "MRR", "MAP", "nDCG", "DCG", "ChunkPrecision")
UNITS = ("token", "character", "sentence", "document")
counters, rules = st.sampled_from(["characters", "words", "cl100k_base"]), st.sampled_from(["holding", "touching"])


@given(cases(), counters, st.sampled_from(UNITS), st.integers(1, 30), rules)
def test_scores_are_what_sets_of_units_give(case, counter, unit, budget, min_rule):
    benchmark, run = case
    names = [name for name in NAMES if not (unit == "document" and name == "ChunkPrecision")]
    measures = [get_measure(f"{name}@{k}[{unit}]") for name in names for k in (1, 3, "min", f"{budget}tok")]
    measures += [get_measure(f"{name}[{unit}]") for name in ("MRR", "MAP", "nDCG")]
    measures += [get_measure(f"PrecisionOmega[{unit}]")] if unit != "document" else []
    report = score(run, benchmark, measures, counter=counter, min_rule=min_rule)
    by_sets = BySets(benchmark, run, counter, unit, min_rule)
    for measure in measures:
        expected = [by_sets.score(query, measure) for query in benchmark.queries]
        np.testing.assert_allclose(report.values(measure), expected, err_msg=str(measure))
        if measure.is_share:
            assert np.nanmax(report.values(measure), initial=0) <= 1 + 1e-12
        if measure.k in (1, 3):
            tokens = BySets(benchmark, run, counter, "token", min_rule)
            pieces = [list(run.results.get(query.id, []))[: measure.k] for query in benchmark.queries]
            sizes = [sum(len(tokens.units(piece)) for piece in ranking) for ranking in pieces]
            assert report.retrieved_tokens[measure.k].tolist() == sizes
