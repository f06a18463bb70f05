"""Time and peak memory of each stage of a comparison of a million chunks and ten thousand questions.

    python -m integration_tests.benchmarks.evaluation_scale [--chunks 1000000] [--queries 10000] [--tokens 200]
    python -m integration_tests.benchmarks.evaluation_scale --files
    python -m integration_tests.benchmarks.evaluation_scale --command

Documents are random words; a question is some neighbouring words of one of them, and its evidence is where they stand.
Vectors of 384 numbers come from a hashed bag of words, since a real model reads a million chunks in hours: they cost
little and find what they should, so that scores can be checked. They are kept in a cache file, as `compare` does.
Peak memory is what the kernel saw of this process until then (VmHWM); what stands in the
temporary folder is not of it.

With `--command` documents and questions are files, excerpts are to be sought everywhere, and ``chunkcore compare`` is
run on them as users run it, with a model of sentence-transformers: the mean of all-MiniLM-L6-v2's own vectors of word
pieces, without its transformer, which would read for hours.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import numpy as np

from chunkcore.chunkers import get_chunker
from chunkcore.document import Document, Span
from chunkcore.evaluation.benchmarks import load_benchmark
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Evidence, Query
from chunkcore.evaluation.comparison import compare
from chunkcore.evaluation.experiment import run_experiment
from chunkcore.evaluation.measures import measures_at, parse_depth
from chunkcore.models import CachedEmbedder, EmbeddingCache
from chunkcore.models.base import Vectors
from chunkcore.report import ReportPage, write_report
from integration_tests.static_model import static_model

WORDS, DOCUMENT_WORDS, QUERY_WORDS = 20_000, 20_000, 12


class WordHashes:
    """A signed, hashed bag of words. An embedder that costs next to nothing, and finds shared words.

    >>> WordHashes(["fox", "hen"]).embed_documents(["fox hen", "fox"]).shape
    (2, 384)
    """

    name, fingerprint, max_tokens, symmetric = "word hashes", "word hashes 384", None, True
    dimensions = 384

    def __init__(self, vocabulary: Sequence[str]) -> None:
        draw = np.random.default_rng(1)
        self._number = {word: number for number, word in enumerate(vocabulary)}
        # One row more, of zeros, for what is cut off of a word.
        self._slots = np.append(draw.integers(0, self.dimensions, (len(vocabulary), 4)), [[0] * 4], axis=0)
        self._signs = np.append(draw.choice([-1.0, 1.0], (len(vocabulary), 4)), [[0.0] * 4], axis=0)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            words = [self._number.get(word, -1) for word in text.split()]
            slots, signs = self._slots[words].ravel(), self._signs[words].ravel()
            vectors[row] = np.bincount(slots, signs, minlength=self.dimensions)
        return vectors

    embed_queries = embed_documents


def drawn(chunks: int, tokens: int, queries: int) -> tuple[Benchmark, list[str]]:
    """About so many chunks of so many tokens, in documents of 20,000 words."""
    draw = np.random.default_rng(0)
    syllables = ["ba", "ko", "li", "mer", "nu", "pas", "ri", "so", "tan", "vel", "wi", "zu"]
    vocabulary = sorted({"".join(draw.choice(syllables, draw.integers(1, 4))) for _ in range(4 * WORDS)})[:WORDS]
    words = np.array(vocabulary, dtype=object)
    count = -(-chunks * tokens // (DOCUMENT_WORDS * TOKENS_PER_WORD))
    documents = [
        Document(f"d{number}", " ".join(words[draw.integers(0, len(words), DOCUMENT_WORDS)]))
        for number in range(int(count))
    ]
    asked = []
    for number in range(queries):
        document = documents[int(draw.integers(len(documents)))]
        start = document.text.index(" ", int(draw.integers(len(document.text) - 2_000))) + 1
        text = " ".join(document.text[start : start + 400].split(" ")[:QUERY_WORDS])
        asked.append(Query(f"q{number}", text, (Evidence(document.id, Span(start, start + len(text))),)))
    return Benchmark("drawn", documents, asked), vocabulary


def written(benchmark: Benchmark, folder: Path) -> tuple[Path, Path]:
    """The benchmark as a folder of texts and a file of questions, with excerpts that are to be sought everywhere."""
    docs, questions = folder / "docs", folder / "questions.jsonl"
    docs.mkdir()
    for document in benchmark.documents:
        (docs / f"{document.id}.txt").write_text(document.text, encoding="utf-8")
    with questions.open("w", encoding="utf-8") as file:
        for query in benchmark.queries:
            (evidence,) = query.evidence
            excerpt = evidence.span.slice(benchmark.document(evidence.document_id).text)
            file.write(json.dumps({"question": query.text, "evidence": [excerpt]}) + "\n")
    return docs, questions


def by_command(benchmark: Benchmark, options: list[str]) -> None:
    """Run ``chunkcore compare`` on files, and tell its time, its peak memory and its table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        docs, questions = written(benchmark, folder)
        files = ["--docs", str(docs), "--questions", str(questions), "-e", str(static_model(folder / "model"))]
        kept = ["--cache", str(folder / "cache.sqlite"), "-o", str(folder / "report")]
        began = time.perf_counter()
        command = [sys.executable, "-m", "chunkcore", "compare", *files, *kept, *options]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode:
            sys.exit(f"{command} ended with {ended.returncode}: {ended.stderr[-2000:]}")
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{time.perf_counter() - began:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of a processor, ", end="")
        print(f"peak {used.ru_maxrss / 2**20:.2f} GB\n")
        print("\n".join((folder / "report" / "report.md").read_text(encoding="utf-8").splitlines()[:40]))


TOKENS_PER_WORD = 2.85  # of these words, in cl100k_base


def peak() -> float:
    """The most memory that this process has had, in GB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 2**20


class Stages:
    """Prints a line a stage: seconds, processor seconds, and peak memory until then."""

    def __init__(self) -> None:
        print("| stage | seconds | of a processor | peak GB |\n|---|--:|--:|--:|")
        self._name = ""

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        self._begin(name)
        yield
        self._end()

    def progress(self, step: str, done: int, total: int) -> None:
        """A stage a step of `run_experiment`, which tells of "search" when all of it is done."""
        name = {"chunk": "cut", "queries": "search, tokens of the documents, score"}.get(step, step)
        if step == "search":
            self._end()
        elif name != self._name:
            self._end()
            self._begin(name)

    def _begin(self, name: str) -> None:
        self._name, self._wall, self._cpu = name, time.perf_counter(), time.process_time()

    def _end(self) -> None:
        if self._name:
            wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
            print(f"| {self._name} | {wall:.0f} | {cpu:.0f} | {peak():.2f} |", flush=True)
        self._name = ""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--tokens", type=int, default=200, help="a chunk")
    parser.add_argument("--strategy", "-s", action="append", help="default: fixed_token of --tokens")
    parser.add_argument("--retriever", "-r", action="append", help="default: dense")
    parser.add_argument("-k", type=parse_depth, action="append", help="default: 5, 10 and min, as of compare")
    parser.add_argument("--files", action="store_true", help="read documents and excerpts from files, and end")
    parser.add_argument("--command", action="store_true", help="run chunkcore compare on files, and end")
    options = parser.parse_args(arguments)
    stage = Stages()
    with stage("draw documents and questions"):
        benchmark, vocabulary = drawn(options.chunks, options.tokens, options.queries)
    if options.files:
        with tempfile.TemporaryDirectory() as folder:
            files = written(benchmark, Path(folder))
            with stage("read documents, place excerpts"):
                read = load_benchmark(*files)
        print(f"\n{len(read.documents):,} documents, {len(read.queries):,} questions, {len(read.problems)} problems")
        return
    size = sum(len(document.text) for document in benchmark.documents)
    ks = tuple(options.k or (5, 10, "min"))
    specs = options.strategy or [f"fixed_token:size={options.tokens}"]
    if options.command:
        by_command(benchmark, [*(f"-k{k}" for k in ks), *(f"-s{spec}" for spec in specs)])
        return
    with tempfile.TemporaryDirectory() as folder:
        cache = EmbeddingCache(Path(folder, "cache.sqlite"))
        reports = run_experiment(
            benchmark,
            [get_chunker(spec) for spec in specs],
            CachedEmbedder(WordHashes(vocabulary), cache),
            measures=measures_at(ks),
            retrievers=options.retriever or ["dense"],
            progress=stage.progress,
        )
        with stage("compare"):
            comparison = compare(reports, f"Recall@{ks[0]}")
        with stage("write the report"):
            study = ReportPage(comparison, benchmark, {}, date(2000, 1, 1).isoformat())
            write_report(study, Path(folder, "report"))
            sizes = {path.name: path.stat().st_size / 2**20 for path in Path(folder, "report").iterdir()}
        kept = Path(folder, "cache.sqlite").stat().st_size / 2**30
    print(f"\n{len(benchmark.documents):,} documents, {size / 1e6:,.0f} million characters, {kept:.1f} GB of cache")
    for report in reports:
        assert report.chunks is not None
        scores = ", ".join(f"{measure} {100 * report.mean(measure):.1f}" for measure in list(report.scores)[:4])
        seconds = ", ".join(f"{step} {value:.0f}" for step, value in report.seconds.items())
        print(f"{report.name}: {report.chunks.count:,} chunks, {len(report.query_ids):,} questions; {scores}")
        print(f"  seconds: {seconds}")
    print("report: " + ", ".join(f"{name} {size:.1f} MB" for name, size in sorted(sizes.items())))


if __name__ == "__main__":
    main()
