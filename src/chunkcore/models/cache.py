"""`EmbeddingCache`: vectors on disk, by model and text."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Sequence
from hashlib import blake2b
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import ModelError
from chunkcore.models.base import Vectors
from chunkcore.models.checks import check_vectors
from chunkcore.models.sqlite_cache import KEYS_AT_ONCE, CacheWarning, SqliteCache, transaction

__all__ = ["CacheWarning", "EmbeddingCache", "text_key"]


def text_key(text: str, role: str = "") -> bytes:
    """20 bytes that stand for a text and the role ("document", "query", or "" for either) it is embedded in."""
    data = text.encode("utf-8", "surrogatepass")
    return blake2b(role.encode("ascii") + b"\0" + data, digest_size=20).digest()


class EmbeddingCache(SqliteCache):
    """Float32 vectors by model fingerprint and text key. Threads and processes may share one file.

    Args:
        path: the file, begun where there is none; None keeps everything in memory for this run.
        wait_seconds: how long to wait for another process that is writing.

    >>> cache = EmbeddingCache()
    >>> cache.store("model-1", [text_key("sky")], np.array([[0.5, 2.0]], dtype=np.float32))
    >>> found, vectors = cache.fetch("model-1", [text_key("sky"), text_key("sea")])
    >>> found.tolist(), vectors.tolist()
    ([True, False], [[0.5, 2.0], [0.0, 0.0]])
    """

    contents = "embeddings"
    application = 0x63686B63  # "chkc"
    tables: ClassVar[dict[str, str]] = {
        "models": "id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE, dimensions INTEGER NOT NULL",
        "vectors": "model INTEGER NOT NULL, key BLOB NOT NULL, vector BLOB NOT NULL, checksum INTEGER NOT NULL, "
        "PRIMARY KEY (model, key)",
    }

    def fetch(self, model: str, keys: Sequence[bytes]) -> tuple[NDArray[np.bool_], Vectors]:
        """Which keys are there, and one row a key: float32, shape (len(keys), dimensions), zeros where not.

        Dimensions are 0 while nothing of the model is known.
        """
        rows = self._lookup(keys, lambda connection, some: _select(connection, model, some))
        dimensions = len(next(iter(rows.values()))) if rows else 0
        found = np.array([key in rows for key in keys], dtype=np.bool_)
        vectors = np.zeros((len(keys), dimensions), dtype=np.float32)
        for row, key in enumerate(keys):
            if key in rows:
                vectors[row] = rows[key]
        return found, vectors

    def store(self, model: str, keys: Sequence[bytes], vectors: Vectors) -> None:
        """Keep one vector a key: shape (len(keys), dimensions). All of them are on disk when this returns, or none.

        Raises:
            ModelError: not one vector a key, or NaN or infinity in one; or the model's vectors had another number
                of dimensions before.
        """
        if not len(keys):
            return
        vectors = check_vectors(vectors, len(keys), model=model)
        self._keep(lambda connection: _insert(connection, model, keys, vectors))


def _select(connection: sqlite3.Connection, model: str, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
    """The vectors that are there and sound."""
    known = _model(connection, model)
    if known is None:
        return {}
    number, dimensions = known
    rows: dict[bytes, Vectors] = {}
    for start in range(0, len(keys), KEYS_AT_ONCE):
        some = keys[start : start + KEYS_AT_ONCE]
        marks = ",".join("?" * len(some))
        statement = f"SELECT key, vector, checksum FROM vectors WHERE model = ? AND key IN ({marks})"  # noqa: S608
        for key, blob, checksum in connection.execute(statement, (number, *some)):
            if len(blob) == 4 * dimensions and zlib.crc32(blob) == checksum:
                rows[key] = np.frombuffer(blob, dtype="<f4")
    return rows


def _insert(connection: sqlite3.Connection, model: str, keys: Sequence[bytes], vectors: Vectors) -> bool:
    blobs = [row.tobytes() for row in np.ascontiguousarray(vectors, dtype="<f4")]
    with transaction(connection):
        connection.execute(
            "INSERT OR IGNORE INTO models (fingerprint, dimensions) VALUES (?, ?)", (model, vectors.shape[1])
        )
        known = _model(connection, model)
        assert known is not None
        number, dimensions = known
        if dimensions != vectors.shape[1]:
            raise ModelError(
                f"the model with the fingerprint {model!r} answered with {vectors.shape[1]} dimensions, and its cached "
                f"vectors have {dimensions}: give the changed model another fingerprint, or delete the cache"
            )
        connection.executemany(
            "INSERT OR REPLACE INTO vectors (model, key, vector, checksum) VALUES (?, ?, ?, ?)",
            [(number, key, blob, zlib.crc32(blob)) for key, blob in zip(keys, blobs, strict=True)],
        )
    return True


def _model(connection: sqlite3.Connection, model: str) -> tuple[int, int] | None:
    row = connection.execute("SELECT id, dimensions FROM models WHERE fingerprint = ?", (model,)).fetchone()
    return None if row is None else (int(row[0]), int(row[1]))
