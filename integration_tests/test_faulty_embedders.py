"""Embedding services that fail, behind the frameworks' own clients: an error with what was seen, and nothing kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from chunkcore.errors import ModelError
from chunkcore.models import CachedEmbedder, Embedder, EmbeddingCache
from tests import fake_llm_server
from tests.fake_llm_server import Handler, running

TEXTS = ["Tea is hot.", "The sea is deep.", "Fees are low.", "Bees are busy."]
KEY = "sk-very-secret-0123456789"


def vectors(make: Callable[[list[str]], list[Any]]) -> Callable[[Handler, dict[str, Any]], None]:
    """An answer of the vectors that are made of the texts, in their order."""

    def send(handler: Handler, body: dict[str, Any]) -> None:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        made = enumerate(make(texts))
        rows = [{"object": "embedding", "index": number, "embedding": row} for number, row in made]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        handler.send(json.dumps({"object": "list", "data": rows, "model": "m", "usage": usage}).encode())

    return send


def good_of(texts: list[str]) -> list[list[float]]:
    return [[float(len(text)), 0.5] for text in texts]


good = vectors(good_of)


def widening(handler: Handler, body: dict[str, Any]) -> None:
    """Vectors of 7 numbers from the second request on."""
    wide = vectors(lambda texts: [[0.5] * 7 for _ in texts])
    (good if handler.server.seen[body["model"]] == 1 else wide)(handler, body)


OURS = {
    "nan": vectors(lambda texts: [[0.5, float("nan"), 1.0] for _ in texts]),
    "infinite": vectors(lambda texts: [[0.5, float("inf"), 1.0] for _ in texts]),
    "ragged": vectors(lambda texts: [[0.5] * (number + 1) for number in range(len(texts))]),
    "half": vectors(lambda texts: good_of(texts)[: len(texts) // 2]),
    "empty": vectors(lambda texts: []),
    "words": vectors(lambda texts: [["no", "idea"] for _ in texts]),
    "no_vectors": vectors(lambda texts: [None for _ in texts]),
    "widening": widening,
}
COMMON = ("nan", "half", "no_json", "http_500")  # with every framework; the others with one
OTHERS = ("infinite", "ragged", "empty", "words", "no_vectors")
OTHERS += ("html", "http_429", "close", "truncated_body", "hanging")


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name, fault in OURS.items():
        monkeypatch.setitem(fake_llm_server.FAULTS, name, fault)
    monkeypatch.setattr(fake_llm_server, "embed", good)
    with running() as server:
        yield server.url


def limit(model: str) -> float:
    """Seconds: few only where nothing comes anyway."""
    return 0.5 if model == "hanging" else 60


def langchain(url: str, model: str) -> Embedder:
    openai = pytest.importorskip("langchain_openai")
    from chunkadapters.langchain import as_embedder

    made = {"base_url": url, "api_key": KEY, "max_retries": 0, "timeout": limit(model)}
    return as_embedder(openai.OpenAIEmbeddings(model=model, check_embedding_ctx_length=False, **made))


def llamaindex(url: str, model: str) -> Embedder:
    openai = pytest.importorskip("llama_index.embeddings.openai")
    from chunkadapters.llamaindex import as_embedder

    made = {"api_base": url, "api_key": KEY, "max_retries": 0, "timeout": limit(model)}
    return as_embedder(openai.OpenAIEmbedding(model_name=model, **made))


def haystack(url: str, model: str) -> Embedder:
    pytest.importorskip("openai")
    embedders = pytest.importorskip("haystack.components.embedders")
    from chunkadapters.haystack import as_embedder
    from haystack.utils import Secret

    made = {"api_base_url": url, "api_key": Secret.from_token(KEY), "max_retries": 0, "timeout": limit(model)}
    return as_embedder(embedders.OpenAIDocumentEmbedder(model=model, progress_bar=False, **made))


FRAMEWORKS = (langchain, llamaindex, haystack)
every = pytest.mark.parametrize("framework", FRAMEWORKS)


@pytest.mark.parametrize(
    ("framework", "fault"),
    [(framework, fault) for framework in FRAMEWORKS for fault in COMMON] + [(haystack, fault) for fault in OTHERS],
)
def test_a_service_that_goes_on_failing_is_one_error_and_nothing_of_it_is_kept(framework, fault, service, tmp_path):
    cache = EmbeddingCache(tmp_path / "cache.sqlite")
    embedder = CachedEmbedder(framework(service, fault), cache)
    with pytest.raises(ModelError) as told:
        embedder.embed_documents(TEXTS)
    assert len(cache) == 0
    assert KEY not in str(told.value)
    assert len(str(told.value)) < 1000


@every
@pytest.mark.parametrize("fault", ["ok", "half*1", "http_500*1"])
def test_a_service_that_recovers_is_believed(framework, fault, service, tmp_path):
    cache = EmbeddingCache(tmp_path / "cache.sqlite")
    embedder = CachedEmbedder(framework(service, fault), cache)
    assert embedder.embed_documents(TEXTS).tolist() == good_of(TEXTS)
    assert len(cache) == len(TEXTS)


@every
def test_a_service_that_changes_its_dimensions_is_told(framework, service, tmp_path):
    cache = EmbeddingCache(tmp_path / "cache.sqlite")
    embedder = CachedEmbedder(framework(service, "widening"), cache)
    embedder.embed_documents(TEXTS)
    with pytest.raises(ModelError, match=r"7 dimensions|several lengths"):
        embedder.embed_documents([*TEXTS, "One more."])
    assert len(cache) == len(TEXTS)
