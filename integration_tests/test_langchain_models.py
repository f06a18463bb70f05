"""LangChain's embeddings and chat models as chunkcore's, through LangChain's own classes."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

pytest.importorskip("langchain_core", reason="langchain-core is not installed")

from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda

from chunkadapters.langchain import ChunkcoreTextSplitter, as_embedder, as_llm
from chunkcore.errors import ModelError, OptionError
from chunkcore.models import CachedEmbedder, Embedder
from chunkcore.models.llm import LLM
from integration_tests.bridges import (
    DOCUMENT,
    FAULTS,
    KEY,
    QUESTION,
    SCHEMA,
    assert_chunked_through,
    bodies,
    told_nowhere,
)
from tests.fake_llm_server import running
from tests.fakes import FakeEmbedder


class Bag(Embeddings):
    """A bag of words, which counts how it is asked."""

    def __init__(self, model: str = "bag") -> None:
        self.model = model
        self.inner = FakeEmbedder()
        self.asynchronous = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.inner.embed_documents(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self.inner.embed_documents([f"question {text}"])[0].tolist()


def test_embeddings_are_an_embedder_of_the_same_vectors():
    embeddings = Bag()
    embedder = as_embedder(embeddings, max_tokens=77)
    assert isinstance(embedder, Embedder)
    assert (embedder.name, embedder.max_tokens) == ("langchain:Bag:bag", 77)
    documents, queries = embedder.embed_documents(["tea", "sea"]), embedder.embed_queries(["tea", "sea"])
    assert embeddings.inner.calls == 3  # the documents at once
    np.testing.assert_array_equal(documents, np.float32(embeddings.embed_documents(["tea", "sea"])))
    np.testing.assert_array_equal(queries[1], np.float32(embeddings.embed_query("sea")))


def test_a_strategy_takes_embeddings_as_they_are():
    options = {"strategy": "cluster_semantic", "size": 40, "piece_size": 10}
    splitter = ChunkcoreTextSplitter(**options, embedder=Bag())
    same = ChunkcoreTextSplitter(**options, embedder=as_embedder(Bag()))
    assert splitter.split_text(DOCUMENT.text) == same.split_text(DOCUMENT.text)
    other = ChunkcoreTextSplitter(**options, embedder=Bag("other"))
    ids = [splitter.create_documents([DOCUMENT.text])[0].id for splitter in (splitter, same, other)]
    assert ids[0] == ids[1] != ids[2]


def test_a_size_that_is_left_out_suits_the_embeddings():
    splitter = ChunkcoreTextSplitter(strategy="recursive", fit_to=as_embedder(Bag(), max_tokens=100))
    assert splitter.chunker.size == 60
    assert ChunkcoreTextSplitter(strategy="recursive", fit_to=Bag()).chunker.size == 200  # no limit is known


def test_a_splitter_with_embeddings_can_be_pickled():
    splitter = ChunkcoreTextSplitter(strategy="cluster_semantic", size=40, piece_size=10, embedder=Bag())
    again = pickle.loads(pickle.dumps(splitter))
    assert again.split_text(DOCUMENT.text) == splitter.split_text(DOCUMENT.text)


def test_behind_a_cache_each_text_is_asked_for_once():
    embeddings = DeterministicFakeEmbedding(size=8)
    cached = CachedEmbedder(as_embedder(embeddings))
    first = cached.embed_documents(["a", "b", "a"])
    assert cached.embedded == 2
    np.testing.assert_array_equal(cached.embed_documents(["a", "b", "a"]), first)
    assert cached.embedded == 2
    assert as_embedder(DeterministicFakeEmbedding(size=9)).fingerprint != cached.fingerprint


@pytest.mark.parametrize("answer", [[[1.0]], [[1.0, float("nan")], [1.0, 1.0]], [[1.0], [1.0, 2.0]], None, "no"])
def test_what_is_no_answer_is_a_model_error(answer, monkeypatch):
    monkeypatch.setattr(Bag, "embed_documents", lambda self, texts: answer)
    with pytest.raises(ModelError, match="langchain:Bag:bag"):
        as_embedder(Bag()).embed_documents(["a", "b"])


@pytest.mark.parametrize("value", [None, "openai", FakeEmbedder(), FakeListChatModel(responses=["a"])])
def test_what_are_no_embeddings_is_an_option_error(value):
    with pytest.raises(OptionError, match="expected LangChain embeddings"):
        as_embedder(value)


def test_a_chat_model_is_a_language_model():
    usage = {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11, "input_token_details": {"cache_read": 4}}
    message = AIMessage("Yes.", usage_metadata=usage, response_metadata={"finish_reason": "length"})
    llm = as_llm(GenericFakeChatModel(messages=iter([message, message])), fingerprint="two answers", concurrency=2)
    assert isinstance(llm, LLM)
    reply = llm.complete(QUESTION)
    assert (reply.text, reply.finish, reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (
        "Yes.",
        "length",
        9,
        2,
        4,
    )
    assert llm.complete(QUESTION, SCHEMA).text == "Yes."  # it cannot be held to a schema
    assert (llm.usage.calls, llm.usage.input_tokens, llm.concurrency) == (2, 18, 2)


def test_content_in_blocks_is_the_text_of_the_blocks():
    message = AIMessage([{"type": "text", "text": "Yes"}, {"type": "text", "text": "."}])
    assert (
        as_llm(GenericFakeChatModel(messages=iter([message])), fingerprint="blocks").complete(QUESTION).text == "Yes."
    )


class Structured(FakeListChatModel):
    """As models with structured output answer: with the message, and what was parsed of it."""

    parsed: Any = None
    seen: list[Any]

    def with_structured_output(self, schema: Any, *, include_raw: bool = False, **_: Any) -> Any:
        assert include_raw
        self.seen.append(schema)
        raw = AIMessage("raw", usage_metadata={"input_tokens": 3, "output_tokens": 1, "total_tokens": 4})
        return RunnableLambda(lambda _: {"raw": raw, "parsed": self.parsed, "parsing_error": None})


@pytest.mark.parametrize(("parsed", "text"), [({"first_changed": 3}, '{"first_changed": 3}'), (None, "raw")])
def test_a_schema_is_passed_by_the_frameworks_own_method(parsed, text):
    model = Structured(responses=["never"], parsed=parsed, seen=[])
    llm = as_llm(model)
    assert llm.complete(QUESTION, SCHEMA).text == text
    assert llm.complete(QUESTION, SCHEMA).text == text
    assert llm.usage.input_tokens == 6
    assert {key: model.seen[0][key] for key in SCHEMA} == SCHEMA
    assert model.seen[0]["title"]


def test_bound_models_and_other_runnables_are_welcome():
    bound = FakeListChatModel(responses=["Yes."]).bind(stop=["x"])
    assert as_llm(bound).complete(QUESTION, SCHEMA).text == "Yes."
    chain = RunnableLambda(lambda messages: f"{len(messages)} messages")
    assert as_llm(chain, fingerprint="counts").complete(QUESTION).text == "2 messages"
    assert as_llm(bound).fingerprint != as_llm(FakeListChatModel(responses=["No."]).bind(stop=["x"])).fingerprint


def test_a_strategy_takes_a_chat_model_as_it_is():
    model = FakeListChatModel(responses=['{"first_changed": null}'])
    splitter = ChunkcoreTextSplitter(strategy="lumber", llm=model, window=40, size=80)
    found = splitter.create_documents([DOCUMENT.text])
    assert len(found) > 3
    assert not any("fallback" in each.metadata for each in found)


@pytest.mark.parametrize("value", [None, "openai", FakeEmbedder(), Bag()])
def test_what_is_no_chat_model_is_an_option_error(value):
    with pytest.raises(OptionError, match="expected a LangChain chat model"):
        as_llm(value)


# A real client, against a server of OpenAI's protocol


def chat_openai(url: str, model: str) -> Any:
    openai = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
    return openai.ChatOpenAI(model=model, base_url=url, api_key=KEY, max_retries=0, timeout=60)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_real_client_loses_nothing_whatever_the_server_does(fault):
    with running() as server:
        assert_chunked_through(fault, as_llm(chat_openai(server.url, fault)))


def test_a_real_client_holds_the_model_to_the_schema_and_counts_its_tokens():
    with running() as server:
        llm = as_llm(chat_openai(server.url, "ok"))
        reply = llm.complete(QUESTION, SCHEMA)
        sent = bodies(server.log, "ok")[0]
        assert sent["response_format"]["json_schema"]["schema"]["properties"] == SCHEMA["properties"]
        assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (100, 10, 64)
        told_nowhere(KEY, lambda: llm.name, lambda: llm.fingerprint, lambda: repr(llm), lambda: vars(llm))
        assert (
            llm.fingerprint
            == as_llm(chat_openai(server.url, "ok").model_copy(update={"openai_api_key": None})).fingerprint
        )
        assert llm.fingerprint != as_llm(chat_openai(server.url, "ok*2")).fingerprint
