"""What the report's viewer carries: every chunk and answer, the documents or honest windows of them, in bounds."""

from __future__ import annotations

import base64
import json
import zlib

import numpy as np
import pytest
from chunkcore import Benchmark, Document, Evidence, Query, Retrieved, Run, Span
from chunkcore.plain import page_text
from chunkcore.report.viewer import MATCHES, Pack, Place, answers, excerpts, viewer
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.report_data import NASTY, study
from tests.strategies import hard_text


def opened(pack: Pack):
    assert not set(pack.text) & set("<>&\"'")
    return json.loads(zlib.decompress(base64.b64decode(pack.text)))


def carried(found) -> dict[int, list[tuple[int, str]]]:
    """Of each listed document, the start and text of each part, as the page's script reads them."""
    rows = [opened(pack) for pack in found.packs]
    return {
        number: list(zip(row[::2], row[1::2], strict=True)) for number, row in zip(found.numbers, rows, strict=True)
    }


def noise(size: int, seed: int = 0) -> str:
    """Text that hardly packs."""
    return "".join(map(chr, np.random.default_rng(seed).integers(0x4E00, 0x9FFF, size)))


@given(st.lists(hard_text() | st.text(max_size=300), min_size=1, max_size=5))
def test_documents_that_fit_are_carried_whole(texts):
    found = excerpts([Document(f"d{number}", text) for number, text in enumerate(texts)], [])
    assert found.note == ""
    for number, parts in carried(found).items():
        assert parts == [(0, page_text(texts[number]))]


@settings(max_examples=25)
@given(st.data())
def test_of_large_documents_windows_are_carried_that_hold_all_evidence(data):
    texts = [noise(20_000, seed) for seed in range(3)]
    starts = st.tuples(st.integers(0, 2), st.integers(0, 19_000), st.integers(1, 300), st.integers(0, 12))
    drawn = data.draw(st.lists(starts, min_size=1, max_size=12))
    places = [Place(number, start, start + size, rank) for number, start, size, rank in drawn]
    found = excerpts([Document(f"d{number}", text) for number, text in enumerate(texts)], places, room=120_000)
    assert sum(len(pack.text) for pack in found.packs) <= 120_000
    assert "too large for one page" in found.note
    kept = carried(found)
    assert sorted(kept) == sorted({place.document for place in places})
    for number, parts in kept.items():
        assert all(text == texts[number][start : start + len(text)] for start, text in parts)
    for place in places:
        if place.rank == 0:
            parts = kept[place.document]
            assert any(start <= place.start and place.end <= start + len(text) for start, text in parts)


@pytest.mark.parametrize("room", [300, 3_000, 30_000, 300_000])
def test_text_that_does_not_pack_stays_within_its_room_and_the_note_says_what_is_missing(room):
    texts = [noise(200_000, seed) for seed in range(4)]
    places = [Place(number, start, start + 900) for number in range(4) for start in range(0, 199_000, 4_000)]
    found = excerpts([Document(f"d{number}", text) for number, text in enumerate(texts)], places, room)
    assert sum(len(pack.text) for pack in found.packs) <= room
    assert "evidence" in found.note or "too large" in found.note


def test_evidence_goes_before_what_was_retrieved():
    text = noise(100_000)
    evidence = [Place(0, start, start + 300) for start in (5_000, 50_000, 90_000)]
    retrieved = [Place(0, start, start + 900, 1 + start % 3) for start in range(0, 99_000, 1_000)]
    found = excerpts([Document("d", text)], [*retrieved, *evidence], room=30_000)
    assert "retrieved" not in found.note
    (parts,) = carried(found).values()
    assert [start for start, _ in parts] == [4_500, 49_500, 89_500]
    assert {len(text) for _, text in parts} == {1_300}


def decoded(pack: Pack) -> tuple[list[tuple[int, int, list[tuple[int, int]], str]], list[list[tuple]]]:
    """Pieces (document, number, spans, text), and each question's (piece, score, how, sure)."""
    data = opened(pack)
    pieces = [
        (document, number, [(start, start + length) for start, length in zip(flat[::2], flat[1::2], strict=True)], text)
        for document, number, flat, text in data["pieces"]
    ]
    return pieces, [[tuple(row[:4]) for row in rows] for _, rows in data["answers"]]


TEXT = "The valve is red. The pump is blue. The lid is shut."
DOCUMENTS = [Document("a", TEXT), Document("b", TEXT.upper())]
QUERIES = [Query("q1", "Which?", (Evidence("a", Span(0, 17)),)), Query("q2", "What?", (Evidence("b", Span(18, 35)),))]
BENCHMARK = Benchmark("toy", DOCUMENTS, QUERIES)
NUMBERS = {"a": 0, "b": 1}
spans = st.tuples(st.integers(0, 40), st.integers(1, 11)).map(lambda each: Span(each[0], sum(each)))
pieces = st.builds(
    Retrieved, st.sampled_from("ab"), st.lists(spans, min_size=1, max_size=3).map(tuple), st.floats(-5, 5)
)


@given(st.lists(pieces, max_size=8), st.lists(pieces, max_size=8), st.lists(pieces, max_size=8))
def test_every_chunk_and_answer_arrives(pool, first, second):
    run = Run("x", {"q1": first, "q2": second}, pool)
    (pack,) = answers(BENCHMARK, [run], NUMBERS).packs
    shown, hits = decoded(pack)
    for at, piece in enumerate(pool):
        assert shown[at][0] == NUMBERS[piece.document_id]
        assert shown[at][2] == [(span.start, span.end) for span in piece.spans]
        assert shown[at][1] == sum(each.document_id == piece.document_id for each in pool[: at + 1])
    for found, given_ in zip(hits, (first, second), strict=True):
        assert len(found) == len(given_)
        for (number, score, how, sure), piece in zip(found, given_, strict=True):
            assert shown[number][0] == NUMBERS[piece.document_id]
            assert shown[number][2] == [(span.start, span.end) for span in piece.spans]
            assert score == pytest.approx(piece.score, rel=1e-3)
            assert (how, sure) == (0, 100)


def test_how_a_piece_was_located_and_what_was_not_located_arrive():
    run = Run(
        "x",
        {
            "q2": [
                Retrieved("a", (Span(0, 17),), 0.5, "the  valve is red", match="fuzzy", certainty=0.874),
                Retrieved("", (), 0.4, "No such text\x00 " * 60, match="unlocated", certainty=0.0),
                Retrieved("elsewhere", (Span(0, 5),), 0.3, "Words", match="spans"),
            ]
        },
    )
    shown, (none, hits) = decoded(answers(BENCHMARK, [run], NUMBERS).packs[0])
    assert none == []
    assert [(MATCHES[how], sure) for _, _, how, sure in hits] == [("fuzzy", 87), ("unlocated", 0), ("spans", 100)]
    assert [score for _, score, _, _ in hits] == [0.5, 0.4, 0.3]
    assert shown[0] == (0, 0, [(0, 17)], "the  valve is red"), "what came back differs from what stands there"
    assert shown[1][0] == -1
    assert shown[1][3].startswith("No such text␀ No")
    assert shown[1][3].endswith(" […]")
    assert shown[2] == (-1, 0, [], "Words"), "a document that is not listed is told by its text"


def test_with_too_many_chunks_only_those_that_were_retrieved_are_drawn(monkeypatch):
    pool = [Retrieved("a", (Span(start, start + 1 + start % 7),)) for start in range(40)]
    run = Run("x", {"q1": [pool[7], pool[30]], "q2": pool[:20]}, pool)
    whole = answers(BENCHMARK, [run], NUMBERS)
    assert whole.note == ""
    less = answers(BENCHMARK, [run], NUMBERS, room=len(whole.packs[0].text) - 1)
    assert "only retrieved ones are drawn" in less.note
    shown, (first, _) = decoded(less.packs[0])
    assert [shown[number][2] for number, *_ in first] == [[(7, 8)], [(30, 33)]]
    assert not opened(less.packs[0])["pool"]
    monkeypatch.setattr("chunkcore.report.viewer.POOL", 39)
    assert not opened(answers(BENCHMARK, [run], NUMBERS).packs[0])["pool"], "a browser draws no more"
    none = answers(BENCHMARK, [run, None], NUMBERS, room=10)
    assert none.packs == [None, None]
    assert "none is shown" in none.note


def test_the_viewer_lists_documents_and_systems_in_the_pages_order():
    shown = viewer(study(names=NASTY, texts=NASTY))
    made = study(names=NASTY, texts=NASTY)
    assert shown.index is not None
    assert shown.index["ids"] == [document.id for document in made.benchmark.documents]
    assert shown.index["sizes"] == [len(document.text) for document in made.benchmark.documents]
    packs = {pack.name: pack for pack in shown.packs}
    for name, report in zip(shown.index["answers"], made.reports, strict=True):
        _, hits = decoded(packs[name])
        assert [score for _, score, _, _ in hits[3][:10]] == pytest.approx(
            [piece.score for piece in report.run.results["q3"][:10]], rel=1e-3
        )
