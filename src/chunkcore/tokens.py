"""What a size is measured in: `TokenCounter` counts tokens and says at which character each begins."""

from __future__ import annotations

import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import MissingExtraError, OptionError

__all__ = [
    "CharacterCounter",
    "HuggingFaceCounter",
    "TiktokenCounter",
    "TokenCounter",
    "TokenizedText",
    "WordCounter",
    "get_counter",
]

Offsets = NDArray[np.int64]

_SURROGATE = re.compile("[\ud800-\udfff]")


class TokenCounter(ABC):
    """Counts tokens, and knows the code point at which each begins.

    `name` is the string from which `get_counter` builds an equal counter.
    """

    name: str

    @abstractmethod
    def boundaries(self, text: str) -> Offsets:
        """The code-point offset at which every token begins: int64, sorted, one a token.

        A token that begins inside a character (an emoji of three byte-level tokens) is given that
        character's offset, so offsets can repeat, and ``len(boundaries(text)) == count(text)``.
        """

    def count(self, text: str) -> int:
        """How many tokens the text is, on its own."""
        return len(self.boundaries(text))

    def count_many(self, texts: Sequence[str]) -> Offsets:
        """`count` of each text, as int64."""
        return np.array([self.count(text) for text in texts], dtype=np.int64)

    def tokenize(self, text: str) -> TokenizedText:
        """The text with this counter's view of it, for whoever asks more than once."""
        return TokenizedText(text, self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TokenCounter) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class TokenizedText:
    """A text and its tokens, computed once, when first asked for.

    `counts(starts, ends)` is the number of tokens of each ``text[start:end]`` *on its own*, which is
    what encoding each piece apart would give.
    """

    def __init__(self, text: str, counter: TokenCounter) -> None:
        self.text = text
        self.counter = counter
        self._boundaries: Offsets | None = None

    @property
    def boundaries(self) -> Offsets:
        if self._boundaries is None:
            self._boundaries = self.counter.boundaries(self.text)
        return self._boundaries

    def count(self, start: int, end: int) -> int:
        """Tokens of ``text[start:end]`` on its own."""
        return int(self.counts(np.array([start]), np.array([end]))[0])

    def counts(self, starts: Offsets, ends: Offsets) -> Offsets:
        """Tokens of each ``text[start:end]`` on its own, int64."""
        text = self.text
        pairs = zip(starts.tolist(), ends.tolist(), strict=True)
        return self.counter.count_many([text[start:end] for start, end in pairs])


class CharacterCounter(TokenCounter):
    """Every code point is a token."""

    name = "characters"

    def boundaries(self, text: str) -> Offsets:
        return np.arange(len(text), dtype=np.int64)

    def count(self, text: str) -> int:
        return len(text)


class WordCounter(TokenCounter):
    """Every run of characters that are not white space is a token.

    >>> WordCounter().boundaries("one  two").tolist()
    [0, 5]
    """

    name = "words"
    _word: ClassVar[re.Pattern[str]] = re.compile(r"\S+")

    def boundaries(self, text: str) -> Offsets:
        return np.array([match.start() for match in self._word.finditer(text)], dtype=np.int64)

    def count(self, text: str) -> int:
        return len(text.split())


class TiktokenCounter(TokenCounter):
    """OpenAI's byte-pair encodings. Text that looks like a special token is text.

    An unpaired surrogate, which UTF-8 cannot say, counts as the replacement character.

    >>> counter = TiktokenCounter("cl100k_base")
    >>> counter.count("<|endoftext|>"), counter.boundaries("a 👩‍👩‍👧").tolist()
    (7, [0, 1, 2, 3, 3, 4, 4, 4, 5, 5, 6, 6, 6])
    """

    def __init__(self, name: str = "cl100k_base") -> None:
        self.name = name

    @property
    def encoding(self) -> Any:
        """The tiktoken encoding, loaded on first use and shared by the process."""
        return _load_encoding(self.name)

    def count(self, text: str) -> int:
        return len(self._encode(text))

    def boundaries(self, text: str) -> Offsets:
        lengths = _token_byte_lengths(self.name)[self._encode(text)]
        starts = np.cumsum(lengths) - lengths
        if text.isascii():
            return starts
        data = np.frombuffer(self._encodable(text).encode("utf-8"), dtype=np.uint8)
        begins_character = (data & 0xC0) != 0x80
        character_of_byte = np.cumsum(begins_character) - 1
        offsets: Offsets = character_of_byte[starts].astype(np.int64)
        return offsets

    def _encode(self, text: str) -> NDArray[np.uint32]:
        # disallowed_special=() makes look-alikes of special tokens plain text.
        ids: NDArray[np.uint32] = self.encoding.encode_to_numpy(self._encodable(text), disallowed_special=())
        return ids

    @staticmethod
    def _encodable(text: str) -> str:
        if text.isascii():
            return text
        return _SURROGATE.sub("\ufffd", text)


class HuggingFaceCounter(TokenCounter):
    """A fast tokenizer of the `tokenizers` library: a folder, a ``tokenizer.json`` or a hub name.

    Tokens that the tokenizer adds around a text ([CLS], [SEP]) are not counted, and neither truncation
    nor padding is applied. Needs the extra ``models``.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.name = f"hf:{source}"

    @property
    def tokenizer(self) -> Any:
        """The `tokenizers.Tokenizer`, loaded on first use and shared by the process."""
        return _load_tokenizer(self.source)

    def boundaries(self, text: str) -> Offsets:
        encoding = self.tokenizer.encode(_SURROGATE.sub("\ufffd", text), add_special_tokens=False)
        return np.array([start for start, _ in encoding.offsets], dtype=np.int64)

    def count_many(self, texts: Sequence[str]) -> Offsets:
        clean = [_SURROGATE.sub("\ufffd", text) for text in texts]
        encodings = self.tokenizer.encode_batch(clean, add_special_tokens=False)
        return np.array([len(encoding.ids) for encoding in encodings], dtype=np.int64)


def get_counter(spec: str | TokenCounter) -> TokenCounter:
    """The counter that a string names: ``characters``, ``words``, a tiktoken encoding, or ``hf:`` and a tokenizer.

    Raises:
        OptionError: no such counter.

    >>> get_counter("characters").count("four")
    4
    """
    if isinstance(spec, TokenCounter):
        return spec
    if spec == "characters":
        return CharacterCounter()
    if spec == "words":
        return WordCounter()
    if isinstance(spec, str) and spec.startswith("hf:") and len(spec) > 3:
        return HuggingFaceCounter(spec[3:])
    import tiktoken

    known = tiktoken.list_encoding_names()
    if spec in known:
        return TiktokenCounter(spec)
    raise OptionError(
        f"unknown token counter {spec!r}: expected characters, words, hf:<name or path of a tokenizer>, "
        f"or one of {', '.join(sorted(known))}"
    )


# The BPE files that llama-index-core ships, by the names under which tiktoken's cache keeps them
# (the SHA-1 of their addresses).
_SHIPPED_FILES = {
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
    "o200k_harmony": "fb374d419588a4632f3f557e76b4b70aebbca790",
}
_environment_lock = threading.Lock()


def _shipped_cache(name: str) -> Path | None:
    """The folder of llama-index-core that holds this encoding's file, found without importing it."""
    file = _SHIPPED_FILES.get(name)
    package = find_spec("llama_index") if file else None
    for root in (package.submodule_search_locations or []) if package else []:
        folder = Path(root) / "core" / "_static" / "tiktoken_cache"
        if file and (folder / file).is_file():
            return folder
    return None


@lru_cache(maxsize=8)
def _load_encoding(name: str) -> Any:
    import tiktoken

    folder = None if "TIKTOKEN_CACHE_DIR" in os.environ else _shipped_cache(name)
    try:
        if folder is None:
            return tiktoken.get_encoding(name)
        # The environment is tiktoken's only way to be told where its files are.
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
def _token_byte_lengths(name: str) -> Offsets:
    """How many bytes each token stands for, indexed by token id."""
    encoding = _load_encoding(name)
    lengths = np.zeros(encoding.n_vocab, dtype=np.int64)
    for token in range(encoding.n_vocab):
        try:
            lengths[token] = len(encoding.decode_single_token_bytes(token))
        except KeyError:  # ids that an encoding leaves unused
            continue
    return lengths


@lru_cache(maxsize=8)
def _load_tokenizer(source: str) -> Any:
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
    return tokenizer
