"""The frameworks' embedders and language models as chunkcore's, through the frameworks' own classes."""

from __future__ import annotations

import json
import os
import pickle
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # nothing here goes online
pytest.importorskip("langchain_text_splitters", reason="langchain-text-splitters is not installed")
pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
pytest.importorskip("haystack", reason="haystack-ai is not installed")

from chunkadapters import haystack, langchain, llamaindex
from chunkcore import LLM, Document, Embedder, ModelError, OptionError, get_chunker
from chunkcore.models import CachedEmbedder
from haystack import Document as HaystackDocument
from haystack import Pipeline, component
from haystack.components.embedders import MockDocumentEmbedder, MockTextEmbedder, OpenAIDocumentEmbedder
from haystack.components.generators.chat import MockChatGenerator, OpenAIChatGenerator
from haystack.core.errors import DeserializationError
from haystack.dataclasses import ChatMessage as HaystackMessage
from haystack.utils import Secret
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from llama_index.core import Document as LlamaDocument
from llama_index.core import MockEmbedding
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from tests.fake_llm_server import FATAL, LASTING, running
from tests.fakes import FakeEmbedder

from integration_tests.toys import lost

KEY = "sk-very-secret-0123456789"
DOCUMENT = Document("tea.md", "\n\n".join(f"Paragraph {i} is about tea. It says {i} times so." for i in range(12)))
NUMBER = {"type": "integer", "minimum": 1, "maximum": 9}
SCHEMA = {"type": "object", "properties": {"first_changed": NUMBER}, "required": ["first_changed"]}
SCHEMA["additionalProperties"] = False
QUESTION = [{"role": "system", "content": "Answer."}, {"role": "user", "content": "Where?"}]

# Of the server's ways to fail those that clients tell in ways of their own, and three that harm nothing.
FAULTS = (
    *("refusal", "filtered", "prose", "null", "truncated", "http_429", "http_503", "filter_400", "html", "no_choices"),
    *("quota", "http_401", "http_404", "close"),
    *("without_schema", "no_usage", "ok"),
)


def assert_chunked_through(fault: str, llm: LLM) -> None:
    """A strategy that asks the model loses nothing, whatever the server does, or tells that it cannot be asked."""
    chunker = get_chunker("lumber", llm=llm, window=40, size=80, retries=1)
    if fault in FATAL:
        with pytest.raises(ModelError) as caught:
            chunker.chunk(DOCUMENT)
        assert KEY not in "".join(traceback.format_exception(caught.value))
        return
    chunks = chunker.chunk(DOCUMENT)
    assert not lost(DOCUMENT.text, [[(span.start, span.end) for span in chunk.spans] for chunk in chunks])
    assert any("fallback" in chunk.metadata for chunk in chunks) == (fault in LASTING)
    assert KEY not in str([chunk.metadata for chunk in chunks])


def bodies(log: list[dict[str, Any]], model: str) -> list[dict[str, Any]]:
    """What the server was sent for a model."""
    return [each["body"] for each in log if each["body"]["model"] == model]


def told_nowhere(key: str, *shown: Callable[[], Any]) -> None:
    """A key stands in nothing that is shown, written down or kept."""
    for each in shown:
        assert key not in str(each())


INNER = FakeEmbedder()
SIZES = {"size": 40, "piece_size": 10}
NULL = '{"first_changed": null}'


class LangChainBag(Embeddings):
    """A bag of words."""

    def __init__(self, model: str = "bag", *, broken: bool = False) -> None:
        self.model, self.broken, self.batches = model, broken, list[int]()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.batches.append(len(texts))
        return [[float("nan")]] * len(texts) if self.broken else INNER.embed_documents(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        return INNER.embed_documents([f"question {text}"])[0].tolist()


class LlamaIndexBag(BaseEmbedding):
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


@component
class HaystackBag:
    """Answers in another order."""

    def __init__(self, model: str = "bag", prefix: str = "", broken: bool = False) -> None:
        self.model, self.prefix, self.broken, self.batches = model, prefix, broken, list[int]()

    @component.output_types(documents=list[HaystackDocument])
    def run(self, documents: list[HaystackDocument]) -> dict[str, list[HaystackDocument]]:
        self.batches.append(len(documents))
        texts = [document.content or "" for document in documents]
        rows = [[float("nan")]] * len(texts) if self.broken else INNER.embed_documents(texts).tolist()
        pairs = zip(documents, rows, strict=True)
        return {
            "documents": [HaystackDocument(id=one.id, content=one.content, embedding=row) for one, row in pairs][::-1]
        }


@component
class HaystackQuestions:
    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, list[float]]:
        return {"embedding": INNER.embed_documents([f"question {text}"])[0].tolist()}


class Calling(FunctionCallingLLM):
    """Calls the function with its answer, and says what services say."""

    model: str = "calling"
    answer: Any = None
    finish: str = "length"
    asked: list[Any] = []  # noqa: RUF012  # pydantic copies it

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=True, is_function_calling_model=True, model_name="calling")

    def chat(self, messages: Any, **options: Any) -> ChatResponse:
        self.asked.append(options)
        raw = {"usage": {"prompt_tokens": 9, "completion_tokens": 2}, "choices": [{"finish_reason": self.finish}]}
        return ChatResponse(message=ChatMessage(role="assistant", content="Yes."), raw=raw)

    async def achat(self, messages: Any, **options: Any) -> ChatResponse:
        return self.chat(messages, **options)

    def _prepare_chat_with_tools(self, tools: Any, tool_required: bool = False, **options: Any) -> dict[str, Any]:  # type: ignore[override]
        tool = tools[0].metadata.to_openai_tool()["function"]
        return {"messages": options["chat_history"], "tool": tool, "required": tool_required}

    def get_tool_calls_from_response(self, response: Any, error_on_no_tool_call: bool = True, **_: Any) -> Any:
        assert not error_on_no_tool_call
        call = ToolSelection(tool_id="1", tool_name="answer", tool_kwargs=self.answer or {})
        return [call] if self.answer else []

    complete = stream_complete = stream_chat = chat
    acomplete = astream_complete = astream_chat = achat


class Structured(FakeListChatModel):
    """As models with structured output answer: with the message, and what was parsed of it."""

    parsed: Any = None
    seen: list[Any]

    def with_structured_output(self, schema: Any, *, include_raw: bool = False, **_: Any) -> Any:
        assert include_raw
        self.seen.append(schema)
        usage = {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11}
        raw = AIMessage("Yes.", usage_metadata=usage, response_metadata={"finish_reason": "length"})
        return RunnableLambda(lambda _: {"raw": raw, "parsed": self.parsed, "parsing_error": None})


def cut_langchain(**options: Any) -> list[tuple[str | None, str]]:
    splitter = langchain.ChunkcoreTextSplitter(**options)
    return [(row.id, row.page_content) for row in splitter.create_documents([DOCUMENT.text])]


def cut_llamaindex(**options: Any) -> list[tuple[str | None, str]]:
    nodes = llamaindex.ChunkcoreNodeParser(**options)([LlamaDocument(id_="tea", text=DOCUMENT.text)])
    return [(node.node_id, node.text) for node in nodes]


def cut_haystack(**options: Any) -> list[tuple[str | None, str]]:
    source = HaystackDocument(id="tea", content=DOCUMENT.text)
    return [(row.id, row.content) for row in haystack.ChunkcoreDocumentSplitter(**options).run([source])["documents"]]


@dataclass(frozen=True)
class Framework:
    """The adapters, and the models of a framework."""

    adapters: Any
    bag: Callable[..., Any]
    answering: Callable[[str], Any]  # a chat model that always gives this text
    cut: Callable[..., list[tuple[str | None, str]]]
    batches: list[int]  # of ten texts
    questions: Callable[[], Any] | None = None  # a model of its own for questions


FRAMEWORKS = {
    "langchain": Framework(
        langchain, LangChainBag, lambda text: FakeListChatModel(responses=[text]), cut_langchain, [10]
    ),
    "llamaindex": Framework(
        llamaindex,
        lambda model="bag", **options: LlamaIndexBag(model_name=model, embed_batch_size=4, **options),
        lambda text: Calling(answer=json.loads(text), finish="stop", asked=[]),
        cut_llamaindex,
        [4, 4, 2],
    ),
    "haystack": Framework(haystack, HaystackBag, MockChatGenerator, cut_haystack, [10], HaystackQuestions),
}
every = pytest.mark.parametrize("name", FRAMEWORKS)


@every
def test_an_embedder_gives_the_models_vectors_in_the_models_batches(name: str) -> None:
    framework = FRAMEWORKS[name]
    model = framework.bag()
    questions = [framework.questions()] if framework.questions else []
    embedder = framework.adapters.as_embedder(model, *questions, max_tokens=77)
    assert isinstance(embedder, Embedder)
    assert (embedder.name, embedder.max_tokens) == (f"{name}:{type(model).__name__}:bag", 77)
    texts = [f"tea {number}" for number in range(10)]
    np.testing.assert_array_equal(embedder.embed_documents(texts), INNER.embed_documents(texts))
    assert model.batches == framework.batches
    np.testing.assert_array_equal(embedder.embed_queries(["sea"]), INNER.embed_documents(["question sea"]))
    cached = CachedEmbedder(embedder)
    cached.embed_documents(["a", "b", "a"])
    assert cached.embedded == 2


@every
def test_a_strategy_takes_a_model_as_it_is(name: str) -> None:
    framework = FRAMEWORKS[name]
    options = {"chunker": "cluster_semantic", **SIZES}
    models = [framework.bag(), framework.adapters.as_embedder(framework.bag()), framework.bag("other")]
    chunks = [framework.cut(embedder=model, **options) for model in models]
    assert chunks[0] == chunks[1]
    assert chunks[0][0][0] != chunks[2][0][0]  # another model, other ids
    assert len(framework.cut(chunker="lumber", llm=framework.answering(NULL), window=40, size=80)) > 3


@every
def test_a_size_that_is_left_out_suits_the_model(name: str) -> None:
    framework = FRAMEWORKS[name]
    embedder = framework.adapters.as_embedder(framework.bag(), max_tokens=20)
    assert len(framework.cut(chunker="recursive", fit_to=embedder)) > 5
    assert len(framework.cut(chunker="recursive", fit_to=framework.bag())) == 1  # no limit is known: 200


@every
def test_what_is_no_model_or_no_answer_is_an_error(name: str) -> None:
    framework = FRAMEWORKS[name]
    for value in (None, "openai", FakeEmbedder(), framework.answering(NULL)):
        with pytest.raises(OptionError, match=r"expected (a )?\w+ (document or text embedder|embedding|embeddings)"):
            framework.adapters.as_embedder(value)
    for value in (None, "openai", FakeEmbedder(), framework.bag()):
        with pytest.raises(OptionError, match=r"expected a \w+ (chat model|chat generator|LLM)"):
            framework.adapters.as_llm(value)
    with pytest.raises(ModelError, match=rf"{name}:\w+:bag.*NaN"):
        framework.adapters.as_embedder(framework.bag(broken=True)).embed_documents(["a", "b"])


@pytest.mark.parametrize(("answer", "text"), [({"first_changed": 3}, '{"first_changed": 3}'), (None, "Yes.")])
def test_a_schema_is_passed_by_the_frameworks_own_method(answer: Any, text: str) -> None:
    structured, calling = (Structured(responses=["never"], parsed=answer, seen=[]), Calling(answer=answer, asked=[]))
    for llm in (langchain.as_llm(structured), llamaindex.as_llm(calling)):
        for reply in (llm.complete(QUESTION, SCHEMA), llm.complete(QUESTION, SCHEMA)):
            assert (reply.text, reply.finish, reply.input_tokens, reply.output_tokens) == (text, "length", 9, 2)
    assert {key: structured.seen[0][key] for key in SCHEMA} == SCHEMA
    assert calling.asked[0]["required"]
    assert calling.asked[0]["tool"]["parameters"]["properties"] == SCHEMA["properties"]


def test_a_model_that_takes_no_schema_is_asked_without_and_its_tokens_are_counted() -> None:
    usage = {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11, "input_token_details": {"cache_read": 4}}
    said = [{"type": "text", "text": text} for text in ("Yes", ".")]
    message = AIMessage(said, usage_metadata=usage, response_metadata={"finish_reason": "length"})
    meta = {"usage": {"prompt_tokens": 9, "completion_tokens": 2}, "finish_reason": "length"}
    replies = HaystackMessage.from_assistant("Yes.", meta=meta)
    for llm in (
        langchain.as_llm(GenericFakeChatModel(messages=iter([message, message])), fingerprint="two", concurrency=2),
        haystack.as_llm(MockChatGenerator(replies), fingerprint="yes", concurrency=2),
    ):
        assert isinstance(llm, LLM)
        for reply in (llm.complete(QUESTION), llm.complete(QUESTION, SCHEMA)):
            assert (reply.text, reply.finish, reply.input_tokens, reply.output_tokens) == ("Yes.", "length", 9, 2)
        assert (llm.usage.calls, llm.usage.input_tokens, llm.concurrency) == (2, 18, 2)
    mock = llamaindex.as_llm(MockLLM())
    assert all("Where?" in mock.complete(QUESTION, schema).text for schema in (None, SCHEMA))  # it repeats the question
    assert mock.usage.calls == 2


def test_langchain_takes_bound_models_and_other_runnables() -> None:
    bound = FakeListChatModel(responses=["Yes."]).bind(stop=["x"])
    assert langchain.as_llm(bound).complete(QUESTION, SCHEMA).text == "Yes."
    chain = RunnableLambda(lambda messages: f"{len(messages)} messages")  # type: ignore[var-annotated]
    assert langchain.as_llm(chain, fingerprint="counts").complete(QUESTION).text == "2 messages"
    other = FakeListChatModel(responses=["No."]).bind(stop=["x"])
    assert langchain.as_llm(bound).fingerprint != langchain.as_llm(other).fingerprint
    small, large = (langchain.as_embedder(DeterministicFakeEmbedding(size=size)) for size in (8, 9))
    assert small.fingerprint != large.fingerprint


def test_splitters_with_models_are_pickled_and_written_down_without_keys() -> None:
    splitter = langchain.ChunkcoreTextSplitter("cluster_semantic", embedder=LangChainBag(), **SIZES)
    assert pickle.loads(pickle.dumps(splitter)).split_text(DOCUMENT.text) == splitter.split_text(DOCUMENT.text)
    parser = llamaindex.ChunkcoreNodeParser("cluster_semantic", embedder=MockEmbedding(embed_dim=4), **SIZES)
    assert pickle.loads(pickle.dumps(parser)).to_dict() == parser.to_dict()
    parser = llamaindex.ChunkcoreNodeParser("cluster_semantic", embedder=LlamaIndexBag(), **SIZES)
    data = parser.to_dict()
    assert data["options"]["embedder"] == "llamaindex:LlamaIndexBag:bag"
    told_nowhere(KEY, lambda: data, parser.to_json, lambda: repr(parser), lambda: parser.fingerprint)
    again = llamaindex.ChunkcoreNodeParser.from_dict(data, embedder=LlamaIndexBag())
    assert again.fingerprint == parser.fingerprint
    with pytest.raises(ValueError, match=r"give the object again, as embedder=\.\.\."):
        llamaindex.ChunkcoreNodeParser.from_dict(data)


def test_haystack_text_embedders_embed_questions_or_everything() -> None:
    documents, questions = (MockDocumentEmbedder(dimension=8), MockTextEmbedder(dimension=8, prefix="question: "))
    both = haystack.as_embedder(documents, questions)
    assert not both.symmetric
    np.testing.assert_array_equal(both.embed_queries(["tea"])[0], np.float32(questions.run(text="tea")["embedding"]))
    alone = haystack.as_embedder(questions)
    np.testing.assert_array_equal(alone.embed_documents(["tea"]), both.embed_queries(["tea"]))
    assert haystack.as_embedder(documents).symmetric
    with pytest.raises(OptionError, match="text_embedder: expected a Haystack text embedder"):
        haystack.as_embedder(MockDocumentEmbedder(), MockDocumentEmbedder())
    with pytest.raises(ModelError, match=r"answered with shape \(2,\)"):
        haystack.as_embedder(haystack.ChunkcoreDocumentSplitter(), fingerprint="none").embed_documents(["a", "b"])


def pipeline(embedder: Any, **more: Any) -> Pipeline:
    whole = Pipeline()
    options = {**SIZES, "embedder": embedder}
    splitter = haystack.ChunkcoreDocumentSplitter("cluster_semantic", options=options, **more)
    whole.add_component("splitter", splitter)
    return whole


def test_haystack_components_go_through_yaml_and_keys_as_the_names_of_their_variables(monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    mock = MockDocumentEmbedder(dimension=8)
    openai = OpenAIDocumentEmbedder(api_key=Secret.from_env_var("MY_KEY"), model="small")
    for before in (pipeline(mock, fit_to=MockDocumentEmbedder(dimension=9)), pipeline(openai)):
        after = Pipeline.loads(before.dumps())
        assert after.dumps() == before.dumps()
        ours, theirs = (whole.get_component("splitter").chunker for whole in (before, after))
        assert ours.fingerprint == theirs.fingerprint
        told_nowhere(KEY, before.dumps, lambda ours=ours: ours.embedder.fingerprint, lambda ours=ours: repr(ours))
    assert "MY_KEY" in before.dumps()
    monkeypatch.setenv("MY_KEY", "another")
    again = OpenAIDocumentEmbedder(api_key=Secret.from_env_var("MY_KEY"), model="small")
    assert haystack.as_embedder(again) == ours.embedder
    with pytest.raises(ValueError, match=r"[Cc]annot serialize"):
        pipeline(OpenAIDocumentEmbedder(api_key=Secret.from_token(KEY), model="small")).dumps()
    text = pipeline(mock).dumps()
    name = "haystack.components.embedders.mock_document_embedder.MockDocumentEmbedder"
    assert name in text
    with pytest.raises(DeserializationError):  # it builds nothing that Haystack does not trust
        Pipeline.loads(text.replace(name, "os.path.Thing"))


def langchain_client(url: str, model: str) -> Any:
    openai = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
    return openai.ChatOpenAI(model=model, base_url=url, api_key=KEY, max_retries=0, timeout=60)


def llamaindex_client(url: str, model: str) -> Any:
    client = pytest.importorskip("llama_index.llms.openai_like", reason="llama-index-llms-openai-like is not installed")
    return client.OpenAILike(model=model, api_base=url, api_key=KEY, is_chat_model=True, max_retries=0, timeout=60)


def haystack_client(url: str, model: str) -> OpenAIChatGenerator:
    key = Secret.from_token(KEY)
    return OpenAIChatGenerator(api_key=key, model=model, api_base_url=url, max_retries=0, timeout=60)


CLIENTS = {"langchain": langchain_client, "llamaindex": llamaindex_client, "haystack": haystack_client}


@every
@pytest.mark.parametrize("fault", FAULTS)
def test_a_real_client_loses_nothing_whatever_the_server_does(name: str, fault: str) -> None:
    with running() as server:
        assert_chunked_through(fault, FRAMEWORKS[name].adapters.as_llm(CLIENTS[name](server.url, fault)))


@every
def test_a_real_client_passes_the_schema_on_counts_its_tokens_and_shows_no_key(name: str) -> None:
    as_llm, client = FRAMEWORKS[name].adapters.as_llm, CLIENTS[name]
    with running() as server:
        llm = as_llm(client(server.url, "ok"))
        reply = llm.complete(QUESTION, None if name == "llamaindex" else SCHEMA)
        assert (reply.input_tokens, reply.output_tokens) == (100, 10)
        if name != "llamaindex":
            sent = bodies(server.log, "ok")[0]
            assert sent["response_format"]["json_schema"]["schema"]["properties"] == SCHEMA["properties"]
        told_nowhere(KEY, lambda: llm.name, lambda: llm.fingerprint, lambda: repr(llm))
        assert llm.fingerprint == as_llm(client(server.url, "ok")).fingerprint
        assert llm.fingerprint != as_llm(client(server.url, "ok*2")).fingerprint
