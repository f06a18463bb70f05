"""`get_llm`: from a string to a language model, one object for equal strings in a process."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from chunkcore.errors import OptionError
from chunkcore.models.llm.base import LLM, Message, MeteredLLM, Reply
from chunkcore.models.llm.cache import CachedLLM, LLMCache
from chunkcore.models.llm.endpoint import OpenAILLM

__all__ = ["CallableLLM", "check_llm", "get_llm"]

Function = Callable[[Sequence[Message], Mapping[str, Any] | None], str | Reply | Awaitable[str | Reply]]


class CallableLLM(MeteredLLM):
    """A function of messages and a JSON schema (or None) that answers with text, at once or to be awaited.

    Args:
        function: called from several threads where `concurrency` is over 1. A `TimeoutError` from it is a
            question without an answer; any other error, raised twice, ends the work.
        name: for configurations and caches.
        fingerprint: what the answers depend on; None: the name. Give it another when the function changes.
        concurrency: calls at the same time.

    Raises:
        OptionError: no function, an empty name, or concurrency under 1.

    >>> llm = CallableLLM(lambda messages, schema: messages[-1]["content"].upper(), name="shouting")
    >>> llm.complete([{"role": "user", "content": "chunk"}]).text, llm.usage.calls
    ('CHUNK', 1)
    """

    def __init__(self, function: Function, *, name: str, fingerprint: str | None = None, concurrency: int = 1) -> None:
        if not callable(function):
            raise OptionError(f"expected a function of messages and a schema, got {type(function).__name__}")
        if not isinstance(name, str) or not name.strip():
            raise OptionError(f"name is a text that is not empty, got {name!r}")
        super().__init__(name=name, fingerprint=f"callable:{fingerprint or name}", concurrency=concurrency)
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
    """The language model that a string names; the same object each time. An `LLM` is handed back as it is.

    ``openai:MODEL@URL`` is the model behind an endpoint of OpenAI's protocol. After a ``#``, which is never
    sent, options may follow as ``option=value&option=value``: those of `OpenAILLM` (``key``, ``temperature``,
    ``max_tokens``, ``timeout``, ``tries``, ``concurrency``; ``none`` for None) and ``cache``, the file that
    keeps answers.

    There is no default: the network is used only for an endpoint that was named, and only when it is asked.

    Raises:
        OptionError: the string is of another form, or an option is unknown or out of range.

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
            f"a language model is {_FORM}, or an object with name, fingerprint and complete (a function becomes "
            f"one as CallableLLM(function, name=...)); got {type(spec).__name__}"
        )
    with _lock:
        if spec not in _loaded:
            model, cache = _parsed(spec)
            _loaded[spec] = CachedLLM(model, LLMCache(cache)) if cache else model
        return _loaded[spec]


def check_llm(spec: str | LLM) -> None:
    """Raise `OptionError` where `get_llm` would; no file is opened.

    Raises:
        OptionError: it names no language model.
    """
    if isinstance(spec, str):
        _parsed(spec)
    else:
        get_llm(spec)


def _parsed(spec: str) -> tuple[OpenAILLM, Path | None]:
    """The model, and the file that keeps its answers."""
    kind, _, rest = spec.partition(":")
    address, _, fragment = rest.partition("#")
    model, at, url = address.rpartition("@")
    if kind != "openai" or not at:
        raise OptionError(f"a language model is {_FORM}, or an object that is one; got {_without_options(spec)!r}")
    options: dict[str, Any] = {}
    for name, text in _settings(fragment, spec):
        if name not in _READERS:
            raise OptionError(f"a language model has no option {name!r}: expected some of {', '.join(_READERS)}")
        if name in options:
            raise OptionError(f"the option {name} is given twice after {_without_options(spec)!r}; keep one")
        options[name] = _value(name, text)
    cache = options.pop("cache", None)
    return OpenAILLM(model, url, **options), cache


def _settings(fragment: str, spec: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(fragment, keep_blank_values=True, strict_parsing=bool(fragment))
    except ValueError as error:
        raise OptionError(f"expected option=value&option=value after {_without_options(spec)!r} and #") from error


def _without_options(spec: str) -> str:
    """What errors repeat of a model: where an option is misspelt, a key may stand."""
    return spec.partition("#")[0].partition("?")[0]


def _number(text: str) -> float | None:
    return None if text == "none" else float(text)


def _whole(text: str) -> int | None:
    return None if text == "none" else int(text)


_READERS: dict[str, Callable[[str], Any]] = {
    "key": str,
    "temperature": _number,
    "max_tokens": _whole,
    "timeout": float,
    "tries": int,
    "concurrency": int,
    "cache": lambda text: Path(text).expanduser() if text else None,
}


def _value(name: str, text: str) -> Any:
    try:
        return _READERS[name](text)
    except ValueError as error:
        raise OptionError(f"the option {name} of a language model is a number, got {text!r}") from error
