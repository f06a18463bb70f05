"""`Hybrid`: several rankings as one, by reciprocal rank fusion."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chunkcore.errors import OptionError
from chunkcore.models.base import Embedder
from chunkcore.registry import split_options
from chunkcore.retrieval.base import (
    Hits,
    Index,
    Pool,
    RetrievalMethod,
    Scores,
    Search,
    check_search,
    retrievers,
)
from chunkcore.retrieval.dense import Dense
from chunkcore.retrieval.lexical import BM25
from chunkcore.retrieval.rerank import RERANK, Reranked
from chunkcore.retrieval.search import Indices

__all__ = ["Hybrid", "fuse", "get_retriever"]

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def get_retriever(spec: str | RetrievalMethod) -> RetrievalMethod:
    """The retrieval method that a string describes; a `RetrievalMethod` is handed back as it is.

    A string has the method's name, its options, and ``+rerank`` with the options of the reranker. Values are read as in
    a strategy's string (`get_chunker`).

    Raises:
        OptionError: malformed, no such method or option, a value that it cannot have, or something else than these.

    >>> get_retriever("bm25:k1=2").name, get_retriever("hybrid:bm25,late,k=30+rerank:depth=20").name
    ('bm25:k1=2.0', 'hybrid:bm25,late,k=30+rerank:depth=20')
    """
    if isinstance(spec, RetrievalMethod):
        return spec
    if not isinstance(spec, str):
        raise OptionError(f"a retriever is a string or a RetrievalMethod; got {type(spec).__name__}")
    parts: list[str] = []
    place = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), spec).rfind(RERANK)
    after = spec[place + len(RERANK) :].strip()
    if place >= 0 and after[:1] in ("", ":"):
        return Reranked.over(get_retriever(spec[:place]), parts, split_options(after[1:], spec, "retriever", parts))
    name, _, rest = spec.partition(":")
    options = split_options(rest, spec, "retriever", parts)
    return retrievers.get(name.strip()).read(parts, options)


_SEPARATES = re.compile(r'[=,"\[\]{}]')


@retrievers.register("hybrid")
@dataclass(frozen=True, kw_only=True)
class Hybrid(Search):
    """Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009, equation 1) of several searches.

    A chunk's score is the sum, over the searches that found it, of ``1 / (k + rank)``, ranks counted from 1. Of
    equal ones that comes first which the first search, then the second, put higher.

    The first `depth` of each search are fused. Whoever asks for more than they come to gets, after them, what
    fusing twice as deep adds, and so on: so the first 5 are the same however many are asked for.

    Attributes:
        methods: what is fused. As a string: ``hybrid:dense,bm25``, or quoted, where one has several options:
            ``hybrid:dense,"bm25:k1=2,b=0.5"``.
        k: how little the first ranks stand out; the paper's 60.
        depth: how many of each search are fused.

    Cost: that of the searches, each at least `depth` deep.

    Raises:
        OptionError: fewer than two searches, one of them twice, or an option is out of range.

    >>> Hybrid().name, Hybrid(methods=(Dense(), BM25(k1=2.0)), k=10).name
    ('hybrid', 'hybrid:dense,"bm25:k1=2.0",k=10')
    """

    methods: tuple[RetrievalMethod, ...] = (Dense(), BM25())
    k: int = 60
    depth: int = 100

    def _validate(self) -> None:
        if len(self.methods) < 2:
            raise OptionError(f"hybrid fuses two retrievers or more, got {len(self.methods)}")
        own = [each for each in self.methods if isinstance(each, Search)]
        repeated = [each.name for number, each in enumerate(own) if each in own[:number]]
        if repeated:
            raise OptionError(f"hybrid has {repeated[0]} twice, which finds nothing new: leave one out")
        if self.k < 0:
            raise OptionError(f"hybrid: k is at least 0, got {self.k}")
        if self.depth < 1:
            raise OptionError(f"hybrid: depth is at least 1, got {self.depth}")

    @classmethod
    def read(cls, parts: Sequence[str], options: Mapping[str, Any]) -> Search:

        methods = {"methods": tuple(get_retriever(part) for part in parts)} if parts else {}
        return super().read((), {**options, **methods})

    @property
    def name(self) -> str:
        told = self._told()
        told.pop("methods", None)
        parts = [] if self.methods == Hybrid.methods else [_part(each.name) for each in self.methods]
        parts += [f"{option}={value}" for option, value in told.items()]  # numbers
        return f"hybrid:{','.join(parts)}" if parts else "hybrid"

    @property
    def embeds(self) -> bool:
        return any(method.embeds for method in self.methods)

    def check(self, embedder: Embedder) -> None:
        for method in self.methods:
            check_search(method, embedder)

    def index(self, pool: Pool) -> _Fused:
        return _Fused([method.index(pool) for method in self.methods], self.k, self.depth, len(pool.chunks))


@dataclass(frozen=True)
class _Fused:
    searchers: Sequence[Index]
    k: int
    depth: int
    size: int

    def search(self, queries: Sequence[str], k: int) -> Hits:
        depth = min(self.depth, self.size)
        found, full = self._at(queries, depth)
        while full and found.counts.min(initial=k) < min(k, self.size):
            depth = min(2 * depth, self.size)
            deeper, full = self._at(queries, depth)
            found = found.then(deeper)
        return found.best(k)

    def _at(self, queries: Sequence[str], depth: int) -> tuple[Hits, bool]:
        """The fused ranking, and whether there may be more further down."""
        if depth < 1:
            return Hits.of([]), False
        rankings = [searcher.search(queries, depth) for searcher in self.searchers]
        full = depth < self.size and any((each.counts == depth).any() for each in rankings)
        return fuse(rankings, self.k), full


def fuse(rankings: Sequence[Hits], k: int = 60) -> Hits:
    """The reciprocal rank fusion of rankings of the same queries; see `Hybrid`.

    >>> one, other = np.array([[7, 3]]), np.array([[3, 9]])
    >>> found = fuse([Hits(one, np.zeros((1, 2))), Hits(other, np.zeros((1, 2)))])
    >>> found.indices.tolist(), found.scores.round(4).tolist()  # 1/62 + 1/61, 1/61, 1/62
    ([[3, 7, 9]], [[0.0325, 0.0164, 0.0161]])
    """
    return Hits.of([_fused_row([each.row(row)[0] for each in rankings], k) for row in range(len(rankings[0].indices))])


def _fused_row(lists: Sequence[Indices], k: int) -> tuple[Indices, Scores]:
    together = np.concatenate(lists)
    gains = np.concatenate([1 / (k + 1.0 + np.arange(len(each))) for each in lists])
    distinct, first, place = np.unique(together, return_index=True, return_inverse=True)
    scores = np.bincount(place, gains, minlength=len(distinct)).astype(np.float64)
    order = np.lexsort((first, -scores))
    return distinct[order], scores[order]


def _part(name: str) -> str:
    return json.dumps(name) if _SEPARATES.search(name) else name
