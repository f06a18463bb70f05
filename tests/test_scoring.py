"""Scores are what counting tokens one by one gives, for any spans, however they overlap or repeat."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from chunkcore import Benchmark, DataError, Document, Evidence, OptionError, Query, Report, Span
from chunkcore.evaluation.counting import meeting_pairs
from chunkcore.evaluation.measures import measures_at
from chunkcore.evaluation.scoring import Scorer, score
from chunkcore.run import PieceColumns, RankedPieces, Retrieved, Run
from chunkcore.tokens.counters import WordCounter
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import hard_text

#            0         1         2         3
#            0123456789012345678901234567890123456789
DIGITS = Document("digits", "0123456789" * 4)
OTHER = Document("other", "abcdefghij")
ONE = Benchmark("one", [DIGITS, OTHER], [Query("q", "?", (Evidence("digits", Span(10, 20)),))])


def piece(*spans: tuple[int, int], document: str = "digits") -> Retrieved:
    return Retrieved(document, tuple(Span(*each) for each in spans))


def scores(*retrieved: Retrieved, pool: list[Retrieved] | None = None, **options: Any) -> dict[str, float]:
    """Every measure of one query, by its name, in characters."""
    options.setdefault("counter", "characters")
    report = score(Run("r", {"q": list(retrieved)}, pool), ONE, **options)
    return {str(measure): report.mean(measure) for measure in report.scores}


def test_a_query_that_the_run_lacks_scores_nothing_and_is_listed() -> None:
    queries = [*ONE.queries, Query("r", "?", ONE.queries[0].evidence)]
    report = score(Run("r", {"r": [piece((10, 20))]}), Benchmark("two", ONE.documents, queries), ["Recall@5", "IoU@5"])
    assert report.unanswered == ("q",)
    assert report.values("Recall@5").tolist() == report.values("IoU@5").tolist() == [0, 1]


def test_text_that_stands_nowhere_counts_as_retrieved(monkeypatch: pytest.MonkeyPatch) -> None:
    found = scores(piece((10, 20)), Retrieved("", (), 0, "x" * 30, match="unlocated"))
    assert (found["Recall@5"], found["Precision@5"]) == (1, 10 / 40)
    pieces = [piece((10, 20)), Retrieved("elsewhere", (Span(0, 2),), 0, "two words")]
    read, cut = list[str](), WordCounter.boundaries

    def boundaries(self: WordCounter, text: str) -> np.ndarray:
        read.append(text)
        return cut(self, text)

    monkeypatch.setattr(WordCounter, "boundaries", boundaries)
    report = score(Run("r", {"q": pieces}), ONE, ["Recall@5", "Recall@4", "Precision@3"], counter="words")
    assert read.count("two words") == 1, "it is cut once for all depths"
    assert report.located == {"spans": 1, "unlocated": 1}
    assert report.retrieved_tokens[5].tolist() == [1 + 2]


def test_what_was_found_of_each_piece_of_evidence() -> None:
    evidence = (Evidence("digits", Span(0, 10)), Evidence("other", Span(0, 4)), Evidence("digits", Span(5, 15)))
    benchmark = Benchmark("b", ONE.documents, [Query("p", "?", evidence[:1]), Query("q", "?", evidence)])
    run = Run("r", {"q": [piece((8, 15)), piece((0, 1), document="other")]})
    report = score(run, benchmark, ["Recall@1", "Recall@2"], counter="characters")
    assert report.found == {1: ((0,), (0.2, 0, 0.7)), 2: ((0,), (0.2, 0.25, 0.7))}
    # 0-15 of digits and 0-4 of other are 19 relevant characters; what two excerpts share counts once.
    assert report.values("Recall@2").tolist() == [0, (7 + 1) / 19]


ENDS = ((0, 10), (10, 14), (14, 22), (20, 30), (30, 40))
POOL = [*map(piece, ENDS), piece((0, 10), document="other")]


def test_an_ambiguous_piece_is_scored_at_its_worst_and_best_place_too() -> None:
    document = Document("d", "Tea is hot. Ice is cold. Tea is hot.")
    benchmark = Benchmark("b", [document], [Query("q", "?", (Evidence("d", Span(25, 36)),))])
    stated = Retrieved("d", (Span(0, 11),), text="Tea is hot.", match="ambiguous")
    report = score(Run("r", {"q": [stated, replace(stated, text="")]}), benchmark, ["Recall@5"])
    assert (report.mean("Recall@5"), list(report.bounds.values())) == (0, [(0, 1)])
    assert Report.from_dict(report.to_dict()).bounds == report.bounds


def test_min_counts_the_chunks_that_hold_evidence() -> None:
    ranking = [POOL[4], POOL[1], POOL[2]]
    assert scores(*ranking, pool=POOL)["Recall@min"] == 4 / 10  # the first two
    # 0-10 ends where the evidence begins, and 20-30 begins where it ends.
    assert scores(*ranking, pool=POOL, min_rule="touching")["Recall@min"] == 1
    assert [*Scorer(ONE).depths(POOL), *Scorer(ONE, min_rule="touching").depths(POOL)] == [2, 4]


def test_without_a_pool_min_and_omega_are_not_known() -> None:
    report = score(Run("r", {"q": [piece((10, 20))]}), ONE)
    means = report.mean("PrecisionOmega"), report.mean("Recall@min"), report.mean_tokens("min")
    assert all(map(math.isnan, (*means, report.found["min"][0][0])))
    assert score(Run("r", {"q": [piece((10, 20))]}, POOL), ONE).mean_tokens("min") > 0
    assert report.chunks is None


@pytest.mark.parametrize(
    ("evidence", "spans", "expected"),
    # "ha beta " holds the beginning of "beta" alone, and (0, 8) those of "alpha" and "beta"; (7, 9) is inside "beta".
    [((3, 11), (0, 8), (1, 0.5)), ((7, 9), (6, 7), (1, 1)), ((7, 9), (7, 9), (1, 1)), ((7, 9), (0, 5), (0, 0))],
)
def test_a_token_belongs_to_the_span_that_holds_its_first_character(evidence, spans, expected) -> None:
    query = Query("q", "?", (Evidence("d", Span(*evidence)),))
    run = Run("r", {"q": [piece(spans, document="d")]})
    benchmark = Benchmark("b", [Document("d", "alpha beta gamma")], [query])
    report = score(run, benchmark, ["Recall@5", "Precision@5"], counter="words")
    assert (report.mean("Recall@5"), report.mean("Precision@5")) == expected


def test_a_report_says_what_was_retrieved_and_what_the_chunks_are() -> None:
    report = score(Run("r", {"q": POOL[:2]}, POOL, {"search": 0.25}), ONE, counter="characters")
    assert report.retrieved_tokens[5].tolist() == [14]
    assert report.chunks is not None
    assert report.chunks.tokens.tolist() == [10, 4, 8, 10, 10, 10]
    assert (report.name, report.benchmark, report.query_ids, report.min_rule) == ("r", "one", ("q",), "holding")
    assert (report.seconds["search"], report.seconds["score"] > 0) == (0.25, True)
    assert list(report.scores) == measures_at()


@pytest.mark.parametrize(
    ("run", "options", "error", "message"),
    [
        (Run("r", {"q": [piece((0, 41))]}), {}, DataError, "the run 'r': a span of piece 0 ends at 41, its document"),
        (Run("r", {}, [piece((0, 41))]), {}, DataError, "the pool of 'r': a span of piece 0 ends at 41"),
        (Run("r", {"x": []}), {}, DataError, "answers none of the benchmark's queries: it has 'x', the benchmark 'q'"),
        (Run("r", {"q": [piece((0, 1), document="no")]}), {}, DataError, "the document 'no', which the benchmark does"),
        (Run("r", {}), {"min_rule": "any"}, OptionError, 'min_rule is "holding" or "touching", got \'any\''),
    ],
)
def test_what_can_not_be_scored_is_refused(run: Run, options: dict[str, Any], error: type, message: str) -> None:
    with pytest.raises(error) as caught:
        score(run, ONE, **options)
    assert message in str(caught.value)


def test_a_run_of_other_documents_alone_is_warned_of(recwarn: pytest.WarningsRecorder) -> None:
    stranger = Retrieved("/srv/d.md", (Span(0, 3),), text="Tea")
    score(Run("r", {"q": [stranger, piece((0, 4))]}), ONE)
    score(Run("r", {"q": [replace(stranger, document_id="", spans=())]}), ONE)  # nothing says of which document
    assert not recwarn.list
    with pytest.warns(UserWarning, match=r"in none of the benchmark's documents: .* such as '/srv/d.md'"):
        score(Run("r", {"q": [stranger]}), ONE)


@st.composite
def _spans(draw: st.DrawFn, size: int, least: int, most: int) -> tuple[Span, ...]:
    found = []
    for _ in range(draw(st.integers(least, most))):
        start = draw(st.integers(0, size - 1))
        found.append(Span(start, draw(st.integers(start + 1, size))))
    return tuple(found)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Benchmark, Run]:
    """Documents, queries with overlapping evidence, and a run that draws from a pool and from elsewhere."""
    texts = draw(st.lists(hard_text(max_parts=12).filter(bool), min_size=1, max_size=3))
    documents = [Document(f"d{number}", text) for number, text in enumerate(texts)]
    chosen = st.sampled_from(documents)

    def pieces(most: int) -> list[Retrieved]:
        found = []
        for _ in range(draw(st.integers(0, most))):
            document = draw(chosen)
            found.append(Retrieved(document.id, draw(_spans(len(document.text), 1, 3))))
        return found

    queries = []
    for number in range(draw(st.integers(1, 3))):
        evidence = []
        for _ in range(draw(st.integers(1, 3))):
            document = draw(chosen)
            evidence += [Evidence(document.id, span) for span in draw(_spans(len(document.text), 1, 1))]
        queries.append(Query(f"q{number}", "?", tuple(evidence)))
    pool = draw(st.none()) if draw(st.booleans()) else pieces(6)
    loose = [Retrieved("", (), 0, draw(hard_text(max_parts=3)), match="unlocated")]
    candidates = [*(pool or []), *pieces(3), *loose]
    results = {
        query.id: draw(st.lists(st.sampled_from(candidates), max_size=7)) for query in queries if draw(st.booleans())
    }
    return Benchmark("b", documents, queries), Run("r", results, pool)


@given(cases())
def test_columns_are_scored_as_objects_are(case: tuple[Benchmark, Run]) -> None:
    benchmark, run = case
    pool = run.pool or ()
    pieces = [*pool, *(each for own in run.results.values() for each in own)]
    names = [document.id for document in benchmark.documents]
    plain = [piece.document_id in names and len(piece.spans) == 1 for piece in pieces]
    places = [
        (names.index(piece.document_id), piece.spans[0].start, piece.spans[0].end) if one else (-1, 0, 0)
        for piece, one in zip(pieces, plain, strict=True)
    ]
    columns = PieceColumns(pieces.__getitem__, names, *np.array(places, dtype=np.int64).reshape(-1, 3).T)
    counts = np.array([len(own) for own in run.results.values()], dtype=np.int64)
    numbers = np.arange(len(pool), len(pieces))
    answers = RankedPieces(columns, counts, numbers, np.array([pieces[i].score for i in numbers]))
    ranked = dict(zip(run.results, answers, strict=True))
    assert ranked == run.results
    scorer = Scorer(benchmark, counter="characters")
    expected = scorer.score(run)
    found = scorer.score(Run(run.name, ranked, run.pool))
    assert found.to_dict() | {"seconds": 0} == expected.to_dict() | {"seconds": 0}


def test_an_unknown_document_is_irrelevant_and_takes_its_rank() -> None:
    benchmark = Benchmark("b", [Document("a", "A fox naps.")], [Query("q", "?", (Evidence("a", Span(0, 5)),))])
    results = {"q": [Retrieved("x", (Span(0, 2),), 2.0, "Ah"), Retrieved("a", (Span(6, 10),), 1.0, "naps")]}
    names = ("Recall@1[document]", "Recall@2[document]", "Precision@2[document]")
    report = score(Run("r", results), benchmark, names)
    assert [report.mean(name) for name in names] == [0.0, 1.0, 0.5]


def test_places_that_say_the_same_are_found_with_a_whole_piece_and_cost_no_token() -> None:
    documents = [Document(name, "One two three four five six.") for name in ("a", "b", "c")]
    evidence = tuple(Evidence(name, Span(0, 18)) for name in "ab")
    benchmark = Benchmark("copies", documents, [Query("q", "?", evidence)])
    source = Retrieved("b", (Span(0, 18),))
    piece = Retrieved("a", (Span(0, 18),), text="One two three four", sources=(source, Retrieved("?", (Span(0, 4),))))
    measures = ["Recall@4tok", "AllEvidence@4tok", "Precision@4tok", "Recall@1[document]", "Recall@3tok"]
    for pieces, expected in (
        ([piece], [1.0, 1.0, 1.0, 1.0, 0.375]),  # a piece that is cut is not known to have said it all
        ([replace(piece, sources=())], [0.5, 0.0, 1.0, 0.5, 0.375]),
        ([Retrieved("c", (Span(0, 18),)), piece], [0.0, 0.0, 0.0, 0.0, 0.0]),
    ):
        report = score(Run("mine", {"q": pieces}), benchmark, measures)
        assert [report.mean(measure) for measure in measures] == pytest.approx(expected)


def test_a_hit_of_a_whole_document_does_not_pair_every_hit_with_all_its_evidence() -> None:
    starts = 10 * np.arange(10_000)
    windows = np.stack((starts, starts + 10), axis=1)
    spans = np.concatenate(([[0, 100_000]], windows))
    tracemalloc.start()
    window, _ = meeting_pairs(spans, windows)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(window) == 2 * len(windows)
    assert most < 50_000_000
