"""Chunking for retrieval with exact spans, and honest evaluation of it.

text -> `Document` -> `Chunker` -> `Chunk`s -> `Index` -> `Retriever` -> `Retrieved` -> `Run` -> `score` -> `Report`
-> `compare` -> page

>>> import tempfile
>>> from chunkcore import Benchmark, Document, Evidence, Query, Recursive, Retrieved, Span
>>> from chunkcore import compare, cut, get_retriever, run_retriever, score, write_report
>>> story = Document("story.txt", "The fox naps. The dog naps. The fox wakes.")
>>> corpus = cut([story], Recursive(size=15, counter="characters"))
>>> [(chunk.text, chunk.start, chunk.end) for chunk in corpus]
[('The fox naps.', 0, 13), ('The dog naps.', 14, 27), ('The fox wakes.', 28, 42)]
>>> class InOrder:
...     def retrieve(self, query, k=None, max_tokens=None):
...         return [Retrieved(chunk.document_id, chunk.spans, text=chunk.text) for chunk in corpus][:k]
>>> toy = Benchmark("toy", [story], [Query("q1", "Which dog naps?", (Evidence("story.txt", Span(14, 27)),))])
>>> retrievers = {"in order": InOrder(), "bm25": get_retriever("bm25").index(corpus)}
>>> runs = [run_retriever(each, toy, k=1, name=name) for name, each in retrievers.items()]
>>> reports = [score(run, toy, ["Recall@1"]) for run in runs]
>>> [report.mean("Recall@1") for report in reports]
[0.0, 1.0]
>>> with tempfile.TemporaryDirectory() as folder:
...     write_report(compare(reports, "Recall@1"), folder).html.name
'report.html'
"""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING:
    from chunkcore.chunkers import (
        Agentic,
        Auto,
        Breakpoint,
        Chunker,
        ClusterSemantic,
        Code,
        Contextual,
        Dbscan,
        DualSemantic,
        FixedSentences,
        FixedToken,
        Hierarchical,
        Html,
        Kamradt,
        KamradtModified,
        LLMSemantic,
        Lumber,
        Markdown,
        Propositions,
        Recursive,
        Sentence,
        SingleLinkage,
        get_chunker,
        get_chunkers,
        strategies,
    )
    from chunkcore.datasets import load_dataset
    from chunkcore.document import Chunk, Document, Mark, Span
    from chunkcore.errors import ChunkcoreError, DataError, MissingExtraError, ModelError, OptionError
    from chunkcore.evaluation.benchmarks import Benchmark, Evidence, Query, layouts, load_benchmark
    from chunkcore.evaluation.experiment import run_experiment, run_retriever
    from chunkcore.evaluation.measures import Measure, RetrievalMeasure, get_measure, measures
    from chunkcore.evaluation.results import Report
    from chunkcore.evaluation.run_files import read_run, write_run
    from chunkcore.evaluation.scoring import score
    from chunkcore.evaluation.statistics.comparison import Comparison, compare
    from chunkcore.models import Embedder, embedders, get_embedder
    from chunkcore.models.llm import LLM, get_llm, llms
    from chunkcore.registry import Registry
    from chunkcore.report import write_report
    from chunkcore.retrieval import ChunkedCorpus, Hits, Index, RetrievalMethod, cut, get_retriever, retrievers
    from chunkcore.run import Retrieved, Retriever, Run
    from chunkcore.segmenters import Segmenter, get_segmenter
    from chunkcore.tokens import TokenCounter, get_counter
    from chunkcore.tokens.counters import counters
    from chunkcore.tuning import tune

__all__ = [
    "LLM",
    "Agentic",
    "Auto",
    "Benchmark",
    "Breakpoint",
    "Chunk",
    "ChunkcoreError",
    "ChunkedCorpus",
    "Chunker",
    "ClusterSemantic",
    "Code",
    "Comparison",
    "Contextual",
    "DataError",
    "Dbscan",
    "Document",
    "DualSemantic",
    "Embedder",
    "Evidence",
    "FixedSentences",
    "FixedToken",
    "Hierarchical",
    "Hits",
    "Html",
    "Index",
    "Kamradt",
    "KamradtModified",
    "LLMSemantic",
    "Lumber",
    "Mark",
    "Markdown",
    "Measure",
    "MissingExtraError",
    "ModelError",
    "OptionError",
    "Propositions",
    "Query",
    "Recursive",
    "Registry",
    "Report",
    "RetrievalMeasure",
    "RetrievalMethod",
    "Retrieved",
    "Retriever",
    "Run",
    "Segmenter",
    "Sentence",
    "SingleLinkage",
    "Span",
    "TokenCounter",
    "compare",
    "counters",
    "cut",
    "embedders",
    "get_chunker",
    "get_chunkers",
    "get_counter",
    "get_embedder",
    "get_llm",
    "get_measure",
    "get_retriever",
    "get_segmenter",
    "layouts",
    "llms",
    "load_benchmark",
    "load_dataset",
    "measures",
    "read_run",
    "retrievers",
    "run_experiment",
    "run_retriever",
    "score",
    "strategies",
    "tune",
    "write_report",
    "write_run",
]

if not TYPE_CHECKING:  # a type checker knows the imports above, and refuses other names
    __getattr__, __dir__ = on_first_use(
        __name__,
        """
.chunkers: Agentic Auto Breakpoint Chunker ClusterSemantic Code Contextual Dbscan DualSemantic FixedSentences
    FixedToken Hierarchical Html Kamradt KamradtModified LLMSemantic Lumber Markdown Propositions Recursive
    Sentence SingleLinkage get_chunker get_chunkers strategies
.datasets: load_dataset
.document: Chunk Document Mark Span
.errors: ChunkcoreError DataError MissingExtraError ModelError OptionError
.evaluation.benchmarks: Benchmark Evidence Query layouts load_benchmark
.evaluation.experiment: run_experiment run_retriever
.evaluation.measures: Measure RetrievalMeasure get_measure measures
.evaluation.results: Report
.evaluation.run_files: read_run write_run
.evaluation.scoring: score
.evaluation.statistics.comparison: Comparison compare
.models: Embedder embedders get_embedder
.models.llm: LLM get_llm llms
.registry: Registry
.report: write_report
.retrieval: ChunkedCorpus Hits Index RetrievalMethod cut get_retriever retrievers
.run: Retrieved Retriever Run
.segmenters: Segmenter get_segmenter
.tokens: TokenCounter get_counter
.tokens.counters: counters
.tuning: tune
        """,
    )
