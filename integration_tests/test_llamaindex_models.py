"""LlamaIndex's embeddings and language models as chunkcore's, through LlamaIndex's own classes."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")

from llama_index.core import Document, MockEmbedding
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection

from chunkadapters.llamaindex import ChunkcoreNodeParser, as_embedder, as_llm
from chunkcore.errors import ModelError, OptionError
from chunkcore.models import Embedder
from chunkcore.models.llm import LLM
from integration_tests.bridges import DOCUMENT, FAULTS, KEY, QUESTION, SCHEMA, assert_chunked_through, told_nowhere
from tests.fake_llm_server import running
from tests.fakes import FakeEmbedder

INNER = FakeEmbedder()
SIZES = {"size": 40, "piece_size": 10}


class Bag(BaseEmbedding):
    """A bag of words, which counts the batches that it is given."""

    model_name: str = "bag"
    batches: list[int] = []  # noqa: RUF012  # pydantic copies it
    api_key: str = KEY  # as OpenAIEmbedding has it: a plain text
    broken: bool = False

    def _get_text_embedding(self, text: str) -> list[float]:
        return INNER.embed_documents([text])[0].tolist()

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        self.batches.append(len(texts))
        return [[float("nan")] if self.broken else self._get_text_embedding(text) for text in texts]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(f"question {query}")

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


def test_an_embedding_model_is_an_embedder_of_the_same_vectors_in_its_own_batches():
    model = Bag(embed_batch_size=4)
    embedder = as_embedder(model, max_tokens=77)
    assert isinstance(embedder, Embedder)
    assert (embedder.name, embedder.max_tokens) == ("llamaindex:Bag:bag", 77)
    texts = [f"tea {i}" for i in range(10)]
    rows = embedder.embed_documents(texts)
    assert model.batches == [4, 4, 2]
    np.testing.assert_array_equal(rows, INNER.embed_documents(texts))
    np.testing.assert_array_equal(embedder.embed_queries(["sea"]), INNER.embed_documents(["question sea"]))


def test_a_strategy_takes_an_embedding_model_as_it_is():
    documents = [Document(id_="tea", text=DOCUMENT.text)]
    parser = ChunkcoreNodeParser(strategy="cluster_semantic", embedder=Bag(), **SIZES)
    same = ChunkcoreNodeParser(strategy="cluster_semantic", embedder=as_embedder(Bag()), **SIZES)
    other = ChunkcoreNodeParser(strategy="cluster_semantic", embedder=Bag(model_name="other"), **SIZES)
    nodes = [each.get_nodes_from_documents(documents) for each in (parser, same, other)]
    assert nodes[0] == nodes[1]
    assert nodes[0][0].id_ != nodes[2][0].id_
    assert parser.fingerprint != other.fingerprint  # what a pipeline's cache is keyed by


def test_a_configuration_names_the_model_without_its_key_and_takes_it_back():
    parser = ChunkcoreNodeParser(strategy="cluster_semantic", embedder=Bag(), **SIZES)
    data = parser.to_dict()
    assert data["options"]["embedder"] == "llamaindex:Bag:bag"
    told_nowhere(KEY, lambda: data, parser.to_json, lambda: repr(parser), lambda: parser.fingerprint)
    assert ChunkcoreNodeParser.from_dict(data, embedder=Bag()).fingerprint == parser.fingerprint
    with pytest.raises(ValueError, match=r"give the object again, as embedder=\.\.\."):
        ChunkcoreNodeParser.from_dict(data)


def test_a_parser_with_a_model_goes_to_other_processes():
    parser = ChunkcoreNodeParser(
        strategy="cluster_semantic", embedder=MockEmbedding(embed_dim=4), include_prev_next_rel=False, **SIZES
    )
    documents = [Document(id_=str(i), text=DOCUMENT.text) for i in range(2)]
    again = pickle.loads(pickle.dumps(parser))
    assert again.get_nodes_from_documents(documents) == parser.get_nodes_from_documents(documents)
    assert (again.include_prev_next_rel, again.to_dict()) == (False, parser.to_dict())


def test_a_size_that_is_left_out_suits_the_model():
    parser = ChunkcoreNodeParser(strategy="recursive", fit_to=as_embedder(Bag(), max_tokens=100))
    assert parser.chunker.size == 60
    assert ChunkcoreNodeParser(strategy="recursive", fit_to=Bag()).fit_to == "llamaindex:Bag:bag"


def test_what_is_no_answer_is_a_model_error():
    with pytest.raises(ModelError, match=r"llamaindex:Bag:bag.*NaN"):
        as_embedder(Bag(broken=True)).embed_documents(["a", "b"])


@pytest.mark.parametrize("value", [None, "openai", FakeEmbedder(), MockLLM()])
def test_what_is_no_embedding_model_is_an_option_error(value):
    with pytest.raises(OptionError, match="expected a LlamaIndex embedding model"):
        as_embedder(value)


def test_an_llm_of_completion_is_a_language_model():
    llm = as_llm(MockLLM(), concurrency=2)
    assert isinstance(llm, LLM)
    for reply in (llm.complete(QUESTION), llm.complete(QUESTION, SCHEMA)):
        assert "Where?" in reply.text  # it repeats the question
    assert (llm.usage.calls, llm.usage.estimated_calls, llm.concurrency) == (2, 2, 2)


class Calling(FunctionCallingLLM):
    """Calls the function with its answer, and tells what services tell."""

    model: str = "calling"
    answer: Any = None
    finish: str = "length"
    asked: list[Any] = []  # noqa: RUF012  # pydantic copies it

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=True, is_function_calling_model=True, model_name="calling")

    def chat(self, messages: Any, **given: Any) -> ChatResponse:
        self.asked.append(given)
        raw = {"usage": {"prompt_tokens": 9, "completion_tokens": 2}, "choices": [{"finish_reason": self.finish}]}
        return ChatResponse(message=ChatMessage(role="assistant", content="Yes."), raw=raw)

    async def achat(self, messages: Any, **given: Any) -> ChatResponse:
        return self.chat(messages, **given)

    def _prepare_chat_with_tools(self, tools: Any, tool_required: bool = False, **given: Any) -> dict[str, Any]:
        tool = tools[0].metadata.to_openai_tool()["function"]
        return {"messages": given["chat_history"], "tool": tool, "required": tool_required}

    def get_tool_calls_from_response(self, response: Any, error_on_no_tool_call: bool = True, **_: Any) -> Any:
        assert not error_on_no_tool_call
        call = ToolSelection(tool_id="1", tool_name="answer", tool_kwargs=self.answer or {})
        return [call] if self.answer else []

    complete = stream_complete = stream_chat = chat
    acomplete = astream_complete = astream_chat = achat


@pytest.mark.parametrize(("answer", "text"), [({"first_changed": 3}, '{"first_changed": 3}'), (None, "Yes.")])
def test_a_schema_is_passed_as_the_parameters_of_a_function(answer, text):
    model = Calling(answer=answer, asked=[])
    llm = as_llm(model)
    for reply in (llm.complete(QUESTION, SCHEMA), llm.complete(QUESTION, SCHEMA)):
        assert (reply.text, reply.finish, reply.input_tokens, reply.output_tokens) == (text, "length", 9, 2)
    assert model.asked[0]["required"]
    assert model.asked[0]["tool"]["parameters"]["properties"] == SCHEMA["properties"]
    assert llm.complete(QUESTION).text == "Yes."


def test_a_strategy_takes_an_llm_as_it_is():
    model = Calling(answer={"first_changed": None}, finish="stop", asked=[])
    parser = ChunkcoreNodeParser(strategy="lumber", llm=model, window=40, size=80)
    nodes = parser.get_nodes_from_documents([Document(text=DOCUMENT.text)])
    assert len(nodes) == len(model.asked) > 3
    assert not any("fallback" in node.metadata for node in nodes)
    assert json.loads(json.dumps(parser.to_dict()))["options"]["llm"] == "llamaindex:Calling:calling"


@pytest.mark.parametrize("value", [None, "openai", FakeEmbedder(), MockEmbedding(embed_dim=2)])
def test_what_is_no_llm_is_an_option_error(value):
    with pytest.raises(OptionError, match="expected a LlamaIndex LLM"):
        as_llm(value)


# A real client, against a server of OpenAI's protocol


def openai_like(url: str, model: str) -> Any:
    client = pytest.importorskip("llama_index.llms.openai_like", reason="llama-index-llms-openai-like is not installed")
    return client.OpenAILike(model=model, api_base=url, api_key=KEY, is_chat_model=True, max_retries=0, timeout=60)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_real_client_loses_nothing_whatever_the_server_does(fault):
    with running() as server:
        assert_chunked_through(fault, as_llm(openai_like(server.url, fault)))


def test_a_real_client_counts_its_tokens_and_tells_no_key():
    with running() as server:
        llm = as_llm(openai_like(server.url, "ok"))
        reply = llm.complete(QUESTION)
        assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (100, 10, 64)
        told_nowhere(KEY, lambda: llm.name, lambda: llm.fingerprint, lambda: repr(llm))
        assert llm.fingerprint != as_llm(openai_like(server.url, "ok*2")).fingerprint
