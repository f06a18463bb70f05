"""Chunking for retrieval with exact spans, and honest evaluation of it.

text -> `Document` -> `Chunker` -> `Chunk`s -> `Index` -> `Retriever` -> `Retrieved` -> `Run` -> `score` -> `Report`
-> `compare` -> page

>>> import tempfile
>>> from chunkcore import Benchmark, Document, Evidence, Query, Retrieved, Span
>>> from chunkcore import compare, chunk_corpus, get_retriever, run_retriever, score, write_report
>>> story = Document("story.txt", "The fox naps. The dog naps. The fox wakes.")
>>> corpus = chunk_corpus([story], "recursive:size=15,counter=characters")
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
...     write_report(compare(reports, "Recall@1"), folder).name
'report.html'
"""

import os
import sys


def _leave_current_folder() -> None:
    """``python -m chunkcore.anything`` puts the current folder first on the path: its modules would run instead of
    installed ones. The word that names the module stands before the arguments; flags may stand in it (-umchunkcore).
    """
    word = sys.orig_argv[-len(sys.argv)]
    module = word.partition("m")[2] if word.startswith("-") else word
    is_ours = module.partition(".")[0] in ("chunkcore", "chunkadapters")
    is_safe = getattr(sys.flags, "safe_path", sys.flags.isolated)
    try:  # contextlib would be the current folder's
        if is_ours and not is_safe and sys.path[0] == os.getcwd():  # noqa: PTH109
            del sys.path[0]
    except OSError:  # the folder is gone
        pass


if sys.argv[:1] == ["-m"]:  # until the module is found
    _leave_current_folder()

from typing import TYPE_CHECKING  # noqa: E402

from chunkcore.lazy import on_first_use  # noqa: E402

__version__ = "0.3.0"

if TYPE_CHECKING:
    from chunkcore.chunkers import Chunker as Chunker, get_chunker as get_chunker
    from chunkcore.datasets import load_dataset as load_dataset
    from chunkcore.errors import (
        ChunkcoreError as ChunkcoreError,
        DataError as DataError,
        MissingExtraError as MissingExtraError,
        ModelError as ModelError,
        OptionError as OptionError,
    )
    from chunkcore.evaluation.benchmarks import (
        Benchmark as Benchmark,
        Evidence as Evidence,
        Query as Query,
        load_benchmark as load_benchmark,
    )
    from chunkcore.evaluation.comparison import Comparison as Comparison, compare as compare
    from chunkcore.evaluation.measures import Measure as Measure, get_measure as get_measure
    from chunkcore.evaluation.results import Report as Report
    from chunkcore.evaluation.run_files import read_run as read_run, write_run as write_run
    from chunkcore.evaluation.scoring import score as score
    from chunkcore.models import Embedder as Embedder, get_embedder as get_embedder
    from chunkcore.models.llm import LLM as LLM, get_llm as get_llm
    from chunkcore.models.loading import get_counter as get_counter
    from chunkcore.reading.opening import load_documents as load_documents
    from chunkcore.report import write_report as write_report
    from chunkcore.retrieval import (
        ChunkedCorpus as ChunkedCorpus,
        Index as Index,
        chunk_corpus as chunk_corpus,
        get_retriever as get_retriever,
    )
    from chunkcore.retrieval.stage import load_index as load_index
    from chunkcore.run import Retrieved as Retrieved, Retriever as Retriever, Run as Run
    from chunkcore.study.experiment import (
        run_experiment as run_experiment,
        run_retriever as run_retriever,
    )
    from chunkcore.study.tuning import tune as tune
    from chunkcore.text import Chunk as Chunk, Document as Document, Mark as Mark, Span as Span
    from chunkcore.tokens import TokenCounter as TokenCounter

on_first_use(
    __name__,
    {
        "chunkcore.chunkers": "Chunker get_chunker",
        "chunkcore.datasets": "load_dataset",
        "chunkcore.errors": "ChunkcoreError DataError MissingExtraError ModelError OptionError",
        "chunkcore.evaluation.benchmarks": "Benchmark Evidence Query load_benchmark",
        "chunkcore.evaluation.comparison": "Comparison compare",
        "chunkcore.evaluation.measures": "Measure get_measure",
        "chunkcore.evaluation.results": "Report",
        "chunkcore.evaluation.run_files": "read_run write_run",
        "chunkcore.evaluation.scoring": "score",
        "chunkcore.models": "Embedder get_embedder",
        "chunkcore.models.llm": "LLM get_llm",
        "chunkcore.models.loading": "get_counter",
        "chunkcore.reading.opening": "load_documents",
        "chunkcore.report": "write_report",
        "chunkcore.retrieval": "ChunkedCorpus Index chunk_corpus get_retriever",
        "chunkcore.retrieval.stage": "load_index",
        "chunkcore.run": "Retrieved Retriever Run",
        "chunkcore.study.experiment": "run_experiment run_retriever",
        "chunkcore.study.tuning": "tune",
        "chunkcore.text": "Chunk Document Mark Span",
        "chunkcore.tokens": "TokenCounter",
    },
)
