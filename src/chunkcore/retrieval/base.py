"""What a way of searching must be able to do, as two protocols; and the options and names of those that are here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from chunkcore.columns import Mapped
from chunkcore.document import Chunk, Document
from chunkcore.errors import DataError, OptionError
from chunkcore.models.base import Embedder, Vectors, embed
from chunkcore.models.late import LateEmbedder
from chunkcore.models.loading import DEFAULT_MODEL, get_embedder
from chunkcore.registry import Registry, check_option_names, check_options, format_spec, plain_options
from chunkcore.retrieval.search import Indices, Rows, chunk_vectors, searched_texts

__all__ = [
    "Hits",
    "Index",
    "Pool",
    "RetrievalMethod",
    "Search",
    "SearchRecall",
    "check_search",
    "retrievers",
]

Scores = NDArray[np.float64]


class Hits(NamedTuple):
    """The best of each query, best first.

    Attributes:
        indices: into what was searched, each once a query; -1 after the last where a query has fewer than others:
            int64, shape (queries, at most k).
        scores: higher is better, nowhere rising in a row: float64, the same shape; -inf beside -1.
    """

    indices: Indices
    scores: Scores

    @classmethod
    def of(cls, rows: Sequence[tuple[Indices, Scores]]) -> Hits:
        """Rows of different lengths, side by side.

        >>> Hits.of([(np.array([2, 0]), np.array([0.5, 0.1])), (np.array([1]), np.array([0.3]))]).indices.tolist()
        [[2, 0], [1, -1]]
        """
        width = max((len(indices) for indices, _ in rows), default=0)
        found = cls(np.full((len(rows), width), -1, dtype=np.int64), np.full((len(rows), width), -np.inf))
        for row, (indices, scores) in enumerate(rows):
            found.indices[row, : len(indices)] = indices
            found.scores[row, : len(scores)] = scores
        return found

    @property
    def counts(self) -> Indices:
        """How many each query has."""
        return np.asarray((self.indices >= 0).sum(axis=1), dtype=np.int64)

    def row(self, number: int) -> tuple[Indices, Scores]:
        """One query's indices and scores."""
        count = int((self.indices[number] >= 0).sum())
        return self.indices[number, :count], self.scores[number, :count]

    def best(self, k: int) -> Hits:
        """The best k of each query."""
        return Hits(self.indices[:, :k], self.scores[:, :k])

    def then(self, more: Hits) -> Hits:
        """What this found, and after it what else `more` found, in its order.

        The scores of those are lowered to the last before them, so that sorting by score keeps the order.

        >>> first = Hits(np.array([[3]]), np.array([[0.2]]))
        >>> first.then(Hits(np.array([[1, 3, 0]]), np.array([[0.9, 0.2, 0.1]])))
        Hits(indices=array([[3, 1, 0]]), scores=array([[0.2, 0.2, 0.1]]))
        """
        rows = []
        for number in range(len(self.indices)):
            indices, scores = self.row(number)
            others, values = more.row(number)
            new = ~np.isin(others, indices)
            together = np.concatenate((scores, values[new]))
            rows.append((np.concatenate((indices, others[new])), np.minimum.accumulate(together)))
        return Hits.of(rows)


@dataclass(frozen=True)
class SearchRecall:
    """Measured on a sample of a run's own questions.

    Attributes:
        share: of the best `depth` that exact search finds, how many the approximate one found; the questions' mean.
        queries: how many questions were asked both ways.
        depth: how many of the best were compared.

    >>> print(SearchRecall(0.9731, 100, 10))
    97.3 % of the best 10 chunks that exact search finds, measured on 100 questions
    """

    share: float
    queries: int
    depth: int

    def __str__(self) -> str:
        asked = "1 question" if self.queries == 1 else f"{self.queries:,} questions"
        best = "best chunk" if self.depth == 1 else f"best {self.depth:,} chunks"
        return f"{100 * self.share:.1f} % of the {best} that exact search finds, measured on {asked}"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; `from_dict` is its inverse."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SearchRecall:
        """What `to_dict` described.

        Raises:
            DataError: a part is missing or no number of its range.
        """
        share, queries, depth = (data.get(name) for name in ("share", "queries", "depth"))
        if not (isinstance(share, int | float) and 0 <= share <= 1 and type(queries) is int and type(depth) is int):
            raise DataError(f"an approximate search tells a share of 0 to 1, queries and depth; got {data!r:.80}")
        return cls(float(share), queries, depth)


class Pool:
    """Chunks, and what a search may need to know of them. Nothing is embedded before it is asked for.

    Args:
        chunks: what is found.
        documents: those that the chunks were cut from; only late chunking reads them.
        embedder: of chunks and queries, or the name of one. It is not loaded before it is needed.

    Raises:
        DataError: something among the chunks is no `Chunk`, or a segment lies outside its chunk.
    """

    def __init__(
        self, chunks: Sequence[Chunk], *, documents: Sequence[Document] = (), embedder: Embedder | str = DEFAULT_MODEL
    ) -> None:
        self.chunks = chunks
        self.documents = documents
        self._embedder = embedder
        self.embedded_texts, self.owners = _searched_texts(chunks)

    @property
    def embedder(self) -> Embedder:
        """Of chunks and queries."""
        return get_embedder(self._embedder)

    @property
    def texts(self) -> Sequence[str]:
        """Of each chunk its context, where it has one, and its text: what searches by words read."""
        return Mapped(attrgetter("embedded_text"), self.chunks)

    def vectors(self, *, cluster_only: bool = False) -> tuple[Rows, Indices]:
        """The rows that are searched, and which chunk each is of, ascending; see `chunk_vectors`.

        Raises:
            ModelError: the model failed, or answered with something that is no answer, twice.
        """
        return chunk_vectors(self._vectors, self.owners, cluster_only=cluster_only)

    @cached_property
    def _vectors(self) -> Vectors:
        return embed(self.embedder, self.embedded_texts)

    def late_vectors(self) -> tuple[Rows, Indices]:
        """One row a chunk, the mean of its tokens as they were read with their document; and 0, 1, 2, ...

        Raises:
            OptionError: the model has no token vectors with context.
            DataError: a chunk's document is not among the documents.
            ModelError: the model failed, or answered with something that is no answer, twice.
        """
        return self._late, np.arange(len(self.chunks), dtype=np.int64)

    @cached_property
    def _late(self) -> Vectors:
        return LateEmbedder(self.embedder).embed_chunks(self.documents, self.chunks)

    @property
    def portable_embedder(self) -> Embedder:
        """The embedder as it can be sent to another process."""
        return self.embedder

    def note_progress(self, done: int, total: int) -> None:
        """A search that has the chunks embedded elsewhere tells here how far that is; a run shows it."""

    def note_embedding(self, seconds: float, tokens: NDArray[np.integer] | None = None) -> None:
        """A search that has the chunks embedded elsewhere tells here that it did; a run counts it as its cost.

        Args:
            seconds: what it took.
            tokens: of each of the `embedded_texts`, as the embedder counts; None: they are counted here.

        Raises:
            DataError: in a run, these are more or fewer than the texts.
        """

    def note_search(self, recall: SearchRecall) -> None:
        """A search that is approximate tells here what it found of what there was; a run puts it into its report."""

    def query_vectors(self, queries: Sequence[str]) -> Vectors:
        """One row a query.

        Raises:
            ModelError: the model failed, or answered with something that is no answer, twice.
        """
        return embed(self.embedder, queries, queries=True)


def _searched_texts(chunks: Sequence[Chunk]) -> tuple[Sequence[str], Indices]:
    """`searched_texts`, made when they are asked for where each chunk has one."""
    segmented = False
    for chunk in chunks:
        if not isinstance(chunk, Chunk):
            raise DataError(f"an index holds chunkcore Chunks, got {type(chunk).__name__}")
        segmented = segmented or bool(chunk.segments)
    if segmented:
        return searched_texts(chunks)
    return Mapped(attrgetter("embedded_text"), chunks), np.arange(len(chunks), dtype=np.int64)


@runtime_checkable
class Index(Protocol):
    """A pool of chunks, indexed."""

    def search(self, queries: Sequence[str], k: int) -> Hits:
        """The best `k` chunks of each query, best first; fewer where no more are found.

        The best 5 are the first 5 of the best 10: how deep one looks changes nothing above.
        """
        ...


@runtime_checkable
class RetrievalMethod(Protocol):
    """A way of searching chunks: whoever has these is one.

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> @dataclass(frozen=True)
    ... class Longest:
    ...     name: str = "longest"
    ...     embeds: bool = False
    ...     def index(self, pool: Pool) -> "Order":
    ...         return Order(np.argsort([-len(text) for text in pool.texts], kind="stable"))
    >>> @dataclass(frozen=True)
    ... class Order:
    ...     order: np.ndarray
    ...     def search(self, queries, k):
    ...         return Hits.of([(self.order[:k], -np.arange(float(min(k, len(self.order)))))] * len(queries))
    >>> isinstance(Longest(), RetrievalMethod)
    True
    """

    @property
    def name(self) -> str:
        """How tables name it."""
        ...

    @property
    def embeds(self) -> bool:
        """Whether it asks the pool for vectors: then its results are another embedder's with another embedder."""
        ...

    def index(self, pool: Pool) -> Index:
        """Make the chunks ready to be searched, once for all queries."""
        ...


@dataclass(frozen=True, kw_only=True)
class Search(ABC):
    """A `RetrievalMethod` with options, which a string can describe; see `get_retriever`."""

    kind: ClassVar[str] = ""

    def __post_init__(self) -> None:
        check_options(self)
        self._validate()

    def _validate(self) -> None:
        """Raise `OptionError` where an option is out of range."""

    @abstractmethod
    def index(self, pool: Pool) -> Index:
        """Make the chunks ready to be searched, once for all queries."""

    def check(self, embedder: Embedder) -> None:
        """Find out before the long work whether what it needs is there.

        Raises:
            OptionError: a model is not to be had, or can't do what is asked of it.
            MissingExtraError: a package is not installed.
        """

    @classmethod
    def read(cls, parts: Sequence[str], options: Mapping[str, Any]) -> Search:
        """The search that a string describes by parts without a name, and by options.

        Raises:
            OptionError: no such option, or a value that it cannot have.
        """
        if parts:
            raise OptionError(f"{cls.kind} takes options as option=value, got {parts[0]!r}")
        check_option_names(f"the retriever {cls.kind}", options, [field.name for field in fields(cls)])
        return cls(**options)

    @property
    def embeds(self) -> bool:
        """Whether it asks the pool for vectors."""
        return True

    @property
    def name(self) -> str:
        """The shortest string that describes it: only the options that differ from their defaults."""
        return format_spec(self.kind, self._told())

    def _told(self) -> dict[str, Any]:
        return plain_options(self, changed=True)


retrievers: Registry[type[Search]] = Registry(
    "retriever",
    "chunkcore.retrievers",
    base=Search,
    attribute="kind",
    note=", with or without +rerank after it",
)


def check_search(method: RetrievalMethod, embedder: Embedder) -> None:
    """`Search.check`, of a method that has it."""
    if isinstance(method, Search):
        method.check(embedder)
