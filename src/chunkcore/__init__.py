"""Chunking for retrieval with exact spans, and honest evaluation of it.

text -> `Document` -> `Chunker` -> `Chunk`s -> index -> `Retriever` -> `Run` -> `evaluate` -> `Report` -> `compare`

>>> from chunkcore import Document, Recursive
>>> story = Document("story.txt", "The fox naps. The dog naps. The fox wakes.")
>>> [(chunk.text, chunk.start, chunk.end) for chunk in Recursive(size=15, counter="characters").chunk(story)]
[('The fox naps.', 0, 13), ('The dog naps.', 14, 27), ('The fox wakes.', 28, 42)]
"""

from chunkcore.answering import Answer, AnswerRun, answer_questions, score_answers
from chunkcore.chunkers import (
    Agentic,
    Auto,
    Breakpoint,
    Chunker,
    ClusterSemantic,
    Code,
    Contextual,
    Dbscan,
    Draft,
    DraftingChunker,
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
    build_chunker,
    format_chunker,
    load_chunkers,
    parse_chunker,
    register,
    strategies,
)
from chunkcore.chunkers.grids import Grid, parse_grid
from chunkcore.chunkers.overlap import SemanticOverlap
from chunkcore.datasets import dataset_path, list_datasets, load_dataset
from chunkcore.document import Chunk, Document, Mark, Span
from chunkcore.errors import (
    ChunkcoreError,
    DataError,
    MissingExtraError,
    ModelError,
    NoAnswerError,
    OptionError,
    SizeError,
)
from chunkcore.evaluation.alignment import Aligner
from chunkcore.evaluation.benchmark import Benchmark, Evidence, Problem, Query
from chunkcore.evaluation.choices import Choice, Gap
from chunkcore.evaluation.comparison import Comparison, Difference, compare
from chunkcore.evaluation.costs import Cost
from chunkcore.evaluation.experiment import run_chunkers
from chunkcore.evaluation.gate import Check, check_baseline, check_requirement
from chunkcore.evaluation.loading import load_benchmark, load_segmented
from chunkcore.evaluation.measures import Measure, parse_measure
from chunkcore.evaluation.pareto import pareto_front
from chunkcore.evaluation.parts import Part, parts_of
from chunkcore.evaluation.pool_files import read_pool, write_pool
from chunkcore.evaluation.results import ChunkStatistics, Report
from chunkcore.evaluation.run import Retrieved, Retriever, Run
from chunkcore.evaluation.run_files import read_run, write_run
from chunkcore.evaluation.scoring import evaluate
from chunkcore.evaluation.segmentation import BoundaryScores, boundary_scores, boundary_similarity, pk, window_diff
from chunkcore.evaluation.segments import SegmentOptions, SegmentReport, score_segments
from chunkcore.evaluation.sweep import Sweep, run_sweep
from chunkcore.generation import (
    CallBudget,
    FilterThresholds,
    Finding,
    Generated,
    GenerationOptions,
    Rejection,
    ValidationOptions,
    estimate_generation,
    generate_benchmark,
    validate_benchmark,
)
from chunkcore.index import DenseIndex, MultiVectorIndex, top_k
from chunkcore.models import (
    CachedEmbedder,
    CacheWarning,
    Embedder,
    EmbeddingCache,
    LateEmbedder,
    TokenEmbedder,
    get_embedder,
)
from chunkcore.models.llm import LLM, CachedLLM, CallableLLM, LLMCache, Prices, Usage, get_llm
from chunkcore.protocols import sample_queries, stitch, whole_sentences, write_benchmark
from chunkcore.retrieval import (
    BM25,
    HNSW,
    Dense,
    Hybrid,
    Late,
    Pool,
    Ranked,
    Reranked,
    Reranker,
    Searcher,
    SearchMethod,
    Sharded,
    get_reranker,
    get_search,
)
from chunkcore.segmenters import Segmenter, Tagger, TextTiling, get_segmenter
from chunkcore.stored import store_documents
from chunkcore.tokens import TokenCounter, get_counter
from chunkcore.tuning import TuneOptions, Tuning, tune
from chunkcore.update import KeptChunk, UpdatePlan, plan_update

__all__ = [
    "BM25",
    "HNSW",
    "LLM",
    "Agentic",
    "Aligner",
    "Answer",
    "AnswerRun",
    "Auto",
    "Benchmark",
    "BoundaryScores",
    "Breakpoint",
    "CacheWarning",
    "CachedEmbedder",
    "CachedLLM",
    "CallBudget",
    "CallableLLM",
    "Check",
    "Choice",
    "Chunk",
    "ChunkStatistics",
    "ChunkcoreError",
    "Chunker",
    "ClusterSemantic",
    "Code",
    "Comparison",
    "Contextual",
    "Cost",
    "DataError",
    "Dbscan",
    "Dense",
    "DenseIndex",
    "Difference",
    "Document",
    "Draft",
    "DraftingChunker",
    "DualSemantic",
    "Embedder",
    "EmbeddingCache",
    "Evidence",
    "FilterThresholds",
    "Finding",
    "FixedSentences",
    "FixedToken",
    "Gap",
    "Generated",
    "GenerationOptions",
    "Grid",
    "Hierarchical",
    "Html",
    "Hybrid",
    "Kamradt",
    "KamradtModified",
    "KeptChunk",
    "LLMCache",
    "LLMSemantic",
    "Late",
    "LateEmbedder",
    "Lumber",
    "Mark",
    "Markdown",
    "Measure",
    "MissingExtraError",
    "ModelError",
    "MultiVectorIndex",
    "NoAnswerError",
    "OptionError",
    "Part",
    "Pool",
    "Prices",
    "Problem",
    "Propositions",
    "Query",
    "Ranked",
    "Recursive",
    "Rejection",
    "Report",
    "Reranked",
    "Reranker",
    "Retrieved",
    "Retriever",
    "Run",
    "SearchMethod",
    "Searcher",
    "SegmentOptions",
    "SegmentReport",
    "Segmenter",
    "SemanticOverlap",
    "Sentence",
    "Sharded",
    "SingleLinkage",
    "SizeError",
    "Span",
    "Sweep",
    "Tagger",
    "TextTiling",
    "TokenCounter",
    "TokenEmbedder",
    "TuneOptions",
    "Tuning",
    "UpdatePlan",
    "Usage",
    "ValidationOptions",
    "answer_questions",
    "boundary_scores",
    "boundary_similarity",
    "build_chunker",
    "check_baseline",
    "check_requirement",
    "compare",
    "dataset_path",
    "estimate_generation",
    "evaluate",
    "format_chunker",
    "generate_benchmark",
    "get_counter",
    "get_embedder",
    "get_llm",
    "get_reranker",
    "get_search",
    "get_segmenter",
    "list_datasets",
    "load_benchmark",
    "load_chunkers",
    "load_dataset",
    "load_segmented",
    "pareto_front",
    "parse_chunker",
    "parse_grid",
    "parse_measure",
    "parts_of",
    "pk",
    "plan_update",
    "read_pool",
    "read_run",
    "register",
    "run_chunkers",
    "run_sweep",
    "sample_queries",
    "score_answers",
    "score_segments",
    "stitch",
    "store_documents",
    "strategies",
    "top_k",
    "tune",
    "validate_benchmark",
    "whole_sentences",
    "window_diff",
    "write_benchmark",
    "write_pool",
    "write_run",
]
