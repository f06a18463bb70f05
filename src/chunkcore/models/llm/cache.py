"""`LLMCache`: answers on disk, by model, messages and schema; and `CachedLLM`, which looks there first."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, ClassVar

from chunkcore.models.cache import SqliteCache, transaction
from chunkcore.models.llm.base import LLM, Message, Reply, Usage, UsageMeter, awaited

__all__ = ["CachedLLM", "LLMCache", "question_key"]


def question_key(messages: Sequence[Message], schema: Mapping[str, Any] | None) -> bytes:
    """20 bytes that stand for messages and the schema of their answer."""
    data = json.dumps([list(messages), schema], sort_keys=True, ensure_ascii=True)
    return blake2b(data.encode("ascii"), digest_size=20).digest()


class LLMCache(SqliteCache):
    """Answers by model fingerprint and question. Threads and processes may share one file.

    It holds answers alone: no question, no key of an endpoint. It is a `SqliteCache`: a damaged one is set aside
    with a `CacheWarning`, and where nothing can be written the run goes on with memory alone.

    Args:
        path: the file, begun where there is none; None keeps everything in memory for this run.
        wait_seconds: how long to wait for another process that is writing.

    Raises:
        OptionError: the file is there, and not such a cache.

    >>> cache = LLMCache()
    >>> key = question_key([{"role": "user", "content": "Is the sky blue?"}], None)
    >>> cache.store("model-1", key, "It is.")
    >>> cache.fetch("model-1", key), cache.fetch("model-2", key)
    ('It is.', None)
    """

    contents = "a language model's answers"
    application = 0x63686B61  # "chka"
    tables: ClassVar[dict[str, str]] = {
        "answers": "model TEXT NOT NULL, key BLOB NOT NULL, answer BLOB NOT NULL, checksum INTEGER NOT NULL, "
        "PRIMARY KEY (model, key)"
    }

    def fetch(self, model: str, key: bytes) -> str | None:
        """The answer that was kept; None where there is none, or it is damaged."""
        return self._lookup([key], lambda connection, keys: _select(connection, model, keys)).get(key)

    def store(self, model: str, key: bytes, answer: str) -> None:
        """Keep an answer. It is on disk when this returns."""
        data = answer.encode("utf-8", "surrogatepass")
        self._keep(lambda connection: _insert(connection, model, key, data))


def _select(connection: sqlite3.Connection, model: str, keys: Sequence[bytes]) -> dict[bytes, str]:
    found = {}
    for key in keys:
        row = connection.execute(
            "SELECT answer, checksum FROM answers WHERE model = ? AND key = ?", (model, key)
        ).fetchone()
        if row is not None and zlib.crc32(row[0]) == row[1]:
            found[key] = row[0].decode("utf-8", "surrogatepass")
    return found


def _insert(connection: sqlite3.Connection, model: str, key: bytes, data: bytes) -> bool:
    with transaction(connection):
        connection.execute(
            "INSERT OR REPLACE INTO answers (model, key, answer, checksum) VALUES (?, ?, ?, ?)",
            (model, key, data, zlib.crc32(data)),
        )
    return True


class CachedLLM:
    """A language model that is never asked again what it has answered well.

    What an answer is worth only the asker knows: `ask` looks here first, and keeps what it found valid, so
    that garbage is never kept. It has the model's name and fingerprint.

    Args:
        llm: the model.
        cache: None for a new one in memory.
    """

    def __init__(self, llm: LLM, cache: LLMCache | None = None) -> None:
        self.llm = llm
        self.cache = LLMCache() if cache is None else cache
        self._kept = UsageMeter()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.llm, self.cache)

    @property
    def name(self) -> str:
        """The model's own: the cache changes nothing."""
        return self.llm.name

    @property
    def fingerprint(self) -> str:
        """The model's own."""
        return self.llm.fingerprint

    @property
    def concurrency(self) -> int:
        """The model's own."""
        return int(getattr(self.llm, "concurrency", 1))

    @property
    def usage(self) -> Usage:
        """What the model has been asked in this process, where it says, and how many answers came from here."""
        own: Usage = getattr(self.llm, "usage", Usage())
        return own + self._kept.usage

    def complete(self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None) -> str | Reply:
        """The model's answer: what is kept is asked for with `recall`."""
        answer: str | Reply = awaited(self.llm.complete(messages, schema))
        return answer

    def recall(self, messages: Sequence[Message], schema: Mapping[str, Any] | None) -> str | None:
        """The answer that was kept, if there is one."""
        answer = self.cache.fetch(self.fingerprint, question_key(messages, schema))
        if answer is not None:
            self._kept.add(Usage(kept_answers=1))
        return answer

    def keep(self, messages: Sequence[Message], schema: Mapping[str, Any] | None, answer: str) -> None:
        """Keep an answer that was found valid."""
        self.cache.store(self.fingerprint, question_key(messages, schema), answer)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CachedLLM) and other.llm == self.llm

    def __hash__(self) -> int:
        return hash(self.llm)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.llm!r})"
