"""Strings, files and options of wrong values are refused in one sentence; so is a value that would count wrongly."""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import Any

import pytest
from chunkadapters.behind import Behind
from chunkcore import (
    Evidence,
    OptionError,
    Retrieved,
    Span,
    chunk_corpus,
    compare,
    get_chunker,
    get_counter,
    get_embedder,
    get_llm,
    get_measure,
    get_retriever,
    run_retriever,
)
from chunkcore.chunkers import Recursive, chunkers
from chunkcore.errors import ChunkcoreError, DataError
from chunkcore.retrieval import WindowIndex

from tests.faults.written import benchmark

WRONG = [None, 3, -1, 1.5, True, float("nan"), "x", "", b"x", [], ["x"], {}, {"a": 1}, object(), Span(0, 1), (1,)]
SPANS = (Span(0, 1),)


def refused(call: Callable[[Any], object]) -> list[Any]:
    """The wrong values that a call refuses; any error but the project's is raised."""
    errors = []
    for value in WRONG:
        try:
            call(value)
        except ChunkcoreError:
            errors.append(value)
    return errors


@pytest.mark.parametrize("read", [get_chunker, get_counter, get_llm, get_measure, get_retriever])
def test_what_takes_a_name_refuses_everything_else(read, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a wrong value may name a file
    assert len(refused(read)) >= len(WRONG) - 2
    with pytest.raises(OptionError):
        get_embedder("")


@pytest.mark.parametrize("name", [name for name in chunkers if chunkers[name].__module__.startswith("chunkcore.")])
def test_every_option_of_every_chunker_refuses_wrong_values(name: str) -> None:
    options = chunkers[name].option_names()
    required = {"llm": "openai:x@http://localhost:9/v1"} if "llm" in options else {}
    for option in options:
        assert refused(lambda value, option=option: get_chunker(name, **{**required, option: value}))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: Retrieved("d", SPANS, nan), "the score of a Retrieved is a number, got nan"),
        (lambda: Evidence("d", Span(1, 1)), "a span needs 0 <= start < end"),
        (lambda: compare([]), "there is no report to compare"),
        (lambda: compare([], margin=nan), "margin is a number, got nan"),
        (lambda: get_chunker("agentic"), "llm"),
        (lambda: Recursive(size=-1), "size is at least 1"),
    ],
)
def test_a_value_that_would_count_wrongly_is_refused(call: Callable[[], object], says: str) -> None:
    with pytest.raises((DataError, OptionError), match=says):
        call()


class NothingFound:
    def retrieve(self, query: str, k: int | None, max_tokens: int | None = None) -> list[Retrieved]:
        return []


@pytest.mark.parametrize("value", [0, -1, 1.5, "3", True, [1], nan])
@pytest.mark.parametrize("limit", ["k", "max_tokens"])
def test_a_limit_is_a_whole_number_wherever_it_enters(limit: str, value: Any) -> None:
    corpus = chunk_corpus(benchmark().documents, "sentence:size=8,counter=words")
    bm25, passages = (get_retriever(spec).index(corpus) for spec in ("bm25", "passages:lexical"))
    assert isinstance(passages, WindowIndex)
    limits: dict[str, Any] = {limit: value}
    calls: list[Callable[[], object]] = [
        lambda: run_retriever(NothingFound(), benchmark(), **limits),
        lambda: run_retriever(bm25, benchmark(), **limits),
        lambda: bm25.retrieve("tea", **limits),
        lambda: bm25.answers(["tea"], **limits),
        lambda: passages.retrieve("tea", **limits),
        lambda: passages.answers(["tea"], **limits),
        lambda: passages.behind("tea", [], **limits),
        lambda: Behind(passages, **limits),
    ]
    if limit == "k":
        calls.append(lambda: bm25.search(["tea"], value))
    for call in calls:
        with pytest.raises(OptionError, match=f"{limit} is (a whole number|at least 1), got"):
            call()
