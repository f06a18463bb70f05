"""Public constructors and calls refuse values of wrong types with the project's errors, which say what to do."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from inspect import signature
from math import nan
from pathlib import Path
from typing import Any

import chunkcore
import pytest
from chunkcore import (
    Benchmark,
    Document,
    Mark,
    Retrieved,
    Span,
    chunk_corpus,
    compare,
    get_chunker,
    get_measure,
    get_retriever,
    run_retriever,
    score,
    tune,
    write_report,
    write_run,
)
from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.chunkers import Recursive, chunkers
from chunkcore.errors import ChunkcoreError, DataError, OptionError
from chunkcore.segmenters import get_segmenter
from chunkcore.tokens import TiktokenCounter

from tests.faults.written import benchmark, report, run
from tests.results import keep_result

WRONG = [None, 3, -1, 1.5, True, float("nan"), "x", "", b"x", [], ["x"], {}, {"a": 1}, object(), Span(0, 1), (1,)]
DOCUMENT = Document("d", "One two. Three.")
CHUNKER: Any = Recursive(size=3, counter="words")
SPANS = (Span(0, 1),)

FACES: dict[str, Callable[[Any], object]] = {
    "Document(one)": lambda value: Document(value),  # type: ignore[call-arg]
    "Mark.from_dict": Mark.from_dict,
    "pages_of": DOCUMENT.pages_of,
    "highlight": DOCUMENT.highlight,
    "chunk": CHUNKER.chunk,
    "split": CHUNKER.split,
    "split_text": CHUNKER.split_text,
    "spans": CHUNKER.spans,
    "chunk_many": lambda value: list(CHUNKER.chunk_many(value)),
    "chunk_many(workers)": lambda value: list(CHUNKER.chunk_many([DOCUMENT], workers=value)),
    "get_segmenter": get_segmenter,
    "TiktokenCounter": lambda value: TiktokenCounter(value).count("x"),
    "count": TiktokenCounter().count,
    "boundaries": TiktokenCounter().boundaries,
    "sentence_ranges": sentence_ranges,
    "sentence_ranges(splitter)": lambda value: sentence_ranges("a b. c", value),
}


def refused(call: Callable[[Any], object]) -> list[Any]:
    """The wrong values that a call refuses; any error but the project's is raised."""
    errors = []
    for value in WRONG:
        try:
            call(value)
        except ChunkcoreError:
            errors.append(value)
    return errors


@pytest.mark.parametrize("face", FACES)
def test_a_wrong_value_is_refused_by_the_projects_errors(face: str) -> None:
    assert len(refused(FACES[face])) >= len(WRONG) // 2


# A call of each public name that is right, but for one value at a time.
INDEX = get_retriever("bm25").index(chunk_corpus([DOCUMENT], "sentence:size=5"))
PUBLIC: dict[str, Callable[[Path], dict[str, Any]]] = {
    "Benchmark": lambda folder: {"name": "b", "documents": [DOCUMENT], "queries": []},
    "Chunk": lambda folder: {"document_id": "d", "index": 0, "spans": SPANS, "text": "t", "token_count": 1},
    "ChunkedCorpus": lambda folder: {"documents": [DOCUMENT]},
    "Document": lambda folder: {"id": "d", "text": "t"},
    "Evidence": lambda folder: {"document_id": "d", "span": Span(0, 1)},
    "Mark": lambda folder: {"kind": "page", "span": Span(0, 1)},
    "Query": lambda folder: {"id": "q", "text": "?", "evidence": ()},
    "Retrieved": lambda folder: {"document_id": "d", "spans": SPANS, "score": 0.5},
    "Run": lambda folder: {"name": "r", "results": {}},
    "Span": lambda folder: {"start": 0, "end": 1},
    "chunk_corpus": lambda folder: {"documents": [DOCUMENT], "chunker": "sentence"},
    "compare": lambda folder: {"reports": [report("old")]},
    "get_counter": lambda folder: {},
    "get_llm": lambda folder: {},
    "get_retriever": lambda folder: {},
    "load_benchmark": lambda folder: {"documents": [DOCUMENT], "questions": [{"question": "?", "evidence": ["One"]}]},
    "load_dataset": lambda folder: {},
    "load_documents": lambda folder: {"path": folder},
    "load_index": lambda folder: {"folder": folder},
    "read_run": lambda folder: {"path": folder / "r.jsonl", "benchmark": benchmark()},
    "run_experiment": lambda folder: {"benchmark": benchmark(), "chunkers": ["sentence:size=5"], "retrievers": "bm25"},
    "run_retriever": lambda folder: {"retriever": INDEX, "queries": benchmark()},
    "score": lambda folder: {"run": run("old"), "benchmark": benchmark()},
    "write_run": lambda folder: {"run": run("old"), "path": folder / "r.jsonl"},
    "Index.retrieve": lambda folder: {"query": "tea", "k": 3},
    "Index.update": lambda folder: {"documents": [DOCUMENT]},
    "Index.save": lambda folder: {"folder": folder / "index"},
}
RUN = run("old")
OTHER = {"aligner", "counter", "done", "leave_out", "progress", "sizes", "unread"}  # callables, what a caller gets back


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PUBLIC)
def test_every_argument_of_every_public_call_is_refused_or_does_what_it_says(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a wrong value may name a file
    call: Any = getattr(INDEX, name.removeprefix("Index.")) if "." in name else getattr(chunkcore, name)
    write_run(run("old"), tmp_path / "r.jsonl")
    (tmp_path / "a.txt").write_text("Tea is hot.")
    kinds = {name: each.kind.name for name, each in signature(call).parameters.items()}
    named = [name for name, kind in kinds.items() if not kind.startswith("VAR")]
    for argument in set(named) - OTHER:
        for value in WRONG:
            with suppress(ChunkcoreError):
                call(**{**PUBLIC[name](tmp_path), argument: value})
    keep_result("wrong values", name, len(set(named) - OTHER) * len(WRONG))


def test_all_public_names_are_tried() -> None:
    others = {"Chunker", "Embedder", "Index", "LLM", "Measure", "Retriever", "TokenCounter"}  # no calls
    # Made by others, or below.
    others |= {"Comparison", "Report", "get_chunker", "get_embedder", "get_measure", "tune", "write_report"}
    errors = {name for name in chunkcore.__all__ if name.endswith("Error")}
    assert set(chunkcore.__all__) - set(PUBLIC) == others | errors


@pytest.mark.parametrize("call", [get_measure, get_chunker, tune, lambda value: write_report(value, "nowhere")])
def test_what_takes_one_value_refuses_wrong_ones(
    call: Callable[[Any], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(refused(call)) >= len(WRONG) - 2


@pytest.mark.parametrize("name", [name for name in chunkers if chunkers[name].__module__.startswith("chunkcore.")])
def test_every_option_of_every_strategy_refuses_wrong_values(name: str) -> None:
    options = chunkers[name].option_names()
    required = {"llm": "openai:x@http://localhost:9/v1"} if "llm" in options else {}
    for option in options:
        assert refused(lambda value, option=option: get_chunker(name, **{**required, option: value}))


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: Document("d", "t", metadata=5), DataError, "its metadata is a mapping, got int: 5"),
        (lambda: Document("d", "t", marks=("page",)), DataError, "each of its marks is a Mark, got str"),
        (lambda: Recursive(50), OptionError, "options are given by name, as in Recursive\\(size=200\\); got 50"),
        (lambda: CHUNKER.chunk("text"), DataError, r"write Document\(\"faq.md\", text\)"),
        (lambda: get_chunker("agentic"), OptionError, "llm"),
        (lambda: Benchmark("x", ["text"], []), DataError, "documents of a benchmark is a chunkcore Document, got str"),
        (lambda: Retrieved("d", (), nan), DataError, "the score of a Retrieved is a number, got nan"),
        (lambda: score(benchmark(), RUN), DataError, "what is scored on is a Benchmark, as of load_benchmark, got Run"),
        (lambda: compare([RUN]), DataError, "what is compared is a Report, as of run_experiment or score, got Run"),
        (lambda: run_retriever(3, benchmark()), DataError, r"a retriever is an object with retrieve\(query, k\), got"),
    ],
)
def test_the_error_says_what_to_do(call: Callable[[], object], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()
