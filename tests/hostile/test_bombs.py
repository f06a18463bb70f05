"""JSON that unfold, nest or count without end: whoever reads a file says what is wrong with it, and soon."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chunkcore import Document, Span, get_chunker, load_benchmark, load_documents, read_run
from chunkcore.boundaries.separators import compiled
from chunkcore.errors import ChunkcoreError, NoAnswerError, OptionError
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Evidence, Query
from chunkcore.models.openvino import read_bert_folder
from chunkcore.reading.visible import visible_text
from chunkcore.report import read_reports
from chunkcore.study.tuning import TuneOptions, plan

from tests.fakes import ScriptedLLM

DEEP, DIGITS = 300, 700  # more than `low_limits` lets a parser read


@pytest.fixture(autouse=True)
def low_limits() -> Iterator[None]:
    """Parsers stop early, as they do at harmful files under their usual limits."""
    frames, digits = sys.getrecursionlimit(), sys.get_int_max_str_digits()
    sys.setrecursionlimit(len(inspect.stack(0)) + 250)
    sys.set_int_max_str_digits(640)
    yield
    sys.setrecursionlimit(frames)
    sys.set_int_max_str_digits(digits)


BOMBS = {
    "lists in lists": "[" * DEEP + "]" * DEEP,
    "objects in objects": '{"a":' * DEEP + "1" + "}" * DEEP,
    "an object of lists": '{"id": "a", "text": ' + "[" * DEEP + "]" * DEEP + "}",
    "a number of very many digits": '{"id": ' + "9" * DIGITS + ', "text": "x"}',
    "not a number": '{"id": NaN, "text": Infinity, "spans": [-Infinity]}',
    "a number over all": '{"id": 1e999999, "text": -1e999999}',
    "a string without end": '{"id": "' + "a" * 1000,
    "brackets without end": "[{" * DEEP,
}
BENCHMARK = Benchmark("b", [Document("d", "One fox.")], [Query("q", "Which?", (Evidence("d", Span(0, 3)),))])

READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "documents": ("documents.jsonl", load_documents),
    "a benchmark of our lines": ("questions.jsonl", lambda path: load_benchmark(path.parent)),
    "a run": ("run.jsonl", lambda path: read_run(path, BENCHMARK)),
    "a report": ("report.json", read_reports),
    "a model's folder": ("modules.json", lambda path: read_bert_folder(path.parent)),
}


@pytest.mark.parametrize("reader", list(READERS))
@pytest.mark.parametrize("bomb", list(BOMBS))
def test_a_file_that_blows_up_ends_in_a_sentence(reader: str, bomb: str, tmp_path: Path) -> None:
    name, read = READERS[reader]
    (tmp_path / "documents.jsonl").write_text('{"id": "d", "text": "One fox."}\n')
    (tmp_path / name).write_text(BOMBS[bomb] + "\n")
    with pytest.raises(ChunkcoreError) as told:
        read(tmp_path / name)
    assert len(str(told.value)) < 2000


@pytest.mark.parametrize("bomb", list(BOMBS))
def test_an_answer_that_blows_up_is_no_answer(bomb: str) -> None:
    for name in ("lumber", "llm_semantic", "agentic", "propositions"):
        llm = ScriptedLLM(BOMBS[bomb])
        with pytest.raises(NoAnswerError):
            get_chunker(name, llm=llm, strict=True, retries=0).split_text("The fox naps.\n\nThe dog sleeps. " * 200)
    plain = get_chunker("llm_semantic", llm=ScriptedLLM(f"split_after: {'9' * DIGITS}, 3"), strict=True)
    with pytest.raises(NoAnswerError):
        plain.split_text("The fox naps. " * 200)


@pytest.mark.parametrize("value", ["[" * DEEP, "[" * DEEP + "]" * DEEP, "9" * DIGITS, "NaN", "1e999", '{"a":' * DEEP])
def test_a_strategys_string_that_blows_up_is_told(value: str) -> None:
    for parse in (get_chunker, lambda spec: plan(spec, "bm25", TuneOptions())):
        with pytest.raises(ChunkcoreError):
            parse(f"recursive:size={value}")


def give_up(*_: Any, **__: Any) -> Any:
    """As a parser or writer does at its limit."""
    raise RecursionError


def test_a_pattern_of_too_many_levels_is_no_regular_expression() -> None:
    with pytest.raises(OptionError, match="is no regular expression"):
        compiled("(" * DEEP + ")" * DEEP, "the separator")


def test_a_page_of_too_many_levels_is_its_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    markdownify = pytest.importorskip("markdownify")
    monkeypatch.setattr(markdownify.MarkdownConverter, "convert_soup", give_up)
    assert visible_text("<p>Tea is <b>hot</b>.</p>") == "Tea is\nhot\n."
