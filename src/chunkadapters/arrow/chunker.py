"""`ArrowChunker`: record batches of documents to record batches of chunks."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import cached_property, partial
from itertools import starmap
from typing import Any, Literal

import pyarrow as pa

from chunkadapters.arrow.reading import METADATA, Reading, read_rows
from chunkadapters.arrow.writing import Row, Vectorizer, batched, chunk_rows, chunk_schema, spark_schema
from chunkadapters.configuration import DEFAULT_STRATEGY, build, is_bridged
from chunkadapters.models import secrets_within, without_secrets
from chunkcore.chunkers import Chunker
from chunkcore.concurrency import batches_of
from chunkcore.document import Chunk, Document
from chunkcore.errors import ChunkcoreError, DataError, OptionError
from chunkcore.models import Embedder, get_embedder
from chunkcore.registry import check_number

# How many documents, and how many characters, are cut together if that is cheaper.
_TOGETHER = 64
_CHARACTERS = 100_000


def _cut_each(chunker: Chunker, readings: Iterable[Reading]) -> Iterator[tuple[Reading, list[Chunk] | Exception]]:
    """Each row with its chunks, in order, lazily; or with the error. An empty document gives []."""

    def characters(reading: Reading) -> int:
        return len(reading.document.text) if reading.document else 0

    for group in batches_of(readings, characters, _CHARACTERS, _TOGETHER if chunker.tokens_only else 1):
        cut = _cut(chunker, [each.document for each in group if each.document is not None])
        for reading in group:
            yield reading, next(cut) if reading.problem is None else reading.problem


def _cut(chunker: Chunker, documents: list[Document]) -> Iterator[list[Chunk] | Exception]:
    if len(documents) > 1:
        with suppress(Exception):  # found again, below
            yield from list(chunker.chunk_each(documents))
            return
    for document in documents:
        try:
            yield chunker.chunk(document)
        except Exception as error:  # noqa: BLE001  # a document's failure is its row
            yield error


_MOST_CHARACTERS = 500_000_000  # at 4 bytes each still within one string of Arrow's
_PROBLEM_LENGTH = 1000


@dataclass(frozen=True)
class ArrowChunker:
    """A function from a record batch or table of documents to one of chunks (see `chunk_schema`).

    Rows are in the documents' order, and do not depend on the other documents of the batch. A document that is empty,
    white space or cannot be chunked gives one row with the reason in ``error``. A pickle holds the configuration, no
    model and no key; each worker process loads the model on first use.

    Attributes:
        chunker: a chunker, a spec string such as ``"recursive:size=200"``, or a strategy's name.
        options: options of a named strategy; ``chunk_size`` and ``chunk_overlap`` work too.
        embedder: an `Embedder` or its name, for vectors.
        dimensions: of the vectors; by default the embedder's, or the length of one vector.
        id_column: strings, or integers, which become strings.
        text_column: strings, or UTF-8 as binary; also large, view or dictionary-encoded.
        metadata_column: a JSON object in a string, a struct or a map; optional unless named here. Other columns are not
            read: join them by ``document_id``.
        max_characters: longer documents are not chunked; at most 500,000,000.
        errors: "row", or "raise" for a `DataError` at the first document that fails.

    Raises `OptionError`: an unknown strategy or option, or a value out of range.

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
    metadata_column: str = METADATA
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
        check_number("max_characters", self.max_characters, 1, _MOST_CHARACTERS)
        if self.errors not in ("row", "raise"):
            raise OptionError(f"errors is 'row' or 'raise', got {self.errors!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        for model in (self.embedder, self.chunker):
            if is_bridged(model):
                raise OptionError(
                    "a framework's model may hold a key, and is not sent to other processes: name the model, or make "
                    "the ArrowChunker in the worker"
                )
        given = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "chunker"}
        if "schema" in self.__dict__ and self._vectorizer is not None:
            given["dimensions"] = self._vectorizer.dimensions  # so that no worker asks again
        return partial(type(self), **given), (self.chunker,)

    @cached_property
    def schema(self) -> pa.Schema:
        """The rows' schema: `chunk_schema`. An embedder without stated dimensions is asked for a vector."""
        if self.dimensions is not None or self._vectorizer is None:
            return chunk_schema(self.dimensions)
        return chunk_schema(self._vectorizer.dimensions)

    def __call__(self, batch: pa.RecordBatch | pa.Table) -> pa.RecordBatch | pa.Table:
        """The chunks of the batch's documents.

        Raises:
            DataError: a column is missing, the chunks exceed one record batch, or a document fails with
                ``errors="raise"``.
            OptionError: unknown embedder.
            MissingExtraError: a package of the embedder is not installed.
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
        return together[0]

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The chunks of a stream of documents, lazily, in batches of at most 8,192 rows and some 32 M characters.

        For Spark's ``mapInArrow``. Memory holds one batch in, one batch out, and the largest document with its chunks.
        Raises as `__call__`.
        """
        answers = (rows for batch in batches for rows in self._answers(batch))
        yield from batched(answers, self.schema)

    def nested(self, batch: pa.RecordBatch) -> pa.ListArray:
        """A list of rows, as structs, per row of the batch: for functions over columns. Raises as `__call__`."""
        lists = [list(rows) for rows in self._answers(batch)]
        return pa.array(lists, type=pa.list_(pa.struct(list(self.schema))))

    def _answers(self, batch: pa.RecordBatch) -> Iterator[Iterable[Row]]:
        if not isinstance(batch, pa.RecordBatch):
            raise DataError(
                f"expected a pyarrow.RecordBatch or a pyarrow.Table, got {type(batch).__name__}; in Ray Data give "
                "batch_format='pyarrow'"
            )
        _ = self._loaded
        names = (self.id_column, self.text_column, self.metadata_column)
        assert isinstance(self.chunker, Chunker)
        return starmap(self._rows, _cut_each(self.chunker, read_rows(batch, names, self.max_characters)))

    def _rows(self, reading: Reading, cut: list[Chunk] | Exception) -> Iterable[Row]:
        if not cut:
            told = "it has no chunks: its text is empty or white space alone"
            return [{"document_id": reading.id, "error": told}]
        problem = cut
        if isinstance(cut, list) and reading.document is not None:
            try:
                embedding = None if self._vectorizer is None else self._vectorizer(cut)
                return chunk_rows(reading.document, cut, embedding)
            except Exception as error:  # noqa: BLE001  # a document's failure is its row
                problem = error
        assert isinstance(problem, Exception)
        told = self._told(problem)
        if self.errors == "raise":
            raise DataError(f"the document {reading.id!r} cannot be cut: {told}") from problem
        return [{"document_id": reading.id, "error": told}]

    def _told(self, problem: Exception) -> str:
        """An error on one line of UTF-8, without secrets."""
        name = "" if isinstance(problem, ChunkcoreError) else f"{type(problem).__name__}: "
        secrets = secrets_within(self.embedder, self.chunker)
        clean = without_secrets(f"{name}{problem}", secrets, longest=_PROBLEM_LENGTH)
        return clean.encode("utf-8", "backslashreplace").decode("utf-8")

    @cached_property
    def _loaded(self) -> None:
        """Load tokenizer and models, so that their failure is not reported as a document's error."""
        assert isinstance(self.chunker, Chunker)
        _ = self._vectorizer, self.chunker.fingerprint, self.chunker.token_counter.count("a")

    @cached_property
    def _vectorizer(self) -> Vectorizer | None:
        return None if self.embedder is None else Vectorizer(get_embedder(self.embedder), self.dimensions)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)


def ray_chunks(dataset: Any, chunker: ArrowChunker, *, actors: int = 2, batch_size: int = 64, **options: Any) -> Any:
    """The chunks of a Ray dataset with the chunker's columns, as a lazy Ray dataset.

    Args:
        actors: worker processes; each loads the model once and takes one of Ray's cores, unless ``num_cpus`` says less.
            Leave cores for reading.
        batch_size: documents per call of an actor.
        options: of `ray.data.Dataset.map_batches`, such as ``num_cpus``, ``num_gpus`` or ``memory`` of an actor.

    Warns:
        UserWarning: the actors take all cores: Ray would wait for more forever.
    """
    import ray
    from ray.data import ActorPoolStrategy

    cores = ray.cluster_resources().get("CPU", 0) if ray.is_initialized() else None
    taken = actors * (options.get("num_cpus") or (0 if options.get("num_gpus") else 1))
    if cores is not None and taken >= cores:
        warnings.warn(
            f"{actors} actors take {taken:g} of Ray's {cores:g} cores, and none is left to read the documents: ask for "
            "fewer actors, or give num_cpus=0.5",
            stacklevel=2,
        )
    return dataset.map_batches(
        _Actor,
        fn_constructor_args=(chunker,),
        batch_format="pyarrow",
        batch_size=batch_size,
        compute=ActorPoolStrategy(size=actors),
        **options,
    )


def spark_chunks(frame: Any, chunker: ArrowChunker) -> Any:
    """The chunks of a Spark data frame with the chunker's columns, lazily. Vectors become arrays of floats.

    The chunker's `schema` is computed here, which may ask the embedder.
    """
    # Spark has no lists of fixed sizes.
    kinds = {field.name: field.type for field in chunker.schema}
    lists = {name: pa.list_(kind.value_type) for name, kind in kinds.items() if pa.types.is_fixed_size_list(kind)}
    schema = pa.schema([field.with_type(lists.get(field.name, field.type)) for field in chunker.schema])

    def cut(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (batch.cast(schema) for batch in chunker.batches(batches))

    return frame.mapInArrow(cut, spark_schema(chunker.schema))


class _Actor:
    def __init__(self, chunker: ArrowChunker) -> None:
        self._chunker = chunker

    def __call__(self, batch: pa.Table) -> pa.Table:
        return self._chunker(batch)
