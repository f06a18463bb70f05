"""`Reranked`: the best of a search, read again together with the query."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chunkcore.errors import ChunkcoreError, MissingExtraError, ModelError, OptionError
from chunkcore.models.base import Embedder, encodable
from chunkcore.models.model_files import fetch
from chunkcore.registry import format_spec
from chunkcore.retrieval.base import Hits, Index, Pool, RetrievalMethod, Search, check_search

__all__ = [
    "DEFAULT_RERANKER",
    "RERANK",
    "CallableReranker",
    "CrossEncoderReranker",
    "Reranked",
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
    """Tells how well texts answer a query."""

    @property
    def name(self) -> str:
        """What it was built from, so that a configuration can name it."""
        ...

    def scores(self, pairs: Sequence[tuple[str, str]]) -> ArrayLike:
        """For each query and text a number, higher for better: shape (len(pairs),)."""
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
        """What the function answers."""
        return self.function(pairs)


class CrossEncoderReranker:
    """A cross-encoder that sentence-transformers loads, by its folder or its name on the hub.

    It must have one output. What is over the model's limit is cut off, from the longer of query and text first.

    Raises:
        OptionError: there is no such model, it cannot be reached, or it has several outputs.
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
        ready = list(zip(encodable([a for a, _ in pairs]), encodable([b for _, b in pairs]), strict=True))
        with self._own:
            answer: NDArray[np.float32] = self._model.predict(ready, batch_size=_BATCH, show_progress_bar=False)
        return answer


def get_reranker(spec: str | Reranker | Callable[[Sequence[tuple[str, str]]], ArrayLike]) -> Reranker:
    """The reranker that a string names, the same object each time. A `Reranker` is handed back, a function wrapped.

    Raises:
        OptionError: no such model, or something that is no reranker.
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
    """One checked number a pair. One that fails is asked once more. No pairs, no call.

    Raises:
        ModelError: the second answer was no better.
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


RERANK = "+rerank"  # stands after the search in a string
_AT_ONCE = 4096  # pairs that a reranker is given in one call


@dataclass(frozen=True, kw_only=True)
class Reranked(Search):
    """A search whose first results are put in the order in which a reranker scores them (Nogueira and Cho, 2019).

    As a string: any search and ``+rerank`` after it, as ``hybrid+rerank:model=cross-encoder/ms-marco-MiniLM-L6-v2``.
    A chunk's context is read with its text.

    Attributes:
        method: the search.
        model: a cross-encoder's folder or its name on the hub, a `Reranker`, or a function of pairs of query and text.
        depth: how many of each query are read again. What comes after them stays in its order, below them.

    Cost: that of the search, and `depth` readings of query and chunk a query.

    Raises:
        OptionError: depth is under 1; when indexing, there is no such model.
    """

    kind = "rerank"

    method: RetrievalMethod
    model: Any = DEFAULT_RERANKER
    depth: int = 50

    def _validate(self) -> None:
        if self.depth < 1:
            raise OptionError(f"rerank: depth is at least 1, got {self.depth}")

    @classmethod
    def over(cls, method: RetrievalMethod, parts: Sequence[str], options: Mapping[str, Any]) -> Search:
        """The search with what stands after its +rerank.

        Raises:
            OptionError: no such option, or a value that it cannot have.
        """
        if "method" in options:
            raise OptionError("rerank: the method stands before +rerank, as in bm25+rerank")
        return cls.read(parts, {**options, "method": method})

    @property
    def name(self) -> str:
        told = {option: value for option, value in self._told().items() if option != "method"}
        before = f"{self.method.name}{RERANK}"
        if RERANK in str(told.get("model")):  # in quotes it is no second one
            return f"{before}:" + ",".join(f"{option}={json.dumps(value)}" for option, value in told.items())
        return format_spec(before, told)

    @property
    def embeds(self) -> bool:
        return self.method.embeds

    def check(self, embedder: Embedder) -> None:
        check_search(self.method, embedder)
        get_reranker(self.model)

    def index(self, pool: Pool) -> _Reranking:
        return _Reranking(self.method.index(pool), get_reranker(self.model), pool.texts, self.depth)


@dataclass(frozen=True)
class _Reranking:
    searcher: Index
    reranker: Reranker
    texts: Sequence[str]
    depth: int

    def search(self, queries: Sequence[str], k: int) -> Hits:
        found = self.searcher.search(queries, max(k, self.depth))
        return self._read(queries, found.best(self.depth)).then(found).best(k)

    def _read(self, queries: Sequence[str], found: Hits) -> Hits:
        """The same chunks in the reranker's order; of equal ones the search's stays."""
        rows = []
        some = max(1, _AT_ONCE // self.depth)
        for start in range(0, len(queries), some):
            lists = [found.row(number)[0] for number in range(start, min(start + some, len(queries)))]
            pairs = [(queries[start + i], self.texts[j]) for i, own in enumerate(lists) for j in own.tolist()]
            scores = np.split(rerank_scores(self.reranker, pairs), np.cumsum([len(own) for own in lists])[:-1])
            for own, values in zip(lists, scores, strict=True):
                order = np.argsort(-values, kind="stable")
                rows.append((own[order], values[order]))
        return Hits.of(rows)
