"""Late chunking with the real model, on both backends: exact places, the model's own vectors, context that shows."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from chunkcore import Document, Span, get_chunker, get_embedder, load_dataset
from chunkcore.models import LateEmbedder
from chunkcore.models.base import TokenEmbedder
from chunkcore.models.loading import EmbedderCounter

HARD = "Hello wörld, the naïve fox. 👩‍👩‍👧 İs <|x|> 漢字 don't\r\nมาก \ud83d end."


@pytest.fixture(scope="module", params=["openvino", "torch"])
def model(request: pytest.FixtureRequest) -> TokenEmbedder:
    package = {"openvino": "openvino", "torch": "sentence_transformers"}[request.param]
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    found = get_embedder(f"{request.param}:all-MiniLM-L6-v2")
    assert isinstance(found, TokenEmbedder)
    return found


def cosine(left: np.ndarray, right: np.ndarray) -> float:
    return float(left @ right / np.linalg.norm(left) / np.linalg.norm(right))


def test_the_mean_over_a_whole_text_is_the_models_own_vector(model: TokenEmbedder) -> None:
    late = LateEmbedder(model)
    for text in (HARD, "One.", load_dataset("lochmere").documents[0].text[:600]):
        (found,) = late.embed_spans(text, [(Span(0, len(text)),)])
        assert cosine(found, model.embed_documents([text])[0]) > 0.99999


def test_tokens_stand_where_the_text_has_them(model: TokenEmbedder) -> None:
    tokens = model.tokenize(HARD)
    places = zip(tokens.starts[1:-1].tolist(), tokens.ends[1:-1].tolist(), strict=True)
    words = [HARD[start:end] for start, end in places]
    assert words[:8] == ["Hello", "wörld", ",", "the", "naïve", "fox", ".", "👩‍👩‍👧"]
    assert words[-2:] == ["end", "."]
    assert (tokens.before, tokens.after) == (1, 1)
    # Nothing is cut off, however long.
    assert len(model.tokenize("fox " * 5000).ids) == 5002


def test_a_pronoun_is_found_by_what_it_stands_for(model: TokenEmbedder) -> None:
    text = "Berlin is the capital of Germany. It has 3.7 million people. The trout is a fish. It swims upstream."
    chunker = get_chunker("fixed_sentences:sentences=1")
    chunks = chunker.chunk(Document("d", text))
    late = LateEmbedder(model).embed_chunks([Document("d", text)], chunks)
    early = model.embed_documents([chunk.text for chunk in chunks])
    question = model.embed_queries(["Berlin"])[0]
    assert chunks[1].text == "It has 3.7 million people."
    assert cosine(question, late[1]) > cosine(question, early[1]) + 0.1


def test_the_models_tokens_are_a_counter_and_a_maximum_in_them_holds(model: TokenEmbedder) -> None:
    counter = EmbedderCounter(model)
    texts = [HARD, "", "One two.", "漢字" * 50]
    assert counter.count_many(texts).tolist() == [len(counter.boundaries(text)) for text in texts]
    text = load_dataset("lochmere").documents[1].text[:3000]
    cut = get_chunker("sentence", size=20, counter=counter).split_text(text)
    assert max(model.count_tokens(cut)) <= 22  # type: ignore[attr-defined]
