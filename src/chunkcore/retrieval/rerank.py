"""`Reranked`: a method's hits in the order of a reranker, which reads the query and each text together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chunkcore.errors import ModelError, OptionError, echo
from chunkcore.escaping import encodable
from chunkcore.lazy import needed
from chunkcore.models.base import Embedder, ask_twice, fetch
from chunkcore.options import Bounds
from chunkcore.retrieval.base import Hits, Index
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.retrieval.stage import Stage, stages
from chunkcore.retrieval.vectors import TextVectors
from chunkcore.spans import Scores

DEFAULT_RERANKER = "cross-encoder/ms-marco-MiniLM-L6-v2"
Reranker = Callable[
    [Sequence[tuple[str, str]]], ArrayLike
]  # a number for each pair of query and text, high is good
_AT_ONCE = 4096  # pairs per reranker call
_BATCH = 32
_FILES = ("*.json", "*.txt", "model.safetensors")


class CrossEncoder:
    """A cross-encoder by its folder or hub name, loaded by sentence-transformers, as a `Reranker`.

    Longer input than the model reads is truncated, from the longer of query and text first.

    Raises `OptionError`: the model is not found, not reachable, or has several outputs. Raises `MissingExtraError`:
    sentence-transformers is not installed.
    """

    def __init__(self, source: str) -> None:
        self.__name__ = source
        package = needed(
            "sentence_transformers",
            "models",
            "rerank with a cross-encoder",
            "sentence-transformers",
        )
        folder = source if Path(source).is_dir() else str(fetch(source, _FILES))
        try:
            self._model: Any = package.CrossEncoder(folder)
        except Exception as error:
            raise OptionError(
                f"no reranker {folder!r} ({type(error).__name__}: {str(error).strip().partition(chr(10))[0]}): "
                "expected the folder of a cross-encoder, or the name of one on the hub"
            ) from error
        if getattr(self._model, "num_labels", 1) != 1:
            raise OptionError(
                f"the reranker {source!r} has {self._model.num_labels} outputs, and one score is wanted: choose a "
                "cross-encoder for ranking"
            )
        self._one_call = threading.Lock()

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """The model's output for each pair: float32, shape (len(pairs),)."""
        ready = [(encodable(a), encodable(b)) for a, b in pairs]
        with self._one_call:
            answer: NDArray[np.float32] = self._model.predict(
                ready, batch_size=_BATCH, show_progress_bar=False
            )
        return answer


def get_reranker(spec: str | Reranker) -> Reranker:
    """The cross-encoder of a name (the same object each time), see `CrossEncoder`; or a function unchanged.

    Raises `OptionError`: neither a name nor a function.
    """
    if callable(spec):
        return spec
    if not isinstance(spec, str) or not spec.strip():
        raise OptionError(
            f"a reranker is a folder, a name on the hub such as {DEFAULT_RERANKER}, or a function; got {spec!r}"
        )
    return _cross_encoder(spec)


_cross_encoder = cache(CrossEncoder)


def rerank_scores(
    reranker: Reranker,
    pairs: Sequence[tuple[str, str]],
) -> Scores:
    """One finite score a pair: float64, shape (len(pairs),). Raises `ModelError`: the reranker failed twice."""
    if not pairs:
        return np.empty(0)
    name = f"the reranker {echo(getattr(reranker, '__name__', type(reranker).__name__))}"

    def check(scores: Scores) -> Scores:
        if scores.shape != (len(pairs),) or not np.isfinite(scores).all():
            shown = (
                f"an array of shape {scores.shape}"
                if scores.shape != (len(pairs),)
                else "NaN or infinity"
            )
            raise ModelError(
                f"{name} was given {len(pairs)} pairs and answered with {shown}; expected a finite number a pair"
            )
        return scores

    failed = f"{name} failed on {len(pairs)} pairs"
    return ask_twice(
        lambda: np.asarray(reranker(pairs), dtype=np.float64),
        check,
        failed,
    )


@stages.register("rerank")
@dataclass(frozen=True, kw_only=True)
class Reranked(Stage):
    """A method whose first results are put in the order in which a reranker scores them (Nogueira and Cho, 2019).

    As a string: any method and ``+rerank``, such as ``hybrid+rerank:model=cross-encoder/ms-marco-MiniLM-L6-v2``. The
    reranker reads a chunk's context with its text. Ties keep the method's order.

    Attributes:
        model: a cross-encoder's folder or its name on the hub, or a function of pairs of query and text to numbers.
        depth: how many of each query are read again. The others keep their order, below them.

    Cost: that of the method, and `depth` readings of query and chunk a query.

    Raises `OptionError`: depth is under 1; when indexing, the model is not found.
    """

    model: Any = DEFAULT_RERANKER
    depth: int = 50
    bounds: ClassVar[Bounds] = {"depth": 1}

    def check(self, embedder: Embedder) -> None:
        super().check(embedder)
        get_reranker(self.model)

    def build(
        self,
        corpus: ChunkedCorpus,
        vectors: TextVectors | None = None,
    ) -> Index:
        return _Reranking(
            corpus, self.method.index(corpus, vectors), get_reranker(self.model), self.depth
        )


class _Reranking(Index):
    def __init__(
        self,
        corpus: ChunkedCorpus,
        index: Index,
        reranker: Reranker,
        depth: int,
    ) -> None:
        super().__init__(corpus)
        self._index = index
        self._reranker = reranker
        self._depth = depth

    def rank(
        self,
        queries: Sequence[str],
        k: int,
    ) -> Hits:
        hits = self._index.rank(queries, max(k, self._depth))
        rows = []
        texts = self.corpus.texts
        some = max(1, _AT_ONCE // self._depth)
        for start in range(0, len(queries), some):
            numbers = range(start, min(start + some, len(queries)))
            lists = [hits.row(number)[0][: self._depth] for number in numbers]
            pairs = [
                (queries[start + i], texts[j])
                for i, chunks in enumerate(lists)
                for j in chunks.tolist()
            ]
            scores = np.split(
                rerank_scores(self._reranker, pairs),
                np.cumsum([len(chunks) for chunks in lists])[:-1],
            )
            for chunks, values in zip(lists, scores, strict=True):
                order = np.argsort(-values, kind="stable")
                rows.append((chunks[order], values[order]))
        return Hits.of(rows).then(hits).best(k)
