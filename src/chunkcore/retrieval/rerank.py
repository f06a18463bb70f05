"""`Reranked`: the best of a search, read again together with the query."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chunkcore.chunkers.spec import format_spec
from chunkcore.errors import OptionError
from chunkcore.models.base import Embedder
from chunkcore.retrieval.base import Search, Searcher, SearchMethod, check_search
from chunkcore.retrieval.pool import Pool
from chunkcore.retrieval.ranked import Ranked
from chunkcore.retrieval.rerankers import DEFAULT_RERANKER, Reranker, get_reranker, rerank_scores

__all__ = ["RERANK", "Reranked"]

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

    method: SearchMethod
    model: Any = DEFAULT_RERANKER
    depth: int = 50

    def _validate(self) -> None:
        if self.depth < 1:
            raise OptionError(f"rerank: depth is at least 1, got {self.depth}")

    @classmethod
    def over(cls, method: SearchMethod, parts: Sequence[str], options: Mapping[str, Any]) -> Search:
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
    searcher: Searcher
    reranker: Reranker
    texts: Sequence[str]
    depth: int

    def search(self, queries: Sequence[str], k: int) -> Ranked:
        found = self.searcher.search(queries, max(k, self.depth))
        return self._read(queries, found.best(self.depth)).then(found).best(k)

    def _read(self, queries: Sequence[str], found: Ranked) -> Ranked:
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
        return Ranked.of(rows)
