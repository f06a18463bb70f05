"""The pools of an experiment: each distinct text of all strategies is embedded once, when the first search asks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from chunkcore.columns import KeyedNumbers, Keys, Mapped, blocks, text_keys
from chunkcore.concurrency import Progress
from chunkcore.document import Chunk, Document, Span
from chunkcore.errors import DataError
from chunkcore.models.base import Embedder, TokenCountingEmbedder, Vectors
from chunkcore.models.cache import CachedEmbedder
from chunkcore.models.late import LateEmbedder
from chunkcore.retrieval.base import Pool, SearchRecall
from chunkcore.retrieval.search import Indices, Rows, SelectedRows, chunk_vectors, keep_vectors

__all__ = ["Asked", "Bill", "Distinct", "MeteredEmbedder", "RunPool", "Shared"]


class Bill:
    """What was asked of a `MeteredEmbedder` for a while.

    Attributes:
        calls: how many batches the distinct texts were, had none been embedded before.
        seconds: the time that they took then.
    """

    def __init__(self) -> None:
        self._texts = KeyedNumbers(np.bool_)
        self.calls = 0
        self.seconds = 0.0

    @property
    def texts(self) -> Keys:
        """The keys of the distinct texts, in ascending order."""
        return self._texts.keys

    def add(self, keys: Keys) -> int:
        """Note distinct texts; how many of them are new to this bill."""
        new = int(np.count_nonzero(~self._texts.of(keys)[1]))
        self._texts.add(keys, np.ones(len(keys), dtype=np.bool_))
        return new


class MeteredEmbedder:
    """A `CachedEmbedder` that times itself.

    The time of a call is split among the texts that it embedded or found in the cache for the first time,
    by their length in characters. What a strategy's texts cost is then the same whether another strategy
    had asked for them before or not. Texts are remembered by their keys: a million of them are a gigabyte.

    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> ones = lambda texts: np.ones((len(texts), 2), dtype=np.float32)
    >>> model = SimpleNamespace(name="m", fingerprint="m", max_tokens=None, embed_documents=ones, embed_queries=ones)
    >>> metered = MeteredEmbedder(CachedEmbedder(model))
    >>> metered.embed_documents(["a", "b"]).shape, metered.cost(["a"]) == metered.cost(["b"]) > 0
    ((2, 2), True)
    """

    def __init__(self, embedder: CachedEmbedder) -> None:
        self.embedder = embedder
        self.name = embedder.name
        self.fingerprint = embedder.fingerprint
        self.max_tokens = embedder.max_tokens
        self.symmetric = embedder.symmetric
        self._costs = KeyedNumbers(np.float64)
        self._tokens = KeyedNumbers(np.int64)
        self._bill = Bill()
        # One call at a time, so that waiting for another thread's call is not counted as work.
        self._lock = threading.RLock()

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One row a text: float32, shape (len(texts), dimensions)."""
        return self._timed(self.embedder.embed_documents, texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """One row a query: float32, shape (len(texts), dimensions)."""
        return self._timed(self.embedder.embed_queries, texts)

    def batches(self, texts: int) -> int:
        """How many batches so many distinct texts are."""
        return -(-texts // self.embedder.batch_size)

    def tokens(self, texts: Sequence[str]) -> NDArray[np.int64] | None:
        """How long each text is to the model, int64; None where it can't say. Each is counted once."""
        if not isinstance(self.embedder, TokenCountingEmbedder):
            return None
        keys = text_keys(texts)
        with self._lock:
            unknown = np.flatnonzero(~self._tokens.of(keys)[1])
            if len(unknown):
                firsts = np.sort(unknown[np.unique(keys[unknown], return_index=True)[1]])
                self.note_tokens(keys[firsts], self.embedder.count_tokens([texts[i] for i in firsts.tolist()]))
            return self._tokens.of(keys)[0]

    def note_tokens(self, keys: Keys, counts: NDArray[np.integer]) -> None:
        """How long texts are, where somebody else has counted."""
        with self._lock:
            self._tokens.add(keys, counts)

    def token_counts(self, keys: Keys) -> NDArray[np.int64] | None:
        """How long each text is that was counted, by its key, int64; None where the model can't say.

        Raises:
            LookupError: one of them was not.
        """
        if not isinstance(self.embedder, TokenCountingEmbedder):
            return None
        counts, known = self._tokens.of(keys)
        if not known.all():
            raise LookupError(f"{np.count_nonzero(~known):,} of {len(keys):,} texts were never counted")
        return counts

    def tokens_read(self, keys: Keys) -> int | None:
        """How many tokens the model reads of distinct texts that it embedded; None where it can't say."""
        counts = self.token_counts(keys)
        if counts is None or self.max_tokens is None:
            return None if counts is None else int(counts.sum())
        return int(np.minimum(counts, self.max_tokens).sum())

    def cost(self, texts: Sequence[str] | Keys) -> float:
        """Seconds that the distinct ones among these texts, or keys of texts, took."""
        keys = texts if isinstance(texts, np.ndarray) else text_keys(texts)
        return float(self._costs.of(np.unique(keys))[0].sum())

    @contextmanager
    def billed(self) -> Iterator[Bill]:
        """Note what is asked for in the block, by whichever thread."""
        bill = self._bill = Bill()
        try:
            yield bill
        finally:
            self._bill = Bill()

    def _timed(self, embed: Callable[[Sequence[str]], Vectors], texts: Sequence[str]) -> Vectors:
        with self._lock:
            began = time.perf_counter()
            vectors = embed(texts)
            seconds = time.perf_counter() - began
            keys, first = np.unique(text_keys(texts), return_index=True)
            lengths = np.array([len(texts[i]) for i in first.tolist()], dtype=np.float64)
            new = ~self._costs.of(keys)[1]
            self._costs.add(keys[new], seconds * lengths[new] / (lengths[new].sum() or 1))
            self.tokens(texts)
            self._bill.calls += self.batches(self._bill.add(keys))
            self._bill.seconds += time.perf_counter() - began
        return vectors


T = TypeVar("T")


class Asked:
    """What a search asked its pool for, the seconds until it was answered, and what it told of itself.

    `elsewhere` is the part of the seconds in which chunks were embedded by others than the run's embedder.
    """

    def __init__(self) -> None:
        self.chunks = False
        self.late = False
        self.queries = False
        self.seconds = 0.0
        self.elsewhere = 0.0
        self.search_recall: SearchRecall | None = None


class Late(NamedTuple):
    """The vectors of each strategy's chunks, and what reading the documents took."""

    vectors: list[Vectors]
    seconds: float
    tokens: int


class Distinct:
    """The distinct ones of several sequences of texts, in the order in which they come first.

    Attributes:
        texts: the distinct ones, made when they are asked for.
        rows: of each sequence, the number of each of its texts among them.

    >>> found = Distinct([["a", "b"], ["c", "b", "a"]])
    >>> list(found.texts), [rows.tolist() for rows in found.rows]
    (['a', 'b', 'c'], [[0, 1], [2, 1, 0]])
    """

    def __init__(self, given: Sequence[Sequence[str]]) -> None:
        keys = np.concatenate([text_keys([]), *map(text_keys, given)])
        bases = np.cumsum([0, *map(len, given)])
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(first)
        row = np.empty_like(order)
        row[order] = np.arange(len(order))
        self.rows: list[Indices] = np.split(row[which], bases[1:-1])
        firsts = first[order]
        owners = np.searchsorted(bases, firsts, side="right") - 1
        places = firsts - bases[owners]
        self.texts = Mapped(lambda number: given[owners[number]][int(places[number])], range(len(order)))


class Shared:
    """What all strategies of a run have in common: the documents, the embedder, and the vectors.

    Args:
        chunks: of each strategy.
        documents: the benchmark's.
        metered: the run's embedder.
        report: told of "embed" and "queries".
    """

    def __init__(
        self,
        chunks: Sequence[Sequence[Chunk]],
        documents: Sequence[Document],
        metered: MeteredEmbedder,
        report: Progress,
    ) -> None:
        self.documents = documents
        self.metered = metered
        self._report = report
        self.pools = [RunPool(own, number, self) for number, own in enumerate(chunks)]
        self._queries: tuple[tuple[str, ...], Vectors] | None = None

    @cached_property
    def distinct(self) -> Distinct:
        """Each distinct text of all strategies, and which of them each strategy has."""
        return Distinct([pool.embedded_texts for pool in self.pools])

    @cached_property
    def vectors(self) -> Rows:
        """A row for each distinct text; a file, where they are many. They are embedded block by block."""
        texts = self.distinct.texts
        vectors = keep_vectors(self._embedded(texts), len(texts))
        self._report("embed", len(texts), len(texts))
        return vectors

    def _embedded(self, texts: Sequence[str]) -> Iterator[Vectors]:
        done = 0
        for some in blocks(texts):
            self._watch("embed", done, len(texts) if len(some) < len(texts) else 0)
            yield self.metered.embed_documents(list(some))
            done += len(some)

    @cached_property
    def late(self) -> Late:
        """Late chunking: all strategies' chunks from one reading of each document."""
        reader = LateEmbedder(self.metered)
        places: dict[tuple[str, tuple[Span, ...]], int] = {}
        distinct: list[Chunk] = []
        rows = []
        for pool in self.pools:
            for chunk in pool.chunks:
                if places.setdefault((chunk.document_id, chunk.spans), len(distinct)) == len(distinct):
                    distinct.append(chunk)
            rows.append([places[chunk.document_id, chunk.spans] for chunk in pool.chunks])
        began = time.perf_counter()
        vectors = reader.embed_chunks(self.documents, distinct, progress=lambda *done: self._report("embed", *done))
        seconds = time.perf_counter() - began
        tokens = sum(reader.tokens_read(document.text) for document in self.documents)
        return Late([vectors[own] for own in rows], seconds, tokens)

    def query_vectors(self, queries: Sequence[str]) -> Vectors:
        """One row a query; the same queries are embedded once."""
        asked = tuple(queries)
        if self._queries is None or self._queries[0] != asked:
            self._watch("queries")
            self._queries = asked, self.metered.embed_queries(queries)
        return self._queries[1]

    def note_progress(self, done: int, total: int) -> None:
        """So many of a strategy's chunks have been embedded elsewhere."""
        self._report("embed", done, total)

    def _watch(self, step: str, before: int = 0, of: int = 0) -> None:
        self.metered.embedder.progress = lambda done, total: self._report(step, before + done, of or total)


class RunPool(Pool):
    """One strategy's chunks, with the vectors that the run shares, and a note of what is asked for."""

    def __init__(self, chunks: Sequence[Chunk], number: int, shared: Shared) -> None:
        super().__init__(chunks, documents=shared.documents, embedder=shared.metered)
        self._number = number
        self._shared = shared
        self._asked = Asked()

    @contextmanager
    def noted(self) -> Iterator[Asked]:
        """Note what is asked for in the block."""
        self._asked = Asked()
        yield self._asked

    @property
    def keys(self) -> Keys:
        """Of its distinct texts, in ascending order."""
        return np.unique(text_keys(self.embedded_texts))

    def vectors(self, *, cluster_only: bool = False) -> tuple[Rows, Indices]:
        self._asked.chunks = True
        own = self._timed(lambda: _selected(self._shared.vectors, self._shared.distinct.rows[self._number]))
        return chunk_vectors(own, self.owners, cluster_only=cluster_only)

    def late_vectors(self) -> tuple[Vectors, Indices]:
        self._asked.late = True
        own = self._timed(lambda: self._shared.late.vectors[self._number])
        return own, np.arange(len(self.chunks), dtype=np.int64)

    def query_vectors(self, queries: Sequence[str]) -> Vectors:
        self._asked.queries = True
        return self._timed(lambda: self._shared.query_vectors(queries))

    @property
    def portable_embedder(self) -> Embedder:
        return self._shared.metered.embedder

    def note_progress(self, done: int, total: int) -> None:
        self._shared.note_progress(done, total)

    def note_embedding(self, seconds: float, tokens: NDArray[np.integer] | None = None) -> None:
        if tokens is not None and len(tokens) != len(self.embedded_texts):
            raise DataError(f"{len(tokens)} counts were told of {len(self.embedded_texts)} texts: expected one each")
        self._asked.chunks = True
        self._asked.seconds += seconds
        self._asked.elsewhere += seconds
        done = 0
        for some in blocks(self.embedded_texts):
            texts = list(some)
            if tokens is None:
                self._shared.metered.tokens(texts)
            else:
                self._shared.metered.note_tokens(text_keys(texts), tokens[done : done + len(texts)])
            done += len(texts)

    def note_search(self, recall: SearchRecall) -> None:
        self._asked.search_recall = recall

    def _timed(self, ask: Callable[[], T]) -> T:
        began = time.perf_counter()
        answer = ask()
        self._asked.seconds += time.perf_counter() - began
        return answer


def _selected(vectors: Rows, rows: Indices) -> Rows:
    """An array's rows as an array; a file's, read when they are searched."""
    return vectors[rows] if isinstance(vectors, np.ndarray) else SelectedRows(vectors, rows)
