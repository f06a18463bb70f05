"""A framework's models as chunkcore's: identity and secrets, `BridgedEmbedder` and `BridgedLLM`."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import PurePath
from types import ModuleType
from typing import Any, ClassVar, TypeAlias, TypeVar
from urllib.parse import urlsplit, urlunsplit

import numpy as np
from typing_extensions import ParamSpec

from chunkcore.errors import ChunkcoreError, ModelError, NoAnswerError, OptionError, kind_of
from chunkcore.models.base import NO_VECTORS, Embedder, Fingerprinted, Vectors, check_vectors, embed
from chunkcore.models.endpoint import SCHEMA_REFUSED, is_busy
from chunkcore.models.llm import BadAnswerError, Message, Reply
from chunkcore.models.llm.base import Messages, MeteredLLM, Schema, SchemaRefusedError
from chunkcore.options import check_number
from chunkcore.plain import digest, encodable, plain

# ---- One implementation for synchronous and asynchronous calls

P = ParamSpec("P")
T = TypeVar("T")


def at_once(function: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """A function as an asynchronous one, which never waits."""

    async def call(*arguments: P.args, **options: P.kwargs) -> T:
        return function(*arguments, **options)

    return call


def finished(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that awaits only functions `at_once`. Needs no event loop.

    >>> async def double(ask):
    ...     return 2 * await ask()
    >>> finished(double(at_once(lambda: 21)))
    42
    """
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    coroutine.close()
    raise AssertionError("something was awaited that was not done at once")


# ---- Identity and secrets: caches and ids are keyed by a model's settings, without its keys and passwords

_SECRET = re.compile(
    # A store's keys of texts, ids and vectors are no secrets.
    r"(?<!text_)(?<!document_)(?<!payload_)(?<!^id_)(?<!_id_)(?<!vector_)(?<!sharding)key$|"
    r"secret|passw|credential|(^|_)(token|auth|sas)(_|$)|authori[sz]ation|bearer|cookie|header|connection_string",
    re.IGNORECASE,
)
# Settings that do not change the answers.
_IRRELEVANT = re.compile(
    r"callback|verbose|cache|limiter|timeout|retr(y|ies)|num_workers|batch_size|^chunk_size$|progress|^metadata$|^tags$|"
    r"concurrency|client|^tiktoken_|custom_get_token_ids|disable_streaming|^streaming|^profile$|^_?warm|_store$",
    re.IGNORECASE,
)
_NAMING = (
    "model",
    "model_name",
    "model_id",
    "model_path",
    "repo_id",
    "deployment",
    "azure_deployment",
    "engine",
    "name",
)
_NAMELESS = ("", "unknown", "None")  # what models without a name have
# What keys look like.
_KEY = re.compile(
    r"\b(?:sk|pk|rk|hf|gsk|ghp|pplx|xai|nvapi)[-_][\w*-]{8,}|\bAIza[\w-]{20,}|\bBearer\s+\S{6,}|(?<=://)[^/\s@]+(?=@)|"
    r"(?<=api_key=)[^\s&\"']{6,}|(?<=api-key=)[^\s&\"']{6,}|(?<=password=)[^\s&\"']{6,}"
)
_MOST_OBJECTS = 1000  # looked into for secrets
_SHORTEST_SECRET = 6  # characters; shorter ones are in many messages by chance
_LONGEST_LABEL, _LONGEST_MESSAGE = 100, 300
_DEPTH = 3
_HIDDEN = "[secret]"


Kinds: TypeAlias = tuple[type, ...]


def identify(
    framework: str,
    model: object,
    kinds: Kinds,
    fingerprint: str | None = None,
    what: str = "model",
) -> tuple[str, str]:
    """The model's name, of the framework, the class and, if known, the model; and a digest of its class and settings.

    `kinds` are the framework's model classes: wrapped models of these are looked into. `fingerprint` replaces the
    digest.

    Raises `OptionError`: the object is of none of `kinds`; it names no model and holds one whose settings are unknown,
    so that two different models could get the same fingerprint; or `fingerprint` is empty.
    """
    kind = type(model).__name__
    if kinds and not isinstance(model, kinds):
        raise OptionError(f"expected a {framework} {what}, got {kind}")
    if fingerprint is not None and not fingerprint.strip():
        raise OptionError(f"fingerprint is a text that is not empty, got {fingerprint!r}")
    label = _label(model, kinds)
    if fingerprint is None:
        unknown: list[str] = []
        settings = _settings(model, kinds, _DEPTH, unknown)
        if unknown and not label:
            raise OptionError(
                f"the settings of {kind} do not tell which model it is, but its {unknown[0]} does: say what "
                'its answers depend on, as fingerprint="my-model-v1"; caches and ids are made from it'
            )
        fingerprint = digest(settings)
    return ":".join(filter(None, (framework, kind, label))), f"{framework}:{fingerprint}"


def _state(model: object) -> dict[str, Any]:
    """The object's attributes by name, with a pydantic model's private ones."""
    private = getattr(model, "__pydantic_private__", None)
    return getattr(model, "__dict__", {}) | (private if isinstance(private, dict) else {})


def _settings(model: object, kinds: Kinds, depth: int, unknown: list[str]) -> list[Any]:
    """The class and its settings, with those of wrapped models, as JSON values.

    Without secrets, time-outs and the like, and objects that cannot be expressed so, whose classes go to `unknown`.
    """
    settings = {}
    for key, value in _state(model).items():
        is_hidden = key.startswith("__") or _SECRET.search(key) or _IRRELEVANT.search(key)
        if value is None or is_hidden:
            continue
        if isinstance(value, kinds) and depth:
            setting: Any = _settings(value, kinds, depth - 1, unknown)
        else:
            setting = plain(value, _public)
        if setting is None:
            unknown.append(type(value).__name__)
        else:
            settings[key] = setting
    return [kind_of(model), settings]


def _public(value: object) -> Any:
    """For `plain`: a value without secrets; None for an object that nothing names."""
    if isinstance(value, str):
        return _without_user(value)
    if isinstance(value, Mapping):
        items = {key: _public(item) for key, item in value.items() if not _SECRET.search(str(key))}
        return {key: item for key, item in items.items() if item is not None}
    if isinstance(value, int | float | Enum | PurePath | list | tuple | set | frozenset):
        return value
    fingerprint = getattr(value, "fingerprint", None)
    if isinstance(fingerprint, str):  # one of chunkcore's own
        return fingerprint
    place = getattr(value, "__qualname__", "<")
    is_named = callable(value) and "<" not in place  # no lambda, nothing local
    return f"{value.__module__}.{place}" if is_named else None


def _without_user(text: str) -> str:
    """An address without user, password and query, which may hold keys."""
    if "://" not in text:
        return text
    try:
        parts = urlsplit(text)
        port = f":{parts.port}" if parts.port else ""
        return urlunsplit((parts.scheme, f"{parts.hostname or ''}{port}", parts.path, "", ""))
    except ValueError:
        return ""


def _label(model: object, kinds: Kinds) -> str:
    """The model's name, or that of a model it wraps."""
    state = _state(model)
    for key in _NAMING:
        value = state.get(key)
        if isinstance(value, str) and value not in _NAMELESS:
            return _without_user(value)[:_LONGEST_LABEL]
    wrapped = (_label(value, kinds) for value in state.values() if isinstance(value, kinds))
    return next(filter(None, wrapped), "")


def secrets_within(root: object) -> tuple[str, ...]:
    """Every secret of the objects and of what they hold, longest first: for `without_secrets`."""
    secrets = set()
    # With names, of which some are those of secrets.
    ahead: list[tuple[str, Any]] = [("", root)]
    seen: dict[int, Any] = {}  # holds the objects, so that no id is used twice
    while ahead and len(seen) < _MOST_OBJECTS:
        name, item = ahead.pop(0)
        if isinstance(item, str):
            if "://" in item and "@" in item:
                secrets.add(urlsplit(item).password or "")
            elif _SECRET.search(name):
                secrets.add(item)
        elif id(item) not in seen:
            seen[id(item)] = item
            ahead += _within(name, item)
    kept = [secret for secret in secrets if len(secret) >= _SHORTEST_SECRET]
    return tuple(sorted(kept, key=len, reverse=True))


def _within(name: str, item: Any) -> Iterable[tuple[str, Any]]:
    """What an object holds, with names."""
    reveal = getattr(item, "get_secret_value", None) or getattr(item, "resolve_value", None)
    if callable(reveal):
        with suppress(ValueError):  # of an environment variable that is not set
            return [("secret", reveal())]
    elif isinstance(item, list | tuple):
        return [(name, inner) for inner in item]
    elif isinstance(item, Mapping):
        names = [name] * len(item) if _SECRET.search(name) else map(str, item)
        return zip(names, item.values(), strict=True)
    elif hasattr(item, "__dict__") and not isinstance(item, type | ModuleType):
        return _state(item).items()
    return []


def without_secrets(message: object, secrets: tuple[str, ...]) -> str:
    r"""A message on one short line, without the secrets.

    >>> without_secrets("Wrong key\n sk-12345!", ("sk-12345",))
    'Wrong key [secret]!'
    """
    text = " ".join(str(message).split())
    for secret in secrets:
        text = text.replace(secret, _HIDDEN)
    return _KEY.sub(_HIDDEN, text)[:_LONGEST_MESSAGE]


def told_openly(error: Exception, holder: object) -> str:
    """The class of an error and its message, without the secrets that the holder has."""
    return f"{type(error).__name__}: {without_secrets(error, secrets_within(holder))}"


# ---- Embedders


def embedded(
    embedder: Embedder,
    texts: Sequence[str],
    *,
    queries: bool = False,
) -> list[list[float]]:
    """The vectors of the texts as lists, as the frameworks have them."""
    vectors: list[list[float]] = embed(embedder, texts, queries=queries).tolist()
    return vectors


class BridgedEmbedder(Fingerprinted):
    """A framework's embedding model, called by that framework's own methods.

    Documents go to the model in one call, which it batches as it was configured; questions go one by one. Unpaired
    surrogates, which no service can read, become U+FFFD. Answers are checked.

    Attributes:
        model: the framework's object.
        name: in configurations and tables: of the framework, the class and the model.
        fingerprint: what its vectors depend on; by default its class and settings, without keys and passwords.
        max_tokens: its token limit for a text; None if unknown or unlimited.
        symmetric: whether questions are embedded like documents.
        methods: the model's methods for texts and for one question.
        framework, kinds: see `identify`.
    """

    model: Any
    symmetric = False
    methods: ClassVar[tuple[str, str]]
    framework: ClassVar[str]
    kinds: ClassVar[Kinds] = ()

    def __init__(
        self,
        model: object,
        fingerprint: str | None,
        max_tokens: int | None,
    ) -> None:
        if max_tokens is not None:
            check_number("max_tokens", max_tokens, 1)
        self.name, self.fingerprint = identify(
            self.framework, model, self.kinds, fingerprint, "embedding model"
        )
        self.model = model
        self.max_tokens = max_tokens

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One row a text: float32, shape (len(texts), dimensions). Raises `ModelError`: no answer, or a wrong one."""
        return self._embed(texts, self._documents)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """One row a question: as `embed_documents`."""
        return self._embed(texts, self._queries)

    def _documents(self, texts: list[str]) -> Any:
        return getattr(self.model, self.methods[0])(texts)

    def _queries(self, texts: list[str]) -> Any:
        ask = getattr(self.model, self.methods[1])
        return [ask(text) for text in texts]

    def _embed(self, texts: Sequence[str], ask: Callable[[list[str]], Any]) -> Vectors:
        if not texts:
            return NO_VECTORS
        try:
            answer = ask([encodable(text) for text in texts])
            vectors = np.asarray(answer, dtype=np.float64)
        except ChunkcoreError:
            raise
        except Exception as error:  # noqa: BLE001  # a model may raise anything
            # Without the chain of causes: a service's message may repeat the key.
            message = told_openly(error, self.model)
            raise ModelError(
                f"the model {self.name!r} failed on {len(texts)} texts, or gave no vectors: {message}"
            ) from None
        return check_vectors(vectors, len(texts), model=self.name)


# ---- Language models

# What frameworks raise for an unreadable answer.
_UNREADABLE = (ValueError, TypeError, AttributeError, LookupError)


class BridgedLLM(MeteredLLM):
    """A framework's language model, called by that framework's own methods.

    A JSON schema is passed on if the framework has a way to; a model that refuses it is asked without from then on.
    Token counts are the framework's. The model's own settings (temperature, retries, time-outs) stay.

    Attributes:
        model: the framework's object.
        name: in configurations and tables: of the framework, the class and the model.
        fingerprint: what its answers depend on; by default its class and settings, without keys and passwords.
        concurrency: requests of all threads at once: more than 1 for a service, not for a local model.
        framework, kinds: see `identify`.
    """

    model: Any
    framework: ClassVar[str]
    kinds: ClassVar[Kinds] = ()

    def __init__(self, model: object, fingerprint: str | None, concurrency: int) -> None:
        name, fingerprint = identify(
            self.framework, model, self.kinds, fingerprint, "LLM or chat model"
        )
        super().__init__(name=name, fingerprint=fingerprint, concurrency=concurrency)
        self.model = model

    def _complete(self, messages: Messages, schema: Schema | None) -> Reply:
        readable: list[Message] = [
            {"role": turn["role"], "content": encodable(turn["content"])} for turn in messages
        ]
        try:
            return self._ask(readable, schema)
        except Exception as error:  # noqa: BLE001  # a model may raise anything
            is_refused = isinstance(error, NotImplementedError) or _status(error) in SCHEMA_REFUSED
            if schema is not None and is_refused:
                raise SchemaRefusedError(f"the model {self.name!r} takes no schema") from None
            raise self._failed(error) from None

    @abstractmethod
    def _ask(self, messages: Messages, schema: Schema | None) -> Reply:
        """Ask the model. `NotImplementedError` if it takes no schema."""

    def _failed(self, error: Exception) -> Exception:
        if isinstance(error, ChunkcoreError | BadAnswerError):
            return error
        message = f"the model {self.name!r} failed: {told_openly(error, self.model)}"
        status, code = _status(error), str(getattr(error, "code", ""))
        is_refused = _is_a(error, "timeout", "contentfilter", "refusal") or code == "content_filter"
        if is_refused or (status and is_busy(status, code)):
            return NoAnswerError(message)
        if not status and (isinstance(error, _UNREADABLE) or _is_a(error, "finishreason")):
            return BadAnswerError(f"expected an answer that can be read ({message})")
        return ModelError(message)


def _status(error: Exception) -> int | None:
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "http_status", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, int) and 400 <= value < 600:
                return value
    return None


def _is_a(error: Exception, *words: str) -> bool:
    """Whether the error's class or a base class has such a name: each client has classes of its own."""
    names = [cls.__name__.lower() for cls in type(error).__mro__]
    return any(word in name for name in names for word in words)


def titled(schema: Schema) -> dict[str, Any]:
    """The schema with a title and a description, which frameworks use as a function's name and purpose."""
    return {"title": "answer", "description": "The answer, as it was asked for.", **schema}


def json_text(value: object) -> str:
    """A structured answer as text."""
    return json.dumps(value, ensure_ascii=False, default=str)
