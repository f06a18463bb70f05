"""What models gave, kept in one SQLite file: vectors (`EmbeddingCache`) and language models' answers (`LLMCache`)."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import warnings
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from itertools import compress
from math import ceil
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from chunkcore.errors import OptionError
from chunkcore.models.base import Vectors, check_vectors
from chunkcore.spans import Flags

T = TypeVar("T")

MAX_BYTES = 10 * 10**9
_APPLICATION = 0x63686B63  # "chkc", the application id in the file's header
_VERSION = 3
_TABLE = """CREATE TABLE IF NOT EXISTS entries (
    space TEXT NOT NULL, key BLOB NOT NULL, checksum INTEGER NOT NULL, used INTEGER NOT NULL, value BLOB NOT NULL,
    PRIMARY KEY (space, key))"""
WAIT = 30.0  # seconds, for another process that writes
_KEPT_BY_PRUNING = 0.8  # of the limit, so that not every later write prunes

# One connection a call, under one lock: nothing is open when the process forks, so a child inherits no file locks.
_lock = threading.RLock()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )


class CacheWarning(UserWarning):
    """A cache could not be used as asked. Results are the same; the run is slower."""


class CacheSize(NamedTuple):
    """What a cache holds: bytes on disk, vectors, and language models' answers."""

    bytes: int
    vectors: int
    answers: int


class Cache:
    """Bytes by model fingerprint and key, in one file for threads, processes and forks.

    The base class of `EmbeddingCache` and `LLMCache`, which may share a file. Only its owner can read the file. A
    damaged file, or one of an older version, is renamed with a `CacheWarning`, and a new one starts. Where nothing can
    be read or written, the run continues in memory with a `CacheWarning`. Each entry's checksum covers its model, key
    and value: a damaged entry is a cache miss.

    Args:
        path: the file; created where there is none. None keeps everything in memory for this run. Past `MAX_BYTES`,
            the entries that were not used for the longest time are removed.

    Raises `OptionError`: the file is not a cache.
    """

    kind: ClassVar[str] = ""  # the entries that this class reads and writes: "vector" or "answer"

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._readable = self._writable = path is not None
        self._memory: dict[tuple[str, bytes], bytes] = {}
        self._warned_of_entries = False
        self._on_disk(lambda disk: None)

    def __len__(self) -> int:
        """The number of entries of this kind, of all models."""
        return self._count(self.kind)

    def __reduce__(self) -> tuple[Any, ...]:
        # A pickle holds the path; entries that are in memory alone stay behind.
        return type(self), (self.path,)

    def size(self) -> CacheSize:
        """What the file holds, of both kinds."""
        size = self.path.stat().st_size if self.path and self.path.is_file() else 0
        return CacheSize(size, self._count("vector"), self._count("answer"))

    def clear(self) -> int:
        """Remove every entry of both kinds; the number of removed entries."""
        self._memory.clear()

        def clear(disk: sqlite3.Connection) -> int:
            with disk:
                removed = disk.execute("DELETE FROM entries").rowcount
            disk.execute("VACUUM")
            return removed

        return self._on_disk(clear, writes=True) or 0

    # ---- entries

    def _count(self, kind: str) -> int:
        query = "SELECT count(*) FROM entries WHERE space GLOB ?"
        row = self._on_disk(lambda disk: disk.execute(query, (f"{kind}:*",)).fetchone()) or (0,)
        return int(row[0]) + sum(space.startswith(kind) for space, _ in self._memory)

    def _read(
        self,
        model: str,
        keys: Sequence[bytes],
    ) -> dict[bytes, bytes]:
        """The sound entries of these keys, from disk or else from memory."""
        space = f"{self.kind}:{model}"
        values = {key: self._memory[space, key] for key in keys if (space, key) in self._memory}
        query = "SELECT value, checksum, used FROM entries WHERE space = ? AND key = ?"
        now = hours_since_1970()

        def select(disk: sqlite3.Connection) -> None:
            stale = []
            damaged = 0
            for key in keys:
                for value, checksum, used in disk.execute(query, (space, key)):
                    if not isinstance(value, bytes) or checksum != _checksum(space, key, value):
                        damaged += 1
                        continue
                    values[key] = value
                    if used != now:
                        stale.append((now, space, key))
            if stale and self._writable:
                disk.execute("PRAGMA busy_timeout = 0")
                update = "UPDATE entries SET used = ? WHERE space = ? AND key = ?"
                with suppress(sqlite3.OperationalError), disk:  # another writes: not worth a wait
                    disk.executemany(update, stale)
            if damaged and not self._warned_of_entries:
                self._warned_of_entries = True
                self._warn(
                    f"has {damaged} damaged entries of {len(keys)} that were looked up; they count as missing"
                )

        self._on_disk(select)
        return values

    def _write(
        self,
        model: str,
        entries: Sequence[tuple[bytes, bytes]],
    ) -> None:
        space, now = f"{self.kind}:{model}", hours_since_1970()
        rows = [(space, key, _checksum(space, key, value), now, value) for key, value in entries]

        def insert(disk: sqlite3.Connection) -> bool:
            with disk:
                disk.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?)", rows)
                _prune(disk)
            return True

        if not self._on_disk(insert, writes=True):
            self._memory.update(((space, key), value) for key, value in entries)

    # ---- the file

    def _on_disk(
        self,
        work: Callable[[sqlite3.Connection], T],
        *,
        writes: bool = False,
    ) -> T | None:
        """The result of `work`; None, after one warning, where the file cannot be used."""
        with _lock:
            for _ in range(2):
                if self.path is None or not (self._writable if writes else self._readable):
                    return None
                try:
                    _check_file(self.path)
                    file = sqlite3.connect(self.path, timeout=WAIT, isolation_level="IMMEDIATE")
                    with closing(file) as disk:
                        _begin(disk)
                        return work(disk)
                except OptionError:
                    raise
                except (sqlite3.OperationalError, OSError, ValueError) as error:
                    # Locked, full, read-only, or without a folder.
                    self._give_up(error, reads=not writes)
                except sqlite3.DatabaseError as error:
                    self._set_aside(self.path, error)
        return None

    def _give_up(
        self,
        reason: Exception,
        *,
        reads: bool,
    ) -> None:
        self._writable = False
        self._readable = self._readable and not reads
        what = "written to" if self._readable else "read"
        self._warn(f"cannot be {what} ({reason}); going on with memory alone")

    def _set_aside(self, path: Path, reason: Exception) -> None:
        aside = path.with_name(f"{path.name}.damaged")
        try:
            path.replace(aside)
            with suppress(FileNotFoundError):
                Path(f"{path}-journal").replace(f"{aside}-journal")
        except FileNotFoundError:
            return  # another process was first
        except OSError as error:
            self._give_up(error, reads=True)
            return
        self._warn(
            f"cannot be read ({reason}); it was set aside as {aside.name} and a new one begun"
        )

    def _warn(self, what: str) -> None:
        warnings.warn(f"the cache {str(self.path)!r} {what}", CacheWarning, stacklevel=5)


def _begin(disk: sqlite3.Connection) -> None:
    """The settings of a connection, and the table in a new file."""
    disk.text_factory = bytes  # damage can turn a value into a text that is not UTF-8
    disk.execute("PRAGMA synchronous = NORMAL")
    if disk.execute("PRAGMA application_id").fetchone() == (0,):
        with disk:
            disk.execute("BEGIN IMMEDIATE")
            disk.execute(_TABLE)
            disk.execute(f"PRAGMA application_id = {_APPLICATION}")
            disk.execute(f"PRAGMA user_version = {_VERSION}")


def _check_file(path: Path) -> None:
    """Raise for a file that is no cache of this version, `OptionError` for another program's; begin a new file."""
    if path.is_fifo():
        raise OSError("it is a pipe")  # reading it would wait for ever
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    with path.open("rb") as file:
        header = file.read(100)
    if not header:
        return
    if int.from_bytes(header[68:72], "big") != _APPLICATION:
        raise OptionError(
            f"{str(path)!r} is no cache and was left as it is: name another file, or delete it"
        )
    version = int.from_bytes(header[60:64], "big")
    if version != _VERSION:
        raise sqlite3.DatabaseError(f"it is of version {version}; expected {_VERSION}")


def _prune(disk: sqlite3.Connection) -> None:
    """From a file that is too large, remove the oldest entries, by the share by which it is."""
    names = ("page_count", "freelist_count", "page_size")
    pages, free, size = (disk.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
    used = (pages - free) * size
    if used > MAX_BYTES:
        (count,) = disk.execute("SELECT count(*) FROM entries").fetchone()
        excess = ceil(count * (1 - _KEPT_BY_PRUNING * MAX_BYTES / used))
        query = "DELETE FROM entries WHERE rowid IN (SELECT rowid FROM entries ORDER BY used, rowid LIMIT ?)"
        disk.execute(query, (excess,))


def _checksum(space: str, key: bytes, value: bytes) -> int:
    return zlib.crc32(b"".join((f"{space}\0".encode(), key, value)))


def hours_since_1970() -> int:
    """The present time: what was used in the same hour is equally recent."""
    return int(time.time() // 3600)


class EmbeddingCache(Cache):
    """Float32 vectors by model fingerprint and text key; see `Cache`.

    >>> from chunkcore.plain import text_key
    >>> cache = EmbeddingCache()
    >>> cache.store("model-1", [text_key("sky")], np.array([[0.5, 2.0]], dtype=np.float32))
    >>> is_kept, vectors = cache.fetch("model-1", [text_key("sky"), text_key("sea")])
    >>> is_kept.tolist(), vectors.tolist()
    ([True, False], [[0.5, 2.0], [0.0, 0.0]])
    """

    kind = "vector"

    def fetch(
        self,
        model: str,
        keys: Sequence[bytes],
    ) -> tuple[Flags, Vectors]:
        """Which keys are there, and one row a key: float32, shape (len(keys), dimensions or 0), zeros without one."""
        rows = self._read(model, keys)
        size = len(next(iter(rows.values()), b""))
        kept = [key in rows and len(rows[key]) == size for key in keys]
        vectors = np.zeros((len(keys), size // 4), dtype=np.float32)
        for number, key in compress(enumerate(keys), kept):
            vectors[number] = np.frombuffer(rows[key], dtype="<f4")
        return np.array(kept, dtype=np.bool_), vectors

    def store(
        self,
        model: str,
        keys: Sequence[bytes],
        vectors: Vectors,
    ) -> None:
        """Keep one vector a key, on disk when this returns. Raises `ModelError`: not one a key, NaN or infinity."""
        if not len(keys):
            return
        vectors = check_vectors(vectors, len(keys), model=model)
        values = [row.tobytes() for row in np.ascontiguousarray(vectors, dtype="<f4")]
        self._write(model, list(zip(keys, values, strict=True)))


class LLMCache(Cache):
    """Language models' answers by model fingerprint and question key; see `Cache`.

    It holds answers alone: no question, no key of an endpoint.

    >>> cache = LLMCache()
    >>> cache.store("model-1", b"Is the sky blue?", "It is.")
    >>> cache.fetch("model-1", b"Is the sky blue?"), cache.fetch("model-2", b"Is the sky blue?")
    ('It is.', None)
    """

    kind = "answer"

    def fetch(
        self,
        model: str,
        key: bytes,
    ) -> str | None:
        """The answer; None where there is none or the entry is damaged."""
        value = self._read(model, [key]).get(key)
        return None if value is None else value.decode("utf-8", "surrogatepass")

    def store(
        self,
        model: str,
        key: bytes,
        answer: str,
    ) -> None:
        """Keep an answer. When this returns, it is on disk."""
        self._write(model, [(key, answer.encode("utf-8", "surrogatepass"))])
