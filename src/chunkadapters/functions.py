"""Functions as options: their names for caches, and a counter for a function that measures a text."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any
from uuid import uuid4

import numpy as np

from chunkadapters.places import digest
from chunkcore.errors import OptionError
from chunkcore.spans import Numbers
from chunkcore.tokens import CharacterCounter, TiktokenCounter, TokenCounter

# Attributes that change no text: keys, callbacks, caches.
_IRRELEVANT = re.compile(r"api_?key|secret|passw|credential|bearer|callback|client|cache|^_?warm", re.IGNORECASE)
_FRAMEWORKS = ("haystack", "langchain_text_splitters", "langchain_experimental", "llama_index", "nltk")
_DEPTH = 4


def described(value: Any, depth: int = _DEPTH) -> Any:
    """A value as plain values that differ if its settings differ; without keys and passwords.

    Objects are their class and attributes, functions their module and name. A lambda or a local function has nothing
    that names it, so it gets an id of its own: what is cached for it is not found again.

    >>> described(len), described(re.compile("a"))
    ('builtins.len', ['re.Pattern', 'a', 32])
    """
    cls = type(value)
    place = f"{cls.__module__}.{cls.__qualname__}"
    if value is None or isinstance(value, str | bytes | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): described(item, depth) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [described(item, depth) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((described(item, depth) for item in value), key=repr)
    if isinstance(value, re.Pattern):
        return [place, value.pattern, value.flags]
    if isinstance(value, partial):
        return [place, *(described(item, depth) for item in (value.func, value.args, value.keywords))]
    if place.startswith("tiktoken."):
        return [place, value.name]
    if inspect.isroutine(value) or isinstance(value, type):
        return _described_function(value, depth)
    if isinstance(fingerprint := getattr(value, "fingerprint", None), str):
        return [place, fingerprint]
    if depth and hasattr(value, "__dict__"):
        # Names with two underscores are a framework's own state, such as a Haystack component's connections.
        attributes = {key: item for key, item in vars(value).items() if not key.startswith("__")}
        return [place, {k: described(v, depth - 1) for k, v in sorted(attributes.items()) if not _IRRELEVANT.search(k)}]
    return [place, uuid4().hex]


def _described_function(function: Any, depth: int) -> Any:
    place = f"{getattr(function, '__module__', 'builtins')}.{function.__qualname__}"
    owner = getattr(function, "__self__", None)
    if owner is not None and not inspect.ismodule(owner):
        return [place, described(owner, depth - 1) if depth else uuid4().hex]
    if "<" not in place:
        return place
    if depth and place.startswith(_FRAMEWORKS):
        return [place, described(inspect.getclosurevars(function).nonlocals, depth - 1)]
    return [place, uuid4().hex]


class NamedFunction:
    """A function as an option, with a name for caches; the function cannot be rebuilt from the name.

    >>> NamedFunction(len) == NamedFunction(len), NamedFunction(len) == NamedFunction(str.split)
    (True, False)
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        qualname = getattr(function, "__qualname__", type(function).__qualname__)
        self.name = self.fingerprint = f"function:{qualname}-{digest(repr(described(function)))[:8]}"

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedFunction) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class FunctionCounter(TokenCounter):
    """Counts by a function of a text. Boundaries are unknown, and spread evenly.

    >>> FunctionCounter(lambda text: text.count(" ") + 1).count("one two")
    2
    """

    def __init__(self, function: Callable[[str], int]) -> None:
        self.function = function
        self.name = NamedFunction(function).name

    def count(self, text: str) -> int:
        count = self.function(text)
        if not isinstance(count, Real) or not 0 <= count < math.inf:
            raise OptionError(f"{self.name} counts tokens: it returns a number of 0 or more, got {count!r:.40}")
        return int(count)

    def boundaries(self, text: str) -> Numbers:
        spread: Numbers = np.linspace(0, len(text), self.count(text), endpoint=False).astype(np.int64)
        return spread


def counter_of(length: Callable[[str], int]) -> TokenCounter:
    """The counter of a length function; a fast one for known functions.

    >>> counter_of(len)
    CharacterCounter('characters')
    """
    if length is len:
        return CharacterCounter()
    owner: Any = getattr(length, "__self__", None)
    if isinstance(owner, TokenCounter) and getattr(length, "__func__", None) is type(owner).count:
        return owner
    if getattr(length, "__qualname__", "").endswith("._tiktoken_encoder"):  # of LangChain's from_tiktoken_encoder
        variables = inspect.getclosurevars(length).nonlocals
        if not variables.get("allowed_special"):
            return TiktokenCounter(variables["enc"].name)
    return FunctionCounter(length)


def tokenizer_of(tokenizer: Callable[[str], Sequence[Any]]) -> TokenCounter:
    """The counter of a function from text to tokens; a fast one for tiktoken's."""
    call = getattr(tokenizer, "func", tokenizer)
    owner: Any = getattr(call, "__self__", None)
    if type(owner).__module__.startswith("tiktoken") and getattr(call, "__name__", "") in ("encode", "encode_ordinary"):
        return TiktokenCounter(owner.name)
    return FunctionCounter(partial(_count_tokens, tokenizer))


def _count_tokens(tokenizer: Callable[[str], Sequence[Any]], text: str) -> int:
    return len(tokenizer(text))
