"""Stitched documents: every original stands whole in one of them, and every piece of evidence is what it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chunkcore import (
    Benchmark,
    DataError,
    Document,
    Evidence,
    Mark,
    OptionError,
    Query,
    Retrieved,
    Run,
    Span,
    load_benchmark,
    score,
)
from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.cli import main
from chunkcore.evaluation.benchmarks.benchmark import parts_of, sample_queries, stitch, whole_sentences, write_benchmark
from hypothesis import given
from hypothesis import strategies as st

SENTENCES = (
    "The fox naps.",
    "A dog barks at it!",
    "Why?",
    "狐は寝る。",
    "Name binding",
    "It is 3.5 °C.",
    "\ud800 ends.",
)


@st.composite
def benchmarks(draw: st.DrawFn) -> Benchmark:
    """Short documents of one to six sentences, and questions with evidence in one or several of them."""
    texts = draw(st.lists(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=6), min_size=1, max_size=12))
    documents = [
        Document(f"d{number}", " ".join(each), {"collection": f"c{number % 2}"} if number % 3 else {})
        for number, each in enumerate(texts)
    ]
    queries = []
    for number in range(draw(st.integers(0, 6))):
        evidence = []
        for _ in range(draw(st.integers(1, 3))):
            document = draw(st.sampled_from(documents))
            start = draw(st.integers(0, len(document.text) - 1))
            evidence.append(Evidence(document.id, Span(start, draw(st.integers(start + 1, len(document.text))))))
        queries.append(Query(f"q{number}", f"Question {number}?", tuple(evidence), "", {"document_id": "d0"}))
    return Benchmark("short", documents, queries)


def excerpts(benchmark: Benchmark) -> list[list[str]]:
    return [
        [each.span.slice(benchmark.document(each.document_id).text) for each in query.evidence]
        for query in benchmark.queries
    ]


@given(benchmarks(), st.integers(1, 20), st.integers(0, 3))
def test_every_original_stands_whole_and_every_evidence_text_is_what_it_was(
    short: Benchmark, sentences: int, seed: int
) -> None:
    long = stitch(short, sentences=sentences, seed=seed)
    found = {part.document_id: part.span.slice(each.text) for each in long.documents for part in parts_of(each)}
    assert found == {each.id: each.text for each in short.documents}
    assert sum(len(parts_of(each)) for each in long.documents) == len(short.documents)
    assert excerpts(long) == excerpts(short)
    for old, new in zip(short.queries, long.queries, strict=True):
        assert (new.id, new.text) == (old.id, old.text)
        origins = [
            next(
                part.document_id
                for part in parts_of(long.document(each.document_id))
                if part.span.start <= each.span.start and each.span.end <= part.span.end
            )
            for each in new.evidence
        ]
        assert origins == [each.document_id for each in old.evidence]


@given(short=benchmarks().filter(lambda each: bool(each.queries)))
def test_a_written_benchmark_is_read_as_it_was(short: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> None:
    long = stitch(short, sentences=6)
    folder = tmp_path_factory.mktemp("stitched")
    write_benchmark(long, folder)
    again = load_benchmark(folder)
    assert list(again.documents) == list(long.documents)
    assert again.problems == ()
    assert [(each.id, each.text, each.evidence, dict(each.metadata)) for each in again.queries] == [
        (each.id, each.text, each.evidence, dict(each.metadata)) for each in long.queries
    ]


def test_marks_metadata_and_the_questions_document_move_along() -> None:
    page = Document("a", "One page.", {"year": 1990}, (Mark("page", Span(0, 9), {"number": 1}),))
    asked = Query("q", "What?", (Evidence("a", Span(4, 8)),), "", {"document_id": "a", "kind": "what"})
    other = Document("b", "Two.", {}, (Mark("page", Span(0, 4)),))
    [long] = (benchmark := stitch(Benchmark("b", [page, other, Document("c", "")], [asked]))).documents
    assert {(mark.kind, mark.span.slice(long.text)) for mark in long.marks} == {("page", "One page."), ("page", "Two.")}
    assert sorted(part["id"] for part in long.metadata["parts"]) == ["a", "b"]  # c has no text
    assert next(part for part in long.metadata["parts"] if part["id"] == "a")["metadata"] == {"year": 1990}
    assert benchmark.queries[0].metadata == {"document_id": "stitched-1", "kind": "what"}


@pytest.mark.parametrize(
    "parts",
    [
        "all",
        [{"id": 1, "start": 0, "end": 2}],
        [{"id": "a", "start": 0, "end": 99}],
        [{"id": "a", "start": 0, "end": 4}, {"id": "b", "start": 3, "end": 6}],
        [{"id": "a", "start": 4, "end": 6}, {"id": "b", "start": 0, "end": 2}],
        [{"id": "a", "start": 0.5, "end": 2}],
    ],
)
def test_parts_that_are_none_are_told(parts: object) -> None:
    with pytest.raises(DataError, match=r"the parts of document 'x' are"):
        parts_of(Document("x", "One. Two.", {"parts": parts}))


def toy(*retrieved: tuple[str, list[tuple[int, int]]]) -> tuple[Benchmark, Run]:
    """Two stitched documents of three parts and one; the evidence stands in b and in d."""
    long = Document(
        "long",
        "aaaa\n\nbbbb\n\ncccc",
        {"parts": [{"id": "a", "start": 0, "end": 4}, {"id": "b", "start": 6, "end": 10}]}
        | {"parts": [{"id": name, "start": 6 * n, "end": 6 * n + 4} for n, name in enumerate("abc")]},
    )
    asked = Query("q", "?", (Evidence("long", Span(7, 9)), Evidence("d", Span(0, 2))))
    pieces = [Retrieved(name, tuple(Span(*each) for each in spans)) for name, spans in retrieved]
    return Benchmark("toy", [long, Document("d", "dddd")], [asked]), Run("mine", {"q": pieces})


@pytest.mark.parametrize(
    ("retrieved", "recall", "precision"),
    [
        ([("long", [(6, 10)])], 1 / 2, 1),  # b
        ([("long", [(3, 7)])], 1 / 2, 1 / 2),  # the end of a and the beginning of b
        ([("long", [(4, 10)])], 1 / 2, 1),  # the seam before b is no part of a
        ([("long", [(4, 6)])], 0, 0),  # nothing but a seam
        ([("long", [(0, 2), (12, 14)])], 0, 0),  # a and c, from one chunk of two spans
        ([("long", [(6, 8)]), ("long", [(8, 10)])], 1 / 2, 1),  # two chunks of b are one original
        ([("long", [(0, 16)]), ("d", [(0, 1)])], 1, 2 / 4),
    ],
)
def test_a_chunk_stands_for_the_originals_that_it_shares_a_character_with(
    retrieved: list[tuple[str, list[tuple[int, int]]]], recall: float, precision: float
) -> None:
    benchmark, run = toy(*retrieved)
    report = score(run, benchmark, ["Recall@5[part]", "Precision@5[part]", "F1@5[part]"])
    assert report.mean("Recall@5[part]") == pytest.approx(recall)
    assert report.mean("Precision@5[part]") == pytest.approx(precision)
    f1 = 2 * recall * precision / (recall + precision) if recall else 0
    assert report.mean("F1@5[part]") == pytest.approx(f1)


@given(benchmarks())
def test_widened_evidence_holds_what_it_was_and_whole_sentences(short: Benchmark) -> None:
    for old, new in zip(short.queries, whole_sentences(short).queries, strict=True):
        for before, after in zip(old.evidence, new.evidence, strict=True):
            assert after.span.start <= before.span.start
            assert before.span.end <= after.span.end
            for start, end in sentence_ranges(short.document(after.document_id).text).tolist():
                assert (
                    end <= after.span.start
                    or after.span.end <= start
                    or (after.span.start <= start and end <= after.span.end)
                )


def test_questions_are_drawn_once_in_their_order_by_the_seed() -> None:
    queries = [Query(f"q{n}", "?", (Evidence("d", Span(0, 1)),)) for n in range(50)]
    benchmark = Benchmark("b", [Document("d", "One.")], queries)
    drawn = [[each.id for each in sample_queries(benchmark, 10, seed=seed).queries] for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) == 10
    assert sorted(drawn[0], key=lambda each: int(each[1:])) == drawn[0]
    assert sample_queries(benchmark, 60) is benchmark
    with pytest.raises(OptionError, match="count is at least 1, got 0"):
        sample_queries(benchmark, 0)


@pytest.mark.parametrize(
    ("document", "metadata", "words"),
    [
        (Document("d", "One.", {"made": object()}), {}, "document 'd' has metadata that JSON cannot hold"),
        (Document("d", "One.", {"score": float("nan")}), {}, "document 'd' has metadata"),
        (Document("d", "O\ud83d\ude00."), {}, "document 'd' has a split character .* at 1"),
        (Document("d", "One."), {"evidence": 3}, "query 'q' has the metadata 'evidence'"),
    ],
)
def test_what_the_format_cannot_hold_is_told_and_nothing_is_written(
    document: Document, metadata: dict[str, object], words: str, tmp_path: Path
) -> None:
    asked = Query("q", "?", (Evidence("d", Span(0, 1)),), "", metadata)
    with pytest.raises(DataError, match=words):
        write_benchmark(Benchmark("b", [document], [asked]), tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_command_writes_a_folder_that_is_read_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(12):
        (docs / f"{number}.txt").write_text(f"Number {number} naps. It dreams.", encoding="utf-8")
    questions = tmp_path / "questions.jsonl"
    rows = [
        {"question": "Who?", "evidence": ["Number 7 naps."]},
        {"question": "What?", "evidence": ["It flies."]},
        {"question": "Why?", "without_evidence": True, "document_id": "3.txt"},
    ]
    questions.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    output = tmp_path / "long"
    paths = ["--docs", str(docs), "--questions", str(questions), "-o", str(output)]
    call = ["datasets", "stitch", *paths, "--sentences", "8"]
    assert main(call) == 0
    told = capsys.readouterr()
    assert told.out.splitlines() == ["12 documents in 3, 1 questions, 1 without evidence; 1 left out", str(output)]
    assert "\nleft out: q2: " in told.err
    assert "the excerpt 'It flies.' is not found" in told.err
    long = load_benchmark(output)
    assert excerpts(long) == [["Number 7 naps."]]
    first = (output / "documents.jsonl").read_bytes()
    assert main(call) == 0
    assert (output / "documents.jsonl").read_bytes() == first
