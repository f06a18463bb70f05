"""`Dbscan`: clusters of sentences in dense neighbourhoods, in any number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkcore.chunkers.base import strategies
from chunkcore.chunkers.semantic import Floats, SentenceClusters, Sentences, near_pairs, row_blocks
from chunkcore.errors import DataError, OptionError
from chunkcore.lazy import needed
from chunkcore.options import check_ranges

_MOST_PAIRS = 20_000_000


@strategies.register("dbscan")
@dataclass(frozen=True, kw_only=True)
class Dbscan(SentenceClusters):
    """Clusters of sentences that need not be neighbours, found where sentences are dense.

    Qu, Tu and Bao, "Is Semantic Chunking Worth the Computational Cost?" (2024), section 2 ("Clustering-based Semantic
    Chunker") and appendix A: scikit-learn's DBSCAN (Ester et al., 1996) over the joint distance of `SingleLinkage`. A
    sentence with at least `min_samples` sentences within `eps`, itself included, is a core. Cores within `eps` form a
    cluster with the sentences within `eps` of them. A sentence without a cluster is a chunk. The paper has no maximum;
    here a cluster over `size` is packed in order.

    Attributes:
        eps: the distance within which sentences are neighbours; over 0. The paper tried 0.1 to 0.5.
        min_samples: how many sentences make a core; at least 1. The paper tried 1 to 5.

    Cost: one call of the model for the distinct sentences; then O(n²·d) time and O(n·d + p) memory for n sentences of d
    dimensions and p pairs within `eps`.

    Raises `DataError`: more than 20 million pairs (about 1.5 GB) are within `eps`, or a text has more than 100,000
    sentences.
    """

    eps: float = 0.3
    min_samples: int = 2

    def validate(self) -> None:
        super().validate()
        if self.eps <= 0:
            raise OptionError(f"eps is over 0, got {self.eps}")
        check_ranges(self, min_samples=1)

    def clusters(self, sentences: Sentences) -> NDArray[np.int64]:
        cluster = needed("sklearn.cluster", "clustering", "cluster sentences with DBSCAN", "scikit-learn")
        graph = _neighbours(sentences.unit, self.position_weight, self.eps)
        fitted = cluster.DBSCAN(eps=self.eps, min_samples=self.min_samples, metric="precomputed").fit(graph).labels_
        labels: NDArray[np.int64] = np.array(fitted, dtype=np.int64)
        noise = np.flatnonzero(labels < 0)
        labels[noise] = len(labels) + noise
        return labels


def _neighbours(unit: Floats, position_weight: float, eps: float) -> Any:
    """Distances of at most `eps`, as a sparse matrix with rows sorted by distance."""
    from scipy.sparse import csr_array  # type: ignore[import-untyped,unused-ignore]

    count, pairs = len(unit), 0
    blocks = []
    for rows in row_blocks(count):
        blocks.append(near_pairs(unit, position_weight, eps, rows, np.arange(count), count))
        pairs += len(blocks[-1][0])
        if pairs > _MOST_PAIRS:
            raise DataError(
                f"dbscan: of the text's {count} sentences more than {_MOST_PAIRS:,} pairs are within eps={eps}, which "
                "would take too much memory: lower eps, raise position_weight, or cut the text into documents first"
            )
    left, right, distances = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    diagonal = np.arange(count)
    row, column = np.concatenate((left, right, diagonal)), np.concatenate((right, left, diagonal)).astype(np.int32)
    data = np.concatenate((distances, distances, np.zeros(count)))
    order = np.lexsort((column, data, row))
    ends = np.cumsum(np.bincount(row + 1, minlength=count + 1))
    return csr_array((data[order], column[order], ends), shape=(count, count))
