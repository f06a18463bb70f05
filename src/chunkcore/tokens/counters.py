"""Token counters by name: characters, words, tiktoken, Hugging Face tokenizers."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import MissingExtraError, OptionError
from chunkcore.escaping import encodable
from chunkcore.registry import Registry, suggestion
from chunkcore.spans import Numbers
from chunkcore.tokens.tokenized import (
    BytePairText,
    CharacterText,
    TokenCounter,
    TokenizedText,
    WordText,
    has_context_free_boundaries,
)

__all__ = [
    "CharacterCounter",
    "HuggingFaceCounter",
    "TiktokenCounter",
    "WordCounter",
    "counters",
    "get_counter",
    "load_encoding",
    "load_tokenizer",
    "short_count",
    "token_byte_lengths",
]

# BPE files in llama-index-core, named as in tiktoken's cache (SHA-1 of the URL).
_SHIPPED_FILES = {
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
    "o200k_harmony": "fb374d419588a4632f3f557e76b4b70aebbca790",
}
_environment_lock = threading.Lock()


def _shipped_cache(name: str) -> Path | None:
    """The folder of llama-index-core with this encoding's file, found without importing the package."""
    file = _SHIPPED_FILES.get(name)
    package = find_spec("llama_index") if file else None
    for root in (package.submodule_search_locations or []) if package else []:
        folder = Path(root) / "core" / "_static" / "tiktoken_cache"
        if file and (folder / file).is_file():
            return folder
    return None


@lru_cache(maxsize=8)
def load_encoding(name: str) -> Any:
    """The tiktoken encoding of this name. Raises `OptionError` if its files are missing."""
    import tiktoken

    folder = None if "TIKTOKEN_CACHE_DIR" in os.environ else _shipped_cache(name)
    try:
        if folder is None:
            return tiktoken.get_encoding(name)
        # tiktoken reads the folder from the environment only.
        with _environment_lock:
            os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
            try:
                return tiktoken.get_encoding(name)
            finally:
                del os.environ["TIKTOKEN_CACHE_DIR"]
    except (OSError, ValueError) as error:
        raise OptionError(
            f"the files of the encoding {name!r} could not be loaded ({type(error).__name__}): expected them in "
            "an installed llama-index-core, in tiktoken's cache, or online; install llama-index-core, or set "
            "TIKTOKEN_CACHE_DIR to a folder that holds them"
        ) from error


@lru_cache(maxsize=8)
def token_byte_lengths(name: str) -> NDArray[np.int32]:
    """The bytes of each token, indexed by token id."""
    encoding = load_encoding(name)
    lengths = np.zeros(encoding.n_vocab, dtype=np.int32)
    for token in range(encoding.n_vocab):
        try:
            lengths[token] = len(encoding.decode_single_token_bytes(token))
        except KeyError:  # unused ids
            continue
    return lengths


@lru_cache(maxsize=8)
def load_tokenizer(source: str) -> Any:
    """The `tokenizers.Tokenizer` of a folder, a file or a hub name; it reads special tokens as text.

    Raises:
        OptionError: there is no such tokenizer.
        MissingExtraError: tokenizers is not installed.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtraError.of("tokenizers", "models", "count a model's tokens") from error
    path = Path(source)
    file = path / "tokenizer.json" if path.is_dir() else path
    try:
        tokenizer = Tokenizer.from_file(str(file)) if file.is_file() else Tokenizer.from_pretrained(source)
    except Exception as error:
        raise OptionError(
            f"no tokenizer at {source!r} ({error}): expected a folder with tokenizer.json, such a file, or a hub name"
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    # Text that looks like a special token is text. A byte-level post-processor would trim spaces off offsets.
    tokenizer.encode_special_tokens = True
    tokenizer.post_processor = None
    return tokenizer


_GAP = re.compile(r"\s+")
_GIANT = 999_999  # white-space characters in a row; some patterns fail on more
_SHORT = 32  # characters; longer pieces rarely repeat, so they are not cached


counters: Registry[type[TokenCounter]] = Registry(
    "token counter", "chunkcore.counters", base=TokenCounter, modules=("chunkcore.models.loading",)
)


@counters.register("characters")
class CharacterCounter(TokenCounter):
    """Every code point is a token."""

    name = "characters"

    def boundaries(self, text: str) -> Numbers:
        return np.arange(len(text), dtype=np.int64)

    def count(self, text: str) -> int:
        return len(text)

    def tokenize(self, text: str) -> TokenizedText:
        return CharacterText(text, self)


@counters.register("words")
class WordCounter(TokenCounter):
    """Every run of characters that are not white space is a token.

    >>> WordCounter().boundaries("one  two").tolist()
    [0, 5]
    """

    name = "words"

    def boundaries(self, text: str) -> Numbers:
        return WordText(text, self).runs.starts

    def count(self, text: str) -> int:
        return len(text.split())

    def tokenize(self, text: str) -> TokenizedText:
        return WordText(text, self)


class TiktokenCounter(TokenCounter):
    """OpenAI's byte-pair encodings. Special tokens are text; an unpaired surrogate counts as U+FFFD.

    >>> counter = TiktokenCounter("cl100k_base")
    >>> counter.count("<|endoftext|>"), counter.boundaries("a 👩‍👩‍👧").tolist()
    (7, [0, 1, 2, 3, 3, 4, 4, 4, 5, 5, 6, 6, 6])
    """

    def __init__(self, name: str = "cl100k_base") -> None:
        self.name = name

    @property
    def encoding(self) -> Any:
        """The tiktoken encoding, loaded on first use and shared by the process."""
        return load_encoding(self.name)

    def count(self, text: str) -> int:
        if len(text) <= _SHORT:
            return short_count(self.name, text)
        return len(self._encode(text))

    def count_many(self, texts: Sequence[str]) -> Numbers:
        name = self.name
        counts = [short_count(name, text) if len(text) <= _SHORT else self.count(text) for text in texts]
        return np.array(counts, dtype=np.int64)

    def boundaries(self, text: str) -> Numbers:
        lengths = token_byte_lengths(self.name)[self._encode(text)]
        starts: Numbers = np.cumsum(lengths, dtype=np.int64)
        starts -= lengths
        if not text.isascii():
            # A byte's character: its position minus the continuation bytes (the lowest signed numbers) up to it.
            data = np.frombuffer(encodable(text).encode("utf-8"), dtype=np.int8)
            continues = (data < -64).nonzero()[0]
            later = np.bincount(starts.searchsorted(continues), minlength=len(starts) + 1)
            starts -= np.cumsum(later)[: len(starts)]
        return starts

    def tokenize(self, text: str) -> TokenizedText:
        return BytePairText(text, self) if has_context_free_boundaries(self.name) else TokenizedText(text, self)

    def _encode(self, text: str) -> NDArray[np.uint32]:
        # disallowed_special=() reads special tokens as plain text.
        clean = encodable(text)
        ids: NDArray[np.uint32]
        try:
            ids = self.encoding.encode_to_numpy(clean, disallowed_special=())
        except ValueError:
            parts = _cut_giant_gaps(clean)
            if len(parts) < 2:
                raise
            ids = np.concatenate([self.encoding.encode_to_numpy(part, disallowed_special=()) for part in parts])
        return ids


@counters.register("hf")
class HuggingFaceCounter(TokenCounter):
    """A fast tokenizer of the `tokenizers` library: a folder, a ``tokenizer.json`` or a hub name.

    It adds no special tokens ([CLS], [SEP]) and does not truncate or pad. Needs the extra ``models``.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.name = f"hf:{source}"

    @classmethod
    def read(cls, options: str) -> HuggingFaceCounter:
        if not options:
            raise OptionError("the token counter 'hf' needs a tokenizer: hf:<name or path of a tokenizer>")
        return cls(options)

    @property
    def tokenizer(self) -> Any:
        """The `tokenizers.Tokenizer`, loaded on first use and shared by the process."""
        return load_tokenizer(self.source)

    def boundaries(self, text: str) -> Numbers:
        encoding = self.tokenizer.encode(encodable(text), add_special_tokens=False)
        return np.array([start for start, _ in encoding.offsets], dtype=np.int64)

    def count_many(self, texts: Sequence[str]) -> Numbers:
        distinct = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        encodings = self.tokenizer.encode_batch([encodable(text) for text in distinct], add_special_tokens=False)
        counts = np.array([len(encoding) for encoding in encodings], dtype=np.int64)
        return counts[[distinct[text] for text in texts]] if len(texts) else counts


def _cut_giant_gaps(text: str) -> list[str]:
    """Cut white space that is too long for tiktoken's pattern."""
    cuts = [0]
    for gap in _GAP.finditer(text):
        if gap.end() - gap.start() >= _GIANT:
            cuts.extend(range(gap.start() + _GIANT // 2, gap.end(), _GIANT // 2))
    return [text[start:end] for start, end in pairwise([*cuts, len(text)])]


@lru_cache(maxsize=1 << 16)
def short_count(encoding: str, text: str) -> int:
    """Tokens of a short text, cached: the same heads, tails and separators repeat."""
    return len(load_encoding(encoding).encode_ordinary(encodable(text)))


def get_counter(spec: str | TokenCounter) -> TokenCounter:
    """The counter that a string names; a `TokenCounter` is returned as is.

    Names: ``characters``, ``words``, a tiktoken encoding, ``hf:TOKENIZER``, ``embedder:MODEL`` (a model of
    `get_embedder`; ``embedder`` alone: the default model), or any other name in `counters`. Raises `OptionError` for
    unknown names.

    >>> get_counter("characters").count("four")
    4
    """
    if isinstance(spec, TokenCounter):
        return spec
    kind, _, options = spec.partition(":") if isinstance(spec, str) else ("", "", "")
    found = counters.find(kind, packages=False)
    if found is None:
        import tiktoken

        known = tiktoken.list_encoding_names()
        if spec in known:
            return TiktokenCounter(spec)
        found = counters.find(kind)
    if found is None:
        raise OptionError(
            f"unknown token counter {spec!r}: expected characters, words, hf:<name or path of a tokenizer>, embedder, "
            f"embedder:<name of a model>, or one of {', '.join(sorted([*known, *counters.offered]))}"
            f"{suggestion(spec, known)}"
        )
    return found.read(options)
