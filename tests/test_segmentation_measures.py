"""Boundaries found, missed and moved: hand-computed cases, and the field's own programs where they are installed."""

from __future__ import annotations

import doctest
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chunkcore.chunkers import FixedSentences, FixedToken, Recursive
from chunkcore.cli import main
from chunkcore.errors import DataError
from chunkcore.evaluation.segmentation import (
    SEGMENT_MEASURES,
    chunk_boundaries,
    load_segmented,
    pk,
    score_baselines,
    score_segments,
    window_diff,
)
from chunkcore.text import Chunk, Document, Span
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import hard_text

PAGE = Path(__file__).resolve().parents[1] / "docs" / "guides" / "segments.md"


def test_the_examples_of_the_page_hold() -> None:
    found = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert found.attempted >= 3
    assert found.failed == 0


@pytest.mark.parametrize("wrong", [0, 40, -1])
def test_a_boundary_outside_the_text_is_told(wrong):
    with pytest.raises(DataError, match=f"begin at 1 to 39 .*got {wrong}"):
        pk([10], [wrong], 40)
    with pytest.raises(DataError, match="window is at least 1"):
        window_diff([10], [10], 40, 0)


# --- The field's own programs -----------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.data(), st.integers(3, 40))
def test_pk_and_window_diff_are_nltks(data, count):
    """nltk reads a string with 1 where a boundary follows a unit.

    After the last unit no boundary can be: with a place for it, nltk would count a window more than the papers do.
    """
    nltk = pytest.importorskip("nltk.metrics.segmentation", reason="nltk is not installed")
    starts = st.sets(st.integers(1, count - 1))
    reference, hypothesis = data.draw(starts), data.draw(starts)
    window = data.draw(st.integers(1, count - 1))
    one, other = ("".join("01"[place in each] for place in range(1, count)) for each in (reference, hypothesis))
    assert pk(reference, hypothesis, count, window) == pytest.approx(nltk.pk(one, other, k=window))
    assert window_diff(reference, hypothesis, count, window) == pytest.approx(nltk.windowdiff(one, other, window))


# --- Strategies against gold boundaries -------------------------------------------------------------------------

STORY = "The fox naps. The fox wakes. Boats sail far. Boats come home. Rain falls."


def story(boundaries: list[int], text: str = STORY, name: str = "story", **metadata: Any) -> Document:
    return Document(name, text, {"boundaries": boundaries, **metadata})


def pieces(*groups: tuple[tuple[int, int], ...]) -> list[Chunk]:
    return [Chunk("d", i, tuple(Span(*each) for each in spans), "", 0) for i, spans in enumerate(groups)]


def test_a_boundary_is_where_another_chunk_goes_on():
    assert chunk_boundaries(pieces(((0, 10),), ((10, 20),))) == [10]
    assert chunk_boundaries(pieces(((0, 12),), ((8, 20),))) == [12]  # an overlap belongs to the first
    assert chunk_boundaries(pieces(((0, 5), (10, 15)), ((5, 10),))) == [5, 10]
    assert chunk_boundaries(pieces(((0, 5), (7, 9)), ((12, 14),))) == [12]  # a gap in a chunk is none
    assert chunk_boundaries(pieces(((0, 9),), ((2, 5),), ((0, 9),))) == []  # chunks in a chunk
    assert chunk_boundaries([]) == []


def test_a_strategy_that_cuts_at_the_topics_has_no_error():
    gold = story([STORY.index("Boats sail"), STORY.index("Rain")])
    right, half = score_segments([gold], [FixedSentences(sentences=2), FixedSentences(sentences=4)])
    assert right.segments.tolist() == [3]
    assert [right.mean(each) for each in SEGMENT_MEASURES] == [0, 0]
    assert half.segments.tolist() == [2]
    assert half.mean("Pk") > 0


def test_a_cut_inside_a_sentence_counts_for_the_nearer_end():
    text = "One two three four. Five six seven eight. Nine ten."
    gold = story([text.index("Five")], text)
    early = score_segments([gold], [FixedToken(size=16, counter="characters")])[0]  # 16, 32, 48
    assert early.segments.tolist() == [3]  # at Five, at Nine twice


def test_baselines_know_how_long_segments_are():
    gold = [story([29, 62]), story([], "One. Two. Three. Four.", "other")]
    every, none = score_baselines(gold)
    assert every.name == "every 2 sentences"  # nine sentences in four segments
    assert every.segments.tolist() == [3, 2]
    assert none.segments.tolist() == [1, 1]
    assert none.scores["Pk"][1] == 0


def test_a_text_of_one_sentence_says_nothing():
    report = score_segments([story([], "One."), story([14], name="b")], [FixedSentences(sentences=1)])[0]
    assert np.isnan(report.scores["Pk"]).tolist() == [True, False]
    assert report.intervals(resamples=100)["Pk"] == (0, 1), "nor does a single other one"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: score_segments([], []), DataError, "no texts"),
        (lambda: score_segments([story([]), story([])], []), DataError, "one id"),
        (lambda: score_segments([Document("d", STORY)], []), DataError, "document 'd': .*got None"),
        (lambda: score_baselines([story([5, 3])]), DataError, r"ascending offsets .*got \[5, 3\]"),
    ],
)
def test_what_cannot_be_scored_is_told(make, error, message):
    with pytest.raises(error, match=message):
        make()


@settings(max_examples=40)
@given(hard_text(), st.data())
def test_any_text_and_any_cuts_give_scores_from_0_to_1(text, data):
    size = data.draw(st.integers(1, 30))
    gold = sorted(data.draw(st.sets(st.integers(0, max(0, len(text) - 1)), max_size=4))) if text else []
    chunker = Recursive(size=max(size, 8), counter="characters")
    report = score_segments([story(gold, text)], [chunker])[0]
    for values in report.scores.values():
        assert np.isnan(values[0]) or 0 <= values[0] <= 1


def test_texts_with_boundaries_are_read_from_lines(tmp_path):
    file = tmp_path / "documents.jsonl"
    file.write_text('{"id": "a", "text": "One. Two.", "boundaries": [5]}\n')
    assert load_segmented(tmp_path) == load_segmented(file) == [Document("a", "One. Two.", {"boundaries": [5]})]


# --- The command ------------------------------------------------------------------------------------------------


@pytest.fixture
def labelled(tmp_path, fake) -> Path:
    path = tmp_path / "labelled.jsonl"
    rows = [{"id": "a", "text": STORY, "boundaries": [29, 62]}, {"id": "b", "text": STORY * 2, "boundaries": [73]}]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_the_command_scores_strategies_and_blind_cuts(labelled, tmp_path, capsys):
    output = tmp_path / "scores.jsonl"
    arguments = ["segments", "score", "--texts", str(labelled), "-s", "fixed_sentences:sentences=2", "-s", "breakpoint"]
    assert main([*arguments, "--output", str(output)]) == 0
    printed = capsys.readouterr().out
    assert "2 texts of 2.5 segments" in printed
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    names = list(dict.fromkeys(row["chunker"] for row in rows))
    assert names == ["fixed_sentences:sentences=2", "breakpoint", "every 3 sentences", "no boundary"]
    first = rows[0]
    assert (first["text"], first["segments"], first["Pk"]) == ("a", 3, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["-s", "nonsense"], "nonsense"), (["-s", "recursive", "-s", "recursive"], "are the same")],
)
def test_bad_options_of_the_command_are_one_sentence(labelled, capsys, arguments, message):
    assert main(["segments", "score", "--texts", str(labelled), *arguments]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1


@pytest.mark.parametrize("start", [1.5, "1", math.nan])
def test_segments_begin_at_whole_numbers(start):
    with pytest.raises(DataError, match="segments begin at whole numbers"):
        pk((start,), (1,), 5, 2)
