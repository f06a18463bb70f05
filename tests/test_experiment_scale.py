"""What a large run may not hold: a `Chunk` a chunk, a text twice, all vectors at once; and results stay the same."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from chunkcore.chunkers import get_chunker
from chunkcore.evaluation.benchmarks import loading as evidence
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Evidence, Query
from chunkcore.evaluation.measures import measures_at
from chunkcore.evaluation.scoring import Scorer
from chunkcore.models.base import Vectors
from chunkcore.retrieval import ChunkedCorpus, chunk_corpus
from chunkcore.retrieval import vectors as text_vectors
from chunkcore.study.experiment import run_experiment
from chunkcore.text import Chunk, Document, Span
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import FakeEmbedder

FOX = Document("fox.txt", "The quick fox naps. The crow 🐦 watches it.")
HEN = Document("hen.txt", "A hen\ud800 sits. Rain falls on it all day long.")

SPANS = st.tuples(st.integers(0, 30), st.integers(1, 9)).map(lambda pair: Span(pair[0], pair[0] + pair[1]))


@st.composite
def chunks(draw: st.DrawFn) -> Chunk:
    document = draw(st.sampled_from([FOX, HEN]))
    spans = tuple(draw(st.lists(SPANS, min_size=1, max_size=2)))
    text = draw(st.sampled_from(["".join(span.slice(document.text) for span in spans), "rewritten"]))
    return Chunk(
        document.id,
        draw(st.integers(0, 3)),
        spans,
        text,
        draw(st.integers(0, 9)),
        draw(st.sampled_from(["", "A title"])),
        draw(st.sampled_from([{}, {"heading": "One"}])),
        draw(st.sampled_from(["", "f1", "f2"])),
        draw(st.sampled_from([(), ((Span(0, 3),),)])),
        draw(st.booleans()),
    )


@given(st.lists(chunks(), max_size=8))
def test_compact_chunks_are_the_chunks(given_chunks: list[Chunk]) -> None:
    compact = ChunkedCorpus(given_chunks, [FOX, HEN])
    assert list(compact) == given_chunks
    assert [chunk.id for chunk in compact[1:]] == [chunk.id for chunk in given_chunks[1:]]
    assert compact.token_counts.tolist() == [chunk.token_count for chunk in given_chunks]
    if given_chunks:
        assert compact[-1] == given_chunks[-1]
    with pytest.raises(IndexError):
        compact[len(given_chunks)]


def test_a_plain_chunk_takes_a_few_numbers() -> None:
    story = Document("story.txt", "The hen sits. " * 4_000)
    chunk_corpus(
        [story], get_chunker("fixed_token:size=4,counter=words"), workers=1
    )  # what is made once is not counted
    tracemalloc.start()
    compact = chunk_corpus([story], get_chunker("fixed_token:size=4,counter=words"), workers=1)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(compact) == 3_000
    assert held < 100 * len(compact)


@pytest.fixture
def benchmark() -> Benchmark:
    draw = np.random.default_rng(0)
    words = np.array(["hen", "crow", "fox", "oak", "rain", "bread", "ferry", "noon", "cloth", "flour"])
    documents = [Document(f"d{number}", " ".join(draw.choice(words, 300))) for number in range(6)]
    queries = []
    for number in range(20):
        document = documents[number % 6]
        start = int(draw.integers(0, len(document.text) - 40))
        span = Span(start, start + 40)
        queries.append(Query(f"q{number}", span.slice(document.text), (Evidence(document.id, span),)))
    return Benchmark("drawn", documents, queries)


class SeesBlocks(FakeEmbedder):
    """Remembers the most texts that it was given at once."""

    most = 0

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.most = max(self.most, len(texts))
        return super().embed_documents(texts)


SPECS = ("fixed_token:size=9,counter=words", "recursive:size=9,counter=words", "sentence:size=30,counter=words")


def test_a_run_in_blocks_and_files_has_the_same_scores(benchmark: Benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of five texts, and every vector on disk, where a small run has one block and an array."""

    def reports() -> list[dict]:
        model = SeesBlocks()
        measures = measures_at((3, "min", "40tok"))
        scorer, cutters = Scorer(benchmark, counter="words"), [get_chunker(spec) for spec in SPECS]
        made = run_experiment(scorer, cutters, model, measures=measures)
        assert len(model.texts) == len(set(model.texts))
        plain = [each.to_dict() for each in made]
        for each in plain:
            each["seconds"] = 0
            each["cost"]["embedder_calls"] = 0
        return [*plain, {"most": model.most}]

    whole = reports()
    monkeypatch.setattr(text_vectors, "EMBEDDED_AT_ONCE", 5)
    monkeypatch.setattr(text_vectors, "MEMORY", 0)
    apart = reports()
    assert whole[:-1] == apart[:-1]
    assert whole[-1]["most"] > apart[-1]["most"] == 20  # the questions: chunks came five at a time


@given(st.integers(0, 10**6))
def test_an_excerpt_is_found_by_the_index_where_reading_finds_it(seed: int) -> None:
    """Few letters, so that excerpts repeat and overlap themselves, across documents that end in their middle."""
    draw = np.random.default_rng(seed)
    texts = [
        "".join(draw.choice(list("ab é\ud800"), int(draw.integers(0, 200)), p=[0.9, 0.07, 0.01, 0.01, 0.01]))
        for _ in range(5)
    ]
    documents = [Document(f"d{number}", text + "a" * int(draw.integers(60))) for number, text in enumerate(texts)]
    finder = evidence.EvidenceFinder(documents)
    for _ in range(8):
        text = documents[int(draw.integers(5))].text
        start = int(draw.integers(len(text) + 1))
        excerpt = text[start : start + int(draw.integers(1, 60))] or "a" * 40
        assert list(finder._places(excerpt, finder._listed)) == list(finder._places(excerpt, documents))
