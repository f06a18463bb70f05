"""Hits stand in the documents that they name, at their own text; and in no other."""

from __future__ import annotations

import pytest
from chunkadapters.passages import HitPlaces
from chunkadapters.retrieval import DocumentNames, Hit, QuestionScorer
from chunkcore import Benchmark, Evidence, Query
from chunkcore.text import Document, Span
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import hard_text

TEXT = "The tea is hot, and so is the cup. The sea is deep, and it is cold. The fee is low, says the sign at the door."
OTHER = (
    "Of ice and snow: it melts at noon, and the water runs down the street. The fee is low, says the sign at the door."
)
DOCUMENTS = {"d": Document("d", TEXT), "docs/ice.md": Document("docs/ice.md", OTHER)}


def hit(text: str, *names: str, start: int | None = None, **options) -> Hit:
    spans = () if start is None else (Span(start, start + len(text)),)
    return Hit(text, document_ids=names, spans=spans, document=names[0] if names else "", **options)


def placed(*hits: Hit, documents=None) -> list[tuple[str, tuple[int, int] | None]]:
    pieces = HitPlaces(documents or DOCUMENTS).located(hits)
    return [
        (piece.document_id, (piece.spans[0].start, piece.spans[-1].end) if piece.spans else None) for piece in pieces
    ]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["d"], ["d"]),
        (["/srv/docs/ice.md"], ["docs/ice.md"]),
        (["ice.md"], ["docs/ice.md"]),
        (["ice"], ["docs/ice.md"]),
        (["other/ice.md"], []),
        (["docs/ice.txt"], []),
        (["C:\\data\\docs\\ice.md"], ["docs/ice.md"]),
        (["ice.md", "d"], ["d", "docs/ice.md"]),
        (["", "/", "..", "no"], []),
    ],
)
def test_a_document_is_named_by_its_id_or_by_a_path_that_ends_so(names, expected):
    assert DocumentNames(DOCUMENTS).matching(names) == expected


def test_a_path_that_ends_as_several_ids_do_names_none():
    names = DocumentNames(["a/x.md", "b/x.md"])
    assert (names.matching(["x.md"]), names.matching(["/srv/a/x.md"])) == ([], ["a/x.md"])


def test_a_stated_place_counts_where_it_holds_the_text_else_the_text():
    assert placed(hit(TEXT[35:66], "d", start=35)) == [("d", (35, 66))]
    assert placed(hit(TEXT[35:66], "d", start=3), hit(TEXT[35:66], "d")) == [("d", (35, 66))] * 2
    assert placed(hit(TEXT[35:66].upper().replace(" ", "\n"), "d")) == [("d", (35, 66))]
    assert placed(hit(f"From a page on drinks. {TEXT[:34]}", "d"))[0][0] == "d"


def test_a_text_in_several_places_stands_where_it_is_stated():
    text = f"{TEXT}\n{TEXT}"
    documents = {"d": Document("d", text)}
    assert placed(hit(TEXT[:34], "d", start=len(TEXT) + 1), documents=documents) == [("d", (111, 145))]


def test_a_hit_without_a_name_belongs_to_the_only_document_with_its_text():
    assert placed(hit(TEXT[:34])) == [("d", (0, 34))]
    assert placed(hit("The fee is low, says the sign at the door.")) == [("", None)]  # in both
    assert placed(hit("The tea is hot")) == [("", None)]  # too short to tell
    assert placed(hit(TEXT[:34], "elsewhere/tea.md")) == [("", None)]  # of another file
    assert placed(hit(TEXT[:34], "5f1c9a")) == [("d", (0, 34))]  # an id says nothing


def test_what_a_model_wrote_stands_at_its_passage():
    assert placed(hit("A summary", "d", start=35, derived=True)) == [("d", (35, 44))]
    assert (
        placed(hit("A summary", "d", derived=True), hit("A summary of the tea, which is hot", "d")) == [("", None)] * 2
    )


def test_a_changed_document_is_not_used():
    changed = TEXT.replace("deep", "wide")
    places = HitPlaces(DOCUMENTS)
    pieces = places.located([hit(changed[10:90], "d"), hit(TEXT[:34], "d", start=0), hit(OTHER[:40], "docs/ice.md")])
    assert [piece.document_id for piece in pieces] == ["", "", "docs/ice.md"]
    assert places.changed == {"d"}
    moved = HitPlaces(DOCUMENTS)
    moved.located([hit("Nothing of the kind was ever written there, at all.", "d", start=0)])
    assert moved.changed == {"d"}


@given(hard_text(), st.data())
def test_every_piece_of_a_document_is_found_in_it_at_its_own_text(text, data):
    start = data.draw(st.integers(0, max(0, len(text) - 1)))
    piece = text[start : start + data.draw(st.integers(1, 40))]
    documents = {"a": Document("a", text), "b": Document("b", "-")}
    named = hit(piece, "a", start=start) if piece else hit("")
    (found,) = HitPlaces(documents).located([named])
    if piece.strip():
        assert "".join(span.slice(text) for span in found.spans) == piece
    else:
        assert not found.spans


def test_questions_with_one_text_have_their_mean() -> None:
    evidence = [(Evidence("d", Span(0, 14)),), (Evidence("d", Span(16, 33)),)]
    queries = [Query(str(number), "How is it?", one) for number, one in enumerate(evidence)]
    scorer = QuestionScorer(Benchmark("two", list(DOCUMENTS.values()), queries))
    hits = [hit(TEXT[:14], "d", start=0)]
    assert scorer.scores("How is it?", hits, ["Recall@5"]) == [0.5]
    assert scorer.scores("0", hits, ["Recall@5"]) == [1.0]
