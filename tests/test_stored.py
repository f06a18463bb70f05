"""Documents and numbers that stand in files: the same to whoever asks, and not in memory."""

from __future__ import annotations

import copy
import pickle
import threading
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkcore import load_benchmark, store_documents
from chunkcore import stored as stored_module
from chunkcore.chunkers import parse_chunker
from chunkcore.document import Document, Mark, Span
from chunkcore.errors import DataError
from chunkcore.evaluation.benchmark import Benchmark, Evidence, Query
from chunkcore.evaluation.experiment import run_chunkers
from chunkcore.evaluation.loading import load_documents
from chunkcore.evaluation.sorted_numbers import SortedNumbers
from tests.fakes import FakeEmbedder

TEXTS = st.text(st.characters(codec=None), max_size=30)


@given(st.lists(TEXTS, max_size=8), st.integers(0, 500))
def test_a_stored_document_is_the_document(texts: list[str], memory: int) -> None:
    given_documents = [
        Document(f"d{number}", text, {"page": number}, (Mark("page", Span(0, len(text))),) if text else ())
        for number, text in enumerate(texts)
    ]
    stored = store_documents(iter(given_documents), memory_bytes=memory)
    assert stored == given_documents
    assert given_documents == stored
    assert [each.text for each in reversed(stored)] == texts[::-1]
    for own, other in zip(stored, given_documents, strict=True):
        assert isinstance(own, Document)
        assert (own.id, own.metadata, own.marks) == (other.id, other.metadata, other.marks)
        assert replace(own, id="new") == replace(other, id="new")
        for copied in (pickle.loads(pickle.dumps(own)), copy.copy(own), copy.deepcopy(own), replace(own)):
            assert copied == other


def test_other_documents_are_not_equal() -> None:
    (stored,) = store_documents([Document("a", "A fox.")], memory_bytes=0)
    assert stored != Document("a", "A hen.")
    assert stored != Document("b", "A fox.")
    assert stored != Document("a", "A fox.", {"page": 1})
    assert stored != "A fox."
    assert repr(stored).endswith("(id='a', text='A fox.', metadata={}, marks=())")
    with pytest.raises(AttributeError):
        stored.text = "A hen."


def test_texts_past_the_limit_are_not_in_memory() -> None:
    def drawn() -> Iterator[Document]:
        for number in range(300):
            yield Document(f"d{number}", f"{number} The hen sits. " * 2_000)

    tracemalloc.start()
    documents = store_documents(drawn(), memory_bytes=300_000)
    for document in documents:
        assert len(document.text) > 10_000
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 800_000, "of nine million characters"
    assert peak < 1_200_000


def test_threads_read_what_they_ask_for() -> None:
    documents = store_documents([Document(f"d{n}", f"{n} sits. " * 500) for n in range(40)], memory_bytes=0)
    wrong: list[int] = []

    def read(seed: int) -> None:
        numbers = np.random.default_rng(seed).integers(0, 40, 400).tolist()
        wrong.extend(number for number in numbers if documents[number].text != f"{number} sits. " * 500)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_system_that_cannot_read_at_a_place_seeks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.pread", raising=False)
    texts = ["A fox.", "", "Hens \ud800 sit."]
    documents = store_documents([Document(f"d{n}", text) for n, text in enumerate(texts)], memory_bytes=0)
    assert [each.text for each in documents[::-1]] == texts[::-1]


def test_a_file_that_was_cut_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_module._TextFile, "_bytes", lambda self, start, size: b"A f")
    (stored,) = store_documents([Document("a", "A fox.")], memory_bytes=0)
    with pytest.raises(DataError, match="ends at 3 of 6 bytes"):
        _ = stored.text


NUMBERS = st.lists(st.integers(0, 60), max_size=40).map(sorted)


@given(NUMBERS, st.lists(st.integers(0, 70), max_size=20), st.integers(1, 9), st.integers(0, 3), st.integers(1, 60))
def test_numbers_in_blocks_are_found_where_an_array_has_them(
    numbers: list[int], asked: list[int], block: int, pieces: int, memory: int
) -> None:
    kept = SortedNumbers(np.dtype("u4"), block=block, memory_bytes=memory)
    for some in np.array_split(np.array(numbers, dtype=np.int64), pieces + 1):
        kept.append(some)
        assert kept.first_from(np.array([0])).tolist() == [0]  # what is looked up between changes nothing
    values = np.array(asked, dtype=np.int64)
    assert kept.first_from(values).tolist() == np.searchsorted(np.array(numbers), values).tolist()
    assert len(kept) == len(numbers)
    if numbers:
        places = values % len(numbers)
        assert kept.at(places).tolist() == np.array(numbers)[places].tolist()


def test_numbers_past_32_bits() -> None:
    kept = SortedNumbers(np.dtype("u8"), block=2)
    kept.append(np.array([1, 2**33, 2**40]))
    assert kept.first_from(np.array([2, 2**33, 2**41])).tolist() == [1, 1, 3]
    narrow = SortedNumbers(np.dtype("u4"))
    narrow.append(np.array([1, 7]))
    assert narrow.first_from(np.array([2**32 + 1])).tolist() == [2], "a value that its type cannot hold is no small one"


def test_a_run_of_stored_documents_has_the_same_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files, their excerpts, the run and its report's numbers, with every text and every token on the disk."""
    draw = np.random.default_rng(0)
    words = np.array(["hen", "crow", "fox", "oak", "rain", "bread", "ferry", "noon"])
    documents = [Document(f"d{number}.txt", " ".join(draw.choice(words, 300))) for number in range(4)]
    queries = [
        Query(f"q{number}", document.text[90:120], (Evidence(document.id, Span(80, 130)),))
        for number, document in enumerate(documents)
    ]
    (tmp_path / "docs").mkdir()
    for document in documents:
        (tmp_path / "docs" / document.id).write_text(document.text, encoding="utf-8")

    def scores(benchmark: Benchmark) -> list[dict]:
        chunkers = [parse_chunker(spec) for spec in ("fixed_token:size=9,counter=words", "sentence:size=30")]
        found = [each.to_dict() for each in run_chunkers(benchmark, chunkers, FakeEmbedder(), ks=(3, "min", "40tok"))]
        for each in found:
            each["seconds"] = each["cost"]["seconds"] = 0
        return found

    whole = scores(Benchmark("drawn", documents, queries))
    monkeypatch.setattr(store_documents, "__kwdefaults__", {"memory_bytes": 0})
    monkeypatch.setattr(SortedNumbers.__init__, "__kwdefaults__", {"memory_bytes": 1, "block": 7})
    on_disk = load_documents(tmp_path / "docs")
    assert {type(each).__name__ for each in on_disk} == {"_StoredDocument"}
    rows = [
        {"id": query.id, "question": query.text, "evidence": [documents[number].text[80:130]]}
        for number, query in enumerate(queries)
    ]
    read = load_benchmark(tmp_path / "docs", rows, name="drawn")
    assert read.queries == queries
    assert read.documents == documents
    assert scores(read) == whole
