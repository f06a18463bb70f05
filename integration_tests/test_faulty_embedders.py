"""Embedding services that fail, behind the frameworks' own clients: an error with what was seen, and nothing kept."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from chunkcore.errors import ModelError
from chunkcore.models import CachedEmbedder, Embedder, EmbeddingCache

TEXTS = ["Tea is hot.", "The sea is deep.", "Fees are low.", "Bees are busy."]
GOOD = [[0.5, 0.25, float(number)] for number in range(len(TEXTS))]
KEY = "sk-very-secret-0123456789"


class Handler(BaseHTTPRequestHandler):
    """Answers a request for embeddings in the way that the model's name asks for."""

    server: Service

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fault, _, times = body["model"].partition("*")
        count = 1 if isinstance(body["input"], str) else len(body["input"])
        self.server.asked += 1
        if times and self.server.asked > int(times):
            fault = "ok"
        FAULTS[fault](self, count)

    def tell(self, data: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"content_type": "application/json", "content_length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def vectors(self, vectors: list[Any]) -> None:
        rows = [{"object": "embedding", "index": number, "embedding": each} for number, each in enumerate(vectors)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        self.tell(json.dumps({"object": "list", "data": rows, "model": "m", "usage": usage}).encode())

    def fail(self, status: int, **headers: str) -> None:
        self.tell(
            json.dumps({"error": {"message": f"oops {self.headers['Authorization']}"}}).encode(), status, **headers
        )

    def hang_up(self, count: int) -> None:
        self.close_connection = True

    def break_off(self, count: int) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "100000")
        self.end_headers()
        self.wfile.write(b'{"data": [{"embed')
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


def hang(handler: Handler, count: int) -> None:
    time.sleep(30)


FAULTS: dict[str, Callable[[Handler, int], None]] = {
    "ok": lambda handler, count: handler.vectors(GOOD[:count]),
    "nan": lambda handler, count: handler.vectors([[0.5, float("nan"), 1.0]] * count),
    "infinite": lambda handler, count: handler.vectors([[0.5, float("inf"), 1.0]] * count),
    "ragged": lambda handler, count: handler.vectors([[0.5] * (number + 1) for number in range(count)]),
    "half": lambda handler, count: handler.vectors(GOOD[: count // 2]),
    "empty": lambda handler, count: handler.vectors([]),
    "words": lambda handler, count: handler.vectors([["no", "idea"]] * count),
    "no_vectors": lambda handler, count: handler.vectors([None] * count),
    "no_json": lambda handler, count: handler.tell(b"{ this is no JSON"),
    "no_object": lambda handler, count: handler.tell(b"[]"),
    "http_429": lambda handler, count: handler.fail(429, retry_after="0.01"),
    "http_500": lambda handler, count: handler.fail(500, retry_after="0.01"),
    "http_503": lambda handler, count: handler.fail(503, retry_after="0.01"),
    "hang_up": Handler.hang_up,
    "break_off": Handler.break_off,
    "hang": hang,
}
LASTING = tuple(each for each in FAULTS if each != "ok")
COMMON = ("nan", "half", "no_json", "http_500")  # with every framework; the others with one


class Service(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    asked = 0

    def handle_error(self, *_: object) -> None:
        """Whoever asked has hung up."""


@pytest.fixture
def service() -> Iterator[str]:
    with Service(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()


def limit(model: str) -> float:
    """Seconds: few only where nothing comes anyway."""
    return 0.5 if model == "hang" else 60


def langchain(url: str, model: str) -> Embedder:
    openai = pytest.importorskip("langchain_openai")
    from chunkadapters.langchain import as_embedder

    return as_embedder(
        openai.OpenAIEmbeddings(
            model=model,
            base_url=url,
            api_key=KEY,
            check_embedding_ctx_length=False,
            max_retries=0,
            timeout=limit(model),
        )
    )


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

    return as_embedder(
        embedders.OpenAIDocumentEmbedder(
            api_key=Secret.from_token(KEY),
            model=model,
            api_base_url=url,
            max_retries=0,
            timeout=limit(model),
            progress_bar=False,
        )
    )


FRAMEWORKS = pytest.mark.parametrize("framework", [langchain, llamaindex, haystack])


@pytest.mark.parametrize(
    ("framework", "fault"),
    [
        (framework, fault)
        for framework in (langchain, llamaindex, haystack)
        for fault in LASTING
        if framework is haystack or fault in COMMON
    ],
)
def test_a_service_that_goes_on_failing_is_one_error_and_nothing_of_it_is_kept(framework, fault, service, tmp_path):
    cache = EmbeddingCache(tmp_path / "cache.sqlite")
    embedder = CachedEmbedder(framework(service, fault), cache)
    with pytest.raises(ModelError) as told:
        embedder.embed_documents(TEXTS)
    assert len(cache) == 0
    assert KEY not in str(told.value)
    assert len(str(told.value)) < 1000


@FRAMEWORKS
@pytest.mark.parametrize("fault", ["ok", "half*1", "http_503*1"])
def test_a_service_that_recovers_is_believed(framework, fault, service, tmp_path):
    cache = EmbeddingCache(tmp_path / "cache.sqlite")
    embedder = CachedEmbedder(framework(service, fault), cache)
    vectors = embedder.embed_documents(TEXTS)
    by_length = sorted(range(len(TEXTS)), key=lambda place: -len(TEXTS[place]))
    assert [vectors[place].tolist() for place in by_length] == GOOD  # the longest are asked for first
    assert len(cache) == len(TEXTS)


@FRAMEWORKS
def test_a_service_that_changes_its_dimensions_is_told(framework, service, tmp_path, monkeypatch):
    cache = EmbeddingCache(tmp_path / "cache.sqlite")
    embedder = CachedEmbedder(framework(service, "ok"), cache)
    embedder.embed_documents(TEXTS)
    monkeypatch.setitem(FAULTS, "ok", lambda handler, count: handler.vectors([[0.5] * 7] * count))
    with pytest.raises(ModelError, match=r"7 dimensions|several lengths"):
        embedder.embed_documents([*TEXTS, "One more."])
    assert len(cache) == len(TEXTS)
