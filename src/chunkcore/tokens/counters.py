"""Token counters by name: characters, words, tiktoken, Hugging Face tokenizers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from chunkcore.errors import OptionError, echo, suggestion
from chunkcore.lazy import needed
from chunkcore.plain import encodable
from chunkcore.registry import Registry
from chunkcore.spans import Numbers
from chunkcore.tokens.encodings import (
    encode,
    fast_encoder,
    load_encoding,
    read,
    token_byte_lengths,
)
from chunkcore.tokens.tokenized import (
    RULES,
    BytePairText,
    CharacterText,
    TokenCounter,
    TokenizedText,
    WordText,
    splits_at_space,
)


@lru_cache(maxsize=8)
def load_tokenizer(source: str) -> Any:
    """The `tokenizers.Tokenizer` of a folder, a file or a hub name; it reads special tokens as text.

    Raises `OptionError`: there is no such tokenizer. Raises `MissingExtraError`: tokenizers is not installed.
    """
    kind = needed("tokenizers", "models", "count a model's tokens").Tokenizer
    path = Path(source)
    file = path / "tokenizer.json" if path.is_dir() else path
    try:
        tokenizer = kind.from_file(str(file)) if file.is_file() else kind.from_pretrained(source)
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


counters: Registry[type[TokenCounter]] = Registry(
    "token counter",
    "chunkcore.counters",
    base=TokenCounter,
    entries={"embedder": "chunkcore.models.loading:EmbedderCounter"},
)


@counters.register("characters")
class CharacterCounter(TokenCounter):
    """Every code point is a token."""

    name = "characters"

    def boundaries(self, text: str) -> Numbers:
        return np.arange(len(text), dtype=np.int64)

    def count(self, text: str) -> int:
        return len(text)

    def tokenize(self, *texts: str) -> TokenizedText:
        return CharacterText(texts, self)


@counters.register("words")
class WordCounter(TokenCounter):
    """Every run of characters that are not white space is a token.

    >>> WordCounter().boundaries("one  two").tolist()
    [0, 5]
    """

    name = "words"

    def boundaries(self, text: str) -> Numbers:
        return WordText([text], self).starts

    def count(self, text: str) -> int:
        return len(text.split())

    def tokenize(self, *texts: str) -> TokenizedText:
        return WordText(texts, self)


@dataclass(eq=False, repr=False)
class TiktokenCounter(TokenCounter):
    """OpenAI's byte-pair encodings. Special tokens are text; an unpaired surrogate counts as U+FFFD.

    >>> counter = TiktokenCounter("cl100k_base")
    >>> counter.count("<|endoftext|>"), counter.boundaries("a 👩‍👩‍👧").tolist()
    (7, [0, 1, 2, 3, 3, 4, 4, 4, 5, 5, 6, 6, 6])
    """

    name: str = "cl100k_base"

    @property
    def encoding(self) -> Any:
        """The tiktoken encoding, loaded on first use and shared by the process."""
        return load_encoding(self.name)

    @property
    def encoder(self) -> str:
        """The package whose encoder makes the ids: "toktok-rs" (the extra ``fast``) or "tiktoken"."""
        return "toktok-rs" if fast_encoder(self.name) else "tiktoken"

    def count(self, text: str) -> int:
        return len(encode(self.name, text))

    def count_each(self, texts: Sequence[str]) -> Sequence[int]:
        fast = fast_encoder(self.name)
        joined = "".join(texts)
        clean, is_readable = read(joined)
        if fast is not None and is_readable and clean is joined:
            return list(map(fast.count, texts))
        return super().count_each(texts)

    def boundaries(self, text: str) -> Numbers:
        lengths = token_byte_lengths(self.name).take(encode(self.name, text))
        starts: Numbers = np.cumsum(lengths, dtype=np.int64)
        starts -= lengths
        if not text.isascii():
            # A byte's character: its position minus the continuation bytes (the lowest signed numbers) up to it.
            # A surrogate has as many bytes as U+FFFD, as which it is read.
            data = np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.int8)
            continues = (data < -64).nonzero()[0]
            later = np.bincount(starts.searchsorted(continues), minlength=len(starts) + 1)
            starts -= np.cumsum(later)[: len(starts)]
        return starts

    def tokenize(self, *texts: str) -> TokenizedText:
        return BytePairText(texts, self) if self.name in RULES else TokenizedText(texts, self)


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
            raise OptionError(
                "the token counter 'hf' needs a tokenizer: hf:<name or path of a tokenizer>"
            )
        return cls(options)

    @property
    def tokenizer(self) -> Any:
        """The `tokenizers.Tokenizer`, loaded on first use and shared by the process."""
        return load_tokenizer(self.source)

    def boundaries(self, text: str) -> Numbers:
        encoding = self.tokenizer.encode(encodable(text), add_special_tokens=False)
        return np.array([start for start, _ in encoding.offsets], dtype=np.int64)

    @cached_property
    def splits_at_space(self) -> bool:  # type: ignore[override]
        return splits_at_space(self.tokenizer)

    def count_each(self, texts: Sequence[str]) -> Sequence[int]:
        readable = list(map(encodable, texts))
        encodings = self.tokenizer.encode_batch(readable, add_special_tokens=False)
        return list(map(len, encodings))


def get_counter(spec: str | TokenCounter) -> TokenCounter:
    """The counter that a string names; a `TokenCounter` is returned as is.

    Names: ``characters``, ``words``, a tiktoken encoding, ``hf:TOKENIZER``, ``embedder:MODEL`` (a model of
    `get_embedder`; ``embedder`` alone: the default model), or any other name in
    `counters`. Raises `OptionError` for unknown names.

    >>> get_counter("characters").count("four")
    4
    """
    if isinstance(spec, TokenCounter):
        return spec
    kind, _, options = str(spec).partition(":")
    if kind in RULES and kind == spec:
        return TiktokenCounter(kind)
    counter = counters.find(kind)
    if counter is not None:
        return counter.read(options)
    import tiktoken

    encodings = tiktoken.list_encoding_names()
    if spec in encodings:
        return TiktokenCounter(spec)
    raise OptionError(
        f"unknown token counter {echo(spec)}: expected characters, words, hf:<name or path of a tokenizer>, "
        f"embedder, embedder:<name of a model>, or one of {', '.join(sorted([*encodings, *counters.offered]))}"
        f"{suggestion(spec, encodings, tiktoken.model.MODEL_TO_ENCODING)}"
    )
