"""Haystack's embedders and chat generators as chunkcore's, through Haystack's own components."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # nothing here goes online
pytest.importorskip("haystack", reason="haystack-ai is not installed")

from haystack import Document, Pipeline, component
from haystack.components.embedders import (
    MockDocumentEmbedder,
    MockTextEmbedder,
    OpenAIDocumentEmbedder,
    OpenAITextEmbedder,
)
from haystack.components.generators.chat import MockChatGenerator, OpenAIChatGenerator
from haystack.core.errors import DeserializationError
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret

from chunkadapters.haystack import ChunkcoreDocumentSplitter, as_embedder, as_llm
from chunkcore.errors import ModelError, OptionError
from chunkcore.models import Embedder
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

TEXT = Document(id="tea", content=DOCUMENT.text)
SIZES = {"size": 40, "piece_size": 10}


@component
class Bag:
    """A document embedder over a bag of words, which counts how it is asked."""

    def __init__(self, model: str = "bag") -> None:
        self.model = model
        self.inner = FakeEmbedder()
        self.warm = 0

    def warm_up(self) -> None:
        self.warm += 1

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        rows = self.inner.embed_documents([each.content or "" for each in documents])
        found = [
            Document(id=each.id, content=each.content, embedding=row.tolist())
            for each, row in zip(documents, rows, strict=True)
        ]
        return {"documents": found[::-1]}  # in another order


def test_a_document_embedder_is_an_embedder_of_the_same_vectors():
    bag = Bag()
    embedder = as_embedder(bag, max_tokens=77)
    assert isinstance(embedder, Embedder)
    assert (embedder.name, embedder.max_tokens, embedder.symmetric) == ("haystack:Bag:bag", 77, True)
    rows = embedder.embed_documents(["tea", "sea", "tea"])
    np.testing.assert_array_equal(rows, FakeEmbedder().embed_documents(["tea", "sea", "tea"]))
    assert (bag.inner.calls, bag.warm) == (1, 1)  # all at once, and warmed up
    np.testing.assert_array_equal(embedder.embed_queries(["sea"]), rows[1:2])


def test_a_text_embedder_embeds_questions_or_everything():
    documents, questions = MockDocumentEmbedder(dimension=8), MockTextEmbedder(dimension=8, prefix="question: ")
    both = as_embedder(documents, questions)
    assert not both.symmetric
    expected = questions.run(text="tea")["embedding"]
    np.testing.assert_array_equal(both.embed_queries(["tea"])[0], np.float32(expected))
    assert not np.array_equal(both.embed_documents(["tea"]), both.embed_queries(["tea"]))
    alone = as_embedder(questions)
    np.testing.assert_array_equal(alone.embed_documents(["tea", "sea"])[:1], np.float32([expected]))


def test_a_strategy_takes_a_document_embedder_as_it_is():
    options = {**SIZES, "embedder": MockDocumentEmbedder(dimension=8)}
    chunks = ChunkcoreDocumentSplitter(strategy="cluster_semantic", options=options).run([TEXT])["documents"]
    bridged = {**SIZES, "embedder": as_embedder(MockDocumentEmbedder(dimension=8))}
    same = ChunkcoreDocumentSplitter(strategy="cluster_semantic", options=bridged).run([TEXT])["documents"]
    assert [(each.id, each.content) for each in chunks] == [(each.id, each.content) for each in same]


def pipeline(embedder: Any, **more: Any) -> Pipeline:
    found = Pipeline()
    options = {**SIZES, "embedder": embedder}
    found.add_component("splitter", ChunkcoreDocumentSplitter(strategy="cluster_semantic", options=options, **more))
    return found


def test_nested_components_go_through_yaml():
    before = pipeline(MockDocumentEmbedder(dimension=8), fit_to=MockDocumentEmbedder(dimension=9))
    text = before.dumps()
    assert "haystack.components.embedders.mock_document_embedder.MockDocumentEmbedder" in text
    after = Pipeline.loads(text)
    assert after.dumps() == text
    assert after.run({"splitter": {"documents": [TEXT]}}) == before.run({"splitter": {"documents": [TEXT]}})


def test_keys_go_through_yaml_as_the_names_of_their_variables(monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    embedder = OpenAIDocumentEmbedder(api_key=Secret.from_env_var("MY_KEY"), model="small")
    before = pipeline(embedder)
    splitter = before.get_component("splitter")
    bridged = splitter.chunker.embedder
    told_nowhere(KEY, before.dumps, lambda: bridged.name, lambda: bridged.fingerprint, lambda: repr(splitter.chunker))
    assert "MY_KEY" in before.dumps()
    after = Pipeline.loads(before.dumps()).get_component("splitter")
    assert after.chunker.fingerprint == splitter.chunker.fingerprint
    monkeypatch.setenv("MY_KEY", "another")
    assert as_embedder(OpenAIDocumentEmbedder(api_key=Secret.from_env_var("MY_KEY"), model="small")) == bridged
    assert as_embedder(OpenAIDocumentEmbedder(api_key=Secret.from_token("x" * 9), model="large")) != bridged
    with pytest.raises(ValueError, match=r"[Cc]annot serialize"):
        pipeline(OpenAIDocumentEmbedder(api_key=Secret.from_token(KEY), model="small")).dumps()


def test_a_configuration_builds_nothing_that_haystack_does_not_trust():
    text = pipeline(MockDocumentEmbedder()).dumps()
    bad = text.replace("haystack.components.embedders.mock_document_embedder.MockDocumentEmbedder", "os.path.Thing")
    assert bad != text
    with pytest.raises(DeserializationError):
        Pipeline.loads(bad)


@pytest.mark.parametrize("value", [None, "openai", FakeEmbedder(), MockChatGenerator("a"), ChunkcoreDocumentSplitter])
def test_what_is_no_embedder_is_an_option_error(value):
    with pytest.raises(OptionError, match="expected a Haystack document or text embedder"):
        as_embedder(value)


def test_a_document_embedder_embeds_no_questions_of_its_own():
    with pytest.raises(OptionError, match="text_embedder: expected a Haystack text embedder"):
        as_embedder(MockDocumentEmbedder(), MockDocumentEmbedder())


def test_what_gives_no_vectors_is_a_model_error():
    with pytest.raises(ModelError, match="no vector for 2 of 2"):
        as_embedder(ChunkcoreDocumentSplitter(), fingerprint="none").embed_documents(["a", "b"])


def test_a_chat_generator_is_a_language_model():
    meta = {"usage": {"prompt_tokens": 9, "completion_tokens": 2}, "finish_reason": "length"}
    llm = as_llm(MockChatGenerator(ChatMessage.from_assistant("Yes.", meta=meta)), fingerprint="yes", concurrency=2)
    assert isinstance(llm, LLM)
    for reply in (llm.complete(QUESTION), llm.complete(QUESTION, SCHEMA)):
        assert (reply.text, reply.finish, reply.input_tokens, reply.output_tokens) == ("Yes.", "length", 9, 2)
    assert (llm.usage.calls, llm.concurrency) == (2, 2)


def test_a_strategy_takes_a_chat_generator_as_it_is_and_yaml_keeps_it():
    options = {"llm": MockChatGenerator('{"first_changed": null}'), "window": 40, "size": 80}
    splitter = ChunkcoreDocumentSplitter(strategy="lumber", options=options)
    chunks = splitter.run([TEXT])["documents"]
    assert len(chunks) > 3
    assert not any("fallback" in each.meta for each in chunks)
    again = ChunkcoreDocumentSplitter.from_dict(splitter.to_dict())
    assert again.run([TEXT])["documents"] == chunks


@pytest.mark.parametrize("value", [None, "openai", MockTextEmbedder()])
def test_what_is_no_chat_generator_is_an_option_error(value):
    with pytest.raises(OptionError, match="expected a Haystack chat generator"):
        as_llm(value)


# A real client, against a server of OpenAI's protocol


def openai(url: str, model: str) -> OpenAIChatGenerator:
    key = Secret.from_token(KEY)
    return OpenAIChatGenerator(api_key=key, model=model, api_base_url=url, max_retries=0, timeout=60)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_real_client_loses_nothing_whatever_the_server_does(fault):
    with running() as server:
        assert_chunked_through(fault, as_llm(openai(server.url, fault)))


def test_a_real_client_holds_the_model_to_the_schema_and_counts_its_tokens():
    with running() as server:
        llm = as_llm(openai(server.url, "ok"))
        reply = llm.complete(QUESTION, SCHEMA)
        sent = bodies(server.log, "ok")[0]
        assert sent["response_format"]["json_schema"]["schema"]["properties"] == SCHEMA["properties"]
        assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (100, 10, 64)
        told_nowhere(KEY, lambda: llm.name, lambda: llm.fingerprint, lambda: repr(llm))
        assert llm.fingerprint != as_llm(openai(server.url, "ok*2")).fingerprint


def test_a_real_embedder_that_fails_tells_no_key():
    with running() as server:
        made = {"api_key": Secret.from_token(KEY), "api_base_url": server.url, "max_retries": 0, "timeout": 60}
        embedder = as_embedder(OpenAITextEmbedder(model="http_401", **made))
        with pytest.raises(ModelError, match="haystack:OpenAITextEmbedder:http_401") as caught:
            embedder.embed_documents(["tea"])
        assert KEY not in str(caught.value)
