"""What people write for a name of ours, and what errors suggest for it: other libraries' names, and likely guesses."""

from __future__ import annotations

from collections.abc import Mapping


def _by_guess(guesses: Mapping[str, str]) -> dict[str, str]:
    """What each guess means: `guesses` has them by what is meant."""
    return {guess: meant for meant, words in guesses.items() for guess in words.split()}


# Options: the first that a thing has is suggested.
OPTIONS = _by_guess(
    {
        "amount": "breakpoint_threshold_amount",
        "buffer": "buffer_size",
        "counter": "encoding_name length_function model_name split_unit tokenizer",
        "documents": "docs",
        "embedder": "embed_model",
        "embedder vectors": "embeddings",
        "k": "similarity_top_k top_k top_n",
        "keep": "keep_separator",
        "max_tokens": "budget",
        "maximum size": "max_chunk_size",
        "measures": "metrics",
        "measures measure": "metric",
        "minimum": "min_chunk_size split_threshold",
        "overlap": "chunk_overlap split_overlap",
        "regex": "is_separator_regex",
        "retriever": "base_retriever vector_store vectorstore",
        "retriever document_store": "store",
        "separators": "backup_separators paragraph_separator secondary_chunking_regex separator",
        "size": "max_tokens split_length",
        "size sentences": "chunk_size",
        "strip": "strip_whitespace",
        "threshold": "breakpoint_threshold_type",
        "vectors": "embedder",
        "where": "filter filters",
    }
)

CHUNKERS = _by_guess(
    {
        "'cluster_semantic', or 'breakpoint', which is LangChain's and LlamaIndex' semantic splitter": "semantic",
        "'fixed_token'": "token tokens",
        "'recursive:counter=characters'": "character characters recursive_character recursivecharactertextsplitter",
        "the retriever 'late'": "late",
    }
)

RETRIEVERS = _by_guess(
    {
        "'bm25'": "keyword keywords lexical sparse tf-idf tfidf",
        "'dense'": "embedding faiss mmr semantic similarity vector vectors",
        "'hybrid'": "ensemble fusion rrf",
    }
)

# Options of the command line; a text after the name says how it is used.
FLAGS = _by_guess(
    {
        "--chunker": "--splitter --strategy",
        "--chunker recursive:size=200": "--chunk-size --chunk_size --size",
        "--chunker recursive:size=200,overlap=20": "--chunk-overlap --overlap",
        "--count": "--n --questions",
        "--docs": "--documents --texts",
        "--embedder": "--embedding-model --model",
        "--max-tokens": "--budget --tokens",
        "--measure": "--metric --metrics",
        "--output": "--folder --format --html --save",
        "--questions": "--queries",
        "--where": "--filter",
        "docs as the first argument": "--docs",
        "-k": "--top --top-k --top_k --topk -n",
    }
)

# The same where a command has none of those: it cuts nothing, or its documents are FILES.
OTHER_FLAGS = _by_guess(
    {
        "--max-tokens": "--chunk-size --chunk_size --size",
        "files as the first argument": "--docs --documents --texts",
    }
)

# What a missing argument may be.
EXAMPLES = {
    "--llm": "--llm openai:gpt-5-mini@https://api.openai.com/v1",
    "--output": "-o docs.index",
    "--run": "--run run.jsonl",
    "DOCS": "docs/",
    "QUESTION": '"how long is the warranty?"',
}

COMMANDS = _by_guess(
    {
        "--help": "help",
        "--version": "version",
        "chunk": "split",
        "compare": "benchmark eval evaluate run",
        "compare, which without DOCS compares on the collection that ships": "demo",
        "compare, which writes report.html": "report",
        "label, which gets questions for your documents": "init",
        "questions check": "validate verify",
        "questions generate": "generate",
        "search": "ask query",
        "serve": "mcp",
    }
)

# Kinds of `chunkcore list`.
KINDS = _by_guess(
    {
        "chunkers": "splitters",
        "counters": "tokenizers",
        "embedders": "models",
        "measures": "metrics",
        "retrievers": "searchers",
        "stages": "rerankers",
    }
)

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

_FRAMEWORKS = "chunkadapters.langchain and chunkadapters.llamaindex"
_ALL = f"{_FRAMEWORKS} and chunkadapters.haystack"

# Names that are sought in `chunkcore` or `chunkadapters`, and the modules that have them.
HOMES = _by_guess(
    {
        "chunkadapters.haystack": "ChunkcoreDocumentSplitter",
        "chunkadapters.langchain": "ChunkcoreEmbeddings ChunkcoreTextSplitter PassageCompressor",
        "chunkadapters.llamaindex": "ChunkcoreNodeParser PassagePostprocessor",
        _FRAMEWORKS: "IndexRetriever PassageRetriever",
        _ALL: "aevaluate_retriever as_embedder as_llm evaluate_retriever from_document",
        "chunkadapters.exact": "exact",
        "chunkcore.report": "write_report",
        "chunkcore.study.comparing": "compare_systems",
    }
)


def elsewhere(package: str, name: str) -> str:
    """What an error says of a name that `package` lacks and another module has; "" for other names.

    >>> elsewhere("chunkadapters", "ChunkcoreTextSplitter")
    'chunkadapters has no ChunkcoreTextSplitter: it is in chunkadapters.langchain'
    """
    return f"{package} has no {name}: it is in {HOMES[name]}" if name in HOMES else ""
