"""Retrieved text is found in the documents: by its spans, by its text, or by its text without white space."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkcore.document import Document, Span
from chunkcore.errors import DataError
from chunkcore.evaluation.alignment import Aligner
from chunkcore.evaluation.run import Retrieved
from tests.strategies import text_with_spans

FOX = Document("fox", "The quick brown fox\njumps over the lazy dog.  The end of the story.")
DOG = Document("dog", "A dog barks at the moon. The end of the story.")


@pytest.fixture
def aligner() -> Aligner:
    return Aligner([FOX, DOG])


def test_given_spans_are_taken_where_they_hold_the_text(aligner: Aligner) -> None:
    found = aligner.locate("quick brown", document_id="fox", spans=[Span(4, 15)], score=0.5)
    assert found == Retrieved("fox", (Span(4, 15),), 0.5, "quick brown", "spans")


def test_given_spans_may_differ_from_the_text_in_white_space(aligner: Aligner) -> None:
    found = aligner.locate("quick brown\n lazy  dog", document_id="fox", spans=[(4, 15), (35, 43)])
    assert (found.how, found.spans) == ("spans", (Span(4, 15), Span(35, 43)))


@pytest.mark.parametrize(
    "spans",
    [
        [Span(5, 16)],  # one character off
        [Span(4, 4000)],  # past the end
        [(15, 4)],  # reversed
        [(4.0, 15.0)],  # no whole numbers
        [(4, 15), (35, 43)],  # one span too many
    ],
)
def test_wrong_spans_give_way_to_the_text(aligner: Aligner, spans: list[Span]) -> None:
    found = aligner.locate("quick brown", document_id="fox", spans=spans)
    assert (found.how, found.document_id, found.spans) == ("exact", "fox", (Span(4, 15),))


def test_spans_without_text_are_taken_where_they_are_in_bounds(aligner: Aligner) -> None:
    assert aligner.locate("", document_id="fox", spans=[(0, 3)]).spans == (Span(0, 3),)
    assert aligner.locate("", document_id="fox", spans=[(0, 3000)]).how == "unlocated"


def test_an_exact_place_keeps_the_white_space_around_the_text(aligner: Aligner) -> None:
    found = aligner.locate("  The end")
    assert (found.how, found.document_id, found.spans) == ("exact", "fox", (Span(44, 53),))


def test_changed_white_space_is_seen_through(aligner: Aligner) -> None:
    found = aligner.locate(" brown fox jumps\n\nover ")
    assert (found.how, found.document_id) == ("whitespace", "fox")
    assert [span.slice(FOX.text) for span in found.spans] == ["brown fox\njumps over"]


def test_an_exact_place_wins_over_one_that_differs_in_white_space() -> None:
    aligner = Aligner([Document("a", "one  two, and a few more words"), Document("b", "one two, and a few more words")])
    found = aligner.locate("one two, and a few more words")
    assert (found.how, found.document_id) == ("exact", "b")


def test_several_places_are_ambiguous_and_the_first_is_taken(aligner: Aligner) -> None:
    found = aligner.locate("The end of the story.")
    assert (found.how, found.document_id, found.spans) == ("ambiguous", "fox", (Span(46, 67),))


def test_a_document_id_narrows_the_search(aligner: Aligner) -> None:
    found = aligner.locate("The end of the story.", document_id="dog")
    assert (found.how, found.document_id, found.spans) == ("exact", "dog", (Span(25, 46),))
    assert aligner.locate("quick brown", document_id="dog").how == "unlocated"


def test_an_unknown_document_id_is_left_out_of_account(aligner: Aligner) -> None:
    found = aligner.locate("quick brown", document_id="7f3a-uuid", spans=[(0, 11)])
    assert (found.how, found.document_id, found.spans) == ("exact", "fox", (Span(4, 15),))


def test_what_stands_nowhere_keeps_its_text(aligner: Aligner) -> None:
    assert aligner.locate("a cat", score=2.0) == Retrieved("", (), 2.0, "a cat", "unlocated")
    assert aligner.locate("").how == "unlocated"


def test_white_space_alone_is_found_verbatim_only(aligner: Aligner) -> None:
    assert aligner.locate("\n").spans == (Span(19, 20),)
    assert aligner.locate("\n\n").how == "unlocated"
    assert aligner.locate(" ").how == "ambiguous"


def test_long_repeats_are_ambiguous() -> None:
    row = "| 12 | 34 | 56 | 78 | 90 | a row of a table |\n"
    found = Aligner([Document("table", "Header\n" + row * 50)]).locate(row * 2)
    assert (found.how, found.spans) == ("ambiguous", (Span(7, 7 + 2 * len(row)),))


def test_documents_that_share_an_id_are_refused() -> None:
    with pytest.raises(DataError, match="share an id"):
        Aligner([FOX, FOX])


@pytest.mark.parametrize("start", range(20))
@pytest.mark.parametrize("length", [15, 16, 22, 23, 24, 40])
def test_a_text_of_any_length_is_found_wherever_it_stands(start: int, length: int) -> None:
    source = "".join(chr(0x4E00 + number * number) for number in range(70))
    found = Aligner([Document("a", "other"), Document("b", source)]).locate(source[start : start + length])
    assert (found.how, found.document_id, found.spans) == ("exact", "b", (Span(start, start + length),))


@st.composite
def _passages(draw: st.DrawFn) -> tuple[list[Document], str, str]:
    """Documents of hard text, of which the second holds passages of the first, and one passage."""
    text, spans = draw(text_with_spans())
    other = draw(text_with_spans())[0] + "".join(span.slice(text) for span in spans)
    passage = spans[0].slice(text) if spans else text
    filler = draw(st.sampled_from(["", "x" * 40, "lorem ipsum dolor sit amet, consetetur"]))
    return [Document("a", text + filler + text), Document("b", other)], passage, filler


@given(_passages(), st.sampled_from(["", "a", "b"]))
def test_verbatim_text_is_found_where_str_find_finds_it(case: tuple[list[Document], str, str], only: str) -> None:
    documents, passage, filler = case
    text = passage + filler
    places = [
        (document.id, start)
        for document in documents
        if only in ("", document.id)
        for start in range(len(document.text))
        if text and document.text.startswith(text, start)
    ]
    found = Aligner(documents).locate(text, document_id=only)
    if places:
        assert (found.document_id, found.spans[0].start) == places[0]
        assert found.spans[0].slice({d.id: d.text for d in documents}[found.document_id]) == text
        assert found.how == ("exact" if len(places) == 1 else "ambiguous")
    else:
        assert found.how != "exact"


@given(_passages(), st.floats(0, 1), st.floats(0, 1))
def test_text_whose_white_space_changed_is_found(
    case: tuple[list[Document], str, str], one: float, other: float
) -> None:
    documents = case[0]
    source = documents[0].text
    start, end = sorted((int(one * len(source)), int(other * len(source))))
    text = " \n".join(source[start:end])
    found = Aligner(documents).locate(text, document_id="a")
    if text.split():
        assert found.document_id == "a"
        assert found.how in ("whitespace", "ambiguous", "exact")
        assert "".join(found.spans[0].slice(source).split()) == "".join(text.split())
