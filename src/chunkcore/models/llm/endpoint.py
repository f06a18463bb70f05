"""`OpenAILLM`: endpoints of OpenAI's chat protocol, such as llama.cpp, vLLM, Ollama and services."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, urljoin, urlsplit

from chunkcore.errors import ModelError, NoAnswerError, OptionError, echo
from chunkcore.lazy import needed
from chunkcore.models.cache import LLMCache
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

LONGEST_WAIT = 31_536_000  # seconds: a year
LARGEST = 16 * 2**20  # bytes of a response, unpacked; today's longest answers have one million

SCHEMA_REFUSED = (
    400,
    404,
    415,
    422,
    501,
)  # the HTTP statuses of endpoints without structured output
_OF_THE_BODY = ("content-encoding", "content-length", "transfer-encoding")
_OPENAI = "api.openai.com"
_KEY_NAME = re.compile(r"[A-Z][A-Z0-9_]*_API_KEY")
_SHOWN = 300  # characters of an endpoint's message that an error repeats
_SECRET = (
    12  # characters: a shorter key may be a word, such as "none", and is not redacted from answers
)


class TooLargeError(Exception):
    """A response has over `LARGEST` bytes."""


def bounded_client(openai: Any, seconds: float) -> Any:
    """A client for the openai package that reads a response for at most `seconds` and `LARGEST` bytes.

    The package's own time-out is between two pieces of a response: it would wait for ever for a server that sends a
    byte now and then, and fill the memory with a response that never ends. Too late is a time-out to the package,
    noticed when a piece comes; too large is a broken connection, caused by a `TooLargeError`.
    """

    class Bounded(openai.DefaultHttpxClient):  # type: ignore[misc]
        """A client that reads responses piece by piece, and follows no redirect: it would send the passages there."""

        def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            end = time.monotonic() + seconds
            response = super().send(request, stream=True, **options)
            if stream:
                return response
            errors = import_module(
                type(request).__module__.partition(".")[0]
            )  # httpx; httpx2 with a later package
            body = bytearray()
            try:
                for piece in response.iter_bytes():
                    body += piece
                    if len(body) > LARGEST:
                        raise errors.ReadError(
                            "the response is too large", request=request
                        ) from TooLargeError()
                    if time.monotonic() > end:
                        raise errors.ReadTimeout("the response takes too long", request=request)
            finally:
                response.close()
            headers = [
                header
                for header in response.headers.multi_items()
                if header[0].lower() not in _OF_THE_BODY
            ]
            return type(response)(
                response.status_code,
                headers=headers,
                content=bytes(body),
                request=request,
                extensions=response.extensions,
            )

        def __del__(self) -> None:
            with suppress(Exception):
                self.close()

    return Bounded(follow_redirects=False)


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
        url = self.base_url = _checked_url(self.base_url)
        if not isinstance(self.model, str) or not self.model.strip():
            raise OptionError(f"an endpoint's model has a name, got {self.model!r}")
        if self.key and not _KEY_NAME.fullmatch(self.key):
            raise OptionError(
                "key names an environment variable that ends in _API_KEY, and is not the key itself"
            )
        if self.temperature is not None:
            check_number("temperature", self.temperature, whole=False)
        if self.max_tokens is not None:
            check_number("max_tokens", self.max_tokens, 1)
        check_number("timeout", self.timeout, 0.001, LONGEST_WAIT, whole=False)
        check_number("tries", self.tries, 1)
        check_number("concurrency", self.concurrency, 1, 1_000)
        self._options = {
            field.name: value
            for field in fields(self)[2:]
            if (value := getattr(self, field.name)) != field.default
        }
        fragment = "&".join(
            f"{name}={'none' if value is None else value}" for name, value in self._options.items()
        )
        identity = digest([self.model, url, self.temperature, self.max_tokens], 8)
        super().__init__(
            name=f"openai:{self.model}@{url}" + (f"#{fragment}" if fragment else ""),
            fingerprint=f"openai:{identity}",
            concurrency=self.concurrency,
        )
        is_openai = urlsplit(url).hostname == _OPENAI
        self._key_name = self.key if self.key is not None else "OPENAI_API_KEY" if is_openai else ""
        self._limit_name = "max_completion_tokens" if is_openai else "max_tokens"
        self._client: Any = None
        self._client_of = 0
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **self._options), (self.model, self.base_url)

    def _complete(self, messages: Sequence[Message], schema: Mapping[str, Any] | None) -> Reply:
        openai = needed("openai", "llm", "ask a model behind an endpoint")
        client = self._connected(openai)
        request: dict[str, Any] = {
            "temperature": self.temperature,
            self._limit_name: self.max_tokens,
        }
        if schema is not None:
            answer_schema = {"name": "answer", "strict": True, "schema": dict(schema)}
            request["response_format"] = {"type": "json_schema", "json_schema": answer_schema}
        request = {name: value for name, value in request.items() if value is not None}
        try:
            answer = client.chat.completions.create(
                model=self.model, messages=list(messages), **request
            )
        except openai.APITimeoutError:
            raise NoAnswerError(
                f"{self._where} gave no answer in {self.timeout} s{self._times}"
            ) from None
        except openai.APIStatusError as error:
            raise self._error(error, schema is not None) from None
        except openai.APIConnectionError as error:
            if isinstance(getattr(error.__cause__, "__cause__", None), TooLargeError):
                raise NoAnswerError(
                    f"{self._where} answered with more than {LARGEST:,} bytes{self._times}"
                ) from None
            reason = self._clean(str(error.__cause__ or error))
            raise ModelError(
                f"{self._where} cannot be reached ({reason}): start it, or correct the address"
            ) from None
        except (openai.OpenAIError, ValueError) as error:  # a body that is no JSON, or no UTF-8
            reason = self._clean(error)
            raise BadAnswerError(
                f"expected a JSON response, got one that cannot be read ({reason})"
            ) from None
        reply = _read_endpoint(answer)
        return replace(reply, text=self._redacted(reply.text, least=_SECRET))

    def _error(self, error: Any, with_schema: bool) -> Exception:
        status = int(error.status_code)
        if 300 <= status < 400:
            target = urljoin(
                f"{self.base_url}/chat/completions", error.response.headers.get("location", "")
            )
            return ModelError(
                f"{self._where} redirects to another address (HTTP {status}), to which nothing was sent. If you trust "
                f"it, set {target.removesuffix('/chat/completions')} as the address"
            )
        message = (
            f"{self._where} answered with HTTP {status}{self._times}: {self._clean(error.message)}"
        )
        code = str(getattr(error, "code", "") or "")
        if code != "content_filter" and with_schema and status in SCHEMA_REFUSED:
            return SchemaRefusedError(message)
        if code == "content_filter" or is_busy(status, code):
            return NoAnswerError(message)
        if status in (401, 403):
            key = (
                f"the key in {self._key_name}"
                if self._key_name
                else "no key; name one with #key=NAME_API_KEY"
            )
            return ModelError(f"{message} (it was sent {key})")
        return ModelError(message)

    def _connected(self, openai: Any) -> Any:
        with self._lock:
            # A forked process must not use its parent's connections.
            if self._client is None or self._client_of != os.getpid():
                key = os.environ.get(self._key_name, "")
                if self._key_name and not key:
                    raise ModelError(
                        f"the environment variable {self._key_name} is to hold the key of {self._where}"
                    )
                self._client = openai.OpenAI(
                    api_key=key or "none",
                    base_url=self.base_url,
                    timeout=self.timeout,
                    max_retries=self.tries - 1,
                    http_client=bounded_client(openai, self.timeout),
                )
                if urlsplit(self.base_url).hostname != _OPENAI:
                    # The package reads them from the environment and would send them to any endpoint.
                    self._client.organization = self._client.project = None
                self._client_of = os.getpid()
            return self._client

    @property
    def _where(self) -> str:
        return f"the model {self.model!r} at {self.base_url}"

    @property
    def _times(self) -> str:
        return f", {self.tries} times" if self.tries != 1 else ""

    def _clean(self, message: object) -> str:
        return self._redacted(" ".join(str(message).split()))[:_SHOWN]

    def _redacted(self, text: str, *, least: int = 1) -> str:
        """An endpoint's text without the key, if the key has at least so many characters."""
        key = os.environ.get(self._key_name, "") if self._key_name else ""
        return text.replace(key, "[key]") if len(key) >= least else text


def is_busy(status: int, code: str) -> bool:
    """Whether an HTTP error may go away by itself; "insufficient_quota" does not."""
    return (status in (408, 409, 429) or status >= 500) and code != "insufficient_quota"


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port
    except (ValueError, AttributeError) as error:
        # The URL is not repeated: what stands before a host cannot be distinguished in it.
        raise OptionError(
            f"base_url is no URL such as http://localhost:8080/v1 ({type(error).__name__})"
        ) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise OptionError(
            f"base_url begins with http:// or https:// and a host, got {_without_key(url)!r}"
        )
    if parts.username is not None or parts.password is not None:
        raise OptionError(
            "base_url holds a name or password; put the key into an environment variable instead"
        )
    if parts.query or parts.fragment:
        raise OptionError(
            f"base_url has neither ? nor # after {_without_key(url)!r}; a key is named, see `key`"
        )
    return url.rstrip("/")


def _without_key(url: object) -> str:
    """An invalid address, without a possible key."""
    return re.sub(r"(?<=//)[^/]*@", "[key]@", re.split(r"[?#]", str(url))[0])


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

    Raises `OptionError`: no function, an empty name, or concurrency under 1.

    >>> llm = CallableLLM(lambda messages, schema: messages[-1]["content"].upper(), name="shouting")
    >>> llm.complete([{"role": "user", "content": "chunk"}]).text, llm.usage.calls
    ('CHUNK', 1)
    """

    def __init__(
        self, function: Function, *, name: str, fingerprint: str | None = None, concurrency: int = 1
    ) -> None:
        if not callable(function):
            raise OptionError(
                f"expected a function of messages and a schema, got {type(function).__name__}"
            )
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
    address, _, fragment = rest.partition("#")
    model, at, url = address.rpartition("@")
    spec = _shown(f"openai:{rest}")
    if not at:
        raise OptionError(f"a language model is {_FORM}, or an object that is one; got {spec}")
    try:
        pairs = parse_qsl(fragment, keep_blank_values=True, strict_parsing=bool(fragment))
    except ValueError as error:
        raise OptionError(f"expected option=value&option=value after {spec} and #") from error
    options: dict[str, Any] = {}
    for name, text in pairs:
        if name not in _READERS:
            raise OptionError(
                f"a language model has no option {echo(name)}: expected some of {', '.join(_READERS)}"
            )
        if name in options:
            raise OptionError(f"the option {name} is given twice after {spec}; keep one")
        try:
            options[name] = _READERS[name](text)
        except ValueError as error:
            raise OptionError(
                f"the option {name} of a language model is a number, got {echo(text)}"
            ) from error
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
