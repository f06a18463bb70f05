"""The command line: what it prints and writes, and that bad input ends in one sentence and exit code 2."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
import typer.rich_utils
from hypothesis import given, settings

import chunkcore.models
from chunkcore.chunkers import Chunker, get_chunker, strategies
from chunkcore.cli import app, main, running
from chunkcore.cli.options import default_cache
from chunkcore.cli.running import reporting
from chunkcore.datasets import dataset_path
from chunkcore.document import Chunk, Document, Span
from chunkcore.report import REPORT_NAMES, read_reports
from chunkcore.report.study import DEFAULT_CHUNKERS
from tests.fakes import FakeEmbedder, NanEmbedder
from tests.pages import ROOT
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


# ---- chunk


def test_chunks_are_written_one_a_line_with_the_spans_that_they_stand_for(docs, capfd):
    assert main(["chunk", str(docs / "fox.txt"), "-s", "recursive:size=30,overlap=5"]) == 0
    rows = lines_of(capfd.readouterr().out)
    chunker = get_chunker("recursive:size=30,overlap=5")
    chunks = chunker.chunk(Document((docs / "fox.txt").as_posix(), TEXT))
    assert len(rows) == len(chunks) > 10
    for row, chunk in zip(rows, chunks, strict=True):
        assert list(row) == ["document_id", "id", "index", "spans", "text", "token_count", "metadata"]
        assert "".join(TEXT[start:end] for start, end in row["spans"]) == row["text"] == chunk.text
        assert (row["id"], row["index"], row["token_count"]) == (chunk.id, chunk.index, chunk.token_count)


def test_context_segments_and_derived_are_written_where_a_chunk_has_them(docs, capfd, monkeypatch):
    head, tail = Span(0, 3), Span(5, 8)
    chunks = [
        Chunk("d", 0, (head, tail), "The Dog", 2, segments=((head,), (head, tail))),
        Chunk("d", 1, (head,), "A fox.", 2, context="On foxes", derived=True),
        Chunk("d", 2, (tail,), "Dog", 1),
    ]
    monkeypatch.setattr(Chunker, "chunk", lambda *_: chunks)
    assert main(["chunk", str(docs / "fox.txt")]) == 0
    optional = ("context", "segments", "derived")
    rows = [{key: row[key] for key in optional if key in row} for row in lines_of(capfd.readouterr().out)]
    assert rows == [
        {"segments": [[[0, 3]], [[0, 3], [5, 8]]]},
        {"context": "On foxes", "derived": True},
        {},
    ]


def test_text_that_is_not_english_stays_readable(docs, capfd):
    main(["chunk", str(docs / "fox.txt")])
    assert "犬が走る。" in capfd.readouterr().out


def test_a_folder_is_walked_and_ids_are_paths_in_it(docs, capfd):
    assert main(["chunk", str(docs), "--workers", "2"]) == 0
    rows = lines_of(capfd.readouterr().out)
    assert list(dict.fromkeys(row["document_id"] for row in rows)) == ["deep/dog.md", "fox.txt"]


def test_the_same_command_gives_the_same_bytes(docs, tmp_path):
    for name in ("a", "b"):
        assert main(["chunk", str(docs), "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() != b""


def test_standard_input_is_a_document_named_dash(monkeypatch, capfd):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode()), "ascii"))
    assert main(["chunk", "-", "-s", "fixed_token:size=20"]) == 0
    rows = lines_of(capfd.readouterr().out)
    assert {row["document_id"] for row in rows} == {"-"}
    assert "".join(row["text"] for row in rows) == TEXT


@settings(max_examples=25)
@given(hard_text())
def test_any_text_that_a_file_can_hold_comes_out_as_it_stands_there(tmp_path_factory, text):
    text = text.encode("utf-8", "replace").decode() or "x"
    folder = tmp_path_factory.mktemp("any")
    (folder / "in.txt").write_bytes(text.encode())
    assert main(["chunk", str(folder / "in.txt"), "-s", "fixed_token:size=7", "-o", str(folder / "out")]) == 0
    for line in (folder / "out").read_bytes().decode().removesuffix("\n").split("\n"):
        row = json.loads(line)
        assert "".join(text[start:end] for start, end in row["spans"]) == row["text"]


def test_a_jsonl_files_lone_surrogates_survive_as_escapes(tmp_path, capfd):
    (tmp_path / "documents.jsonl").write_text('{"id": "a", "text": "x \\ud800 y"}\n')
    assert main(["chunk", str(tmp_path / "documents.jsonl")]) == 0
    (row,) = lines_of(capfd.readouterr().out)
    assert row["text"] == "x \ud800 y"


def test_a_failure_in_the_middle_leaves_the_old_output(docs, tmp_path, capfd):
    (docs / "zz.txt").symlink_to("n" * 300)  # of a name that no file can have
    output = tmp_path / "chunks.jsonl"
    output.write_text("old")
    assert main(["chunk", str(docs), "-o", str(output)]) == 2
    assert output.read_text() == "old"
    assert not {path.name for path in tmp_path.iterdir()} - {
        "chunks.jsonl",
        "chunks.jsonl.partial",  # a rerun goes on with what was done
        "chunks.jsonl.progress",
        "docs",
    }


def test_two_files_of_one_name_are_told_with_what_to_do(tmp_path, capfd):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
        (folder / "a.md").write_text(f"In {folder.name}.")
    assert main(["chunk", str(one), str(other), "-o", str(tmp_path / ".out")]) == 2
    assert capfd.readouterr().err.endswith(
        f"chunkcore: two files have one name, 'a.md' in {one} and in {other}, and documents are told apart by it: "
        "chunk the folder above them, in which their paths differ\n"
    )
    assert main(["chunk", str(tmp_path)]) == 0  # as it says
    assert [row["document_id"] for row in lines_of(capfd.readouterr().out)] == ["one/a.md", "other/a.md"]


def test_one_folder_given_twice_is_to_be_given_once(docs, tmp_path, capfd):
    again = str(docs / "deep" / "..")
    assert main(["chunk", str(docs), again, "-o", str(tmp_path / "out")]) == 2
    assert "two documents have the id 'deep/dog.md': give each file once" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["a", "a" * 5000, "a\0b", "\ud800"])
def test_an_id_in_two_lists_of_documents_is_told_with_both(name, tmp_path, capfd):
    lists = [tmp_path / "one.jsonl", tmp_path / "other.jsonl"]
    for path in lists:
        path.write_text(json.dumps({"id": name, "text": "The fox."}))
    assert main(["chunk", *map(str, lists), "-o", str(tmp_path / "out")]) == 2
    err = capfd.readouterr().err
    assert f"{lists[0]} and {lists[1]} both hold a document with the id" in err
    assert err.endswith("make the ids unique, or chunk each alone\n")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes in folders there")
def test_a_named_pipe_is_written_to_and_stays_one(docs, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # a writer that replaces the pipe fails the test, not hangs it
    try:
        assert main(["chunk", str(docs / "fox.txt"), "-s", "fixed_token:size=100", "-o", str(pipe)]) == 0
        rows = lines_of(os.read(reader, 1 << 16).decode())
    finally:
        os.close(reader)
    assert "".join(row["text"] for row in rows) == TEXT
    assert pipe.is_fifo()


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
    assert err == f"chunkcore: --output {output} is one of the files to cut, and would be replaced: name another file\n"
    assert (docs / "fox.txt").read_bytes() == TEXT.encode()


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
@pytest.mark.parametrize("name", ["docs/linked.txt", "outside.txt"])
def test_what_a_link_in_the_folder_leads_to_is_an_input_too(name, docs, tmp_path, capfd):
    (tmp_path / "outside.txt").write_text("The hen.")
    (docs / "linked.txt").symlink_to(tmp_path / "outside.txt")
    assert main(["chunk", str(docs), "-o", str(tmp_path / name)]) == 2
    assert "is one of the files to cut" in capfd.readouterr().err
    assert (tmp_path / "outside.txt").read_text() == "The hen."


def test_an_output_in_the_folder_that_is_no_document_of_it_is_written_again(docs):
    for _ in range(2):
        assert main(["chunk", str(docs), "-o", str(docs / ".chunks.jsonl")]) == 0
    (docs / "documents.jsonl").write_text('{"id": "a", "text": "The fox."}\n')
    for _ in range(2):
        assert main(["chunk", str(docs), "-o", str(docs / "chunks.jsonl")]) == 0
    assert main(["chunk", str(docs), "-o", str(docs / "documents.jsonl")]) == 2


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="file names are Unicode there")
def test_a_file_name_that_is_not_utf8_is_no_obstacle(tmp_path, capfd):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt")
    Path(path).write_text("hello")
    assert main(["chunk", path]) == 0
    (row,) = lines_of(capfd.readouterr().out)
    assert row["document_id"] == path
    assert main(["chunk", f"{path}.gone"]) == 2
    assert "does not exist" in capfd.readouterr().err


# ---- bad input


def _bad(tmp_path: Path) -> dict[str, list[str]]:
    damaged, surrogate, empty, broken = (tmp_path / name for name in ("damaged", "surrogate", "empty", "broken.jsonl"))
    damaged.write_bytes("é".encode() + b"h\xff")
    surrogate.write_bytes(b"ab\xed\xa0\x80")
    empty.write_bytes(b"")
    broken.write_text('{"id": "a", "text": "b"}\n{"id": ')
    text = tmp_path / "text.txt"
    text.write_text("hello")
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    return {
        r"damaged is not UTF-8 text \(byte 3 is 0xff\)": ["chunk", str(damaged)],
        r"surrogate is not UTF-8 text \(byte 2 is 0xed\)": ["chunk", str(surrogate)],
        "empty is empty": ["chunk", str(empty)],
        "broken.jsonl, line 2: not JSON": ["chunk", str(broken), "-o", str(tmp_path / "out")],
        "gone does not exist": ["chunk", str(tmp_path / "gone")],
        "nothing holds no documents": ["chunk", str(nothing)],
        "two documents have the id '.*text.txt': give each file once": [
            "chunk",
            str(text),
            str(text),
            "-o",
            f"{text}.out",
        ],
        "unknown strategy 'recursiv': chunkcore list strategies shows all .*did you mean 'recursive'": [
            "chunk",
            str(text),
            "-s",
            "recursiv",
        ],
        "size is at least 1 token, got 0": ["chunk", str(text), "-s", "fixed_token:size=0"],
        "recursive has no option 'sise'": ["chunk", str(text), "-s", "recursive:sise=3"],
        "nothing: is a folder: name a file in it": ["chunk", str(text), "-o", str(nothing)],
        "text.txt.*: (Not a directory|File exists)": ["chunk", str(text), "-o", str(text / "out")],
        "Missing argument 'FILES'; see chunkcore chunk --help": ["chunk"],
        "No such option:? '?--sise": ["chunk", str(text), "--sise", "3"],
        "Invalid value for '--workers': .*; see chunkcore chunk --help": ["chunk", str(text), "--workers", "0"],
        "No such command 'chunks'": ["chunks"],
        r"Got unexpected extra argument.*: expected DOCS once.*; see chunkcore compare --help": [
            "compare",
            str(text),
            str(text),
        ],
        "No such command 'verifi'. Did you mean 'verify'\\? See chunkcore datasets --help": ["datasets", "verifi"],
        "'lochmore' is neither a shipped collection \\(lochmere\\) nor a file or folder": [
            "datasets",
            "verify",
            "lochmore",
        ],
        "no collection named 'x' ships": ["datasets", "path", "x"],
        "there are no questions for .*text.txt: put a questions.jsonl": ["datasets", "verify", str(text)],
        "gone.jsonl is no file": ["datasets", "verify", str(text), "--questions", str(tmp_path / "gone.jsonl")],
        "--k: expected a whole number from 1 to 999,999,999, .*, got '0'": ["compare", "--k", "0"],
        '--k: expected .* "min", .* like "4096tok", got \'max\'': ["compare", "--k", "max"],
        "--k: expected a whole number .*, got '9999": ["compare", "--k", "9" * 5000],
        "Recall needs k, a whole number from 1 .* got k='9999": [
            "compare",
            "--measure",
            "Recall@" + "9" * 5000,
        ],
        "unknown measure 'Recal'": ["compare", "--measure", "Recal@5"],
        "'recall at 5' is no measure": ["compare", "--measure", "recall at 5"],
        "q.jsonl was given without documents": ["compare", "--questions", "q.jsonl"],
        "no collection named 'x' ships with the package": ["compare", "--dataset", "x"],
        "there are no questions for .*or give its path; chunkcore questions label .*text.txt writes one": [
            "compare",
            "--docs",
            str(text),
        ],
        "the chunkers 'recursive:size=200' and 'recursive:size=200' are the same": [
            "compare",
            "-s",
            "recursive",
            "-s",
            "recursive:size=200",
        ],
        "text.txt: is a file: name a folder": ["compare", "-o", str(text / "out")],
        "a bracket is not closed in the strategy": ["compare", "-s", "recursive:separators=[1"],
        "Invalid value for '--resamples'": ["compare", "--resamples", "ten"],
        "by is auto, question or document, got 'page'": ["compare", "--by", "page"],
    }


@pytest.mark.parametrize("number", range(36))
def test_bad_input_ends_in_one_sentence_and_exit_code_2(number, tmp_path, capfd, fake):
    cases = list(_bad(tmp_path).items())
    assert len(cases) == 36
    sentence, arguments = cases[number]
    assert main(arguments) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("chunkcore: ")
    assert err.count("\n") == 1 + ("NOT YOUR DOCUMENTS" in err) + ("keeps what is done" in err)
    with pytest.raises(AssertionError, match=sentence):
        raise AssertionError(err)


def test_a_hostile_file_name_cannot_steer_the_terminal(tmp_path, capfd):
    assert main(["chunk", str(tmp_path / "a\x1b[31m\nb\u202e")]) == 2
    err = capfd.readouterr().err
    assert "a␛[31m b\\u202e" in err
    assert err.count("\n") == 1


def test_a_model_that_fails_is_one_sentence_too(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(chunkcore.models, "get_embedder", lambda name: NanEmbedder())
    assert main(["compare", "--no-cache", "-s", "recursive", "-r", "dense", "-o", str(tmp_path / "out")]) == 2
    err = capfd.readouterr().err
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith("chunkcore: ")
    assert not (tmp_path / "out").exists()


def test_what_is_not_installed_is_told_before_any_work(tmp_path, capfd, fake, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert main(["compare", "-o", str(tmp_path / "out")]) == 2
    assert 'pip install "chunkadapters[report]"' in capfd.readouterr().err
    assert fake.calls == 0


def test_an_interruption_is_answered_with_130_and_leaves_nothing(docs, tmp_path, capfd, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Chunker, "chunks_per_document", stop)
    assert main(["chunk", str(docs), "-o", str(tmp_path / "out.jsonl")]) == 130
    assert capfd.readouterr().err == "chunkcore: stopped before the end; nothing half-written was left behind\n"
    assert [path.name for path in tmp_path.iterdir()] == ["docs"]


# ---- as a process


def _process(*arguments: str, **options) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, timeout=200, **options)


def test_the_module_is_the_command_and_a_reader_that_stops_is_no_error(docs):
    for _ in range(3):
        (docs / "fox.txt").write_bytes((docs / "fox.txt").read_bytes() * 4)
    command = f'"{sys.executable}" -m chunkcore chunk "{docs / "fox.txt"}" -s fixed_token:size=9 | head -n 1'
    done = subprocess.run(command, shell=True, capture_output=True, timeout=200)
    assert json.loads(done.stdout)["index"] == 0
    assert done.stderr == b""


@pytest.mark.skipif(sys.platform == "win32", reason="pipes report their end otherwise there")
@pytest.mark.parametrize(
    "command", [["datasets", "list"], ["chunk", "fox.txt", "-s", "fixed_token:size=9"], ["chunk", "deep/dog.md"]]
)
def test_a_reader_that_was_never_there_is_no_error_either(docs, command):
    (docs / "fox.txt").write_bytes((docs / "fox.txt").read_bytes() * 50)
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "chunkcore", *command], stdout=writer, stderr=subprocess.PIPE, timeout=200, cwd=docs
    )
    os.close(writer)
    assert done.stderr == b""
    assert done.returncode == 1


def test_importing_the_command_line_imports_nothing_heavy():
    code = (
        "import sys, chunkcore.cli; "
        "print([m for m in ('rich', 'jinja2', 'torch', 'openvino', 'transformers') if m in sys.modules])"
    )
    assert _process("-c", code).stdout.strip() == b"[]"


def test_a_terminal_that_knows_only_ascii_gets_escapes(tmp_path):
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C.UTF-8"}
    done = _process("-m", "chunkcore", "chunk", str(tmp_path / "größe"), env=environment)
    assert done.returncode == 2
    assert b"gr\\xf6" in done.stderr
    assert b"Traceback" not in done.stderr


# ---- datasets, strategies, help


def test_the_shipped_collection_is_listed_found_and_sound(capfd):
    assert main(["datasets", "list"]) == 0
    assert capfd.readouterr().out.startswith("lochmere  12 invented documents")
    assert main(["datasets", "path"]) == 0
    assert Path(capfd.readouterr().out.strip()) == dataset_path("lochmere")
    assert main(["datasets", "verify"]) == 0
    assert "12 documents, 90 questions" in capfd.readouterr().out


def test_verify_lists_each_problem_and_exits_with_1(docs, questions, capfd):
    assert main(["datasets", "verify", str(docs), "--questions", str(questions)]) == 1
    first, last = capfd.readouterr().out.splitlines()
    assert first.startswith("many: line 3: ")
    assert "60 times" in first
    assert last.endswith("2 documents, 2 questions, 2 pieces of evidence where they say; 1 question with a problem")


def test_every_strategy_is_listed_with_its_options(capfd):
    assert main(["list", "strategies"]) == 0
    out = capfd.readouterr().out
    assert len(strategies) >= 3
    for name, cls in strategies.items():
        section = out[out.index(f"{name} ") :]
        for option in cls.option_names():
            assert f"  {option} = " in section


@pytest.mark.parametrize(
    "command", [["chunk"], ["score"], ["tune"], ["list"], ["datasets"], ["datasets", "verify"], []]
)
def test_help_is_given_for_every_command(command, capfd):
    assert main([*command, "--help"]) == 0
    out = capfd.readouterr().out
    assert "Usage: chunkcore" in out
    if command in (["chunk"], ["score"], ["tune"], ["datasets", "verify"]):
        assert "Example: chunkcore " in out
    if command == ["chunk"]:
        assert "text[start:end]" in out
        assert str(Path.home()) not in out
        assert all(f'"{key}"' in out for key in ("context", "segments", "derived"))


def every_command(command: object, *names: str) -> Iterator[tuple[str, ...]]:
    yield names
    for name, below in getattr(command, "commands", {}).items():
        yield from every_command(below, *names, name)


@pytest.mark.parametrize(("columns", "most", "of_compare"), [(100, 46, 70), (80, 55, 82)])
@pytest.mark.parametrize("command", [*every_command(typer.main.get_command(app))], ids=" ".join)
def test_help_fits_a_screen_but_that_of_compare(command, columns, most, of_compare, capfd, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(typer.rich_utils, "MAX_WIDTH", columns)
    assert main([*command, "--help"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    assert len(lines) <= (of_compare if command == ("compare",) else most)


def test_guesses_are_answered_with_the_name_that_is_meant(docs, capfd):
    assert main(["compare", str(docs), "--top-k", "3"]) == 2
    assert "No such option: --top-k. Did you mean -k?" in capfd.readouterr().err
    assert main(["list", "chunkers"]) == 0
    assert "recursive" in capfd.readouterr().out
    assert main(["compare", str(docs), "--docs", str(docs)]) == 2
    assert "the documents are named twice" in capfd.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_a_closed_output_is_no_error():
    command = f'"{sys.executable}" -m chunkcore list >&-'
    done = subprocess.run(command, shell=True, capture_output=True, timeout=200)
    assert (done.returncode, done.stderr) == (0, b"")


def test_what_searches_words_alone_needs_no_model(docs, questions, tmp_path, capfd, monkeypatch):
    def missing(name):
        raise AssertionError("a model was asked for")

    monkeypatch.setattr(chunkcore.models, "get_embedder", missing)
    given = ["-s", "sentence:size=50", "-s", "recursive", "-r", "bm25", "-r", "passages:lexical", "--resamples", "100"]
    assert main(["compare", str(docs), "--questions", str(questions), "-o", str(tmp_path / "out"), *given]) == 0
    names = {report.chunker for report in read_reports(tmp_path / "out" / "report.json")}
    assert names == {"sentence:size=50", "recursive:size=200"}
    assert "NOT YOUR DOCUMENTS" not in capfd.readouterr().err


def test_without_documents_the_first_line_says_what_is_scored(tmp_path, capfd):
    given = ["-s", "sentence", "-r", "bm25", "--resamples", "100", "-o", str(tmp_path / "out")]
    assert main(["compare", *given]) == 0
    assert capfd.readouterr().err.startswith("chunkcore: NOT YOUR DOCUMENTS: none are named, so the shipped collection")


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
def test_a_shell_leaves_the_pages_commands_as_they_are_written():
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    lines = [
        line
        for page in pages
        for line in re.findall(r"^    (chunkcore .*[{}*].*)$", page.read_text("utf-8"), re.MULTILINE)
    ]
    assert lines
    for line in lines:
        told = subprocess.run(["bash", "-c", f"printf '%s\\n' {line}"], capture_output=True, text=True, check=True)
        assert told.stdout.splitlines() == shlex.split(line)


def test_what_has_a_name_is_listed_by_kind(capfd):
    assert main(["list"]) == 0
    kinds = [line.removeprefix("chunkcore list ") for line in capfd.readouterr().out.splitlines()]
    assert {"strategies", "retrievers", "measures", "counters", "llms", "segmenters", "layouts"} <= {*kinds}
    for kind in kinds:
        assert main(["list", kind]) == 0
        assert all(line.startswith(" ") or " " in line for line in capfd.readouterr().out.splitlines()), "no title"
    assert main(["list", "stategies"]) == 2
    assert "did you mean 'strategies'?" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("begun", "expected"),
    [
        ("com", ["compare"]),
        ("compare -s cl", ["cluster_semantic"]),
        ("tune -r pass", ["passages"]),
        ("list strat", ["strategies"]),
    ],
)
def test_completion_is_installed_by_a_flag_and_completes_commands_and_names(begun, expected, capfd):
    assert main(["--help"]) == 0
    assert "--install-completion" in capfd.readouterr().out
    environment = {
        **os.environ,
        "_CHUNKCORE_COMPLETE": "complete_bash",
        "COMP_WORDS": f"chunkcore {begun}",
        "COMP_CWORD": str(len(begun.split())),
    }
    run = [sys.executable, "-m", "chunkcore"]
    found = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert found.stdout.split() == expected


def test_a_quiet_command_shows_no_progress(docs, questions, tmp_path, fake, capfd):
    given = [
        "compare",
        "--docs",
        str(docs),
        "--questions",
        str(questions),
        "-s",
        "recursive:size=50",
        "-k",
        "1",
        "-r",
        "dense",
    ]
    for quiet in ([], ["-q"]):
        assert main([*given, "-o", str(tmp_path / "out"), *quiet]) == 0
        assert bool(capfd.readouterr().err) != bool(quiet)
        assert not running.quiet.get(), "what comes after the command is as it was before"


def test_every_command_takes_quiet():
    from typer.main import get_command

    waiting, without = [("chunkcore", get_command(app))], []
    while waiting:
        name, command = waiting.pop()
        inner = getattr(command, "commands", {})
        waiting += [(f"{name} {each}", inner[each]) for each in inner]
        if not inner and not any("-q" in parameter.opts for parameter in command.params):
            without.append(name)
    assert without == []


# ---- compare


def test_the_default_strategies_can_all_be_built():
    assert len({get_chunker(spec) for spec in DEFAULT_CHUNKERS}) == 5


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="their cache folders have other names")
def test_the_cache_is_in_the_users_cache_folder(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert default_cache() == Path("/somewhere/chunkcore/cache.sqlite")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/a")
    assert default_cache() == Path("/home/a/.cache/chunkcore/cache.sqlite")


SPECS = ("recursive:size=200", "fixed_token:size=30", "cluster_semantic:size=100")


def _compare(docs: Path, questions: Path, output: Path, *more: str) -> int:
    given = [argument for spec in SPECS for argument in ("-s", spec)]
    paths = [str(docs), "--questions", str(questions), "-o", str(output), "-r", "dense", "--no-behind"]
    return main(["compare", *paths, *given, "--resamples", "200", *more])


def test_compare_prints_table_and_verdict_and_last_the_reports_path(docs, questions, tmp_path, capfd, fake):
    assert _compare(docs, questions, tmp_path / "out", "--no-cache") == 0
    out, err = capfd.readouterr()
    html = tmp_path / "out" / "report.html"
    assert out.splitlines()[-1] == str(html)
    assert html.is_file()
    for text in (*SPECS, "Scores at 1,000 tokens", "1 question is left out", "Recall"):
        assert text in "".join(out.replace("\n   ", "").split("\n")) or text in out
    assert "search: 3 of 3" in err
    page = html.read_text("utf-8")
    assert "many" in page
    assert "cluster_semantic:counter=cl100k_base,size=100" in page


def test_an_image_among_the_documents_is_left_out_with_a_warning(docs, questions, tmp_path, capfd, fake):
    (docs / "deep" / "photo.jpg").write_bytes(b"\xff\xd8\xff\xe0\x00\x10JFIF")
    assert _compare(docs, questions, tmp_path / "out", "--no-cache") == 0
    err = capfd.readouterr().err
    assert err.startswith(f"chunkcore: warning: left out of {docs}: deep/photo.jpg")
    assert main(["chunk", str(docs)]) == 0
    out, err = capfd.readouterr()
    assert {line["document_id"] for line in lines_of(out)} == {"fox.txt", "deep/dog.md"}
    assert "deep/photo.jpg" in err


def test_the_report_of_an_earlier_run_is_no_document(docs, questions, tmp_path, capfd, fake):
    for _ in range(2):
        assert _compare(docs, questions, docs / "out", "--no-cache") == 0
        page = (docs / "out" / "report.html").read_text("utf-8")
        assert "<dt>Documents</dt><dd><bdi>2</bdi></dd>" in page
        assert {each.name for each in (docs / "out").iterdir()} == set(REPORT_NAMES)


def test_reports_are_named_as_the_strategies_were_asked_for(docs, questions, tmp_path, capfd, fake):
    assert _compare(docs, questions, tmp_path / "out", "--no-cache", "-k", "2", "--measure", "IoU@3") == 0
    reports = read_reports(tmp_path / "out" / "report.json")
    assert {report.name for report in reports} == set(SPECS)
    assert {measure.k for report in reports for measure in report.scores} == {2, 3, None}
    data = json.loads((tmp_path / "out" / "report.json").read_text())
    assert data["verdict"]["measure"] == "IoU@3"
    assert data["problems"][0]["question"] == "many"
    assert data["verdict"]["resamples"] == 200


def test_documents_are_resampled_and_small_differences_pass_where_asked_for(docs, questions, tmp_path, capfd, fake):
    given = ["--by", "document", "--margin", "5", "--no-cache", "--resamples", "200", "-r", "dense", "--no-behind"]
    specs = [argument for spec in SPECS for argument in ("-s", spec)]
    assert main(["compare", *specs, "-o", str(tmp_path / "out"), *given]) == 0
    verdict = json.loads((tmp_path / "out" / "report.json").read_text())["verdict"]
    assert (verdict["resampled"], verdict["margin"]) == ("documents", 0.05)
    assert set(verdict["firsts"]) == set(SPECS)
    assert all(0 < each["p_value"] <= each["adjusted_p"] <= 1 for each in verdict["differences"])
    assert "documents, which were resampled whole" in verdict["text"]
    assert _compare(docs, questions, tmp_path / "one", "--by", "document") == 2
    assert "by document needs questions about two documents or more" in capfd.readouterr().err
    assert "≈ where it is surely less than 5 points" in (tmp_path / "out" / "report.md").read_text("utf-8")


def test_scores_count_the_tokens_asked_for(docs, questions, tmp_path, capfd, fake):
    retrieved = []
    for counter in ("cl100k_base", "characters"):
        assert _compare(docs, questions, tmp_path / counter, "--no-cache", "--counter", counter) == 0
        retrieved.append(sum(each.mean_tokens(5) for each in read_reports(tmp_path / counter / "report.json")))
        assert f"<dd><bdi>{counter}</bdi></dd>" in (tmp_path / counter / "report.html").read_text("utf-8")
    assert retrieved[1] > 1.5 * retrieved[0]


def test_a_log_has_a_line_now_and_then(monkeypatch):
    seconds = iter([0.0, 1.0, 6.0, 7.0, 8.0])
    monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    log = io.StringIO()
    with reporting(log) as progress:
        for done in (0, 100, 1000, 1500, 2000):
            progress("embed", done, 2000)
    assert log.getvalue() == "embed: 0 of 2,000\nembed: 1,000 of 2,000\nembed: 2,000 of 2,000\n"


def test_a_strategy_that_names_the_default_model_keeps_it_under_another(docs, questions, tmp_path, capfd, monkeypatch):
    models = {name: FakeEmbedder(name=name) for name in ("all-MiniLM-L6-v2", "other")}
    monkeypatch.setattr(chunkcore.models, "get_embedder", models.__getitem__)
    named = "cluster_semantic:size=100, embedder = all-MiniLM-L6-v2"
    assert _compare(docs, questions, tmp_path / "out", "--no-cache", "--embedder", "other", "-s", named) == 0
    assert models["all-MiniLM-L6-v2"].calls > 0, "its pieces"
    assert not {"Who barks?", "Which colour is the dog?"} & set(models["all-MiniLM-L6-v2"].texts)
    assert "Which colour is the dog?" in models["other"].texts


def test_a_second_run_embeds_nothing_and_tells_the_same(docs, questions, tmp_path, capfd, fake):
    told = []
    for name in ("a", "b"):
        before = len(fake.texts)
        assert _compare(docs, questions, tmp_path / name, "--cache", str(tmp_path / "c.sqlite")) == 0
        told.append((len(fake.texts) - before, (tmp_path / name / "scores.csv").read_text()))
    assert told[0][0] > 0
    assert told[1][0] == 0
    assert told[0][1] == told[1][1]


def test_a_damaged_cache_is_one_sentence_of_warning(docs, questions, tmp_path, capfd, fake):
    # SQLite's header with the number that says that it is our cache, and nothing that could be read.
    (tmp_path / "c.sqlite").write_bytes(b"SQLite format 3\0" + bytes(52) + b"chkc" + bytes(5000))
    assert _compare(docs, questions, tmp_path / "out", "--cache", str(tmp_path / "c.sqlite")) == 0
    err = capfd.readouterr().err
    (warning,) = [line for line in err.splitlines() if "c.sqlite" in line]
    assert warning.startswith("chunkcore: warning: ")
    assert ".py:" not in err


def test_a_file_of_the_users_is_refused_as_cache_and_left_alone(docs, questions, tmp_path, capfd, fake):
    (tmp_path / "notes.txt").write_text("mine")
    assert _compare(docs, questions, tmp_path / "out", "--cache", str(tmp_path / "notes.txt")) == 2
    err = capfd.readouterr().err
    assert err.startswith("chunkcore: ")
    assert "notes.txt' is no cache and was left as it is" in err
    assert err.count("\n") == 1
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_without_a_cache_none_is_written(docs, questions, tmp_path, capfd, fake):
    assert _compare(docs, questions, tmp_path / "out", "--no-cache") == 0
    assert not (tmp_path / "cache").exists()


def test_equal_seeds_give_equal_reports(docs, questions, tmp_path, capfd, fake):
    texts = []
    for name, seed in (("a", "3"), ("b", "3")):
        assert _compare(docs, questions, tmp_path / name, "--no-cache", "--seed", seed) == 0
        data = json.loads((tmp_path / name / "report.json").read_text())
        data.pop("checksum", None)  # of the seconds, too
        for report in data["reports"]:
            report.pop("seconds")
            report["cost"].pop("seconds")
        texts.append(data)
    assert texts[0] == texts[1]
    assert texts[0]["verdict"]["seed"] == 3


def test_the_version_is_told(capfd):
    assert main(["--version"]) == 0
    assert capfd.readouterr().out == f"chunkcore {version('chunkadapters')}\n"
    assert main(["chunk", "-h"]) == 0
