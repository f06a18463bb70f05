"""`Dbscan`: clusters of sentences in dense neighbourhoods, in any number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkcore.chunkers.base import strategies
from chunkcore.chunkers.semantic import Floats, SentenceClusters, Sentences, joint_distances, row_blocks
from chunkcore.errors import DataError, MissingExtraError, OptionError
from chunkcore.registry import check_ranges

__all__ = ["Dbscan"]

_MOST_PAIRS = 20_000_000


@strategies.register("dbscan")
@dataclass(frozen=True, kw_only=True)
class Dbscan(SentenceClusters):
    """Clusters of sentences that need not be neighbours, found where sentences are dense.

    Qu, Tu and Bao, "Is Semantic Chunking Worth the Computational Cost?" (2024), section 2 ("Clustering-based Semantic
    Chunker") and appendix A: scikit-learn's DBSCAN (Ester et al., 1996) over the joint distance of `SingleLinkage`. A
    sentence with at least `min_samples` sentences within `eps`, itself included, is a core. Cores within `eps` form a
    cluster with the sentences within `eps` of them. A sentence without a cluster is a chunk. The paper has no maximum;
    here a cluster over `max_size` is packed in order.

    Attributes:
        eps: the distance within which sentences are neighbours; over 0. The paper tried 0.1 to 0.5.
        min_samples: how many sentences make a core; at least 1. The paper tried 1 to 5.

    Cost: one call of the model for the distinct sentences; then O(n²·d) time and O(n·d + p) memory for n sentences of d
    dimensions and p pairs within `eps`.

    Raises:
        DataError: more than 20 million pairs (about 0.7 GB) are within `eps`.
    """

    eps: float = 0.3
    min_samples: int = 2

    def validate(self) -> None:
        super().validate()
        if self.eps <= 0:
            raise OptionError(f"eps is over 0, got {self.eps}")
        check_ranges(self, min_samples=1)

    def clusters(self, sentences: Sentences) -> NDArray[np.int64]:
        try:
            from sklearn.cluster import DBSCAN  # type: ignore[import-untyped,unused-ignore]
        except ImportError as error:
            raise MissingExtraError.of("scikit-learn", "clustering", "cluster sentences with DBSCAN") from error
        graph = _neighbours(sentences.unit, self.position_weight, self.eps)
        found = DBSCAN(eps=self.eps, min_samples=self.min_samples, metric="precomputed").fit(graph).labels_
        labels: NDArray[np.int64] = np.array(found, dtype=np.int64)
        noise = np.flatnonzero(labels < 0)
        labels[noise] = len(labels) + noise
        return labels


def _neighbours(unit: Floats, position_weight: float, eps: float) -> Any:
    """Distances of at most `eps`, as a sparse matrix with rows sorted by distance."""
    from scipy.sparse import csr_array  # type: ignore[import-untyped,unused-ignore]

    count, pairs = len(unit), 0
    found: list[tuple[Floats, NDArray[np.int32]]] = []
    ends = np.zeros(count + 1, dtype=np.int64)
    for rows in row_blocks(count):
        block = joint_distances(unit, position_weight, rows)
        # Remove rounding from the distance to itself.
        block[np.arange(rows.stop - rows.start), np.arange(rows.start, rows.stop)] = 0.0
        row, column = np.nonzero(block <= eps)
        pairs += len(row)
        if pairs > 2 * _MOST_PAIRS + count:
            raise DataError(
                f"dbscan: of the text's {count} sentences more than {_MOST_PAIRS:,} pairs are within eps={eps}, which "
                "would take too much memory: lower eps, raise position_weight, or cut the text into documents first"
            )
        distances = block[row, column]
        order = np.lexsort((distances, row))
        found.append((distances[order], column[order].astype(np.int32)))
        ends[rows.start + 1 : rows.stop + 1] = np.bincount(row, minlength=rows.stop - rows.start)
    data, columns = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return csr_array((data, columns, np.cumsum(ends)), shape=(count, count))
