"""What people write for a name of ours, and what errors suggest for it: other libraries' names, and likely guesses."""

from __future__ import annotations

from collections.abc import Mapping

# Options: the first that a thing has is suggested.
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "backup_separators": ("separators",),
    "base_retriever": ("retriever",),
    "breakpoint_threshold_amount": ("amount",),
    "breakpoint_threshold_type": ("threshold",),
    "budget": ("max_tokens",),
    "buffer_size": ("buffer",),
    "chunk_overlap": ("overlap",),
    "chunk_size": ("size", "sentences"),
    "docs": ("documents",),
    "embed_model": ("embedder",),
    "embedder": ("vectors",),
    "embeddings": ("embedder", "vectors"),
    "encoding_name": ("counter",),
    "filter": ("where",),
    "filters": ("where",),
    "is_separator_regex": ("regex",),
    "keep_separator": ("keep",),
    "length_function": ("counter",),
    "max_chunk_size": ("maximum", "size"),
    "max_tokens": ("size",),
    "metric": ("measures", "measure"),
    "metrics": ("measures",),
    "min_chunk_size": ("minimum",),
    "model_name": ("counter",),
    "paragraph_separator": ("separators",),
    "secondary_chunking_regex": ("separators",),
    "separator": ("separators",),
    "similarity_top_k": ("k",),
    "split_length": ("size",),
    "split_overlap": ("overlap",),
    "split_threshold": ("minimum",),
    "split_unit": ("counter",),
    "store": ("retriever", "document_store"),
    "strip_whitespace": ("strip",),
    "tokenizer": ("counter",),
    "top_k": ("k",),
    "top_n": ("k",),
    "vector_store": ("retriever",),
    "vectorstore": ("retriever",),
}

CHUNKERS = {
    "character": "'recursive:counter=characters'",
    "characters": "'recursive:counter=characters'",
    "late": "the retriever 'late'",
    "recursive_character": "'recursive:counter=characters'",
    "recursivecharactertextsplitter": "'recursive:counter=characters'",
    "semantic": "'cluster_semantic', or 'breakpoint', which is LangChain's and LlamaIndex' semantic splitter",
    "token": "'fixed_token'",
    "tokens": "'fixed_token'",
}

RETRIEVERS = {
    "embedding": "'dense'",
    "ensemble": "'hybrid'",
    "faiss": "'dense'",
    "fusion": "'hybrid'",
    "keyword": "'bm25'",
    "keywords": "'bm25'",
    "lexical": "'bm25'",
    "mmr": "'dense'",
    "rrf": "'hybrid'",
    "semantic": "'dense'",
    "similarity": "'dense'",
    "sparse": "'bm25'",
    "tf-idf": "'bm25'",
    "tfidf": "'bm25'",
    "vector": "'dense'",
    "vectors": "'dense'",
}

# Options of the command line; a text after the name says how it is used.
FLAGS = {
    "--budget": "--max-tokens",
    "--chunk-overlap": "--chunker recursive:size=200,overlap=20",
    "--chunk-size": "--chunker recursive:size=200",
    "--chunk_size": "--chunker recursive:size=200",
    "--documents": "--docs",
    "--embedding-model": "--embedder",
    "--filter": "--where",
    "--folder": "--output",
    "--format": "--output",
    "--html": "--output",
    "--metric": "--measure",
    "--metrics": "--measure",
    "--model": "--embedder",
    "--n": "--count",
    "--overlap": "--chunker recursive:size=200,overlap=20",
    "--queries": "--questions",
    "--questions": "--count",
    "--save": "--output",
    "--size": "--chunker recursive:size=200",
    "--splitter": "--chunker",
    "--strategy": "--chunker",
    "--texts": "--docs",
    "--tokens": "--max-tokens",
    "--top": "-k",
    "--top-k": "-k",
    "--top_k": "-k",
    "--topk": "-k",
    "-n": "-k",
}

# The same where a command cuts nothing.
FLAGS_OF_BUDGETS = dict.fromkeys(("--chunk-size", "--chunk_size", "--size"), "--max-tokens")

# What a missing argument may be.
EXAMPLES = {
    "--llm": "--llm openai:gpt-4o-mini",
    "--output": "-o docs.index",
    "--run": "--run run.jsonl",
    "DOCS": "docs/",
    "QUESTION": '"how long is the warranty?"',
}

COMMANDS = {
    "ask": "search",
    "benchmark": "compare",
    "eval": "compare",
    "evaluate": "compare",
    "demo": "compare, which without DOCS compares on the collection that ships",
    "generate": "questions generate",
    "help": "--help",
    "init": "label, which gets questions for your documents",
    "mcp": "serve",
    "query": "search",
    "report": "compare, which writes report.html",
    "run": "compare",
    "split": "chunk",
    "validate": "questions check",
    "verify": "questions check",
    "version": "--version",
}

# Kinds of `chunkcore list`.
KINDS = {
    "metrics": "measures",
    "models": "embedders",
    "rerankers": "stages",
    "searchers": "retrievers",
    "splitters": "chunkers",
    "tokenizers": "counters",
}

# Sizes without names, such as ChunkcoreTextSplitter(1000, 200).
SIZES_BY_PLACE = 'sizes have names: {}(chunk_size=1000, chunk_overlap=200, counter="characters")'

# Arguments that are given in the other order.
SWAPPED = {
    "score": "score takes the run first, then the benchmark: swap the two",
    "run_retriever": "run_retriever takes the retriever first, then the benchmark: swap the two",
    "load_benchmark": "load_benchmark takes the documents first, then the questions: swap the two, or make the "
    "documents Document objects",
}

NO_RETRIEVER = (
    "{} has no method retrieve(query, k): a framework's retriever is scored by evaluate_retriever of its adapter, "
    "such as chunkadapters.langchain"
)

_FRAMEWORKS = ("langchain", "llamaindex", "haystack")
_ALL = tuple(f"chunkadapters.{framework}" for framework in _FRAMEWORKS)

# Names that are sought in `chunkcore` or `chunkadapters`, and the modules that have them.
HOMES: Mapping[str, tuple[str, ...]] = {
    "ChunkcoreDocumentSplitter": ("chunkadapters.haystack",),
    "ChunkcoreEmbeddings": ("chunkadapters.langchain",),
    "ChunkcoreNodeParser": ("chunkadapters.llamaindex",),
    "ChunkcoreTextSplitter": ("chunkadapters.langchain",),
    "IndexRetriever": ("chunkadapters.langchain", "chunkadapters.llamaindex"),
    "PassageCompressor": ("chunkadapters.langchain",),
    "PassagePostprocessor": ("chunkadapters.llamaindex",),
    "PassageRetriever": ("chunkadapters.langchain", "chunkadapters.llamaindex"),
    "aevaluate_retriever": _ALL,
    "compare_systems": ("chunkcore.study.comparing",),
    "write_report": ("chunkcore.report",),
    "as_embedder": _ALL,
    "as_llm": _ALL,
    "evaluate_retriever": _ALL,
    "exact": ("chunkadapters.exact",),
    "from_document": _ALL,
}


def elsewhere(package: str, name: str) -> str:
    """What an error says of a name that `package` lacks and another module has; "" for other names.

    >>> elsewhere("chunkadapters", "ChunkcoreTextSplitter")
    'chunkadapters has no ChunkcoreTextSplitter: it is in chunkadapters.langchain'
    """
    homes = " and ".join(HOMES.get(name, ()))
    return f"{package} has no {name}: it is in {homes}" if homes else ""
