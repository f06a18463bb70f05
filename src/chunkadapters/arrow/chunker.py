"""`ArrowChunker`: record batches of documents to record batches of chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import cached_property, partial
from typing import Any, Literal

import pyarrow as pa

from chunkadapters._configuration import DEFAULT_STRATEGY, build, is_bridged
from chunkadapters._models.identity import secrets_within, without_secrets
from chunkadapters.arrow.reading import Columns, Reading
from chunkadapters.arrow.schema import chunk_schema
from chunkadapters.arrow.writing import Row, batched, chunk_rows, error_row
from chunkcore.chunkers.base import Chunker
from chunkcore.document import Chunk, Document
from chunkcore.errors import ChunkcoreError, DataError, ModelError, OptionError
from chunkcore.models import embed, get_embedder
from chunkcore.models.base import Embedder, TokenCountingEmbedder

__all__ = ["ArrowChunker"]

# Small documents are cut together where that is cheaper: see `Chunker.chunk_each`.
_TOGETHER = 64
_TOGETHER_CHARACTERS = 100_000
_MOST_CHARACTERS = 500_000_000  # at 4 bytes each still within one string of Arrow's
_PROBLEM_LENGTH = 1000


@dataclass(frozen=True)
class ArrowChunker:
    """A function from a record batch of documents to a record batch of chunks (see `chunk_schema`).

    It is called with a `pyarrow.RecordBatch` or a `pyarrow.Table` and answers with the same. Each document's rows stand
    together, in the documents' order. A row depends on its document alone, never on what else is in the batch:
    however documents are partitioned, the rows are the same, byte for byte, on the same kind of machine (see the page
    on Arrow for what a model's vectors add to that).

    Every document gives at least one row. One that cannot be cut (null, no UTF-8, too long, refused by the strategy or
    its model) or that is empty or white space alone gives one row that says so in ``error``.

    A pickle holds the configuration alone, no model and no key: engines' workers load the model when they first need
    it, once in each process.

    Attributes:
        chunker: a chunker, or a spec string such as ``"recursive:size=200"``, or a strategy's name.
        options: of a strategy that was named; ``chunk_size`` and ``chunk_overlap`` are understood as well.
        embedder: of the vectors, where they are wanted: a name that `get_embedder` knows, or an `Embedder`.
        dimensions: of the vectors; by default what the embedder says, or the length of one vector that it is asked for.
        id_column: the column of documents' ids: strings, or integers, which become strings.
        text_column: the column of texts: strings, or binary that is UTF-8. Large, view and dictionary-encoded
            columns are as good.
        metadata_column: of a JSON object in a string, a struct or a map; it may be absent. Other columns are not read:
            join them by ``document_id``.
        max_characters: documents that are longer are not cut; at most 500,000,000.
        errors: "row", or "raise" for a `DataError` at the first document that cannot be cut.

    Raises:
        OptionError: an unknown strategy or option, or a value out of range.

    >>> batch = pa.RecordBatch.from_pylist([{"id": "tea", "text": "Green tea. Black tea."}, {"id": "none"}])
    >>> for row in ArrowChunker("recursive:size=11,overlap=0,counter=characters")(batch).to_pylist():
    ...     print(row["document_id"], row["spans"], row["text"], row["error"])
    tea [{'start': 0, 'end': 10}] Green tea. None
    tea [{'start': 11, 'end': 21}] Black tea. None
    none None None its text is null: expected a string
    """

    chunker: Chunker | str = DEFAULT_STRATEGY
    _: KW_ONLY
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    embedder: Embedder | str | None = None
    dimensions: int | None = None
    id_column: str = "id"
    text_column: str = "text"
    metadata_column: str = "metadata"
    max_characters: int = 20_000_000
    errors: Literal["row", "raise"] = "row"

    def __post_init__(self) -> None:
        object.__setattr__(self, "chunker", build(self.chunker, options=self.options))
        object.__setattr__(self, "options", {})  # the chunker has them now
        if self.dimensions is not None:
            chunk_schema(self.dimensions)
            if self.embedder is None:
                raise OptionError("dimensions are those of an embedder's vectors: give embedder as well")
        names = (self.id_column, self.text_column, self.metadata_column)
        if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise OptionError(f"id_column, text_column and metadata_column name three columns, got {names}")
        if type(self.max_characters) is not int or not 1 <= self.max_characters <= _MOST_CHARACTERS:
            raise OptionError(f"max_characters is from 1 to {_MOST_CHARACTERS:,}, got {self.max_characters!r}")
        if self.errors not in ("row", "raise"):
            raise OptionError(f"errors is 'row' or 'raise', got {self.errors!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Its configuration.

        Raises:
            OptionError: a framework's model is among it, which may hold a key.
        """
        for model in (self.embedder, self.chunker):
            if is_bridged(model):
                raise OptionError(
                    "a framework's model may hold a key, and is not sent to other processes: name the model, or make "
                    "the ArrowChunker in the worker"
                )
        given = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "chunker"}
        if "_dimensions" in self.__dict__:
            given["dimensions"] = self._dimensions  # asked for once, not again by every worker
        return partial(type(self), **given), (self.chunker,)

    @cached_property
    def schema(self) -> pa.Schema:
        """That of the rows: `chunk_schema`. With an embedder that does not state its dimensions, it is asked.

        Raises:
            OptionError: there is no such embedder.
            MissingExtraError: what runs it is not installed.
            ModelError: it does not answer.
        """
        return chunk_schema(self._dimensions)

    def __call__(self, batch: pa.RecordBatch | pa.Table) -> pa.RecordBatch | pa.Table:
        """The chunks of the batch's documents.

        Raises:
            DataError: the batch has no column of ids or of texts, or what it gives is too large for one record batch;
                or, with ``errors="raise"``, a document cannot be cut.
            OptionError: there is no such embedder.
            MissingExtraError: what runs the embedder is not installed.
        """
        if isinstance(batch, pa.Table):
            return pa.Table.from_batches(self.batches(batch.to_batches() or [_empty(batch.schema)]), schema=self.schema)
        made = list(self.batches([batch]))
        if len(made) == 1:
            return made[0]
        if not made:
            return _empty(self.schema)
        together = pa.Table.from_batches(made, schema=self.schema).combine_chunks().to_batches()
        if len(together) > 1:
            raise DataError(
                "these documents' chunks are over 2 GiB, which one record batch cannot hold: give fewer documents, a "
                "table, or use batches()"
            )
        return together[0]  # type: ignore[no-any-return]

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The chunks of a stream of documents, lazily, in batches of at most 8,192 rows and some 32 M characters.

        Memory holds one such batch, one of those that come in, and the largest document with its chunks. It is what
        Spark's ``mapInArrow`` calls.

        Raises:
            DataError, OptionError, MissingExtraError: as when it is called.
        """
        answers = (rows for batch in batches for rows in self._answers(batch))
        yield from batched(answers, self.schema)

    def nested(self, batch: pa.RecordBatch) -> pa.ListArray:
        """For each row of the batch the list of its rows, as structs: what functions over columns want to answer.

        Raises:
            DataError, OptionError, MissingExtraError: as when it is called.
        """
        return pa.array(list(self._answers(batch)), type=pa.list_(pa.struct(list(self.schema))))

    def _answers(self, batch: pa.RecordBatch) -> Iterator[list[Row]]:
        """For each document its rows."""
        if not isinstance(batch, pa.RecordBatch):
            raise DataError(
                f"expected a pyarrow.RecordBatch or a pyarrow.Table, got {type(batch).__name__}; in Ray Data give "
                "batch_format='pyarrow'"
            )
        columns = Columns(
            id=self.id_column, text=self.text_column, metadata=self.metadata_column, longest=self.max_characters
        )
        for readings in self._groups(columns.read(batch)):
            cut = self._cut([each.document for each in readings if each.document is not None])
            for reading in readings:
                yield self._rows(reading, None if reading.document is None else next(cut))

    def _groups(self, readings: Iterable[Reading]) -> Iterator[list[Reading]]:
        """Neighbours that are cut together; each alone where a strategy asks models."""
        together = _TOGETHER if self._strategy.tokens_only else 1
        group: list[Reading] = []
        characters = 0
        for reading in readings:
            group.append(reading)
            characters += len(reading.document.text) if reading.document else 0
            if len(group) == together or characters >= _TOGETHER_CHARACTERS:
                yield group
                group, characters = [], 0
        if group:
            yield group

    def _cut(self, documents: list[Document]) -> Iterator[list[Chunk] | Exception]:
        """For each document its chunks, or why it has none; one at which all stumble is found by cutting each alone."""
        if len(documents) > 1:
            with suppress(Exception):  # whatever it is: it is found again, below
                yield from list(self._strategy.chunk_each(documents))
                return
        for document in documents:
            try:
                yield self._strategy.chunk(document)
            except Exception as error:  # noqa: BLE001 - one document's failure is its row, and no other's
                yield error

    def _rows(self, reading: Reading, cut: list[Chunk] | Exception | None) -> list[Row]:
        """A document's chunks as rows, or the one row that says why there are none."""
        problem = reading.problem or cut
        try:
            if reading.document is not None and isinstance(cut, list):
                if not cut:
                    return [error_row(reading.id, "it has no chunks: its text is empty or white space alone")]
                return self._made(reading.document, cut)
        except Exception as error:  # noqa: BLE001 - the same
            problem = error
        assert isinstance(problem, Exception)
        told = self._told(problem)
        if self.errors == "raise":
            raise DataError(f"the document {reading.id!r} cannot be cut: {told}") from problem
        return [error_row(reading.id, told)]

    def _made(self, document: Document, chunks: list[Chunk]) -> list[Row]:
        if self._embedder is None:
            return chunk_rows(chunks, document.metadata, None, [])
        # A document's chunks go to the model together and no other's with them: what is padded with what changes
        # the last bits of vectors, and must not depend on the partition.
        texts = [chunk.embedded_text for chunk in chunks]
        vectors = embed(self._embedder, texts)
        if vectors.shape[1] != self._dimensions:
            raise ModelError(
                f"the model {self._embedder.name!r} answered with {vectors.shape[1]} dimensions: expected "
                f"{self._dimensions}"
            )
        return chunk_rows(chunks, document.metadata, vectors, _truncated(self._embedder, texts))

    def _told(self, problem: Exception) -> str:
        """An error on one line that UTF-8 can say, without keys."""
        name = "" if isinstance(problem, ChunkcoreError) else f"{type(problem).__name__}: "
        clean = without_secrets(f"{name}{problem}", self._secrets, longest=_PROBLEM_LENGTH)
        return clean.encode("utf-8", "backslashreplace").decode("utf-8")

    @property
    def _strategy(self) -> Chunker:
        assert isinstance(self.chunker, Chunker)
        return self.chunker

    @cached_property
    def _embedder(self) -> Embedder | None:
        return None if self.embedder is None else get_embedder(self.embedder)

    @cached_property
    def _dimensions(self) -> int | None:
        if self.dimensions is not None or self._embedder is None:
            return self.dimensions
        stated = getattr(self._embedder, "dimensions", None)
        return stated if type(stated) is int else embed(self._embedder, ["a"]).shape[1]

    @cached_property
    def _secrets(self) -> tuple[str, ...]:
        return secrets_within(self.embedder, self.chunker)


def _truncated(embedder: Embedder, texts: list[str]) -> list[bool | None]:
    """Of each text whether the model reads less than all of it."""
    most = embedder.max_tokens
    if most is None:
        return [False] * len(texts)
    if not isinstance(embedder, TokenCountingEmbedder):
        return [None] * len(texts)
    return [bool(count > most) for count in embedder.count_tokens(texts)]


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)
