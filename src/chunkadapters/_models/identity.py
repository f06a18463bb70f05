"""What tells one of a framework's models from another, and what of it must be told to nobody.

Caches and chunks' ids are keyed by a model's fingerprint. It is made from the settings that the object holds; keys,
tokens and passwords are no part of it, so that it neither gives them away nor changes with them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from pathlib import PurePath
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from chunkcore.errors import OptionError

__all__ = [
    "Identity",
    "digest_of",
    "identify",
    "plain",
    "secrets_of",
    "secrets_within",
    "settings_of",
    "without_secrets",
]

_SECRET = re.compile(
    r"key$|secret|passw|credential|(^|_)(token|auth|sas)(_|$)|authori[sz]ation|bearer|cookie|header|connection_string",
    re.IGNORECASE,
)
# What changes how a model is asked, and not what it answers.
_IRRELEVANT = re.compile(
    r"callback|verbose|cache|limiter|timeout|retr(y|ies)|num_workers|batch_size|^chunk_size$|progress|^metadata$|^tags$|"
    r"concurrency|client|^tiktoken_|custom_get_token_ids|disable_streaming|^streaming|^profile$|^_?warm",
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
_NAMELESS = ("", "unknown", "None")  # what models have for a name that have none
# What keys look like, wherever they came from.
_KEY = re.compile(
    r"\b(?:sk|pk|rk|hf|gsk|ghp|pplx|xai|nvapi)[-_][\w*-]{8,}|\bAIza[\w-]{20,}|\bBearer\s+\S{6,}|(?<=://)[^/\s@]+(?=@)|"
    r"(?<=api_key=)[^\s&\"']{6,}|(?<=api-key=)[^\s&\"']{6,}|(?<=password=)[^\s&\"']{6,}"
)
_MOST_OBJECTS = 1000  # that are looked into for secrets
_SHORTEST_SECRET = 6  # characters; fewer are in many messages by chance
_LONGEST_LABEL = 100
_DEPTH = 3
_HIDDEN = "[secret]"


@dataclass(frozen=True)
class Identity:
    """A model's name and what its answers depend on.

    Attributes:
        name: of the framework, the class and, where it tells one, the model.
        fingerprint: of the class and all settings but secrets.
    """

    name: str
    fingerprint: str


def identify(
    framework: str, model: Any, kinds: tuple[type, ...], name: str | None = None, fingerprint: str | None = None
) -> Identity:
    """The model's identity; what was given goes before what the object says.

    Args:
        framework: its name, as the names begin.
        model: the framework's object.
        kinds: the framework's classes of models: those that this one wraps are looked into.
        name: given by the user.
        fingerprint: given by the user.

    Raises:
        OptionError: the object holds another one that decides what it answers, and names no model, so that two
            different ones could not be told apart; or what was given is empty.
    """
    for option, value in (("name", name), ("fingerprint", fingerprint)):
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise OptionError(f"{option} is a text that is not empty, got {value!r}")
    cls = type(model)
    label = _label(model, kinds)
    told = name or ":".join(filter(None, (framework, cls.__name__, label)))
    if fingerprint is None:
        if not label and (hidden := _opaque(model, kinds)):
            raise OptionError(
                f"the settings of {cls.__name__} do not tell which model it is, but its {hidden} does: say what its "
                'answers depend on, as fingerprint="my-model-v1"; caches and ids are made from it'
            )
        fingerprint = digest_of(_described(model, kinds, _DEPTH))
    return Identity(told, f"{framework}:{fingerprint}")


def digest_of(described: Any) -> str:
    """A short mark of what JSON knows."""
    data = json.dumps(described, sort_keys=True, ensure_ascii=True)
    return blake2b(data.encode("ascii"), digest_size=16).hexdigest()


def _state(model: Any) -> dict[str, Any]:
    """What the object holds, by name: of a pydantic model its fields and private attributes."""
    held = dict(getattr(model, "__dict__", {}))
    private = getattr(model, "__pydantic_private__", None)
    return held | private if isinstance(private, dict) else held


def settings_of(model: Any) -> Iterator[tuple[str, Any]]:
    """What of it can decide the answers: not secrets, and not how it is asked."""
    for key, value in _state(model).items():
        if value is not None and not key.startswith("__") and not _SECRET.search(key) and not _IRRELEVANT.search(key):
            yield key, value


def _described(model: Any, kinds: tuple[type, ...], depth: int) -> Any:
    """The class and its plain settings, and those of the models that it wraps, as JSON knows them."""
    cls = type(model)
    found = {}
    for key, value in settings_of(model):
        if isinstance(value, kinds) and depth:
            found[key] = _described(value, kinds, depth - 1)
        elif (said := plain(value)) is not None:
            found[key] = said
    return [f"{cls.__module__}.{cls.__qualname__}", found]


def plain(value: Any) -> Any:
    """The value as JSON knows it, without what must not be told; None where it is none of that."""
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, str):
        return _without_user(value)
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        kept = {str(key): plain(item) for key, item in value.items() if not _SECRET.search(str(key))}
        return {key: item for key, item in kept.items() if item is not None}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((plain(item) for item in value), key=repr)
    if isinstance(mark := getattr(value, "fingerprint", None), str):  # one of chunkcore's own
        return mark
    if callable(value) and "<" not in (place := getattr(value, "__qualname__", "<")):  # no lambda, nothing local
        return f"{value.__module__}.{place}"
    return None


def _without_user(text: str) -> str:
    """An address without the name and password that it may hold, and without its query, which may hold a key."""
    if "://" not in text:
        return text
    try:
        parts = urlsplit(text)
        port = f":{parts.port}" if parts.port else ""
        return urlunsplit((parts.scheme, f"{parts.hostname or ''}{port}", parts.path, "", ""))
    except ValueError:
        return ""


def _label(model: Any, kinds: tuple[type, ...]) -> str:
    """What the model is called, by itself or by one that it wraps."""
    state = _state(model)
    for key in _NAMING:
        value = state.get(key)
        if isinstance(value, str) and value not in _NAMELESS:
            return _without_user(value)[:_LONGEST_LABEL]
    return next((found for value in state.values() if isinstance(value, kinds) and (found := _label(value, kinds))), "")


def _opaque(model: Any, kinds: tuple[type, ...], depth: int = _DEPTH) -> str:
    """The class of an object among its settings whose own settings are not known; "" where there is none."""
    for _, value in settings_of(model):
        if isinstance(value, kinds) and depth:
            if hidden := _opaque(value, kinds, depth - 1):
                return hidden
        elif plain(value) is None:
            return type(value).__name__
    return ""


def secrets_of(model: Any, depth: int = _DEPTH) -> tuple[str, ...]:
    """Every secret that the object holds, for errors to be cleaned of; the longest first."""
    found: set[str] = set()
    for key, value in _state(model).items():
        _collect(key, value, found, depth)
    return tuple(sorted(found, key=lambda each: (-len(each), each)))


def secrets_within(*roots: Any) -> tuple[str, ...]:
    """Every secret of objects and of what they hold, for errors to be cleaned of; the longest first."""
    found: set[str] = set()
    ahead = list(roots)
    seen: dict[int, Any] = {}  # holds them, so that no other object gets the id of one meanwhile
    while ahead and len(seen) < _MOST_OBJECTS:
        each = ahead.pop(0)
        if id(each) in seen:
            continue
        seen[id(each)] = each
        if isinstance(each, Mapping):
            ahead += each.values()
        elif isinstance(each, list | tuple):
            ahead += each
        elif hasattr(each, "__dict__") and not isinstance(each, type | ModuleType):
            found.update(secrets_of(each))
            ahead += _state(each).values()
    return tuple(sorted(found, key=lambda each: (-len(each), each)))


def _collect(key: str, value: Any, found: set[str], depth: int) -> None:
    if isinstance(value, str):
        held = urlsplit(value).password if "://" in value and "@" in value else value if _SECRET.search(key) else None
    elif callable(reveal := getattr(value, "get_secret_value", None)):  # pydantic's
        held = reveal()
    elif callable(getattr(value, "resolve_value", None)):  # Haystack's, which may stand in an environment variable
        try:
            held = value.resolve_value()
        except ValueError:
            held = None
    elif isinstance(value, Mapping) and depth:
        for inner, item in value.items():
            _collect(str(inner) if not _SECRET.search(key) else key, item, found, depth - 1)
        return
    else:
        return
    if isinstance(held, str) and len(held) >= _SHORTEST_SECRET:
        found.add(held)


def without_secrets(message: object, secrets: tuple[str, ...], longest: int = 300) -> str:
    r"""A message in one short line, without any of the secrets.

    >>> without_secrets("Wrong key\n sk-12345!", ("sk-12345",))
    'Wrong key [secret]!'
    """
    text = " ".join(str(message).split())
    for secret in secrets:
        text = text.replace(secret, _HIDDEN)
    return _KEY.sub(_HIDDEN, text)[:longest]
