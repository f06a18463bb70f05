"""Stages: what is done with a method's hits, written after it: ``dense+window:1``, ``hybrid+rerank+merge``.

`get_retriever` reads such a string, `load_index` opens a saved index.

To add a stage of one's own that makes passages, subclass `PassageStage` and register it:

>>> @stages.register("both_ends")
... class BothEnds(PassageStage):
...     '''A hit brings the first and the last chunk of its document.'''
...     def order(self, layout, hits, scores):
...         for hit, score in zip(hits.tolist(), scores.tolist()):
...             yield from ((unit, score) for unit in (hit, layout.first[hit], layout.last[hit] - 1))
"""

from __future__ import annotations

import re
import threading
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from chunkcore.errors import ModelError, OptionError, echo
from chunkcore.lazy import needed
from chunkcore.models.base import Embedder, ask_twice, fetch
from chunkcore.options import Bounds, split_spec, suggesting
from chunkcore.plain import encodable
from chunkcore.registry import Registry
from chunkcore.retrieval.base import (
    FIRST_DEPTH,
    MAX_TOKENS,
    Hits,
    Index,
    PassageIndex,
    RetrievalMethod,
    retrievers,
)
from chunkcore.retrieval.budget import Budget, first_cut
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.retrieval.passages.assembly import passage_of
from chunkcore.retrieval.saved import read_index
from chunkcore.retrieval.vectors import TextVectors
from chunkcore.run import Retrieved
from chunkcore.spans import Numbers, Scores
from chunkcore.tokens import TokenCounter

_QUOTED = re.compile(r'(?s)"(?:[^"\\]|\\.)*"')
_SUFFIX = re.compile(r"\+\s*(\w+)\s*(?::|$)")


@dataclass(frozen=True, kw_only=True, eq=False)
class Stage(RetrievalMethod):
    """What is done with the hits of a method. As a string: the method, ``+name`` and the stage's options.

    Subclasses are registered (``@stages.register("name")``) and implement `build`.

    Attributes:
        method: the method before the stage.
    """

    method: RetrievalMethod

    def validate(self) -> None:
        if self.method.makes_passages:
            raise OptionError(
                f"{self.kind} works on chunks, and {self.method.name} makes passages: put +{self.kind} in front of its "
                "last stage, or leave it out"
            )

    @property
    def name(self) -> str:
        return f"{self.method.name}+{super().name}"

    def changed_options(self) -> dict[str, Any]:
        changed = super().changed_options()
        del changed["method"]
        return changed

    @property
    def inner(self) -> tuple[RetrievalMethod, ...]:
        return (self.method,)


stages: Registry[type[Stage]] = Registry(
    "stage",
    "chunkcore.stages",
    base=Stage,
    attribute="kind",
    note="; a stage follows a retriever, as in dense+window",
)


class UnitLayout(NamedTuple):
    """Where the units (chunks) of a corpus are; consecutive units of a document are neighbours.

    Attributes:
        first: of each unit, the first unit of its document: int64.
        last: of each unit, the unit after the last of its document: int64.
        sizes: tokens of each unit, by its chunker: int64.
    """

    first: Numbers
    last: Numbers
    sizes: Numbers


@dataclass(frozen=True, kw_only=True, eq=False)
class PassageStage(Stage):
    """A stage that makes passages of hits: exact spans, disjoint, best first, within a budget of tokens.

    Units are taken in the stage's `order` while the passages that they make fit the budget. Units that are neighbours,
    touch or overlap make one passage, whose span has what stands between them. A passage's score is the best of its
    units' worth; its `parts` are the units, each with the score of its hit, 0 without one. If the first unit is over
    the budget, it is the only passage, cut at its last whole token within the budget.

    With `max_tokens`, as many hits are used as the budget holds; with `k` alone, the first `k` hits.

    Subclasses implement `order`.
    """

    makes_passages = True

    @property
    def least_hits(self) -> int:
        """How many hits `order` must see."""
        return 0

    @abstractmethod
    def order(
        self,
        layout: UnitLayout,
        hits: Numbers,
        scores: Scores,
    ) -> Iterable[tuple[int, float]]:
        """Units with their worth, which never rises, in the order in which they are taken; repeats are ignored."""

    def build(self, corpus: ChunkedCorpus, vectors: TextVectors) -> Index:
        return _Staged(corpus, self.method.index(corpus, vectors))


class _Staged(PassageIndex):
    method: PassageStage

    def rank(
        self,
        queries: Sequence[str],
        k: int,
    ) -> Hits:
        return self.inner[0].rank(queries, k)

    @cached_property
    def _layout(self) -> UnitLayout:
        runs = np.cumsum(np.diff(self.corpus.document_numbers, prepend=-1) != 0)
        first, last = (np.searchsorted(runs, runs, side) for side in ("left", "right"))
        return UnitLayout(first, last, self.corpus.token_counts)

    def passages(
        self,
        queries: Sequence[str],
        k: int | None,
        max_tokens: int | None,
        counter: TokenCounter,
    ) -> list[list[Retrieved]]:
        budget = MAX_TOKENS if k is None and max_tokens is None else max_tokens
        answers: list[list[Retrieved]] = [[] for _ in queries]
        waiting = list(range(len(queries)))
        depth = FIRST_DEPTH if budget else k or 1
        depth = min(max(self.method.least_hits, depth), max(len(self.corpus), 1))
        while waiting:
            hits = self.rank([queries[number] for number in waiting], depth)
            short = []
            for row, number in enumerate(waiting):
                indices, scores = hits.row(row)
                passages, whole = self._passages(indices, scores, budget, counter)
                answers[number] = passages[:k]
                if budget and whole and len(indices) == depth < len(self.corpus):
                    short.append(number)
            waiting, depth = short, 2 * depth
        return answers

    def _passages(
        self,
        hits: Numbers,
        scores: Scores,
        max_tokens: int | None,
        counter: TokenCounter,
    ) -> tuple[list[Retrieved], bool]:
        """The passages of as many units as the budget holds, and whether it holds all."""
        worth: dict[int, float] = {}
        for unit, value in self.method.order(self._layout, hits, scores):
            worth.setdefault(int(unit), value)
        score_of = dict(zip(hits.tolist(), scores.tolist(), strict=True))
        pieces = self.corpus.retrieved
        units = [(unit, replace(pieces[unit], score=score_of.get(unit, 0.0))) for unit in worth]
        if max_tokens is None:
            return self._joined(units, worth), True

        def tokens(count: int) -> int:
            texts = [passage.text for passage in self._joined(units[:count], worth)]
            return int(sum(counter.count_many(texts)))

        count = bisect_right(range(1, len(units) + 1), max_tokens, key=tokens)
        if count:
            return self._joined(units[:count], worth), count == len(units)
        budget = Budget(max_tokens, counter)
        return first_cut([piece for _, piece in units], budget), not units

    def _joined(
        self, units: Sequence[tuple[int, Retrieved]], worth: Mapping[int, float]
    ) -> list[Retrieved]:
        """The passages of units, in their order, each with the greatest worth of its units."""
        pieces = dict(units)
        passages = []
        for group in self._groups(pieces):
            parts = sorted([pieces[unit] for unit in group], key=lambda piece: piece.spans)
            best = max(worth[unit] for unit in group)
            passages.append(passage_of(parts, best, self.corpus.sources))
        return passages

    def _groups(self, pieces: Mapping[int, Retrieved]) -> Iterable[list[int]]:
        """Which units belong together: neighbours of one span each, and those that touch or overlap."""
        first = self._layout.first
        of_one_span = {unit for unit, piece in pieces.items() if len(piece.spans) == 1}
        pairs = [
            (unit, unit + 1)
            for unit in of_one_span
            if unit + 1 in of_one_span and first[unit] == first[unit + 1]
        ]
        spans = [
            (first[unit], span, unit) for unit, piece in pieces.items() for span in piece.spans
        ]
        document, end, last = -1, -1, -1
        for begins, span, unit in sorted(spans):
            if begins == document and span.start <= end:
                pairs.append((last, unit))
            if begins != document or span.end > end:
                document, end, last = begins, span.end, unit
        groups = {unit: [unit] for unit in pieces}
        for one, other in pairs:
            group, others = groups[one], groups[other]
            if group is not others:
                group += others
                groups.update(dict.fromkeys(others, group))
        return {id(group): group for group in groups.values()}.values()


@stages.register("merge")
@dataclass(frozen=True, kw_only=True)
class Merge(PassageStage):
    """Hits that are neighbours, touch or overlap become one passage."""

    def order(
        self,
        layout: UnitLayout,
        hits: Numbers,
        scores: Scores,
    ) -> Iterable[tuple[int, float]]:
        return zip(hits.tolist(), scores.tolist(), strict=True)


@stages.register("window")
@dataclass(frozen=True, kw_only=True)
class Window(PassageStage):
    """A hit brings its neighbours on both sides: the sentence windows of LlamaIndex and Haystack.

    Attributes:
        units: how many on each side; ``+window:2`` is short for ``+window:units=2``. They are taken nearest first.
    """

    leading = "units"

    units: int = 1
    bounds = Bounds(units=1)

    def order(
        self,
        layout: UnitLayout,
        hits: Numbers,
        scores: Scores,
    ) -> Iterator[tuple[int, float]]:
        for hit, score in zip(hits.tolist(), scores.tolist(), strict=True):
            first, last = int(layout.first[hit]), int(layout.last[hit])
            yield hit, score
            for distance in range(1, min(self.units, last - first) + 1):
                yield from (
                    (near, score)
                    for near in (hit - distance, hit + distance)
                    if first <= near < last
                )


@suggesting
def get_retriever(spec: str | RetrievalMethod) -> RetrievalMethod:
    """The retrieval method of a string (or a `RetrievalMethod` unchanged).

    A string has the method's name, its options, and any `stages` with theirs; values as of `get_chunker`.

    Raises `OptionError`: a malformed string, no such method or option, or a bad value.

    >>> get_retriever("bm25:k1=2").name, get_retriever("hybrid:bm25,late,depth=50+rerank:depth=20+window:2").name
    ('bm25:k1=2.0', 'hybrid:bm25,late,depth=50+rerank:depth=20+window:2')
    """
    if isinstance(spec, RetrievalMethod):
        return spec
    if not isinstance(spec, str):
        raise OptionError(
            f"a retriever is a string or a RetrievalMethod; got {type(spec).__name__}"
        )
    parts: list[str] = []
    shown = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), spec)
    for suffix in reversed(list(_SUFFIX.finditer(shown))):
        if suffix[1] in stages:
            method = get_retriever(spec[: suffix.start()])
            _, options = split_spec(spec[suffix.start() :], "retriever", parts)
            if "method" in options:
                raise OptionError(
                    f"{suffix[1]}: the method stands before +{suffix[1]}, as in bm25+{suffix[1]}"
                )
            return stages.get(suffix[1]).read(parts, {**options, "method": method})
    name, options = split_spec(spec, "retriever", parts)
    before, plus, unknown = name.rpartition("+")
    if plus and before.strip() in retrievers:
        stages.get(unknown.strip())
    return retrievers.get(name).read(parts, options)


def load_index(
    folder: Path | str,
    *,
    embedder: Embedder | str | None = None,
) -> Index:
    """The index that `Index.save` wrote. Vectors stay on disk and are read by memory map; no model is loaded until a
    question is embedded.

    `embedder` is the model that made the vectors, where its name alone does not load it, or where it is an endpoint:
    the index may be a stranger's.

    Raises `DataError`: there is no index, it is damaged, of another version, or `embedder` is another model.

    >>> import tempfile
    >>> from chunkcore import Document, chunk_corpus, get_retriever
    >>> fox = Document("fox.txt", "The fox naps at noon. The crow sings at night.")
    >>> index = get_retriever("passages:lexical").index(chunk_corpus([fox], "sentence:size=6"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     loaded = load_index(index.save(folder))
    ...     [passage.text for passage in loaded.retrieve("Who sings?", max_tokens=6)]
    ['The crow sings at night.']
    """
    contents, place = read_index(Path(folder), embedder)
    index = get_retriever(contents.retriever).index(contents.corpus, contents.vectors)
    index.is_loaded = True
    index.saved_place, index.enough = place, contents.enough
    return index


DEFAULT_RERANKER = "cross-encoder/ms-marco-MiniLM-L6-v2"
Reranker = Callable[
    [Sequence[tuple[str, str]]], ArrayLike
]  # a number for each pair of query and text, high is good
_BATCH = 32
_FILES = ("*.json", "*.txt", "model.safetensors")


@cache
def _cross_encoder(source: str) -> Reranker:
    """A cross-encoder by its folder or hub name, loaded by sentence-transformers.

    Longer input than the model reads is truncated, from the longer of query and text first.

    Raises `OptionError`: the model is not found, not reachable, or has several outputs. Raises `MissingExtraError`:
    sentence-transformers is not installed.
    """
    package = needed(
        "sentence_transformers", "models", "rerank with a cross-encoder", "sentence-transformers"
    )
    folder = source if Path(source).is_dir() else str(fetch(source, _FILES))
    try:
        model = package.CrossEncoder(folder)
    except Exception as error:
        raise OptionError(
            f"no reranker {folder!r} ({type(error).__name__}: {str(error).strip().partition(chr(10))[0]}): "
            "expected the folder of a cross-encoder, or the name of one on the hub"
        ) from error
    if getattr(model, "num_labels", 1) != 1:
        raise OptionError(
            f"the reranker {source!r} has {model.num_labels} outputs, and one score is wanted: choose a "
            "cross-encoder for ranking"
        )
    one_call = threading.Lock()

    def rerank(pairs: Sequence[tuple[str, str]]) -> ArrayLike:
        ready = [(encodable(a), encodable(b)) for a, b in pairs]
        with one_call:
            answer: ArrayLike = model.predict(ready, batch_size=_BATCH, show_progress_bar=False)
        return answer

    rerank.__name__ = source
    return rerank


def get_reranker(spec: str | Reranker) -> Reranker:
    """The cross-encoder of a name (the same object each time), see `_cross_encoder`; or a function unchanged.

    Raises `OptionError`: neither a name nor a function.
    """
    if callable(spec):
        return spec
    if not isinstance(spec, str) or not spec.strip():
        raise OptionError(
            f"a reranker is a folder, a name on the hub such as {DEFAULT_RERANKER}, or a function; got {spec!r}"
        )
    return _cross_encoder(spec)


def rerank_scores(
    reranker: Reranker,
    pairs: Sequence[tuple[str, str]],
) -> Scores:
    """One finite score a pair: float64, shape (len(pairs),). Raises `ModelError`: the reranker failed twice."""
    if not pairs:
        return np.empty(0)
    name = f"the reranker {echo(getattr(reranker, '__name__', type(reranker).__name__))}"

    def check(scores: Scores) -> Scores:
        shown = f"an array of shape {scores.shape}"
        if scores.shape == (len(pairs),):
            if np.isfinite(scores).all():
                return scores
            shown = "NaN or infinity"
        raise ModelError(
            f"{name} was given {len(pairs)} pairs and answered with {shown}; expected a finite number a pair"
        )

    failed = f"{name} failed on {len(pairs)} pairs"
    return ask_twice(lambda: np.asarray(reranker(pairs), float), check, failed)


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
    bounds = Bounds(depth=1)

    def check(self, embedder: Embedder) -> None:
        super().check(embedder)
        get_reranker(self.model)

    def build(self, corpus: ChunkedCorpus, vectors: TextVectors) -> Index:
        get_reranker(self.model)  # before the first question
        return _Reranking(corpus, self.method.index(corpus, vectors))


class _Reranking(Index):
    method: Reranked

    def rank(
        self,
        queries: Sequence[str],
        k: int,
    ) -> Hits:
        depth, texts = self.method.depth, self.corpus.texts
        reranker = get_reranker(self.method.model)
        hits = self.inner[0].rank(queries, max(k, depth))
        rows = []
        for number, query in enumerate(queries):
            chunks, _ = hits.best(depth).row(number)
            scores = rerank_scores(reranker, [(query, texts[chunk]) for chunk in chunks.tolist()])
            order = np.argsort(-scores, kind="stable")
            rows.append((chunks[order], scores[order]))
        return Hits.of(rows).then(hits).best(k)
