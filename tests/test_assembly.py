"""Passages of ranked hits: exact, disjoint, whole units, within the budget."""

from __future__ import annotations

from itertools import accumulate, pairwise

import pytest
from chunkcore import Retrieved, get_counter
from chunkcore.retrieval.budget import Budget
from chunkcore.retrieval.passages.assembly import Row, goes_on, passages_of
from chunkcore.text import Document, Span
from hypothesis import given
from hypothesis import strategies as st

SENTENCES = ["A fox naps.", "Crows sing at noon!", "Rain.", "東京都の雨。", "The end of it, at last.", "👩‍👩‍👧 go"]
GAPS = ["", " ", "\n\n", " - ", " and ", "\r\n \t"]


@st.composite
def libraries(draw: st.DrawFn) -> tuple[list[Document], list[Retrieved]]:
    """Documents, and hits of some of their sentences in any order, with each once."""
    documents, hits = [], []
    for name in "abc"[: draw(st.integers(1, 3))]:
        text, places = draw(st.sampled_from(GAPS)), []
        for _ in range(draw(st.integers(0, 8))):
            start = len(text)
            text += draw(st.sampled_from(SENTENCES))
            places.append(Span(start, len(text)))
            text += draw(st.sampled_from(GAPS))
        documents.append(Document(name, text))
        for span in places:
            score = draw(st.sampled_from([-1.5, 0.0, 0.5, 0.5, 1.0, 3.0]))
            hits += [Retrieved(name, (span,), score, span.slice(text))] * draw(st.integers(0, 1))
    return documents, draw(st.permutations(hits))


def assemble(hits, max_tokens=1000, *, k=None, documents=(), counter="cl100k_base"):
    """Passages of hits that do not overlap, by place; hits are neighbours where no letter or digit is between them."""
    texts = {each.document_id: "" for each in hits} | {document.id: document.text for document in documents}
    units = sorted(hits, key=lambda each: (each.document_id, each.spans))
    for each in () if documents else units:
        gap = each.spans[0].start - len(texts[each.document_id])
        texts[each.document_id] += ("x" if gap > 5 else " ") * gap + each.text
    sources = {name: Document(name, text) for name, text in texts.items()}

    def beside(one, other):
        if one.document_id != other.document_id:
            return False
        start, end = one.spans[-1].end, other.spans[0].start
        text = sources[one.document_id].text[start:end]
        return not any(map(str.isalnum, text))

    tokens = get_counter(counter)
    sizes = tokens.count_many([each.text for each in units])
    row = Row(units, sizes.tolist(), [*(beside(*pair) for pair in pairwise(units)), False], [0] * len(units))
    return passages_of(row, Budget(max_tokens, tokens), sources)[:k]


@given(libraries(), st.integers(1, 40), st.sampled_from(["words", "characters", "cl100k_base"]))
def test_passages_are_disjoint_exact_whole_and_within_the_budget(library, budget, name):
    documents, hits = library
    counter = get_counter(name)
    found = assemble(hits, budget, documents=documents, counter=name)
    assert found == assemble(hits, budget, documents=documents, counter=counter)
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
        assert passage.text == passage.spans[0].slice(source)
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


def test_separators_belong_to_the_passage_and_words_do_not() -> None:
    text = "One.\n---\nTwo. And Three."
    units = [hit(0, 4, 1.0, "One."), hit(9, 13, 1.0, "Two."), hit(18, 24, 1.0, "Three.")]
    assert [each.text for each in assemble(units, 90, documents=[Document("d", text)])] == ["One.\n---\nTwo.", "Three."]
    (alone,) = assemble(units[1:], 90)
    assert (alone.text, spans([alone])) == ("Two.     Three.", [[(9, 24)]])


@pytest.mark.parametrize("scores", [(5.0, 4.0), (4.0, 5.0)])
def test_where_separators_fill_the_budget_the_run_that_is_worth_more_is_whole(scores: tuple[float, float]) -> None:
    text = f"{'x' * 10}-----{'y' * 10}"
    units = [
        hit(start, start + 10, score, text[start : start + 10], name)
        for name, score in zip("ab", scores, strict=True)
        for start in (0, 15)
    ]
    documents = [Document(name, text) for name in "abc"]
    units.append(hit(0, 10, 0.0, text[:10], "c"))
    best = assemble(units, 40, documents=documents, counter="characters")[0]
    assert (best.score, best.spans) == (5.0, (Span(0, 25),))


@pytest.mark.parametrize(
    ("text", "end", "after", "needs"),
    [
        ("  fox", 2, 2, 0),
        ("One. Two", 4, 5, 0),
        ("naps now", 4, 5, 1),
        ("It\nis", 2, 3, 0),
        ("แมวนอน", 3, 3, 1),
        ("แมว นอน", 3, 4, 0),
        ("# Tea\nIt", 5, 6, 1),
        ("| a |\n| b |", 5, 6, 2),
    ],
)
def test_what_a_reader_needs_behind_a_span(text: str, end: int, after: int, needs: int) -> None:
    assert goes_on(text, Span(0, end), after) == needs


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


@pytest.mark.parametrize(
    ("needs", "text", "budget", "span"),
    [
        ([0, 0, 0, 0, 0], "x" * 10, 100, (20, 30)),  # alone
        ([0, 1, 0, 0, 0], "x" * 10, 100, (10, 30)),  # within the sentence, which is a fifth of the budget
        ([1, 1, 0, 0, 0], "x" * 10, 100, (20, 30)),  # the sentence is longer
        ([2, 2, 2, 2, 0], "x" * 10, 100, (0, 50)),  # within the table, which is half of it
        ([0, 0, 0, 0, 0], "It rains. ", 100, (10, 30)),  # with what it refers to
        ([0, 0, 0, 0, 0], "x" * 10, 400, (10, 30)),  # not under a twentieth of the budget
    ],
)
def test_a_reader_gets_whole_sentences_and_tables_no_crumbs_and_what_a_text_refers_to(needs, text, budget, span):
    texts = ["y" * 10, "y" * 10, text, "z" * 10, "z" * 10, "z" * 10]
    scores = [0.0, 0.5, 9.0, 0.0, 0.0, 0.0]
    units = [hit(10 * n, 10 * n + 10, scores[n], text) for n, text in enumerate(texts)]
    row = Row(units, [10] * 6, [True] * 5 + [False], [*needs, 0], 5.0)
    assert spans(passages_of(row, Budget(budget, "characters"), {"d": Document("d", "".join(texts))})) == [[span]]


def test_a_crumb_beside_a_passage_takes_no_other_neighbour_that_does_not_fit() -> None:
    sizes, scores = [10, 40, 10, 700], [10.0, 0.1, 1.0, 2.0]
    ends = accumulate(sizes)
    units = [hit(end - size, end, score, "x" * size) for end, size, score in zip(ends, sizes, scores, strict=True)]
    row = Row(units, sizes, [True] * 3 + [False], [0] * 4)
    documents = {"d": Document("d", "x" * sum(sizes))}
    assert spans(passages_of(row, Budget(720, "characters"), documents)) == [[(0, 60)]]


@pytest.mark.parametrize("budget", [10, 30, 50])
def test_a_hit_far_above_the_rest_does_not_lose_its_place_to_a_run_of_weak_ones(budget: int) -> None:
    run = [hit(start, start + 10, 4.0) for start in range(0, 60, 10)]
    found = assemble([*run, hit(0, 10, 9.0, name="faq")], budget, counter="characters")
    assert (found[0].document_id, found[0].score) == ("faq", 9.0)
