"""What a model must be able to do, as protocols: whoever has these methods is one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from chunkcore.concurrency import TimeoutExpired, with_timeout
from chunkcore.errors import ChunkcoreError, ModelError

__all__ = [
    "Embedder",
    "TextTokens",
    "TokenCountingEmbedder",
    "TokenEmbedder",
    "Vectors",
    "check_vectors",
    "distinct",
    "embed",
    "embed_tokens",
    "encodable",
    "is_symmetric",
    "sorted_batches",
    "text_tokens",
]

_SURROGATE = re.compile("[\ud800-\udfff]")


def distinct(texts: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
    """The distinct texts, in the order in which they come first, and for each text its place among them.

    >>> found, places = distinct(["b", "a", "b"])
    >>> found, places.tolist()
    (['b', 'a'], [0, 1, 0])
    """
    place = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    return list(place), np.array([place[text] for text in texts], dtype=np.int64)


def sorted_batches(
    lengths: Sequence[int] | NDArray[np.int64], *, size: int, total: int | None = None
) -> Iterator[NDArray[np.int64]]:
    """The positions 0 … n-1 in batches, longest first, ties in order.

    A batch has at most `size` positions and, padded to its longest, at most `total` units of length; one
    that is longer than `total` alone is a batch of its own. Longest first, so that a batch which does not
    fit in memory fails at the start and not after an hour.

    >>> [batch.tolist() for batch in sorted_batches([1, 9, 5, 5], size=2)]
    [[1, 2], [3, 0]]
    >>> [batch.tolist() for batch in sorted_batches([1, 9, 5, 5], size=4, total=10)]
    [[1], [2, 3], [0]]
    """
    measured = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-measured, kind="stable")
    start = 0
    while start < len(order):
        longest = int(measured[order[start]])
        room = size if total is None else max(1, min(size, total // max(1, longest)))
        yield order[start : start + room]
        start += room


def encodable(texts: Sequence[str]) -> list[str]:
    """The texts with unpaired surrogates, which no tokenizer can read, replaced by U+FFFD."""
    return [text if text.isascii() else _SURROGATE.sub("\ufffd", text) for text in texts]


Vectors = NDArray[np.float32]


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors.

    Attributes:
        name: what it was built from, so that a configuration can name it.
        fingerprint: changes when the vectors could change; caches are keyed by it.
        max_tokens: how many of its own tokens it reads of a text, the rest being cut off; None for no limit.

    An embedder may also have an attribute `symmetric` (see `is_symmetric`) and a method `count_tokens`
    (see `TokenCountingEmbedder`).
    """

    # Properties, so that an attribute and a property are both welcome.
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


@runtime_checkable
class TokenCountingEmbedder(Embedder, Protocol):
    """An embedder that can say how long a text is to it, and so what it would cut off."""

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Tokens of each document before truncation, with those that the model puts around a text: int64."""
        ...


class TextTokens(NamedTuple):
    """A whole document as a model reads it, however long it is.

    Attributes:
        ids: the model's tokens, those included that it puts around a document: int64, shape (n,).
        starts: the code point of the document at which each begins: int64, shape (n,), ascending.
        ends: the code point after its last. What stands around the document is empty: at 0, or at its end.
        before: how many tokens stand before the document's own.
        after: how many stand after them.
    """

    ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    before: int
    after: int


@runtime_checkable
class TokenEmbedder(Embedder, Protocol):
    """An embedder whose vectors are means of token vectors, and which gives those: what late chunking needs."""

    def tokenize(self, text: str) -> TextTokens:
        """The document's tokens, none cut off."""
        ...

    def embed_tokens(self, windows: Sequence[NDArray[np.int64]]) -> Sequence[Vectors]:
        """For each sequence of token ids, of at most `max_tokens`, a row a token: float32, (tokens, dimensions)."""
        ...


def is_symmetric(embedder: Embedder) -> bool:
    """Whether a text has the same vector as a document and as a query, by the embedder's own `symmetric`.

    One that does not say is taken to tell them apart.
    """
    return bool(getattr(embedder, "symmetric", False))


def embed(embedder: Embedder, texts: Sequence[str], *, queries: bool = False, timeout: float | None = None) -> Vectors:
    """One checked row a text: float32, shape (len(texts), dimensions). No texts, no call: shape (0, 0).

    The model is given each distinct text once, in the order in which they come first. One that fails, does not answer
    in `timeout` seconds (None waits for ever), or answers with something that is no answer is asked once more.

    Raises:
        ModelError: the second answer was no better.
    """
    if not texts:
        return np.empty((0, 0), dtype=np.float32)
    asked, places = distinct(texts)
    try:
        vectors = _ask(embedder, asked, queries, timeout)
    except ModelError:
        vectors = _ask(embedder, asked, queries, timeout)
    return vectors if len(asked) == len(texts) else vectors[places]


def _ask(embedder: Embedder, texts: Sequence[str], queries: bool, timeout: float | None) -> Vectors:
    asked = embedder.embed_queries if queries else embedder.embed_documents
    try:
        answer = with_timeout(timeout, lambda: asked(texts))
    except ChunkcoreError:
        raise
    except TimeoutExpired:
        raise ModelError(f"the model {embedder.name!r} gave no answer to {len(texts)} texts in {timeout} s") from None
    except Exception as error:
        raise ModelError(
            f"the model {embedder.name!r} failed on {len(texts)} texts: {type(error).__name__}: {error}"
        ) from error
    return check_vectors(answer, len(texts), model=embedder.name)


def embed_tokens(embedder: TokenEmbedder, windows: Sequence[NDArray[np.int64]]) -> list[Vectors]:
    """For each sequence of token ids one checked row a token. A model that fails is asked once more.

    Raises:
        ModelError: the second answer was no better.
    """
    try:
        return _ask_tokens(embedder, windows)
    except ModelError:
        return _ask_tokens(embedder, windows)


def _ask_tokens(embedder: TokenEmbedder, windows: Sequence[NDArray[np.int64]]) -> list[Vectors]:
    try:
        answer = list(embedder.embed_tokens(windows))
    except ChunkcoreError:
        raise
    except Exception as error:
        raise ModelError(
            f"the model {embedder.name!r} failed on {len(windows)} sequences of tokens: {type(error).__name__}: {error}"
        ) from error
    if len(answer) != len(windows):
        raise ModelError(
            f"the model {embedder.name!r} was given {len(windows)} sequences of tokens and answered with "
            f"{len(answer)}; expected one matrix a sequence"
        )
    checked = [
        check_vectors(rows, len(ids), model=embedder.name, what="tokens")
        for rows, ids in zip(answer, windows, strict=True)
    ]
    widths = sorted({rows.shape[1] for rows in checked})
    if len(widths) > 1:
        raise ModelError(
            f"the model {embedder.name!r} answered with token vectors of {' and '.join(map(str, widths))} dimensions; "
            "expected the same for every token"
        )
    return checked


def check_vectors(answer: Any, count: int, *, model: str, what: str = "texts") -> Vectors:
    """The answer as a float32 array of `count` rows; lists of numbers and other float types are converted.

    Raises:
        ModelError: not numbers, not two-dimensional, another number of rows, no columns, or NaN or infinity in it.

    >>> check_vectors([[0.5, 0.5]], 1, model="m").dtype.name
    'float32'
    >>> check_vectors([[0.5, 0.5]], 2, model="m")
    Traceback (most recent call last):
    chunkcore.errors.ModelError: the model 'm' was given 2 texts and answered with 1 vectors; expected one vector a text
    """
    try:
        array = np.asarray(answer)
    except ValueError as error:  # rows of different lengths
        raise ModelError(f"the model {model!r} answered with vectors of different lengths ({error})") from error
    if array.dtype.kind != "f":
        raise ModelError(
            f"the model {model!r} answered with {_described(answer, array)}; expected floating-point numbers"
        )
    if array.ndim != 2 or array.shape[1] == 0:
        raise ModelError(
            f"the model {model!r} answered with an array of shape {array.shape}; expected ({count}, dimensions)"
        )
    if len(array) != count:
        raise ModelError(
            f"the model {model!r} was given {count} {what} and answered with {len(array)} vectors; "
            f"expected one vector a {what[:-1]}"
        )
    with np.errstate(over="ignore"):
        vectors = np.ascontiguousarray(array, dtype=np.float32)
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        raise ModelError(
            f"the model {model!r} answered with NaN or infinity in {count - int(finite.sum())} of {count} vectors, "
            f"first for {what[:-1]} {int(np.argmin(finite))}; expected finite numbers"
        )
    return vectors


def _described(answer: Any, array: np.ndarray[Any, Any]) -> str:
    return f"{type(answer).__name__} of {array.dtype}" if array.size else f"an empty {type(answer).__name__}"


def text_tokens(
    text: str,
    ids: Sequence[int],
    offsets: Sequence[tuple[int, int]],
    special: Sequence[int],
    *,
    prompt: str = "",
    lowercase: bool = False,
) -> TextTokens:
    """Tokens of a prompt with a document after it, at places of the document alone.

    Args:
        text: the document.
        ids: of the tokens.
        offsets: half-open code points of what the tokenizer was given: the prompt and the document.
        special: 1 for a token that the tokenizer put there, 0 for one of the text.
        prompt: what was put before the document.
        lowercase: whether the tokenizer was given it in lower case, in which some characters are longer.

    >>> text_tokens("İs", [1, 7, 8, 2], [(0, 0), (0, 2), (2, 3), (0, 0)], [1, 0, 0, 1], lowercase=True).ends.tolist()
    [0, 1, 2, 2]
    """
    places = np.array(offsets, dtype=np.int64).reshape(-1, 2)
    own = np.asarray(special, dtype=np.int64) == 0
    # A token that begins in the prompt and ends in the document stands for what it covers of the document.
    own &= places[:, 1] > len(prompt.lower() if lowercase else prompt)
    numbers = np.flatnonzero(own)
    before = int(numbers[0]) if len(numbers) else int(np.count_nonzero(np.cumprod(np.asarray(special))))
    after = len(ids) - 1 - int(numbers[-1]) if len(numbers) else len(ids) - before
    places = np.maximum(places - len(prompt.lower() if lowercase else prompt), 0)
    if lowercase:
        places = _raised(text, places)
    places[:before] = 0
    places[len(ids) - after :] = len(text)
    # Tokens of one character share its place; a few tokenizers step back by a character, which searches do not expect.
    starts, ends = np.maximum.accumulate(places, axis=0).T
    return TextTokens(np.array(ids, dtype=np.int64), starts.copy(), ends.copy(), before, after)


def _raised(text: str, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Places in the text from places in it in lower case."""
    if len(text.lower()) == len(text):
        return places
    lengths = np.array([len(character.lower()) for character in text], dtype=np.int64)
    origin = np.append(np.repeat(np.arange(len(text), dtype=np.int64), lengths), len(text))
    raised = origin[np.minimum(places, len(origin) - 1)]
    # An end inside a character is after it.
    ends = np.append(0, np.repeat(np.arange(1, len(text) + 1, dtype=np.int64), lengths))
    raised[:, 1] = ends[np.minimum(places[:, 1], len(ends) - 1)]
    return raised
