"""`OpenAILLM`: endpoints of OpenAI's chat protocol, such as llama.cpp, vLLM, Ollama and services."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from chunkcore.errors import NoAnswerError, OptionError, echo
from chunkcore.models.cache import LLMCache
from chunkcore.models.endpoint import (
    Endpoint,
    StatusError,
    UnreadableError,
    read_address_options,
    split_address,
)
from chunkcore.models.llm.base import (
    LLM,
    BadAnswerError,
    CachedLLM,
    Message,
    MeteredLLM,
    Reply,
    SchemaRefusedError,
)
from chunkcore.options import check_number
from chunkcore.plain import digest
from chunkcore.registry import Registry

# HTTP statuses of endpoints without structured output.
SCHEMA_REFUSED = (400, 404, 415, 422, 501)
_SECRET = 12  # characters: a shorter key may be a word, such as "none", and stays in answers


@dataclass(eq=False, repr=False)
class OpenAILLM(MeteredLLM):
    """A model behind an endpoint of OpenAI's chat protocol. There is no default endpoint.

    The endpoint enforces the JSON schema if it can; after a refusal, questions go without it. The openai package
    retries time-outs, 429 (after its Retry-After) and 500 to 599, `tries` in all. Answers over 16 MB are refused.

    The key is read from the environment and sent to this endpoint alone. It is in no name, repr, fingerprint, pickle,
    cache or error.

    Attributes:
        model: its name at the endpoint.
        base_url: such as ``http://localhost:8080/v1``.
        key: the environment variable with the key, named like GROQ_API_KEY; "" for none. None: OPENAI_API_KEY for
            api.openai.com, else no key.
        temperature: 0 for the most repeatable answers; None leaves it to the endpoint.
        max_tokens: of an answer; None leaves it to the endpoint.
        timeout: seconds for one try, however slowly the answer comes.
        tries: how often a question is sent where the endpoint fails or is busy; at least 1.
        concurrency: questions at the same time, over all threads.

    Raises `OptionError`: an argument is out of range, or the URL is invalid or holds a password.

    >>> OpenAILLM("qwen3:8b", "http://localhost:11434/v1", concurrency=2).name
    'openai:qwen3:8b@http://localhost:11434/v1#concurrency=2'
    """

    model: str
    base_url: str
    _: KW_ONLY
    key: str | None = None
    temperature: float | None = 0.0
    max_tokens: int | None = None
    timeout: float = 120.0
    tries: int = 3
    concurrency: int = 4

    def __post_init__(self) -> None:
        endpoint = Endpoint(self.model, self.base_url, self.key, self.timeout, self.tries)
        if self.temperature is not None:
            check_number("temperature", self.temperature, whole=False)
        if self.max_tokens is not None:
            check_number("max_tokens", self.max_tokens, 1)
        check_number("concurrency", self.concurrency, 1)
        self.base_url = endpoint.url
        self._options = {}
        for field in fields(self)[2:]:
            value = getattr(self, field.name)
            if value != field.default:
                self._options[field.name] = value
        shown = {name: "none" if value is None else value for name, value in self._options.items()}
        fragment = "&".join(f"{name}={value}" for name, value in shown.items())
        address = f"openai:{self.model}@{self.base_url}"
        identity = digest([self.model, self.base_url, self.temperature, self.max_tokens], 8)
        super().__init__(
            name=f"{address}#{fragment}" if fragment else address,
            fingerprint=f"openai:{identity}",
            concurrency=self.concurrency,
        )
        self._endpoint = endpoint

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **self._options), (self.model, self.base_url)

    def _complete(self, messages: Sequence[Message], schema: Mapping[str, Any] | None) -> Reply:
        limit_name = "max_completion_tokens" if self._endpoint.is_openai else "max_tokens"
        request: dict[str, Any] = {"temperature": self.temperature, limit_name: self.max_tokens}
        if schema is not None:
            answer_schema = {"name": "answer", "strict": True, "schema": dict(schema)}
            request["response_format"] = {"type": "json_schema", "json_schema": answer_schema}
        request = {name: value for name, value in request.items() if value is not None}
        try:
            answer = self._endpoint.call(
                lambda client: client.chat.completions.create(
                    model=self.model, messages=list(messages), **request
                )
            )
        except UnreadableError as error:
            problem = f"expected a JSON response, got one that cannot be read ({error})"
            raise BadAnswerError(problem) from None
        except StatusError as error:
            raise _meaning(error, with_schema=schema is not None) from None
        reply = _read_endpoint(answer)
        return replace(reply, text=self._endpoint.redacted(reply.text, least=_SECRET))


def _meaning(error: StatusError, *, with_schema: bool) -> Exception:
    """What an HTTP status says of a question: ask without a schema, ask again, or give up."""
    is_filtered = error.code == "content_filter"
    if with_schema and not is_filtered and error.status in SCHEMA_REFUSED:
        return SchemaRefusedError(str(error))
    return NoAnswerError(str(error)) if is_filtered or error.is_busy else error


def _read_endpoint(answer: Any) -> Reply:
    """A reply from the package's object, which has the shape of whatever the endpoint sent."""
    try:
        choice = answer.choices[0]
        message, text = choice.message, choice.message.content
    except (AttributeError, IndexError, TypeError):
        raise BadAnswerError(
            f"expected a chat completion, got {type(answer).__name__} without one"
        ) from None
    return reply_of(text if isinstance(text, str) else "", message, choice, answer)


# ---- What services say beside an answer, by their own names

_USAGE = ("usage", "usage_metadata", "token_usage")
_INPUT = ("input_tokens", "prompt_tokens", "prompt_token_count", "prompt_eval_count", "inputTokens")
_OUTPUT = (
    "output_tokens",
    "completion_tokens",
    "candidates_token_count",
    "eval_count",
    "outputTokens",
)
_FINISH = ("finish_reason", "stop_reason", "done_reason", "stopReason")
_CUT_OFF = ("length", "max_tokens", "max_output_tokens", "model_length")
_REFUSED = frozenset(
    [
        "content_filter",
        "refusal",
        "safety",
        "recitation",
        "blocklist",
        "prohibited_content",
        "guardrail_intervened",
    ]
)


def reply_of(text: object, *sources: Any) -> Reply:
    """A reply from an answer's text and the framework's mappings and objects about it.

    >>> reply_of("Yes.", {"finish_reason": "stop", "usage": {"prompt_tokens": 9, "completion_tokens": 2}})
    Reply(text='Yes.', finish='stop', input_tokens=9, output_tokens=2)

    Raises `BadAnswerError`: `text` is no text.
    """
    if not isinstance(text, str):
        raise BadAnswerError(f"expected a text, got {type(text).__name__}")
    holders = [holder for holder in sources if holder is not None]
    counts = [*_values(holders, _USAGE), *holders]
    refusal = next(
        (value for value in _values(holders, ("refusal",)) if isinstance(value, str) and value), ""
    )
    return Reply(
        text=str(text) or refusal,
        finish="refusal" if refusal else _finish(holders),
        input_tokens=_first_number(counts, _INPUT),
        output_tokens=_first_number(counts, _OUTPUT),
    )


def _finish(holders: Sequence[Any]) -> Literal["stop", "length", "refusal"]:
    for reason in _values(holders, _FINISH):
        word = str(getattr(reason, "value", reason)).lower()
        if word in _CUT_OFF or word in _REFUSED:
            return "length" if word in _CUT_OFF else "refusal"
    return "stop"


def _first_number(holders: Sequence[Any], names: Sequence[str]) -> int | None:
    return next(
        (value for value in _values(holders, names) if type(value) is int and value >= 0), None
    )


def _values(holders: Sequence[Any], names: Sequence[str]) -> Iterator[Any]:
    """What mappings or objects have under these names, but for None."""
    for holder in holders:
        for name in names:
            value = holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
            if value is not None:
                yield value


# ---- From a string to a model

Function = Callable[
    [Sequence[Message], Mapping[str, Any] | None], str | Reply | Awaitable[str | Reply]
]

# Each takes the text after "kind:" and returns the model.
llms: Registry[Callable[[str], LLM]] = Registry("kind of language model", "chunkcore.llms")


class CallableLLM(MeteredLLM):
    """A function of messages and a JSON schema (or None) that returns text or an awaitable of it.

    Args:
        function: a `TimeoutError` means no answer to this question; any other error, raised twice, ends the work.
        name: for configurations and caches.
        fingerprint: what the answers depend on; None: the name. Change it when the function changes.
        concurrency: calls at the same time, from several threads.

    Raises `OptionError`: an empty name, or concurrency under 1.

    >>> llm = CallableLLM(lambda messages, schema: messages[-1]["content"].upper(), name="shouting")
    >>> llm.complete([{"role": "user", "content": "chunk"}]).text, llm.usage.calls
    ('CHUNK', 1)
    """

    def __init__(
        self, function: Function, *, name: str, fingerprint: str | None = None, concurrency: int = 1
    ) -> None:
        if not isinstance(name, str) or not name.strip():
            raise OptionError(f"name is a text that is not empty, got {echo(name)}")
        super().__init__(
            name=name, fingerprint=f"callable:{fingerprint or name}", concurrency=concurrency
        )
        self.function = function

    def __reduce__(self) -> tuple[Any, ...]:
        mark = self.fingerprint.removeprefix("callable:")
        again = partial(type(self), name=self.name, fingerprint=mark, concurrency=self.concurrency)
        return again, (self.function,)

    def _complete(
        self, messages: Sequence[Message], schema: Mapping[str, Any] | None
    ) -> str | Reply | Awaitable[str | Reply]:
        return self.function(messages, schema)


_FORM = "openai:MODEL@URL, such as openai:qwen3:8b@http://localhost:11434/v1"

_loaded: dict[str, LLM] = {}
_lock = threading.Lock()


def get_llm(spec: str | LLM) -> LLM:
    """The language model that a string names; the same object each time. An `LLM` is returned as it is.

    ``openai:MODEL@URL`` is a model behind an endpoint of OpenAI's protocol. Options may follow a ``#``, which is
    never sent, as ``option=value&option=value``: those of `OpenAILLM` (``key``, ``temperature``, ``max_tokens``,
    ``timeout``, ``tries``, ``concurrency``; ``none`` for None) and ``cache``, the file that keeps answers.
    ``KIND:REST`` is what a package registered as ``@llms.register("KIND")`` makes of REST.

    There is no default: the network is used only for an endpoint that was named, and only to ask it.

    Raises `OptionError`: the string is of another form, or an option is unknown or out of range.

    >>> get_llm("openai:gpt-5-mini@https://api.openai.com/v1#temperature=none&timeout=30")
    OpenAILLM('openai:gpt-5-mini@https://api.openai.com/v1#temperature=none&timeout=30.0')
    >>> get_llm("gpt-5-mini")
    Traceback (most recent call last):
    chunkcore.errors.OptionError: a language model is openai:MODEL@URL, ... or an object that is one; got 'gpt-5-mini'
    """
    if not isinstance(spec, str):
        if isinstance(spec, LLM):
            return spec
        raise OptionError(
            f"a language model is {_FORM}, or an LLM such as CallableLLM; got {type(spec).__name__}"
        )
    with _lock:
        if spec not in _loaded:
            _loaded[spec] = _kind(spec)(spec.partition(":")[2])
        return _loaded[spec]


def check_llm(spec: str | LLM) -> None:
    """Raise `OptionError` where `get_llm` would; no file is opened. A package's kind is looked up, not built."""
    if not isinstance(spec, str):
        get_llm(spec)
    elif _kind(spec) is _openai:
        _parsed(spec.partition(":")[2])


def _kind(spec: str) -> Callable[[str], LLM]:
    kind, colon, _ = spec.partition(":")
    build = llms.find(kind) if colon else None
    if build is None:
        others = "".join(f", {name}:..." for name in llms.offered)
        raise OptionError(
            f"a language model is {_FORM}{others}, or an object that is one; got {_shown(spec)}"
        )
    return build


@llms.register("openai")
def _openai(rest: str) -> LLM:
    """A model behind an endpoint of OpenAI's protocol: openai:MODEL@URL."""
    model, cache = _parsed(rest)
    return CachedLLM(model, LLMCache(cache)) if cache else model


def _parsed(rest: str) -> tuple[OpenAILLM, Path | None]:
    model, url, text = split_address(rest)
    if not url:
        spec = _shown(f"openai:{rest}")
        raise OptionError(f"a language model is {_FORM}, or an object that is one; got {spec}")
    options = read_address_options(text, _READERS, "a language model")
    cache = options.pop("cache", "")
    return OpenAILLM(model, url, **options), Path(cache).expanduser() if cache else None


def _shown(spec: str) -> str:
    """The part of a string that errors may repeat: a misspelt option may be a key."""
    return echo(spec.partition("#")[0].partition("?")[0])


_READERS: dict[str, Callable[[str], Any]] = {
    "key": str,
    "temperature": lambda text: None if text == "none" else float(text),
    "max_tokens": lambda text: None if text == "none" else int(text),
    "timeout": float,
    "tries": int,
    "concurrency": int,
    "cache": str,
}
