"""What a size is measured in: `TokenCounter` counts tokens and says at which character each begins."""

from __future__ import annotations

import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import MissingExtraError, OptionError
from chunkcore.pretokens import context_free_boundaries, has_context_free_boundaries

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
T = TypeVar("T")

_SURROGATE = re.compile("[\ud800-\udfff]")
_WORD = re.compile(r"\S+")
_GAP = re.compile(r"\s+")
_GIANT = 999_999  # white-space characters: of so many in a row, some patterns' matching gives up
_MANY = 256  # single characters: of so many, it pays to count each distinct one once
_SHORT = 32  # characters; longer pieces repeat too seldom to be worth remembering


class _Once(Generic[T]):
    """`functools.cached_property` without its lock, which before Python 3.12 all instances share.

    With it one thread at a time would tokenize. Two threads that ask one object at once both compute.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __get__(self, instance: Any, owner: type) -> T:
        if instance is None:
            return self  # type: ignore[return-value]  # asked of the class, as documentation tools do
        value = self.compute(instance)
        instance.__dict__[self.compute.__name__] = value
        return value


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

    Attributes:
        text: the text.
        counter: whose tokens.
        parts: the ranges that are texts by themselves, ``(n, 2)``; but for a text that was joined, the whole.

    `counts(starts, ends)` is the number of tokens of each ``text[start:end]`` *on its own*, which is
    what encoding each piece apart would give.

    >>> source = TiktokenCounter("cl100k_base").tokenize("Chunks of text, counted in bulk.")
    >>> source.counts(np.array([0, 6, 7]), np.array([6, 9, 32])).tolist()
    [1, 1, 7]
    """

    def __init__(self, text: str, counter: TokenCounter) -> None:
        self.text = text
        self.counter = counter
        self.parts = np.array([[0, len(text)]], dtype=np.int64)

    @classmethod
    def join(cls, sources: Sequence[TokenizedText]) -> TokenizedText:
        """Several texts as one, so that many small ones cost no more array operations than a large one.

        `parts` tells the range of each. Each stays tokenized by itself, so that `counts` must only be asked
        for pieces inside one part. All have the same counter.
        """
        joined = type(sources[0])("".join([source.text for source in sources]), sources[0].counter)
        lengths = np.array([len(source.text) for source in sources], dtype=np.int64)
        ends = np.cumsum(lengths)
        joined.parts = np.column_stack((ends - lengths, ends))
        starts = joined.parts[:, 0].tolist()
        places = [source.boundaries + start for source, start in zip(sources, starts, strict=True)]
        joined.__dict__["boundaries"] = np.concatenate(places)
        return joined

    @_Once
    def boundaries(self) -> Offsets:
        """The counter's `boundaries` of the text."""
        return self.counter.boundaries(self.text)

    @_Once
    def code_points(self) -> NDArray[np.unsignedinteger]:
        """The text as numbers: uint8 where it is ASCII, else uint32."""
        if self.text.isascii():
            return np.frombuffer(self.text.encode("ascii"), dtype=np.uint8)
        return np.frombuffer(self.text.encode("utf-32-le", "surrogatepass"), dtype=np.dtype("<u4"))

    def count(self, start: int, end: int) -> int:
        """Tokens of ``text[start:end]`` on its own."""
        return int(self.counts(np.array([start]), np.array([end]))[0])

    def counts(self, starts: Offsets, ends: Offsets) -> Offsets:
        """Tokens of each ``text[start:end]`` on its own, int64. Needs ``0 <= start <= end <= len(text)``."""
        return self._counts_apart(starts, ends)

    def _counts_apart(self, starts: Offsets, ends: Offsets) -> Offsets:
        """Each distinct piece is encoded by itself: time grows with the pieces' summed length."""
        if len(starts) > _MANY:
            single = ends - starts == 1
            if np.count_nonzero(single) > _MANY:
                counts = np.zeros(len(starts), dtype=np.int64)
                counts[single] = self._counts_of_characters(starts[single])
                counts[~single] = self._counts_apart(starts[~single], ends[~single])
                return counts
        text = self.text
        return self.counter.count_many([text[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)])

    def _counts_of_characters(self, places: Offsets) -> Offsets:
        """Of single characters, each distinct one is counted once."""
        distinct, which = np.unique(self.code_points[places], return_inverse=True)
        counts: Offsets = self.counter.count_many([chr(code) for code in distinct.tolist()])[which]
        return counts


class _CharacterText(TokenizedText):
    def counts(self, starts: Offsets, ends: Offsets) -> Offsets:
        return (ends - starts).astype(np.int64)


class _WordText(TokenizedText):
    def counts(self, starts: Offsets, ends: Offsets) -> Offsets:
        """Words that begin inside the piece, and one more where the piece begins inside a word."""
        begins = self.boundaries
        before = np.searchsorted(begins, starts, side="left")
        inside = np.searchsorted(begins, ends, side="left") - before
        reach = np.concatenate(([0], self._ends))[before]
        cut: Offsets = inside + ((reach > starts) & (ends > starts))
        return cut.astype(np.int64)

    @_Once
    def _ends(self) -> Offsets:
        ends = [word.end() for start, end in self.parts.tolist() for word in _WORD.finditer(self.text, start, end)]
        return np.array(ends, dtype=np.int64)


class _BytePairText(TokenizedText):
    """Counts by differences of token numbers between context-free boundaries; the ragged ends are encoded."""

    @_Once
    def _is_boundary(self) -> NDArray[np.bool_]:
        found = context_free_boundaries(self.counter.name, self.code_points)
        found[self.parts] = True
        return found

    @_Once
    def _places(self) -> Offsets:
        return np.flatnonzero(self._is_boundary)

    def counts(self, starts: Offsets, ends: Offsets) -> Offsets:
        if not len(starts):
            return np.zeros(0, dtype=np.int64)
        # A piece is a head, encoded, up to its first boundary; whole pre-tokens; and a tail, encoded.
        first, last = starts, ends
        ragged = (~(self._is_boundary[starts] & self._is_boundary[ends])).nonzero()[0]
        if len(ragged):
            first, last = starts.copy(), ends.copy()
            after = self._places[self._places.searchsorted(starts[ragged])]
            before = self._places[self._places.searchsorted(ends[ragged], side="right") - 1]
            inside = after <= before
            first[ragged] = np.where(inside, after, ends[ragged])
            last[ragged] = np.where(inside, before, ends[ragged])
        counts = self._tokens_between(first, last)
        if len(ragged):
            for begin, end in ((starts, first), (last, ends)):
                some = (begin < end).nonzero()[0]
                counts[some] += self._counts_apart(begin[some], end[some])
        return counts

    def _tokens_between(self, first: Offsets, last: Offsets) -> Offsets:
        """How many tokens of the text begin in each range; ranges that touch share a look-up."""
        before = self.boundaries.searchsorted(first)
        after = np.empty_like(before)
        after[:-1] = before[1:]
        apart = np.append(first[1:] != last[:-1], True).nonzero()[0]
        after[apart] = self.boundaries.searchsorted(last[apart])
        after -= before
        return after


class CharacterCounter(TokenCounter):
    """Every code point is a token."""

    name = "characters"

    def boundaries(self, text: str) -> Offsets:
        return np.arange(len(text), dtype=np.int64)

    def count(self, text: str) -> int:
        return len(text)

    def tokenize(self, text: str) -> TokenizedText:
        return _CharacterText(text, self)


class WordCounter(TokenCounter):
    """Every run of characters that are not white space is a token.

    >>> WordCounter().boundaries("one  two").tolist()
    [0, 5]
    """

    name = "words"

    def boundaries(self, text: str) -> Offsets:
        return np.array([match.start() for match in _WORD.finditer(text)], dtype=np.int64)

    def count(self, text: str) -> int:
        return len(text.split())

    def tokenize(self, text: str) -> TokenizedText:
        return _WordText(text, self)


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
        if len(text) <= _SHORT:
            return _short_count(self.name, text)
        return len(self._encode(text))

    def count_many(self, texts: Sequence[str]) -> Offsets:
        name = self.name
        counts = [_short_count(name, text) if len(text) <= _SHORT else self.count(text) for text in texts]
        return np.array(counts, dtype=np.int64)

    def boundaries(self, text: str) -> Offsets:
        lengths = _token_byte_lengths(self.name)[self._encode(text)]
        starts: Offsets = np.cumsum(lengths, dtype=np.int64)
        starts -= lengths
        if not text.isascii():
            # A byte's character is its place less the continuation bytes up to it; as signed numbers those
            # bytes are the lowest.
            data = np.frombuffer(_encodable(text).encode("utf-8"), dtype=np.int8)
            continues = (data < -64).nonzero()[0]
            later = np.bincount(starts.searchsorted(continues), minlength=len(starts) + 1)
            starts -= np.cumsum(later)[: len(starts)]
        return starts

    def tokenize(self, text: str) -> TokenizedText:
        return _BytePairText(text, self) if has_context_free_boundaries(self.name) else TokenizedText(text, self)

    def _encode(self, text: str) -> NDArray[np.uint32]:
        # disallowed_special=() makes look-alikes of special tokens plain text.
        clean = _encodable(text)
        ids: NDArray[np.uint32]
        try:
            ids = self.encoding.encode_to_numpy(clean, disallowed_special=())
        except ValueError:
            parts = _cut_giant_gaps(clean)
            if len(parts) < 2:
                raise
            ids = np.concatenate([self.encoding.encode_to_numpy(part, disallowed_special=()) for part in parts])
        return ids


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
        encoding = self.tokenizer.encode(_encodable(text), add_special_tokens=False)
        return np.array([start for start, _ in encoding.offsets], dtype=np.int64)

    def count_many(self, texts: Sequence[str]) -> Offsets:
        distinct = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        encodings = self.tokenizer.encode_batch([_encodable(text) for text in distinct], add_special_tokens=False)
        counts = np.array([len(encoding) for encoding in encodings], dtype=np.int64)
        return counts[[distinct[text] for text in texts]] if len(texts) else counts


def _encodable(text: str) -> str:
    """The text as UTF-8 can say it, with as many code points."""
    if not text.isascii():
        try:
            text.encode()  # far faster than to look for surrogates
        except UnicodeEncodeError:
            return _SURROGATE.sub("\ufffd", text)
    return text


def _cut_giant_gaps(text: str) -> list[str]:
    """The text, cut inside white space that is too long for tiktoken's pattern to take."""
    cuts = [0]
    for gap in _GAP.finditer(text):
        if gap.end() - gap.start() >= _GIANT:
            cuts.extend(range(gap.start() + _GIANT // 2, gap.end(), _GIANT // 2))
    return [text[start:end] for start, end in pairwise([*cuts, len(text)])]


@lru_cache(maxsize=1 << 16)
def _short_count(encoding: str, text: str) -> int:
    """Tokens of a text of few characters: the same heads, tails and separators are asked for again and again."""
    return len(_load_encoding(encoding).encode_ordinary(_encodable(text)))


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
def _token_byte_lengths(name: str) -> NDArray[np.int32]:
    """How many bytes each token stands for, indexed by token id."""
    encoding = _load_encoding(name)
    lengths = np.zeros(encoding.n_vocab, dtype=np.int32)
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
    # Text that looks like a special token is text; and a byte-level post-processor would trim the
    # space off each token's offsets.
    tokenizer.encode_special_tokens = True
    tokenizer.post_processor = None
    return tokenizer
