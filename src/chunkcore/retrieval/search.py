"""Exact search by cosine similarity in bounded memory; block size and shards do not change the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chunkcore.columns import release
from chunkcore.errors import ModelError, OptionError
from chunkcore.models.base import Vectors
from chunkcore.options import check_number
from chunkcore.spans import Numbers, Scores


@runtime_checkable
class Rows(Protocol):
    """A matrix of floats that is read in slices of rows: an array, or `SelectedRows`."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, rows: slice | Numbers, /) -> NDArray[np.floating]: ...


def top_k(
    queries: ArrayLike,
    vectors: ArrayLike | Rows,
    k: int,
    *,
    block_bytes: int = 64 * 2**20,
    lengths: NDArray[np.float64] | None = None,
) -> Best:
    """The `k` vectors nearest to each query by cosine similarity, best first; ties by index.

    A float32 matrix product finds candidates. Each is scored again in float64, in an order that depends on the two
    vectors only, and rounded to float32. So equal vectors have equal scores, at any block size and thread count. A zero
    vector has similarity 0 to everything.

    Args:
        queries: shape (q, d).
        vectors: shape (n, d); an array, or `Rows` read block by block.
        k: how many; n if fewer.
        block_bytes: working memory, roughly.
        lengths: the vectors' `row_lengths`, where they are searched again and again: one question takes a tenth of the
            time. The result is the same.

    Raises:
        OptionError: k or block_bytes is under 1.
        ModelError: arrays not two-dimensional or of different widths, or NaN or infinity in them.

    Returns indices (int64) and similarities (float32), each of shape (q, min(k, n)). Time O(q·n·d).

    >>> indices, scores = top_k([[1.0, 0.0]], [[0.0, 1.0], [3.0, 0.0], [3.0, 0.0]], 2)
    >>> indices.tolist(), scores.tolist()
    ([[1, 2]], [[1.0, 1.0]])
    """
    if k < 1 or block_bytes < 1:
        raise OptionError(f"k and block_bytes are at least 1, got k={k}, block_bytes={block_bytes}")
    left = np.asarray(_matrix(queries, "queries"))
    right = _matrix(vectors, "vectors") if lengths is None else as_rows(vectors)
    if len(left) and len(right) and left.shape[1] != right.shape[1]:
        raise ModelError(
            f"queries have {left.shape[1]} dimensions and vectors {right.shape[1]}: embed both with the same model"
        )
    k = min(k, len(right))
    best = Best.none(len(left), k)
    if best.indices.size:
        dimensions = left.shape[1]
        held = max(1, min(len(left), block_bytes // (16 * dimensions)))
        step = max(1, min(held, 256, block_bytes // (40 * dimensions), block_bytes // (100 * k)))
        width = max(1, min(len(right), block_bytes // (40 * dimensions + 16 * step)))
        for start in range(0, len(left), held):
            some = slice(start, start + held)
            best_of_some = Best(best.indices[some], best.scores[some])
            _search(left[some], right, lengths, best_of_some, step, width, block_bytes)
    return best


def row_lengths(vectors: ArrayLike | Rows) -> NDArray[np.float64] | None:
    """Each vector's Euclidean length, 1 of a zero vector, for `top_k`; None where products of float32 may overflow.

    Raises `ModelError`: as `top_k`.
    """
    rows = _matrix(vectors, "vectors")
    lengths = np.ones(len(rows))
    for first in range(0, len(rows), 4096):
        lengths[first : first + 4096] = _norms(rows[first : first + 4096].astype(np.float64))
    return lengths if lengths.min(initial=1.0) > 1e-15 and lengths.max(initial=1.0) < 1e15 else None


def as_rows(values: ArrayLike | Rows) -> Rows:
    """An array-like as an array; `Rows` unchanged."""
    return values if isinstance(values, Rows) else np.asarray(values)


def _matrix(values: ArrayLike | Rows, what: str) -> Rows:
    matrix = as_rows(values)
    if isinstance(matrix, np.ndarray) and matrix.dtype.kind != "f":
        matrix = matrix.astype(np.float64)
    if len(matrix.shape) != 2:
        raise ModelError(f"{what} are a matrix with one row each, got an array of shape {matrix.shape}")
    if not all(np.isfinite(matrix[i : i + 4096]).all() for i in range(0, len(matrix), 4096)):
        raise ModelError(f"{what} hold NaN or infinity: expected finite numbers")
    return matrix


class Best(NamedTuple):
    """The best of each query so far: int64 and float32, each of shape (queries, k); -1 and -inf for none."""

    indices: Numbers
    scores: Vectors

    @classmethod
    def none(cls, queries: int, k: int) -> Best:
        return cls(np.full((queries, k), -1, dtype=np.int64), np.full((queries, k), -np.inf, dtype=np.float32))

    def add(self, rows: Numbers, indices: Numbers, scores: Vectors) -> None:
        """Add candidates of the queries `rows`; ties by index."""
        new = np.unique(rows)
        held, place = np.nonzero(self.indices[new] >= 0)
        rows = np.concatenate((new[held], rows))
        indices = np.concatenate((self.indices[new[held], place], indices))
        scores = np.concatenate((self.scores[new[held], place], scores))
        order = np.lexsort((indices, -scores, rows))
        rows = rows[order]
        rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
        kept = rank < self.indices.shape[1]
        rows, rank, order = rows[kept], rank[kept], order[kept]
        self.indices[rows, rank] = indices[order]
        self.scores[rows, rank] = scores[order]


def _search(
    queries: NDArray[np.floating],
    vectors: Rows,
    lengths: NDArray[np.float64] | None,
    best: Best,
    step: int,
    width: int,
    block_bytes: int,
) -> None:
    unit_queries = unit(queries)
    k = best.indices.shape[1]
    margin = 4.0 * (vectors.shape[1] + 4) * float(np.finfo(np.float32).eps)  # of rounding
    pairs_at_once = max(1, block_bytes // (80 * vectors.shape[1]))
    for start in range(0, len(vectors), width):
        block = vectors[start : start + width]
        scaled = unit(block).T if lengths is None else block.astype(np.float32, copy=False).T
        for first in range(0, len(queries), step):
            some = slice(first, first + step)
            rough = unit_queries[some] @ scaled
            if lengths is not None:
                rough /= lengths[start : start + width]
            # A query with k hits needs no candidate below its last.
            rows, columns = _candidates(rough, k, best.scores[some, -1] - margin, margin)
            for part in range(0, len(rows), pairs_at_once):
                left, right = rows[part : part + pairs_at_once] + first, columns[part : part + pairs_at_once]
                best.add(left, right + start, cosines(queries[left], block[right]))


def unit(rows: NDArray[np.floating]) -> Vectors:
    """Rows scaled to length 1, float32; zero rows stay zero."""
    wide = rows.astype(np.float64)
    norms = _norms(wide)
    return (wide / norms[:, None]).astype(np.float32)


def _norms(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    largest = np.abs(rows).max(axis=1, initial=0.0)
    largest[largest == 0] = 1.0
    scaled = rows / largest[:, None]
    norms: NDArray[np.float64] = np.sqrt((scaled * scaled).sum(axis=1)) * largest
    norms[norms == 0] = 1.0
    return norms


def _candidates(rough: Vectors, k: int, least: Vectors, margin: float) -> tuple[Numbers, Numbers]:
    near = rough >= least[:, None]
    # Finding a row's k-th best takes longer than the product, and late blocks have few candidates.
    many = np.flatnonzero(np.count_nonzero(near, axis=1) > 2 * k)
    if len(many):
        rows_of_many = rough[many]
        near[many] &= rows_of_many >= np.partition(rows_of_many, -k, axis=1)[:, -k, None] - margin
    rows, columns = np.nonzero(near)
    return rows, columns


def cosines(queries: NDArray[np.floating], vectors: NDArray[np.floating]) -> Vectors:
    """Cosine similarities of pairs of rows, summed in float64, rounded to float32."""
    left, right = queries.astype(np.float64), vectors.astype(np.float64)
    left /= _norms(left)[:, None]
    right /= _norms(right)[:, None]
    left *= right
    scores: Vectors = left.sum(axis=1).astype(np.float32)
    return scores


class SelectedRows:
    """Rows of a matrix in any order, with repeats; copied on read.

    >>> SelectedRows(np.array([[1.0], [2.0], [3.0]]), np.array([2, 0, 0]))[0:2].tolist()
    [[3.0], [1.0]]
    """

    def __init__(self, rows: NDArray[np.floating], numbers: Numbers) -> None:
        self._rows = rows
        self._numbers = numbers
        self.shape = (len(numbers), rows.shape[1])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | Numbers) -> NDArray[np.floating]:
        selected = self._rows[self._numbers[rows]]
        release(self._rows)
        return selected

    def products(self, vector: NDArray[np.floating], numbers: Numbers | None = None) -> NDArray[np.floating]:
        """See `products`. A mapped matrix stays in memory, for the next question."""
        if numbers is not None:
            return _dots(self._rows[self._numbers[numbers]], vector)
        if not len(self):
            return np.zeros(0, dtype=self._rows.dtype)
        first = int(self._numbers.min())
        values = _dots(self._rows[first : int(self._numbers.max()) + 1], vector)
        return values[self._numbers - first]

    def __array__(self, dtype: np.dtype[np.floating] | None = None, copy: bool | None = None) -> NDArray[np.floating]:
        return self[:] if dtype is None else self[:].astype(dtype, copy=False)


def select_rows(rows: Rows, numbers: Numbers) -> SelectedRows:
    """These rows, without a copy of a matrix."""
    if isinstance(rows, SelectedRows):
        return SelectedRows(rows._rows, rows._numbers[numbers])
    return SelectedRows(np.asarray(rows), numbers)


def products(rows: Rows, vector: NDArray[np.floating], numbers: Numbers | None = None) -> NDArray[np.floating]:
    """The inner products of these rows (None: of all, without a copy) with the vector.

    >>> products(SelectedRows(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 0, 1])), np.array([1.0, 1.0])).tolist()
    [7.0, 3.0, 7.0]
    """
    if isinstance(rows, SelectedRows):
        return rows.products(vector, numbers)
    held = np.asarray(rows)
    return _dots(held if numbers is None else held[numbers], vector)


# NumPy 2 takes the products of rows one by one, as fast as memory is read: on one core half the time of `matmul`.
_dots: Callable[..., NDArray[np.floating]] = getattr(np, "vecdot", np.matmul)


def best_of(scores: Scores, k: int) -> Numbers:
    """The places of the k best scores, ties by place; -inf is no score."""
    places = np.flatnonzero(scores > -np.inf)  # many equal scores are slow to partition
    if k < len(places):
        some = scores[places]
        places = places[some >= np.partition(some, -k)[-k]]
    best: Numbers = places[np.argsort(-scores[places], kind="stable")[:k]]
    return best


def top_k_owners(
    queries: ArrayLike,
    vectors: ArrayLike | Rows,
    owners: ArrayLike,
    k: int,
    *,
    lengths: NDArray[np.float64] | None = None,
) -> tuple[Numbers, Vectors]:
    """The `k` owners nearest to each query by the best of their vectors, best first; ties by number.

    A query whose best vectors have fewer than k owners is searched twice as deep, until it has k. `owners` is the owner
    of each vector, ascending; each number from 0 to the last occurs; `lengths` is as for `top_k`. Returns owners
    (int64) and cosine similarities (float32), each of shape (q, min(k, owners)).

    Raises:
        OptionError: k is under 1.
        ModelError: see `top_k`; or not one owner per vector.

    >>> owners, scores = top_k_owners([[1.0, 0.0]], [[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]], [0, 0, 1], 2)
    >>> owners.tolist(), scores.tolist()
    ([[0, 1]], [[1.0, 0.0]])
    """
    check_number("k", k, 1)
    owner_of = np.asarray(owners, dtype=np.int64)
    rows, left = as_rows(vectors), np.asarray(queries)
    if len(owner_of) != len(rows):
        raise ModelError(f"there are {len(rows)} vectors and {len(owner_of)} owners: expected one owner a vector")
    count = int(owner_of[-1]) + 1 if len(owner_of) else 0
    if count == len(rows):
        return top_k(left, rows, k, lengths=lengths)
    width = min(k, count)
    best = np.zeros((len(left), width), dtype=np.int64)
    values = np.zeros((len(left), width), dtype=np.float32)
    open_ = np.arange(len(left))
    deep = width
    while len(open_):
        deep = min(2 * deep, len(rows))
        indices, scores = top_k(left[open_], rows, deep, lengths=lengths)
        first = first_of_each(owner_of[indices])
        enough = first.sum(axis=1) >= width
        rank = first.cumsum(axis=1)
        taken = first & (rank <= width) & enough[:, None]
        best[open_[enough]] = owner_of[indices][taken].reshape(-1, width)
        values[open_[enough]] = scores[taken].reshape(-1, width)
        open_ = open_[~enough]
    return best, values


def first_of_each(rows: Numbers) -> NDArray[np.bool_]:
    """Where a number occurs first in its row."""
    order = np.argsort(rows, axis=1, kind="stable")
    ordered = np.take_along_axis(rows, order, axis=1)
    new = np.ones(rows.shape, dtype=np.bool_)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.empty_like(new)
    np.put_along_axis(first, order, new, axis=1)
    return first
