"""A saved index: answers as the one that was saved, is replaced in one step, refused when damaged; embeds changes."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pickle
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from chunkcore import DataError, Document, Index, OptionError, chunk_corpus, get_chunker, get_retriever
from chunkcore.retrieval import ChunkedCorpus, TextVectors, load_index
from chunkcore.retrieval.saved import read_manifest
from chunkcore.scale import folder_index
from chunkcore.scale.folder_index import index_files, open_index
from chunkcore.text import Chunk, Mark, Span
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import FakeEmbedder

RETRIEVERS = ["bm25", "hybrid", "passages", "passages:lexical", "dense+window:1"]
PUBLIC, PAGES = {"level": "public"}, (Mark("page", Span(0, 15), {"number": 1}),)
DOCUMENTS = [
    Document("fox.md", "The fox naps at noon. It hunts at night.\n\nThe hen sits. \ud800 Kōen 東京都 tower.", PUBLIC),
    Document("crow.md", "The crow sings. A crow hunts mice at noon.", {"level": "secret"}, PAGES),
    Document("rain.md", "Rain falls on the tower. " * 6),
]
QUESTIONS = ["Who hunts at night?", "tower", "Where does the crow sing at noon?", "nothing of this"]


def made(retriever: str, documents: list[Document], model: Any = None) -> Index:
    corpus = chunk_corpus(documents, get_chunker("sentence:size=8,counter=words"))
    return get_retriever(retriever).index(corpus, TextVectors(model or FakeEmbedder()))


def answers(index: Index) -> list[list[tuple[object, ...]]]:
    """Scores are rounded: with NumPy 1 the last bits of a product depend on where its rows lie in memory."""
    found = [index.retrieve(question, k=5) for question in QUESTIONS]
    return [[(hit.id, hit.document_id, hit.spans, hit.text, round(hit.score, 5)) for hit in hits] for hits in found]


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_a_loaded_index_answers_as_the_saved_one(retriever: str, tmp_path: Path) -> None:
    index = made(retriever, DOCUMENTS)
    loaded = load_index(index.save(tmp_path / "index"), embedder=FakeEmbedder())
    assert answers(loaded) == answers(index)
    assert [document == other for document, other in zip(loaded.corpus.documents, DOCUMENTS, strict=True)] == [True] * 3
    assert list(loaded.corpus) == list(index.corpus)
    assert answers(pickle.loads(pickle.dumps(loaded))) == answers(index)
    assert answers(load_index(loaded.save(tmp_path / "again"), embedder=FakeEmbedder())) == answers(index)
    empty = load_index(made(retriever, [Document("a", " ")]).save(tmp_path / "empty"), embedder=FakeEmbedder())
    assert answers(empty) == [[]] * len(QUESTIONS)


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_an_update_is_the_index_of_the_documents_as_they_are(retriever: str, tmp_path: Path) -> None:
    model = FakeEmbedder()
    index = load_index(made(retriever, DOCUMENTS).save(tmp_path / "index"), embedder=model)
    changed = Document("crow.md", "The crow sleeps. It hunts no more.")
    new = Document("owl.md", "An owl hunts at night.")
    answers(index)
    model.texts.clear()
    later = index.update([changed, new, DOCUMENTS[0]])
    as_made = made(retriever, [DOCUMENTS[0], changed, DOCUMENTS[2], new])
    if index.method.embeds:
        assert sorted(model.texts) == ["An owl hunts at night.", "The crow sleeps. It hunts no more."]
    assert answers(later) == answers(as_made)
    assert list(later.corpus) == list(as_made.corpus)
    assert answers(index) == answers(made(retriever, DOCUMENTS))  # readers of the old one are not disturbed
    saved = load_index(later.save(tmp_path / "index"), embedder=FakeEmbedder())
    assert answers(saved) == answers(as_made)
    assert answers(later.delete(["owl.md", "fox.md"])) == answers(made(retriever, [changed, DOCUMENTS[2]]))
    with pytest.warns(UserWarning, match="save what update or delete returned"):
        index.save(tmp_path / "other")


@given(*[st.dictionaries(st.sampled_from("abcd"), st.text("hunt tower. \né東", max_size=80))] * 2)
def test_any_update_answers_as_a_new_index(before: dict[str, str], after: dict[str, str]) -> None:
    documents = [[Document(name, text) for name, text in texts.items()] for texts in (before, {**before, **after})]
    index = made("passages:lexical", documents[0])
    later = index.update([Document(name, text) for name, text in after.items()])
    assert answers(later) == answers(made("passages:lexical", documents[1]))


def test_an_id_is_one_whether_its_letters_are_composed_or_not() -> None:
    composed, loose = (unicodedata.normalize(form, "Prüfbericht.md") for form in ("NFC", "NFD"))
    index = get_retriever("bm25").index(chunk_corpus([Document(loose, "Tea is hot.")], "sentence"))
    assert index.update([Document(composed, "Tea is hot.")]) is index
    (document,) = index.update([Document(composed, "Tea is cold.")]).corpus.documents
    assert (document.id, document.text) == (loose, "Tea is cold.")
    assert not index.delete([composed]).corpus.documents
    (document,) = index.update([Document(composed, "Tea is cold.")], without=[loose]).corpus.documents  # renamed
    assert document.id == composed


def test_equal_hits_come_in_the_order_of_the_documents_after_an_update_too() -> None:
    documents = [Document("a", "Tea."), Document("b", ""), Document("c", "Tea."), Document("d", "Tea.")]
    index = get_retriever("bm25").index(chunk_corpus(documents, "sentence"))
    later = index.update([Document("e", "Tea."), Document("c", "Tea!"), Document("b", "Tea."), Document("a", "Tea?")])
    assert [hit.document_id for hit in later.retrieve("tea")] == list("abcde")


@pytest.mark.parametrize(("gone", "chunker"), [([], "sentence"), (["a"], "fixed_token")])
def test_chunks_of_another_chunker_keep_its_ids(gone: list[str], chunker: str, tmp_path: Path) -> None:
    index = get_retriever("bm25").index(chunk_corpus([Document("a", "A fox naps.")], "sentence:size=8"))
    new = Document("b", "A crow sings. It hunts.")
    later = index.update([new], chunker="fixed_token:size=50", without=gone)
    for corpus in (later.corpus, load_index(later.save(tmp_path / "i")).corpus):
        assert [chunk for chunk in corpus if chunk.document_id == "b"] == get_chunker("fixed_token:size=50").chunk(new)
        assert corpus.chunker is not None
        assert corpus.chunker.spec.startswith(chunker)


def test_what_is_loaded_has_not_changed_whatever_a_marks_data_is(tmp_path: Path) -> None:
    document = Document("a", "A fox.", marks=(Mark("page", Span(0, 5), {"box": (1, 2), 3: "x"}),))  # type: ignore[dict-item]
    loaded = load_index(made("dense", [document]).save(tmp_path / "i"), embedder=FakeEmbedder())
    assert loaded.update([document]) is loaded
    moved = Document("a", "A fox.", marks=(Mark("page", Span(0, 5), {"box": (1, 3), 3: "x"}),))  # type: ignore[dict-item]
    assert loaded.update([moved]) is not loaded


def test_an_update_by_another_chunker_without_a_changed_document_is_refused() -> None:
    documents = [Document("a", "A fox naps. A crow sings.")]
    index = get_retriever("bm25").index(chunk_corpus(documents, "sentence:size=8"))
    with pytest.raises(OptionError, match="'a' in documents and in without"):
        index.update(documents, without="a")
    assert index.update(documents) is index.update(documents, chunker="sentence:size=8") is index
    with pytest.raises(OptionError, match="no document has changed"):
        index.update(documents, chunker="sentence:size=4")
    with pytest.raises(OptionError, match="unknown chunker"):
        index.update(documents, chunker="sentense")


def test_chunks_with_context_segments_and_several_spans_are_kept(tmp_path: Path) -> None:
    document = Document("t.md", "| a | b |\n| 1 | 2 |\n| 3 | 4 |\n")
    chunks = [
        Chunk("t.md", 0, (Span(0, 19),), document.text[:19], 8, "A table.", {"headings": ["T"]}, "f"),
        Chunk("t.md", 1, (Span(0, 9), Span(20, 29)), "| a | b | | 3 | 4 |", 8, fingerprint="f"),
        Chunk("t.md", 2, (Span(0, 9),), "A proposition.", 3, fingerprint="f", derived=True),
        Chunk("x.md", 0, (Span(0, 3),), "fox", 1, fingerprint="f", segments=((Span(0, 1),), (Span(1, 3),))),
    ]
    corpus = ChunkedCorpus(chunks, [document, Document("x.md", "fox")])
    index = get_retriever("dense").index(corpus, TextVectors(FakeEmbedder()))
    loaded = load_index(index.save(tmp_path / "i"), embedder=FakeEmbedder())
    assert list(loaded.corpus) == chunks
    assert answers(loaded) == answers(index)
    with pytest.raises(OptionError, match="give update the chunker="):
        loaded.update([Document("new.md", "New.")])
    assert [chunk.document_id for chunk in loaded.update([document], chunker="recursive").corpus] == [
        c.document_id for c in chunks
    ]
    assert [chunk.document_id for chunk in loaded.delete(["t.md"]).corpus] == ["x.md"]


def test_no_model_is_loaded_for_words_or_until_a_question_is_embedded(tmp_path: Path) -> None:
    made("bm25", DOCUMENTS).save(tmp_path / "words")
    assert load_index(tmp_path / "words", embedder="no such model").retrieve("crow")
    index = made("dense", DOCUMENTS, FakeEmbedder(name="/no/such/model"))
    loaded = load_index(index.save(tmp_path / "dense"))
    with pytest.raises(OptionError, match="no/such/model"):
        loaded.retrieve("crow")


@pytest.mark.parametrize("name", ["openai:m", "openai:m@http://127.0.0.1:1/v1#key=A_API_KEY", "mistral/m"])
def test_nothing_is_sent_to_an_endpoint_that_a_saved_index_names(name: str, tmp_path: Path) -> None:
    model = FakeEmbedder(name=name)
    folder = made("dense", DOCUMENTS, model).save(tmp_path / "i")
    with pytest.raises(DataError, match="names an endpoint"):
        load_index(folder)
    assert load_index(folder, embedder=model).retrieve("crow")
    chunker = 'contextual:chunker=sentence,llm="openai:m@http://127.0.0.1:1/v1",retries=0'
    corpus = chunk_corpus(DOCUMENTS[:0], chunker)
    loaded = load_index(get_retriever("bm25").index(corpus).save(tmp_path / "words"))
    with pytest.raises(DataError, match="give update the chunker="):
        loaded.update(DOCUMENTS)
    assert loaded.update(DOCUMENTS, chunker="sentence").retrieve("crow")


def test_another_model_is_refused(tmp_path: Path) -> None:
    made("dense", DOCUMENTS).save(tmp_path / "i")
    other = FakeEmbedder()
    other.fingerprint = "other"  # type: ignore[misc]
    with pytest.raises(DataError, match="made with another model"):
        load_index(tmp_path / "i", embedder=other).retrieve("crow")


@pytest.mark.parametrize(
    ("folder", "message"),
    [("none", "holds no index"), ("text", "holds no index"), ("old", "format 0"), ("odd", "cannot be read")],
)
def test_what_is_no_index_is_said_so(folder: str, message: str, tmp_path: Path) -> None:
    for name, content in (("text/a.txt", "A fox."), ("old/manifest.json", '{"format": 0}'), ("odd/manifest.json", "{")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message):
        load_index(tmp_path / folder)
    if folder == "text":
        with pytest.raises(DataError, match="not empty: name a new folder"):
            made("bm25", DOCUMENTS).save(tmp_path / folder)
        assert [path.name for path in (tmp_path / folder).iterdir()] == ["a.txt"]


def _flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :]


@pytest.mark.filterwarnings("ignore:Reading `.npy`")
def test_a_flipped_bit_in_the_head_of_an_array_is_damage(tmp_path: Path) -> None:
    made("passages", DOCUMENTS).save(tmp_path / "i")
    for file in (tmp_path / "i").rglob("*.npy"):
        content = file.read_bytes()
        for place in range(0, 128, 5):
            file.write_bytes(_flipped(content, place))
            with pytest.raises(DataError, match="damaged"):
                answers(load_index(tmp_path / "i", embedder=FakeEmbedder()))
        file.write_bytes(content)


def test_what_cannot_be_written_down_is_refused_before_anything_is_lost(tmp_path: Path) -> None:
    made("bm25", DOCUMENTS).save(tmp_path / "i")
    wrong: list[tuple[object, str]] = [(each, "'a' cannot be saved .*: use text") for each in (object(), np.arange(2))]
    wrong += [((1, 2), "'a' would come back changed: use lists"), ({1: "x"}, "'a' would come back changed")]
    for value, message in wrong:
        with pytest.raises(DataError, match=message):
            made("bm25", [Document("a", "A fox.", {"when": value})]).save(tmp_path / "i")
    assert answers(load_index(tmp_path / "i")) == answers(made("bm25", DOCUMENTS))
    assert len(list((tmp_path / "i").glob("data-*"))) == 1


def seal(folder: Path, changes: dict[str, Any]) -> None:
    """Write the manifest anew, with its checksum, as a stranger may."""
    manifest = read_manifest(folder) | changes
    digest = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps({**manifest, "checksum": digest}))


WRONG: list[dict[str, Any]] = [{"notes": ["root"]}, {"notes": None}, {"data": "../secret"}, {"files": []}]
WRONG += [{"retriever": 5}, {"retriever": "bm25" + "+window:1" * 500}, {"fingerprint": 5}, {"embedder": [5]}]
WRONG += [{"enough": {"miss": 0.1, "refuse": 0.1, "level": "", "least": 0, "questions": 1, "tokens": 1}}]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_manifest_of_wrong_values_with_a_right_checksum_is_damaged(wrong: dict[str, Any], tmp_path: Path) -> None:
    folder = made("bm25", DOCUMENTS).save(tmp_path / "i")
    seal(folder, wrong)
    for opened in (load_index, open_index):
        with pytest.raises(DataError, match=r"is damaged; make it again|calibration of the index cannot be read"):
            opened(folder)


# Files of an index, and what a stranger may make of their arrays.
UNFIT: list[tuple[str, Any]] = [
    ("chunks", lambda rows: rows[:4]),
    ("chunks", lambda rows: rows.astype(float)),
    *(
        ("chunks", lambda rows, shift=shift: rows + np.array(shift)[:, None])
        for shift in ([9, 0, 0, 0, 0], [-1, 0, 0, 0, 0], [0, 0, -1, 0, 0], [0, 0, 50, 0, 0], [0, 0, 0, 999, 0])
    ),
    *(
        (f"words-first5-{name}", change)
        for name in ("begins", "texts", "counts", "lengths")
        for change in (lambda row: row[:-1], lambda row: row[None], lambda row: row.astype("U"))
    ),
    ("words-first5-keys", lambda row: row[:-1]),
    ("words-first5-begins", lambda row: row[::-1]),
    *(("words-first5-texts", lambda row, by=by: row + by) for by in (-1, 99)),
    *(
        (name, change)
        for name in ("vectors", "norms")
        for change in (lambda rows: rows[:-1], np.ravel, lambda rows: rows.astype(complex))
    ),
]


@pytest.mark.parametrize(("name", "change"), UNFIT)
def test_arrays_that_do_not_fit_together_are_damage(name: str, change: Any, tmp_path: Path) -> None:
    index = made("passages", DOCUMENTS)
    index.retrieve("crow")
    folder = index.save(tmp_path / "i")
    manifest = read_manifest(folder)
    file = folder / manifest["data"] / f"{name}.npy"
    np.save(file, change(np.load(file)))
    data = file.read_bytes()
    manifest["files"][file.name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    seal(folder, manifest)
    with pytest.raises(DataError, match="is damaged; make it again"):
        load_index(folder, embedder=FakeEmbedder())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
@pytest.mark.parametrize("name", ["manifest.json", "texts.bin", "chunks.npy", "vectors.npy"])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(name: str, tmp_path: Path) -> None:
    folder = made("dense", DOCUMENTS).save(tmp_path / "i")
    (file,) = folder.rglob(name)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(DataError, match=r"is damaged|is a pipe"):
        load_index(folder, embedder=FakeEmbedder())


def test_notes_of_another_program_are_no_settings_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("A crow sings.")
    folder = made("bm25", DOCUMENTS).save(tmp_path / "i", notes={"root": 5, "stamps": [3]})
    assert open_index(folder).root is None
    with pytest.raises(DataError, match="the notes of an index are JSON values"):
        made("bm25", DOCUMENTS).save(tmp_path / "i", notes={"root": object()})
    assert index_files(tmp_path / "docs", folder).index.retrieve("crow")


@pytest.mark.parametrize("root", ["{docs}", "//host/share", "x" * 5000, "a\0b", "{docs}/fox.md/nothing"])
def test_a_manifest_makes_nobody_read_a_file(root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fox.md").write_text("The password is 1234.")
    asked: list[Path] = []
    monkeypatch.setattr(folder_index, "stamp_of", asked.append)
    named = [Document(name, "A fox.") for name in ("fox.md", "../fox.md", "/etc/hostname", "a\0b")]
    notes = {"root": root.format(docs=tmp_path), "stamps": {document.id: [21, 1, 1, 1] for document in named}}
    opened = open_index(made("bm25", named).save(tmp_path / "i", notes=notes))
    assert opened.changed(document.id for document in named) == set()
    assert asked == []


def test_the_manifest_says_what_made_the_index(tmp_path: Path) -> None:
    made("passages", DOCUMENTS).save(tmp_path / "i", notes={"from": {9: "a", 10: "b"}})
    manifest = read_manifest(tmp_path / "i")
    assert (manifest["retriever"], manifest["documents"]) == ("passages", 3)
    assert manifest["notes"] == {"from": {"9": "a", "10": "b"}}
    assert manifest["embedder"]["name"] == FakeEmbedder().name
    assert manifest["chunker"].startswith("sentence:")


def test_vectors_are_checked_when_they_are_read(tmp_path: Path) -> None:
    folder = made("dense", DOCUMENTS).save(tmp_path / "i")
    (file,) = folder.rglob("vectors.npy")
    file.write_bytes(_flipped(file.read_bytes(), 300))
    index = load_index(folder, embedder=FakeEmbedder())
    for _ in range(2):
        with pytest.raises(DataError, match="npy is damaged"):
            index.retrieve("crow")


WRITERS = """
import os, sys
from chunkcore import Document, chunk_corpus, get_retriever
from chunkcore.retrieval import load_index
os.fsync = lambda file: None
for number in range(5):
    documents = [Document(f"{sys.argv[2]}-{number}", "A crow sings. " * 50)]
    get_retriever("bm25").index(chunk_corpus(documents, "sentence:size=8")).save(sys.argv[1])
    assert load_index(sys.argv[1]).retrieve("crow")
"""


def test_several_writers_at_once_leave_a_whole_index(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITERS, str(tmp_path / "i"), name]) for name in "abc"]
    assert [writer.wait(120) for writer in writers] == [0, 0, 0]
    assert load_index(tmp_path / "i").retrieve("crow")
    assert len(list((tmp_path / "i").glob("data-*"))) == 1


def test_an_opened_index_outlives_the_next_save_also_where_no_file_is_locked(tmp_path: Path) -> None:
    with patch("filelock.FileLock.acquire", side_effect=[OSError(errno.ENOLCK, ""), OSError(errno.ENOTSUP, "")]):
        folder = made("passages", DOCUMENTS).save(tmp_path / "i")
        index = load_index(folder, embedder=FakeEmbedder())
        made("passages", DOCUMENTS[:1]).save(folder)
    assert answers(index) == answers(made("passages", DOCUMENTS))


def test_no_program_takes_back_what_another_has_saved(tmp_path: Path) -> None:
    get_retriever("passages:lexical").index(chunk_corpus(DOCUMENTS, "sentence:size=6")).save(tmp_path / "index")
    one, other, whole = (load_index(tmp_path / "index") for _ in range(3))
    one.update([Document("one", "Tea is hot.")]).save(tmp_path / "index")
    late = other.update([Document("other", "Ice is cold.")])
    with pytest.raises(DataError, match="another index was saved into"):
        late.save(tmp_path / "index")
    late.save(tmp_path / "elsewhere")
    again = load_index(tmp_path / "index").update([Document("other", "Ice is cold.")])
    again.save(tmp_path / "index")
    again.update([Document("third", "Rain falls.")]).save(tmp_path / "index")  # its own save is no other's
    ids = {document.id for document in load_index(tmp_path / "index").corpus.documents}
    assert {"one", "other", "third"} <= ids
    whole.save(tmp_path / "index")  # which updates none: it takes the place of any other
