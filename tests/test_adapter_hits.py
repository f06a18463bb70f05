"""Hits stand in the documents that they name, at their own text; and in no other."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest
from chunkadapters.places import PlaceKeys
from chunkcore.locating import NO_PLACE, DocumentNames, Hit, Locator, StatedPlace, Verdict, names_of, spans_between
from chunkcore.locating.alignment import Aligner, find_quote
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
    stated = NO_PLACE if start is None else StatedPlace((Span(start, start + len(text)),))
    return Hit(text, names=names, stated=stated, document=names[0] if names else "", **options)


def placed(*hits: Hit, documents=None) -> list[tuple[str, tuple[int, int] | None]]:
    pieces = [verdict.piece for verdict in Locator(documents or DOCUMENTS).locate_all(hits)]
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
    assert DocumentNames(DOCUMENTS).groups(names) == [[name] for name in expected]


def test_documents_of_one_name_are_all_meant_and_the_text_decides():
    names = DocumentNames(["a/x.md", "b/x.md", "c.md#1", "c.md#2"])
    assert names.groups(["x.md", "/srv/a/x.md"], loosely=True) == [["a/x.md", "b/x.md"], ["a/x.md"]]
    assert names.groups(["c.md"]) == [["c.md#1", "c.md#2"]]
    documents = {name: Document(name, text) for name, text in (("a/x.md", TEXT), ("b/x.md", OTHER))}
    assert placed(hit(OTHER[:40], "x.md", start=0), documents=documents) == [("b/x.md", (0, 40))]
    both = Locator(documents).locate(hit("The fee is low, says the sign at the door.", "x.md"))
    assert (both.kind, both.piece.spans) == ("ambiguous", ())
    assert both.reason == "several documents of its name have its text"


NFC, NFD = (unicodedata.normalize(form, "docs/Prüfbericht.md") for form in ("NFC", "NFD"))


@pytest.mark.parametrize(
    ("document_id", "name"),
    [
        (NFC, NFD),
        (NFD, NFC),
        ("Mein Bericht.md", "Mein%20Bericht.md"),
        ("docs/a.md", "file:///srv/docs/a.md"),
        ("docs/a.md", "C:\\srv\\docs\\a.md"),
        ("docs\\a.md", "docs/a.md"),
        ("docs/a.md", "/srv/docs/a.md#page=2"),
        ("C#/a#1.md", "C#/a#1.md#top"),
        ("100%25.md", "100%25.md"),
        ("docs/a", "/srv/docs/a.md"),
    ],
)
def test_a_name_is_one_in_any_spelling(document_id, name):
    assert DocumentNames([document_id, "other.md"]).groups([name]) == [[document_id]]


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
    assert placed(hit(TEXT[:24]), hit(TEXT[:23])) == [("d", (0, 24)), ("", None)]  # shorter ones tell nothing
    assert placed(hit(TEXT[:34], "elsewhere/tea.md")) == [("", None)]  # of another file
    assert placed(hit(TEXT[:34], "5f1c9a")) == [("d", (0, 34))]  # an id says nothing
    stale = StatedPlace((Span(0, 60),))  # of the text that it was cut from, from 0
    assert placed(Hit(TEXT[:34], stated=stale)) == [("d", (0, 34))]


def test_documents_of_ids_that_no_hit_knows_are_named_by_their_metadata():
    """Some readers give a file another id at every run."""
    documents = {str(n): Document(str(n), f"Tea {n} is hot.", {"file_path": f"/srv/docs/{n}.md"}) for n in range(3)}
    assert placed(hit("Tea 1 is hot.", "5f1c", "docs/1.md"), documents=documents) == [("1", (0, 13))]
    assert placed(hit("Tea 1 is hot.", "5f1c", "docs/2.md"), documents=documents) == [("", None)]
    shared = {name: replace(row, metadata={"source": "tea.pdf"}) for name, row in documents.items()}
    assert placed(hit("Tea 1 is hot.", "/srv/tea.pdf"), documents=shared) == [("1", (0, 13))]
    assert placed(hit("Tea 1 is hot.", "2", "tea.pdf"), documents=shared) == [("", None)]  # an id comes first


@pytest.mark.parametrize("end", [500, 40])
def test_a_stated_place_without_a_name_has_to_hold_the_text_and_no_more(end):
    text = "Tea is hot and the pot is full."
    found = Locator({"t.md": Document("t.md", f"{text} Ice is cold.")}).locate(
        Hit(text, stated=StatedPlace((Span(0, end),)))
    )
    assert (found.piece.spans, found.reason) == ((Span(0, 31),), "another text stands at its stated place")


@pytest.mark.parametrize(
    ("text", "source", "kind"),
    [
        ("do x-1", "Never do x+1. ok", "elsewhere"),
        ("DO x-1", "Never do x+1. Do x-1.", "placed"),
        ("was -5 % in June", "It was 5 % in June.", "elsewhere"),
        ("5 - 3", "It is 5 + 3.", "elsewhere"),
        ("the rapist", "He saw a therapist.", "elsewhere"),
        ("Art", "Never restart it.", "elsewhere"),
        ("ART", "My art.", "placed"),
        ("the light-\nhouse, “he” didn’t", "**The** lighthouse: 'he' didn't", "placed"),
        ("漢 字", "漢字。", "placed"),
    ],
)
def test_signs_and_spaces_within_words_make_another_text(text, source, kind):
    found = Locator({"d": Document("d", source)}).locate(hit(text, "d"))
    assert found.kind == kind
    (piece,) = [Aligner([Document("d", source)]).locate(text)]
    assert text == "Art" or (piece.certainty == 1) == (kind == "placed")


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("Never restart it. Art is fine.", "Art", "Art"),
        ("My art. Art is fine.", "Art", "Art"),
        ("My art.", "ART", "art"),
        ("Never restart it.", "Art", None),
        (TEXT, "ea is hot, and SO is the cup. The s", TEXT[5:40]),
    ],
)
def test_quoted_words_are_whole_words_and_verbatim_ones_first(text, words, expected):
    quote = find_quote(text, words)
    assert (quote and quote.span.slice(text)) == expected


def test_what_a_model_wrote_stands_at_its_passage():
    assert placed(hit("A summary", "d", start=35, derived=True)) == [("d", (35, 44))]
    summary, longer = hit("A summary", "d", derived=True), hit("A summary of the tea, which is hot", "d")
    assert placed(summary, longer) == [("", None)] * 2


MISTYPED = TEXT[:66].replace("hot", "hat").replace("sea", "see")
SIGN = "The fee is low, says the sign at the door."
REASONS = (
    "no document has its text",
    "its document does not have its text",
    "its text stands several times",
    "it names another file",
    "it has no text",
)
NOWHERE: tuple[str, str, list[tuple[int, int]]] = ("elsewhere", "", [])


@pytest.mark.parametrize(
    ("asked", "strict", "lenient"),
    [
        (hit(OTHER[:40], "d"), NOWHERE, ("placed", "docs/ice.md", [(0, 40)])),
        (hit(SIGN), NOWHERE, ("ambiguous", "d", [(68, 110)])),
        (hit(SIGN, "other/ice.md"), NOWHERE, ("placed", "docs/ice.md", [(71, 113)])),
        *[(hit(MISTYPED, *names), NOWHERE, ("placed", "d", [(0, 66)])) for names in ((), ("d",))],
        (Hit("", names=("d",), stated=StatedPlace((Span(3, 9),))), NOWHERE, ("placed", "d", [(3, 9)])),
        (hit(TEXT[:34], "d", derived=True), NOWHERE, ("placed", "d", [(0, 34)])),
        (hit("Something else, of which no document tells.", start=3, derived=True), NOWHERE, NOWHERE),
        (hit(TEXT[-9:], "d", start=len(TEXT) - 9), *[("placed", "d", [(101, 110)])] * 2),
        (hit(f"Of the signs. {SIGN}", "d"), *[("placed", "d", [(68, 110)])] * 2),  # with a context
    ],
)
def test_scores_take_what_resembles_and_what_other_documents_hold(asked, strict, lenient):
    for is_lenient, expected in ((False, strict), (True, lenient)):
        found = Locator(DOCUMENTS, lenient=is_lenient).locate(asked)
        spans = [(span.start, span.end) for span in found.piece.spans]
        assert (found.kind, found.piece.document_id, spans) == expected
        assert found.reason in ("", *REASONS)


def test_of_two_documents_with_one_text_the_stated_place_decides_where_it_holds_the_text():
    texts = {"a/x.md": TEXT, "b/x.md": TEXT, "c/y.md": f"Yes. {TEXT}"}
    alike = {name: Document(name, text) for name, text in texts.items()}
    assert placed(hit(TEXT[:34], start=5), documents=alike) == [("c/y.md", (5, 39))]
    assert placed(hit(TEXT[:34], start=0), documents=alike) == [("", None)]
    found = Locator(alike, lenient=True).locate(hit(TEXT[:34], "x.md"))
    assert (found.kind, found.piece.document_id, found.piece.certainty) == ("ambiguous", "a/x.md", 0.5)
    named = {"a/x.md": alike["a/x.md"], "b/x.md": replace(alike["c/y.md"], id="b/x.md")}
    assert placed(hit(TEXT[:34], "x.md", start=5), documents=named) == [("b/x.md", (5, 39))]


def test_names_are_texts_paths_numbers_and_those_of_databases():
    row = UUID(int=7)
    assert names_of("", None, 5.0, row, Path("a"), "b", True, "a", 5, 0, 1.5) == ("5", str(row), "a", "b", "0")


def test_a_document_has_changed_only_where_its_source_says_so():
    rewritten = hit(TEXT.replace("deep", "wide")[10:90], "d", start=10)
    hits = [rewritten, hit(TEXT[:34], "d", start=0), hit(OTHER[:40], "docs/ice.md")]
    locator = Locator(DOCUMENTS)
    assert locator.locate_all(hits) == locator.locate_all(hits)
    assert [verdict.kind for verdict in locator.locate_all(hits)] == ["elsewhere", "placed", "placed"]
    changed = Locator(DOCUMENTS, changed=lambda names: {"d"} & set(names)).locate_all(hits)
    assert [verdict.kind for verdict in changed] == ["elsewhere", "changed", "placed"]


TABLE = "| part | price |\n|---|---|\n| a | 1 |\n| b | 2 |\n| a | 1 |\nEnd."
ROW = TABLE.index("| b")


def verdict(text: str, metadata: dict[str, object], source: str = TABLE, **options) -> Verdict:
    stated = PlaceKeys("start", "end").stated(metadata, text)
    return Locator({"t.md": Document("t.md", source)}, **options).locate(Hit(text, names=("t.md",), stated=stated))


class OneOf:
    """A number of protobuf's, whose fields all have values."""

    number_value, string_value = 0.0, ""

    def __init__(self, kind: str | None, value: object = 0) -> None:
        self.kind = kind
        setattr(self, kind or "null_value", value)

    def WhichOneof(self, name: str) -> str | None:
        return self.kind


CASTS = [int, float, str, np.int64, np.float32, Decimal, lambda n: f"{n}.0", lambda n: np.array(n), lambda n: [n]]
CASTS += [
    lambda n: (n,),
    lambda n: str(n).encode(),
    lambda n: OneOf("number_value", float(n)),
    lambda n: OneOf("string_value", str(n)),
]


@pytest.mark.parametrize("cast", CASTS)
def test_stores_may_write_whole_numbers_in_any_type(cast):
    second = TABLE.rindex("| a | 1 |")
    metadata = {"start": cast(second), "end": cast(second + 9)}
    assert verdict("| a | 1 |", metadata).piece.spans == (Span(second, second + 9),)
    assert verdict("| a | 1 |", {"start": cast(second)}).kind == "placed"


@pytest.mark.parametrize(
    "value", ["chapter 1", 44.5, float("nan"), [4, 5], {"a": 1}, True, "9" * 5000, "1e30", b"\xb2", 2**70, OneOf(None)]
)
def test_a_place_that_cannot_be_read_is_said(value):
    found = verdict("| a | 1 |", {"start": value})
    assert (found.kind, found.reason) == ("ambiguous", "its stated place cannot be read")
    assert verdict("| b | 2 |", {"start": value}).piece.spans == (Span(ROW, ROW + 9),)


@pytest.mark.parametrize("spans", ["0-26,37-46", [[0, 26], [37.0, "46"]], "[[0, 26], [37, 46]]", None])
def test_several_spans_are_text_or_a_list_or_lost(spans):
    assert ROW == 37
    metadata = {"start": 0, "end": 46.0, "spans": spans}
    found = verdict("| part | price |\n|---|---|\n| b | 2 |", metadata)
    assert (found.kind, found.reason) == ("placed", "")
    assert found.piece.spans in ((Span(0, 26), Span(37, 46)), (Span(0, 27), Span(37, 46)))


@pytest.mark.parametrize(
    ("text", "source", "place", "expected"),
    [
        ("a b", "a-x b", (0, 5), [(0, 1), (4, 5)]),
        ("h\n2", "xx h\n1\n2 yy", (3, 8), [(3, 4), (7, 8)]),
        ("h\n2", "h\n2\n1\n2", (0, 7), [(0, 1), (6, 7)]),
        ("teapot", "tea</b>pot", (0, 10), [(0, 3), (7, 10)]),
        ("b", "a b", (0, 3), []),
        ("a c", "a b", (0, 3), []),
    ],
)
def test_a_text_in_two_pieces_fills_the_ends_of_its_place(text, source, place, expected):
    found = spans_between(source, text, Span(*place))
    assert [(span.start, span.end) for span in found] == expected


HEADER = TABLE[:26]


@pytest.mark.parametrize(
    ("text", "source", "expected"),
    [
        (f"{HEADER}\n| b | 2 |", TABLE, [(0, 26), (37, 46)]),
        (f"{HEADER}\n| b | 2 |\n| a | 1 |", TABLE, [(0, 26), (37, 56)]),
        (f"{HEADER}\n| b | 2 |", f"{HEADER}\n| c | 3 |\n\n{TABLE}", [(38, 64), (75, 84)]),
        ("a,b\n5,6", "a,b\n1,2\n3,4\n5,6", [(0, 3), (12, 15)]),
        ("a\n" * 4 + "c", "a\n" * 4 + "b\nc", [(0, 7), (10, 11)]),
        ("a\n" * 5 + "c", "a\n" * 5 + "b\nc", []),
        ("a,b\n5,6", "a,b\n1,2\n\n5,6", []),
        ("a,b\n5,6", "a,b\n1,2\n5,6\n5,6", []),
        ("a,b\n5,6", "5,6\na,b\n1,2", []),
        ("\n5,6", "a,b 5,6", [(4, 7)]),
    ],
)
def test_rows_stand_below_the_header_that_a_splitter_repeats(text, source, expected):
    found = verdict(text, {}, source)
    assert [(span.start, span.end) for span in found.piece.spans] == expected
    assert found.kind == ("placed" if expected else "elsewhere")


def test_the_place_of_rows_alone_is_right_for_rows_below_a_repeated_header():
    text = f"{HEADER}\n| b | 2 |"
    for start, reason in ((37, ""), (27, "another text stands at its stated place")):
        found = verdict(text, {"start": start, "end": start + 9})
        assert (found.piece.spans, found.reason) == ((Span(0, 26), Span(37, 46)), reason)


def test_a_splitter_that_searched_may_mean_another_occurrence():
    stated = StatedPlace((Span(27, 36),), searched=True)
    found = Locator({"t.md": Document("t.md", TABLE)}).locate(Hit("| a | 1 |", names=("t.md",), stated=stated))
    assert (found.kind, found.piece.spans, found.piece.certainty) == ("ambiguous", (Span(27, 36),), 0.5)
    once = Hit("| b | 2 |", names=("t.md",), stated=StatedPlace((Span(ROW, ROW + 9),), searched=True))
    derived = Hit("| a | 1 |", names=("t.md",), stated=stated, derived=True)
    unstated = Hit("| a | 1 |", names=("t.md",), stated=StatedPlace((), searched=True))
    verdicts = [Locator({"t.md": Document("t.md", TABLE)}).locate(each) for each in (once, derived, unstated)]
    assert [each.reason for each in verdicts] == ["", "", "its text stands several times"]


def test_occurrences_that_overlap_count():
    stated = StatedPlace((Span(0, 5),), searched=True)
    found = Locator({"t.md": Document("t.md", "ab ab ab")}).locate(Hit("ab ab", names=("t.md",), stated=stated))
    assert (found.kind, found.piece.certainty) == ("ambiguous", 0.5)


def test_a_name_that_all_hits_share_is_none_where_their_texts_are_in_several_documents():
    texts = [TEXT[:34], OTHER[:40]]
    expected = [("d", (0, 34)), ("docs/ice.md", (0, 40))]
    assert placed(*(hit(text, "/data/store.lance", start=0) for text in texts)) == expected
    assert placed(*(hit(text, "/data/d", start=0) for text in texts)) == [expected[0], ("", None)]
    alike = [hit(text, "/data/tea.md") for text in (TEXT[:34], TEXT[35:66])]
    assert placed(*alike) == [("", None)] * 2  # another file, with the same text


@given(hard_text(), st.data())
def test_every_piece_of_a_document_is_found_in_it_at_its_own_text(text, data):
    start = data.draw(st.integers(0, max(0, len(text) - 1)))
    piece = text[start : start + data.draw(st.integers(1, 40))]
    documents = {"a": Document("a", text), "b": Document("b", "-")}
    named = hit(piece, "a", start=start) if piece else hit("")
    found = Locator(documents).locate(named).piece
    if piece.strip():
        assert "".join(span.slice(text) for span in found.spans) == piece
    else:
        assert not found.spans
