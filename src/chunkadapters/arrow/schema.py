"""What a batch of chunks looks like."""

from __future__ import annotations

import pyarrow as pa

from chunkcore.errors import OptionError

__all__ = ["chunk_schema", "spark_schema"]

_SPAN = pa.struct([pa.field("start", pa.int64()), pa.field("end", pa.int64())])
_SPANS = pa.list_(_SPAN)


def chunk_schema(dimensions: int | None = None) -> pa.Schema:
    """The columns of chunks, always these and in this order; vectors' only where they have `dimensions`.

    A row is a chunk, or a document of which there is none: then ``error`` says why, and all but ``document_id`` and
    ``error`` are null. Of a chunk, ``error`` is null and all else has a value.

    - ``document_id``: string; the document's id. Null where that could not be read.
    - ``chunk_id``: string; 32 hexadecimal digits, the same in every run, different within a document.
    - ``index``: int64; the chunk's place among its document's, from 0.
    - ``spans``: list of ``{start, end}``, int64; code points of the document's text, half-open, in reading order.
    - ``text``: string; the source's slices.
    - ``token_count``: int64; of the text, in the chunker's counter's unit.
    - ``context``: string; what was written about the chunk (a title path, a model's sentence); mostly "".
    - ``metadata``: string; a JSON object of what the document was given and what the strategy tells.
    - ``derived``: bool; whether a model wrote the text, and the spans are the passage that it was written from.
    - ``segments``: list of lists of such spans; the parts that multi-vector search embeds; mostly empty.
    - ``content_hash``: string; of context and text: equal where nothing needs embedding again.
    - ``vector``: fixed-size list of float32; of the context, where there is one, and the text.
    - ``truncated``: bool; whether the model read less than the whole chunk; null where it does not tell.
    - ``error``: string.

    Raises:
        OptionError: dimensions is under 1.

    >>> chunk_schema(384).field("vector").type
    FixedSizeListType(fixed_size_list<item: float>[384])
    >>> chunk_schema().names[-2:]
    ['content_hash', 'error']
    """
    fields = [
        pa.field("document_id", pa.string()),
        pa.field("chunk_id", pa.string()),
        pa.field("index", pa.int64()),
        pa.field("spans", _SPANS),
        pa.field("text", pa.string()),
        pa.field("token_count", pa.int64()),
        pa.field("context", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("derived", pa.bool_()),
        pa.field("segments", pa.list_(_SPANS)),
        pa.field("content_hash", pa.string()),
    ]
    if dimensions is not None:
        if type(dimensions) is not int or dimensions < 1:
            raise OptionError(f"dimensions is a whole number of at least 1, got {dimensions!r}")
        fields += [pa.field("vector", pa.list_(pa.float32(), dimensions)), pa.field("truncated", pa.bool_())]
    return pa.schema([*fields, pa.field("error", pa.string())])


def spark_schema(schema: pa.Schema) -> str:
    """An Arrow schema of chunks as Spark writes schemas, for `DataFrame.mapInArrow`.

    Spark has no lists of a fixed size: there a vector is an array of floats.

    >>> spark_schema(pa.schema([chunk_schema().field("index"), chunk_schema(8).field("vector")]))
    '`index` bigint, `vector` array<float>'
    >>> spark_schema(pa.schema([chunk_schema().field("spans")]))
    '`spans` array<struct<`start`: bigint, `end`: bigint>>'
    """
    return ", ".join(f"`{field.name}` {_spark_type(field.type)}" for field in schema)


def _spark_type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return f"array<{_spark_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'`{field.name}`: {_spark_type(field.type)}' for field in kind)}>"
    return _SPARK_NAMES[kind]


_SPARK_NAMES = {pa.string(): "string", pa.int64(): "bigint", pa.bool_(): "boolean", pa.float32(): "float"}
