"""What a type checker reads of the core's public calls; `make check` reads this file, nothing runs it."""

from collections.abc import Sequence
from pathlib import Path

import chunkcore
from chunkcore.evaluation.benchmarks import Benchmark
from chunkcore.models import CachedEmbedder, EmbeddingCache
from chunkcore.retrieval import ChunkedCorpus, Index, RetrievalMethod
from chunkcore.study import System
from chunkcore.study.tuning import Tuning
from typing_extensions import assert_type


def texts() -> None:
    document = chunkcore.Document("tea.md", "Tea is hot.")
    assert_type(document.text, str)
    assert_type(document.marks, tuple[chunkcore.Mark, ...])
    assert_type(document.pages_of(chunkcore.Span(0, 3)), tuple[int, ...])
    chunker = chunkcore.get_chunker("recursive:size=200")
    assert_type(chunker, chunkcore.Chunker)
    assert_type(chunker.split_text(document.text), list[str])
    for chunk in chunker.chunk(document):
        assert_type(chunk, chunkcore.Chunk)
        assert_type(chunk.spans, tuple[chunkcore.Span, ...])
    assert_type(chunkcore.load_documents("docs/"), list[chunkcore.Document])
    assert_type(chunkcore.get_counter("cl100k_base"), chunkcore.TokenCounter)


def retrieval(documents: Sequence[chunkcore.Document]) -> None:
    corpus = chunkcore.chunk_corpus(documents, "sentence:size=50")
    assert_type(corpus, ChunkedCorpus)
    method = chunkcore.get_retriever("passages:lexical")
    assert_type(method, RetrievalMethod)
    index = method.index(corpus)
    assert_type(index, Index)
    for hit in index.retrieve("Is tea hot?", max_tokens=100):
        assert_type(hit, chunkcore.Retrieved)
    assert_type(chunkcore.load_index("folder"), Index)
    embedder = chunkcore.get_embedder("all-MiniLM-L6-v2")
    assert_type(embedder, chunkcore.Embedder)
    assert_type(CachedEmbedder(embedder, EmbeddingCache(Path("cache"))), CachedEmbedder)
    assert_type(chunkcore.get_llm("openai:model"), chunkcore.LLM)


def evaluation(index: Index) -> None:
    benchmark = chunkcore.load_dataset("lochmere")
    assert_type(benchmark, Benchmark)
    assert_type(chunkcore.load_benchmark("docs/", "questions.jsonl"), Benchmark)
    run = chunkcore.run_retriever(index, benchmark, k=5)
    assert_type(run, chunkcore.Run)
    report = chunkcore.score(run, benchmark, ["Recall@5"])
    assert_type(report, chunkcore.Report)
    assert_type(report.mean("Recall@5"), float)
    assert_type(report.system, System)
    comparison = chunkcore.compare([report, report], "Recall@5")
    assert_type(comparison, chunkcore.Comparison)
    assert_type(chunkcore.write_report(comparison, "report"), Path)
    assert_type(chunkcore.get_measure("Recall@5"), chunkcore.Measure)
    assert_type(chunkcore.read_run("run.jsonl", benchmark), chunkcore.Run)
    assert_type(chunkcore.write_run(run, "run.jsonl"), Path)
    assert_type(chunkcore.tune(benchmark), Tuning)
    for scored in chunkcore.run_experiment(benchmark, ["recursive:size=200"], retrievers=["bm25"]):
        assert_type(scored, chunkcore.Report)
