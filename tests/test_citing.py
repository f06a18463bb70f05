"""Citations: which sentence is supported by what, with exact places, and how they are shown."""

from __future__ import annotations

import pytest
from chunkcore import Document, Retrieved, Span
from chunkcore.answers import CitedAnswer, cite
from chunkcore.retrieval.passages.assembly import passage_of
from hypothesis import given, settings
from hypothesis import strategies as st

SOURCE = (
    "The mill on the Orle was built in 1831. It burned down twice, and each time the owner rebuilt it in brick. "
    "The last miller, Ada Thorn, closed it in 1973. Today the building holds a school for clockmakers."
)


def passages() -> list[Retrieved]:
    start = 0
    hits: list[Retrieved] = []
    for sentence in SOURCE.split(". "):
        at = SOURCE.index(sentence, start)
        start = min(at + len(sentence) + 1, len(SOURCE))
        hits.append(Retrieved("orle.txt", (Span(at, start),), 1.0 + len(hits) % 2, SOURCE[at:start]))
    return [passage_of(hits, 2.0, {"orle.txt": Document("orle.txt", SOURCE)})]


def test_a_sentence_of_a_passage_cites_its_exact_place() -> None:
    (citation,) = cite("the last miller, Ada Thorn, closed it in 1973", passages()).citations
    (source,) = citation.sources
    assert (citation.match, citation.certainty, source.document_id) == ("folded", 1.0, "orle.txt")
    assert source.spans[0].slice(SOURCE) == source.text == "The last miller, Ada Thorn, closed it in 1973"


def test_a_sentence_in_other_words_cites_the_part_whose_words_it_shares() -> None:
    (citation,) = cite("Ada Thorn was the miller who closed the mill in 1973.", passages()).citations
    assert citation.match == "words"
    assert citation.sources[0].text.startswith("The last miller")
    assert 0.5 <= citation.certainty < 1


def test_one_sentence_over_two_parts_cites_both() -> None:
    (citation,) = cite("Built in 1831 on the Orle, it now holds a school for clockmakers.", passages()).citations
    assert [source.text[:9] for source in citation.sources] in (["The mill ", "Today the"], ["Today the", "The mill "])


def test_what_nothing_supports_cites_nothing() -> None:
    found = cite("Submarines patrol Jupiter. No.", passages())
    assert [(each.match, each.sources, each.certainty) for each in found.citations] == [("none", (), 0.0)] * 2
    assert cite("", passages()).citations == ()
    assert [each.match for each in cite("The mill was built.", []).citations] == ["none"]


DOSE = "Adults take 10 mg of the drug twice a day. It does not harm the liver. Keep it at -5 °C for 1,000 hours."


@pytest.mark.parametrize(
    "sentence",
    [
        "Adults take 100 mg of the drug twice a day.",
        "Adults take 10 g of the drug twice a day.",
        "Adults do not take 10 mg of the drug twice a day.",
        "It does harm the liver.",
        "Keep it at 5 °C for 1,000 hours.",
        "Keep it at -5 °C for 10 hours.",
        "Adults take three mg of the drug twice a day.",
    ],
)
def test_other_numbers_units_or_negations_are_never_a_citation(sentence: str) -> None:
    (citation,) = cite(sentence, [Retrieved("d", (Span(0, len(DOSE)),), 1.0, DOSE)]).citations
    assert (citation.match, citation.sources, citation.certainty) == ("altered", (), 0.0)
    assert citation.altered


@pytest.mark.parametrize("sentence", ["Adults take 10 mg of this drug twice a day.", "Keep it at −5°C for 1000 hours."])
def test_the_same_numbers_units_and_negations_in_other_words_are_a_citation(sentence: str) -> None:
    (citation,) = cite(sentence, [Retrieved("d", (Span(0, len(DOSE)),), 1.0, DOSE)]).citations
    assert citation.sources


def test_a_word_inside_another_is_no_support() -> None:
    note = Retrieved("d", (Span(0, 11),), 1.0, "Take notes.")
    assert cite("No", [note]).citations[0].match == "none"
    assert cite("Notes", [note]).citations[0].match == "folded"


def test_places_in_passages_of_several_spans_are_the_sources() -> None:
    spans = Span(10, 22), Span(50, 64), Span(68, 75)  # the last stands after a tag, without a space
    passage = Retrieved("d", spans, 1.0, "One fox naps Two crows sang, aloud")
    assert cite("Two crows sang", [passage]).sources[0].spans == (Span(50, 64),)


def test_terminal_controls_are_made_visible() -> None:
    passage = Retrieved("d\x1b[2J", (Span(0, 9),), 1.0, "red \x1b[31m!")
    shown = str(cite("red \x1b[31m!", [passage]))
    assert "\x1b" not in shown
    assert shown.splitlines()[-1].startswith("[1] d␛[2J 0-9")


texts = st.text(alphabet="ab .\n<é東", max_size=40)


@settings(max_examples=60, deadline=None)
@given(texts, st.lists(texts, max_size=4))
def test_any_answer_is_cited_with_exact_places(answer: str, sources: list[str]) -> None:
    hits = [Retrieved(f"d{i}", (Span(0, len(text)),), 1.0, text) for i, text in enumerate(sources) if text]
    found = cite(answer, hits)
    assert isinstance(found, CitedAnswer)
    assert found == cite(answer, hits)
    for each in found.citations:
        assert each.text == each.span.slice(answer)
        assert 0 <= each.certainty <= 1
        assert bool(each.sources) == (each.match not in ("none", "altered"))
        for source in each.sources:
            assert source.text == "".join(span.slice(sources[int(source.document_id[1:])]) for span in source.spans)
    assert len(str(found).splitlines()) >= len(found.sources) + 1
