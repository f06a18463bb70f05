"""Passages behind a retriever: its hits, by their order, and the words of a local index."""

from __future__ import annotations

import pytest
from chunkcore import Document, OptionError, Retrieved, Span, chunk_corpus, get_counter, get_retriever
from chunkcore.retrieval import WindowIndex
from chunkcore.text import text_of_spans
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.test_filters import documents_lists, questions


def index_of(documents: list[Document], spec: str = "passages:lexical") -> WindowIndex:
    index = get_retriever(spec).index(chunk_corpus(documents, "sentence:size=6,counter=words"))
    assert isinstance(index, WindowIndex)
    return index


TEA = [
    Document("tea", "Tea is hot. It boils at noon. The pot is blue. Rain falls. A crow sings."),
    Document("salt", "Salt is white. It boils never. The crow is black. Tea is mild."),
]


def test_a_lone_hit_without_a_place_is_cut_to_the_budget_and_never_lost():
    *hits, blank = [Retrieved("mail", (), 1.0, text) for text in ("A fox naps in the shade of an oak.", "Hot.", "\n ")]
    (passage,) = index_of(TEA).behind("Where does the fox nap?", hits, max_tokens=4)
    assert (passage.text, passage.match) == ("A fox naps", "part")
    assert [hit.text for hit in index_of(TEA).behind("Tea?", [blank, hits[1]], max_tokens=4)] == ["Hot."]


@st.composite
def searches(draw):
    documents = draw(documents_lists)
    hits = []
    for _ in range(draw(st.integers(0, 6))):
        document = draw(st.sampled_from([*documents, Document("elsewhere", "Some fox of another store.")]))
        start = draw(st.integers(0, len(document.text) - 1))
        span = Span(start, draw(st.integers(start + 1, len(document.text))))
        placed = draw(st.booleans())
        hits.append(
            Retrieved(document.id, (span,) if placed else (), draw(st.floats(-9, 9)), span.slice(document.text))
        )
    return documents, hits


SHOWN = st.sampled_from(["hits", "whole", "all", {"d0"}])


@settings(max_examples=200, deadline=None)
@given(searches(), questions, st.integers(1, 60), SHOWN, st.floats(0, 1), st.booleans())
def test_budgets_hold_and_nothing_of_other_documents_appears(search, question, budget, show, balance, limited):
    documents, hits = search
    found = index_of(documents).behind(
        question, hits, max_tokens=budget, show=show, balance=balance, k=2 if limited else None
    )
    counter = get_counter("cl100k_base")
    assert sum(counter.count(passage.text) for passage in found) <= budget
    assert len(found) <= (2 if limited else 99)
    texts = {document.id: document.text for document in documents}
    if show != "all":
        assert {passage.document_id for passage in found} <= {hit.document_id for hit in hits}
    if show in ("hits", {"d0"}):
        shown = {
            (hit.document_id, place) for hit in hits for span in hit.spans for place in range(span.start, span.end)
        }
        for passage in found:
            if passage.document_id in show:
                continue
            for piece in (passage, *passage.parts):
                assert all(
                    (piece.document_id, at) in shown for span in piece.spans for at in range(span.start, span.end)
                )
    for passage in found:
        assert (
            passage in hits
            or passage.match == "part"
            or passage.text == text_of_spans(texts[passage.document_id], passage.spans)
        )


def test_hits_bring_their_words_and_words_bring_what_no_hit_has() -> None:
    index = index_of(TEA)
    hit = Retrieved("tea", (Span(0, 29),), 0.1, "Tea is hot. It boils at noon.")
    assert index.behind("zzz", [hit], max_tokens=12)[0].text == "Tea is hot. It boils at noon."
    near = index.behind("Which crow is black?", [hit], show="whole")
    assert {passage.document_id for passage in near} == {"tea"}
    everywhere = index.behind("Which crow is black?", [hit], show="all", max_tokens=12)
    assert "The crow is black." in " ".join(passage.text for passage in everywhere)
    only_hits = index.behind("Which crow is black?", [hit], show="all", balance=1.0, max_tokens=12)
    assert only_hits[0].text == "Tea is hot. It boils at noon."


@pytest.mark.parametrize(
    ("question", "first", "expected"),
    [
        ("Is tea of Lochmere bitter?", [], ["both", "one"]),
        ("Is tea of Lochmere bitter?", ["one"], ["one", "both"]),
        ("What sounds old?", [], ["d0", "d2"]),
    ],
    ids=["words say more than hits by chance", "a hit has the words", "no word stands out"],
)
def test_hits_by_chance_do_not_outweigh_words_that_stand_out(question, first, expected) -> None:
    texts = {f"d{n}": f"Text number {n} says nothing new." for n in range(0, 60, 2)}
    texts |= {f"e{n}": f"Text number {n} sounds very old." for n in range(1, 60, 2)}
    texts |= {"both": "The tea of Lochmere is green.", "one": "Much of Lochmere is under water."}
    hits = [Retrieved(name, (Span(0, len(texts[name])),), 0.0, texts[name]) for name in [*first, *list(texts)[:5]]]
    index = index_of([Document(name, text) for name, text in texts.items()])
    found = index.behind(question, hits, show="all", balance=0.6, max_tokens=18)
    assert [passage.document_id for passage in found] == expected


def test_a_hit_is_worth_a_third_to_its_neighbours() -> None:
    index = index_of([Document("tea", "Tea is hot to us. Ice is old to us. Sea is wet to us.")])
    hit = Retrieved("tea", (Span(18, 35),), 0.1, "Ice is old to us.")
    (passage,) = index.behind("zzz", [hit], balance=1.0, max_tokens=100, show="whole")
    near = 16 / 17 / 3  # the spaces are in no unit
    assert [part.score for part in passage.parts] == pytest.approx([near, 1, near])


def test_a_hit_without_a_place_stays_at_its_rank() -> None:
    index = index_of(TEA)
    placed = Retrieved("tea", (Span(0, 11),), 3.0, "Tea is hot.")
    loose = Retrieved("web", (), 2.0, "A page on tea.")
    assert index.behind("tea", [loose, placed], max_tokens=60)[0] == loose
    assert index.behind("tea", [placed, loose], max_tokens=60)[1] == loose
    assert loose not in index.behind("tea", [placed, loose], max_tokens=5)
    assert index.behind("tea", [loose]) == [loose]
    beyond = [Retrieved("tea", (Span(start, 500),), 1.0, "Tea is cold.") for start in (0, 400)]
    assert [index.behind("tea", [hit]) for hit in beyond] == [[hit] for hit in beyond]
    assert index.behind("tea", [Retrieved("tea", (Span(400, 500),)), Retrieved("web", ())]) == []
    textless = Retrieved("tea", (Span(0, 29),))
    assert loose not in index.behind("tea", [textless, loose], max_tokens=9), "the first hit is the whole budget"


def test_scores_of_hits_do_not_matter_and_repeats_are_equal() -> None:
    index = index_of(TEA)
    spans = [(Span(0, 11),), (Span(30, 46),)]
    one, other = (
        [Retrieved("tea", place, score, "") for place, score in zip(spans, scores, strict=True)]
        for scores in ((0.9, 0.8), (-5.0, 700.0))
    )
    assert index.behind("pot", one) == index.behind("pot", other)
    best, *others = (Retrieved("tea", (Span(*at),), 0.0) for at in ((30, 46), (0, 11), (12, 29), (47, 58)))
    for repeats in ([best, best, *others], [best, *others, best], [best, *others, others[0]]):
        assert index.behind("pot", repeats) == index.behind("pot", [best, *others])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(({"show": wrong}, 'show is "hits"') for wrong in ("some", [None], 3, b"tea", None)),
        ({"balance": 1.5}, "balance is at most 1"),
        ({"hits": ["tea"]}, "hits are Retrieved"),
    ],
)
def test_wrong_arguments_are_refused(options, message) -> None:
    with pytest.raises(OptionError, match=message):
        index_of(TEA).behind("tea", **{"hits": [], **options})


def test_the_hits_own_text_shows_no_secret_between_two_hits() -> None:
    """Chunks of one document may differ in who may read them."""
    text = "Tea is hot. The salary of Ann is 90000. Ice is cold. It melts."
    index = index_of([Document("staff", text)])
    spans = [Span(0, 11), Span(40, 59)]  # the second one ends within a unit
    hits = [Retrieved("staff", (span,), 1.0, span.slice(text)) for span in spans]
    found = index.behind("What is the salary of Ann?", hits, balance=1.0)
    assert sorted(passage.text for passage in found) == ["Ice is cold. It mel", "Tea is hot."]
    assert "90000" in index.behind("What is the salary of Ann?", hits, show="whole")[0].text


@pytest.mark.parametrize("budget", [12, 60, 300])
def test_the_best_hit_of_a_document_of_one_chunk_is_not_outvoted_by_filler(budget) -> None:
    """Answers of a FAQ beside long documents, whose many weak hits stand next to each other."""
    filler = " ".join(f"An order of part {part} is on the desk." for part in range(30))
    documents = [Document("faq", "Parcels arrive in three days."), *(Document(name, filler) for name in "abc")]
    hits = [Retrieved("faq", (Span(0, 29),), 0.9, documents[0].text)]
    spans = [Span(at, at + 90) for at in range(0, 270, 90)]
    hits += [Retrieved(name, (span,), 0.1, span.slice(filler)) for span in spans for name in "abc"]
    found = index_of(documents).behind("When will my order come?", hits, max_tokens=budget)
    assert "faq" in [passage.document_id for passage in found]


@pytest.mark.parametrize("show", ["hits", "whole"])
@pytest.mark.parametrize("units", ["sentence:size=50", "markdown:size=40"])
def test_a_tables_header_is_shown_once_with_a_row_or_not_at_all(units, show) -> None:
    head = "| drug | dose | patients | outcome |"
    rows = [f"| drug{row} | {row * 7 % 90} | {row * 3 % 50} | {row * 11 % 40} |" for row in range(60)]
    text = "\n".join(["# Trial\n\nSome words on the trial.\n", head, "|---|---|---|---|", *rows, "\nThe end of it."])
    index = get_retriever("passages:lexical").index(chunk_corpus([Document("t", text)], units))
    spans = [Span(0, 200), Span(text.index("| drug30"), text.index("| drug36"))]
    hits = [Retrieved("t", (span,), 1.0, span.slice(text)) for span in spans]
    for question in ("the outcome of drug17", "drug dose patients outcome"):
        for budget in range(5, 140, 4):
            found = index.behind(question, hits, show=show, max_tokens=budget)
            shown = " ".join(passage.text for passage in found)
            assert shown.count(head) <= min(1, sum(row in shown for row in rows))
            assert all(span.slice(text) in passage.text for passage in found for span in passage.spans)


def test_the_hits_own_text_shows_a_tables_header_where_a_hit_has_it() -> None:
    long = "0 mg, and more on its use" * 9  # a part of this row is shown, too, and a header where a hit has it alone
    for first, shown, size in (("0 mg", "drug5", 99), (long, "drug0", 99), (long, "drug |", 25)):
        rows = "".join(f"| drug{number} | {number * 7} mg |\n" for number in range(1, 8))
        document = Document("table.md", f"| drug | dose |\n|---|---|\n| drug0 | {first} |\n{rows}")
        corpus = chunk_corpus([document, Document("use", "Use drug0, drug5.")], "markdown:size=40,maximum=40")
        start = document.text.index(f"| {shown}")
        text = document.text[start : start + size].strip()
        hits = [Retrieved("table.md", (Span(start, start + len(text)),)), Retrieved("use", (Span(0, 17),))]
        index = get_retriever("passages:lexical").index(corpus)
        assert [passage.text.strip() for passage in index.behind(shown, hits[:1], show="hits")] == [text]
        assert len(index.behind(shown, hits, show="hits")) == 1 + (size > 25)  # beside other text, no header


def test_a_place_is_taken_at_its_word_whatever_text_the_hit_has() -> None:
    index = index_of(TEA)
    hits = [Retrieved("tea", (Span(0, 12),), 2.0, "Tea is cold."), Retrieved("salt", (), 1.0, "Salt is blue.")]
    assert [passage.text for passage in index.behind("Is salt blue?", hits)] == ["Tea is hot.", "Salt is blue."]
    new = index.update([Document("tea", "Tea is cold. Its price is 4. It boils.")])
    (after,) = new.behind("price of tea", hits[:1], show="whole")  # type: ignore[attr-defined]
    assert "Its price is 4." in after.text


def test_one_character_finds_longer_runs_and_no_passage_is_a_tag() -> None:
    page = Document(
        "a.html", "<p>ここに犬がいます。</p>\n\n<div class='x y z w v u'><span></span></div>\n\n<p>Tea is hot.</p>"
    )
    index = index_of([page, Document("b", "Rain falls.")])
    (passage,) = index.retrieve("犬", max_tokens=12)
    assert "犬" in passage.text
    hit = Retrieved("a.html", (Span(0, len(page.text)),), 1.0)
    texts = [passage.text for passage in index.behind("x y", [hit], max_tokens=20)]
    assert all("犬" in text or "hot" in text for text in texts)
