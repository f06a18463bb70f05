"""Public collections are read in their own layouts: what is written in the files is what is scored, and no more."""

from __future__ import annotations

from pathlib import Path

import pytest
from chunkcore.cli import main
from chunkcore.errors import DataError, OptionError
from chunkcore.evaluation.benchmarks import known_layouts, load_benchmark
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Query
from chunkcore.evaluation.benchmarks.layout import layouts as registry
from chunkcore.evaluation.benchmarks.loading import chosen_layout

from tests import layouts
from tests.layouts import WRITERS, write
from tests.plugins import LAYOUT

NAMES = [layout.name for layout in known_layouts()]


def said(benchmark: Benchmark, query: Query | str) -> list[str]:
    """The texts of a query's evidence."""
    if isinstance(query, str):
        query = next(each for each in benchmark.queries if each.id == query)
    return [each.span.slice(benchmark.document(each.document_id).text) for each in query.evidence]


def reasons(benchmark: Benchmark) -> dict[str, str]:
    return {problem.query_id: problem.reason for problem in benchmark.problems}


def without(benchmark: Benchmark) -> dict[str, Query]:
    return {query.id: query for query in benchmark.without_evidence}


@pytest.mark.parametrize("name", WRITERS)
def test_a_layout_is_recognised_by_what_is_there(tmp_path: Path, name: str) -> None:
    assert chosen_layout(WRITERS[name](tmp_path)).name == name


@pytest.mark.parametrize("name", WRITERS)
def test_a_layout_may_be_named_and_nothing_else_is_taken_for_it(tmp_path: Path, name: str) -> None:
    here = WRITERS[name](tmp_path / "here")
    loaded = load_benchmark(here, layout=name, require_evidence=False)
    assert loaded == load_benchmark(here, require_evidence=False)
    assert (loaded.name, bool(loaded.documents)) == ("here", True)
    assert loaded.queries or loaded.without_evidence
    write(tmp_path / "there" / "readme.txt", "nothing")
    with pytest.raises(DataError, match=rf"there is not of the layout {name}: it lacks "):
        load_benchmark(tmp_path / "there", layout=name)


def test_what_a_layout_lacks_is_told_where_the_folder_has_a_part_of_it(tmp_path: Path) -> None:
    write(tmp_path / "corpus.jsonl", "{}")
    write(tmp_path / "some.json", '{"data": 1}')
    with pytest.raises(DataError) as caught:
        load_benchmark(tmp_path)
    told = str(caught.value)
    assert "put a questions.jsonl beside the documents, or give its path; chunkcore questions label " in told
    assert "layouts shows; for beir it lacks queries.jsonl and qrels/*.tsv" in told
    assert "squad" not in told
    assert "\n" not in told


def test_questions_from_elsewhere_make_the_files_plain_documents(tmp_path: Path) -> None:
    """A folder of somebody's own texts stays that, though one of them looks like a public collection's file."""
    layouts.squad(tmp_path)
    loaded = load_benchmark(tmp_path, [{"question": "?", "evidence": ["Owls hunt."]}])
    assert [document.id for document in loaded.documents] == ["dev-v2.0.json"]
    with pytest.raises(OptionError, match="the layout squad has its own questions"):
        load_benchmark(tmp_path, [{"question": "?"}], layout="squad")


def test_beir(tmp_path: Path) -> None:
    loaded = load_benchmark(layouts.beir(tmp_path))
    assert {document.id: document.text for document in loaded.documents} == {
        "MED-10": "Statins\nThey lower it.",
        "MED-14": "Tea is hot.",
        "MED-20": "",
    }
    (query,) = loaded.queries
    assert (query.id, query.text, query.metadata["grades"]) == (
        "PLAIN-2",
        "What lowers it?",
        {"MED-10": 2, "MED-14": 1},
    )
    assert said(loaded, query) == ["Statins\nThey lower it.", "Tea is hot."]
    assert reasons(loaded) == {
        "PLAIN-4": "queries.jsonl, line 3: its document 'MED-20' is empty",
        "PLAIN-5": "queries.jsonl, line 4: its document 'MED-99' is not among the 3 documents",
        "PLAIN-6": "queries.jsonl, line 5: no document is judged relevant",
        "PLAIN-9": "test.tsv: queries.jsonl has no query of this id",
    }


def test_the_splits_of_beir_are_taken_in_order(tmp_path: Path) -> None:
    layouts.beir(tmp_path)
    (tmp_path / "qrels" / "test.tsv").unlink()
    assert [query.id for query in load_benchmark(tmp_path).queries] == ["PLAIN-3"]


def test_squad_and_those_who_share_its_layout(tmp_path: Path) -> None:
    loaded = load_benchmark(layouts.squad(tmp_path), layout="squad")
    (document,) = loaded.documents
    assert (document.id, document.text) == ("Animals", "Foxes nap. Dogs nap.\n\nOwls hunt.")
    assert [(query.id, said(loaded, query)) for query in loaded.queries] == [
        ("a1", ["Foxes", "Dogs"]),
        ("a4", ["Owls"]),
    ]
    assert loaded.queries[0].metadata["answers"] == ["Foxes", "Dogs"]
    unanswerable = without(loaded)["a2"]
    assert (unanswerable.metadata["unanswerable"], unanswerable.metadata["answers"]) == (True, [])
    assert reasons(loaded) == {
        "a3": "dev-v2.0.json, data[0].paragraphs[0].qas[2]: at 10-14 of 'Animals' stands ' Dog', not 'Dogs'"
    }


def test_an_article_that_stands_in_two_files_is_one_document(tmp_path: Path) -> None:
    """As CUAD's folder has it: all questions in one file, and those to test on in another."""
    text = (layouts.squad(tmp_path) / "dev-v2.0.json").read_text("utf-8")
    write(tmp_path / "test.json", text)
    write(tmp_path / "package.json", '{"name": "x"}')
    with pytest.warns(UserWarning, match=r"1 of the files in .* left out, being of another layout: package\.json"):
        loaded = load_benchmark(tmp_path)
    assert ([each.id for each in loaded.documents], [each.id for each in loaded.queries]) == (["Animals"], ["a1", "a4"])
    assert "the id was given before, at dev-v2.0.json" in reasons(loaded)["a4"]


def test_an_article_without_title_is_named_by_its_document_id(tmp_path: Path) -> None:
    loaded = load_benchmark(layouts.covid_qa(tmp_path))
    assert (loaded.documents[0].id, said(loaded, "262")) == ("630", ["Masks"])


def test_legalbench_rag_counts_as_its_program_reads(tmp_path: Path) -> None:
    loaded = load_benchmark(layouts.legalbench_rag(tmp_path))
    assert [(query.id, query.collection, said(loaded, query)) for query in loaded.queries] == [
        ("cuad-1", "cuad", ["The rent is 5."]),
        ("maud-1", "maud", ["Merger"]),
    ]
    assert reasons(loaded)["cuad-2"].startswith("cuad.json, tests[1]: at 11-25 of 'cuad/A_Lease.txt' stands")
    assert "'cuad/C.txt' is not among the 2 documents" in reasons(loaded)["cuad-3"]


def test_the_command_line_lists_layouts_and_reads_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "layouts"]) == 0
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines()} == {*NAMES}
    root = str(layouts.squad(tmp_path / "toy"))
    assert main(["datasets", "verify", root]) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("a3: dev-v2.0.json, data[0]")
    assert told[1] == (
        "toy: 1 document, 2 questions, 3 pieces of evidence where they say; "
        "1 question that only answers can be scored on; 1 question with a problem"
    )
    assert main(["datasets", "verify", root, "--layout", "beir"]) == 2
    assert "is not of the layout beir: it lacks corpus.jsonl" in capsys.readouterr().err


@registry.with_entries()
def test_the_layout_of_contributing_is_recognised_like_any_other(tmp_path: Path) -> None:
    assert len(LAYOUT.splitlines()) <= 30
    exec(compile(LAYOUT, "pairs.py", "exec"), {"__name__": "pairs"})
    write(tmp_path / "text.txt", "A fox naps.")
    write(tmp_path / "pairs.tsv", "Who naps?\tA fox\nWho barks?\tA dog\n")
    assert chosen_layout(tmp_path).name == "pairs"
    benchmark = load_benchmark(tmp_path)
    assert said(benchmark, "q1") == ["A fox"]
    assert reasons(benchmark) == {"q2": "line 2: the excerpt 'A dog' is not found in 'text'"}
    assert "pairs" in [layout.name for layout in known_layouts()]
