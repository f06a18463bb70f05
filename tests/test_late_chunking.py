"""Late chunking: whose tokens make a chunk's vector, what each token has seen, and which models are refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from chunkcore import Benchmark, DataError, OptionError, get_chunker, load_benchmark, run_experiment
from chunkcore.evaluation.measures import measures_at
from chunkcore.models import CachedEmbedder, LateEmbedder, get_token_embedder
from chunkcore.models.base import TextTokens, Vectors, text_tokens
from chunkcore.retrieval import chunk_corpus, get_retriever, load_index
from chunkcore.text import Chunk, Document, Span
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes import _WORD, FakeEmbedder, _word_vector
from tests.strategies import text_with_spans

Ids = np.ndarray


class FakeTokenEmbedder(FakeEmbedder):
    """Words are tokens; a token's vector is its word's and a tenth of every other that the model was given with it.

    One token stands before a text and one after it, and a text's vector is the mean of all its tokens' vectors.
    """

    def __init__(self, dimensions: int = 16, *, max_tokens: int | None = 12, context: float = 0.1) -> None:
        super().__init__(dimensions, name="fake-tokens", max_tokens=max_tokens)
        self.context = context
        self.words = ["<", ">"]
        self.windows: list[list[str]] = []
        self.token_calls: list[int] = []

    def tokenize(self, text: str) -> TextTokens:
        found = list(_WORD.finditer(text))
        ids = [0, *(self._id(match.group()) for match in found), 1]
        starts = np.array([0, *(match.start() for match in found), len(text)], dtype=np.int64)
        ends = np.array([0, *(match.end() for match in found), len(text)], dtype=np.int64)
        return TextTokens(np.array(ids, dtype=np.int64), starts, ends, 1, 1)

    def _id(self, word: str) -> int:
        if word not in self.words:
            self.words.append(word)
        return self.words.index(word)

    def embed_tokens(self, windows: Sequence[Ids]) -> list[Vectors]:
        self.token_calls.append(sum(map(len, windows)))
        answer = []
        for ids in windows:
            assert self.max_tokens is None or len(ids) <= self.max_tokens
            words = [self.words[i] for i in ids]
            self.windows.append(words)
            alone = np.array([_word_vector(word, self.dimensions) for word in words])
            answer.append((alone + self.context * alone.sum(axis=0)).astype(np.float32))
        return answer

    def _vector(self, text: str) -> np.ndarray:
        (rows,) = self.embed_tokens([self.tokenize(text).ids[: self.max_tokens]])
        return rows.mean(axis=0)


def chunk(text: str, *spans: tuple[int, int], document: str = "d", index: int = 0) -> Chunk:
    return Chunk(document, index, tuple(Span(*span) for span in spans), text, 0)


def test_a_chunks_vector_is_the_mean_of_its_own_tokens_read_with_all_others() -> None:
    model = FakeTokenEmbedder()
    late = LateEmbedder(model)
    model.windows.clear()
    text = "one two three four"
    found = late.embed_spans(text, [(Span(4, 7),), (Span(4, 13),), (Span(0, 3), Span(14, 18))])
    assert model.windows == [["<", "one", "two", "three", "four", ">"]]
    words = {word: _word_vector(word, 16) for word in ["<", "one", "two", "three", "four", ">"]}
    everything = 0.1 * sum(words.values())
    np.testing.assert_allclose(found[0], words["two"] + everything, rtol=1e-5)
    np.testing.assert_allclose(found[1], (words["two"] + words["three"]) / 2 + everything, rtol=1e-5)
    # What stands around the text counts with its first and its last word.
    ends = sum(words[word] for word in ["<", "one", "four", ">"])
    np.testing.assert_allclose(found[2], ends / 4 + everything, rtol=1e-5)


def test_a_chunk_that_is_all_of_a_short_document_has_the_models_own_vector() -> None:
    model = FakeTokenEmbedder()
    text = " The fox naps, then wakes. "
    (late,) = LateEmbedder(model).embed_spans(text, [(Span(0, len(text)),)])
    np.testing.assert_allclose(late, model.embed_documents([text])[0], rtol=1e-5)


def test_a_token_counts_with_every_chunk_that_has_a_character_of_it() -> None:
    late = LateEmbedder(FakeTokenEmbedder())
    halves = late.embed_spans("alpha beta", [(Span(0, 8),), (Span(8, 10),), (Span(6, 10),)])
    np.testing.assert_allclose(halves[1], halves[2], rtol=1e-6)
    assert not np.allclose(halves[0], halves[1])
    # A word that two spans of one chunk share counts once.
    split, whole = late.embed_spans("alpha beta gamma", [(Span(0, 7), Span(8, 10)), (Span(0, 10),)])
    np.testing.assert_allclose(split, whole, rtol=1e-6)


def reference(late: LateEmbedder, model: FakeTokenEmbedder, text: str, span: Span) -> np.ndarray:
    """The definition, token by token: each vector from the window in which the token is farthest from an edge."""
    tokens = model.tokenize(text)
    room = late.window - 2
    own = len(tokens.ids) - 2
    overlap = room // 2
    starts = [*range(0, max(1, own - overlap), room - overlap)]
    starts[-1] = max(0, own - room)
    total, count = np.zeros(model.dimensions), 0
    for token in range(own):
        if tokens.starts[token + 1] >= span.end or tokens.ends[token + 1] <= span.start:
            continue
        holding = [start for start in starts if start <= token < start + room]
        before = [token - start + 0.75 if start else np.inf for start in holding]
        after = [start + room - token if start + room < own else np.inf for start in holding]
        start = holding[int(np.argmax(np.minimum(before, after)))]
        ids = [0, *tokens.ids[start + 1 : min(start + room, own) + 1], 1]
        (rows,) = model.embed_tokens([np.array(ids)])
        total += rows[token - start + 1]
        count += 1
        if token == 0:
            total, count = total + rows[0], count + 1
        if token == own - 1:
            total, count = total + rows[-1], count + 1
    return total / max(count, 1)


@given(st.integers(1, 40), st.integers(4, 12), st.data())
@settings(deadline=None)
def test_long_documents_are_read_in_windows_and_every_token_deep_inside_one(words, window, data):
    model = FakeTokenEmbedder(max_tokens=window)
    late = LateEmbedder(model)
    text = " ".join(f"w{number}" for number in range(words))
    begin = data.draw(st.integers(0, len(text) - 1))
    span = Span(begin, data.draw(st.integers(begin + 1, len(text))))
    (found,) = late.embed_spans(text, [(span,)])
    np.testing.assert_allclose(found, reference(late, model, text, span), rtol=1e-4, atol=1e-5)


@given(text_with_spans(), st.integers(4, 12))
@settings(deadline=None)
def test_any_text_and_any_spans_have_finite_vectors(text_and_spans: tuple[str, list[Span]], window: int) -> None:
    text, spans = text_and_spans
    late = LateEmbedder(FakeTokenEmbedder(max_tokens=window))
    found = late.embed_spans(text, [(span,) for span in spans])
    assert len(found) == len(spans)
    assert np.isfinite(found).all()
    for span, row in zip(spans, found, strict=True):
        assert row.any() == any(match.start() < span.end and match.end() > span.start for match in _WORD.finditer(text))


def test_memory_stays_bounded_because_the_model_is_given_a_part_at_a_time() -> None:
    model = FakeTokenEmbedder(4, max_tokens=500)
    text = "word " * 30_000
    late = LateEmbedder(model)
    model.token_calls.clear()
    late.embed_spans(text, [(Span(0, 100),)])
    assert max(model.token_calls) <= 8192
    assert sum(model.token_calls) < 30_000 * 500 / 249 + 1000


def test_models_without_token_context_are_refused() -> None:
    with pytest.raises(OptionError, match=r"'fake' gives vectors of texts only.*choose a model"):
        LateEmbedder(FakeEmbedder())
    with pytest.raises(OptionError, match="'fake' gives vectors of texts only"):
        get_token_embedder(CachedEmbedder(FakeEmbedder()))
    model = FakeTokenEmbedder()
    assert get_token_embedder(CachedEmbedder(model)) is model


def test_chunks_of_other_documents_are_an_error() -> None:
    late = LateEmbedder(FakeTokenEmbedder())
    with pytest.raises(DataError, match="missing, such as 'd': give the documents"):
        late.embed_chunks([Document("other", "one")], [chunk("one", (0, 3))])
    with pytest.raises(DataError, match="end after the text, at 3"):
        late.embed_chunks([Document("d", "one")], [chunk("one", (0, 4))])


def test_tokens_stand_at_places_of_the_document_not_of_the_prompt() -> None:
    # [CLS] "query:" " on" "e" [SEP], of which " on" begins in the prompt "query: ".
    offsets = [(0, 0), (0, 6), (6, 9), (9, 10), (0, 0)]
    found = text_tokens("one", [1, 5, 6, 7, 2], offsets, [1, 0, 0, 0, 1], prompt="query: ")
    assert (found.before, found.after) == (2, 1)
    assert found.starts.tolist() == [0, 0, 0, 2, 3]
    assert found.ends.tolist() == [0, 0, 2, 3, 3]


def test_a_late_index_is_saved_loaded_and_updated_with_its_vectors(tmp_path: Path) -> None:
    documents = [Document("a", "Berlin is large. It has canals."), Document("b", "Rain falls. It is wet.")]
    model, method = FakeTokenEmbedder(), get_retriever("hybrid:late,bm25")
    index = method.index(chunk_corpus(documents, "sentence:size=4,counter=words"), model)
    model.windows.clear()
    loaded = load_index(index.save(tmp_path / "i"), embedder=model)
    later = loaded.update([Document("b", "Oslo is cold.")], without=["a"]).update(documents[:1])
    assert model.windows.count(["<", "Oslo", "is", "cold", ".", ">"]) == 1
    assert sum(window != ["<", "a", ">"] for window in model.windows) == 2
    anew = method.index(chunk_corpus(later.corpus.documents, "sentence:size=4,counter=words"), model)
    assert later.retrieve("It is cold.") == anew.retrieve("It is cold.")


@pytest.fixture
def benchmark() -> Benchmark:
    documents = [
        Document("a", "Berlin is large. It has many canals. It lies on the Spree."),
        Document("b", "Oslo is cold. It has many hills. It lies on a fjord."),
    ]
    rows = [
        {"question": "canals of Berlin", "evidence": [{"document": "a", "text": "It has many canals."}]},
        {"question": "where Oslo lies", "evidence": [{"document": "b", "text": "It lies on a fjord."}]},
    ]
    return load_benchmark(documents, rows, name="cities")


def test_late_vectors_are_cut_off_nowhere(benchmark: Benchmark) -> None:
    model = FakeTokenEmbedder(max_tokens=12)
    chunkers = [get_chunker("fixed_token:size=100")]
    (early,) = run_experiment(benchmark, chunkers, model, measures=measures_at([1]))
    (late,) = run_experiment(benchmark, chunkers, model, measures=measures_at([1]), retrievers=["late"])
    assert early.chunks is not None
    assert early.chunks.truncated == 2
    assert late.chunks is not None
    assert late.chunks.truncated == 0
