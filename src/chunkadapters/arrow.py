"""chunkcore over Arrow: a record batch of documents in, a record batch of chunks out.

Ray Data, Spark, Daft and DuckDB call `ArrowChunker` as it is; `ray_chunks` and `spark_chunks` are shortcuts.
"""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, fields
from datetime import date, datetime, time, timezone
from functools import cached_property, partial
from itertools import chain, starmap
from typing import Any, Literal, NamedTuple

from chunkadapters.configuration import DEFAULT_CHUNKER, build, is_bridged
from chunkadapters.models import secrets_within, without_secrets
from chunkadapters.places import unused_id
from chunkcore.chunkers import Chunker
from chunkcore.concurrency import batches_of
from chunkcore.errors import ChunkcoreError, DataError, MissingExtraError, ModelError, OptionError
from chunkcore.plain import plain
from chunkcore.text import Chunk, Document, Span

try:
    import pyarrow as pa
except ImportError as error:
    raise MissingExtraError.of("pyarrow", "arrow", "chunk Arrow record batches") from error

__all__ = ["CHUNK_SCHEMA", "SPARK_SCHEMA", "ArrowChunker", "ray_chunks", "spark_chunks"]

# ---- Documents from a record batch, or an error a row

METADATA = "metadata"  # the default column, which may be absent
_WRAPPED = (pa.DictionaryScalar, pa.UnionScalar, pa.RunEndEncodedScalar)
_JSON = "arrow.json"  # DuckDB's JSON; other extension types may be anything, pickles included
_PLAIN_EXTENSIONS = (_JSON, "arrow.bool8", "arrow.uuid")
_LONGEST_METADATA = 1_000_000  # characters; every chunk repeats them
_LONGEST_ID = 100_000
_SURROGATE = re.compile("[\ud800-\udfff]")


def innermost(scalar: pa.Scalar) -> pa.Scalar | None:
    """The value inside dictionaries, unions and runs; None if null.

    >>> innermost(pa.array(["tea", None]).dictionary_encode()[0]), innermost(pa.scalar(None))
    (<pyarrow.StringScalar: 'tea'>, None)
    """
    while isinstance(scalar, _WRAPPED) or (
        isinstance(scalar, pa.ExtensionScalar)
        and getattr(scalar.type, "extension_name", "") == _JSON
    ):
        if not scalar.is_valid or scalar.value is None:
            return None
        scalar = scalar.value
    return scalar if scalar.is_valid else None


def opaque_type(kind: pa.DataType) -> pa.DataType | None:
    """The first extension type inside a type, or None. Reading its values would run its code on a file's bytes.

    >>> opaque_type(pa.struct([("years", pa.list_(pa.int16()))]))
    """
    if isinstance(kind, pa.BaseExtensionType):
        return None if kind.extension_name in _PLAIN_EXTENSIONS else kind
    inner = (opaque_type(kind.field(number).type) for number in range(kind.num_fields))
    return next(filter(None, inner), None)


def read_text(value: pa.Scalar | None, longest: int, what: str) -> str:
    """A string, or UTF-8 as binary. Raises `DataError` if it is none, or over `longest` characters."""
    if value is None:
        raise DataError(f"its {what} is null: expected a string")
    if not isinstance(value, pa.BinaryScalar):
        raise DataError(
            f"its {what} is of the type {value.type}: expected a string, or binary that is UTF-8"
        )
    data = value.as_buffer()
    if data.size > 4 * longest:  # a character has at most 4 bytes
        raise DataError(
            f"its {what} has {data.size:,} bytes: expected at most {longest:,} characters"
        )
    try:
        text: str = data.to_pybytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"its {what} is not UTF-8 (byte {error.start} is 0x{error.object[error.start]:02x}): convert it first"
        ) from None
    if len(text) > longest:
        raise DataError(f"its {what} has {len(text):,} characters: expected at most {longest:,}")
    return text


def read_metadata(value: pa.Scalar | None) -> dict[str, Any]:
    """Metadata as plain JSON values by name.

    A string holds a JSON object. Null fields of a struct are dropped: engines add them when other rows have the field.
    Dates and times become ISO 8601, in UTC if they have a zone; binary becomes base64; NaN and infinity become strings.

    Raises `DataError`: not a JSON object, a struct or a map; a duplicate key; too long or nested too deeply.
    """
    if value is None:
        return {}
    kind = value.type
    try:
        if isinstance(value, pa.BinaryScalar):
            metadata = _parsed(read_text(value, _LONGEST_METADATA, "metadata"))
        elif not (pa.types.is_struct(kind) or pa.types.is_map(kind)):
            raise DataError(
                f"its metadata are of the type {kind}: expected a JSON object in a string, a struct or a map"
            )
        elif opaque := opaque_type(kind):
            raise DataError(
                f"its metadata have values of the type {opaque}: expected what JSON can say"
            )
        else:
            metadata = plain(_untyped(value.as_py(), kind), _leaf)
        length = len(as_json(metadata))
    except RecursionError:
        raise DataError("its metadata are nested too deeply") from None
    if length > _LONGEST_METADATA:
        raise DataError(
            f"its metadata have {length:,} characters as JSON: expected at most {_LONGEST_METADATA:,}"
        )
    return metadata  # type: ignore[no-any-return]


def as_json(metadata: Mapping[str, Any]) -> str:
    r"""A JSON object in UTF-8 with sorted keys.

    >>> as_json({"b": "é", "a": [1, float("nan"), "\ud800"]})
    '{"a": [1, "NaN", "\\ud800"], "b": "\\u00e9"}'
    """
    values = plain(metadata, _leaf)
    text = json.dumps(values, ensure_ascii=False, sort_keys=True)
    return json.dumps(values, sort_keys=True) if _SURROGATE.search(text) else text


def _parsed(text: str) -> Any:
    try:
        metadata = json.loads(text, object_pairs_hook=_unique_keys)
    except ValueError as error:
        reason = (
            str(error) if isinstance(error, DataError) else f"its metadata are no JSON ({error})"
        )
        raise DataError(f'{reason}: expected an object such as {{"title": "Tea"}}') from None
    if not isinstance(metadata, dict | None):
        raise DataError(f"its metadata are a JSON {type(metadata).__name__}: expected an object")
    return plain(metadata or {}, _leaf)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise DataError("its metadata have a key twice")
    return dict(pairs)


def _untyped(value: Any, kind: pa.DataType) -> Any:
    """A value of an Arrow type, with mappings for maps, which are lists of pairs, and for structs."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if value is None:
        return None
    if pa.types.is_map(kind):
        return _unique_keys([(_key(key), _untyped(item, kind.item_type)) for key, item in value])
    if pa.types.is_struct(kind):
        fields = {field.name: _untyped(value[field.name], field.type) for field in kind}
        return {name: item for name, item in fields.items() if item is not None}
    if isinstance(value, list):
        return [_untyped(item, kind.value_type) for item in value]
    return value


def _key(key: Any) -> str:
    leaf = _leaf(key)
    return leaf if isinstance(leaf, str) else json.dumps(leaf)


def _leaf(value: Any) -> Any:
    """What `plain` does not know: binary, dates and times; NaN and infinity as strings, which JSON lacks."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    if value is None or isinstance(value, str | int | float | Mapping | list | tuple):
        return value
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    # pandas' values, which Arrow gives where pandas is installed
    for convert in ("to_pydatetime", "to_pytimedelta"):
        value = getattr(value, convert, lambda value=value: value)()
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(timezone.utc).isoformat()
    return value.isoformat() if isinstance(value, date | time) else str(value)


class ReadRow(NamedTuple):
    """A row as a document or an error, with its id if readable."""

    id: str | None
    document: Document | None
    problem: DataError | None = None


def read_rows(
    batch: pa.RecordBatch, names: tuple[str, str, str], longest: int
) -> Iterator[ReadRow]:
    """The rows of the id, text and metadata columns, in order; texts have at most `longest` characters.

    Raises `DataError` for a missing or duplicate column.
    """
    if not batch.schema.names and not batch.num_rows:  # an empty block, as engines make them
        return
    columns = []
    for name, what in zip(names, ("ids", "texts", "metadata"), strict=True):
        places = batch.schema.get_all_field_indices(name)
        if len(places) == 1:
            columns.append(batch.column(places[0]))
        elif places or (name, what) != (METADATA, "metadata"):
            raise DataError(
                f"expected one column {name!r} with the documents' {what}, got {len(places) or 'none'} among "
                f"{', '.join(map(repr, batch.schema.names)) or 'no columns'}: rename yours, or say its name by "
                "id_column, text_column or metadata_column"
            )
    for row in range(batch.num_rows):
        yield _read_row([innermost(column[row]) for column in columns], longest)


def _read_row(values: Sequence[pa.Scalar | None], longest: int) -> ReadRow:
    document_id: str | None = None
    try:
        document_id = _read_id(values[0])
        metadata = read_metadata(values[2]) if len(values) > 2 else {}
        return ReadRow(
            document_id, Document(document_id, read_text(values[1], longest, "text"), metadata)
        )
    except Exception as error:  # noqa: BLE001  # the other rows are read
        problem = (
            error if isinstance(error, DataError) else DataError(f"{type(error).__name__}: {error}")
        )
        return ReadRow(document_id, None, problem)


def _read_id(value: pa.Scalar | None) -> str:
    if value is not None and pa.types.is_integer(value.type):
        return str(value.as_py())
    document_id = read_text(value, _LONGEST_ID, "id")
    if not document_id:
        raise DataError("its id is empty: expected a name")
    return document_id


# ---- Chunks as record batches of bounded size

_SPANS = pa.list_(pa.struct([pa.field("start", pa.int64()), pa.field("end", pa.int64())]))

# The columns of chunks. A row is a chunk with a null `error`, or a document without chunks: then `error` says why, and
# all columns but `document_id` and `error` are null.
CHUNK_SCHEMA = pa.schema(
    [
        pa.field("document_id", pa.string()),  # null if unreadable
        pa.field(
            "chunk_id", pa.string()
        ),  # 32 hexadecimal digits, the same in every run, unique within a document
        pa.field("index", pa.int64()),  # the chunk's position in its document, from 0
        pa.field(
            "spans", _SPANS
        ),  # code points of the document's text, half-open, in reading order
        pa.field("text", pa.string()),  # the source's slices
        pa.field("token_count", pa.int64()),  # of the text, by the chunker's counter
        pa.field(
            "context", pa.string()
        ),  # text written about the chunk (a title path, a model's sentence); mostly ""
        pa.field(
            "metadata", pa.string()
        ),  # a JSON object of the document's and the chunker's metadata
        pa.field("derived", pa.bool_()),  # a model wrote the text, from the passage at the spans
        pa.field(
            "segments", pa.list_(_SPANS)
        ),  # the parts that multi-vector search embeds; mostly empty
        pa.field(
            "content_hash", pa.string()
        ),  # of context and text: unchanged if nothing needs embedding again
        pa.field("error", pa.string()),
    ]
)
# The same columns in Spark's notation, for `DataFrame.mapInArrow`.
_SPARK_SPANS = "array<struct<`start`: bigint, `end`: bigint>>"
SPARK_SCHEMA = (
    f"`document_id` string, `chunk_id` string, `index` bigint, `spans` {_SPARK_SPANS}, `text` string, "
    f"`token_count` bigint, `context` string, `metadata` string, `derived` boolean, `segments` array<{_SPARK_SPANS}>, "
    "`content_hash` string, `error` string"
)

Row = dict[str, Any]

# The size of a batch, far below the 2 GiB of a string column.
_BATCH_ROWS = 8192
_BATCH_CHARACTERS = 32_000_000
_LONG = ("document_id", "text", "context", "metadata")


def chunk_rows(document: Document, chunks: list[Chunk]) -> list[Row]:
    """A document's chunks as rows.

    Raises `ModelError`: a model wrote an unpaired surrogate, which Arrow's strings cannot hold.
    """
    taken: set[str] = set()
    rows: list[Row] = []
    for chunk in chunks:
        if surrogate := _SURROGATE.search(chunk.text) or _SURROGATE.search(chunk.context):
            raise ModelError(
                f"a model wrote an unpaired surrogate, which Arrow's strings cannot hold: {surrogate.group()!r}"
            )
        rows.append(
            {
                "document_id": chunk.document_id,
                "chunk_id": unused_id(chunk.id, taken),
                "index": chunk.index,
                "spans": _pairs(chunk.spans),
                "text": chunk.text,
                "token_count": chunk.token_count,
                "context": chunk.context,
                "metadata": as_json(_beside(document.metadata, chunk.metadata)),
                "derived": chunk.derived,
                "segments": [_pairs(segment) for segment in chunk.segments],
                "content_hash": chunk.content_hash,
            }
        )
    return rows


def batched(answers: Iterable[Iterable[Row]]) -> Iterator[pa.RecordBatch]:
    """All rows in order, in batches of bounded size."""

    def characters(row: Row) -> int:
        return sum(len(row.get(column) or "") for column in _LONG)

    for rows in batches_of(
        chain.from_iterable(answers), characters, _BATCH_CHARACTERS, _BATCH_ROWS
    ):
        yield pa.RecordBatch.from_pylist(rows, schema=CHUNK_SCHEMA)


def _beside(parent: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Both metadata; a key of the document's stays, and the chunker's gets the prefix ``chunk_``.

    >>> _beside({"title": "Tea"}, {"title": "Green", "headings": ["Tea"]})
    {'title': 'Tea', 'chunk_title': 'Green', 'headings': ['Tea']}
    """
    both = dict(parent)
    for key, value in metadata.items():
        while key in both:
            key = f"chunk_{key}"
        both[key] = value
    return both


def _pairs(spans: Iterable[Span]) -> list[tuple[int, int]]:
    return [(span.start, span.end) for span in spans]


# ---- The chunker

# Documents, and characters, that are cut together: short documents take less than half of the time together.
_TOGETHER = 64
_CHARACTERS_TOGETHER = 100_000


def _cut_each(
    chunker: Chunker, rows: Iterable[ReadRow]
) -> Iterator[tuple[ReadRow, list[Chunk] | Exception]]:
    """Each row with its chunks, in order, lazily; or with the error. An empty document gives []."""

    def characters(row: ReadRow) -> int:
        return len(row.document.text) if row.document else 0

    for group in batches_of(
        rows, characters, _CHARACTERS_TOGETHER, _TOGETHER if chunker.tokens_only else 1
    ):
        chunks = _cut(chunker, [row.document for row in group if row.document is not None])
        for row in group:
            yield row, next(chunks) if row.problem is None else row.problem


def _cut(chunker: Chunker, documents: list[Document]) -> Iterator[list[Chunk] | Exception]:
    if len(documents) > 1:
        with suppress(Exception):  # found again, below
            yield from list(map(list, chunker.chunks_per_document(documents)))
            return
    for document in documents:
        try:
            yield chunker.chunk(document)
        except Exception as error:  # noqa: BLE001  # a document's failure is its row
            yield error


_PROBLEM_LENGTH = 1000


@dataclass(frozen=True)
class ArrowChunker:
    """A function from a record batch or table of documents to one of chunks (see `CHUNK_SCHEMA`).

    Rows are in the documents' order. A document without chunks gives one row with the reason in ``error``. A pickle
    holds the configuration, no model and no key (docs/guides/arrow.md).

    Attributes:
        chunker: a chunker, a spec string such as ``"recursive:size=200"``, or a chunker's name.
        id_column: strings, or integers, which become strings.
        text_column: strings, or UTF-8 as binary; also large, view or dictionary-encoded.
        metadata_column: a JSON object in a string, a struct or a map; optional unless named here. Other columns are not
            read: join them by ``document_id``.
        max_characters: longer documents are not chunked; at most 500,000,000.
        errors: "row", or "raise" for a `DataError` at the first document that fails.

    Raises `OptionError`: an unknown chunker or option, or a value out of range.

    >>> batch = pa.RecordBatch.from_pylist([{"id": "tea", "text": "Green tea. Black tea."}, {"id": "none"}])
    >>> for row in ArrowChunker("recursive:size=11,overlap=0,counter=characters")(batch).to_pylist():
    ...     print(row["document_id"], row["spans"], row["text"], row["error"])
    tea [{'start': 0, 'end': 10}] Green tea. None
    tea [{'start': 11, 'end': 21}] Black tea. None
    none None None its text is null: expected a string
    """

    chunker: Chunker | str = DEFAULT_CHUNKER
    _: KW_ONLY
    id_column: str = "id"
    text_column: str = "text"
    metadata_column: str = METADATA
    max_characters: int = 20_000_000
    errors: Literal["row", "raise"] = "row"
    schema = CHUNK_SCHEMA

    def __post_init__(self) -> None:
        object.__setattr__(self, "chunker", build(self.chunker))
        names = (self.id_column, self.text_column, self.metadata_column)
        if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise OptionError(
                f"id_column, text_column and metadata_column name three columns, got {names}"
            )
        if self.errors not in ("row", "raise"):
            raise OptionError(f"errors is 'row' or 'raise', got {self.errors!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        if is_bridged(self.chunker):
            raise OptionError(
                "a framework's model may hold a key, and is not sent to other processes: name the model, or make the "
                "ArrowChunker in the worker"
            )
        settings = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name != "chunker"
        }
        return partial(type(self), **settings), (self.chunker,)

    def __call__(self, batch: pa.RecordBatch | pa.Table) -> pa.RecordBatch | pa.Table:
        """The chunks of the batch's documents.

        Raises `DataError`: a column is missing, the chunks exceed one record batch, or a document fails with
        ``errors="raise"``; and what loading the chunker's model raises.
        """
        if isinstance(batch, pa.Table):
            return pa.Table.from_batches(
                self.batches(batch.to_batches() or [_empty(batch.schema)]), schema=CHUNK_SCHEMA
            )
        batches = list(self.batches([batch]))
        if not batches:
            return _empty(CHUNK_SCHEMA)
        together = pa.Table.from_batches(batches, schema=CHUNK_SCHEMA).combine_chunks().to_batches()
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
        yield from batched(rows for batch in batches for rows in self._answers(batch))

    def nested(self, batch: pa.RecordBatch) -> pa.ListArray:
        """A list of rows, as structs, per row of the batch: for functions over columns. Raises as `__call__`."""
        lists = [list(rows) for rows in self._answers(batch)]
        return pa.array(lists, type=pa.list_(pa.struct(list(CHUNK_SCHEMA))))

    def _answers(self, batch: pa.RecordBatch) -> Iterator[Iterable[Row]]:
        if not isinstance(batch, pa.RecordBatch):
            raise DataError(
                f"expected a pyarrow.RecordBatch or a pyarrow.Table, got {type(batch).__name__}; in Ray Data give "
                "batch_format='pyarrow'"
            )
        _ = self._loaded
        names = (self.id_column, self.text_column, self.metadata_column)
        assert isinstance(self.chunker, Chunker)
        return starmap(
            self._rows, _cut_each(self.chunker, read_rows(batch, names, self.max_characters))
        )

    def _rows(self, row: ReadRow, chunks: list[Chunk] | Exception) -> Iterable[Row]:
        if not chunks:
            return [
                {
                    "document_id": row.id,
                    "error": "it has no chunks: its text is empty or white space alone",
                }
            ]
        problem = chunks
        if isinstance(chunks, list) and row.document is not None:
            try:
                return chunk_rows(row.document, chunks)
            except Exception as error:  # noqa: BLE001  # a document's failure is its row
                problem = error
        assert isinstance(problem, Exception)
        message = self._message(problem)
        if self.errors == "raise":
            raise DataError(f"the document {row.id!r} cannot be cut: {message}") from problem
        return [{"document_id": row.id, "error": message}]

    def _message(self, problem: Exception) -> str:
        """An error on one line of UTF-8, without secrets."""
        name = "" if isinstance(problem, ChunkcoreError) else f"{type(problem).__name__}: "
        clean = without_secrets(
            f"{name}{problem}", secrets_within(self.chunker), longest=_PROBLEM_LENGTH
        )
        return clean.encode("utf-8", "backslashreplace").decode("utf-8")

    @cached_property
    def _loaded(self) -> None:
        """Load tokenizer and models, so that their failure is not reported as a document's error."""
        assert isinstance(self.chunker, Chunker)
        _ = self.chunker.fingerprint, self.chunker.token_counter.count("a")


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)


def ray_chunks(
    dataset: Any, chunker: ArrowChunker, *, actors: int = 2, batch_size: int = 64, **options: Any
) -> Any:
    """The chunks of a Ray dataset with the chunker's columns, as a lazy Ray dataset.

    Args:
        actors: worker processes; each loads the model once and takes one of Ray's cores, unless ``num_cpus`` says less.
            Leave cores for reading, or Ray waits for more forever.
        batch_size: documents per call of an actor.
        options: of `ray.data.Dataset.map_batches`, such as ``num_cpus``, ``num_gpus`` or ``memory`` of an actor.
    """
    from ray.data import ActorPoolStrategy

    return dataset.map_batches(
        _Actor,
        fn_constructor_args=(chunker,),
        batch_format="pyarrow",
        batch_size=batch_size,
        compute=ActorPoolStrategy(size=actors),
        **options,
    )


def spark_chunks(frame: Any, chunker: ArrowChunker) -> Any:
    """The chunks of a Spark data frame with the chunker's columns, lazily."""
    return frame.mapInArrow(chunker.batches, SPARK_SCHEMA)


class _Actor:
    def __init__(self, chunker: ArrowChunker) -> None:
        self._chunker = chunker

    def __call__(self, batch: pa.Table) -> pa.Table:
        return self._chunker(batch)
