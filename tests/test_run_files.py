"""Runs as files: what was written is read back, what others write is placed, and bad lines are told by line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chunkcore.chunkers import get_chunker
from chunkcore.errors import DataError
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Evidence, Query
from chunkcore.evaluation.run_files import read_pool, read_run, write_pool, write_run
from chunkcore.evaluation.scoring import Scorer, score
from chunkcore.run import Retrieved, Run
from chunkcore.study.experiment import run_experiment
from chunkcore.text import Document, Span
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


def chunk_line(name: str, document: str, start: int, end: int, **more: Any) -> dict[str, Any]:
    text = {"fox.txt": FOX, "rain.txt": RAIN}.get(document, "")[start:end]
    return {"id": name, "document_id": document, "spans": [[start, end]], "text": text, **more}


CHUNKS = [chunk_line("c0", "fox.txt", 0, 19), chunk_line("c1", "fox.txt", 20, 42), chunk_line("c2", "rain.txt", 0, 26)]


def test_a_run_scores_the_same_when_it_was_written_and_read(benchmark: Benchmark, tmp_path: Path) -> None:
    chunker = get_chunker("recursive:size=4,counter=words")
    for report in run_experiment(
        Scorer(benchmark, counter="words"), [chunker], FakeEmbedder(), retrievers=["dense", "bm25", "hybrid"]
    ):
        assert report.run is not None
        pool = write_pool(report.run.pool or (), tmp_path / "chunks.jsonl", benchmark)
        again = read_run(write_run(report.run, tmp_path / "run.jsonl"), benchmark, chunks=pool)
        assert again.name == "run"
        scores = score(again, benchmark, report.scores, counter="words")
        for measure in report.scores:
            assert scores.values(measure).tolist() == report.values(measure).tolist()
        assert scores.found == report.found


pieces = st.lists(
    st.tuples(
        st.sampled_from(["fox.txt", "rain.txt"]), st.integers(0, 38), st.floats(allow_nan=False, allow_infinity=True)
    ),
    max_size=5,
    unique_by=lambda each: each[:2],
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.dictionaries(st.sampled_from(["q1", "q2"]), pieces, min_size=1))
def test_any_order_and_any_scores_keep_their_order(
    benchmark: Benchmark, tmp_path: Path, results: dict[str, list[tuple[str, int, float]]]
) -> None:
    made = {
        query: [Retrieved(doc, (Span(at, at + 1),), score, "x", id=f"{doc}:{at}") for doc, at, score in own]
        for query, own in results.items()
    }
    pool = list({piece.id: piece for own in made.values() for piece in own}.values())
    path = write_run(Run("mine", made, pool), tmp_path / "r.jsonl")
    chunks = written(
        tmp_path, "c.jsonl", *(chunk_line(p.id, p.document_id, p.spans[0].start, p.spans[0].end) for p in pool)
    )
    again = read_run(path, benchmark, chunks=chunks if pool else None)
    for query, own in made.items():
        assert [piece.id for piece in again.results.get(query, ())] == [piece.id for piece in own]
        scores = [piece.score for piece in again.results.get(query, ())]
        assert scores == sorted(scores, reverse=True)


def test_treks_columns_name_chunks(benchmark: Benchmark, tmp_path: Path) -> None:
    chunks = written(tmp_path, "chunks.jsonl", *CHUNKS)
    path = written(tmp_path, "mine.trec", "q1 Q0 c1 1 0.9 tag", "", "q2\tQ0\tc2\t0\t3e-1\ttag\r", "q1 Q0 c0 2 0.9 tag")
    run = read_run(path, benchmark, chunks=chunks)
    assert run.name == "mine"
    assert {query: [piece.id for piece in own] for query, own in run.results.items()} == {
        "q1": ["c1", "c0"],
        "q2": ["c2"],
    }
    assert len(run.pool or ()) == 3
    report = score(run, benchmark, ["Recall@1[character]", "Recall@2[character]", "PrecisionOmega[character]"])
    assert report.values("Recall@1[character]").tolist() == [0, 1]
    assert report.values("Recall@2[character]").tolist() == [1, 1]


def test_a_run_of_documents_is_of_whole_documents(benchmark: Benchmark, tmp_path: Path) -> None:
    path = written(tmp_path, "docs.txt", "q1 Q0 rain.txt 1 2 t", "q1 Q0 fox.txt 2 1 t", "q2 Q0 rain.txt 1 1 t")
    run = read_run(path, benchmark, name="by document")
    assert run.name == "by document"
    assert run.pool is None
    report = score(run, benchmark, ["MRR@5[document]", "Recall@1[document]", "Recall@5[character]"])
    assert report.values("MRR@5[document]").tolist() == [0.5, 1]
    assert report.values("Recall@1[document]").tolist() == [0, 1]
    assert report.values("Recall@5[character]").tolist() == [1, 1]


def test_json_lines_name_places_texts_chunks_or_documents(benchmark: Benchmark, tmp_path: Path) -> None:
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
    report = score(read_run(path, benchmark), benchmark)
    assert report.unanswered == ("q2",)


TREC = {
    "q1 Q0 c0 1 0.9": "line 2: expected TREC's six columns, query_id Q0 id rank score tag, got 5",
    '{"query_id": "q1"}': "a file of JSON lines is named .jsonl",
    "q1 Q0 c0 1 nan t": "line 2: the score is a finite number, got 'nan'",
    "q9 Q0 c0 1 1 t": "line 2: the query 'q9' is none of the 2 of 'tales', such as 'q1'",
    "q1 Q0 c9 1 1 t": "line 2: 'c9' is none of the 3 chunks",
    "q2 Q0 c2 2 0.5 t": "line 2: the query 'q2' has this hit already, in line 1",
    "q2 Q0 c1 1 0.5 t": "line 2: rank 1 of the query 'q2' comes after rank 1",
    "q2 Q0 c1 2 0.9 t": "line 2: the score 0.9 of the query 'q2' comes after 0.8, which is lower",
}


@pytest.mark.parametrize(("line", "message"), TREC.items())
def test_a_bad_line_of_columns_is_told_by_file_and_line(
    benchmark: Benchmark, tmp_path: Path, line: str, message: str
) -> None:
    chunks = written(tmp_path, "chunks.jsonl", *CHUNKS)
    path = written(tmp_path, "bad.trec", "q2 Q0 c2 1 0.8 t", line)
    with pytest.raises(DataError) as caught:
        read_run(path, benchmark, chunks=chunks)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


JSON = [
    ({"query_id": 1, "text": "a"}, '"query_id" that is a string, got 1'),
    ({"query_id": "q1"}, 'a hit has "document_id" and "spans", a "text", or the "id" of a chunk'),
    ({"query_id": "q1", "text": "a", "score": "high"}, "the score is a finite number, got 'high'"),
    ('{"query_id": "q1", "text": "a", "score": NaN}', "the score is a finite number, got nan"),
    ({"query_id": "q1", "results": ["fox"]}, "a hit is a JSON object, got str"),
    ({"query_id": "q1", "document_id": "no.txt", "spans": [[0, 4]]}, "'no.txt' is none of the 2 documents of 'tales'"),
    ({"query_id": "q1", "document_id": "fox.txt", "spans": "4", "text": "a"}, "spans are pairs of offsets"),
    ({"query_id": "q1", "spans": [[0, 4]], "text": "a"}, 'no "document_id" that says what they are of'),
    (
        {"query_id": "q1", "document_id": "fox.txt", "spans": [[0, 999]]},
        "a span ends at 999, its document 'fox.txt' at 42",
    ),
    ({"query_id": "q1", "document_id": "fox.txt", "spans": [[9, 4]]}, "spans are pairs of offsets"),
    ({"query_id": "q2", "document_id": "rain.txt", "spans": [[0, 4]]}, "has this hit already, in line 1"),
    ("{", "line 2: not JSON"),
]


@pytest.mark.parametrize(("line", "message"), JSON)
def test_a_bad_line_of_json_is_told_by_file_and_line(
    benchmark: Benchmark, tmp_path: Path, line: Any, message: str
) -> None:
    path = written(tmp_path, "bad.jsonl", {"query_id": "q2", "document_id": "rain.txt", "spans": [[0, 4]]}, line)
    with pytest.raises(DataError) as caught:
        read_run(path, benchmark)
    assert message in str(caught.value)
    assert f"{path}, line 2" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"document_id": "fox.txt"}, "expected a chunk with an id"),
        (CHUNKS[0], "a second chunk has the id 'c0'"),
        (chunk_line("c9", "no.txt", 0, 5), "of the document 'no.txt', which the benchmark does not have"),
        (chunk_line("c9", "fox.txt", 0, 99), "a span ends at 99"),
        ({**CHUNKS[1], "text": "The cat barks at noon."}, "the chunks were cut from another version"),
    ],
)
def test_a_bad_chunk_is_told_by_file_and_line(benchmark: Benchmark, tmp_path: Path, line: Any, message: str) -> None:
    path = written(tmp_path, "chunks.jsonl", CHUNKS[0], line)
    with pytest.raises(DataError) as caught:
        read_pool(path, benchmark)
    assert message in str(caught.value)
    assert f"{path}, line 2" in str(caught.value)


def test_files_without_hits_or_chunks_are_refused(benchmark: Benchmark, tmp_path: Path) -> None:
    for name, text in (("a.trec", ""), ("a.jsonl", ""), ("b.trec", "\n \n"), ("b.jsonl", "\n")):
        path = tmp_path / name
        path.write_text(text)
        with pytest.raises(DataError, match=r"is empty|holds no hits"):
            read_run(path, benchmark)
        with pytest.raises(DataError, match=r"is empty|holds no chunks"):
            read_pool(path, benchmark)
    (tmp_path / "c.trec").write_bytes("q1 Q0 caf\xe9 1 1 t\n".encode("latin-1"))
    with pytest.raises(DataError, match="not UTF-8"):
        read_run(tmp_path / "c.trec", benchmark)
    with pytest.raises(DataError, match="cannot be read"):
        read_run(tmp_path / "none.trec", benchmark)
