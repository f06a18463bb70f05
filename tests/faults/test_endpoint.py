"""Endpoints of language models that hang, drip, flood, hang up, or ask to be left alone for a while."""

from __future__ import annotations

import gzip
import json
import pickle
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from importlib.util import find_spec
from typing import Any

import pytest
from chunkcore.errors import ModelError, NoAnswerError
from chunkcore.models import endpoint, get_embedder
from chunkcore.models.endpoint import OpenAIEmbedder
from chunkcore.models.llm import OpenAILLM, Question, ask
from chunkcore.models.llm.base import found_json

from tests import fake_llm_server
from tests.fake_llm_server import FakeServer, running

pytestmark = pytest.mark.skipif(find_spec("openai") is None, reason="the package openai is not installed")


def drip(handler: Any, body: dict[str, Any]) -> None:
    """Each piece comes in time, and the answer not for a minute."""
    begin(handler)
    for _ in range(1200):
        handler.wfile.write(b"1\r\n \r\n")
        time.sleep(0.05)


def flood(handler: Any, body: dict[str, Any]) -> None:
    begin(handler)
    for _ in range(1000):  # ten times what `low_limit` allows
        handler.wfile.write(b"64\r\n%s\r\n" % (b" " * 100))


def unpacks(handler: Any, body: dict[str, Any]) -> None:
    """Packed, it is below `low_limit`; unpacked, above."""
    handler.send(gzip.compress(b" " * 20_000), content_encoding="gzip")


def begin(handler: Any) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()


def packed(handler: Any, body: dict[str, Any]) -> None:
    """A good answer, packed as some endpoints do."""
    data = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"content": '{"number": 2}'}}]}
    handler.send(gzip.compress(json.dumps(data).encode()), content_encoding="gzip")


def later(handler: Any, body: dict[str, Any]) -> None:
    at = datetime.now(timezone.utc) + timedelta(seconds=2)
    handler.error(503, "later", retry_after=format_datetime(at, usegmt=True))


OURS = {"drip": drip, "flood": flood, "unpacks": unpacks, "packed": packed, "later": later}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    for name, fault in OURS.items():
        monkeypatch.setitem(fake_llm_server.FAULTS, name, fault)
    with running() as found:
        yield found


def question() -> Question[dict[str, Any]]:
    number = {"type": "integer", "minimum": 1, "maximum": 3}
    schema = {"type": "object", "properties": {"number": number}}
    return Question(messages=[{"role": "user", "content": "Which?"}], schema=schema, read=found_json, assumed={})


def test_an_answer_in_drips_is_given_up_at_the_time_out(server: FakeServer) -> None:
    with pytest.raises(NoAnswerError, match=r"gave no answer in 0\.4 s$"):
        ask(OpenAILLM("drip", server.url, timeout=0.4, tries=1), question())


@pytest.fixture
def low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "LARGEST", 10_000)


@pytest.mark.parametrize("fault", ["flood", "unpacks"])
def test_an_answer_that_is_or_unpacks_to_too_much_is_none(server: FakeServer, fault: str, low_limit: None) -> None:
    with pytest.raises(NoAnswerError, match="answered with more than 10,000 bytes"):
        ask(OpenAILLM(fault, server.url, tries=1), question())


def test_a_packed_answer_is_unpacked(server: FakeServer) -> None:
    assert ask(OpenAILLM("packed", server.url), question()) == {"number": 2}


def test_an_endpoint_is_left_alone_until_the_date_that_it_names(server: FakeServer) -> None:
    ask(OpenAILLM("later*1", server.url), question())
    first, second = (each["time"] for each in server.log)
    assert second - first >= 0.9  # dates are of whole seconds


def test_after_every_fault_the_next_question_is_answered(server: FakeServer, low_limit: None) -> None:
    """Nothing of a connection that went wrong is left."""
    llm = OpenAILLM("drip*1", server.url, timeout=1, tries=2)
    for _ in range(2):
        assert "number" in ask(llm, question())
    for fault in ("truncated_body*1", "close*1", "no_json*1", "flood*1"):
        assert "number" in ask(OpenAILLM(fault, server.url, tries=2), question())


def test_an_endpoint_s_embedder_keeps_the_order_sends_the_key_and_is_built_by_name(monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "a-secret-of-mine")
    with running() as server:
        model = get_embedder(f"openai:small@{server.url}#key=MY_API_KEY")
        assert model.embed_documents(["tea", "coffee", ""]).tolist() == [[3, 16], [6, 16], [1, 16]]
        assert pickle.loads(pickle.dumps(model)) == model
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        usual = get_embedder("openai:of-the-environment")
        assert usual.embed_documents(["tea"]).tolist() == [[3, 4]]  # the server answers with the length of the key
        assert (usual.name, usual == model) == ("openai:of-the-environment", False)
        monkeypatch.delenv("OPENAI_BASE_URL")
    with pytest.raises(ModelError, match="cannot be reached"):
        OpenAIEmbedder("small", server.url, tries=1).embed_queries(["tea"])
    assert "secret" not in f"{model!r} {model.name} {model.fingerprint}"
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelError, match="OPENAI_API_KEY is to hold the key"):
        get_embedder("openai/text-embedding-3-small").embed_queries(["tea"])
