"""`EmbeddingCache`: vectors on disk (SQLite), by model and text. It may fail to help, never to let a run finish.

A file that is damaged, of another program or of another version of this one is set aside (renamed) and a
new one begun; where nothing can be written the run goes on with memory alone. Both are told by a
`CacheWarning`.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import ModelError
from chunkcore.models.base import Vectors
from chunkcore.models.checks import check_vectors

__all__ = ["CacheWarning", "EmbeddingCache", "text_key"]

T = TypeVar("T")

_APPLICATION = 0x63686B63  # "chkc", in the file's header: it is ours
_VERSION = 1
_MEMORY = ":memory:"
_KEYS_AT_ONCE = 500  # SQLite of old takes 999 parameters
_TABLES = (
    "CREATE TABLE models (id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE, dimensions INTEGER NOT NULL)",
    "CREATE TABLE vectors (model INTEGER NOT NULL, key BLOB NOT NULL, vector BLOB NOT NULL, "
    "checksum INTEGER NOT NULL, PRIMARY KEY (model, key))",
)


class CacheWarning(UserWarning):
    """The cache of embeddings could not be used as asked; results are the same, the run is slower."""


class _UnusableError(Exception):
    """The file is a sound database, but not one of ours."""


def text_key(text: str, role: str = "") -> bytes:
    """20 bytes that stand for a text and the role ("document", "query", or "" for either) it is embedded in."""
    data = text.encode("utf-8", "surrogatepass")
    return blake2b(role.encode("ascii") + b"\0" + data, digest_size=20).digest()


class EmbeddingCache:
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

    def __init__(self, path: Path | str | None = None, *, wait_seconds: float = 30.0) -> None:
        self.path = None if path is None else Path(path)
        self._wait = wait_seconds
        self._lock = threading.RLock()
        self._disk: sqlite3.Connection | None = None
        self._memory: sqlite3.Connection | None = None
        self._open()

    def fetch(self, model: str, keys: Sequence[bytes]) -> tuple[NDArray[np.bool_], Vectors]:
        """Which keys are there, and one row a key: float32, shape (len(keys), dimensions), zeros where not.

        Dimensions are 0 while nothing of the model is known.
        """
        with self._lock:
            self._reopen_after_fork()
            rows = self._on_disk(lambda disk: _select(disk, model, keys)) or {}
            missing = [key for key in keys if key not in rows]
            if missing and self._memory is not None:
                rows.update(_select(self._memory, model, missing))
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
        with self._lock:
            self._reopen_after_fork()
            done = self._on_disk(lambda disk: _insert(disk, model, keys, vectors), writes=True)
            if done is None:
                if self._memory is None:
                    self._memory = self._connect(_MEMORY)
                _insert(self._memory, model, keys, vectors)

    def __len__(self) -> int:
        """How many vectors there are, of all models."""
        with self._lock:
            self._reopen_after_fork()
            disk = self._on_disk(_count) or 0
            return disk + (_count(self._memory) if self._memory is not None else 0)

    def close(self) -> None:
        """Let go of the file. Using the cache again opens it again."""
        with self._lock:
            for connection in (self._disk, self._memory):
                if connection is not None:
                    connection.close()
            self._process = -1

    def __reduce__(self) -> tuple[Any, ...]:
        # A pickle holds where the file is; what is in memory alone stays behind.
        return partial(type(self), wait_seconds=self._wait), (self.path,)

    def __enter__(self) -> EmbeddingCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> None:
        self._process = os.getpid()
        self._writable = True
        self._disk = None
        self._memory = None
        if self.path is None:
            self._memory = self._connect(_MEMORY)
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._disk = self._connect_or_replace(self.path)
        except (OSError, ValueError, sqlite3.Error, _UnusableError) as error:
            self._warn(f"cannot be used ({error})")

    def _reopen_after_fork(self) -> None:
        # SQLite's connections must not be used, or even closed, on the other side of a fork.
        if self._process != os.getpid():
            if self._process != -1:
                _abandoned.extend([self._disk, self._memory])
            self._open()

    def _connect_or_replace(self, path: Path) -> sqlite3.Connection:
        try:
            return self._connect(path)
        except (sqlite3.DatabaseError, _UnusableError) as error:
            if not _is_damage(error):
                raise
        with self._only_one_process(path):
            # Another process may have replaced the file while this one waited.
            try:
                return self._connect(path)
            except (sqlite3.DatabaseError, _UnusableError) as error:
                if not _is_damage(error):
                    raise
                self._set_aside(path, error)
            return self._connect(path)

    def _connect(self, path: Path | str) -> sqlite3.Connection:
        _check_header(path)
        connection = sqlite3.connect(path, timeout=self._wait, isolation_level=None, check_same_thread=False)
        try:
            self._set_up(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _set_up(self, connection: sqlite3.Connection) -> None:
        # Look first: another program's database is to be left as it is.
        _check_identity(connection)
        # A write-ahead log lets others read while one writes, and survives a killed process.
        _retry_while_locked(lambda: connection.execute("PRAGMA journal_mode = WAL"), self._wait)
        connection.execute("PRAGMA synchronous = NORMAL")
        with _transaction(connection):
            if _check_identity(connection) == "empty":
                for statement in _TABLES:
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {_VERSION}")

    @contextmanager
    def _only_one_process(self, path: Path) -> Iterator[None]:
        """Hold a lock that works between processes on every system: an open transaction on a file beside."""
        with closing(sqlite3.connect(f"{path}.lock", timeout=self._wait, isolation_level=None)) as lock:
            lock.execute("BEGIN EXCLUSIVE")
            yield

    def _set_aside(self, path: Path, reason: Exception) -> None:
        number = 1
        while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
            number += 1
        path.replace(aside)
        for log in ("-wal", "-shm", "-journal"):
            with suppress(FileNotFoundError):
                Path(f"{path}{log}").replace(f"{aside}{log}")
        self._warn(f"cannot be read ({reason}); it was set aside as {aside.name} and a new one begun")

    def _on_disk(self, work: Callable[[sqlite3.Connection], T], *, writes: bool = False) -> T | None:
        """What `work` answers, or None where the disk cannot be used (any more)."""
        for _ in range(2):
            if self._disk is None or (writes and not self._writable):
                return None
            try:
                return work(self._disk)
            except sqlite3.DatabaseError as error:
                self._recover(error, writes)
        return None

    def _recover(self, error: sqlite3.DatabaseError, writes: bool) -> None:
        assert self._disk is not None
        assert self.path is not None
        if writes and not _is_damage(error):
            self._writable = False  # a full disk can still be read
            self._warn(f"cannot be written to ({error})")
            return
        self._disk.close()
        self._disk = None
        try:
            if _is_damage(error):
                with self._only_one_process(self.path):
                    if not _is_sound(self.path):
                        self._set_aside(self.path, error)
                self._disk = self._connect_or_replace(self.path)
                return
        except (OSError, sqlite3.Error, _UnusableError) as second:
            error = sqlite3.DatabaseError(f"{error}; {second}")
        self._warn(f"cannot be used ({error})")

    def _warn(self, what: str) -> None:
        consequence = "" if "new one begun" in what else "; going on with memory alone"
        warnings.warn(f"the cache of embeddings {str(self.path)!r} {what}{consequence}", CacheWarning, stacklevel=4)


_abandoned: list[Any] = []


def _is_damage(error: Exception) -> bool:
    """Whether the file is at fault. sqlite3 has subclasses for all else: locked, full, read-only, not to be opened."""
    return isinstance(error, _UnusableError) or type(error) is sqlite3.DatabaseError


def _check_header(path: Path | str) -> None:
    """SQLite takes a file of a few bytes for an empty database, and would write over it."""
    if path == _MEMORY or not Path(path).is_file():
        return
    with Path(path).open("rb") as file:
        if file.read(16) not in (b"", b"SQLite format 3\0"):
            raise _UnusableError("it is no database")


def _check_identity(connection: sqlite3.Connection) -> Literal["ours", "empty"]:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables and application == 0:
        return "empty"
    if application != _APPLICATION:
        raise _UnusableError("it is another program's database")
    if version != _VERSION or not {"models", "vectors"} <= tables:
        raise _UnusableError(f"it is of version {version}; expected {_VERSION}")
    return "ours"


def _is_sound(path: Path) -> bool:
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
    except sqlite3.DatabaseError:
        return False


def _retry_while_locked(work: Callable[[], T], seconds: float) -> T:
    """SQLite's own waiting does not cover the change to a write-ahead log."""
    end = time.monotonic() + seconds
    while True:
        try:
            return work()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.02)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _select(connection: sqlite3.Connection, model: str, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
    """The vectors that are there and sound."""
    known = _model(connection, model)
    if known is None:
        return {}
    number, dimensions = known
    rows: dict[bytes, Vectors] = {}
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        some = keys[start : start + _KEYS_AT_ONCE]
        marks = ",".join("?" * len(some))
        statement = f"SELECT key, vector, checksum FROM vectors WHERE model = ? AND key IN ({marks})"  # noqa: S608
        for key, blob, checksum in connection.execute(statement, (number, *some)):
            if len(blob) == 4 * dimensions and zlib.crc32(blob) == checksum:
                rows[key] = np.frombuffer(blob, dtype="<f4")
    return rows


def _insert(connection: sqlite3.Connection, model: str, keys: Sequence[bytes], vectors: Vectors) -> bool:
    blobs = [row.tobytes() for row in np.ascontiguousarray(vectors, dtype="<f4")]
    with _transaction(connection):
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


def _count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM vectors").fetchone()[0])
