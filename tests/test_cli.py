"""The command line: what it prints and writes, and that bad input ends in one sentence and exit code 2."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
import typer
import typer.rich_utils
from chunkcore.chunkers import Chunker, get_chunker
from chunkcore.cli import app, main, options
from chunkcore.cli.options import check_folder
from chunkcore.text import Chunk, Document, Span
from hypothesis import given

from tests.fakes import FakeEmbedder
from tests.strategies import hard_text

TEXT = "The fox naps under the lid.\n\nThe dog runs. 犬が走る。👩‍👩‍👧\r\n" * 40


@pytest.fixture
def docs(tmp_path) -> Path:
    folder = tmp_path / "docs"
    (folder / "deep").mkdir(parents=True)
    (folder / "fox.txt").write_bytes(TEXT.encode())
    (folder / "deep" / "dog.md").write_text("# Dog\n\nThe dog is brown. " + "It barks at the postman. " * 60)
    (folder / ".hidden").write_bytes(b"\xff")
    return folder


@pytest.fixture
def questions(tmp_path) -> Path:
    path = tmp_path / "questions.jsonl"
    lines = [
        {"id": "brown", "question": "Which colour is the dog?", "evidence": ["The dog is brown."]},
        {"id": "title", "question": "What is it about?", "evidence": [{"text": "# Dog", "document": "deep/dog.md"}]},
        {"id": "many", "question": "Who barks?", "evidence": ["It barks at the postman."]},
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def lines_of(output: str) -> list[dict]:
    return [json.loads(line) for line in output.splitlines()]


def test_chunks_are_written_one_a_line_with_the_spans_that_they_stand_for(docs, capfd):
    assert main(["chunk", str(docs / "fox.txt"), "-s", "recursive:size=30,overlap=5"]) == 0
    rows = lines_of(capfd.readouterr().out)
    chunker = get_chunker("recursive:size=30,overlap=5")
    chunks = chunker.chunk(Document("fox.txt", TEXT))
    assert len(rows) == len(chunks) > 10
    for row, chunk in zip(rows, chunks, strict=True):
        assert list(row) == ["document_id", "id", "index", "spans", "text", "token_count", "metadata"]
        assert "".join(TEXT[start:end] for start, end in row["spans"]) == row["text"] == chunk.text
        assert (row["id"], row["index"], row["token_count"]) == (chunk.id, chunk.index, chunk.token_count)


def test_context_segments_and_derived_are_written_where_a_chunk_has_them(docs, capfd, monkeypatch):
    head, tail = Span(0, 3), Span(5, 8)
    chunks = [
        Chunk("fox.txt", 0, (head, tail), "The Dog", 2, segments=((head,), (head, tail))),
        Chunk("fox.txt", 1, (head,), "A fox.", 2, context="On foxes", derived=True),
        Chunk("fox.txt", 2, (tail,), "Dog", 1),
    ]
    monkeypatch.setattr(Chunker, "chunk_many", lambda *_, **__: chunks)
    assert main(["chunk", str(docs / "fox.txt")]) == 0
    optional = ("context", "segments", "derived")
    rows = [{key: row[key] for key in optional if key in row} for row in lines_of(capfd.readouterr().out)]
    assert rows == [{"segments": [[[0, 3]], [[0, 3], [5, 8]]]}, {"context": "On foxes", "derived": True}, {}]


def test_standard_input_is_a_document_named_dash(monkeypatch, capfd):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode()), "ascii"))
    assert main(["chunk", "-", "-s", "fixed_token:size=20"]) == 0
    rows = lines_of(capfd.readouterr().out)
    assert {row["document_id"] for row in rows} == {"-"}
    assert "".join(row["text"] for row in rows) == TEXT


@given(hard_text())
def test_any_text_that_a_file_can_hold_comes_out_as_it_stands_there(tmp_path_factory, text):
    text = text.encode("utf-8", "replace").decode() or "x"
    folder = tmp_path_factory.mktemp("any")
    (folder / "in.txt").write_bytes(text.encode())
    assert main(["chunk", str(folder / "in.txt"), "-s", "fixed_token:size=7", "-o", str(folder / "out")]) == 0
    for line in (folder / "out").read_bytes().decode().removesuffix("\n").split("\n"):
        row = json.loads(line)
        assert "".join(text[start:end] for start, end in row["spans"]) == row["text"]


def test_two_files_of_one_id_are_told_with_what_to_do(docs, tmp_path, capfd):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
        (folder / "a.md").write_text(f"In {folder.name}.")
    assert main(["chunk", str(one), str(other), "-o", str(tmp_path / ".out")]) == 2
    assert f"{one} and {other} both hold a document with the id 'a.md'" in capfd.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_the_file_that_it_leads_to_is_written(there, docs, tmp_path):
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "chunks.jsonl", tmp_path / "link.jsonl"
    if there:
        target.write_text("old")
    link.symlink_to(Path("far", "chunks.jsonl"))
    assert main(["chunk", str(docs / "fox.txt"), "-s", "fixed_token:size=100", "-o", str(link)]) == 0
    assert link.is_symlink()
    assert not target.is_symlink()
    assert "".join(row["text"] for row in lines_of(target.read_text("utf-8"))) == TEXT
    assert [path.name for path in (tmp_path / "far").iterdir()] == ["chunks.jsonl"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
@pytest.mark.parametrize("name", ["docs/fox.txt", "docs/deep/../fox.txt", "linked.txt"])
@pytest.mark.parametrize("given", ["docs", "docs/fox.txt"])
def test_an_output_that_is_an_input_is_refused_and_left_alone(name, given, docs, tmp_path, capfd):
    (tmp_path / "linked.txt").symlink_to(docs / "fox.txt")
    output = tmp_path / name
    assert main(["chunk", str(tmp_path / given), "-o", str(output)]) == 2
    err = capfd.readouterr().err
    assert re.search("is one of the files to cut, and would be replaced|would be taken for a document", err)
    assert (docs / "fox.txt").read_bytes() == TEXT.encode()


BAD = {
    "chunk {damaged}": r"damaged is not UTF-8 text",
    "chunk {empty}": "empty is empty",
    "chunk {broken} -o {out}": "broken.jsonl, line 2: not JSON",
    "chunk {root}/gone": "gone does not exist",
    "chunk {folder}": "folder holds no documents",
    "chunk {text} {text} -o {out}": "both hold a document with the id '.*text.txt': give each file once",
    "chunk {text} -s fixed_token:size=0": "size is at least 1, got 0",
    "chunk {text} -s recursive:sise=3": "recursive has no option 'sise'",
    "chunk {text} -o {folder}": "folder: is a folder: name a file in it",
    "chunk {text} -o {text}/out": "text.txt.*: (Not a directory|File exists)",
    "chunk": "Missing argument 'FILES'; see chunkcore chunk --help",
    "compare --baseline {folder}": "folder cannot be read: is a folder: name a file in it",
    "chunk --docs {text}": "No such option: --docs. Did you mean files as the first argument?",
    "search --docs {text} hello": "No such option: --docs. Did you mean docs as the first argument?",
    "chunk {text} --workers 0": "Invalid value for '--workers': .*; see chunkcore chunk --help",
    "compare --k 0": "--k: expected a whole number from 1 to 999,999,999, .*, got '0'",
    "compare --measure Recal@5": "unknown measure 'Recal'",
    "compare --questions q.jsonl": "q.jsonl was given without documents",
    "compare --docs {text}": "there are no questions for .*chunkcore questions label .*text.txt writes one",
    "compare -s recursive -s recursive:size=200": "'recursive:size=200' and 'recursive:size=200' are the same",
    "compare -o {text}/out": "text.txt: is a file: name a folder",
    "compare -s recursive:separators=[1": "a bracket is not closed in the chunker",
    "compare --resamples ten": "Invalid value for '--resamples'",
}


@pytest.mark.parametrize("arguments", BAD)
def test_bad_input_ends_in_one_sentence_and_exit_code_2(arguments, tmp_path, capfd, fake):
    files = {"damaged": "é".encode() + b"h\xff", "empty": b"", "broken.jsonl": b'{"id": "a", "text": "b"}\n{"id": '}
    for name, content in {**files, "text.txt": b"hello"}.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    places = {name.partition(".")[0]: tmp_path / name for name in (*files, "text.txt", "folder", "out")}
    assert main([word.format(root=tmp_path, **places) for word in arguments.split()]) == 2
    out, err = capfd.readouterr()
    assert (out, err[:11]) == ("", "chunkcore: ")
    assert err.count("\n") == 1 + ("NOT YOUR DOCUMENTS" in err) + ("keeps what is done" in err)
    assert re.search(BAD[arguments], err), err


def test_what_is_not_there_is_told_before_any_work(tmp_path, capfd, fake, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert (main(["compare", "-o", str(tmp_path / "out")]), fake.calls) == (2, 0)
    assert 'pip install "chunkadapters[report]"' in capfd.readouterr().err
    answers = iter([False] * 99)  # of a drive that is missing
    with monkeypatch.context() as drive:
        drive.setattr(Path, "exists", lambda path: next(answers))
        drive.setattr(Path, "is_dir", lambda path: False)
        with pytest.raises(NotADirectoryError, match="name a folder"):
            check_folder(tmp_path)


@pytest.mark.parametrize(
    ("problem", "code", "sentence"),
    [
        (KeyboardInterrupt, 130, "stopped before the end; nothing half-written was left behind\n"),
        (MemoryError, 1, "the memory is not enough: take out the largest files, or give fewer of them\n"),
    ],
)
def test_an_end_before_its_time_is_one_sentence(problem, code, sentence, docs, tmp_path, capfd, monkeypatch):
    def stop(*_, **__):
        raise problem

    monkeypatch.setattr(Chunker, "chunks_per_document", stop)
    assert main(["chunk", str(docs), "-o", str(tmp_path / "out.jsonl")]) == code
    assert capfd.readouterr().err == f"chunkcore: {sentence}"
    assert [path.name for path in tmp_path.iterdir()] == ["docs"]


def _process(*arguments: str, **options) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, timeout=200, **options)


def test_the_module_is_the_command_and_a_reader_that_stops_is_no_error(docs):
    for _ in range(3):
        (docs / "fox.txt").write_bytes((docs / "fox.txt").read_bytes() * 4)
    command = f'"{sys.executable}" -m chunkcore chunk "{docs / "fox.txt"}" -s fixed_token:size=9 | head -n 1'
    done = subprocess.run(command, shell=True, capture_output=True, timeout=200)
    assert (json.loads(done.stdout)["index"], done.stderr) == (0, b"")


def test_a_terminal_that_knows_only_ascii_gets_escapes(tmp_path):
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C.UTF-8"}
    done = _process("-m", "chunkcore", "chunk", str(tmp_path / "größe"), env=environment)
    assert (done.returncode, b"gr\\xf6" in done.stderr) == (2, True)
    assert b"Traceback" not in done.stderr


def every_command(command: object, *names: str) -> Iterator[tuple[str, ...]]:
    yield names
    for name, below in getattr(command, "commands", {}).items():
        yield from every_command(below, *names, name)


@pytest.mark.parametrize("command", [*every_command(typer.main.get_command(app))], ids=" ".join)
def test_help_fits_a_screen_but_that_of_compare(command, capfd, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(typer.rich_utils, "MAX_WIDTH", 80)
    assert main([*command, "--help"]) == 0
    out = capfd.readouterr().out
    assert "Usage: chunkcore" in out
    for place in (str(Path.home()), "guides/", "reference/", "evidence/"):
        assert place not in out, "no wheel has it"
    assert max(map(len, out.splitlines())) <= 80
    assert len(out.splitlines()) <= (85 if command == ("compare",) else 66)
    if command == ("chunk",):
        assert "text[start:end]" in out, "brackets are text"


def test_a_guess_that_means_something_else_is_not_answered_and_documents_are_named_once(docs, capfd):
    assert main(["list", "--docs", "x"]) == main(["search", str(docs), "--topics", "fox"]) == 2
    assert not re.search("first argument|-k", capfd.readouterr().err), "that is not what is meant"
    assert main(["compare", str(docs), "--docs", str(docs)]) == 2
    assert "the documents are named twice" in capfd.readouterr().err
    assert main(["--version"]) == 0
    assert capfd.readouterr().out == f"chunkcore {version('chunkadapters')}\n"


def test_what_has_a_name_is_listed_by_kind(capfd):
    assert main(["list"]) == 0
    kinds = [line.removeprefix("chunkcore list ") for line in capfd.readouterr().out.splitlines()]
    assert {"chunkers", "retrievers", "measures", "counters", "llms"} <= {*kinds}
    for kind in kinds:
        assert main(["list", kind]) == 0
        assert all(line.startswith(" ") or " " in line for line in capfd.readouterr().out.splitlines()), "no title"
    assert main(["list", "chunkrs"]) == 2
    assert "did you mean 'chunkers'?" in capfd.readouterr().err


@pytest.mark.parametrize(("begun", "expected"), [("compare -s cl", ["cluster_semantic"]), ("list chunk", ["chunkers"])])
def test_completion_is_installed_by_a_flag_and_completes_commands_and_names(begun, expected, capfd):
    assert main(["--help"]) == 0
    assert "--install-completion" in capfd.readouterr().out
    environment = os.environ | {"COMP_WORDS": f"chunkcore {begun}", "COMP_CWORD": str(len(begun.split()))}
    environment["_CHUNKCORE_COMPLETE"] = "complete_bash"
    run = [sys.executable, "-m", "chunkcore"]
    found = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert found.stdout.split() == expected


def test_a_quiet_command_shows_no_progress(docs, questions, tmp_path, fake, capfd):
    for quiet in ([], ["-q"]):
        assert _compare(docs, questions, tmp_path / "out", *quiet) == 0
        lines = capfd.readouterr().err.splitlines()
        assert any("warning" not in line for line in lines) != bool(quiet)
        assert not options.quiet.get(), "what comes after the command is as it was before"


SPECS = ("recursive:size=200", "fixed_token:size=30", "cluster_semantic:size=100")


def _compare(docs: Path, questions: Path, output: Path, *more: str) -> int:
    given = [argument for spec in SPECS for argument in ("-s", spec)]
    paths = [str(docs), "--questions", str(questions), "-o", str(output), "-r", "dense", "--no-extras"]
    return main(["compare", *paths, *given, "--resamples", "200", *more])


def test_compare_prints_table_and_verdict_and_last_the_reports_path(docs, questions, tmp_path, capfd, fake):
    assert _compare(docs, questions, tmp_path / "out", "--no-cache") == 0
    out, err = capfd.readouterr()
    html = tmp_path / "out" / "report.html"
    assert out.splitlines()[-1] == str(html)
    for text in (*SPECS, "Scores at 1,000 tokens", "1 question is left out; the", "Recall"):
        assert text in "".join(out.replace("\n   ", "").split("\n")) or text in out
    assert "search: 3 of 3" in err
    page = html.read_text("utf-8")
    assert "many" in page
    assert "cluster_semantic:counter=cl100k_base,size=100" in page.replace("<wbr>", "")


def test_documents_are_resampled_and_small_differences_pass_where_asked_for(docs, questions, tmp_path, capfd, fake):
    given = ["--by", "document", "--margin", "5", "--no-cache", "--resamples", "200", "-r", "dense", "--no-extras"]
    specs = [argument for spec in SPECS for argument in ("-s", spec)]
    assert main(["compare", *specs, "-o", str(tmp_path / "out"), *given]) == 0
    verdict = json.loads((tmp_path / "out" / "report.json").read_text())["verdict"]
    assert (verdict["resampled"], verdict["margin"]) == ("documents", 0.05)
    assert set(verdict["firsts"]) == set(SPECS)
    assert all(0 < each["p_value"] <= each["adjusted_p"] <= 1 for each in verdict["differences"])
    assert "documents, which were resampled whole" in verdict["text"]
    assert _compare(docs, questions, tmp_path / "one", "--by", "document") == 2
    assert "so there is nothing to resample: resample by question" in capfd.readouterr().err
    assert "≈ where it is under 5.0 points" in (tmp_path / "out" / "report.md").read_text("utf-8")


def test_a_strategy_that_names_the_default_model_keeps_it_under_another(docs, questions, tmp_path, capfd, monkeypatch):
    models = {name: FakeEmbedder(name=name) for name in ("all-MiniLM-L6-v2", "other")}
    monkeypatch.setattr("chunkcore.models.loading.get_embedder", lambda spec: models.get(spec, spec))
    named = "cluster_semantic:size=100, embedder = all-MiniLM-L6-v2"
    assert _compare(docs, questions, tmp_path / "out", "--no-cache", "--embedder", "other", "-s", named) == 0
    assert models["all-MiniLM-L6-v2"].calls > 0, "its pieces"
    assert not {"Who barks?", "Which colour is the dog?"} & set(models["all-MiniLM-L6-v2"].texts)
    assert "Which colour is the dog?" in models["other"].texts


def test_what_embedding_needs_and_costs_is_told_before_it_begins(docs, questions, capfd, fake, monkeypatch):
    data = ["compare", str(docs), "--questions", str(questions), "--dry-run"]
    cases = [
        (["-s", "sentence", "-r", "bm25", "-e", "other"], "nothing embeds: bm25 searches words"),
        (["-s", "sentence", "-r", "dense", "-e", "openai:small", "--embed-price", "2"], r"chunker, cost 0\.\d+\. What"),
        (["-s", "sentence", "-r", "dense", "-e", "mistral/m"], r"openai:m@https://api.mistral.ai/v1 reads about \d"),
    ]
    for arguments, told in cases:
        assert main([*data, *arguments]) == 0
        assert re.search(told, capfd.readouterr().err)
    monkeypatch.setattr("chunkcore.models.loading.is_installed", lambda: False)
    assert main(data) == 0
    told = capfd.readouterr()
    assert "no model is installed, so words alone are compared" in told.err
    assert "cluster_semantic" not in told.out


def test_a_file_of_the_users_is_refused_as_cache_and_left_alone(docs, questions, tmp_path, capfd, fake):
    (tmp_path / "notes.txt").write_text("mine")
    assert _compare(docs, questions, tmp_path / "out", "--cache", str(tmp_path / "notes.txt")) == 2
    (error,) = [line for line in capfd.readouterr().err.splitlines() if "warning" not in line]
    assert error.startswith("chunkcore: ")
    assert "notes.txt' is no cache and was left as it is" in error
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
@pytest.mark.parametrize(
    "command", ["compare -s sentence:size=50 -r bm25", "search", "questions generate", "questions check"]
)
def test_a_link_out_of_the_folder_is_read_only_where_it_is_allowed(command, docs, questions, tmp_path, capfd):
    (tmp_path / "secret.txt").write_text("The dog is brown. " + "The key is 9173. " * 50)
    (docs / "link.txt").symlink_to(tmp_path / "secret.txt")
    arguments = ["--questions", str(questions), "-o", str(tmp_path / "out"), "--resamples", "100"]
    if "search" in command:
        arguments = ["brown dog, key"]
    if "check" in command:
        arguments = ["--questions", str(questions), "--embedder", "none", "--ignore", "short"]
    if "generate" in command:
        arguments = ["--llm", "openai:m@http://127.0.0.1:1/v1", "-o", str(tmp_path / "q.jsonl"), "--dry-run"]
    outputs = []
    for allowed in (False, True, False):
        assert main([*command.split(), str(docs), *arguments, *["--follow-links"] * allowed]) == ("check" in command)
        out, err = capfd.readouterr()
        assert ("is a link out of the folder" in err) is not allowed
        assert allowed or "9173" not in out
        report = tmp_path / "out" / "report.md"
        outputs.append(report.read_text("utf-8") if report.exists() else out)
    assert outputs[0] != outputs[1], "the text counts where it is read"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_a_closed_output_is_no_error():
    command = f'"{sys.executable}" -m chunkcore list >&-'
    done = subprocess.run(command, shell=True, capture_output=True, timeout=200)
    assert (done.returncode, done.stderr) == (0, b"")


def test_without_documents_the_first_line_says_what_is_scored(tmp_path, capfd):
    given = ["-s", "sentence", "-r", "bm25", "--resamples", "100", "-o", str(tmp_path / "out")]
    assert main(["compare", *given]) == 0
    assert capfd.readouterr().err.startswith("chunkcore: NOT YOUR DOCUMENTS: none are named, so the shipped collection")


def test_importing_the_command_line_imports_nothing_heavy():
    heavy = ("rich", "jinja2", "torch", "openvino", "transformers")
    code = f"import sys, chunkcore.cli; print([m for m in {heavy} if m in sys.modules])"
    assert _process("-c", code).stdout.strip() == b"[]"
