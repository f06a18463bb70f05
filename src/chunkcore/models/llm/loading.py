"""`get_llm`: from a string to a language model; `CallableLLM`: from a function to one."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from chunkcore.errors import OptionError, echo
from chunkcore.models.cache import LLMCache
from chunkcore.models.llm.base import LLM, CachedLLM, Message, MeteredLLM, Reply
from chunkcore.models.llm.endpoint import OpenAILLM
from chunkcore.registry import Registry

Function = Callable[[Sequence[Message], Mapping[str, Any] | None], str | Reply | Awaitable[str | Reply]]

# Each takes the text after "kind:" and returns the model.
llms: Registry[Callable[[str], LLM]] = Registry("kind of language model", "chunkcore.llms")


class CallableLLM(MeteredLLM):
    """A function of messages and a JSON schema (or None) that returns text or an awaitable of it.

    Args:
        function: called from several threads where `concurrency` is over 1. A `TimeoutError` means no answer to this
            question; any other error, raised twice, ends the work.
        name: for configurations and caches.
        fingerprint: what the answers depend on; None: the name. Change it when the function changes.
        concurrency: calls at the same time.

    Raises `OptionError`: no function, an empty name, or concurrency under 1.

    >>> llm = CallableLLM(lambda messages, schema: messages[-1]["content"].upper(), name="shouting")
    >>> llm.complete([{"role": "user", "content": "chunk"}]).text, llm.usage.calls
    ('CHUNK', 1)
    """

    def __init__(self, function: Function, *, name: str, fingerprint: str | None = None, concurrency: int = 1) -> None:
        if not callable(function):
            raise OptionError(f"expected a function of messages and a schema, got {type(function).__name__}")
        if not isinstance(name, str) or not name.strip():
            raise OptionError(f"name is a text that is not empty, got {echo(name)}")
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
            f"a language model is {_FORM}, or an object with name, fingerprint and complete (a function becomes "
            f"one as CallableLLM(function, name=...)); got {type(spec).__name__}"
        )
    with _lock:
        if spec not in _loaded:
            _loaded[spec] = _kind(spec)(spec.partition(":")[2])
        return _loaded[spec]


def check_llm(spec: str | LLM) -> None:
    """Raise `OptionError` where `get_llm` would; no file is opened. A package's kind is looked up, not built.

    Raises `OptionError`: it names no language model.
    """
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
            f"a language model is {_FORM}{others}, or an object that is one; got {echo(_without_options(spec))}"
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
    spec = f"openai:{_without_options(rest)}"
    if not at:
        raise OptionError(f"a language model is {_FORM}, or an object that is one; got {echo(spec)}")
    try:
        pairs = parse_qsl(fragment, keep_blank_values=True, strict_parsing=bool(fragment))
    except ValueError as error:
        raise OptionError(f"expected option=value&option=value after {echo(spec)} and #") from error
    options: dict[str, Any] = {}
    for name, text in pairs:
        if name not in _READERS:
            raise OptionError(f"a language model has no option {echo(name)}: expected some of {', '.join(_READERS)}")
        if name in options:
            raise OptionError(f"the option {name} is given twice after {echo(spec)}; keep one")
        try:
            options[name] = _READERS[name](text)
        except ValueError as error:
            raise OptionError(f"the option {name} of a language model is a number, got {echo(text)}") from error
    cache = options.pop("cache", None)
    return OpenAILLM(model, url, **options), cache


def _without_options(spec: str) -> str:
    """The part of a string that errors may repeat: a misspelt option may be a key."""
    return spec.partition("#")[0].partition("?")[0]


_READERS: dict[str, Callable[[str], Any]] = {
    "key": str,
    "temperature": lambda text: None if text == "none" else float(text),
    "max_tokens": lambda text: None if text == "none" else int(text),
    "timeout": float,
    "tries": int,
    "concurrency": int,
    "cache": lambda text: Path(text).expanduser() if text else None,
}
