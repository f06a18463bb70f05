"""Retrieved text is found in the documents: by its spans, by its text, or by its text without white space."""

from __future__ import annotations

import pytest
from chunkcore import DataError, Document, OptionError, Retrieved, Span
from chunkcore.locating.alignment import Aligner
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import text_with_spans

FOX = Document("fox", "The quick brown fox\njumps over the lazy dog.  The end of the story.")
DOG = Document("dog", "A dog barks at the moon. The end of the story.")


@pytest.fixture
def aligner() -> Aligner:
    return Aligner([FOX, DOG])


def test_given_spans_are_taken_where_they_hold_the_text(aligner: Aligner) -> None:
    found = aligner.locate("quick brown", document_id="fox", spans=[Span(4, 15)], score=0.5)
    assert found == Retrieved("fox", (Span(4, 15),), 0.5, "quick brown", match="spans")


@pytest.mark.parametrize(
    "spans",
    [
        [Span(5, 16)],  # one character off
        [Span(3, 9)],
        [Span(9, 16)],
        [Span(4, 4000)],  # past the end
        [Span(4, 15), Span(35, 43)],  # one span too many
    ],
)
def test_wrong_spans_give_way_to_the_text(aligner: Aligner, spans: list[Span]) -> None:
    found = aligner.locate("quick brown", document_id="fox", spans=spans)
    assert (found.match, found.document_id, found.spans) == ("exact", "fox", (Span(4, 15),))


def test_several_places_are_ambiguous_and_the_first_is_taken(aligner: Aligner) -> None:
    found = aligner.locate("The end of the story.")
    assert (found.match, found.document_id, found.spans) == ("ambiguous", "fox", (Span(46, 67),))


def test_a_document_id_narrows_the_search(aligner: Aligner) -> None:
    found = aligner.locate("The end of the story.", document_id="dog")
    assert (found.match, found.document_id, found.spans) == ("exact", "dog", (Span(25, 46),))
    assert aligner.locate("quick brown", document_id="dog").match == "unlocated"


def test_what_stands_nowhere_keeps_its_text(aligner: Aligner) -> None:
    assert aligner.locate("a cat", score=2.0) == Retrieved("", (), 2.0, "a cat", match="unlocated", certainty=0.0)
    assert aligner.locate("").match == "unlocated"


def test_documents_that_share_an_id_are_refused() -> None:
    with pytest.raises(DataError, match="share an id"):
        Aligner([FOX, FOX])


@pytest.mark.parametrize("similarity", [True, "0.8", float("nan"), 0.4, 1.1])
def test_a_similarity_is_a_share(similarity: object) -> None:
    with pytest.raises(OptionError, match="similarity is"):
        Aligner([FOX], similarity=similarity)


@given(st.integers(0, 19), st.integers(15, 40))
def test_a_text_of_any_length_is_found_wherever_it_stands(start: int, length: int) -> None:
    source = "".join(chr(0x4E00 + number * number) for number in range(70))
    found = Aligner([Document("a", "other"), Document("b", source)]).locate(source[start : start + length])
    assert (found.match, found.document_id, found.spans) == ("exact", "b", (Span(start, start + length),))


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
        assert found.match == ("exact" if len(places) == 1 else "ambiguous")
    else:
        assert found.match != "exact"


TALE = Document(
    "tale",
    "Introduction\n\nThe “naïve” ﬁsherman of Åland rowed out—alone—before dawn, and he didn't come back.\n\n"
    "**Warning:** the lighthouse keeper saw nothing but fog from midnight until six in the morning.\n\n"
    "The search went on for eleven days. The search went on for eleven days. Nobody found the boat.",
)


def located(text: str, **options: float | None) -> tuple[str, str]:
    """How a text was located in the tale, and what stands there."""
    found = Aligner([FOX, TALE], **options).locate(text)
    return found.match, "".join(span.slice(TALE.text) for span in found.spans)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("the lighthouse keeper saw NOTHING", "the lighthouse keeper saw nothing"),
        ('The "naive" fisherman of Aland', "The “naïve” ﬁsherman of Åland"),
        ("rowed out - alone - before dawn", "rowed out—alone—before dawn"),
        ("he didn’t come back.", "he didn't come back."),
        ("Warning: the lighthouse", "Warning:** the lighthouse"),  # as many signs around it as the text has
        ("the light-\nhouse keeper", "the lighthouse keeper"),
        ("fisher\u00adman of A\u030aland", "ﬁsherman of Åland"),
    ],
)
def test_case_accents_signs_and_ligatures_are_seen_through(text: str, source: str) -> None:
    assert located(text) == ("folded", source)


def test_mistyped_text_is_found_by_resemblance_and_its_certainty_is_the_share_of_what_matches() -> None:
    text = "the lighthouse kepeer saw nothimg but fog from midnight until six"
    how, source = located(text)
    assert (how, source) == ("fuzzy", "the lighthouse keeper saw nothing but fog from midnight until six")
    certainty = Aligner([TALE]).locate(text).certainty
    # 53 of the 55 letters match one by one; of the swapped "pe" one is taken out and put in again.
    assert 0.9 < certainty < 1


def test_what_was_written_before_and_after_a_passage_falls_off() -> None:
    passage = "the lighthouse keeper saw nothing but fog from midnight until six in the morning."
    for text in (f"Chapter 3 > At sea\n{passage}", f"{passage} [page 12, retrieved today]", f"p. 1: {passage} (p. 2)"):
        found = Aligner([FOX, TALE]).locate(text)
        assert found.document_id == "tale"
        assert found.spans[0].slice(TALE.text).strip("*: .") == passage.strip(".")
        assert found.match in ("part", "fuzzy")
    assert located(f"Chapter 3 > At sea\n{passage}")[0] == "part"


@pytest.mark.parametrize("lead", [0, 7, 35])
def test_a_passage_is_found_on_both_sides_of_a_page_footer(lead: int) -> None:
    """Of the 40 figures between 16 cost 0.8 each: less than the letters behind them gain."""
    first = (
        "The committee met on the second of March and heard what the harbour master had to say of the new pier, whose "
        "timbers had been laid in haste and were now thought unsafe for the larger ships that call in summer"
    )
    last = " and so it was closed at once."
    source = f"{'z' * lead} {first} | {'01234 56789 ' * 4}| {last} Another matter."
    (span,) = Aligner([Document("a", source)]).locate(first + last).spans
    assert (source.index(first), source.index(last) + len(last)) == (span.start, span.end)


def test_thresholds_are_what_they_say() -> None:
    swapped = "teh lighthouse kepeer saw nothign but fgo from midnihgt until sxi in teh morning"
    assert located(swapped, similarity=0.7)[0] == "fuzzy"
    assert located(swapped, similarity=0.9)[0] == "unlocated"
    assert located("the lighthouse keeper saw nothimg but fog", similarity=None)[0] == "unlocated"
    assert located("THE LIGHTHOUSE keeper saw nothing but fog", similarity=None)[0] == "folded"
    quoted = "He wrote at length of quite other things, then: the lighthouse keeper saw nothing but fog from midnight"
    assert [located(text)[0] for text in (quoted, f"{'And so on. ' * 5}{quoted}")] == ["part", "unlocated"]
    assert Aligner([Document("a", f"the piers{'q' * 20}")]).locate(f"{'z' * 20}the piers").match == "unlocated"


def test_of_several_places_the_one_nearest_to_the_given_spans_is_taken() -> None:
    aligner, text = Aligner([TALE]), "The search went on for eleven days."
    spans = (), (Span(TALE.text.rindex("The search") + 3, len(TALE.text)),)
    starts = [aligner.locate(text, document_id="tale", spans=each).spans[0].start for each in spans]
    assert starts == [TALE.text.index("The search"), TALE.text.rindex("The search")]


def test_given_spans_are_taken_where_a_context_was_written_around_the_text() -> None:
    start, text = TALE.text.rindex("The search"), "The search went on for eleven days."
    aligner, span = Aligner([TALE]), Span(start, start + 35)
    for context in ("At sea:\n", "The crew sought a boat after the storm, as this part of the tale says. " * 2):
        for end in (span.end, start + len(context + text)):  # some splitters state the start alone
            found = aligner.locate(context + text, document_id="tale", spans=[Span(start, end)])
            assert (found.match, found.spans, found.certainty) == ("spans", (span,), 1)
    off = aligner.locate(f"At sea:\n{text}", document_id="tale", spans=[Span(start + 1, start + 35)])
    assert off.match != "spans"
    tea = Aligner([Document("tea", "Tea is very hot in the early morning. " * 2 + "So.\n")])
    stale = [("Ice.\n", Span(79, 80)), ("Tea is very hot in the early morning. So.", Span(0, 38))]
    assert [tea.locate(text, document_id="tea", spans=[span]).match for text, span in stale] == ["unlocated", "exact"]


def test_in_order_of_the_document_repeats_are_told_apart_by_their_neighbours() -> None:
    lines = ["ok.", "One fell.", "ok.", "ok.", "Two fell.", "ok."]
    found = Aligner([Document("log", " ".join(lines))]).locate_in_order(lines, document_id="log")
    assert [piece.spans[0].start for piece in found] == [0, 4, 14, 18, 22, 32]
    assert [piece.match for piece in found] == ["order", "exact", "order", "order", "exact", "order"]
    assert {piece.certainty for piece in found} == {1.0}


def test_where_the_order_tells_nothing_the_place_stays_ambiguous() -> None:
    log = Document("log", "ok. " * 4)
    found = Aligner([log]).locate_in_order(["ok."], document_id="log")
    assert (found[0].match, found[0].certainty) == ("ambiguous", 0.25)
    assert Aligner([log]).locate_in_order([], document_id="log") == []
    with pytest.raises(DataError, match="no document 'other'"):
        Aligner([log]).locate_in_order(["ok."], document_id="other")


def test_repeated_letters_take_their_places_in_order_however_many() -> None:
    """Every pair of places took 16 s."""
    text = "a" * 800
    pieces = [text[start : start + 5] for start in range(796)]
    found = Aligner([Document("d", text)]).locate_in_order(pieces, document_id="d")
    assert [each.spans[0].start for each in found] == list(range(796))
