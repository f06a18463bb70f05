"""Documents and numbers that stand in files: the same to whoever asks, and not in memory."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import threading
import tracemalloc
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkcore import files as scratch
from chunkcore import load_benchmark
from chunkcore import stored as stored_module
from chunkcore.chunkers import get_chunker
from chunkcore.columns import concatenate, release
from chunkcore.document import Document, Mark, Span
from chunkcore.errors import DataError, OptionError
from chunkcore.evaluation import counting
from chunkcore.evaluation.benchmarks import load_documents
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Evidence, Query
from chunkcore.evaluation.experiment import run_experiment
from chunkcore.evaluation.measures import measures_at
from chunkcore.evaluation.scoring import Scorer
from chunkcore.files import ScratchFile
from chunkcore.stored import store_documents
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
    assert repr(stored) == "Document(id='a', text='A fox.', metadata={}, marks=())"
    assert asdict(stored) == asdict(Document("a", "A fox."))
    with pytest.raises(AttributeError):
        stored.text = "A hen."


def test_a_document_of_a_class_of_its_own_stays_what_it_is() -> None:
    class Page(Document):
        pass

    page = Page("a", "A fox.")
    assert store_documents([page], memory_bytes=0)[0] is page


def test_memory_is_for_whatever_still_fits() -> None:
    given_documents = [Document("long", "fox " * 500), Document("short", "A fox."), Document("more", "A hen.")]
    kept = store_documents(given_documents, memory_bytes=120)
    assert [own is other for own, other in zip(kept, given_documents, strict=True)] == [False, True, True]
    assert [each.size for each in kept] == [2_000, 6, 6]


@pytest.mark.parametrize("memory", [-1, 1.5, None, "5", True])
def test_memory_is_a_number_of_bytes(memory: Any) -> None:
    with pytest.raises(OptionError, match="memory_bytes is a whole number of bytes, 0 or more, got"):
        store_documents([], memory_bytes=memory)


def test_what_is_no_document_is_told() -> None:
    with pytest.raises(DataError, match="documents are chunkcore Documents, got str"):
        store_documents(["A fox."])  # type: ignore[list-item]


def test_texts_past_the_limit_are_not_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_module, "_HELD", 100_000)

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


@pytest.mark.parametrize("at_a_place", [True, False])
def test_threads_read_what_they_ask_for(at_a_place: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not at_a_place:
        monkeypatch.delattr("os.pread", raising=False)
    documents = store_documents([Document(f"d{n}", f"{n} sits. " * 500) for n in range(40)], memory_bytes=0)
    wrong: list[int] = []

    monkeypatch.setattr(stored_module, "_HELD", 2_000)

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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_processes_read_what_they_ask_for() -> None:
    documents = store_documents([Document(f"d{n}", f"{n} sits. " * 500) for n in range(40)], memory_bytes=0)
    with get_context("fork").Pool(3) as pool:
        found = pool.map(partial(lengths_of, documents), range(6))
    assert found == [[len(f"{n} sits. " * 500) for n in range(40)]] * 6


def lengths_of(documents: list[Document], seed: int) -> list[int]:
    return [len(document.text) for document in documents]


def test_bytes_that_come_in_parts_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "_AT_ONCE", 2)
    (stored,) = store_documents([Document("a", "A fox.")], memory_bytes=0)
    assert stored.text == "A fox."


def test_a_file_that_was_cut_off_is_told() -> None:
    file = ScratchFile()
    file.add(b"A fox.")
    os.ftruncate(file._file.fileno(), 3)
    with pytest.raises(DataError, match="a temporary file of 6 bytes ends at 3: something has cut it off"):
        file.read(0, 6)


def test_the_file_goes_with_its_documents() -> None:
    """At once: gigabytes of a disk do not wait for the garbage collector."""
    gc.disable()
    try:
        documents = store_documents([Document("a", "A fox."), Document("b", "A hen.")], memory_bytes=0)
        assert documents[0].text == "A fox."
        number = documents[0]._read.func.__self__._file._file.fileno()
        one = documents[1]
        del documents
        os.fstat(number)
        assert one.text == "A hen."
        del one
        with pytest.raises(OSError):
            os.fstat(number)
    finally:
        gc.enable()


@given(st.lists(st.integers(0, 2**33), max_size=40), st.integers(0, 3), st.integers(0, 200))
def test_arrays_are_one_array_wherever_they_stand(numbers: list[int], cuts: int, memory: int) -> None:
    parts = np.array_split(np.array(numbers, dtype=np.int64), cuts + 1)
    together = concatenate(iter(parts), "u8", memory_bytes=memory)
    assert together.tolist() == numbers
    assert (together.dtype, together.flags.writeable) == (np.dtype("u8"), 8 * len(numbers) <= memory)
    release(together)
    assert together.tolist() == numbers


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
        chunkers = [get_chunker(spec) for spec in ("fixed_token:size=9,counter=words", "sentence:size=30")]
        found = [
            each.to_dict()
            for each in run_experiment(benchmark, chunkers, FakeEmbedder(), measures=measures_at((3, "min", "40tok")))
        ]
        for each in found:
            each["seconds"] = each["cost"]["seconds"] = 0
        return found

    whole = scores(Benchmark("drawn", documents, queries))
    monkeypatch.setattr(store_documents, "__kwdefaults__", {"memory_bytes": 0})
    monkeypatch.setattr(counting, "_MEMORY", 1)
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


def test_a_scorer_of_a_small_benchmark_can_be_sent_to_another_process() -> None:
    benchmark = Benchmark("toy", [Document("a", "A fox naps.")], [Query("q", "Who?", (Evidence("a", Span(0, 5)),))])
    scorer = Scorer(benchmark, counter="words")
    again = pickle.loads(pickle.dumps(scorer))
    assert again.tokens.size == scorer.tokens.size == 3
    copied = copy.deepcopy(scorer).tokens.ranges(np.array([[2, 5]]))
    assert copied.tolist() == scorer.tokens.ranges(np.array([[2, 5]])).tolist()
