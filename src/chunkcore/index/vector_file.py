"""`VectorFile`: vectors on disk, read a slice at a time, so that a search takes the memory of one block."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import DataError, ModelError
from chunkcore.index.search import Indices, Rows
from chunkcore.models.base import Vectors
from chunkcore.scratch import telling_the_folder

__all__ = ["SelectedRows", "VectorFile", "keep_vectors"]

_ROW = np.dtype("<f4")


class VectorFile:
    """Rows of float32 in a file, one after the other.

    Reads copy what they are asked for: a mapped file's pages would count to the process as long as there is room.

    Args:
        path: the file, which nobody writes to meanwhile; None for one of its own, which goes with this object.
        dimensions: numbers a row.

    Raises:
        DataError: the file does not hold whole rows.

    >>> file = VectorFile(None, 2)
    >>> file.append(np.array([[1, 0], [0, 1], [2, 2]], dtype=np.float32))
    >>> file.shape, file[1:3].tolist()
    ((3, 2), [[0.0, 1.0], [2.0, 2.0]])
    """

    def __init__(self, path: Path | str | None, dimensions: int) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile() if path is None else Path(path).open("rb")  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        size = self._file.seek(0, 2)
        if dimensions < 1 or size % (dimensions * _ROW.itemsize):
            raise DataError(f"{path} has {size} bytes, which are no whole vectors of {dimensions} float32 numbers")
        self.shape = (size // (dimensions * _ROW.itemsize), dimensions)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Vectors:
        """Neighbouring rows, in memory of their own."""
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise DataError(f"rows of a file are read as neighbours, got a step of {step}")
        count = max(stop - start, 0)
        self._file.seek(start * self.shape[1] * _ROW.itemsize)
        found = np.fromfile(self._file, dtype=_ROW, count=count * self.shape[1])
        return found.astype(np.float32, copy=False).reshape(count, self.shape[1])

    def __array__(self, dtype: np.dtype[np.floating] | None = None, copy: bool | None = None) -> NDArray[np.floating]:
        """All rows, for whoever needs them at once."""
        return self[:] if dtype is None else self[:].astype(dtype, copy=False)

    def append(self, vectors: Vectors) -> None:
        """Write rows behind the others.

        Raises:
            ModelError: they have another number of dimensions.
            OSError: the disk is full, or the file was opened from a path.
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.shape[1]:
            raise ModelError(f"vectors of {self.shape[1]} dimensions are kept here, got the shape {vectors.shape}")
        with telling_the_folder():
            self._file.seek(0, 2)
            self._file.write(np.ascontiguousarray(vectors, dtype=_ROW).data)
            self._file.flush()
        self.shape = (len(self) + len(vectors), self.shape[1])


class SelectedRows:
    """Some rows of others, in an order of their own, repeated ones welcome; read a slice at a time.

    >>> SelectedRows(np.array([[1.0], [2.0], [3.0]]), np.array([2, 0, 0]))[0:2].tolist()
    [[3.0], [1.0]]
    """

    def __init__(self, rows: Rows, numbers: Indices) -> None:
        self._rows = rows
        self._numbers = numbers
        self.shape = (len(numbers), rows.shape[1])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> NDArray[np.floating]:
        numbers = self._numbers[rows]
        if isinstance(self._rows, np.ndarray):
            return np.asarray(self._rows[numbers])
        wanted, places = np.unique(numbers, return_inverse=True)
        if not len(wanted):
            return np.empty((0, self.shape[1]), dtype=np.float32)
        # A reading for each run of neighbours; what a strategy has of its own stands in one.
        firsts = np.flatnonzero(np.diff(wanted, prepend=-2) != 1)
        lasts = np.append(firsts[1:], len(wanted)) - 1
        runs = zip(wanted[firsts].tolist(), wanted[lasts].tolist(), strict=True)
        return np.concatenate([self._rows[first : last + 1] for first, last in runs])[places]

    def __array__(self, dtype: np.dtype[np.floating] | None = None, copy: bool | None = None) -> NDArray[np.floating]:
        """All rows, for whoever needs them at once."""
        return self[:] if dtype is None else self[:].astype(dtype, copy=False)


def keep_vectors(blocks: Iterable[Vectors], count: int, *, memory_bytes: int = 256 * 2**20) -> Rows:
    """Blocks of vectors as one matrix: an array where that is small, a file of its own where it is not.

    Args:
        blocks: rows, one block after the other; those after the first are asked for when it has been kept.
        count: how many rows they come to.
        memory_bytes: the largest array.

    Raises:
        ModelError: a block has another number of dimensions than the first.
    """
    kept: VectorFile | None = None
    held: list[Vectors] = []
    for block in blocks:
        if kept is None and held and block.shape[1] != held[0].shape[1]:
            raise ModelError(f"vectors of {held[0].shape[1]} dimensions, then {block.shape[1]}: expected the same")
        if kept is None and count * block.shape[1] * _ROW.itemsize > memory_bytes:
            kept = VectorFile(None, block.shape[1])
        if kept is None:
            held.append(block)
        else:
            kept.append(block)
    if kept is not None:
        return kept
    return np.concatenate(held) if held else np.empty((0, 0), dtype=np.float32)
