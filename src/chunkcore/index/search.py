"""`top_k`: exact search by cosine similarity, in blocks, with an answer that the blocks do not change."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chunkcore.errors import ModelError, OptionError
from chunkcore.models.base import Vectors

__all__ = ["top_k"]

Indices = NDArray[np.int64]


def top_k(queries: ArrayLike, vectors: ArrayLike, k: int, *, block_bytes: int = 64 * 2**20) -> tuple[Indices, Vectors]:
    """The `k` vectors nearest to each query, best first; of equal ones the lower index first.

    A float32 matrix product finds the candidates; these are scored again in float64 by a sum whose order
    depends on nothing but the two vectors, and rounded to float32. So equal vectors have equal scores, and
    neither block size nor the matrix library's threads change an answer. A vector of zeros is at
    similarity 0 to everything.

    Args:
        queries: shape (q, d).
        vectors: shape (n, d).
        k: how many are wanted; where n is less, there are n.
        block_bytes: about how much memory the search may take beside its arguments and its answer.

    Returns:
        Indices (int64) and cosine similarities (float32), each of shape (q, min(k, n)).

    Raises:
        OptionError: k is under 1, or block_bytes is.
        ModelError: the arrays are not two-dimensional, of different widths, or hold NaN or infinity.

    Time O(q·n·d).

    >>> indices, scores = top_k([[1.0, 0.0]], [[0.0, 1.0], [3.0, 0.0], [3.0, 0.0]], 2)
    >>> indices.tolist(), scores.tolist()
    ([[1, 2]], [[1.0, 1.0]])
    """
    if k < 1 or block_bytes < 1:
        raise OptionError(f"k and block_bytes are at least 1, got k={k}, block_bytes={block_bytes}")
    left, right = _matrix(queries, "queries"), _matrix(vectors, "vectors")
    if len(left) and len(right) and left.shape[1] != right.shape[1]:
        raise ModelError(
            f"queries have {left.shape[1]} dimensions and vectors {right.shape[1]}: embed both with the same model"
        )
    k = min(k, len(right))
    indices = np.zeros((len(left), k), dtype=np.int64)
    scores = np.zeros((len(left), k), dtype=np.float32)
    if indices.size:
        step, width = _block_shape(len(left), len(right), left.shape[1], k, block_bytes)
        for start in range(0, len(left), step):
            block = slice(start, start + step)
            indices[block], scores[block] = _search(left[block], right, k, width, block_bytes)
    return indices, scores


def _matrix(values: ArrayLike, what: str) -> NDArray[np.floating]:
    matrix = np.asarray(values)
    if matrix.dtype.kind != "f":
        matrix = matrix.astype(np.float64)
    if matrix.ndim != 2:
        raise ModelError(f"{what} are a matrix with one row each, got an array of shape {matrix.shape}")
    if not all(np.isfinite(matrix[i : i + 4096]).all() for i in range(0, len(matrix), 4096)):
        raise ModelError(f"{what} hold NaN or infinity: expected finite numbers")
    return matrix


def _block_shape(queries: int, vectors: int, dimensions: int, k: int, block_bytes: int) -> tuple[int, int]:
    """Queries and vectors a block, so that vectors in float32, the (partly copied) scores and the bests fit."""
    step = max(1, min(queries, 256, block_bytes // (40 * dimensions), block_bytes // (100 * k)))
    width = max(1, min(vectors, block_bytes // (40 * dimensions + 16 * step)))
    return step, width


class _Best:
    """The `k` best of each of some queries so far: rows, columns and scores, sorted by row, score and column."""

    def __init__(self, queries: int, k: int) -> None:
        self.k = k
        self.rows = np.empty(0, dtype=np.int64)
        self.columns = np.empty(0, dtype=np.int64)
        self.scores = np.empty(0, dtype=np.float32)
        self.worst = np.full(queries, -np.inf, dtype=np.float32)

    def add(self, rows: Indices, columns: Indices, scores: Vectors) -> None:
        rows = np.concatenate((self.rows, rows))
        columns = np.concatenate((self.columns, columns))
        scores = np.concatenate((self.scores, scores))
        order = np.lexsort((columns, -scores, rows))
        rows = rows[order]
        rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
        order, rows, rank = order[rank < self.k], rows[rank < self.k], rank[rank < self.k]
        self.rows, self.columns, self.scores = rows, columns[order], scores[order]
        # Of a query that has k, what is below the last of them has no way in any more.
        self.worst[rows[rank == self.k - 1]] = self.scores[rank == self.k - 1]


def _search(
    queries: NDArray[np.floating], vectors: NDArray[np.floating], k: int, width: int, block_bytes: int
) -> tuple[Indices, Vectors]:
    """`top_k` of one block of queries: exact bests so far, block of vectors after block of vectors."""
    unit_queries = _unit(queries)
    margin = _rounding_margin(vectors.shape[1])
    pairs_at_once = max(1, block_bytes // (80 * vectors.shape[1]))
    best = _Best(len(queries), k)
    for start in range(0, len(vectors), width):
        block = vectors[start : start + width]
        rows, columns = _candidates(unit_queries @ _unit(block).T, k, margin, best.worst)
        for some in range(0, len(rows), pairs_at_once):
            left, right = rows[some : some + pairs_at_once], columns[some : some + pairs_at_once]
            best.add(left, right + start, _exact(queries[left], block[right]))
    return best.columns.reshape(len(queries), k), best.scores.reshape(len(queries), k)


def _rounding_margin(dimensions: int) -> float:
    """Twice what a float32 dot product of unit vectors can be off by, and a last digit for scores as given."""
    return 4.0 * (dimensions + 4) * float(np.finfo(np.float32).eps)


def _unit(rows: NDArray[np.floating]) -> Vectors:
    wide = rows.astype(np.float64)
    norms = _norms(wide)
    return (wide / norms[:, None]).astype(np.float32)


def _norms(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Lengths; 1 for a row of zeros, whose products are 0 anyway. Scaled first, so that no square overflows."""
    largest = np.abs(rows).max(axis=1, initial=0.0)
    largest[largest == 0] = 1.0
    scaled = rows / largest[:, None]
    norms: NDArray[np.float64] = np.sqrt((scaled * scaled).sum(axis=1)) * largest
    norms[norms == 0] = 1.0
    return norms


def _candidates(rough: Vectors, k: int, margin: float, worst: Vectors) -> tuple[Indices, Indices]:
    """Rows and columns that may be among the `k` best of their row, in order."""
    least = worst - margin
    if rough.shape[1] > k:
        least = np.maximum(least, -np.partition(-rough, k - 1, axis=1)[:, k - 1] - margin)
    rows, columns = np.nonzero(rough >= least[:, None])
    return rows, columns


def _exact(queries: NDArray[np.floating], vectors: NDArray[np.floating]) -> Vectors:
    """Cosine similarities of pairs of rows, in float64, rounded to float32; each row's sum is taken by itself."""
    left, right = queries.astype(np.float64), vectors.astype(np.float64)
    left /= _norms(left)[:, None]
    right /= _norms(right)[:, None]
    left *= right
    scores: Vectors = left.sum(axis=1).astype(np.float32)
    return scores
