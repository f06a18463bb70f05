"""Benchmarks are read as they are written; what can't be verified is left out with its reason, never guessed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chunkcore import DataError, Document, Span, load_benchmark, load_documents
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Evidence, Query

from tests.conftest import shared
from tests.layouts import jsonl

FOX = Document("fox.txt", "The fox naps. The dog naps.\r\nThe end.")
CAT = Document("tales/cat.txt", "A cat purrs. The end.")


def why(*entries: Any, **row: Any) -> str:
    """Why a question with such evidence is left out."""
    good = {"id": "good", "question": "?", "evidence": ["A cat"]}
    bad = {"id": "bad", "question": "?", "evidence": list(entries), **row}
    loaded = load_benchmark([FOX, CAT], [good, bad])
    assert [query.id for query in loaded.queries] == ["good"]
    (problem,) = loaded.problems
    assert problem.query_id == str(bad["id"])
    return problem.reason


@pytest.mark.parametrize(
    ("name", "documents", "queries", "spans", "characters"),
    [("chroma", 5, 472, 790, 1_444_328), ("cuad", 64, 611, 1070, None), ("covid_qa", 46, 597, 597, None)],
)
def test_shared_collections_load_with_every_span_verified(name, documents, queries, spans, characters):
    loaded = load_benchmark(shared(f"data/{name}"))
    assert loaded.problems == ()
    assert (loaded.name, len(loaded.documents), len(loaded.queries)) == (name, documents, queries)
    assert sum(len(query.evidence) for query in loaded.queries) == spans
    if characters:
        assert sum(len(document.text) for document in loaded.documents) == characters


def test_spans_with_the_excerpts_that_they_stand_for() -> None:
    row = {"document_id": "fox.txt", "spans": [[4, 7], [18, 21]], "evidence": ["fox", "dog"], "question": "?"}
    assert [each.span for each in load_benchmark([FOX], [row]).queries[0].evidence] == [Span(4, 7), Span(18, 21)]
    del row["evidence"]
    assert len(load_benchmark([FOX], [row]).queries[0].evidence) == 2


def test_evidence_that_was_marked_in_other_texts_is_found_in_the_apps_by_its_words() -> None:
    app = [Document("/srv/app/fox.txt", f"Tales\n\n{FOX.text}"), Document("/srv/app/cat.txt", "A cat -- purrs.")]
    marked = {"document": "fox.txt", "start": 4, "end": 7, "text": "fox"}
    rows = [{"question": "Who?", "evidence": [marked]}, {"question": "What?", "evidence": ["A cat purrs."]}]
    with pytest.warns(UserWarning, match="not 'fox', and was taken at 11"):
        loaded = load_benchmark(app, rows)
    assert [query.evidence[0] for query in loaded.queries] == [
        Evidence("/srv/app/fox.txt", Span(11, 14)),
        Evidence("/srv/app/cat.txt", Span(0, 15)),
    ]


@pytest.mark.parametrize(
    ("entry", "row", "reason"),
    [
        ("The wolf", {}, "the excerpt 'The wolf' is not found in any of the 2 documents"),
        (
            "The end.",
            {},
            "occurs 2 times ('fox.txt' at 29, 'tales/cat.txt' at 13): quote more words, name its document, or",
        ),
        ({"text": "naps", "occurrence": 3}, {"document_id": "fox.txt"}, "occurs 2 times in 'fox.txt', not 3 times"),
        ({"document": "fox.txt", "start": 5, "end": 8, "text": "wolf"}, {}, "at 5-8 of 'fox.txt' stands 'ox ', not"),
        ({"document": "fox.txt", "start": 5, "end": 99}, {}, "evidence ends at 99, its document 'fox.txt' at 37"),
        ({"document": "fox.txt", "start": 1.5, "end": 2}, {}, "whole numbers"),
        ({"start": 1, "end": 2}, {}, "must name its document"),
        ({"document": "wolf.txt", "text": "x"}, {}, "its document 'wolf.txt' is not among the 2 documents"),
        ("The fox", {"document_id": "wolf.txt"}, "its document 'wolf.txt' is not among"),
        ("The fox", {"question": " "}, "the question is a text that is not blank"),
        ("The fox", {"document_id": 7.0}, "named with a string or a whole number, got 7.0"),
        ("The fox", {"id": True}, "named with a string or a whole number, got True"),
        ("The fox", {"spans": [[0, 7], [8, 9]]}, "2 spans and 1 pieces of evidence"),
        ("The fox", {"evidence": []}, "it has no evidence"),
    ],
)
def test_what_can_not_be_verified_is_left_out_with_its_reason(entry: Any, row: dict[str, Any], reason: str) -> None:
    assert reason in why(entry, **row)


def test_questions_without_an_id_get_one_that_no_other_has() -> None:
    row = {"question": "?", "evidence": ["A cat"]}
    rows = [row, row | {"id": "q1"}, row | {"id": np.int64(4)}, row, row | {"id": "q5"}]
    loaded = load_benchmark([CAT], rows)
    assert [query.id for query in loaded.queries] == ["q2", "q1", "4", "q4", "q5"]
    assert not loaded.problems


def test_a_question_is_tabled_under_what_it_says_or_its_document_says_or_its_folder() -> None:
    documents = [FOX, CAT, Document("b/c.txt", "Bees hum.", {"collection": "insects"})]
    rows: list[dict[str, Any]] = [{"question": "?", "evidence": [each]} for each in ("The fox", "A cat", "Bees hum.")]
    rows.append({"question": "?", "evidence": ["The fox"], "collection": "mine"})
    assert [query.collection for query in load_benchmark(documents, rows).queries] == ["", "tales", "insects", "mine"]


def test_a_folder_of_files_keeps_every_newline_and_names_documents_by_their_paths(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    text = "\ufeffone\r\ntwo\rthree\n\x85four\u2028five\n"
    (tmp_path / "deep" / "er" / "a.md").write_bytes(text.encode("utf-8"))
    (tmp_path / "b.txt").write_bytes(b"plain")
    (tmp_path / ".hidden").write_bytes(b"\xff")
    questions = jsonl(tmp_path / "questions.jsonl", {"question": "?", "evidence": ["two\rthree"]})
    loaded = load_benchmark(tmp_path)
    assert [(document.id, document.text) for document in loaded.documents] == [
        ("b.txt", "plain"),
        ("deep/er/a.md", text),
    ]
    assert loaded.queries[0].evidence == (Evidence("deep/er/a.md", Span(6, 15)),)
    assert load_benchmark(tmp_path, questions).documents == loaded.documents


def test_documents_jsonl_keeps_the_rest_as_metadata(tmp_path: Path) -> None:
    jsonl(tmp_path / "documents.jsonl", {"id": 7, "text": "A\u2028cat", "title": "Cats", "metadata": {"year": 1999}})
    (document,) = load_documents(tmp_path)
    assert (document.id, document.text, document.metadata) == ("7", "A\u2028cat", {"year": 1999, "title": "Cats"})


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("questions.jsonl", b'{"question": "?"}\n{"question": ', "questions.jsonl, line 2: not JSON"),
        ("questions.jsonl", b"", "questions.jsonl is empty"),
        ("questions.jsonl", b'{"question": "?", "evidence": []}', "none of the 1 question can be used; the first, "),
        ("questions.jsonl", b"\xff\xfe", "is not UTF-8 text (byte 0 is 0xff)"),
        ("documents.jsonl", b'{"id": "a", "text": "x"}\n' * 2, "documents.jsonl, line 2: the id 'a' was given before"),
        ("documents.jsonl", b'{"\\n": 1}', r"line 1: the document has no id and no text; it has ['\n']"),
        ("documents.jsonl", b'{"id": "a", "text": 7}', "line 1: document 'a': its text is a string, got int"),
        ("documents.jsonl", b'{"id": "a", "text": "x", "metadata": 7}', "metadata is an object, got int"),
    ],
)
def test_broken_files_are_named_in_one_sentence(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / "cat.txt").write_text("A cat", encoding="utf-8")
    jsonl(tmp_path / "questions.jsonl", {"question": "?", "evidence": ["A cat"]})
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        load_benchmark(tmp_path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        load_benchmark(tmp_path / "gone", [])
    with pytest.raises(DataError, match="holds no documents"):
        load_benchmark(tmp_path, [])
    with pytest.raises(DataError, match="is no file"):
        load_benchmark([CAT], tmp_path / "gone.jsonl")
    for rows, message in ((None, "1 document and no questions"), ([], "the questions holds no questions")):
        with pytest.raises(DataError, match=message):
            load_benchmark([CAT], rows)


def chroma(folder: Path, *rows: str, header: str = "question,references,corpus_id") -> Path:
    (folder / "corpora").mkdir()
    (folder / "corpora" / "cats.md").write_bytes(b"A cat\r\npurrs. A cat\r\nsleeps.")
    (folder / "questions_df.csv").write_bytes("\r\n".join([header, *rows]).encode("utf-8"))
    return folder


GOOD = '"Who, and\nwhy?","[{""content"": ""A cat"", ""start_index"": 14, ""end_index"": 19}]",cats'


def test_the_chroma_layout(tmp_path: Path) -> None:
    query, other = load_benchmark(chroma(tmp_path, GOOD, '?,"[""sleeps.""]",cats')).queries
    evidence = (Evidence("cats", Span(14, 19)),)
    assert query == Query("cats-1", "Who, and\nwhy?", evidence, "cats", {"document_id": "cats"})
    assert other.evidence[0].span.slice("A cat\r\npurrs. A cat\r\nsleeps.") == "sleeps."
    jsonl(tmp_path / "questions.jsonl", {"question": "Who purrs?", "evidence": ["purrs."]})
    (tmp_path / "corpora").rename(tmp_path / "texts")
    assert load_benchmark(tmp_path).queries[0].text == "Who purrs?", "a table of other data is none of questions"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (GOOD.replace("14", "13"), "at 13-19 of 'cats' stands"),
        (GOOD.replace(",cats", ",dogs"), "its document 'dogs' is not among the 1 document"),
        ("?,[],cats", "it has no evidence"),
        ("?", "it has no evidence"),
        ('?,"[{""content"": ""A cat""}]",cats', "occurs 2 times"),
    ],
)
def test_a_bad_row_of_the_chroma_layout_is_left_out(tmp_path: Path, row: str, reason: str) -> None:
    loaded = load_benchmark(chroma(tmp_path, GOOD, row))
    assert len(loaded.queries) == 1
    assert reason in loaded.problems[0].reason
    assert loaded.problems[0].query_id.endswith("-2")


@pytest.mark.parametrize(
    ("documents", "queries", "message"),
    [
        ([FOX, FOX], [], "two documents .* have the id 'fox.txt'"),
        ([FOX], [Query("q", "?", (Evidence("fox.txt", Span(0, 3)),))] * 2, "two queries .* have the id 'q'"),
        ([FOX], [Query("q", "?", ())], "query 'q' has no evidence"),
        ([FOX], [Query("q", "?", (Evidence("wolf", Span(0, 3)),))], "document 'wolf', which is not in the benchmark"),
        ([FOX], [Query("q", "?", (Evidence("fox.txt", Span(0, 38)),))], "ends at 38, and the document at 37"),
    ],
)
def test_a_benchmark_holds_together(documents: list[Document], queries: list[Query], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Benchmark("b", documents, queries)


def test_questions_without_evidence_have_ids_of_their_own_and_no_evidence() -> None:
    scored = Query("q", "?", (Evidence("fox.txt", Span(0, 3)),))
    assert Benchmark("b", [FOX], [scored], (), (Query("r", "?", ()),)).without_evidence[0].id == "r"
    with pytest.raises(DataError, match=r"two queries .* have the id 'q'"):
        Benchmark("b", [FOX], [scored], (), (Query("q", "?", ()),))
    with pytest.raises(DataError, match="query 'q' has evidence: it is one of the queries"):
        Benchmark("b", [FOX], [], (), (scored,))


def test_warnings_point_at_the_users_line(tmp_path: Path) -> None:
    (tmp_path / "cat.txt").write_text("A “cat” purrs.", encoding="utf-8")
    (tmp_path / "image.png").write_bytes(PNG)
    rows = [{"question": "?", "evidence": ['A "cat" purrs.']}]
    for call in (lambda: load_documents(tmp_path), lambda: load_benchmark(tmp_path, rows)):
        with pytest.warns(UserWarning, match="image") as warned:
            call()
        assert {warning.filename for warning in warned} == {__file__}
