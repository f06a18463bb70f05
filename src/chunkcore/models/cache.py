"""`EmbeddingCache`: vectors on disk, by model and text."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import warnings
import weakref
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from chunkcore.columns import text_key
from chunkcore.errors import ModelError, OptionError
from chunkcore.models.base import (
    Embedder,
    TokenCountingEmbedder,
    Vectors,
    check_vectors,
    distinct,
    embed,
    is_symmetric,
    sorted_batches,
)

__all__ = ["KEYS_AT_ONCE", "CacheWarning", "CachedEmbedder", "EmbeddingCache", "SqliteCache", "text_key", "transaction"]

C = TypeVar("C", bound="SqliteCache")
T = TypeVar("T")

KEYS_AT_ONCE = 500  # SQLite of old takes 999 parameters
_MEMORY = ":memory:"
_SMALLEST = 512  # bytes of a page, the least that a database has


class CacheWarning(UserWarning):
    """A cache could not be used as asked; results are the same, the run is slower."""


class _UnusableError(Exception):
    """The cache is of another version, or what stands in its own place is none."""


class _ForeignError(Exception):
    """The file is not ours."""


class SqliteCache:
    """What the caches share: one file, threads and processes, damage and forks. Subclasses say what is in it.

    Args:
        path: the file, begun where there is none; None keeps everything in memory for this run.
        wait_seconds: how long to wait for another process that is writing.
        private: nobody else keeps a file at this path, so that whatever cannot be read there is a damaged cache.

    Raises:
        OptionError: the file is there, not such a cache, and the path is not private.

    Attributes:
        contents: what is kept, in warnings' words.
        application: the number in the file's header that says that it is ours.
        version: of the tables.
        tables: by name the columns of each; the last holds a row a thing that is kept.
    """

    contents: ClassVar[str]
    application: ClassVar[int]
    version: ClassVar[int] = 1
    tables: ClassVar[dict[str, str]]

    def __init__(self, path: Path | str | None = None, *, wait_seconds: float = 30.0, private: bool = False) -> None:
        self.path = None if path is None else Path(path)
        self._wait = wait_seconds
        self._private = private
        self._lock = threading.RLock()
        self._disk: sqlite3.Connection | None = None
        self._memory: sqlite3.Connection | None = None
        self._open()
        with _one_fork:
            _alive.add(self)

    def __len__(self) -> int:
        """How much is kept, of all models."""
        with self._lock:
            self._reopen()
            disk = self._on_disk(self._count) or 0
            return disk + (self._count(self._memory) if self._memory is not None else 0)

    def close(self) -> None:
        """Let go of the file. Using the cache again opens it again."""
        with self._lock:
            for connection in (self._disk, self._memory):
                if connection is not None:
                    connection.close()
            self._process = -1

    def __reduce__(self) -> tuple[Any, ...]:
        # A pickle holds where the file is; what is in memory alone stays behind.
        return partial(type(self), wait_seconds=self._wait, private=self._private), (self.path,)

    def __enter__(self: C) -> C:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _lookup(
        self, keys: Sequence[bytes], select: Callable[[sqlite3.Connection, Sequence[bytes]], dict[bytes, T]]
    ) -> dict[bytes, T]:
        """What `select` finds of the keys on disk, and of the others in memory."""
        with self._lock:
            self._reopen()
            rows = self._on_disk(lambda disk: select(disk, keys)) or {}
            missing = [key for key in keys if key not in rows]
            if missing and self._memory is not None:
                rows.update(select(self._memory, missing))
        return rows

    def _keep(self, insert: Callable[[sqlite3.Connection], bool]) -> None:
        """Do what `insert` does on disk, or in memory where that cannot be."""
        with self._lock:
            self._reopen()
            if self._on_disk(insert, writes=True) is None:
                if self._memory is None:
                    self._memory = self._connect(_MEMORY)
                insert(self._memory)

    def _count(self, connection: sqlite3.Connection) -> int:
        *_, table = self.tables
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608

    def _open(self) -> None:
        self._process = os.getpid()
        self._memory = None
        if self.path is None:
            self._memory = self._connect(_MEMORY)
        self._open_disk()

    def _open_disk(self) -> None:
        self._let_go = False
        self._writable = True
        self._disk = None
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._disk = self._connect_or_replace(self.path)
        except (OSError, ValueError, sqlite3.Error, _UnusableError) as error:
            self._disk = self._connect_to_read(self.path)
            self._writable = False
            self._warn(f"cannot be {'used' if self._disk is None else 'written to'} ({error})")
        except _ForeignError as error:
            raise OptionError(
                f"{str(self.path)!r} is no cache of {self.contents} ({error}) and was left as it is: name another "
                "file, or delete this one if it is a cache that was damaged"
            ) from error

    def _reopen(self) -> None:
        if self._process != os.getpid():
            if self._process != -1:
                # SQLite's connections must not be used, or even closed, on the other side of a fork.
                _abandoned.extend([self._disk, self._memory])
            self._open()
        elif self._let_go:
            self._open_disk()

    def _pause(self) -> None:
        """Let go of the file until the cache is used again, and let nobody use it before `_resume`.

        SQLite remembers in the process which files it has locked. A child that is forked meanwhile inherits that
        memory, but none of the locks: it would take none, and what it writes could be removed by another process.
        """
        self._lock.acquire()
        if self._disk is not None:
            with suppress(sqlite3.Error):
                self._disk.close()
            self._disk = None
            self._let_go = True

    def _resume(self) -> None:
        """The cache may be used again: on both sides of a fork."""
        self._lock.release()

    def _connect_or_replace(self, path: Path) -> sqlite3.Connection:
        try:
            return self._connect(path)
        except (sqlite3.DatabaseError, _UnusableError) as error:
            self._must_be_damaged(path, error)
        with self._only_one_process(path):
            # Another process may have replaced the file while this one waited.
            try:
                return self._connect(path)
            except (sqlite3.DatabaseError, _UnusableError) as error:
                self._must_be_damaged(path, error)
                self._set_aside(path, error)
            return self._connect(path)

    def _connect_to_read(self, path: Path) -> sqlite3.Connection | None:
        """The cache where nothing may be written, as on a medium that is mounted so; None where it cannot be read.

        SQLite reads such a file only when it is told that nobody will change it. What a log holds is then not seen, so
        one with a log is left alone.
        """
        try:
            if os.access(path.parent, os.W_OK) or not _size(path) or _size(f"{path}-wal"):
                return None
            connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?immutable=1", uri=True, isolation_level=None, check_same_thread=False
            )
        except (OSError, ValueError, sqlite3.Error):
            return None
        try:
            if self._check_identity(connection) == "ours":
                return connection
        except (sqlite3.Error, _UnusableError, _ForeignError):
            pass
        connection.close()
        return None

    def _must_be_damaged(self, path: Path, error: Exception) -> None:
        """Raise the error where it tells of something else than damage, or the file is not known to be ours."""
        if not _is_damage(error):
            raise error
        # Of a database that SQLite cannot read, the header may still tell whose it was.
        if not self._private and _header(path)[68:72] != self.application.to_bytes(4, "big"):
            raise _ForeignError(str(error)) from error

    def _foreign(self, reason: str) -> Exception:
        return _UnusableError(reason) if self._private else _ForeignError(reason)

    def _connect(self, path: Path | str) -> sqlite3.Connection:
        # SQLite takes a file of a few bytes for an empty database, and would write over it. Its size is asked for and
        # it is not opened: closing it would take away the locks by which other processes know that this one has it.
        if path != _MEMORY and 0 < _size(path) < _SMALLEST:
            raise self._foreign("it is no database")
        connection = sqlite3.connect(path, timeout=self._wait, isolation_level=None, check_same_thread=False)
        try:
            self._set_up(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _set_up(self, connection: sqlite3.Connection) -> None:
        # Look first: another program's database is to be left as it is. As one transaction, as another process may be
        # beginning this very file, whose number would be read before and whose tables after.
        with transaction(connection, "DEFERRED"):
            self._check_identity(connection)
        with transaction(connection):
            if self._check_identity(connection) == "empty":
                for table, columns in self.tables.items():
                    connection.execute(f"CREATE TABLE {table} ({columns})")
                connection.execute(f"PRAGMA application_id = {self.application}")
                connection.execute(f"PRAGMA user_version = {self.version}")
        # A write-ahead log lets others read while one writes, and survives a killed process. It is begun when the
        # file itself says whose it is.
        _retry_while_locked(lambda: connection.execute("PRAGMA journal_mode = WAL"), self._wait)
        connection.execute("PRAGMA synchronous = NORMAL")

    def _check_identity(self, connection: sqlite3.Connection) -> Literal["ours", "empty"]:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables and application == 0:
            return "empty"
        if application != self.application:
            raise self._foreign("it is another program's database")
        if version != self.version or not self.tables.keys() <= tables:
            raise _UnusableError(f"it is of version {version}; expected {self.version}")
        return "ours"

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
                        self._must_be_damaged(self.path, error)
                        self._set_aside(self.path, error)
                self._disk = self._connect_or_replace(self.path)
                return
        except (OSError, sqlite3.Error, _UnusableError, _ForeignError) as second:
            error = sqlite3.DatabaseError(f"{error}; {second}")
        self._warn(f"cannot be used ({error})")

    def _warn(self, what: str) -> None:
        consequence = "" if "new one begun" in what else "; going on with memory alone"
        warnings.warn(
            f"the cache of {self.contents} {str(self.path)!r} {what}{consequence}", CacheWarning, stacklevel=4
        )


_abandoned: list[Any] = []
_alive: weakref.WeakSet[SqliteCache] = weakref.WeakSet()
_forking: list[SqliteCache] = []
_one_fork = threading.Lock()


def _before_fork() -> None:
    _one_fork.acquire()
    _forking[:] = _alive
    for cache in _forking:
        cache._pause()


def _after_fork() -> None:
    for cache in _forking:
        cache._resume()
    _forking.clear()
    _one_fork.release()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing is forked
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


def _is_damage(error: Exception) -> bool:
    """Whether the file is at fault. sqlite3 has subclasses for all else: locked, full, read-only, not to be opened."""
    return isinstance(error, _UnusableError) or type(error) is sqlite3.DatabaseError


def _size(path: Path | str) -> int:
    """In bytes; 0 where there is no file."""
    return Path(path).stat().st_size if Path(path).is_file() else 0


def _header(path: Path) -> bytes:
    """The first 100 bytes, as many as SQLite's header has; none where there is no file."""
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(100)


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
def transaction(connection: sqlite3.Connection, kind: Literal["DEFERRED", "IMMEDIATE"] = "IMMEDIATE") -> Iterator[None]:
    """All of the block, or nothing. A deferred one takes no lock before it reads or writes."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


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


class CachedEmbedder:
    """Asks the cache first, then the model for each distinct text that is missing, longest first.

    Every batch is kept as soon as it is there, so a run that was interrupted goes on where it stopped.
    Documents and queries are told apart only where the model does. It has the model's name and fingerprint.

    Args:
        embedder: the model.
        cache: None for a new one in memory.
        batch_size: texts that the model is given at once.
        progress: called after each batch with the texts embedded and those to be embedded in this call.
        timeout: seconds after which a batch that the model has not answered is asked for once more, and then a
            `ModelError`; None waits for ever, as is right for a model in this process. Services hang.

    Attributes:
        embedded: how many texts the model was asked for.

    Raises:
        OptionError: batch_size is under 1, or timeout is no time.
    """

    def __init__(
        self,
        embedder: Embedder,
        cache: EmbeddingCache | None = None,
        *,
        batch_size: int = 256,
        progress: Callable[[int, int], None] | None = None,
        timeout: float | None = None,
    ) -> None:
        if batch_size < 1:
            raise OptionError(f"batch_size is at least 1, got {batch_size}")
        if timeout is not None and not 0 < timeout < float("inf"):
            raise OptionError(f"timeout is over 0 seconds, or None to wait for ever, got {timeout}")
        self.embedder = embedder
        self.cache = EmbeddingCache() if cache is None else cache
        self.batch_size = batch_size
        self.progress = progress
        self.timeout = timeout
        self.name = embedder.name
        self.max_tokens = embedder.max_tokens
        self.symmetric = is_symmetric(embedder)
        self.embedded = 0
        # Two threads that ask for one text: the second finds what the first one stored.
        self._lock = threading.RLock()
        if isinstance(embedder, TokenCountingEmbedder):
            self.count_tokens: Callable[[Sequence[str]], NDArray[np.int64]] = embedder.count_tokens

    def __reduce__(self) -> tuple[Any, ...]:
        # Progress is told in the process that asked for it.
        return partial(type(self), batch_size=self.batch_size, timeout=self.timeout), (self.embedder, self.cache)

    @property
    def fingerprint(self) -> str:
        """The model's own: the cache changes nothing."""
        return self.embedder.fingerprint

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One row a text: float32, shape (len(texts), dimensions).

        Raises:
            ModelError: the model failed, or answered with something that is no answer, twice.
        """
        return self._embed(texts, queries=False)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """One row a query: float32, shape (len(texts), dimensions).

        Raises:
            ModelError: the model failed, or answered with something that is no answer, twice.
        """
        return self._embed(texts, queries=True)

    def _embed(self, texts: Sequence[str], *, queries: bool) -> Vectors:
        role = "" if self.symmetric else "query" if queries else "document"
        asked, places = distinct(texts)
        keys = [text_key(text, role) for text in asked]
        with self._lock:
            vectors = self._distinct(keys, asked, queries)
        return vectors if len(asked) == len(texts) else vectors[places]

    def _distinct(self, keys: list[bytes], texts: list[str], queries: bool) -> Vectors:
        found, vectors = self.cache.fetch(self.fingerprint, keys)
        missing = np.flatnonzero(~found)
        done = 0
        for batch in sorted_batches([len(texts[i]) for i in missing], size=self.batch_size):
            rows = missing[batch]
            answer = embed(self.embedder, [texts[i] for i in rows], queries=queries, timeout=self.timeout)
            if vectors.shape[1] == 0:
                vectors = np.zeros((len(keys), answer.shape[1]), dtype=np.float32)
            if answer.shape[1] != vectors.shape[1]:
                raise ModelError(
                    f"the model {self.name!r} answered with {answer.shape[1]} dimensions, and with "
                    f"{vectors.shape[1]} before; expected the same for every text"
                )
            self.cache.store(self.fingerprint, [keys[i] for i in rows], answer)
            vectors[rows] = answer
            done += len(rows)
            self.embedded += len(rows)
            if self.progress is not None:
                self.progress(done, len(missing))
        return vectors
