"""Endpoints of OpenAI's protocol: `Endpoint`, and the models there, `OpenAIEmbedder` and `OpenAILLM`; `get_llm`."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urljoin, urlsplit

import numpy as np

from chunkcore.columns import blocks
from chunkcore.errors import DataError, ModelError, NoAnswerError, OptionError, echo
from chunkcore.lazy import needed
from chunkcore.models.base import NO_VECTORS, Fingerprinted, Vectors, check_vectors
from chunkcore.models.cache import LLMCache
from chunkcore.models.llm.base import (
    LLM,
    BadAnswerError,
    CachedLLM,
    Completion,
    Messages,
    MeteredLLM,
    Reply,
    Schema,
    SchemaRefusedError,
)
from chunkcore.options import check_number, check_option_names, plain_options, read_value
from chunkcore.plain import digest, encodable
from chunkcore.registry import Registry

LONGEST_WAIT = 31_536_000  # seconds: a year
LARGEST = 16 * 2**20  # bytes of a response, unpacked; today's longest answers have one million
OPENAI = "https://api.openai.com/v1"

_OF_THE_BODY = ("content-encoding", "content-length", "transfer-encoding")
_HOST = "api.openai.com"
# Addresses of providers by their names in LiteLLM, and of each host the variable that holds its key.
PROVIDERS = {
    "openai": OPENAI,
    "mistral": "https://api.mistral.ai/v1",
    "together_ai": "https://api.together.xyz/v1",
    "deepinfra": "https://api.deepinfra.com/v1/openai",
    "jina_ai": "https://api.jina.ai/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta/openai",
    "ollama": "http://localhost:11434/v1",
    "lm_studio": "http://localhost:1234/v1",
}
_KEYS = {
    _HOST: "OPENAI_API_KEY",
    "api.mistral.ai": "MISTRAL_API_KEY",
    "api.together.xyz": "TOGETHERAI_API_KEY",
    "api.deepinfra.com": "DEEPINFRA_API_KEY",
    "api.jina.ai": "JINA_AI_API_KEY",
    "generativelanguage.googleapis.com": "GEMINI_API_KEY",
}
_KEY_NAME = re.compile(r"[A-Z][A-Z0-9_]*_API_KEY")
_SHOWN = 300  # characters of an endpoint's message that an error repeats


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
            return response if stream else _read_whole(request, response, end)

        def __del__(self) -> None:
            with suppress(Exception):
                self.close()

    return Bounded(follow_redirects=False)


def _read_whole(request: Any, response: Any, end: float) -> Any:
    """The response with its body in memory, read until the time `end`."""
    # httpx; httpx2 with a later package
    errors = import_module(type(request).__module__.partition(".")[0])
    body = bytearray()
    try:
        for piece in response.iter_bytes():
            body += piece
            if len(body) > LARGEST:
                cause = TooLargeError()
                raise errors.ReadError("the response is too large", request=request) from cause
            if time.monotonic() > end:
                raise errors.ReadTimeout("the response takes too long", request=request)
    finally:
        response.close()
    headers = response.headers.copy()
    for name in _OF_THE_BODY:
        headers.pop(name, None)
    return type(response)(
        response.status_code,
        headers=headers,
        content=bytes(body),
        request=request,
        extensions=response.extensions,
    )


@dataclass(eq=False, repr=False)
class Endpoint:
    """An address of OpenAI's protocol with its key, which is sent to this address alone.

    The key is read from the environment when the endpoint is asked. It is in no name, error or pickle.

    Args:
        model: the model's name there.
        url: such as ``http://localhost:8080/v1``.
        key: the environment variable with the key, named like GROQ_API_KEY; "" for none. None: OPENAI_API_KEY for
            api.openai.com, the usual one for a host of `PROVIDERS`, else no key.
        timeout: seconds for one try, however slowly the answer's body comes.
        tries: how often a request is sent where the endpoint fails or is busy; at least 1.

    Raises `OptionError`: an argument is out of range, or the URL is invalid or holds a password.
    """

    model: str
    url: str
    key: str | None
    timeout: float
    tries: int

    def __post_init__(self) -> None:
        self.url = _checked_url(self.url)
        if not isinstance(self.model, str) or not self.model.strip():
            raise OptionError(f"an endpoint's model has a name, got {self.model!r}")
        if self.key and not _KEY_NAME.fullmatch(str(self.key)):
            raise OptionError(
                "key names an environment variable that ends in _API_KEY, and is not the key itself"
            )
        check_number("timeout", self.timeout, 0.001, LONGEST_WAIT, whole=False)
        check_number("tries", self.tries, 1)
        host = urlsplit(self.url).hostname
        self.is_openai = host == _HOST
        self.key_name = _KEYS.get(host or "", "") if self.key is None else self.key
        self.where = f"the model {self.model!r} at {self.url}"
        self.times = f", {self.tries} times" if self.tries != 1 else ""

    def call(self, request: Callable[[Any], Any]) -> Any:
        """What `request` returns for the client of the openai package.

        Raises `NoAnswerError`: the endpoint takes too long, is busy, or sends too much; `ModelError`: it cannot be
        reached, or refuses; `UnreadableError`: its response is not of the protocol.
        """
        openai = needed("openai", "llm", "ask a model behind an endpoint")
        key = self._key()
        if self.key_name and not (key and key.isascii() and key.isprintable()):
            # An error of the header that it makes would quote it.
            raise ModelError(
                f"the environment variable {self.key_name} is to hold the key of {self.where}, a line of ASCII"
            )
        client = _client(self.url, key, self.timeout, self.tries, os.getpid())
        try:
            answer = request(client)
        except openai.APITimeoutError:
            raise NoAnswerError(
                f"{self.where} gave no answer in {self.timeout} s{self.times}"
            ) from None
        except openai.APIStatusError as error:
            raise self._refusal(error) from None
        except openai.APIConnectionError as error:
            if isinstance(getattr(error.__cause__, "__cause__", None), TooLargeError):
                raise NoAnswerError(
                    f"{self.where} answered with more than {LARGEST:,} bytes{self.times}"
                ) from None
            reason = self._clean(error.__cause__ or error)
            raise ModelError(
                f"{self.where} cannot be reached ({reason}): start it, or correct the address"
            ) from None
        except (openai.OpenAIError, ValueError, RecursionError) as error:  # no JSON, or no UTF-8
            raise UnreadableError(self._clean(error)) from None
        refusal = getattr(answer, "error", None)  # services say so with HTTP 200
        if refusal:
            raise UnreadableError(self._clean(refusal))
        return answer

    def redacted(self, text: str, *, least: int = 1) -> str:
        """An endpoint's text without the key, if the key has at least so many characters."""
        key = self._key()
        return text.replace(key, "[key]") if len(key) >= least else text

    def _key(self) -> str:
        return os.environ.get(self.key_name, "").strip()  # files of keys end in a line end

    def _refusal(self, error: Any) -> Exception:
        status = error.status_code
        if 300 <= status < 400:
            path = urlsplit(str(error.request.url)).path.removeprefix(urlsplit(self.url).path)
            target = error.response.headers.get("location", "")
            with suppress(ValueError):  # it is no address
                target = urljoin(f"{self.url}{path}", target)
            return ModelError(
                f"{self.where} redirects to another address (HTTP {status}), to which nothing was sent. If you trust "
                f"it, set {self._clean(target.removesuffix(path))} as the address"
            )
        times = self.times if is_busy(status, "") else ""  # others are sent once
        message = f"{self.where} answered with HTTP {status}{times}: {self._clean(error.message)}"
        code = str(getattr(error, "code", "") or "")
        if status in (401, 403) and code != "content_filter":
            key = "no key; name one with #key=NAME_API_KEY"
            if self.key_name:
                key = f"the key in {self.key_name}"
            message = f"{message} (it was sent {key})"
        return StatusError(message, status, code)

    def _clean(self, message: object) -> str:
        return self.redacted(" ".join(str(message).split()))[:_SHOWN]


@lru_cache(maxsize=8)
def _client(url: str, key: str, timeout: float, tries: int, process: int) -> Any:
    """A client of an endpoint, for one process: a forked one must not use its parent's connections."""
    openai = import_module("openai")
    client = openai.OpenAI(
        api_key=key or "none",
        base_url=url,
        timeout=timeout,
        max_retries=tries - 1,
        http_client=bounded_client(openai, timeout),
    )
    if urlsplit(url).hostname != _HOST:
        # The package reads them from the environment and would send them to any endpoint.
        client.organization = client.project = None
    return client


class UnreadableError(Exception):
    """A response is not of the protocol."""


class StatusError(ModelError):
    """A response with an HTTP status of an error, and the endpoint's own code for it."""

    def __init__(self, message: str, status: int, code: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


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
    shown = re.sub(r"(?<=//)[^/]*@", "[key]@", re.split(r"[?#]", str(url))[0])
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise OptionError(f"base_url begins with http:// or https:// and a host, got {shown!r}")
    if parts.username is not None or parts.password is not None:
        raise OptionError(
            "base_url holds a name or password; put the key into an environment variable instead"
        )
    if parts.query or parts.fragment:
        raise OptionError(
            f"base_url has neither ? nor # after {shown!r}; a key is named, see `key`"
        )
    return url.rstrip("/")


# ---- From a string

_OPTIONS = ("key", "timeout", "tries")
_TEXTS = ("key", "cache")


def read_address(rest: str, names: Sequence[str], noun: str) -> tuple[str, str, dict[str, Any]]:
    """The model, the URL ("" for none) and the options of ``MODEL@URL#option=value&option=value``.

    What follows the # is never sent. Raises `OptionError`: a wrong option.
    """
    address, _, written = rest.partition("#")
    options: dict[str, Any] = {}
    for part in filter(None, written.split("&")):
        name, equals, value = part.partition("=")
        if not equals or name in options:
            # Not repeated: it may be a key.
            raise OptionError(
                f"expected option=value&option=value after the # of {noun}, with no option given twice"
            )
        text = unquote(value)  # a path may hold an ampersand
        if text == "none":
            options[name] = None
        elif name in _TEXTS:
            options[name] = text
        else:
            options[name] = read_value(text, name)
    check_option_names(noun, options, names)
    model, at, url = address.rpartition("@")
    return (model, url, options) if at else (address, "", options)


# ---- Embedding models

_BATCH = 256  # texts of one request


class OpenAIEmbedder(Fingerprinted):
    """An embedding model behind an endpoint of OpenAI's protocol; see `Endpoint` for the arguments.

    >>> OpenAIEmbedder("text-embedding-3-small").name
    'openai:text-embedding-3-small'
    """

    max_tokens = 8191  # of OpenAI's models; an endpoint says no number

    def __init__(
        self,
        model: str,
        base_url: str = OPENAI,
        *,
        key: str | None = None,
        timeout: float = 120.0,
        tries: int = 3,
    ) -> None:
        self.model = model
        self.endpoint = Endpoint(model, base_url, key, timeout, tries)
        url = self.endpoint.url
        self.name = f"openai:{model}" if url == OPENAI else f"openai:{model}@{url}"
        self.fingerprint = f"openai:{digest([model, url], 8)}"

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One row a text, in requests of 256 texts. Raises `ModelError`: see `Endpoint.call`."""
        if not texts:
            return NO_VECTORS
        return np.concatenate([self._embed(some) for some in blocks(texts, _BATCH)])

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self.embed_documents(texts)

    def _embed(self, texts: Sequence[str]) -> Vectors:
        # An empty text is refused.
        batch = [encodable(text) or " " for text in texts]
        try:
            answer = self.endpoint.call(
                lambda client: client.embeddings.create(
                    model=self.model, input=batch, encoding_format="float"
                )
            )
            items = sorted(answer.data, key=lambda item: item.index)
            vectors = [item.embedding for item in items]
        except (UnreadableError, AttributeError, TypeError) as error:
            raise ModelError(f"{self.endpoint.where} sent no vectors ({error})") from None
        return check_vectors(vectors, len(texts), model=self.name)


def openai_embedder(rest: str) -> OpenAIEmbedder:
    """An embedding model of an endpoint: openai:MODEL, of api.openai.com, or openai:MODEL@URL."""
    model, url, options = read_address(rest, _OPTIONS, "an embedder")
    usual = os.environ.get("OPENAI_BASE_URL", "")
    if url or not usual:
        return OpenAIEmbedder(model, url or OPENAI, **options)
    # As the openai package does: the address and its key are the environment's, and in no name.
    key = "OPENAI_API_KEY" if os.environ.get("OPENAI_API_KEY") else None
    embedder = OpenAIEmbedder(model, usual, **{"key": key, **options})
    embedder.name = f"openai:{model}"
    return embedder


def as_openai(spec: str) -> str:
    """A name of LiteLLM's, provider/model, as openai:MODEL@URL; another name, or a folder's, as it is.

    >>> as_openai("mistral/mistral-embed"), as_openai("intfloat/e5-small-v2")
    ('openai:mistral-embed@https://api.mistral.ai/v1', 'intfloat/e5-small-v2')
    """
    provider, slash, model = spec.partition("/")
    if not slash or provider not in PROVIDERS or os.path.exists(spec):  # noqa: PTH110  # any text
        return spec
    return f"openai:{model}" if provider == "openai" else f"openai:{model}@{PROVIDERS[provider]}"


_SENDING = re.compile(rf"(?<![\w./\\-])(?:openai:|(?:{'|'.join(PROVIDERS)})/)")


def check_stays_here(spec: str, advice: str) -> None:
    """Raise `DataError`: a file, which may be a stranger's, names an endpoint, to which texts would be sent."""
    if _SENDING.search(spec):
        raise DataError(
            f"the index names an endpoint, {echo(spec)}, to which texts would be sent; if you trust it, name it "
            f"yourself: {advice}"
        )


# ---- Language models

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
        timeout: seconds for one try, however slowly the answer's body comes.
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
            self.temperature = float(self.temperature)
        if self.max_tokens is not None:
            check_number("max_tokens", self.max_tokens, 1)
        check_number("concurrency", self.concurrency, 1)
        self.base_url = endpoint.url
        name = f"openai:{self.model}@{self.base_url}"
        options = []
        for option, value in plain_options(self, changed=True).items():
            shown = "none" if value is None else value
            options.append(f"{option}={shown}")
        if options[2:]:
            name += f"#{'&'.join(options[2:])}"
        identity = digest([self.model, self.base_url, self.temperature, self.max_tokens], 8)
        super().__init__(
            name=name,
            fingerprint=f"openai:{identity}",
            concurrency=self.concurrency,
        )
        self._endpoint = endpoint

    def _complete(self, messages: Messages, schema: Schema | None) -> Reply:
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
            raise BadAnswerError(f"expected a chat completion, got none ({error})") from None
        except StatusError as error:
            is_filtered = error.code == "content_filter"
            if schema is not None and not is_filtered and error.status in SCHEMA_REFUSED:
                raise SchemaRefusedError(str(error)) from None
            if is_filtered or is_busy(error.status, error.code):
                raise NoAnswerError(str(error)) from None
            raise
        try:  # the package's object has the shape of whatever the endpoint sent
            choice = answer.choices[0]
            message, text = choice.message, choice.message.content
        except (AttributeError, LookupError, TypeError):
            seen = type(answer).__name__
            raise BadAnswerError(f"expected a chat completion, got {seen} without one") from None
        text = text if isinstance(text, str) else ""
        reply = reply_of(text, message, choice, answer)
        return replace(reply, text=self._endpoint.redacted(reply.text, least=_SECRET))


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
_REFUSED = (
    "content_filter",
    "refusal",
    "safety",
    "recitation",
    "blocklist",
    "prohibited_content",
    "guardrail_intervened",
)


def reply_of(text: object, *sources: Any) -> Reply:
    """A reply from an answer's text and the framework's mappings and objects about it.

    >>> reply_of("Yes.", {"finish_reason": "stop", "usage": {"prompt_tokens": 9, "completion_tokens": 2}})
    Reply(text='Yes.', finish='stop', input_tokens=9, output_tokens=2)

    Raises `BadAnswerError`: `text` is no text.
    """
    if not isinstance(text, str):
        raise BadAnswerError(f"expected a text, got {type(text).__name__}")
    counts = [*_values(sources, _USAGE), *sources]
    refusals = (value for value in _values(sources, ["refusal"]) if isinstance(value, str))
    refusal = next(refusals, "")
    finish = _finish(sources)
    if refusal:
        finish = "refusal"
    return Reply(
        text=str(text) or refusal,
        finish=finish,
        input_tokens=_first_number(counts, _INPUT),
        output_tokens=_first_number(counts, _OUTPUT),
    )


def _finish(holders: Sequence[Any]) -> Literal["stop", "length", "refusal"]:
    for reason in _values(holders, _FINISH):
        word = str(getattr(reason, "value", reason)).lower()
        if word in _CUT_OFF:
            return "length"
        if word in _REFUSED:
            return "refusal"
    return "stop"


def _first_number(holders: Sequence[Any], names: Sequence[str]) -> int | None:
    numbers = (value for value in _values(holders, names) if type(value) is int and value >= 0)
    return next(numbers, None)


def _values(holders: Sequence[Any], names: Sequence[str]) -> Iterator[Any]:
    """What mappings or objects have under these names, but for None and empty texts."""
    for holder in holders:
        for name in names:
            value = holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
            if value not in (None, ""):
                yield value


# ---- From a string to a model

Function = Callable[[Messages, Schema | None], Completion]

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

    def _complete(self, messages: Messages, schema: Schema | None) -> Completion:
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
    OpenAILLM('openai:gpt-5-mini@https://api.openai.com/v1#temperature=none&timeout=30')
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
            build, rest = _kind(spec)
            _loaded[spec] = build(rest)
        return _loaded[spec]


def check_llm(spec: str | LLM) -> None:
    """Raise `OptionError` where `get_llm` would; no file is opened. A package's kind is looked up, not built."""
    if not isinstance(spec, str):
        get_llm(spec)
        return
    build, rest = _kind(spec)
    if build is _openai:
        _parsed(rest)


def _kind(spec: str) -> tuple[Callable[[str], LLM], str]:
    kind, colon, rest = spec.partition(":")
    build = llms.find(kind) if colon else None
    if build is None:
        raise _no_llm(spec, "".join(f", {name}:..." for name in llms.offered))
    return build, rest


@llms.register("openai")
def _openai(rest: str) -> LLM:
    """A model behind an endpoint of OpenAI's protocol: openai:MODEL@URL."""
    model, cache = _parsed(rest)
    return CachedLLM(model, LLMCache(Path(cache).expanduser())) if cache else model


def _parsed(rest: str) -> tuple[OpenAILLM, str | None]:
    names = [field.name for field in fields(OpenAILLM)[2:]]
    model, url, options = read_address(rest, [*names, "cache"], "a language model")
    if not url:
        raise _no_llm(f"openai:{rest}", "")
    cache = options.pop("cache", None)
    return OpenAILLM(model, url, **options), cache


def _no_llm(spec: str, others: str) -> OptionError:
    # Not repeated after a # or a ?: a misspelt option may be a key.
    shown = echo(re.split("[#?]", spec)[0])
    return OptionError(
        f"a language model is {_FORM}{others}, or an object that is one; got {shown}"
    )
