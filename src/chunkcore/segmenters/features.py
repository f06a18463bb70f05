"""What the trained segmenter reads of each sentence: its vector, and how alike the text is on both sides of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from chunkcore.models.base import Vectors
from chunkcore.segmenters.texttiling import Floats, block_similarities, depths

__all__ = ["sentence_features"]


def sentence_features(vectors: Vectors, windows: tuple[int, ...]) -> Vectors:
    """One row a sentence: float32, shape (n, d + 2 · windows).

    The first d columns are its unit vector. Then for each window the similarity of the blocks of sentences before the
    gap that precedes the sentence and after it, and that similarity's depth, as TextTiling has them: standardised over
    the text, because what is a low similarity differs from text to text, and 0 for the first sentence. O(n·d) time
    and memory.

    >>> sentence_features(np.eye(2, dtype=np.float32)[[0, 0, 1, 1]], (1,)).astype(float).round(2).tolist()
    [[1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.71, -0.71], [0.0, 1.0, -1.41, 1.41], [0.0, 1.0, 0.71, -0.71]]
    """
    columns = [_unit(vectors)]
    for window in windows:
        similarities = block_similarities(vectors, window)
        columns += [_standardised(similarities), _standardised(depths(similarities))]
    return np.hstack(columns)


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    lengths[lengths < 1e-12] = 1.0
    unit: Vectors = (vectors / lengths[:, None]).astype(np.float32)
    return unit


def _standardised(values: Floats) -> NDArray[np.float32]:
    """As a column, for the sentences after the gaps; the first sentence's is 0."""
    column = np.zeros((len(values) + 1, 1), dtype=np.float32)
    if len(values):
        column[1:, 0] = (values - values.mean()) / (values.std() + 1e-6)
    return column
