"""`chunkcore search`: passages of files, from an index that is kept, updated by content, and not trusted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock, patch

import pytest
from chunkcore.cli import main
from chunkcore.cli.options import default_cache
from chunkcore.reading import load_documents, opening, read_file
from chunkcore.retrieval import WindowIndex, load_index
from chunkcore.retrieval.saved import read_manifest
from chunkcore.scale import folder_index
from chunkcore.scale.folder_index import index_files, open_index
from chunkcore.tokens import get_counter

from tests.files import lines_of, pdf_bytes

MILL = "The mill on the Orle was built in 1831. It burned down twice.\n\nAda Thorn closed the mill in 1973.\n"
FERRY = "# Ferry\n\nThe ferry to Saltholm leaves at noon.\nDogs travel free on the ferry.\n"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return default_cache().parent / "search"


@pytest.fixture
def docs(tmp_path) -> Path:
    folder = tmp_path / "docs"
    (folder / "deep").mkdir(parents=True)
    (folder / "mill.txt").write_text(MILL)
    (folder / "deep" / "ferry.md").write_text(FERRY)
    (folder / "crows.txt").write_text("Crows sing. " * 200)
    return folder


def test_a_folder_with_a_manifest_of_another_program_is_no_index(docs, capfd):
    (docs / "manifest.json").write_text('{"name": "A web page of the ferry"}')
    assert main(["search", str(docs), "ferry", "--json"]) == 0
    assert rows(capfd)


def rows(capfd) -> list[dict]:
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


def test_html_is_found_by_its_words_not_by_its_tags_and_keeps_its_places(docs, capfd, monkeypatch):
    page = "<div class='wrap'>\n \n<p>The tariff is two <b>crowns</b>, if 3 < 4.</p></div>"
    (docs / "tariff.html").write_text(page)
    assert main(["search", str(docs), "tariff crowns", "--json"]) == 0
    (start, end), *_ = rows(capfd)[0]["spans"]
    assert "two <b>crowns</b>, if 3 < 4." in page[start:end]
    assert main(["search", str(docs), "div class wrap"]) == 0
    assert "nothing relevant in 4 documents" in capfd.readouterr().err
    monkeypatch.setattr(WindowIndex, "is_related", lambda self, question: False)  # as by vectors
    assert main(["search", str(docs), "tariff crowns"]) == 0
    shown = capfd.readouterr()
    assert "nothing relevant in 4 documents: these passages are no nearer" in " ".join(shown.err.split())
    assert "\nThe tariff is two crowns, if 3 < 4.\n" in shown.out
    assert main(["search", str(docs), "tariff crowns", "--max-tokens", "26"]) == 0
    assert capfd.readouterr().out.rstrip().endswith("4.")
    for setting, text in (("source", "<b>crowns</b>"), (None, "two crowns")):
        options = ["--html", setting] if setting else []
        assert main([*options, "search", str(docs), "tariff crowns"]) == 0
        assert text in capfd.readouterr().out


def test_passages_come_with_file_lines_and_exact_offsets(docs, capfd):
    assert main(["search", str(docs), "who closed the mill?", "--max-tokens", "40", "--json"]) == 0
    found = rows(capfd)
    assert found[0]["document_id"] == "mill.txt"
    assert found[0]["file"] == str(docs / "mill.txt")
    for row in found:
        text = Path(row["file"]).read_text()
        assert row["text"] == " ".join(text[start:end] for start, end in row["spans"])
        start, end = row["spans"][0][0], row["spans"][-1][1]
        assert row["lines"] == [text[:start].count("\n") + 1, text[: end - 1].count("\n") + 1]
        assert all(start <= a < b <= end for part in row["parts"] for a, b in part["spans"])
    assert sum(get_counter("cl100k_base").count(row["text"]) for row in found) <= 40


def test_of_a_pdf_the_pages_are_named(tmp_path, capfd):
    pytest.importorskip("pypdfium2")
    (tmp_path / "tea.pdf").write_bytes(pdf_bytes([lines_of("Black tea is hot."), lines_of("Green tea is not.")]))
    for _ in range(2):  # also from the index that is kept
        assert main(["search", str(tmp_path), "green", "--json"]) == 0
        assert [row["pages"] for row in rows(capfd)] == [[2]] or [[1, 2]]
    assert main(["search", str(tmp_path), "green"]) == 0
    assert "tea.pdf · pages 1-2 · characters 0-" in capfd.readouterr().out


def test_a_terminal_is_shown_the_place_and_the_passage(docs, capfd):
    assert main(["search", str(docs), "ferries to Saltholm", "-k", "1"]) == 0
    shown = capfd.readouterr()
    assert f"[1] {docs / 'deep' / 'ferry.md'} · lines 1-4 · characters 0-" in shown.out
    assert "The ferry to Saltholm leaves at noon." in shown.out
    assert "1 passage from 3 documents" in shown.err


def test_no_model_code_is_loaded(docs, tmp_path):
    program = (
        "import sys; from chunkcore.cli import main; "
        f"assert main(['search', {str(docs)!r}, 'ferry', '--json']) == 0; "
        "print([each for each in ('torch', 'sentence_transformers', 'openvino') if each in sys.modules])"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{docs}", " \u200b\ufeff"], "the question is empty: write what to look for"),
        (["{docs}/nothing", "ferry"], "does not exist: expected a folder of documents"),
        (["{docs}/empty", "ferry"], "holds no documents: expected files with text in it"),
        (["{docs}", "ferry", "--max-tokens", "0"], "'--max-tokens'"),
        (["{docs}", "ferry", "-k", "0"], "'-k'"),
        (["{docs}", "ferry", "--where", "level"], "--where takes KEY=VALUE, such as level=public; got 'level'"),
        (["-", "ferry"], "an index is made of files, not of standard input"),
        (["{docs}"], "Missing argument 'QUESTION'"),
        (["{docs}", "when", "does", "it", "leave?"], "(does it leave?): put the question in quotation marks"),
        (["ferry" * 99, "{docs}"], "ferry does not exist, and {docs} does: name the folder first, then the question"),
        (["{docs}/nothing", "ferry " * 2000], "does not exist: expected a folder of documents"),
    ],
)
def test_bad_input_gets_one_sentence(docs, capfd, arguments, message):
    (docs / "empty").mkdir()
    assert main(["search", *(each.format(docs=docs) for each in arguments)]) == 2
    shown = capfd.readouterr()
    assert shown.out == ""
    assert message.format(docs=docs) in shown.err
    assert len(shown.err.strip().splitlines()) == 1


def test_a_pipe_and_a_link_to_itself_get_one_sentence(docs, capfd):
    if os.name == "nt":
        pytest.skip("Windows has no named pipes, and links need a privilege")
    os.mkfifo(docs / "pipe")
    (docs / "circle").symlink_to("circle")
    for name, message in (("pipe", "not of standard input or a pipe"), ("circle", "does not exist")):
        assert main(["search", str(docs / name), "ferry"]) == 2
        assert message in (told := capfd.readouterr().err)
        assert len(told.splitlines()) == 1
    assert main(["search", str(docs), "ferry", "--json"]) == 0
    assert rows(capfd)


@pytest.fixture
def reads(monkeypatch) -> list[str]:
    """The files that were read."""
    names: list[str] = []

    def counted(path, name, *arguments, **options):
        names.append(name)
        return read_file(path, name, *arguments, **options)

    for module in (opening, folder_index):
        monkeypatch.setattr(module, "read_file", counted)
    return names


def asked(docs: Path, capfd, *more: str) -> list[dict]:
    assert main(["search", str(docs), "ferry", "--max-tokens", "2000", "--json", *more]) == 0
    return rows(capfd)


def test_only_what_changed_is_read_again(docs, cache, capfd, reads):
    (docs / "tea.txt").write_text("Tea is hot. " * 300)
    first = asked(docs, capfd)
    assert sorted(reads) == ["crows.txt", "deep/ferry.md", "mill.txt", "tea.txt"]
    reads.clear()
    (folder,) = cache.iterdir()
    assert os.name == "nt" or folder.stat().st_mode & 0o077 == 0, "it holds the texts"
    before = (folder / "manifest.json").stat().st_mtime_ns
    assert asked(docs, capfd) == first
    assert (reads, (folder / "manifest.json").stat().st_mtime_ns) == ([], before)
    assert asked(docs, capfd, "--verify") == first
    assert len(reads) == 4
    reads.clear()
    (docs / "mill.txt").write_text("The ferry stops at the mill.")
    (docs / "crows.txt").unlink()
    (docs / "another.txt").write_text("The ferry is late here.")
    assert {row["document_id"] for row in asked(docs, capfd)} == {"another.txt", "deep/ferry.md", "mill.txt"}
    assert sorted(reads) == ["another.txt", "mill.txt"]
    assert read_manifest(folder)["documents"] == 4
    (docs / "mill.txt").rename(docs / "windmill.txt")
    (docs / "deep" / "ferry.md").unlink()
    assert {row["document_id"] for row in asked(docs, capfd)} == {"another.txt", "windmill.txt"}
    for path in docs.rglob("*.txt"):
        path.unlink()
    assert main(["search", str(docs), "ferry"]) == 2
    assert "holds no documents" in capfd.readouterr().err


def test_a_changed_file_with_its_old_size_and_time_is_read_again(docs, capfd):
    file = docs / "deep" / "ferry.md"
    asked(docs, capfd)
    before = file.stat()
    file.write_text(FERRY.replace("noon", "nine"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "leaves at nine" in asked(docs, capfd)[0]["text"]


def test_a_damaged_index_is_said_and_made_anew(docs, cache, capfd):
    expected = asked(docs, capfd)
    names = [path.name for path in cache.rglob("*") if path.is_file() and path.stat().st_size]
    assert len(names) > 5
    for name in names:
        (file,) = cache.rglob(name)
        file.write_bytes(file.read_bytes()[:-1] + b"?")
        assert main(["search", str(docs), "ferry", "--max-tokens", "2000", "--json"]) == 0
        shown = capfd.readouterr()
        assert [json.loads(line) for line in shown.out.splitlines()] == expected
        assert "it is made anew" in " ".join(shown.err.split())
        assert asked(docs, capfd) == expected


def test_files_that_go_move_or_cannot_be_read_between_searches(docs, cache, capfd, monkeypatch):
    """What is left out is named with its reason at every search, warm ones too; the rest is answered."""
    (docs / "sheet.xyz").write_bytes(b"\x89\x00\xff")
    (docs / "mill.txt").write_text("The ferry stops at the mill.")
    for _ in range(2):
        assert {row["document_id"] for row in asked(docs, capfd)} == {"deep/ferry.md", "mill.txt"}
        main(["search", str(docs), "ferry"])
        assert "there is no reader for .xyz" in " ".join(capfd.readouterr().err.split())
    (docs / "mill.txt").rename(docs / "moved.txt")
    (docs / "crows.txt").unlink()
    assert {row["document_id"] for row in asked(docs, capfd)} == {"deep/ferry.md", "moved.txt"}
    scandir = os.scandir

    def refusing(path, *arguments):
        if not isinstance(path, int) and Path(path).name == "deep":
            raise PermissionError(13, "Permission denied", str(path))  # root may read everything
        return scandir(path, *arguments)

    monkeypatch.setattr(os, "scandir", refusing)
    for _ in range(2):
        assert main(["search", str(docs), "ferry", "--json"]) == 0
        shown = capfd.readouterr()
        assert {json.loads(line)["document_id"] for line in shown.out.splitlines()} == {"moved.txt"}
        assert "deep: cannot be read: Permission denied" in " ".join(shown.err.split())


def test_a_saved_index_is_made_updated_and_searched(docs, tmp_path, capfd, reads):
    folder = tmp_path / "docs.index"
    assert main(["index", str(docs), "-o", str(folder)]) == 0
    assert "3 documents" in capfd.readouterr().out
    direct = asked(docs, capfd)
    reads.clear()
    assert asked(folder, capfd) == direct
    assert reads == []
    docs.rename(tmp_path / "away")  # or the index is on another machine
    assert asked(folder, capfd) == direct
    (tmp_path / "away").rename(docs)
    (docs / "mill.txt").write_text("The ferry is a mill.")
    assert asked(folder, capfd) == direct
    assert main(["search", str(folder), "mill"]) == 0
    assert "1 document changed since the index was made, such as mill.txt" in capfd.readouterr().err
    reads.clear()
    opened = open_index(folder)
    for text, changed in (("", {"mill.txt"}), (MILL, set()), ("The ferry is a mill.", {"mill.txt"})):
        (docs / "mill.txt").write_text(text)
        for _ in range(2):
            assert opened.changed(["mill.txt", "crows.txt"]) == changed
    assert reads == ["mill.txt"] * 3
    (docs / "mill.txt").write_bytes(b"%PDF-1.7 that nobody can read")
    assert opened.changed(["mill.txt"]) == set()
    (docs / "mill.txt").write_text("The ferry is a mill.")
    if os.name != "nt":
        (tmp_path / "crows.txt").write_text("Crows sing. " * 200)
        (docs / "link.txt").symlink_to(tmp_path / "crows.txt")
        (docs / "link.txt").replace(docs / "crows.txt")
        assert opened.changed(["crows.txt"]) == {"crows.txt"}
    index_files(docs / "crows.txt", tmp_path / "crows.index")
    (docs / "crows.txt").unlink()  # or it is on another machine
    assert open_index(tmp_path / "crows.index").changed(["crows.txt"]) == set()
    reads.clear()
    assert main(["index", str(docs), "-o", str(folder)]) == 0
    assert reads == ["mill.txt"]
    capfd.readouterr()
    assert main(["index", str(docs), "-o", str(folder)]) == 0
    assert "nothing had changed" in capfd.readouterr().out
    assert load_index(folder).retrieve("ferry mill", max_tokens=20)[0].document_id == "mill.txt"
    assert main(["index", str(docs), "-o", str(docs)]) == 2
    assert "is no saved index and not empty" in capfd.readouterr().err
    assert main(["index", str(folder), "-o", str(tmp_path / "again")]) == 2
    assert "docs.index is a saved index: name the folder of its documents" in capfd.readouterr().err
    assert main(["search", str(folder), "ferry", "--dense"]) == 2
    assert "docs.index has no vectors for --dense" in capfd.readouterr().err
    shutil.rmtree(next(folder.glob("data-*")))
    assert main(["search", str(folder), "ferry"]) == 2
    assert "damaged; make it again" in capfd.readouterr().err


def test_where_compares_numbers_too_and_says_where_nothing_is_allowed(tmp_path, capfd):
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({"id": "a", "text": "The ferry leaves.", "n": 3, "open": True, "of": ["ä"]}))
    where = ["--where", "n=3", "--where", "open=true", "--where", 'of=["ä"]']
    assert main(["search", str(file), "ferry", *where, "--json"]) == 0
    assert rows(capfd)
    for wrong in ("n=4", "none=null"):
        assert main(["search", str(file), "ferry", "--where", wrong]) == 0
        assert f"no document has {wrong} in its metadata" in capfd.readouterr().err


def test_an_index_among_its_own_documents_is_none_of_them(docs, capfd):
    """Else its copies of the texts would be answered, of deleted documents, too."""
    for _ in range(3):
        main(["index", str(docs), "-o", str(docs / "sub" / "index")])
    assert {document.id for document in load_index(docs / "sub" / "index").corpus.documents} == {
        document.id for document in index_files(docs, None).index.corpus.documents
    }
    assert "manifest.json" not in {document.id.rpartition("/")[2] for document in load_documents(docs)}


def test_a_file_that_cannot_be_read_is_read_once_and_named_each_time(docs, tmp_path, reads):
    (docs / "bad.docx").write_bytes(b"PK\x03\x04 no archive")
    for expected in (["bad.docx"], []):
        reads.clear()
        with pytest.warns(UserWarning, match="bad.docx: is damaged or encrypted"):
            opened = index_files(docs, tmp_path / "i")
        assert [name for name in reads if name == "bad.docx"] == expected
        assert list(opened.unread) == ["bad.docx"]
    (docs / "bad.docx").rename(docs / "late.txt").write_text("A late text.")
    busy = patch.object(opening, "open_file", side_effect=OSError(5, "busy"))
    with busy, pytest.warns(UserWarning, match=r"late\.txt: cannot be read: busy"):
        index_files(docs, tmp_path / "i")
    assert "late.txt" in index_files(docs, tmp_path / "i").index.corpus.sources


def test_an_index_that_cannot_be_written_exits_1_and_stays_as_it_was(docs, tmp_path, capfd, monkeypatch):
    command = ["index", str(docs), "-o", str(tmp_path / "i")]
    assert main(command) == 0
    (docs / "new.txt").write_text("A new text.")
    monkeypatch.setattr("os.fsync", Mock(side_effect=OSError(28, "No space left on device")))
    capfd.readouterr()
    assert main(command) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert "No space left on device" in err
    assert "the index that was there is as it was" in err


def test_a_cache_folder_that_cannot_be_made_is_one_warning(docs, tmp_path, capfd, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "cache"))
    assert asked(docs, capfd)
