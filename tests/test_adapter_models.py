"""What the bridges from the frameworks' models promise, with models of no framework."""

from __future__ import annotations

import pickle
import traceback
from typing import Any

import numpy as np
import pytest
from chunkadapters.models import BridgedEmbedder, BridgedLLM, identify, secrets_within, without_secrets
from chunkcore.chunkers import get_chunker
from chunkcore.errors import ModelError, NoAnswerError, OptionError
from chunkcore.models import CachedEmbedder
from chunkcore.models.endpoint import reply_of
from chunkcore.models.llm import BadAnswerError, Question, ask
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import FakeEmbedder

KEY = "sk-very-secret-0123456789"


class Model:
    """Settings, as a framework's model holds them."""

    def __init__(self, **settings: Any) -> None:
        self.__dict__.update(settings)


class Secret:
    """As pydantic has it."""

    def get_secret_value(self) -> str:
        return KEY


def mark(**settings: Any) -> str:
    return identify("toy", Model(**settings), ())[1]


# Identity


SETTINGS = {"model": "small", "dimensions": 512, "normalize": True, "url": "https://a.example/v1", "options": {"p": 1}}
CHANGES = {"model": "large", "dimensions": 256, "normalize": False, "url": "https://b.example/v1", "options": {"p": 2}}


@pytest.mark.parametrize("option", SETTINGS)
def test_whatever_can_change_the_answers_changes_the_fingerprint(option):
    assert mark(**SETTINGS) == mark(**SETTINGS)
    assert mark(**SETTINGS) != mark(**(SETTINGS | {option: CHANGES[option]}))


@pytest.mark.parametrize(
    "held",
    [
        {"api_key": KEY},
        {"openai_api_key": Secret()},
        {"key": Secret()},
        {"sendgrid_key": KEY},
        {"hf_token": KEY},
        {"default_headers": {"x": KEY}},
        {"options": {"p": 1, "password": KEY}},
        {"base": f"https://user:{KEY}@a.example/v1?key={KEY}"},
    ],
)
def test_keys_are_no_part_of_the_identity_and_are_cleaned_from_messages(held):
    without = {"model": "small", "options": {"p": 1}, "base": "https://a.example/v1"}
    assert mark(**(without | held)) == mark(**without)
    model = Model(**(without | held))
    assert KEY not in repr(identify("toy", model, ()))
    assert KEY not in without_secrets(f"401: {KEY} is wrong", secrets_within(model))


@pytest.mark.parametrize("option", ["timeout", "max_retries", "embed_batch_size", "callbacks", "query_embedding_store"])
def test_how_a_model_is_asked_is_no_part_of_the_identity(option):
    assert mark(size=3, **{option: object()}) == mark(size=3)


def test_a_name_is_told_by_the_model_or_by_one_that_it_wraps():
    assert identify("toy", Model(model_name="small"), ())[0] == "toy:Model:small"
    assert identify("toy", Model(model_name="unknown", size=3), ())[0] == "toy:Model"
    wrapped = Model(inner=Model(model="small"))
    assert identify("toy", wrapped, (Model,))[0] == "toy:Model:small"
    assert identify("toy", wrapped, (Model,)) != identify("toy", Model(inner=Model(model="large")), (Model,))


def test_two_models_that_could_not_be_told_apart_need_a_fingerprint():
    hidden = Model(encoder=object())
    with pytest.raises(OptionError, match=r"do not tell which model it is, but its object does: .*fingerprint="):
        identify("toy", hidden, ())
    assert identify("toy", hidden, (), fingerprint="mine-1")[1] == "toy:mine-1"
    assert identify("toy", Model(encoder=object(), model="small"), ())[0] == "toy:Model:small"
    with pytest.raises(OptionError, match="fingerprint is a text that is not empty"):
        identify("toy", hidden, (), fingerprint=" ")


def test_a_model_of_chunkcore_inside_is_known_by_its_fingerprint():
    assert mark(inner=FakeEmbedder()) == mark(inner=FakeEmbedder()) != mark(inner=FakeEmbedder(33))


# Embedders


class ToyEmbedder(BridgedEmbedder):
    """Asks a fake, whose vectors become lists, as the frameworks have them."""

    framework = "toy"

    def __init__(self, model: Any, max_tokens: int | None = None) -> None:
        super().__init__(model, "1", max_tokens)

    def _documents(self, texts):
        return self.model.embed_documents(texts)

    def _queries(self, texts):
        return [self.model.embed_queries([text])[0].tolist() for text in texts]


@given(st.lists(st.text(max_size=20), max_size=6))
def test_vectors_are_the_models_own_(texts):
    model = FakeEmbedder()
    embedder = ToyEmbedder(model)
    rows = [embedder.embed_documents(texts), embedder.embed_queries(texts)]
    assert all(each.dtype == np.float32 and len(each) == len(texts) for each in rows)
    if texts:
        expected = model.embed_documents([text.encode("utf-8", "replace").decode() for text in texts])
        for each in rows:
            np.testing.assert_array_equal(each, expected)


@pytest.mark.parametrize("limit", [0, True, 1.5, "3"])
def test_a_token_limit_is_a_whole_number(limit):
    with pytest.raises(OptionError, match="max_tokens is"):
        ToyEmbedder(FakeEmbedder(), limit)


@pytest.mark.parametrize("answer", [None, [None, [1.0]], {"a": 1}, "no", [["x"]], [[1.0], [1.0, 2.0]], [[10**400]]])
def test_answers_of_any_shape_are_a_model_error(answer):
    model = Model(embed_documents=lambda texts: answer)
    with pytest.raises(ModelError):
        ToyEmbedder(model).embed_documents(["a", "b"])


def test_a_key_in_a_services_message_is_told_to_nobody():
    def fail(texts):
        raise ConnectionError(f"cannot reach https://x/?key={KEY}")

    embedder = ToyEmbedder(Model(embed_documents=fail, api_key=KEY))
    with pytest.raises(ModelError, match=r"ConnectionError: cannot reach .*\[secret\]") as caught:
        embedder.embed_documents(["a"])
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_it_works_in_a_strategy_and_behind_a_cache_and_in_a_pickle():
    embedder = ToyEmbedder(FakeEmbedder())
    cached = CachedEmbedder(embedder)
    cached.embed_documents(["a", "b", "a"])
    cached.embed_documents(["b"])
    assert embedder.model.texts == ["a", "b"]
    text = "Tea is hot. Tea is green. The sea is wide. The sea is deep."
    options = {"size": 12, "piece_size": 4, "counter": "words"}
    bridged = get_chunker("cluster_semantic", **options, embedder=embedder)
    direct = get_chunker("cluster_semantic", **options, embedder=FakeEmbedder())
    assert bridged.spans(text) == direct.spans(text)
    again = pickle.loads(pickle.dumps(embedder))
    assert again == embedder
    assert hash(again) == hash(embedder)
    assert again.embed_documents(["a"]).tolist() == embedder.embed_documents(["a"]).tolist()


# Language models


class RefusedError(Exception):
    status_code = 400


class BusyError(Exception):
    status_code = 429


class NoMoneyError(BusyError):
    code = "insufficient_quota"


class WrongKeyError(Exception):
    status_code = 401


class ReadTimeoutError(Exception):
    pass


class ToyLLM(BridgedLLM):
    """Gives its answers in order, the last one for ever; an exception is raised."""

    framework = "toy"

    def __init__(self, *answers: Any, schema: Exception | None = None, concurrency: int = 1, **settings: Any) -> None:
        super().__init__(Model(**settings), "1", concurrency)
        self.answers = answers
        self.refusal = schema
        self.asked: list[tuple[Any, Any]] = []

    def _ask(self, messages, schema):
        self.asked.append((messages, schema))
        if schema is not None and self.refusal:
            raise self.refusal
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return reply_of(answer, {"usage": {"prompt_tokens": 5, "completion_tokens": 2}})


TEA = [{"role": "user", "content": "Tea?"}]
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def test_answers_and_their_tokens_are_counted_():
    llm = ToyLLM("Yes.")
    assert llm.complete(TEA).text == "Yes."
    assert llm.complete(TEA, SCHEMA).text == "Yes."
    assert (llm.usage.calls, llm.usage.input_tokens, llm.usage.output_tokens) == (2, 10, 4)
    assert [schema for _, schema in llm.asked] == [None, SCHEMA]


@pytest.mark.parametrize("refusal", [NotImplementedError(), RefusedError("no response_format")])
def test_a_model_that_refuses_the_schema_is_asked_without_from_then_on(refusal):
    llm = ToyLLM("Yes.", schema=refusal)
    assert [llm.complete(TEA, SCHEMA).text for _ in range(2)] == ["Yes.", "Yes."]
    assert [schema for _, schema in llm.asked] == [SCHEMA, None, None]
    assert llm.complete(TEA, SCHEMA).text == "Yes."
    assert llm.asked[-1][1] is None


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (TimeoutError(), NoAnswerError),
        (ReadTimeoutError("slow"), NoAnswerError),
        (BusyError("later"), NoAnswerError),
        (NoMoneyError("never"), ModelError),
        (ValueError("no JSON"), BadAnswerError),
        (WrongKeyError(f"{KEY} is wrong"), ModelError),
        (ConnectionError("nobody there"), ModelError),
    ],
)
def test_errors_are_of_the_tree_and_tell_no_key(raised, expected):
    with pytest.raises(expected) as caught:
        ToyLLM(raised, api_key=KEY).complete(TEA)
    assert type(caught.value) is expected
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_an_answer_that_the_framework_cannot_read_is_asked_for_again():
    llm = ToyLLM(ValueError("no JSON"), "7")
    question = Question(messages=TEA, schema=SCHEMA, read=int, assumed=1)
    assert ask(llm, question) == 7
    assert len(llm.asked) == 2


# Replies


@pytest.mark.parametrize(
    ("told", "counts"),
    [
        ({"input_tokens": 9, "output_tokens": 2, "input_token_details": {"cache_read": 4}}, (9, 2)),
        ({"usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached": 4}}}, (9, 2)),
        ({"usage_metadata": {"prompt_token_count": 9, "candidates_token_count": 2}}, (9, 2)),
        ({"token_usage": {"prompt_tokens": 9, "completion_tokens": 2}}, (9, 2)),
        ({"prompt_eval_count": 9, "eval_count": 2}, (9, 2)),
        (Model(usage=Model(input_tokens=9, output_tokens=2, cache_read_input_tokens=4)), (9, 2)),
        ({"usage": {"prompt_tokens": -1, "completion_tokens": True}}, (None, None)),
        ({"usage": None}, (None, None)),
    ],
)
def test_tokens_are_found_under_the_names_that_services_have(told, counts):
    reply = reply_of("Yes.", told)
    assert (reply.input_tokens, reply.output_tokens) == counts


@pytest.mark.parametrize(
    ("told", "finish"),
    [
        ({"finish_reason": "stop"}, "stop"),
        ({"stop_reason": "end_turn"}, "stop"),
        ({"finish_reason": "length"}, "length"),
        ({"stop_reason": "max_tokens"}, "length"),
        ({"finish_reason": "MAX_TOKENS"}, "length"),
        ({"finish_reason": "content_filter"}, "refusal"),
        ({"finish_reason": "SAFETY"}, "refusal"),
        ({"refusal": "I cannot."}, "refusal"),
        ({}, "stop"),
    ],
)
def test_how_an_answer_ended_is_found_under_the_names_that_services_have(told, finish):
    assert reply_of("", told).finish == finish
