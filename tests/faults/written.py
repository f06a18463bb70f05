"""Every kind of file that the project writes and reads again: how it is written, and what is read of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from chunkcore import Benchmark, Evidence, Query, Report, Retrieved, Run, get_chunker, read_run, score, write_run
from chunkcore.evaluation.benchmarks import load_benchmark
from chunkcore.models import EmbeddingCache
from chunkcore.models.llm import LLMCache, Usage
from chunkcore.plain import text_key
from chunkcore.questions.generate import Generated, write_generated
from chunkcore.questions.label import LabelledQuestions
from chunkcore.report import read_reports, write_report
from chunkcore.retrieval import chunk_corpus, get_retriever, load_index
from chunkcore.text import Document, Span

from tests.layouts import collection

DOCUMENT = Document("d", "Tea is hot. The sea is deep. Fees are low.")
PLACES = {"old": Span(0, 11), "new": Span(12, 28)}


def benchmark(word: str = "old") -> Benchmark:
    return Benchmark("b", [DOCUMENT], [Query("q", f"The {word}?", (Evidence("d", PLACES[word]),))])


def pool(word: str) -> list[Retrieved]:
    return [Retrieved("d", (PLACES[word],), 0.5, PLACES[word].slice(DOCUMENT.text), id="c")]


def run(word: str) -> Run:
    return Run("run", {"q": [*pool(word), Retrieved("", (), 0.25, "Not there.")]}, pool(word))


@cache
def report(word: str) -> Report:
    return score(run(word), benchmark(), ["Recall@2"])


def label(folder: Path, word: str) -> None:
    span = PLACES[word]
    LabelledQuestions([DOCUMENT], folder / "q.jsonl", ["Which?"]).mark(0, [(0, span.start, span.end)])


def row(word: str) -> dict[str, Any]:
    span = PLACES[word]
    evidence = [{"start": span.start, "end": span.end, "text": span.slice(DOCUMENT.text)}]
    return {"id": "g1", "question": f"The {word}?", "document_id": "d", "evidence": evidence}


def generate(folder: Path, word: str) -> None:
    write_generated(folder / "q.jsonl", Generated([DOCUMENT], [row(word)], (), Usage()))


def index(folder: Path, word: str) -> None:
    corpus = chunk_corpus([Document("a", f"The {word} tea.")], get_chunker("recursive:size=20"))
    get_retriever("bm25").index(corpus).save(folder / "index")


def read_index(folder: Path) -> Any:
    loaded = load_index(folder / "index")
    return [document.text for document in loaded.corpus.documents], [hit.text for hit in loaded.retrieve("tea", 3)]


KEYS = [text_key(f"text {number}") for number in range(12)]


def cached(folder: Path, word: str) -> None:
    for model, base in (("m", 0), ("n", 100)):
        rows = np.arange(base, base + len(KEYS), dtype=np.float32)[:, None].repeat(3, axis=1)
        EmbeddingCache(folder / "c.sqlite").store(model, KEYS, rows)
        for number, key in enumerate(KEYS):
            LLMCache(folder / "c.sqlite").store(model, key, f"answer {number} of {model}")


def read_cached(folder: Path) -> dict[tuple[str, str, int], Any]:
    """What is kept, by model and number of the text."""
    found: dict[tuple[str, str, int], Any] = {}
    for model in ("m", "n"):
        is_kept, rows = EmbeddingCache(folder / "c.sqlite").fetch(model, KEYS)
        found |= {("vector", model, number): tuple(rows[number]) for number in np.flatnonzero(is_kept).tolist()}
        answers = [LLMCache(folder / "c.sqlite").fetch(model, key) for key in KEYS]
        found |= {("answer", model, number): text for number, text in enumerate(answers) if text is not None}
    return found


class Kind(NamedTuple):
    """Attributes:
    write: into a folder; "old" first, then "new" over it.
    read: what the project takes from it, to be compared.
    files: those that are read again, as a pattern; others beside them are for people.
    """

    write: Callable[[Path, str], object]
    read: Callable[[Path], Any]
    files: str = "*"


CACHES = {"cache": Kind(cached, read_cached)}
WRITTEN = {
    "run": Kind(
        lambda folder, word: write_run(run(word), folder / "run.jsonl", benchmark()),
        lambda folder: dict(read_run(folder / "run.jsonl", benchmark()).results),
    ),
    "report": Kind(
        lambda folder, word: write_report([report(word)], folder),
        lambda folder: [report.to_dict() for report in read_reports(folder / "report.json")],
        "report.json",
    ),
    "benchmark": Kind(
        lambda folder, word: collection(folder, [DOCUMENT], row(word)),
        lambda folder: load_benchmark(folder, name="b").queries,
    ),
    "labels": Kind(label, lambda folder: load_benchmark([DOCUMENT], folder / "q.jsonl").queries),
    "generated": Kind(generate, lambda folder: load_benchmark([DOCUMENT], folder / "q.jsonl").queries, "[qc]*.json*"),
    "index": Kind(index, read_index, "index/**/*"),
}


def copied(source: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    return Path(shutil.copytree(source, target))
