"""Two documents of the collection that ships, their chunks, their questions, and what exact search answers to these."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache

import pytest
from chunkcore import Benchmark, ChunkcoreError, Retrieved, Run, get_chunker, get_counter, load_dataset, run_retriever
from chunkcore.models import CachedEmbedder, get_embedder
from chunkcore.retrieval import Dense, TextVectors, chunk_corpus
from chunkcore.text import Document, Span, text_of_spans

# Nothing here goes online.
os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")
os.environ.setdefault("ANONYMIZED_TELEMETRY", "False")

STRATEGY, SIZES = "auto", {"size": 80}
DEPTH = 5
DIMENSION = 384  # of all-MiniLM-L6-v2
# Tables, code and headings, so that chunks are of several spans; and Japanese.
DOCUMENTS = ("api-reference.md", "handbook-ja.txt")
# Metadata of a user's documents that a store may not take as they are.
ODD = {"tags": ["a", "b"], "nested": {"deep": 1}, "nothing": None, "year": 2025, "weight": 0.5, "draft": False}


@cache
def model() -> CachedEmbedder:
    """The real model, which embeds each text once."""
    try:
        return CachedEmbedder(get_embedder("all-MiniLM-L6-v2"))
    except ChunkcoreError as error:
        pytest.skip(str(error))


@cache
def benchmark() -> Benchmark:
    whole = load_dataset("lochmere")
    queries = [query for query in whole.queries if {each.document_id for each in query.evidence} <= set(DOCUMENTS)]
    return Benchmark("two documents", [each for each in whole.documents if each.id in DOCUMENTS], queries)


def texts() -> dict[str, str]:
    return {each.id: each.text for each in benchmark().documents}


def edited() -> dict[str, str]:
    """The texts after an edit: the first document ends otherwise, so that the rest of its chunks stay."""
    name = DOCUMENTS[0]
    return {**texts(), name: texts()[name].rstrip()[:-200] + "The rest of the page was rewritten.\n"}


@cache
def expected() -> dict[str, list[tuple[Span, ...]]]:
    """By question, where the pieces stand that exact search over the same chunks answers with."""
    chunker = get_chunker(STRATEGY, **SIZES)
    index = Dense().index(chunk_corpus(benchmark().documents, chunker), TextVectors(model()))
    run = run_retriever(index, benchmark(), DEPTH)
    return {query: places(pieces) for query, pieces in run.results.items()}


def places(pieces: Iterable[Retrieved]) -> list[tuple[str, tuple[Span, ...]]]:
    return sorted((each.document_id, each.spans) for each in pieces)


def assert_found_by_spans(run: Run) -> None:
    """Every piece says itself where it stands, the text is there, and it is the piece that exact search finds."""
    assert not run.failures
    assert {query: places(pieces) for query, pieces in run.results.items()} == expected()
    for pieces in run.results.values():
        for piece in pieces:
            assert piece.match == "spans"
            stands = [span.slice(texts()[piece.document_id]) for span in piece.spans]
            assert piece.text == stands[0] or (len(stands) > 1 and all(part in piece.text for part in stands))
    assert any(len(piece.spans) > 1 for pieces in run.results.values() for piece in pieces)


BUDGET = 300  # tokens


def sources() -> list[Document]:
    return [Document(name, text) for name, text in texts().items()]


def assert_passages(found: Iterable[tuple[str, str, tuple[Span, ...]]]) -> None:
    """Passages of (document, text, spans): exact, disjoint, within the budget."""
    passages = list(found)
    whole = texts()
    taken: set[str] = set()
    for document, text, spans in passages:
        assert text == text_of_spans(whole[document], spans)
        places = {(document, place) for span in spans for place in range(span.start, span.end)}
        assert not places & taken
        taken |= places
    counter = get_counter("cl100k_base")
    assert 0 < sum(counter.count(text) for _, text, _ in passages) <= BUDGET
