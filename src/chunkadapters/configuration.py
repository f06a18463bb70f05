"""From a framework user's arguments (a chunker, its name and options, a spec string, a function) to a `Chunker`."""

from __future__ import annotations

import inspect
import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from numbers import Real
from typing import Any, TypedDict
from uuid import uuid4

import numpy as np

from chunkcore.chunkers import Chunker, chunkers, get_chunker
from chunkcore.chunkers.base import sized_options
from chunkcore.errors import OptionError, echo, kind_of, warn_user
from chunkcore.models.base import Embedder, Fingerprinted, counts_tokens
from chunkcore.models.loading import EmbedderCounter, get_embedder
from chunkcore.options import split_spec
from chunkcore.plain import digest, plain
from chunkcore.spans import Numbers
from chunkcore.text import Chunk, Document
from chunkcore.tokens import CharacterCounter, TiktokenCounter, TokenCounter

# ---- Functions as options: their names for caches, and counters

# Attributes that change no text: keys, callbacks, caches.
_IRRELEVANT = re.compile(
    r"api_?key|secret|passw|credential|bearer|callback|client|cache|^_?warm", re.IGNORECASE
)
_FRAMEWORKS = (
    "haystack",
    "langchain_text_splitters",
    "langchain_experimental",
    "llama_index",
    "nltk",
)
_DEPTH = 4
_PLAIN_KINDS = (str, int, Mapping, list, tuple, set, frozenset, type(None))


def described(value: object, depth: int = _DEPTH) -> Any:
    """A value as plain values that differ if its settings differ; without keys and passwords.

    Objects are their class and attributes, functions their module and name. A lambda or a local function has nothing
    that names it, so it gets an id of its own: what is cached for it is not found again.

    >>> described(len), described(re.compile("a"))
    ('builtins.len', ['re.Pattern', 'a', 32])
    """
    return plain(value, partial(_described_object, depth))


def _described_object(depth: int, value: object) -> Any:
    """For `plain`: an object as its class and what it holds; other values as they are."""
    if isinstance(value, float | bytes):
        return repr(value)
    if isinstance(value, _PLAIN_KINDS):
        return value
    if inspect.isroutine(value) or isinstance(value, type):
        return _described_function(value, depth)
    place = kind_of(value)
    if isinstance(value, re.Pattern):
        return [place, value.pattern, value.flags]
    fingerprint = getattr(value, "fingerprint", None)
    held: object = uuid4().hex
    if isinstance(value, partial):
        held = described((value.func, value.args, value.keywords), depth)
    elif place.startswith("tiktoken."):
        held = getattr(value, "name", "")
    elif isinstance(fingerprint, str):
        held = fingerprint
    elif depth and hasattr(value, "__dict__"):
        # Names with two underscores are a framework's own state, such as a Haystack component's connections.
        settings = {
            name: item
            for name, item in vars(value).items()
            if not name.startswith("__") and not _IRRELEVANT.search(name)
        }
        held = described(settings, depth - 1)
    return [place, held]


def _described_function(function: Callable[..., object], depth: int) -> Any:
    place = f"{getattr(function, '__module__', 'builtins')}.{function.__qualname__}"
    owner = getattr(function, "__self__", None)
    if owner is not None and not inspect.ismodule(owner):
        return [place, described(owner, depth - 1) if depth else uuid4().hex]
    if "<" not in place:
        return place
    if depth and place.startswith(_FRAMEWORKS):
        return [place, described(inspect.getclosurevars(function).nonlocals, depth - 1)]
    return [place, uuid4().hex]


class NamedFunction(Fingerprinted):
    """A function as an option, with a name for caches; the function cannot be rebuilt from the name.

    >>> NamedFunction(len) == NamedFunction(len), NamedFunction(len) == NamedFunction(str.split)
    (True, False)
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        qualname = getattr(function, "__qualname__", type(function).__qualname__)
        self.name = self.fingerprint = f"function:{qualname}-{digest(described(function), 4)}"

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


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
            raise OptionError(
                f"{self.name} counts tokens: it returns a number of 0 or more, got {echo(count)}"
            )
        return int(count)

    def boundaries(self, text: str) -> Numbers:
        count = self.count(text)
        return np.linspace(0, len(text), count, endpoint=False, dtype=np.int64)


def counter_of(length: Callable[[str], int]) -> TokenCounter:
    """The counter of a length function; a fast one for known functions.

    >>> counter_of(len)
    CharacterCounter('characters')
    """
    if length is len:
        return CharacterCounter()
    owner: Any = getattr(length, "__self__", None)
    if isinstance(owner, TokenCounter) and length == owner.count:
        return owner
    # Of LangChain's from_tiktoken_encoder.
    if getattr(length, "__qualname__", "").endswith("._tiktoken_encoder"):
        variables = inspect.getclosurevars(length).nonlocals
        if not variables.get("allowed_special"):
            return TiktokenCounter(variables["enc"].name)
    return FunctionCounter(length)


def tokenizer_of(tokenizer: Callable[[str], Sequence[Any]]) -> TokenCounter:
    """The counter of a function from text to tokens; a fast one for tiktoken's."""
    call = getattr(tokenizer, "func", tokenizer)
    owner: Any = getattr(call, "__self__", None)
    is_encode = getattr(call, "__name__", "") in ("encode", "encode_ordinary")
    if is_encode and type(owner).__module__.startswith("tiktoken"):
        return TiktokenCounter(owner.name)
    return FunctionCounter(partial(_count_tokens, tokenizer))


def _count_tokens(tokenizer: Callable[[str], Sequence[Any]], text: str) -> int:
    return len(tokenizer(text))


# ---- The chunker

DEFAULT_CHUNKER = "recursive"

# The frameworks' names of options, and the chunkers' names.
_ALIASES = {
    "chunk_size": "size",
    "chunk_overlap": "overlap",
    "keep_separator": "keep",
    "is_separator_regex": "regex",
    "strip_whitespace": "strip",
    "length_function": "counter",
}

# The beginnings of bridged models' names.
_BRIDGED = ("langchain:", "llamaindex:", "haystack:")


class ChunkerOptions(TypedDict, total=False):
    """Options that many chunkers share, and the frameworks' names for them; others go into ``options={...}``."""

    size: int
    overlap: int
    minimum: int
    maximum: int | None
    counter: str | TokenCounter
    separators: Sequence[str]
    embedder: object
    llm: object
    chunk_size: int
    chunk_overlap: int
    keep_separator: bool | str
    is_separator_regex: bool
    strip_whitespace: bool
    length_function: Callable[[str], int]


def merged(options: Mapping[str, object] | None, more: Mapping[str, object]) -> dict[str, object]:
    """The options of two places, such as ``options={...}`` and keywords. Raises `OptionError`: one is in both."""
    options = options or {}
    twice = sorted(options.keys() & more.keys())
    if twice:
        raise OptionError(
            f"{', '.join(twice)}: given twice, in options and as a keyword: give it once"
        )
    return {**options, **more}


def build(
    chunker: Chunker | str = DEFAULT_CHUNKER,
    options: Mapping[str, Any] | None = None,
    fit_to: Embedder | None = None,
    framework: str = "",
) -> Chunker:
    """The chunker.

    Args:
        chunker: a chunker, its name, or a spec string such as ``"recursive:size=200,overlap=20"``.
        options: the chunker's other options, or the frameworks' ``chunk_size`` and ``chunk_overlap``.
        fit_to: the model that will embed the chunks. It decides a size that is left out (see `sized_options`), and the
            counter "embedder" counts its tokens. A built chunker stays as it is.
        framework: whose models are options, such as "langchain".

    Raises `OptionError`: two of these contradict each other, an unknown chunker or option, or a value out of range.

    >>> build("recursive", {"chunk_size": 50, "counter": "words"}).size
    50
    """
    if isinstance(chunker, Chunker):
        return get_chunker(chunker, **(options or {}))
    name, stated = split_spec(chunker)
    options = _translated(name, merged(options, stated))
    for option, value in options.items():
        if isinstance(value, str) and value.startswith(_BRIDGED):
            raise OptionError(
                f"{option}: {value!r} is what a configuration calls a model that was given as an object: give the "
                f"object again, as {option}=..."
            )
        options[option] = _as_model(framework, value)
    if fit_to is not None:
        options = sized_options(name, options, fit_to)
        if options.get("counter") == "embedder":
            options["counter"] = EmbedderCounter(fit_to)
    return get_chunker(name, **options)


# Values of options that are no framework's models.
_PLAIN = (str, int, float, tuple, list, TokenCounter, type(None))


def _as_model(framework: str, value: object) -> Any:
    """An option's value: the framework's models as chunkcore's, others unchanged."""
    # Importing the framework's models takes longer than all else.
    if not framework or isinstance(value, _PLAIN):
        return value
    return import_module(f"chunkadapters.{framework}.models").as_model(value)


def embedder_of(model: object, framework: str) -> Embedder | None:
    """The embedder of a name, a framework's model or an embedder; None for None."""
    return None if model is None else get_embedder(_as_model(framework, model))


def options_of(chunker: Chunker) -> dict[str, Any]:
    """The options as plain values. Raises `OptionError`: a configuration could not name the chunker."""
    if chunkers.find(chunker.name) is not type(chunker):
        raise OptionError(
            f"{type(chunker).__name__} is not registered, so a configuration could not name it: "
            'decorate the class with @chunkers.register("its_name")'
        )
    options = chunker.to_dict()
    del options["name"]
    return options


def _translated(name: str, options: dict[str, Any]) -> dict[str, Any]:
    framework = name.partition("_")[0]
    if framework in ("langchain", "llamaindex"):  # a configuration may name a chunker of `exact`
        with suppress(ImportError):
            import_module(f"chunkadapters.{framework}.exact")
    cls = chunkers.find(name)
    accepted: Collection[str] = () if cls is None else cls.option_names()
    for alias, option in _ALIASES.items():
        if alias not in options or alias in accepted or option not in accepted:
            continue
        if option in options:
            raise OptionError(
                f"{alias} and {option} are the same option of {name}: give one of them"
            )
        value = options.pop(alias)
        if alias == "keep_separator" and isinstance(value, bool):
            value = "start" if value else "drop"
        elif alias == "length_function":
            value = counter_of(value)
            if isinstance(value, FunctionCounter):
                raise OptionError(
                    "length_function is len or a counter's count here, because places come from the counter: give "
                    "counter=, such as 'cl100k_base' or 'words', or from_huggingface_tokenizer; exact(...) keeps a "
                    "splitter with any function"
                )
        options[option] = value
    return options


class TruncationWarning(UserWarning):
    """Chunks are over the token limit of the model that will embed them: it would cut off their ends."""


def chunks_of(
    chunker: Chunker, documents: Sequence[Document], fit_to: Embedder | None
) -> Iterator[Sequence[Chunk]]:
    """The chunks of each document; at the end, a `TruncationWarning` if `fit_to` would cut any of them off."""
    workers = 1
    if chunker.tokens_only and documents:
        workers = min(4, os.cpu_count() or 1, len(documents))
    return warn_on_truncation(chunker.chunks_per_document(documents, workers=workers), fit_to)


def chunkable(document: Document, *, is_chunk: bool) -> Document:
    """The document. Of HTML, what a reader sees will be cut; of a chunk already, its text with the tags."""
    if not is_chunk:
        return document
    return replace(document, metadata={**document.metadata, "html": "source"})


def warn_on_truncation(
    chunked: Iterable[Sequence[Chunk]], embedder: Embedder | None
) -> Iterator[Sequence[Chunk]]:
    """The chunks as they come; at the end a `TruncationWarning` if the embedder would cut any of them off.

    It states the number of such chunks and of lost tokens, without metadata that a framework puts beside the text. No
    warning for an embedder without a limit, or without a count of its tokens.
    """
    most = None if embedder is None else embedder.max_tokens
    if most is None or not counts_tokens(embedder):
        yield from chunked
        return
    total = cut = lost = 0
    for chunks in chunked:
        counts = embedder.count_tokens([chunk.text for chunk in chunks])
        over = counts[counts > most] - most
        total += len(chunks)
        cut += len(over)
        lost += int(over.sum())
        yield chunks
    if cut:
        warn_user(
            f"{cut:,} of {total:,} chunks are longer than the {most} tokens that {embedder.name} reads: {lost:,} of "
            "its tokens would be cut off and never be searched. Choose a smaller size, or leave size and counter out, "
            "so that fit_to chooses them",
            TruncationWarning,
        )
