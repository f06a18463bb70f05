"""Runs as files: what was written is read back, what others write is placed, and bad lines are told by line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from chunkcore import Benchmark, DataError, Document, Evidence, Query, Retrieved, Run, Span, get_chunker, run_experiment
from chunkcore.evaluation.run_files import read_run, write_run
from chunkcore.evaluation.scoring import Scorer, score
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes import FakeEmbedder

FOX = "The quick fox naps. The dog barks at noon."
RAIN = "Rain falls on the harbour. Boats leave."


@pytest.fixture(scope="module")
def benchmark() -> Benchmark:
    return Benchmark(
        "tales",
        [Document("fox.txt", FOX), Document("rain.txt", RAIN)],
        [
            Query("q1", "Who naps?", (Evidence("fox.txt", Span(4, 18)),)),
            Query("q2", "What falls?", (Evidence("rain.txt", Span(0, 10)),)),
        ],
    )


def written(folder: Path, name: str, *lines: Any) -> Path:
    path = folder / name
    path.write_text("".join(f"{x if isinstance(x, str) else json.dumps(x)}\n" for x in lines), encoding="utf-8")
    return path


def test_a_run_scores_the_same_when_it_was_written_and_read(benchmark: Benchmark, tmp_path: Path) -> None:
    chunker = get_chunker("recursive:size=4,counter=words")
    for report in run_experiment(
        Scorer(benchmark, counter="words"), [chunker], FakeEmbedder(), retrievers=["dense", "bm25", "hybrid"]
    ):
        assert report.run is not None
        again = read_run(write_run(report.run, tmp_path / "run.jsonl"), benchmark)
        assert again.name == "run"
        scores = score(again, benchmark, report.scores, counter="words")
        for measure in report.scores:
            if not measure.needs_pool:
                assert scores.values(measure).tolist() == report.values(measure).tolist()
        assert scores.found["1000tok"] == report.found["1000tok"]


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="no pipes by name")
def test_a_run_comes_through_a_pipe(benchmark: Benchmark, tmp_path: Path) -> None:
    run = Run("run", {"q1": [Retrieved("fox.txt", (Span(4, 18),), 1.0)]})
    end, begin = os.pipe()
    os.write(begin, write_run(run, tmp_path / "run.jsonl").read_bytes())
    os.close(begin)
    assert read_run(f"/dev/fd/{end}", benchmark).results["q1"][0].spans == (Span(4, 18),)
    os.close(end)


names, scores = st.sampled_from(["fox.txt", "rain.txt"]), st.floats(allow_nan=False, allow_infinity=True)
pieces = st.lists(st.tuples(names, st.integers(0, 38), scores), max_size=5, unique_by=lambda each: each[:2])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.dictionaries(st.sampled_from(["q1", "q2"]), pieces, min_size=1))
def test_any_order_and_any_scores_keep_their_order(benchmark, tmp_path, results):
    made = {
        query: [Retrieved(doc, (Span(at, at + 1),), score, "x", id=f"{doc}:{at}") for doc, at, score in own]
        for query, own in results.items()
    }
    again = read_run(write_run(Run("mine", made), tmp_path / "r.jsonl"), benchmark)
    for query, own in made.items():
        assert [piece.id for piece in again.results.get(query, ())] == [piece.id for piece in own]
        scores = [piece.score for piece in again.results.get(query, ())]
        assert scores == sorted(scores, reverse=True)


def test_lines_name_places_texts_or_documents(benchmark: Benchmark, tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "mine.jsonl",
        {"query_id": "q1", "document_id": "fox.txt", "spans": [[4, 9], [10, 13]], "score": 0.5},
        {"query_id": "q1", "text": "the  QUICK fox", "score": 0.5},
        {"query_id": "q1", "text": "nothing like it stands anywhere at all"},
        {"query_id": "q2", "results": [{"document_id": "rain.txt", "rank": 1}, {"text": "Rain falls", "rank": 2}]},
    )
    run = read_run(path, benchmark)
    spans, text, nowhere = run.results["q1"]
    assert spans == Retrieved("fox.txt", (Span(4, 9), Span(10, 13)), 0.5)
    assert (text.document_id, text.spans) == ("fox.txt", (Span(0, 13),))
    assert (nowhere.spans, nowhere.match) == ((), "unlocated")
    assert [piece.spans for piece in run.results["q2"]] == [(Span(0, len(RAIN)),), (Span(0, 10),)]


def test_a_query_without_hits_is_a_query_that_was_asked(benchmark: Benchmark, tmp_path: Path) -> None:
    path = written(tmp_path, "r.jsonl", {"query_id": "q1", "results": []})
    assert score(read_run(path, benchmark), benchmark).unanswered == ("q2",)


JSON = [
    ({"query_id": [1], "text": "a"}, '"query_id" that is a string or a whole number, got [1]'),
    ({"query_id": "q1", "text": ["a"]}, "\"text\" is a string, got ['a']"),
    ({"query_id": "q1"}, 'a hit has "document_id" and "spans", or a "text"'),
    ({"query_id": "q1", "text": "a", "score": "high"}, "the score is a finite number, got 'high'"),
    ('{"query_id": "q1", "text": "a", "score": NaN}', "the score is a finite number, got nan"),
    ({"query_id": "q1", "results": ["fox"]}, "a hit is a JSON object, got str"),
    ({"query_id": "q1", "document_id": "no.txt", "spans": [[0, 4]]}, "the benchmark 'tales' has no document 'no.txt'"),
    ({"query_id": "q1", "document_id": "fox.txt", "spans": "4", "text": "a"}, "spans are pairs of offsets"),
    ({"query_id": "q1", "spans": [[0, 4]], "text": "a"}, 'no "document_id" that says what they are of'),
    ({"query_id": "q1", "document_id": "fox.txt", "spans": [[0, 999]]}, "ends at 999, its document 'fox.txt' at 42"),
    ({"query_id": "q1", "document_id": "fox.txt", "spans": [[9, 4]]}, "spans are pairs of offsets"),
    ({"query_id": "q2", "document_id": "rain.txt", "spans": [[0, 4]]}, "has this hit already, in line 1"),
    ({"query_id": 9, "text": "a"}, "the query '9' is none of the 2 of 'tales', such as 'q1'"),
    ({"query_id": "q2", "text": "a", "rank": 1}, "rank 1 of the query 'q2' comes after rank 1"),
    ({"query_id": "q2", "text": "a", "score": 0.9}, "the score 0.9 of the query 'q2' comes after 0.8, which is lower"),
    ("{", "line 2: not JSON"),
]


@pytest.mark.parametrize(("line", "message"), JSON)
def test_a_bad_line_of_json_is_told_by_file_and_line(benchmark, tmp_path, line, message):
    good = {"query_id": "q2", "document_id": "rain.txt", "spans": [[0, 4]], "rank": 1, "score": 0.8}
    path = written(tmp_path, "bad.jsonl", good, line)
    with pytest.raises(DataError) as caught:
        read_run(path, benchmark)
    assert message in str(caught.value)
    assert f"{path}, line 2" in str(caught.value)


def test_files_without_hits_are_refused(benchmark: Benchmark, tmp_path: Path) -> None:
    for text in ("", "\n"):
        with pytest.raises(DataError, match=r"is empty|holds no hits"):
            read_run(written(tmp_path, "a.jsonl", *text.splitlines()), benchmark)
    with pytest.raises(DataError, match="cannot be read"):
        read_run(tmp_path / "none.jsonl", benchmark)
