"""`Endpoint`: an address of OpenAI's protocol, its key and its client; `OpenAIEmbedder`: the embedding models there."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

import numpy as np

from chunkcore.errors import ModelError, NoAnswerError, OptionError, echo
from chunkcore.lazy import needed
from chunkcore.models.base import Fingerprinted, Vectors, check_vectors
from chunkcore.options import check_number
from chunkcore.plain import digest, encodable

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
    headers = [
        pair for pair in response.headers.multi_items() if pair[0].lower() not in _OF_THE_BODY
    ]
    return type(response)(
        response.status_code,
        headers=headers,
        content=bytes(body),
        request=request,
        extensions=response.extensions,
    )


class Endpoint:
    """An address of OpenAI's protocol with its key, which is sent to this address alone.

    The key is read from the environment when the endpoint is asked. It is in no name, error or pickle.

    Args:
        model: the model's name there.
        url: such as ``http://localhost:8080/v1``.
        key: the environment variable with the key, named like GROQ_API_KEY; "" for none. None: OPENAI_API_KEY for
            api.openai.com, the usual one for a host of `PROVIDERS`, else no key.
        timeout: seconds for one try, however slowly the answer comes.
        tries: how often a request is sent where the endpoint fails or is busy; at least 1.

    Raises `OptionError`: an argument is out of range, or the URL is invalid or holds a password.
    """

    def __init__(self, model: str, url: str, key: str | None, timeout: float, tries: int) -> None:
        self.url = _checked_url(url)
        if not isinstance(model, str) or not model.strip():
            raise OptionError(f"an endpoint's model has a name, got {model!r}")
        if key and not _KEY_NAME.fullmatch(key):
            raise OptionError(
                "key names an environment variable that ends in _API_KEY, and is not the key itself"
            )
        check_number("timeout", timeout, 0.001, LONGEST_WAIT, whole=False)
        check_number("tries", tries, 1)
        host = urlsplit(self.url).hostname
        self.is_openai = host == _HOST
        self.key_name = _KEYS.get(host or "", "") if key is None else key
        self.timeout = timeout
        self.tries = tries
        self.where = f"the model {model!r} at {self.url}"
        self.times = f", {tries} times" if tries != 1 else ""
        self._client: Any = None
        self._client_of = 0
        self._lock = threading.Lock()

    def call(self, request: Callable[[Any], Any]) -> Any:
        """What `request` returns for the client of the openai package.

        Raises `NoAnswerError`: the endpoint takes too long, is busy, or sends too much; `ModelError`: it cannot be
        reached, or refuses; `UnreadableError`: its response is not of the protocol.
        """
        openai = needed("openai", "llm", "ask a model behind an endpoint")
        client = self._connected(openai)
        try:
            return request(client)
        except openai.APITimeoutError:
            answer = f"gave no answer in {self.timeout} s"
            raise NoAnswerError(f"{self.where} {answer}{self.times}") from None
        except openai.APIStatusError as error:
            raise self._refusal(error) from None
        except openai.APIConnectionError as error:
            raise self._broken(error) from None
        except (openai.OpenAIError, ValueError) as error:  # a body that is no JSON, or no UTF-8
            raise UnreadableError(self._clean(error)) from None

    def redacted(self, text: str, *, least: int = 1) -> str:
        """An endpoint's text without the key, if the key has at least so many characters."""
        key = os.environ.get(self.key_name, "") if self.key_name else ""
        return text.replace(key, "[key]") if len(key) >= least else text

    def _connected(self, openai: Any) -> Any:
        with self._lock:
            # A forked process must not use its parent's connections.
            if self._client is not None and self._client_of == os.getpid():
                return self._client
            key = os.environ.get(self.key_name, "")
            if self.key_name and not key:
                raise ModelError(
                    f"the environment variable {self.key_name} is to hold the key of {self.where}"
                )
            self._client = openai.OpenAI(
                api_key=key or "none",
                base_url=self.url,
                timeout=self.timeout,
                max_retries=self.tries - 1,
                http_client=bounded_client(openai, self.timeout),
            )
            if not self.is_openai:
                # The package reads them from the environment and would send them to any endpoint.
                self._client.organization = self._client.project = None
            self._client_of = os.getpid()
            return self._client

    def _broken(self, error: Exception) -> Exception:
        if isinstance(getattr(error.__cause__, "__cause__", None), TooLargeError):
            answer = f"answered with more than {LARGEST:,} bytes"
            return NoAnswerError(f"{self.where} {answer}{self.times}")
        reason = self._clean(error.__cause__ or error)
        return ModelError(
            f"{self.where} cannot be reached ({reason}): start it, or correct the address"
        )

    def _refusal(self, error: Any) -> Exception:
        status = int(error.status_code)
        if 300 <= status < 400:
            path = urlsplit(str(error.request.url)).path.removeprefix(urlsplit(self.url).path)
            target = urljoin(f"{self.url}{path}", error.response.headers.get("location", ""))
            return ModelError(
                f"{self.where} redirects to another address (HTTP {status}), to which nothing was sent. If you trust "
                f"it, set {target.removesuffix(path)} as the address"
            )
        said = f"answered with HTTP {status}{self.times}: {self._clean(error.message)}"
        message = f"{self.where} {said}"
        code = str(getattr(error, "code", "") or "")
        if status in (401, 403) and code != "content_filter":
            key = "no key; name one with #key=NAME_API_KEY"
            if self.key_name:
                key = f"the key in {self.key_name}"
            message = f"{message} (it was sent {key})"
        return StatusError(message, status, code)

    def _clean(self, message: object) -> str:
        return self.redacted(" ".join(str(message).split()))[:_SHOWN]


class UnreadableError(Exception):
    """A response is not of the protocol."""


class StatusError(ModelError):
    """A response with an HTTP status of an error, and the endpoint's own code for it."""

    def __init__(self, message: str, status: int, code: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code

    @property
    def is_busy(self) -> bool:
        return is_busy(self.status, self.code)


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


def split_address(rest: str) -> tuple[str, str, str]:
    """The model, the URL and the options of ``MODEL@URL#options``; "" for what is not there."""
    address, _, options = rest.partition("#")
    model, at, url = address.rpartition("@")
    return (model, url, options) if at else (url, "", options)


def read_address_options(
    text: str, readers: Mapping[str, Callable[[str], Any]], noun: str
) -> dict[str, Any]:
    """The options in ``option=value&option=value``, which are never sent. Raises `OptionError`: a wrong one."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text))
    except ValueError as error:
        raise OptionError(f"expected option=value&option=value after the # of {noun}") from error
    options = {}
    for name, value in pairs:
        if name not in readers:
            known = ", ".join(readers)
            raise OptionError(f"{noun} has no option {echo(name)}: expected some of {known}")
        if name in options:
            raise OptionError(f"the option {name} of {noun} is given twice; keep one")
        try:
            options[name] = readers[name](value)
        except ValueError as error:
            raise OptionError(
                f"the option {name} of {noun} is a number, got {echo(value)}"
            ) from error
    return options


# ---- Embedding models

_BATCH = 256  # texts of one request
_READERS: dict[str, Callable[[str], Any]] = {"key": str, "timeout": float, "tries": int}


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
        self._options: dict[str, Any] = {"key": key, "timeout": timeout, "tries": tries}
        url = self.endpoint.url
        self.name = f"openai:{model}" if url == OPENAI else f"openai:{model}@{url}"
        self.fingerprint = f"openai:{digest([model, url], 8)}"

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **self._options), (self.model, self.endpoint.url)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One row a text, in requests of 256 texts. Raises `ModelError`: see `Endpoint.call`."""
        rows = [
            self._embed(texts[start : start + _BATCH]) for start in range(0, len(texts), _BATCH)
        ]
        return np.concatenate(rows) if rows else np.empty((0, 1), dtype=np.float32)

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
    model, url, text = split_address(rest)
    options = read_address_options(text, _READERS, "an embedder")
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
