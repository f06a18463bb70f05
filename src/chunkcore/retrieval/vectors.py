"""`TextVectors`: each distinct text is embedded once; `top_k`: exact search by cosine similarity in bounded memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import chain, islice
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from chunkcore.columns import LazySequence, blocks, concatenate, release, text_keys
from chunkcore.concurrency import Progress, no_progress
from chunkcore.errors import DataError, ModelError
from chunkcore.models.base import (
    Embedder,
    Vectors,
    counts_tokens,
    embed,
    row_lengths,
    unit_rows,
)
from chunkcore.models.late import LateEmbedder
from chunkcore.models.loading import DEFAULT_MODEL, CachedEmbedder, get_embedder
from chunkcore.options import check_number
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.spans import Floats, Numbers, Scores

# NumPy 2 takes the products of rows one by one, as fast as memory is read: on one core half the time of `matmul`.
_dots: Callable[..., Floats] = getattr(np, "vecdot", np.matmul)
EMBEDDED_AT_ONCE = 512  # texts, between two calls of `progress`
MEMORY = 256 * 2**20  # bytes of vectors; larger arrays go to a temporary file
WORKING = 64 * 2**20  # bytes that a search works in, roughly
_LONGEST = 1e15  # of a vector: products of longer ones may be too large for float32
RowsKind = Literal["texts", "late", "norms"]  # see these methods of `TextVectors`
OTHER_QUESTIONS = (  # what they have in common with a collection is chance
    "What is the capital of Mongolia?",
    "How is sourdough bread baked?",
    "Who won the football world cup in 1998?",
    "How do I tie a bow tie?",
    "What is the boiling point of ethanol?",
    "Which planet has the most moons?",
    "Who painted the Mona Lisa?",
    "How long do cats live?",
    "What are the rules of chess?",
    "When did the Roman Empire end?",
    "How do vaccines work?",
    "How tall is Mount Everest?",
    "Who wrote Hamlet?",
    "How do I grow tomatoes?",
    "What is the square root of two?",
    "Which words rhyme with orange?",
)


class LazyRows(ABC):
    """Rows that are read when somebody needs them."""

    shape: tuple[int, ...]

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def __getitem__(self, rows: slice | Numbers) -> Floats: ...

    def __array__(
        self,
        dtype: np.dtype[np.floating] | None = None,
        copy: bool | None = None,
    ) -> Floats:
        return np.asarray(self[:], dtype)


Rows: TypeAlias = Floats | LazyRows  # a matrix of floats that is read in slices of rows


def top_k(
    queries: ArrayLike,
    vectors: ArrayLike | Rows,
    k: int,
    *,
    owners: Numbers | None = None,
    lengths: Scores | None = None,
) -> tuple[Numbers, Vectors]:
    """The `k` owners of the vectors nearest to each query by cosine similarity, best first; ties by number.

    A float32 product finds candidates. Each is scored again in float64, in an order that depends on the two vectors
    only, and rounded to float32: equal vectors have equal scores, at any block size and thread count. A zero vector has
    similarity 0 to everything. Time O(q·n·d), working memory of about 200 MB.

    Args:
        queries: shape (q, d).
        vectors: shape (n, d); an array, or `Rows` read block by block.
        k: how many; all if fewer.
        owners: the owner of each vector, ascending; each number from 0 to the last occurs. By default each vector is
            its own. An owner has the score of its best vector.
        lengths: the vectors' `search_lengths`, where they are searched again and again: ten times as fast.

    Returns owners (int64) and similarities (float32), each of shape (q, min(k, owners)).

    Raises `ModelError`: arrays not two-dimensional or of different widths, or NaN or infinity in them; `OptionError`: k
    is under 1.

    >>> indices, scores = top_k([[1.0, 0.0]], [[0.0, 1.0], [3.0, 0.0], [3.0, 0.0]], 2)
    >>> indices.tolist(), scores.tolist()
    ([[1, 2]], [[1.0, 1.0]])
    >>> top_k([[1.0, 0.0]], [[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]], 2, owners=np.array([0, 0, 1]))[0].tolist()
    [[0, 1]]
    """
    check_number("k", k, 1)
    left = np.asarray(queries)
    right = vectors if isinstance(vectors, LazyRows) else np.asarray(vectors)
    query_lengths = search_lengths(left, "queries")
    if lengths is None:
        lengths = search_lengths(right)
    owner_of = np.arange(len(right)) if owners is None else owners
    firsts = np.flatnonzero(np.diff(owner_of, prepend=-1))
    k = min(k, len(firsts))
    best = np.zeros((len(left), k), np.int64)
    values = np.zeros((len(left), k), np.float32)
    if not best.size:
        return best, values
    dimensions, width = left.shape[1], right.shape[1]
    if dimensions != width:
        raise ModelError(
            f"queries have {dimensions} dimensions and vectors {width}: embed both with the same model"
        )
    directions = (left / query_lengths[:, None]).astype(np.float32)
    margin = 4.0 * (dimensions + 4) * float(np.finfo(np.float32).eps)  # of rounding
    step = max(1, WORKING // (4 * len(right)))
    for start in range(0, len(left), step):
        rough = _rough_cosines(directions[start : start + step], right, lengths)
        units = unit_rows(left[start : start + step])
        for row, rough_scores in enumerate(rough):
            of_owners = rough_scores
            if len(firsts) < len(right):
                of_owners = np.maximum.reduceat(rough_scores, firsts)
            least = np.partition(of_owners, -k)[-k] - margin
            columns = np.flatnonzero(rough_scores >= least)
            scores = _cosines(units[row], right, columns)
            order = np.lexsort((columns, -scores))
            if len(firsts) < len(right):
                _, met = np.unique(owner_of[columns[order]], return_index=True)
                order = order[np.sort(met)]  # where the best owners are met first
            chosen = order[:k]
            best[start + row], values[start + row] = owner_of[columns[chosen]], scores[chosen]
    return best, values


def _rough_cosines(directions: Vectors, vectors: Rows, lengths: Scores) -> Vectors:
    rough = np.empty((len(directions), len(vectors)), np.float32)
    size = max(1, WORKING // (8 * directions.shape[1]))
    for start in range(0, len(vectors), size):
        block = vectors[start : start + size].astype(np.float32, copy=False)
        np.matmul(directions, block.T, out=rough[:, start : start + size])
    rough /= lengths
    return rough


def _cosines(unit: Scores, vectors: Rows, columns: Numbers) -> Vectors:
    """The similarities of a query, of length 1, and of some of the vectors."""
    scores = np.empty(len(columns), np.float32)
    size = max(1, WORKING // (80 * len(unit)))
    for start in range(0, len(columns), size):
        some = slice(start, start + size)
        products = unit * unit_rows(vectors[columns[some]])
        scores[some] = products.sum(axis=1)
    return scores


def search_lengths(rows: Rows, what: str = "vectors") -> Scores:
    """Each vector's Euclidean length, 1 of a zero vector, for `top_k`.

    Raises `ModelError`: the vectors are no matrix, or hold NaN, infinity or numbers of which float32 has no products.
    """
    if len(rows.shape) != 2:
        raise ModelError(
            f"{what} are a matrix with one row each, got an array of shape {rows.shape}"
        )
    lengths = np.ones(len(rows))
    for first in range(0, len(rows), 4096):
        lengths[first : first + 4096] = row_lengths(rows[first : first + 4096])[:, 0]
    if not (lengths < _LONGEST).all():
        raise ModelError(f"{what} hold NaN or infinity: expected finite numbers")
    return lengths


class SelectedRows(LazyRows):
    """Rows of a matrix in any order, with repeats; copied on read.

    >>> SelectedRows(np.array([[1.0], [2.0], [3.0]]), np.array([2, 0, 0]))[0:2].tolist()
    [[3.0], [1.0]]
    """

    def __init__(self, matrix: Floats, numbers: Numbers) -> None:
        self.matrix, self.numbers = matrix, numbers
        self.shape = (len(numbers), matrix.shape[1])

    def __getitem__(self, rows: slice | Numbers) -> Floats:
        selected = self.matrix[self.numbers[rows]]
        release(self.matrix)
        return selected


def select_rows(rows: Rows, numbers: Numbers) -> SelectedRows:
    """These rows, without a copy of a matrix."""
    if isinstance(rows, SelectedRows):
        return SelectedRows(rows.matrix, rows.numbers[numbers])
    return SelectedRows(np.asarray(rows), numbers)


def products(rows: Rows, vector: Floats) -> Floats:
    """The inner products of the rows with the vector, without a copy of a matrix, which stays in memory.

    >>> products(SelectedRows(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 0, 1])), np.array([1.0, 1.0])).tolist()
    [7.0, 3.0, 7.0]
    """
    if not len(rows):
        return np.zeros(0)
    if not isinstance(rows, SelectedRows):
        return _dots(np.asarray(rows), vector)
    numbers = rows.numbers
    first = int(numbers.min())
    values = _dots(rows.matrix[first : int(numbers.max()) + 1], vector)
    return np.asarray(values[numbers - first])


class TextVectors:
    """The vectors of corpora and queries by one embedder, computed when first needed.

    Args:
        embedder: an embedder, or a name, loaded when needed.
        corpora: embedded together: each distinct text once, in blocks, longest first. Others are embedded alone.
        progress: called with a step ("embed" or "queries"), the count done, and the total.
        fingerprint: of the model that made vectors that are held already; None: any.

    >>> from types import SimpleNamespace
    >>> from chunkcore.text import Chunk, Document, Span
    >>> ones = lambda texts: np.array([[len(text), 1] for text in texts], dtype=np.float32)
    >>> model = SimpleNamespace(name="m", fingerprint="m", max_tokens=None, embed_documents=ones, embed_queries=ones)
    >>> parts = ((Span(0, 3),), (Span(4, 5),))
    >>> chunks = [Chunk("d", 0, (Span(0, 5),), "fox a", 1, segments=parts), Chunk("d", 1, (Span(6, 8),), "ow", 1)]
    >>> corpus = ChunkedCorpus(chunks, [Document("d", "fox a ow")])
    >>> rows, owners = TextVectors(model).chunks(corpus)  # "fox", "a", their mean, "ow"
    >>> rows.tolist(), owners.tolist()
    ([[3.0, 1.0], [1.0, 1.0], [2.0, 1.0], [2.0, 1.0]], [0, 0, 0, 1])
    """

    def __init__(
        self,
        embedder: Embedder | str = DEFAULT_MODEL,
        corpora: Sequence[ChunkedCorpus] = (),
        *,
        progress: Progress | None = None,
        fingerprint: str | None = None,
    ) -> None:
        self._embedder = embedder
        self._corpora = corpora
        self._progress = progress or no_progress
        self._fingerprint = fingerprint
        self._held: list[tuple[ChunkedCorpus, RowsKind, Rows]] = []
        self._queries: tuple[dict[str, int], Vectors] = {}, np.zeros((0, 1), np.float32)
        self._ahead = 0  # texts that `embed_ahead` embedded

    @cached_property
    def embedder(self) -> Embedder:
        """The model. Raises `DataError`: it has another fingerprint than the one that made the vectors."""
        model = get_embedder(self._embedder)
        if self._fingerprint not in (None, model.fingerprint):
            raise DataError(
                f"the index was made with another model: its vectors are of fingerprint {self._fingerprint!r}, "
                f"{model.name!r} has {model.fingerprint!r}; give load_index the embedder= that made it, or index again"
            )
        return model

    @cached_property
    def late_embedder(self) -> LateEmbedder:
        """The embedder of whole documents. Raises `OptionError` if the model gives no contextual token vectors."""
        return LateEmbedder(self.embedder)

    def hold(
        self,
        corpus: ChunkedCorpus,
        rows: Rows,
        kind: RowsKind = "texts",
    ) -> None:
        """Take the vectors of a corpus, or what was measured on them, which are not computed again."""
        self._held.append((corpus, kind, rows))

    def held(self, corpus: ChunkedCorpus) -> dict[RowsKind, Rows]:
        """The vectors of a corpus that are there, by kind."""
        return {kind: rows for other, kind, rows in self._held if other is corpus}

    def updated(
        self,
        before: ChunkedCorpus,
        added: ChunkedCorpus,
        joined: ChunkedCorpus,
        places: Numbers,
    ) -> TextVectors:
        """The vectors of `ChunkedCorpus.joined`, of each kind that is held of `before`: only `added` is embedded."""
        vectors = TextVectors(self.embedder)
        for kind in self.held(before).keys() - {"norms"}:
            rows, owners = self._rows(before, kind)
            chunks = places[owners]
            if len(added):
                more, owners = self._rows(added, kind)
                rows = np.concatenate((rows[:], more[:])) if len(rows) else more
                chunks = np.append(chunks, places[len(before) + owners])
            order = np.argsort(chunks, kind="stable")
            vectors.hold(joined, rows[order[chunks[order] >= 0]], kind)
        return vectors

    def norms(self, corpus: ChunkedCorpus) -> Rows | None:
        """What `Passages` measured on the vectors of a corpus, or of its whole, a row a chunk; None: nothing yet."""
        if corpus.parent is None:
            return self.held(corpus).get("norms")
        norms = self.held(corpus.parent).get("norms")
        return None if norms is None else norms[corpus.places]

    def chunks(
        self,
        corpus: ChunkedCorpus,
        *,
        cluster_only: bool = False,
    ) -> tuple[Rows, Numbers]:
        """The rows to search and each row's chunk, ascending: every text's row, and the mean row of chunks with several
        texts. With `cluster_only`, chunks of several texts have their mean only.

        Source: Nguyen et al. (2025), section 3.1. Raises `ModelError`: the model failed twice.
        """
        vectors, owners = self._rows(corpus, "texts")
        _, firsts, counts = np.unique(owners, return_index=True, return_counts=True)
        if len(firsts) == len(owners):
            return vectors, owners
        held = np.asarray(vectors)
        means = np.add.reduceat(held.astype(float), firsts, axis=0) / counts[:, None]
        several = counts > 1
        ends = (firsts + counts)[several]
        rows = np.insert(held, ends, means[several].astype(np.float32), axis=0)
        chunk_of_row = np.insert(owners, ends, owners[ends - 1])
        if cluster_only:
            last = np.cumsum(counts + several) - 1
            return rows[last], chunk_of_row[last]
        return rows, chunk_of_row

    def late(self, corpus: ChunkedCorpus) -> tuple[Rows, Numbers]:
        """One row per chunk, the mean of its tokens' vectors in its document; and 0, 1, 2, ...

        Raises as `LateEmbedder.embed_chunks`; and `OptionError`: the model gives no contextual token vectors.
        """
        return self._rows(corpus, "late")

    def _rows(self, corpus: ChunkedCorpus, kind: RowsKind) -> tuple[Rows, Numbers]:
        """One row for each of the corpus's `embedded_texts`, or for each of its chunks; and the chunk of each. Those of
        a selection are read from the whole's. Raises `ModelError`: the model failed twice.
        """
        is_late = kind == "late"
        owners = np.arange(len(corpus), dtype=np.int64) if is_late else corpus.owners
        if corpus.parent is not None:
            rows, others = self._rows(corpus.parent, kind)
            return select_rows(rows, np.flatnonzero(np.isin(others, corpus.places))), owners
        if kind not in self.held(corpus):
            embed = self._embed_late if is_late else self._embed_texts
            corpora: Sequence[ChunkedCorpus] = [corpus]
            if any(other is corpus for other in self._corpora):
                corpora = self._corpora
            embed(corpora)
        return self.held(corpus)[kind], owners

    def queries(self, texts: Sequence[str]) -> Vectors:
        """One row per query; those of the last call are kept. Raises `ModelError`: the model failed twice."""
        places, vectors = self._queries  # another thread may ask meanwhile
        if not places.keys() >= set(texts):
            places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
            self._progress("queries", 0, len(places))
            vectors = self.embed(list(places), queries=True)
            self._queries = places, vectors
            self._progress("queries", len(places), len(places))
        return vectors[[places[text] for text in texts]]

    @cached_property
    def of_others(self) -> Vectors:
        """Of `OTHER_QUESTIONS`."""
        return self.embed(OTHER_QUESTIONS, queries=True)

    def embed_ahead(
        self,
        texts: Sequence[str],
        later: int,
    ) -> None:
        """Embed texts together that are needed one by one later; the embedder keeps them. About `later` more follow."""
        unique, _ = distinct_texts([texts])
        order = _mixed(self._lengths(unique))
        for _ in self._embedded(LazySequence(unique.__getitem__, order.tolist()), later):
            pass  # a `CachedEmbedder` has them now
        self._ahead = len(unique)

    def _embed_texts(self, corpora: Sequence[ChunkedCorpus]) -> None:
        texts, places = distinct_texts([corpus.embedded_texts for corpus in corpora])
        order = np.arange(len(texts))
        if len(corpora) > 1:
            order = _mixed(self._lengths(texts))
        row = np.argsort(order)
        in_order = LazySequence(texts.__getitem__, order.tolist())
        matrix = concatenate(self._embedded(in_order), MEMORY)
        for corpus, numbers in zip(corpora, places, strict=True):
            self.hold(corpus, SelectedRows(matrix, row[numbers]))

    def _lengths(self, texts: Sequence[str]) -> Numbers:
        """The texts' tokens, or characters where the model does not count."""
        if counts_tokens(self.embedder):
            return self.embedder.count_tokens(texts)
        return np.array([len(text) for text in texts], np.int64)

    def _embedded(self, texts: Sequence[str], later: int = 0) -> Iterator[Vectors]:
        done = dimensions = 0
        total = self._ahead + len(texts) + later
        self._progress("embed", self._ahead, total)
        for some in blocks(texts, EMBEDDED_AT_ONCE):
            vectors = self.embed(list(some))
            if done and vectors.shape[1] != dimensions:
                raise ModelError(
                    f"vectors of {dimensions} dimensions, then {vectors.shape[1]}: expected the same"
                )
            dimensions = vectors.shape[1]
            done += len(some)
            self._progress("embed", self._ahead + done, total)
            yield vectors

    def _embed_late(self, corpora: Sequence[ChunkedCorpus]) -> None:
        chunks = chain.from_iterable(corpora)
        distinct = {(chunk.document_id, chunk.spans): chunk for chunk in chunks}
        vectors = self.late_embedder.embed_chunks(
            corpora[0].documents,
            list(distinct.values()),
            progress=partial(self._progress, "embed"),
        )
        places = {key: place for place, key in enumerate(distinct)}
        for corpus in corpora:
            rows = [places[chunk.document_id, chunk.spans] for chunk in corpus]
            self.hold(corpus, vectors[rows], "late")

    def embed(
        self,
        texts: Sequence[str],
        *,
        queries: bool = False,
    ) -> Vectors:
        """One row per text, which is not kept. Raises `ModelError`: the model failed twice."""
        model = self.embedder
        if isinstance(model, CachedEmbedder):  # it checks and retries by itself
            return model.embed_queries(texts) if queries else model.embed_documents(texts)
        return embed(model, texts, queries=queries)


def distinct_texts(sequences: Sequence[Sequence[str]]) -> tuple[Sequence[str], list[Numbers]]:
    """The distinct texts in order of first occurrence, read when needed; and of each sequence its texts' places there.

    >>> texts, places = distinct_texts([["a", "b"], ["c", "b", "a"]])
    >>> list(texts), [numbers.tolist() for numbers in places]
    (['a', 'b', 'c'], [[0, 1], [2, 1, 0]])
    """
    keys = np.concatenate([text_keys([]), *map(text_keys, sequences)])
    begins = np.cumsum([0, *map(len, sequences)])
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)

    def text(number: int) -> str:
        owner = int(np.searchsorted(begins, number, side="right")) - 1
        return sequences[owner][number - int(begins[owner])]

    texts = LazySequence(text, first[order].tolist())
    return texts, np.split(np.argsort(order)[which], begins[1:-1])


def _mixed(lengths: Numbers) -> Numbers:
    """An order in which a model's batches are of one length, and each block has long and short texts: its time
    foretells that of the others.
    """
    order = np.argsort(-lengths, kind="stable")
    half = EMBEDDED_AT_ONCE // 2
    groups = [order[start : start + half] for start in range(0, len(order), half)]
    turns = chain.from_iterable(zip(groups, reversed(groups), strict=True))
    return np.concatenate([order[:0], *islice(turns, len(groups))])
