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
        step, width = _block_shape(len(left), len(right), left.shape[1], block_bytes)
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


def _block_shape(queries: int, vectors: int, dimensions: int, block_bytes: int) -> tuple[int, int]:
    """Queries and vectors a block, so that vectors in float32 and the (partly copied) scores fit."""
    step = max(1, min(queries, 256, block_bytes // (40 * dimensions)))
    width = max(1, min(vectors, block_bytes // (40 * dimensions + 16 * step)))
    return step, width


def _search(
    queries: NDArray[np.floating], vectors: NDArray[np.floating], k: int, width: int, block_bytes: int
) -> tuple[Indices, Vectors]:
    """`top_k` of one block of queries: exact bests so far, block of vectors after block of vectors."""
    unit_queries = _unit(queries)
    best = [(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)) for _ in queries]
    margin = _rounding_margin(vectors.shape[1])
    for start in range(0, len(vectors), width):
        block = vectors[start : start + width]
        rough = unit_queries @ _unit(block).T
        for row, candidates in enumerate(_candidates(rough, k, margin, best)):
            if len(candidates):
                exact = _exact(queries[row], block, candidates, block_bytes)
                best[row] = _merge(best[row], (candidates + start, exact), k)
    return np.stack([indices for indices, _ in best]), np.stack([scores for _, scores in best])


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


def _candidates(rough: Vectors, k: int, margin: float, best: list[tuple[Indices, Vectors]]) -> list[Indices]:
    """For each query the columns that may be among its `k` best, in ascending order."""
    if rough.shape[1] > k:
        enough = -np.partition(-rough, k - 1, axis=1)[:, k - 1] - margin
    else:
        enough = np.full(len(rough), -np.inf, dtype=np.float32)
    # Strictly below the worst of k exact bests, there is no way in; equal to it, the lower index is in already.
    known = np.array([scores[-1] - margin if len(scores) == k else -np.inf for _, scores in best])
    keep = rough >= np.maximum(enough, known)[:, None]
    return [np.flatnonzero(row) for row in keep]


def _exact(query: NDArray[np.floating], block: NDArray[np.floating], columns: Indices, block_bytes: int) -> Vectors:
    """Cosine similarities in float64, rounded to float32; each row's sum is taken by itself."""
    wide = query.astype(np.float64)[None, :]
    wide = wide / _norms(wide)[:, None]
    step = max(1, block_bytes // (48 * block.shape[1]))
    scores = np.empty(len(columns), dtype=np.float32)
    for start in range(0, len(columns), step):
        rows = block[columns[start : start + step]].astype(np.float64)
        scores[start : start + step] = (rows / _norms(rows)[:, None] * wide).sum(axis=1)
    return scores


def _merge(old: tuple[Indices, Vectors], new: tuple[Indices, Vectors], k: int) -> tuple[Indices, Vectors]:
    """The `k` best of both. All of `old` have lower indices than any of `new`, and both are stable."""
    indices = np.concatenate((old[0], new[0]))
    scores = np.concatenate((old[1], new[1]))
    order = np.lexsort((indices, -scores))[:k]
    return indices[order], scores[order]
