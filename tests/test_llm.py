"""Language models: what a string names, what is an answer, what is asked again, kept and counted."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from unittest.mock import patch

import pytest
from chunkcore.errors import ModelError, NoAnswerError, OptionError
from chunkcore.models.llm import (
    BadAnswerError,
    CachedLLM,
    CallableLLM,
    LLMCache,
    OpenAILLM,
    Question,
    Reply,
    Usage,
    ask,
    check_llm,
    get_llm,
    llms,
)
from chunkcore.models.llm.base import found_json, json_question

from tests.fakes import ScriptedLLM

needs_openai = pytest.mark.skipif(find_spec("openai") is None, reason="the package openai is not installed")

NUMBER = {"type": "integer", "minimum": 1, "maximum": 3}
SCHEMA = {"type": "object", "properties": {"number": NUMBER}, "required": ["number"], "additionalProperties": False}


def read(text: str) -> int:
    return question().read(text)


def question(text: str = "Which?") -> Question[int]:
    messages = [{"role": "system", "content": "Say a number."}, {"role": "user", "content": text}]
    return json_question(messages, lambda answer: answer["number"], {"number": 2}, number=NUMBER)


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    for name in [name for name in os.environ if name.endswith("_API_KEY") or name.startswith("OPENAI_")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    "text",
    [
        '{"number": 2}',
        ' \n{"number": 2}\n',
        '```json\n{"number": 2}\n```',
        'Sure! Here it is: {"number": 2}. Anything else?',
        '<think>{"number": 9}? No, {braces} {"number": 3}…</think>{"number": 2}',
        '{"example": {"number": 1}} and so: {"number": 2, "more": [{"number": 3}]}',
        "{" * 500 + '{"number": 2}',
        '\ufeff{"number": 2}',
    ],
)
def test_the_last_json_object_is_found_wherever_it_stands(text):
    assert read(text) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("I'd say two.", 'expected a JSON object, got "I\'d say two."'),
        ('{"number": 2', "expected a JSON object"),
        ('{"answer": 2}', "expected a JSON object with 'number', got one with 'answer'"),
        ('{"number": "2"}', "integer, minimum 1, maximum 3, got '2'"),
        ('{"number": NaN}', "got nan"),
        ('{"number": 4}', "got 4"),
        ('{"number": 1e999}', "got inf"),
        (b'{"number": 2}', "expected a text, got bytes"),
        (None, "expected a text, got NoneType"),
        ('{"number": "DEEP"}', "expected a JSON object, got"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_no_answer_is_told(text, message, deep_json):
    with pytest.raises(BadAnswerError) as told:
        read(text)
    assert message in str(told.value)
    assert len(str(told.value)) < 300


def test_a_bad_answer_is_told_to_the_model_which_then_gets_it_right():
    llm = ScriptedLLM('{"number": 7}', '{"number": 3}')
    assert ask(llm, question()) == 3
    first, second = llm.asked
    assert second[: len(first)] == first
    assert second[2:] == [
        {"role": "assistant", "content": '{"number": 7}'},
        {
            "role": "user",
            "content": "This answer cannot be used: expected 'number' with type integer, minimum 1, maximum 3, got 7. "
            "Answer the question again, with nothing but that JSON object.",
        },
    ]


def test_a_model_that_fails_once_is_asked_again_and_one_that_fails_twice_ends_the_work():
    assert ask(ScriptedLLM(ConnectionError("hung up"), '{"number": 2}'), question()) == 2
    broken = ScriptedLLM(ConnectionError("hung up"))
    with pytest.raises(ModelError, match="the model 'scripted' failed: ConnectionError: hung up") as told:
        ask(broken, question())
    assert not isinstance(told.value, NoAnswerError)
    assert len(broken.asked) == 2


def test_an_asynchronous_model_can_be_asked_inside_a_running_loop_and_keeps_to_one_loop():
    loops = set()

    async def later(messages, schema):
        loops.add(asyncio.get_running_loop())
        return '{"number": 3}'

    llm = CallableLLM(later, name="f", concurrency=4)

    async def caller():
        return ask(llm, question())

    assert asyncio.run(caller()) == 3
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: ask(llm, question()), range(8))) == [3] * 8
    assert len(loops) == 1


@pytest.mark.parametrize("limit", [1, 3])
def test_a_model_is_asked_no_more_questions_at_once_than_its_limit(limit):
    under_way, counts, together = [], [], threading.Barrier(2 * limit)

    def function(messages, schema):
        under_way.append(messages)
        counts.append(len(under_way))
        together.wait(60)
        under_way.pop()
        return '{"number": 1}'

    first, second = (CallableLLM(function, name="f", concurrency=limit) for _ in range(2))
    with ThreadPoolExecutor(18) as pool:
        list(pool.map(lambda llm: ask(llm, question()), [first, second] * 9))
    assert (max(counts), first.usage.calls, second.usage.calls) == (2 * limit, 9, 9)


def test_the_endpoints_own_numbers_are_counted_else_tiktokens():
    told = CallableLLM(lambda messages, schema: Reply("a", input_tokens=100, output_tokens=7), name="told")
    told.complete([{"role": "user", "content": "hello"}])
    told.complete([{"role": "user", "content": "hello"}])
    assert told.usage == Usage(calls=2, input_tokens=200, output_tokens=14)
    silent = CallableLLM(lambda messages, schema: "one two three", name="silent")
    silent.complete([{"role": "user", "content": "hello there"}, {"role": "user", "content": "you"}])
    assert silent.usage == Usage(calls=1, input_tokens=2 + 1 + 2 * 4, output_tokens=3)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "answers.sqlite"


def test_a_valid_answer_is_asked_for_once_and_bad_ones_are_not_kept(path):
    llm = ScriptedLLM("no", '{"number": 3}', '{"number": 1}')
    assert ask(CachedLLM(llm, LLMCache(path)), question()) == 3
    again = CachedLLM(ScriptedLLM(AssertionError("it was asked")), LLMCache(path))
    assert ask(again, question()) == 3
    assert again.usage == Usage(kept_answers=1)
    broken = CachedLLM(ScriptedLLM("no"), LLMCache(path))
    with pytest.raises(NoAnswerError):
        ask(broken, question("Another?"))
    assert len(broken.cache) == 1


def test_a_kept_answer_that_is_no_longer_valid_is_asked_for_again():
    llm = CachedLLM(ScriptedLLM('{"number": 1}'))
    llm.keep(question().messages, SCHEMA, '{"number": 99}')
    assert ask(llm, question()) == 1
    assert ask(CachedLLM(ScriptedLLM(AssertionError()), llm.cache), question()) == 1


@patch.dict(llms.entries)
def test_a_registered_kind_of_language_model_is_built_by_name():
    built = []

    @llms.register("scripted")
    def scripted(rest: str) -> ScriptedLLM:
        built.append(rest)
        return ScriptedLLM(rest, name=f"scripted:{rest}")

    check_llm("scripted:a:b")
    assert built == []
    model = get_llm("scripted:a:b")
    assert (model.name, model is get_llm("scripted:a:b"), built) == ("scripted:a:b", True, ["a:b"])
    with pytest.raises(OptionError, match="a language model is openai:MODEL@URL"):
        get_llm("skripted:a")


@pytest.mark.parametrize(
    ("spec", "model", "url"),
    [
        ("openai:gpt-5-mini@https://api.openai.com/v1", "gpt-5-mini", "https://api.openai.com/v1"),
        ("openai:qwen3:8b@http://localhost:11434/v1/", "qwen3:8b", "http://localhost:11434/v1"),
        ("openai:org/model@main@http://[::1]:8080", "org/model@main", "http://[::1]:8080"),
    ],
)
def test_a_string_names_a_model_and_an_endpoint(spec, model, url):
    llm = get_llm(spec)
    assert (llm.model, llm.base_url) == (model, url)
    assert llm is get_llm(spec) is get_llm(llm)
    llm.count(Usage(calls=1))
    again = pickle.loads(pickle.dumps(llm))
    assert (get_llm(llm.name), again, again.usage) == (llm, llm, Usage())  # not counted by two processes


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("gpt-5", "a language model is openai:MODEL@URL"),
        ("openai:@http://localhost/v1", "an endpoint's model has a name"),
        ("openai:m@localhost:8080/v1", "begins with http:// or https://"),
        ("openai:m@http://localhost:99999/v1", "base_url is no URL"),
        ("openai:m@http://localhost/v1?a=b", "neither \\? nor #"),
        ("openai:m@http://localhost/v1#temprature=1", "no option 'temprature': .* did you mean 'temperature'"),
        ("openai:m@http://localhost/v1#temperature", "expected option=value"),
        ("openai:m@http://localhost/v1#temperature=nan", "temperature is a number, got 'nan'"),
        ("openai:m@http://localhost/v1#tries=1&tries=2", "given twice"),
        ("openai:m@http://localhost/v1#concurrency=0", "concurrency is at least 1"),
        ("openai:m@http://localhost/v1#key=sk-12345", "an environment variable that ends in _API_KEY"),
    ],
)
def test_what_names_no_model_is_told(spec, message):
    for function in (get_llm, check_llm):
        with pytest.raises(OptionError, match=message):
            function(spec)


def test_options_follow_the_address_and_are_never_sent(path):
    llm = get_llm(f"openai:m@http://localhost:9/v1#concurrency=7&temperature=none&cache={path.parent}/R%26D/1.50")
    assert isinstance(llm, CachedLLM)
    assert (llm.cache.path, llm.concurrency) == (path.parent / "R&D" / "1.50", 7)
    assert llm.name == "openai:m@http://localhost:9/v1#temperature=none&concurrency=7"
    check_llm(f"openai:m@http://localhost:9/v1#cache={path.parent / 'other'}")
    assert not (path.parent / "other").exists()


def endpoint(server, fault: str, **options) -> OpenAILLM:
    return OpenAILLM(fault, server.url, **{"timeout": 200.0, **options})


def asked(server, fault: str) -> list[dict]:
    return [each for each in server.log if each["body"]["model"] == fault]


@needs_openai
def test_a_question_is_sent_with_its_schema_and_its_answer_counted(server):
    llm = endpoint(server, "ok", max_tokens=50)
    assert ask(llm, question("Où? \u0000 <|endoftext|> \ud800")) in (1, 2, 3)
    assert llm.usage == Usage(calls=1, input_tokens=100, output_tokens=10)
    body = asked(server, "ok")[-1]["body"]
    assert body["messages"][1] == {"role": "user", "content": "Où? \u0000 <|endoftext|> \ufffd"}
    assert body["response_format"]["type"] == "json_schema"
    assert body["response_format"]["json_schema"] == {"name": "answer", "strict": True, "schema": SCHEMA}
    assert (body["temperature"], body["max_tokens"]) == (0.0, 50)


@needs_openai
def test_an_endpoint_that_knows_no_schema_is_asked_without_from_then_on(server):
    llm = endpoint(server, "without_schema")
    plain = Question(messages=question().messages, schema=SCHEMA, read=found_json, assumed={})
    assert ask(llm, plain) == ask(llm, plain)
    assert ["response_format" in each["body"] for each in asked(server, "without_schema")] == [True, False, False]


FAULTS = "refusal*1 prose*2 out_of_range*1 truncated*1 latin1*1 fenced http_429*2 http_500*2 close*1"


@needs_openai
@pytest.mark.parametrize("fault", FAULTS.split())
def test_what_fails_for_a_while_is_answered_in_the_end(server, fault):
    assert ask(endpoint(server, fault), question()) in (1, 2, 3)


@needs_openai
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("refusal", 'got a refusal: "I can\'t help with that."'),
        ("prose", 'expected a JSON object, got "The content changes'),
        ("out_of_range", "integer, minimum 1, maximum 3, got 10000"),
        ("truncated", "cut off"),
        ("no_json", "expected a chat completion, got none"),
        ("error_200", "expected a chat completion, got none .*out of order"),
        ("html", "expected a chat completion, got str without one"),
        ("no_choices", "expected a chat completion"),
        ("http_429", "HTTP 429, 2 times: .*slow down"),
        ("filter_400", "this was filtered"),
    ],
)
def test_what_goes_on_failing_is_no_answer_to_this_question(server, fault, message):
    with pytest.raises(NoAnswerError, match=message):
        ask(endpoint(server, fault, tries=2), question(), retries=1)


@needs_openai
@pytest.mark.parametrize(("fault", "address"), [("redirect_308", "/elsewhere/v1"), ("moved", r"//\[Bearer \[key\]")])
def test_a_redirect_is_not_followed_with_the_passages_and_names_the_address(server, fault, address, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "a-secret-of-mine")
    with pytest.raises(ModelError, match=rf"redirects to another address \(HTTP 30\d\).* set http:\S*{address} as"):
        ask(endpoint(server, fault, key="MY_API_KEY"), question())
    assert len(server.log) == 1


@needs_openai
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("http_400", "HTTP 400: .*your messages are too long"),
        ("http_404", "HTTP 404.*no such model"),
        ("http_401", "HTTP 401.*name one with #key=NAME_API_KEY"),
        ("quota", "HTTP 429.*you have no money"),
        ("close", "cannot be reached .* start it, or correct the address"),
    ],
)
def test_what_no_question_can_get_past_ends_the_work(server, fault, message):
    with pytest.raises(ModelError, match=message) as told:
        ask(endpoint(server, fault, tries=2), question())
    assert not isinstance(told.value, NoAnswerError)


@needs_openai
def test_a_key_is_sent_to_the_endpoint_that_it_was_named_for_and_stands_nowhere_else(server, monkeypatch, path):
    secret = "very-secret-0123456789"
    monkeypatch.setenv("FAKE_API_KEY", f"{secret}\n")
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "sk-of-another-service")
    named = get_llm(f"openai:ok@{server.url}#key=FAKE_API_KEY&cache={path}")
    ask(named, question("with a key"))
    assert server.log[-1]["headers"]["authorization"] == f"Bearer {secret}"
    ask(OpenAILLM("ok", server.url), question("without"))
    assert "sk-of-another-service" not in json.dumps(server.log)
    with pytest.raises(ModelError, match=r"Wrong key: Bearer \[key\].*sent the key in FAKE_API_KEY\)") as told:
        ask(OpenAILLM("http_401", server.url, key="FAKE_API_KEY"), question())
    shown = [repr(named), named.name, named.fingerprint, repr(pickle.dumps(named)), repr(told.value), path.read_bytes()]
    assert all(secret not in str(each) for each in shown)
    monkeypatch.setenv("FAKE_API_KEY", f"{secret}\n{secret}")
    with pytest.raises(ModelError, match=r"FAKE_API_KEY is to hold the key of .*, a line of ASCII$"):
        ask(OpenAILLM("ok", server.url, key="FAKE_API_KEY"), question())
