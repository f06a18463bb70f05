"""From documents to their chunks: many at a time where that is cheaper, and each alone where one of them fails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from chunkadapters.arrow.reading import Reading
from chunkcore.chunkers.base import Chunker
from chunkcore.document import Chunk, Document
from chunkcore.errors import DataError

__all__ = ["BlankError", "Cut", "cut_each"]

# Small documents are cut together where that is cheaper: see `Chunker.chunk_each`.
_TOGETHER = 64
_CHARACTERS = 100_000


class BlankError(DataError):
    """There is nothing to cut: told like an error, so that every document has a row, and never raised."""


class Cut(NamedTuple):
    """A row's document and its chunks.

    Attributes:
        reading: what the row says.
        chunks: none where there is a problem.
        problem: why there are none.
    """

    reading: Reading
    chunks: list[Chunk]
    problem: Exception | None = None


def cut_each(chunker: Chunker, readings: Iterable[Reading]) -> Iterator[Cut]:
    """Every row, in order, lazily; whatever is raised for a document is its problem, and no other's."""
    for group in _groups(readings, _TOGETHER if chunker.tokens_only else 1):
        cut = _cut(chunker, [each.document for each in group if each.document is not None])
        for reading in group:
            if reading.document is None:
                yield Cut(reading, [], reading.problem)
                continue
            answer = next(cut)
            if isinstance(answer, Exception):
                yield Cut(reading, [], answer)
            elif answer:
                yield Cut(reading, answer)
            else:
                yield Cut(reading, [], BlankError("it has no chunks: its text is empty or white space alone"))


def _groups(readings: Iterable[Reading], most: int) -> Iterator[list[Reading]]:
    group: list[Reading] = []
    characters = 0
    for reading in readings:
        group.append(reading)
        characters += len(reading.document.text) if reading.document else 0
        if len(group) == most or characters >= _CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group


def _cut(chunker: Chunker, documents: list[Document]) -> Iterator[list[Chunk] | Exception]:
    if len(documents) > 1:
        with suppress(Exception):  # whatever it is: it is found again, below
            yield from list(chunker.chunk_each(documents))
            return
    for document in documents:
        try:
            yield chunker.chunk(document)
        except Exception as error:  # noqa: BLE001 - one document's failure is its row, and no other's
            yield error
