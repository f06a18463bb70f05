"""Rerankers: models that score how well a text answers a query, reading both together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chunkcore.errors import ChunkcoreError, MissingExtraError, ModelError, OptionError
from chunkcore.escaping import encodable
from chunkcore.models.model_files import fetch

__all__ = [
    "DEFAULT_RERANKER",
    "CallableReranker",
    "CrossEncoderReranker",
    "Reranker",
    "get_reranker",
    "rerank_scores",
]

DEFAULT_RERANKER = "cross-encoder/ms-marco-MiniLM-L6-v2"
_BATCH = 32
_FILES = ("*.json", "*.txt", "model.safetensors")

_loaded: dict[str, CrossEncoderReranker] = {}
_lock = threading.Lock()


@runtime_checkable
class Reranker(Protocol):
    """Scores how well texts answer a query."""

    @property
    def name(self) -> str: ...

    def scores(self, pairs: Sequence[tuple[str, str]]) -> ArrayLike:
        """A number for each pair of query and text, higher is better: shape (len(pairs),)."""
        ...


class CallableReranker:
    """A function of pairs of query and text as a `Reranker`.

    >>> shared = CallableReranker(lambda pairs: [len(set(q.split()) & set(t.split())) for q, t in pairs], name="shared")
    >>> shared.scores([("who naps", "who wakes"), ("who naps", "a fox")])
    [1, 0]
    """

    def __init__(self, function: Callable[[Sequence[tuple[str, str]]], ArrayLike], *, name: str = "") -> None:
        self.function = function
        self.name = name or getattr(function, "__name__", type(function).__name__)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> ArrayLike:
        return self.function(pairs)


class CrossEncoderReranker:
    """A cross-encoder by its folder or hub name, loaded by sentence-transformers.

    The model must have one output. Longer input is truncated, from the longer of query and text first.

    Raises:
        OptionError: the model is not found, not reachable, or has several outputs.
        MissingExtraError: sentence-transformers is not installed.
    """

    def __init__(self, source: Path | str, *, name: str = "") -> None:
        self.name = name or str(source)
        self._model = _load(str(source))
        if getattr(self._model, "num_labels", 1) != 1:
            raise OptionError(
                f"the reranker {self.name!r} has {self._model.num_labels} outputs, and one score is wanted: choose a "
                "cross-encoder for ranking"
            )
        self._own = threading.Lock()

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """The model's output for each pair: float32, shape (len(pairs),)."""
        ready = [(encodable(a), encodable(b)) for a, b in pairs]
        with self._own:
            answer: NDArray[np.float32] = self._model.predict(ready, batch_size=_BATCH, show_progress_bar=False)
        return answer


def get_reranker(spec: str | Reranker | Callable[[Sequence[tuple[str, str]]], ArrayLike]) -> Reranker:
    """The reranker of a name (the same object each time), a wrapped function, or a `Reranker` unchanged.

    Raises:
        OptionError: no such model, or not a reranker.
        MissingExtraError: sentence-transformers is not installed.
    """
    if isinstance(spec, str):
        if not spec.strip():
            raise OptionError(f"a reranker is named by a folder or a name on the hub, such as {DEFAULT_RERANKER}")
        with _lock:
            if spec not in _loaded:
                _loaded[spec] = CrossEncoderReranker(spec)
            return _loaded[spec]
    if isinstance(spec, Reranker):
        return spec
    if callable(spec):
        return CallableReranker(spec)
    raise OptionError(
        f"a reranker is a name, a function of pairs, or an object with name and scores; got {type(spec).__name__}"
    )


def rerank_scores(reranker: Reranker, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
    """One valid score per pair, shape (len(pairs),), float64. A failed call is repeated once; no pairs, no call.

    Raises `ModelError`: the reranker failed twice.
    """
    if not pairs:
        return np.empty(0)
    try:
        return _ask(reranker, pairs)
    except ModelError:
        return _ask(reranker, pairs)


def _ask(reranker: Reranker, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
    try:
        found = np.asarray(reranker.scores(pairs), dtype=np.float64)
    except ChunkcoreError:
        raise
    except Exception as error:
        raise ModelError(
            f"the reranker {reranker.name!r} failed on {len(pairs)} pairs: {type(error).__name__}: {error}"
        ) from error
    if found.shape != (len(pairs),):
        raise ModelError(
            f"the reranker {reranker.name!r} was given {len(pairs)} pairs and answered with an array of shape "
            f"{found.shape}; expected one number a pair"
        )
    if not np.isfinite(found).all():
        raise ModelError(f"the reranker {reranker.name!r} answered with NaN or infinity; expected finite numbers")
    return found


def _load(source: str) -> Any:
    try:
        cross_encoder: Any = import_module("sentence_transformers").CrossEncoder
    except ImportError as error:
        raise MissingExtraError.of("sentence-transformers", "models", "rerank with a cross-encoder") from error
    if not Path(source).is_dir():
        source = str(fetch(source, _FILES))
    try:
        return cross_encoder(source)
    except Exception as error:
        raise OptionError(
            f"no reranker {source!r} ({type(error).__name__}: {str(error).strip().partition(chr(10))[0]}): expected "
            "the folder of a cross-encoder, or the name of one on the hub"
        ) from error
