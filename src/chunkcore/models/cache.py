"""What models gave, kept in one SQLite file: vectors (`EmbeddingCache`) and language models' answers (`LLMCache`)."""

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

from chunkcore.columns import distinct, text_key
from chunkcore.errors import ModelError, OptionError
from chunkcore.models.base import (
    Embedder,
    TokenCountingEmbedder,
    Vectors,
    check_vectors,
    embed,
    is_symmetric,
    sorted_batches,
)
from chunkcore.registry import check_number
from chunkcore.spans import Numbers

C = TypeVar("C", bound="Cache")
T = TypeVar("T")

_OURS = 0x63686B63  # "chkc", the application id in the file's header
_OF_ANSWERS = 0x63686B61  # "chka": caches of answers before version 2
_VERSION = 2
_TABLES = {
    "models": "id INTEGER PRIMARY KEY, kind TEXT NOT NULL, fingerprint TEXT NOT NULL, UNIQUE (kind, fingerprint)",
    "entries": "model INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, checksum INTEGER NOT NULL, "
    "PRIMARY KEY (model, key)",
}
# Damage can change a value's type, and a text that is not UTF-8 cannot be read as one.
_COLUMNS = "CAST(key AS BLOB), CAST(value AS BLOB), CAST(checksum AS INTEGER)"
_KEYS_AT_ONCE = 500  # old versions of SQLite take 999 parameters
_SMALLEST = 512  # bytes of a page: no database is smaller
_MEMORY = ":memory:"


class CacheWarning(UserWarning):
    """A cache could not be used as asked. Results are the same; the run is slower."""


class _UnusableError(Exception):
    """The file is damaged or of another version."""


class _ForeignError(Exception):
    """The file is not a cache."""


class Cache:
    """Bytes by model fingerprint and key, in one file for threads, processes and forks.

    The base class of `EmbeddingCache` and `LLMCache`, which may share a file. A damaged file, or one of another
    version, is renamed with a `CacheWarning`, and a new one starts. Where nothing can be written, the run continues
    in memory. Each entry's checksum covers its model, key and value: a damaged entry is a cache miss.

    Args:
        path: the file; created where there is none. None keeps everything in memory for this run.
        wait_seconds: how long to wait for another process that writes.
        private: no other program uses this path: a file that is not a cache is a damaged one.

    Raises `OptionError`: the file is not a cache, and the path is not private.

    Attributes:
        kind: the entries that this class reads and writes: "vector" or "answer".
    """

    kind: ClassVar[str]

    def __init__(self, path: Path | str | None = None, *, wait_seconds: float = 30.0, private: bool = False) -> None:
        self.path = None if path is None else Path(path)
        self._wait = wait_seconds
        self._private = private
        self._lock = threading.RLock()
        self._disk: sqlite3.Connection | None = None
        self._memory: sqlite3.Connection | None = None
        self._told_of_damage = False
        self._open()
        with _one_fork:
            _alive.add(self)

    def __len__(self) -> int:
        """The number of entries of this kind, of all models."""

        def count(connection: sqlite3.Connection) -> int:
            statement = "SELECT count(*) FROM entries JOIN models ON models.id = model WHERE kind = ?"
            return int(connection.execute(statement, (self.kind,)).fetchone()[0])

        with self._lock:
            disk = self._on_disk(count) or 0
            return disk + (count(self._memory) if self._memory is not None else 0)

    def close(self) -> None:
        """Close the file. The next use opens it again."""
        with self._lock:
            for connection in (self._disk, self._memory):
                if connection is not None:
                    connection.close()
            self._memory, self._is_open = None, False

    def __reduce__(self) -> tuple[Any, ...]:
        # A pickle holds the path; entries that are in memory alone stay behind.
        return partial(type(self), wait_seconds=self._wait, private=self._private), (self.path,)

    def __enter__(self: C) -> C:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- entries

    def _read(self, model: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The sound entries of these keys, from disk or else from memory."""
        with self._lock:
            found = self._on_disk(lambda disk: self._select(disk, model, keys)) or {}
            missing = [key for key in keys if key not in found]
            if missing and self._memory is not None:
                found.update(self._select(self._memory, model, missing))
        return found

    def _write(self, model: str, entries: Sequence[tuple[bytes, bytes]]) -> None:
        with self._lock:
            if self._on_disk(lambda disk: self._insert(disk, model, entries), writes=True) is None:
                if self._memory is None:
                    self._memory = self._connect(_MEMORY)
                self._insert(self._memory, model, entries)

    def _select(self, connection: sqlite3.Connection, model: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        number = self._number(connection, model)
        if number is None:
            return {}
        found: dict[bytes, bytes] = {}
        damaged = 0
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            some = keys[start : start + _KEYS_AT_ONCE]
            statement = f"SELECT {_COLUMNS} FROM entries WHERE model = ? AND key IN ({','.join('?' * len(some))})"  # noqa: S608
            for key, value, checksum in connection.execute(statement, (number, *some)):
                if self._is_sound(model, key, value, checksum):
                    found[key] = value
                else:
                    damaged += 1
        if damaged and not self._told_of_damage:
            self._told_of_damage = True
            self._warn(f"has {damaged} damaged entries of {len(keys)} asked for; they count as missing", goes_on=False)
        return found

    def _insert(self, connection: sqlite3.Connection, model: str, entries: Sequence[tuple[bytes, bytes]]) -> bool:
        with transaction(connection):
            connection.execute("INSERT OR IGNORE INTO models (kind, fingerprint) VALUES (?, ?)", (self.kind, model))
            number = self._number(connection, model)
            self._check(connection, model, entries)
            connection.executemany(
                "INSERT OR REPLACE INTO entries (model, key, value, checksum) VALUES (?, ?, ?, ?)",
                [(number, key, value, self._checksum(model, key, value)) for key, value in entries],
            )
        return True

    def _number(self, connection: sqlite3.Connection, model: str) -> int | None:
        statement = "SELECT id FROM models WHERE kind = ? AND fingerprint = ?"
        row = connection.execute(statement, (self.kind, model)).fetchone()
        return None if row is None else int(row[0])

    def _checksum(self, model: str, key: bytes, value: bytes) -> int:
        return zlib.crc32(value, zlib.crc32(key, zlib.crc32(f"{self.kind}\0{model}\0".encode())))

    def _is_sound(self, model: str, key: bytes | None, value: bytes | None, checksum: int | None) -> bool:
        return key is not None and value is not None and checksum == self._checksum(model, key, value)

    def _check(self, connection: sqlite3.Connection, model: str, entries: Sequence[tuple[bytes, bytes]]) -> None:
        """Raise an error for entries that do not fit the kept ones. Called inside the transaction."""

    # ---- opening the file

    def _open(self) -> None:
        self._process = os.getpid()
        self._is_open = self._writable = True
        self._disk = None
        if self.path is None:
            self._memory = self._connect(_MEMORY)
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
                f"{str(self.path)!r} is no cache ({error}) and was left as it is: name another file, or delete this "
                "one if it is a damaged cache"
            ) from error

    def _connect_or_replace(self, path: Path) -> sqlite3.Connection:
        try:
            return self._connect(path)
        except (sqlite3.DatabaseError, _UnusableError) as error:
            try:
                self._must_be_damaged(path, error)
            except _ForeignError:
                # Another process may have replaced a damaged file since: a second look finds its new cache.
                with suppress(sqlite3.DatabaseError, _UnusableError):
                    return self._connect(path)
                raise
        with self._only_one_process(path):
            # Another process may have replaced the file while this one waited.
            try:
                return self._connect(path)
            except (sqlite3.DatabaseError, _UnusableError) as error:
                self._must_be_damaged(path, error)
                self._set_aside(path, error)
            return self._connect(path)

    def _connect_to_read(self, path: Path) -> sqlite3.Connection | None:
        """The cache on a read-only medium; None where it cannot be read.

        SQLite reads such a file only as immutable, which ignores the log: a file with a log is left alone.
        """
        connection = None
        with suppress(OSError, ValueError, sqlite3.Error, _UnusableError, _ForeignError):
            if not os.access(path.parent, os.W_OK) and _size(path) and not _size(f"{path}-wal"):
                address = f"{path.absolute().as_uri()}?immutable=1"
                connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
                if self._check_identity(connection) == "ours":
                    return connection
        if connection is not None:
            connection.close()
        return None

    def _must_be_damaged(self, path: Path, error: Exception) -> None:
        """Raise the error unless it means damage to a file of ours."""
        if not _is_damage(error):
            raise error
        if self._private:
            return
        # Where SQLite cannot read the database, its header of 100 bytes may still say whose it is.
        header = b""
        if path.is_file():
            with path.open("rb") as file:
                header = file.read(100)
        if int.from_bytes(header[68:72], "big") not in (_OURS, _OF_ANSWERS):
            raise _ForeignError(str(error)) from error

    def _foreign(self, reason: str) -> Exception:
        return _UnusableError(reason) if self._private else _ForeignError(reason)

    def _connect(self, path: Path | str) -> sqlite3.Connection:
        # SQLite takes a file of a few bytes for an empty database and writes over it. The file is not opened for the
        # check: closing it would drop the locks by which other processes see that this one has it open.
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
        # Look before writing: another program's database stays as it is. Both in transactions, because another
        # process may be creating this very file: its number would be read before, and its tables after.
        with transaction(connection, "DEFERRED"):
            self._check_identity(connection)
        with transaction(connection):
            if self._check_identity(connection) == "empty":
                for table, columns in _TABLES.items():
                    connection.execute(f"CREATE TABLE {table} ({columns})")
                connection.execute(f"PRAGMA application_id = {_OURS}")
                connection.execute(f"PRAGMA user_version = {_VERSION}")
        # A write-ahead log lets others read while one writes, and survives a killed process. It starts after the
        # file says whose it is. SQLite's own waiting does not cover the change to it.
        end = time.monotonic() + self._wait
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > end:
                    raise
                time.sleep(0.02)
        connection.execute("PRAGMA synchronous = NORMAL")

    def _check_identity(self, connection: sqlite3.Connection) -> Literal["ours", "empty"]:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables and application == 0:
            return "empty"
        if application not in (_OURS, _OF_ANSWERS):
            raise self._foreign("it is another program's database")
        if application != _OURS or version != _VERSION or not _TABLES.keys() <= tables:
            raise _UnusableError(f"it is of version {version}; expected {_VERSION}")
        return "ours"

    @contextmanager
    def _only_one_process(self, path: Path) -> Iterator[None]:
        """A lock between processes on every system: an open transaction on a file beside the cache."""
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
        what = f"cannot be read ({reason}); it was set aside as {aside.name} and a new one begun"
        self._warn(what, goes_on=False)

    # ---- trouble

    def _on_disk(self, work: Callable[[sqlite3.Connection], T], *, writes: bool = False) -> T | None:
        """The result of `work`; None where the disk cannot be used (any more)."""
        if self._process != os.getpid():
            # SQLite's connections must not be used, or even closed, on the other side of a fork.
            _abandoned.extend([self._disk, self._memory])
            self._memory, self._is_open = None, False
        if not self._is_open:
            self._open()
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
                    if not _passes_check(self.path):
                        self._must_be_damaged(self.path, error)
                        self._set_aside(self.path, error)
                self._disk = self._connect_or_replace(self.path)
                return
        except (OSError, sqlite3.Error, _UnusableError, _ForeignError) as second:
            error = sqlite3.DatabaseError(f"{error}; {second}")
        self._warn(f"cannot be used ({error})")

    def _warn(self, what: str, *, goes_on: bool = True) -> None:
        consequence = "; going on with memory alone" if goes_on else ""
        warnings.warn(f"the cache {str(self.path)!r} {what}{consequence}", CacheWarning, stacklevel=4)


_alive: weakref.WeakSet[Cache] = weakref.WeakSet()
_forking: list[Cache] = []
_abandoned: list[sqlite3.Connection | None] = []
_one_fork = threading.Lock()


def _before_fork() -> None:
    """Close the files, and hold the locks until after the fork.

    SQLite remembers in the process which files it has locked. A child forked meanwhile inherits that memory without
    the locks: it would take none, and another process could remove the log that it writes.
    """
    _one_fork.acquire()
    _forking[:] = _alive
    for cache in _forking:
        cache._lock.acquire()
        if cache._disk is not None:
            with suppress(sqlite3.Error):
                cache._disk.close()
            cache._is_open = False


def _after_fork() -> None:
    for cache in _forking:
        cache._lock.release()
    _forking.clear()
    _one_fork.release()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


def _is_damage(error: Exception) -> bool:
    """Whether the file is at fault. sqlite3 has subclasses for the rest: locked, full, read-only, not openable."""
    return isinstance(error, _UnusableError) or type(error) is sqlite3.DatabaseError


def _size(path: Path | str) -> int:
    return Path(path).stat().st_size if Path(path).is_file() else 0


def _passes_check(path: Path) -> bool:
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
    except sqlite3.DatabaseError:
        return False


@contextmanager
def transaction(connection: sqlite3.Connection, kind: Literal["DEFERRED", "IMMEDIATE"] = "IMMEDIATE") -> Iterator[None]:
    """All of the block or nothing. DEFERRED takes no lock before the first read or write."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


class EmbeddingCache(Cache):
    """Float32 vectors by model fingerprint and text key; see `Cache`.

    >>> cache = EmbeddingCache()
    >>> cache.store("model-1", [text_key("sky")], np.array([[0.5, 2.0]], dtype=np.float32))
    >>> found, vectors = cache.fetch("model-1", [text_key("sky"), text_key("sea")])
    >>> found.tolist(), vectors.tolist()
    ([True, False], [[0.5, 2.0], [0.0, 0.0]])
    """

    kind = "vector"

    def fetch(self, model: str, keys: Sequence[bytes]) -> tuple[NDArray[np.bool_], Vectors]:
        """Which keys are there, and one row a key: float32, shape (len(keys), dimensions), zeros for a missing key.

        Dimensions are 0 where no key is there.
        """
        rows = {key: row for key, value in self._read(model, keys).items() if (row := _vector(value)) is not None}
        dimensions = len(next(iter(rows.values()))) if rows else 0
        found = np.zeros(len(keys), dtype=np.bool_)
        vectors = np.zeros((len(keys), dimensions), dtype=np.float32)
        for number, key in enumerate(keys):
            row = rows.get(key)
            if row is not None and len(row) == dimensions:
                found[number], vectors[number] = True, row
        return found, vectors

    def store(self, model: str, keys: Sequence[bytes], vectors: Vectors) -> None:
        """Keep one vector a key, shape (len(keys), dimensions). When this returns, all are on disk.

        Raises `ModelError`: not one vector a key; NaN or infinity in one; or the model's vectors had another number of
        dimensions before.
        """
        if len(keys):
            vectors = check_vectors(vectors, len(keys), model=model)
            values = [row.tobytes() for row in np.ascontiguousarray(vectors, dtype="<f4")]
            self._write(model, list(zip(keys, values, strict=True)))

    def _check(self, connection: sqlite3.Connection, model: str, entries: Sequence[tuple[bytes, bytes]]) -> None:
        statement = f"SELECT {_COLUMNS} FROM entries WHERE model = ?"  # noqa: S608
        for entry in connection.execute(statement, (self._number(connection, model),)):
            if not self._is_sound(model, *entry) or (kept := _vector(entry[1])) is None:
                continue
            if 4 * len(kept) != len(entries[0][1]):
                raise ModelError(
                    f"the model with the fingerprint {model!r} answered with {len(entries[0][1]) // 4} dimensions, and "
                    f"its cached vectors have {len(kept)}: give the changed model another fingerprint, or delete the "
                    "cache"
                )
            return


def _vector(value: bytes) -> Vectors | None:
    """The vector of an entry; None where the bytes are no finite vector."""
    if not value or len(value) % 4:
        return None
    row: Vectors = np.frombuffer(value, dtype="<f4")
    return row if np.isfinite(row).all() else None


class LLMCache(Cache):
    """Language models' answers by model fingerprint and question key; see `Cache`.

    It holds answers alone: no question, no key of an endpoint.

    >>> cache = LLMCache()
    >>> cache.store("model-1", b"Is the sky blue?", "It is.")
    >>> cache.fetch("model-1", b"Is the sky blue?"), cache.fetch("model-2", b"Is the sky blue?")
    ('It is.', None)
    """

    kind = "answer"

    def fetch(self, model: str, key: bytes) -> str | None:
        """The answer; None where there is none or the entry is damaged."""
        value = self._read(model, [key]).get(key)
        try:
            return None if value is None else value.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return None

    def store(self, model: str, key: bytes, answer: str) -> None:
        """Keep an answer. When this returns, it is on disk."""
        self._write(model, [(key, answer.encode("utf-8", "surrogatepass"))])


class CachedEmbedder:
    """An embedder that reads the cache first. The model embeds each distinct missing text once, longest first.

    Every batch is kept at once: an interrupted run resumes. Documents and queries have separate entries only where the
    model distinguishes them. Name and fingerprint are the model's.

    Args:
        embedder: the model.
        cache: None for a new one in memory.
        batch_size: texts per call of the model.
        progress: called after each batch with the number of texts embedded and the number to embed in this call.
        timeout: seconds a batch may take; it is tried twice before a `ModelError`. None waits for ever, which suits a
            model in this process.

    Attributes:
        embedded: how many texts the model embedded.

    Raises `OptionError`: batch_size is under 1, or timeout is not a positive number of seconds.
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
        check_number("batch_size", batch_size, 1)
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
        # Of two threads that need the same text, the second finds what the first stored.
        self._lock = threading.RLock()
        if isinstance(embedder, TokenCountingEmbedder):
            self.count_tokens: Callable[[Sequence[str]], Numbers] = embedder.count_tokens

    def __reduce__(self) -> tuple[Any, ...]:
        # Without the progress callback, which belongs to this process.
        return partial(type(self), batch_size=self.batch_size, timeout=self.timeout), (self.embedder, self.cache)

    @property
    def fingerprint(self) -> str:
        """The model's own."""
        return self.embedder.fingerprint

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One row a text: float32, shape (len(texts), dimensions). Raises `ModelError`: the model failed twice."""
        return self._embed(texts, queries=False)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """One row a query: float32, shape (len(texts), dimensions). Raises `ModelError`: the model failed twice."""
        return self._embed(texts, queries=True)

    def _embed(self, texts: Sequence[str], *, queries: bool) -> Vectors:
        role = "" if self.symmetric else "query" if queries else "document"
        unique, places = distinct(texts)
        keys = [text_key(text, role) for text in unique]
        with self._lock:
            found, vectors = self.cache.fetch(self.fingerprint, keys)
            missing = np.flatnonzero(~found)
            done = 0
            for batch in sorted_batches([len(unique[i]) for i in missing], size=self.batch_size):
                rows = missing[batch]
                answer = embed(self.embedder, [unique[i] for i in rows], queries=queries, timeout=self.timeout)
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
        return vectors if len(unique) == len(texts) else vectors[places]
