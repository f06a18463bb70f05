"""`chunkcore search`: passages of files, from an index that is kept, updated by content, and not trusted."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
import zlib
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkcore.chunkers import get_chunker
from chunkcore.cli import main
from chunkcore.cli.options import default_cache
from chunkcore.errors import DataError
from chunkcore.evaluation.benchmarks import load_documents
from chunkcore.reading import readers
from chunkcore.retrieval import Passages, Postings, chunk_corpus, word_keys
from chunkcore.scale import folder_index
from chunkcore.scale.folder_index import FolderIndex
from chunkcore.tokens import get_counter
from tests.files import lines_of, paragraph, pdf_bytes, write_docx, write_epub

CHUNKER = get_chunker("recursive:size=50")
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


def rows(capfd) -> list[dict]:
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


def test_html_is_found_by_its_words_not_by_its_tags_and_keeps_its_places(docs, capfd):
    page = "<div class='wrap'><p>The tariff is two <b>crowns</b>, if 3 < 4.</p></div>"
    (docs / "tariff.html").write_text(page)
    assert main(["search", str(docs), "tariff crowns", "--json"]) == 0
    (start, end), *_ = rows(capfd)[0]["spans"]
    assert "two <b>crowns</b>, if 3 < 4." in page[start:end]
    assert main(["search", str(docs), "div class wrap"]) == 0
    assert "none of 4 documents has a word" in capfd.readouterr().err


def test_a_file_that_becomes_html_by_its_name_is_counted_anew(docs, capfd):
    (docs / "tariff.txt").write_text("<div class='wrap'>The tariff.</div>")
    assert main(["search", str(docs), "div class wrap"]) == 0
    assert "tariff.txt" in capfd.readouterr().out
    (docs / "tariff.txt").rename(docs / "tariff.html")
    assert main(["search", str(docs), "div class wrap"]) == 0
    assert "none of 4 documents has a word" in capfd.readouterr().err


# --- what is printed ------------------------------------------------------------------------------------


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
        assert [row["pages"] for row in rows(capfd)] == [[1, 2]]
    assert main(["search", str(tmp_path), "green"]) == 0
    assert "tea.pdf · pages 1-2 · characters 0-" in capfd.readouterr().out


def test_white_space_is_shown_as_it_stands(tmp_path, capfd):
    (tmp_path / "a.py").write_text("def tea():\n    return 'hot'\n\x0b\tcups  9\n")
    assert main(["search", str(tmp_path / "a.py"), "tea"]) == 0
    assert "\n    return 'hot'\n" in (out := capfd.readouterr().out)
    assert "\x0b" not in out
    assert "\t" not in out


def test_a_terminal_is_shown_the_place_and_the_passage(docs, capfd):
    assert main(["search", str(docs), "ferries to Saltholm", "-k", "1"]) == 0
    shown = capfd.readouterr()
    assert f"[1] {docs / 'deep' / 'ferry.md'} · lines 1-4 · characters 0-" in shown.out
    assert "The ferry to Saltholm leaves at noon." in shown.out
    assert "1 passage from 3 documents" in shown.err


def test_words_of_one_family_are_found(docs, capfd):
    main(["search", str(docs), "travellers", "-k", "1", "--json"])
    assert rows(capfd)[0]["document_id"] == "deep/ferry.md"


def test_a_question_that_starts_with_a_title_is_asked_of_its_document(docs, capfd):
    (docs / "tide.md").write_text("# Tide\n\nThe ferry leaves at noon, the ferry leaves, the ferry leaves.\n")
    for _ in range(2):  # also from the index that is kept
        assert main(["search", str(docs), "Ferry: when does the ferry leave?", "--json"]) == 0
        assert {row["document_id"] for row in rows(capfd)} == {"deep/ferry.md"}
    assert main(["search", str(docs), "when does the ferry leave?", "--json"]) == 0
    assert {row["document_id"] for row in rows(capfd)} >= {"deep/ferry.md", "tide.md"}


def test_a_title_that_changes_without_the_text_is_known(tmp_path, capfd):
    for title, found in (("Old", {"a", "b"}), ("New", {"a"})):
        lines = [{"id": "a", "text": "A fox naps.", "metadata": {"title": title}}, {"id": "b", "text": "The fox eats."}]
        (tmp_path / "documents.jsonl").write_text("\n".join(map(json.dumps, lines)))
        assert main(["search", str(tmp_path), "New: is there a fox?", "--json"]) == 0
        assert {row["document_id"] for row in rows(capfd)} == found


def test_hostile_names_and_texts_are_shown_harmlessly(tmp_path, capfd):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "red\x1b[31m.txt").write_text("The ferry \x1b]0;title\x07 \u202eleaves [bold]now[/bold].")
    assert main(["search", str(folder), "ferry"]) == 0
    shown = capfd.readouterr().out
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "red␛[31m.txt" in shown
    assert "[bold]now[/bold]" in shown


def test_a_file_of_documents_is_searched(tmp_path, capfd):
    lines = [{"id": "a", "text": "A fox naps."}, {"id": "b", "text": "A crow sings.\nA heron waits."}]
    (tmp_path / "documents.jsonl").write_text("\n".join(map(json.dumps, lines)))
    for _ in range(2):
        assert main(["search", str(tmp_path), "heron", "--json"]) == 0
        assert rows(capfd)[0]["document_id"] == "b"
    assert main(["search", str(tmp_path / "documents.jsonl"), "heron"]) == 0
    assert "documents.jsonl · b · lines 1-2" in capfd.readouterr().out


def test_what_is_left_of_the_budget_is_not_filled_with_other_passages(docs, capfd):
    assert main(["search", str(docs), "Do dogs travel?", "--max-tokens", "2000", "--json"]) == 0
    assert {row["document_id"] for row in rows(capfd)} == {"deep/ferry.md"}


def test_a_question_without_a_known_word_finds_nothing(docs, capfd):
    assert main(["search", str(docs), "submarine", "--json"]) == 0
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "none of 3 documents has a word of the question: try other words, or --dense" in shown.err


def test_dense_search_finds_meanings(docs, capfd):
    pytest.importorskip("sentence_transformers", reason="the model needs sentence-transformers")
    assert main(["search", str(docs), "when does the boat depart", "--dense", "-k", "1", "--json"]) == 0
    assert rows(capfd)[0]["document_id"] == "deep/ferry.md"


def test_no_model_code_is_loaded(docs, tmp_path):
    program = (
        "import sys; from chunkcore.cli import main; "
        f"assert main(['search', {str(docs)!r}, 'ferry', '--json']) == 0; "
        "print([each for each in ('torch', 'sentence_transformers', 'openvino', 'bm25s') if each in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ}, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


# --- bad input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{docs}", " "], "the question is empty: write what to look for"),
        (["{docs}/nothing", "ferry"], "does not exist: expected a folder of documents"),
        (["{docs}/empty", "ferry"], "holds no documents: expected files with text in it"),
        (["{docs}", "ferry", "--max-tokens", "0"], "'--max-tokens'"),
        (["{docs}", "ferry", "-k", "0"], "'-k'"),
        (["{docs}", "ferry", "--counter", "nonsense"], "nonsense"),
        (["-", "ferry"], "search reads files, not standard input"),
        (["{docs}"], "Missing argument 'QUESTION'"),
        (["{docs}", "when", "does", "it", "leave?"], "(does it leave?): put the question in quotation marks"),
        (["ferry", "{docs}"], "ferry does not exist, and {docs} does: name the folder first, then the question"),
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
    for name, message in (("pipe", "not standard input or a pipe"), ("circle", "cannot be read: Too many levels")):
        assert main(["search", str(docs / name), "ferry"]) == 2
        assert message in (told := capfd.readouterr().err)
        assert len(told.splitlines()) == 1
    assert main(["search", str(docs), "ferry", "--json"]) == 0
    assert rows(capfd)
    assert main(["questions", "label", str(docs / "circle"), "--no-browser"]) == 2
    assert "circle" in capfd.readouterr().err


def test_files_without_text_are_left_out_and_said(docs, capfd):
    (docs / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    for told in (True, False):  # once
        assert main(["search", str(docs), "ferry", "--json"]) == 0
        shown = capfd.readouterr()
        assert shown.out
        assert ("empty or no text: picture.png" in shown.err) is told


def test_files_that_could_not_be_read_are_tried_and_told_each_time(docs, capfd):
    (docs / "broken.docx").write_bytes(b"PK\x03\x04 no archive")
    for _ in range(2):
        assert main(["search", str(docs), "ferry", "--json"]) == 0
        assert "broken.docx" in capfd.readouterr().err


# --- the kept index -------------------------------------------------------------------------------------


def test_the_index_is_kept_and_only_what_changed_is_read_again(docs, cache, capfd):
    main(["search", str(docs), "ferry", "--json"])
    first = rows(capfd)
    (file,) = cache.iterdir()
    before = file.stat().st_mtime_ns
    main(["search", str(docs), "ferry", "--json"])
    assert rows(capfd) == first
    assert file.stat().st_mtime_ns == before
    (docs / "mill.txt").write_text(MILL + "\nNow a ferry stops at the mill.\n")
    (docs / "crows.txt").unlink()
    (docs / "another.txt").write_text("No ferry here.")
    main(["search", str(docs), "ferry", "--json"])
    assert {row["document_id"] for row in rows(capfd)} == {"another.txt", "deep/ferry.md", "mill.txt"}
    assert FolderIndex.load(file).documents == 3


def test_nothing_is_kept_without_a_cache(docs, cache, capfd):
    assert main(["search", str(docs), "ferry", "--no-cache", "--json"]) == 0
    assert rows(capfd)
    assert not cache.exists()


def test_a_broken_index_is_told_and_made_anew(docs, cache, capfd):
    main(["search", str(docs), "ferry", "--json"])
    expected = rows(capfd)
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    changed = whole.replace(b"settings", b"sittings")
    for broken in (b"", b"PK nonsense", whole[: len(whole) // 2], changed):
        file.write_bytes(broken)
        assert main(["search", str(docs), "ferry", "--json"]) == 0
        shown = capfd.readouterr()
        assert [json.loads(line) for line in shown.out.splitlines()] == expected
        assert "is damaged, or no index of a folder" in shown.err
        assert "it is made anew" in shown.err
    assert file.read_bytes() == whole


def test_an_index_of_another_version_is_told_apart_from_a_damaged_one(docs, cache, capfd):
    main(["search", str(docs), "ferry"])
    (file,) = cache.iterdir()
    found = dict(np.load(file))
    for told in ({"format": np.frombuffer(b"chunkcore folder index 2", dtype=np.uint8)}, {}):
        np.savez(file, **{name: each for name, each in found.items() if name != "format"}, **told)
        capfd.readouterr()
        assert main(["search", str(docs), "ferry"]) == 0
        shown = " ".join(capfd.readouterr().err.split())
        assert "is of another version, or no index of a folder; it is made anew" in shown
        assert "damaged" not in shown


def test_an_index_of_other_numbers_is_refused(docs, tmp_path):
    index = FolderIndex.update(docs, CHUNKER, "first5")
    file = tmp_path / "index.npz"
    index.save(file)
    with np.load(file) as arrays:
        found = {name: arrays[name] for name in arrays}
    far = found["units"].copy()
    far[0, 1] = 10**6
    table = json.loads(bytes(found["table"]))
    other = {**table, "settings": {}}
    row = {**table, "documents": [[1], *table["documents"][1:]]}
    changed = [
        {"units": far},
        {"units": found["units"].astype(np.float64)},
        {"texts": found["texts"] + 10**6},
        {"texts": found["texts"][::-1].copy()},
        {"begins": found["begins"][::-1].copy()},
        {"keys": found["keys"][::-1].copy()},
        {"counts": found["counts"] * 0},
        {"lengths": -found["lengths"]},
        {"units": np.array([{}], dtype=object)},
        *({"table": np.frombuffer(json.dumps(each).encode(), dtype=np.uint8)} for each in (other, row, [], {})),
    ]
    for each in changed:
        np.savez(file, **{**found, **each})
        with pytest.raises(DataError, match="is damaged, or no index of a folder"):
            FolderIndex.load(file)


def test_a_file_that_changes_with_its_size_and_time_is_read_again(docs, capfd):
    file = docs / "mill.txt"
    assert main(["search", str(docs), "mill", "--json"]) == 0
    told = file.stat()
    file.write_text(MILL.replace("1831", "1913"))
    os.utime(file, ns=(told.st_atime_ns, told.st_mtime_ns))
    capfd.readouterr()
    for _ in range(2):
        assert main(["search", str(docs), "mill", "--json"]) == 0
        assert "1913" in capfd.readouterr().out


def test_a_file_that_grows_while_it_is_read_is_left_out_and_read_the_next_time(docs, capfd):
    file = docs / "mill.txt"
    read_of = folder_index._read

    def grown(piece, texts):
        if piece.id == "mill.txt":
            file.write_text(file.read_text() + "More.\n")
        return read_of(piece, texts)

    with patch.object(folder_index, "_read", grown):
        assert main(["search", str(docs), "ferry mill", "--json"]) == 0
    shown = capfd.readouterr()
    assert "mill.txt: has changed while it was read" in " ".join(shown.err.split())
    assert "ferry.md" in shown.out
    assert main(["search", str(docs), "ferry mill", "--json"]) == 0
    assert "mill.txt" in capfd.readouterr().out


def test_a_file_that_changes_while_it_is_searched_is_told(docs):
    index = FolderIndex.update(docs, CHUNKER, "first5")
    (docs / "mill.txt").write_text("Another text. " * 9)
    with pytest.raises(DataError, match="has changed"):
        [document.text for document in index.corpus().documents]


texts = st.lists(st.text(alphabet="ab fox. \n\né東", max_size=80), min_size=1, max_size=4)


@pytest.mark.filterwarnings("ignore:.* left out of")
@settings(max_examples=25, deadline=None)
@given(texts, texts, st.sampled_from([1, 8_000_000]))
def test_an_updated_index_is_the_same_as_a_new_one(tmp_path_factory, first, second, batch):
    folder = tmp_path_factory.mktemp("docs")
    for number, text in enumerate(first):
        (folder / f"{number}.txt").write_text(text)
    if not any(text.strip() for text in first) or not any(text.strip() for text in second):
        return
    earlier = FolderIndex.update(folder, CHUNKER, "first5")
    earlier.save(folder.parent / "index.npz")
    for path in folder.iterdir():
        path.unlink()
    for number, text in enumerate(second, start=1):
        (folder / f"{number}.txt").write_text(text)
    with patch.object(folder_index, "_BATCH", batch):  # a file each, or all together
        updated = FolderIndex.update(folder, CHUNKER, "first5", FolderIndex.load(folder.parent / "index.npz"))
    new = FolderIndex.update(folder, CHUNKER, "first5")
    assert updated.documents == new.documents
    assert (updated._units == new._units).all()
    method = Passages(kinds=("lexical",), words="first5")
    for question in ("fox", "a b", "東", "é fox ab"):
        one, other = (method.index(each.corpus()).retrieve(question, max_tokens=60) for each in (updated, new))
        assert one == other


def test_several_processes_make_the_same_index(docs, monkeypatch):
    (docs / "again.txt").write_text(MILL)
    (docs / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    with pytest.warns(UserWarning, match=r"picture\.png"):
        one = FolderIndex.update(docs, CHUNKER, "first5")
    monkeypatch.setattr(folder_index, "_BATCH", 1)
    read: list[int] = []
    with pytest.warns(UserWarning, match=r"picture\.png"):
        several = FolderIndex.update(docs, CHUNKER, "first5", None, read.append, processes=2)
    assert several._entries == one._entries
    assert (several._units == one._units).all()
    assert [vars(several._postings)[name].tolist() for name in vars(one._postings)] == [
        each.tolist() for each in vars(one._postings).values()
    ]
    assert read == sorted(read)
    assert read[-1] == sum(path.stat().st_size for path in docs.rglob("*.*"))
    (docs / "mill.txt").write_text("The mill is a ferry now.")
    later = FolderIndex.update(docs, CHUNKER, "first5", several, processes=2)
    assert later.added == 1
    lines = docs / "documents.jsonl"
    lines.write_text('{"id": "a", "text": "The ferry leaves."}\n{"id": "b", "text"\n')
    with pytest.raises(DataError, match="line 2"):
        FolderIndex.update(lines, CHUNKER, "first5", processes=2)


def test_the_index_finds_what_a_corpus_of_the_same_chunks_finds(docs):
    corpus = chunk_corpus(load_documents(docs), CHUNKER)
    method = Passages(kinds=("lexical",), words="first5")
    index = FolderIndex.update(docs, CHUNKER, "first5")
    for question in ("mill", "the ferry closes at noon", "crows"):
        expected = method.index(corpus).retrieve(question, max_tokens=50)
        found = method.index(index.corpus()).retrieve(question, max_tokens=50)
        assert [(each.document_id, each.spans, each.score) for each in found] == [
            (each.document_id, each.spans, each.score) for each in expected
        ]


# --- the kept texts of converted files ------------------------------------------------------------------


@pytest.fixture
def converted(docs) -> Path:
    """The folder with a converted file of each kind, which all speak of tea."""
    pytest.importorskip("pypdfium2")
    tea = pdf_bytes([lines_of("Black tea is hot."), lines_of("Green tea\n\nis not, née.")])
    for name in ("tea.pdf", "no ending"):
        (docs / name).write_bytes(tea)
    write_docx(docs / "tea.docx", paragraph("Tea 東京", "berschrift1") + paragraph("White tea is warm."))
    write_epub(docs / "tea.epub", {"a.xhtml": "<html><body><h1>Tea</h1><p>Red tea.</p></body></html>"})
    (docs / "tea.eml").write_text("Subject: Tea\n\nAt four.")
    cell = {"cell_type": "markdown", "metadata": {}, "source": ["Brown tea."]}
    (docs / "tea.ipynb").write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return docs


@pytest.fixture
def reads(monkeypatch) -> Counter[str]:
    """How often the readers have read each file."""
    found: Counter[str] = Counter()

    def counting(read):
        def counted(self, path, name):
            found[name] += 1
            return read(self, path, name)

        return counted

    for reader in dict(readers.items()).values():
        monkeypatch.setattr(reader, "read", counting(reader.read))
    return found


def asked(docs: Path, capfd, *more: str) -> tuple[str, str]:
    assert main(["search", str(docs), "tea", "--max-tokens", "2000", "--json", *more]) == 0
    shown = capfd.readouterr()
    return shown.out, " ".join(shown.err.split())


def test_a_file_is_converted_once_until_it_changes(converted, capfd, reads, cache):
    once = dict.fromkeys(["tea.pdf", "no ending", "tea.docx", "tea.epub", "tea.eml", "tea.ipynb"], 1)
    first = asked(converted, capfd)
    assert {json.loads(line)["document_id"] for line in first[0].splitlines()} == set(once)
    assert reads == once
    assert asked(converted, capfd) == first
    assert main(["search", str(converted), "tea", "-k", "1"]) == 0
    assert reads == once
    (converted / "tea.pdf").write_bytes(pdf_bytes([lines_of("No coffee."), lines_of("Yellow tea is sour.")]))
    capfd.readouterr()
    assert '"pages": [1, 2], ' in (out := asked(converted, capfd)[0])
    assert "Yellow tea is sour." in out
    assert reads == once | {"tea.pdf": 2}
    assert len([*cache.glob("*/*")]) == 6
    (converted / "tea.eml").unlink()
    (converted / "no ending").unlink()
    asked(converted, capfd)
    assert len([*cache.glob("*/*")]) == 4


def test_a_file_of_plain_text_is_kept_nowhere_else(docs, cache, capfd):
    (docs / "documents").mkdir()
    (docs / "documents" / "a.csv").write_text("tea,4")
    asked(docs, capfd)
    row = {"id": "a", "text": "Tea at four.", "metadata": {"format": "markdown"}}
    (docs / "documents" / "documents.jsonl").write_text(json.dumps(row))
    asked(docs / "documents", capfd)
    assert not [*cache.glob("*/*")]


def test_without_a_cache_a_file_is_converted_once_too(converted, capfd, reads, cache, tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    assert asked(converted, capfd, "--no-cache") == asked(converted, capfd, "--no-cache")
    assert set(reads.values()) == {2}
    assert not cache.exists()
    assert not [*(tmp_path / "temporary").iterdir()]


def test_a_damaged_text_is_told_and_made_anew(converted, capfd, cache, reads):
    (converted / "no ending").unlink()  # else it shares a kept text
    first = asked(converted, capfd)
    kept = {file: file.read_bytes() for file in cache.glob("*/*")}
    others = dict(zip(kept, [*kept.values()][1:] + [*kept.values()][:1], strict=True))

    def changed(data: bytes) -> bytes:
        return zlib.compress(zlib.decompress(data).replace(b"ea", b"ae"))

    for damage in (
        lambda file: b"",
        lambda file: kept[file][:-20],
        lambda file: changed(kept[file]),
        lambda file: others[file],
        lambda file: zlib.compress(bytes(10**7)),
        lambda file: pickle.dumps(["tea", []]),
    ):
        for file in kept:
            file.write_bytes(damage(file))
        out, err = asked(converted, capfd)
        assert out == first[0]
        assert err.count("is damaged") == 5
        assert err.count("is read again") == 5
        assert {file: file.read_bytes() for file in cache.glob("*/*")} == kept
        assert asked(converted, capfd) == first
    for file in kept:
        file.unlink()
    assert asked(converted, capfd) == first
    assert set(reads.values()) == {8}


def test_of_the_kept_texts_only_their_own_files_are_deleted(converted, capfd, cache):
    asked(converted, capfd)
    (folder,) = (each for each in cache.iterdir() if each.is_dir())
    (folder / "notes.txt").write_text("mine")
    (folder / ("0" * 32)).mkdir()
    (converted / "tea.eml").unlink()
    assert "warning" not in asked(converted, capfd)[1]
    assert {"notes.txt", "0" * 32} < {each.name for each in folder.iterdir()}
    assert len([*folder.iterdir()]) == 4 + 2  # the PDF is there twice


def test_other_people_cannot_list_the_kept_texts(converted, capfd, cache):
    if os.name == "nt":
        pytest.skip("Windows has no such modes")
    asked(converted, capfd)
    (folder,) = (each for each in cache.iterdir() if each.is_dir())
    assert folder.stat().st_mode & 0o077 == 0


# --- postings -------------------------------------------------------------------------------------------

some = st.lists(st.lists(st.sampled_from(["fox", "foxes", "a", "b", "東京"]), max_size=6).map(" ".join), max_size=6)


def counted(postings: Postings, word: str) -> list[tuple[int, int]]:
    (number,) = postings.find([word]).tolist()
    if number < 0:
        return []
    own = slice(*postings.begins[number : number + 2])
    return list(zip(postings.texts[own].tolist(), postings.counts[own].tolist(), strict=True))


@given(some, st.sampled_from(["whole", "first3"]))
def test_postings_count_each_word_of_each_text(texts, form):
    postings = Postings.of(texts, form)
    keys = [word_keys(text, form) for text in texts]
    assert postings.lengths.tolist() == [len(own) for own in keys]
    for word in {word for own in keys for word in own} | {"cow"}:
        expected = [(number, own.count(word)) for number, own in enumerate(keys) if word in own]
        assert counted(postings, word) == expected


@given(some, some, st.randoms(use_true_random=False))
def test_joined_postings_are_those_of_the_texts_together(first, second, random):
    order = list(range(len(first) + len(second)))
    random.shuffle(order)
    kept, added = [n if random.random() < 0.7 else -1 for n in order[: len(first)]], order[len(first) :]
    texts = {n: text for n, text in zip([*kept, *added], [*first, *second], strict=True) if n >= 0}
    numbers = {number: place for place, number in enumerate(sorted(texts))}
    expected = Postings.of([texts[number] for number in numbers])
    maps = [np.array([numbers.get(n, -1) for n in own], dtype=np.int64) for own in (kept, added)]
    joined = Postings.joined([(Postings.of(first), maps[0]), (Postings.of(second), maps[1])], len(numbers))
    assert joined.lengths.tolist() == expected.lengths.tolist()
    for word in ("fox", "foxes", "a", "b", "東京"):
        assert counted(joined, word) == counted(expected, word)
