"""What a model answered is looked at before anyone uses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import ChunkcoreError, ModelError
from chunkcore.models.base import Embedder, TokenEmbedder, Vectors
from chunkcore.models.batching import distinct
from chunkcore.models.waiting import LateError, within

__all__ = ["check_vectors", "embed", "embed_tokens"]


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
        answer = within(timeout, lambda: asked(texts))
    except ChunkcoreError:
        raise
    except LateError:
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
