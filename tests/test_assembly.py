"""Passages of ranked hits: exact, disjoint, whole units, within the budget."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkcore.document import Document, Span
from chunkcore.errors import DataError, OptionError
from chunkcore.retrieval import assemble, combine, expand, fit_to_budget
from chunkcore.run import Retrieved
from chunkcore.tokens import get_counter

SENTENCES = ["A fox naps.", "Crows sing at noon!", "Rain.", "東京都の雨。", "The end of it, at last.", "👩‍👩‍👧 go"]
GAPS = ["", " ", "\n\n", " - ", " and ", "\r\n \t"]


@st.composite
def libraries(draw: st.DrawFn) -> tuple[list[Document], list[Retrieved]]:
    """Documents, and hits of some of their sentences in any order, with repeats and overlaps."""
    documents, hits = [], []
    for name in "abc"[: draw(st.integers(1, 3))]:
        text, places = draw(st.sampled_from(GAPS)), []
        for _ in range(draw(st.integers(0, 8))):
            start = len(text)
            text += draw(st.sampled_from(SENTENCES))
            places.append(Span(start, len(text)))
            text += draw(st.sampled_from(GAPS))
        documents.append(Document(name, text))
        if places and draw(st.booleans()):
            places.append(Span(places[0].start, places[-1].end))
        for span in places:
            score = draw(st.sampled_from([-1.5, 0.0, 0.5, 0.5, 1.0, 3.0]))
            hits += [Retrieved(name, (span,), score, span.slice(text))] * draw(st.integers(0, 2))
    return documents, draw(st.permutations(hits))


@given(libraries(), st.integers(1, 40), st.sampled_from(["words", "characters", "cl100k_base"]), st.booleans())
def test_passages_are_disjoint_exact_whole_and_within_the_budget(library, budget, name, told):
    documents, hits = library
    counter = get_counter(name)
    found = assemble(hits, budget, documents=documents if told else None, counter=name)
    assert found == assemble(hits, budget, documents=documents if told else None, counter=counter)
    texts = {document.id: document.text for document in documents}
    assert sum(counter.count(each.text) for each in found) <= budget
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    places = sorted((each.document_id, span.start, span.end) for each in found for span in each.spans)
    assert all(a[0] != b[0] or a[2] <= b[1] for a, b in pairwise(places))
    given_ = {(hit.document_id, hit.spans, hit.score) for hit in hits}
    cut = [each for each in found if each.match == "part"]
    assert not cut or len(found) == 1
    for passage in found:
        source = texts[passage.document_id]
        if told or len(passage.spans) == 1:
            assert passage.text == " ".join(span.slice(source) for span in passage.spans)
        if told:
            assert len(passage.spans) == 1
        assert passage.parts
        for part in passage.parts:
            assert any(span.start <= part.spans[0].start and part.spans[-1].end <= span.end for span in passage.spans)
            assert part.text == part.spans[0].slice(source)
            assert cut or (part.document_id, part.spans, part.score) in given_
    # Nothing is silently empty, and no hit that fits is left over.
    if hits and not found:
        assert all(counter.count(hit.text[:1]) > budget for hit in hits)


def hit(start: int, end: int, score: float, text: str = "", name: str = "d") -> Retrieved:
    return Retrieved(name, (Span(start, end),), score, text or "x" * (end - start))


def spans(found: list[Retrieved]) -> list[list[tuple[int, int]]]:
    return [[(span.start, span.end) for span in each.spans] for each in found]


@pytest.mark.parametrize("scale", [1.0, 1e-6])
def test_a_weak_unit_between_strong_ones_is_taken_with_them(scale: float) -> None:
    scores = {0: 5.0, 10: 0.5, 20: 5.0, 40: 1.0, 60: 0.9}
    units = [hit(start, start + 10, scale * score) for start, score in scores.items()]
    assert spans(assemble(units, 30, counter="characters")) == [[(0, 30)]]
    assert spans(assemble(units, 29, counter="characters")) == [[(0, 10)], [(20, 30)]]


def test_a_weak_unit_does_not_stand_between_where_it_costs_more_than_it_joins() -> None:
    units = [hit(0, 10, 1.0), hit(10, 20, -9.0), hit(20, 30, 1.0), hit(40, 50, 0.9), hit(60, 70, 0.8)]
    assert spans(assemble(units, 40, counter="characters"))[:2] == [[(0, 10)], [(20, 30)]]


def test_neighbours_that_fit_alone_and_not_with_what_stands_between_them_are_not_lost() -> None:
    text = "Aaaaa\n---\nBbbbb and a longer one."
    units = [hit(0, 5, 1.0, "Aaaaa"), hit(10, 15, 2.0, "Bbbbb"), hit(20, 33, 0.0, "a longer one.")]
    found = assemble(units, 10, documents=[Document("d", text)], counter="characters")
    assert [each.text for each in found] == ["Bbbbb"]


def test_separators_belong_to_the_passage_and_words_do_not() -> None:
    text = "One.\n---\nTwo. And Three."
    units = [hit(0, 4, 1.0, "One."), hit(9, 13, 1.0, "Two."), hit(18, 24, 1.0, "Three.")]
    assert [each.text for each in assemble(units, 90, documents=[Document("d", text)])] == ["One.\n---\nTwo.", "Three."]
    (alone,) = assemble(units[1:], 90)
    assert (alone.text, spans([alone])) == ("Two. Three.", [[(9, 13), (18, 24)]])


def test_of_overlapping_hits_the_better_stays() -> None:
    assert spans(assemble([hit(0, 10, 1.0), hit(5, 20, 2.0), hit(15, 30, 0.5), hit(30, 40, 0.1)], 99)) == [
        [(5, 20)],
        [(30, 40)],
    ]


def test_a_best_unit_over_the_budget_is_cut_there() -> None:
    document = Document("d", "one two three four")
    (found,) = assemble([hit(0, 18, 2.0, document.text)], 3, documents=[document], counter="words")
    assert (found.text, found.spans, found.match) == ("one two three", (Span(0, 13),), "part")
    assert found.parts == (Retrieved("d", (Span(0, 13),), 2.0, "one two three", match="part"),)
    pair = Retrieved("d", (Span(4, 7), Span(8, 13)), 2.0, "two three")
    assert spans(assemble([pair], 5, counter="characters")) == [[(4, 7), (8, 9)]]
    assert assemble([hit(0, 1, 1.0, "\U00012000")], 1) == []
    (whole,) = assemble([hit(0, 10, 1.0)], 10, counter="characters")
    assert (whole.match, whole.parts) == ("spans", (hit(0, 10, 1.0),))


def test_k_is_of_the_passages_of_the_budget() -> None:
    units = [hit(0, 10, 1.0), hit(50, 60, 3.0), hit(90, 99, 2.0)]
    assert spans(assemble(units, 20, k=1, counter="characters")) == [[(50, 60)]]
    assert len(assemble(units, k=5)) == 3


def test_hits_of_unknown_documents_and_without_places_keep_their_text() -> None:
    units = [hit(0, 4, 1.0, "here"), Retrieved("", (), 2.0, "nowhere"), hit(0, 4, 0.5, "else", "other")]
    found = assemble([*units, Retrieved("other", (), 3.0, "lost")], documents=[Document("d", "Here.")])
    assert [(each.document_id, each.text) for each in found] == [
        ("other", "lost"),
        ("", "nowhere"),
        ("d", "Here"),  # the document's text at its place
        ("other", "else"),
    ]


@pytest.mark.parametrize(
    ("hits", "options", "message"),
    [
        ([], {"max_tokens": 0}, "at least 1"),
        ([], {"k": 0}, "at least 1"),
        ([hit(0, 4, math.nan)], {}, "finite"),
        ([Retrieved("d", (Span(0, 4),), 1.0)], {}, "no text"),
        ([hit(0, 9, 1.0)], {"documents": [Document("d", "Here.")]}, "as it was indexed"),
    ],
)
def test_bad_input_gets_a_sentence(hits, options, message):
    with pytest.raises((OptionError, DataError), match=message):
        assemble(hits, **options)


def unit(number: int, document: str = "a") -> Retrieved:
    return Retrieved(document, (Span(10 * number, 10 * number + 9),), text=f"{document} {number:7}")


@given(
    st.lists(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 12)), unique=True), max_size=3),
    st.sets(st.integers(0, 4), min_size=1),
)
def test_combined_scores_are_those_of_the_definition(rankings, scales):
    hits = [[unit(number, document) for document, number in ranking] for ranking in rankings]
    found = combine(hits, scales=sorted(scales))
    places = {place for ranking in rankings for place in ranking}
    expected = dict.fromkeys(places, 0.0)
    for ranking in rankings:
        worth = {place: math.log((len(ranking) + 1) / rank) for rank, place in enumerate(ranking, start=1)}
        for half in scales:
            around = {
                (document, number): sum(worth.get((document, number + step), 0.0) for step in range(-half, half + 1))
                for document, number in places
            }
            length = math.sqrt(sum(value**2 for value in around.values())) or 1.0
            for place in places:
                expected[place] += around[place] / length
    assert [each.score for each in found] == pytest.approx(sorted(expected.values(), reverse=True))
    for each in found:
        assert each.score == pytest.approx(expected[each.document_id, each.spans[0].start // 10])


def test_combined_hits_are_ranked_by_order_and_place_alone():
    ranking = [unit(7), unit(1), unit(2), unit(7)]
    scored = [each.with_score(score) for each, score in zip(ranking, (9, 8, -1e9, 0), strict=True)]
    alone = [Retrieved("", (), text="no place"), Retrieved("", (), text="none either")]
    expected = combine([[*ranking, *alone]])
    assert combine([[*scored, *alone]]) == expected
    assert len(expected) == 5
    beside = combine([ranking], neighbours=[unit(3), unit(7).with_score(5)])
    assert {each.spans[0].start for each in beside} == {10, 20, 30, 70}
    assert combine([]) == combine([[], []]) == []
    for scales in ((), (-1,), (1.0,)):
        with pytest.raises(OptionError, match="half-widths"):
            combine([ranking], scales=scales)


# --- expand and fit_to_budget ---------------------------------------------------------------------------

STORY = "One naps. Two sing. Three fly.  Four run. Five rest."


def told(text: str, score: float = 1.0) -> Retrieved:
    start = STORY.index(text)
    return Retrieved("d", (Span(start, start + len(text)),), score, text)


def test_a_hit_grows_by_whole_sentences() -> None:
    story = [Document("d", STORY)]
    assert [each.text for each in expand([told("fly")], story, units=1)] == ["Two sing. Three fly.  Four run."]
    assert expand([told("One")], {"d": story[0]}, units=9)[0].spans == (Span(0, len(STORY)),)
    assert expand([told("Three fly.")], story, tokens=1, counter="words")[0].text == "sing. Three fly.  Four "


def test_hits_that_meet_when_they_grow_are_one_passage() -> None:
    first, second, far = told("Four", 2.0), told("Two", 3.0), replace(told("Five"), document_id="e")
    found = expand([first, far, second], [Document("d", STORY), Document("e", STORY)], units=1)
    assert [(each.document_id, each.score, len(each.parts)) for each in found] == [("d", 3.0, 2), ("e", 1.0, 1)]
    assert found[0].parts == (second, first)
    loose = Retrieved("", (), 0.5, "somewhere")
    assert expand([loose], [], units=1) == [loose]


@given(
    st.text(alphabet="ab. \n", min_size=1, max_size=60),
    st.lists(st.tuples(st.integers(0, 59), st.integers(1, 9)), max_size=5),
    st.integers(1, 4),
    st.booleans(),
)
def test_what_is_expanded_holds_its_hits_and_nothing_twice(
    text: str, places: list[tuple[int, int]], more: int, by_tokens: bool
) -> None:
    spans = [Span(a, min(a + b, len(text))) for a, b in places if a < len(text)]
    hits = [Retrieved("d", (span,), float(-i), span.slice(text)) for i, span in enumerate(spans)]
    found = expand(hits, [Document("d", text)], counter="words", **{"tokens" if by_tokens else "units": more})
    assert sorted((part for each in found for part in each.parts), key=hits.index) == hits
    for each in found:
        assert each.text == each.spans[0].slice(text)
        assert all(each.spans[0].start <= p.spans[0].start and p.spans[0].end <= each.spans[0].end for p in each.parts)
    covered = sorted((each.spans[0].start, each.spans[0].end) for each in found)
    assert all(one[1] < other[0] for one, other in pairwise(covered))
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)


def test_what_cannot_be_expanded_is_told() -> None:
    with pytest.raises(OptionError, match="expand takes units or tokens, at least 1; got units=None and tokens=None"):
        expand([], [])
    with pytest.raises(OptionError, match="got units=0"):
        expand([], [], units=0)
    with pytest.raises(DataError, match="no document 'd' among the 0"):
        expand([told("One")], [], units=1)
    with pytest.raises(DataError, match="give the document as it was indexed"):
        expand([told("Five")], [Document("d", "short")], units=1)


@given(st.lists(st.integers(1, 12), max_size=8), st.integers(1, 20))
def test_pieces_that_fit_a_budget(sizes: list[int], budget: int) -> None:
    pieces = [Retrieved("d", (Span(0, 2 * n - 1),), 1.0, " ".join("x" * n)) for n in sizes]
    found = fit_to_budget(pieces, budget, "words")
    left, expected = budget, []
    for piece, size in zip(pieces, sizes, strict=True):
        if size <= left:
            expected.append(piece)
            left -= size
    if expected or not pieces:
        assert found == expected
    else:
        assert [(each.text, each.match) for each in found] == [(" ".join("x" * budget), "part")]


def test_what_does_not_fit_any_budget_is_told() -> None:
    with pytest.raises(OptionError, match="max_tokens is at least 1, got 0"):
        fit_to_budget([], 0)
    with pytest.raises(DataError, match="has no text to count"):
        fit_to_budget([Retrieved("d", (Span(0, 3),))], 5)
