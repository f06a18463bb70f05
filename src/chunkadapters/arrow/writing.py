"""Write chunks as record batches of bounded size."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import pyarrow as pa

from chunkadapters.arrow.reading import as_json
from chunkadapters.places import unused_id
from chunkcore.concurrency import batches_of
from chunkcore.document import Chunk, Document, Span
from chunkcore.errors import ModelError
from chunkcore.models import Embedder, TokenCountingEmbedder, Vectors, embed
from chunkcore.registry import check_number

_SPAN = pa.struct([pa.field("start", pa.int64()), pa.field("end", pa.int64())])
_SPANS = pa.list_(_SPAN)


def chunk_schema(dimensions: int | None = None) -> pa.Schema:
    """The columns of chunks, in this order; ``vector`` and ``truncated`` only with `dimensions`.

    A row is a chunk with a null ``error``, or a document without chunks: then ``error`` says why, and all columns but
    ``document_id`` and ``error`` are null.

    - ``document_id``: string; the document's id, null if unreadable.
    - ``chunk_id``: string; 32 hexadecimal digits, the same in every run, unique within a document.
    - ``index``: int64; the chunk's position in its document, from 0.
    - ``spans``: list of ``{start, end}``, int64; code points of the document's text, half-open, in reading order.
    - ``text``: string; the source's slices.
    - ``token_count``: int64; of the text, by the chunker's counter.
    - ``context``: string; text written about the chunk (a title path, a model's sentence); mostly "".
    - ``metadata``: string; a JSON object of the document's and the strategy's metadata.
    - ``derived``: bool; a model wrote the text, from the passage at the spans.
    - ``segments``: list of lists of such spans; the parts that multi-vector search embeds; mostly empty.
    - ``content_hash``: string; of context and text: unchanged if nothing needs embedding again.
    - ``vector``: fixed-size list of float32; of the context, if any, and the text.
    - ``truncated``: bool; the model read only the chunk's beginning; null if unknown.
    - ``error``: string.

    Raises `OptionError`: dimensions is under 1.

    >>> chunk_schema(384).field("vector").type
    FixedSizeListType(fixed_size_list<item: float>[384])
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
        check_number("dimensions", dimensions, 1)
        fields += [pa.field("vector", pa.list_(pa.float32(), dimensions)), pa.field("truncated", pa.bool_())]
    return pa.schema([*fields, pa.field("error", pa.string())])


def spark_schema(schema: pa.Schema) -> str:
    """An Arrow schema of chunks in Spark's notation, for `DataFrame.mapInArrow`. Vectors are arrays of floats.

    >>> spark_schema(pa.schema([chunk_schema().field("spans"), chunk_schema(8).field("vector")]))
    '`spans` array<struct<`start`: bigint, `end`: bigint>>, `vector` array<float>'
    """
    return ", ".join(f"`{field.name}` {_spark_type(field.type)}" for field in schema)


def _spark_type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return f"array<{_spark_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'`{field.name}`: {_spark_type(field.type)}' for field in kind)}>"
    return _SPARK_NAMES[kind]


_SPARK_NAMES = {pa.string(): "string", pa.int64(): "bigint", pa.bool_(): "boolean", pa.float32(): "float"}


# One row per chunk: float32 vectors, and whether the model truncated the text (None: unknown).
Embedding = tuple[Vectors, list[bool | None]]


@dataclass(frozen=True)
class Vectorizer:
    """An embedder with the dimensions of its vectors; with `stated` None the embedder is asked."""

    embedder: Embedder
    stated: int | None = None

    @cached_property
    def dimensions(self) -> int:
        """Raises `ModelError` if the embedder does not answer."""
        if self.stated is not None:
            return self.stated
        own = getattr(self.embedder, "dimensions", None)
        return own if type(own) is int else embed(self.embedder, ["a"]).shape[1]

    def __call__(self, chunks: list[Chunk]) -> Embedding:
        """Embed the chunks of one document in one call.

        Padding changes a vector's last bits, which must not depend on other documents. Raises `ModelError` if the model
        fails twice.
        """
        texts = [chunk.embedded_text for chunk in chunks]
        vectors = embed(self.embedder, texts)
        if vectors.shape[1] != self.dimensions:
            raise ModelError(
                f"the model {self.embedder.name!r} answered with {vectors.shape[1]} dimensions: expected "
                f"{self.dimensions}"
            )
        most = self.embedder.max_tokens
        if most is None:
            return vectors, [False] * len(texts)
        if not isinstance(self.embedder, TokenCountingEmbedder):
            return vectors, [None] * len(texts)
        return vectors, [bool(count > most) for count in self.embedder.count_tokens(texts)]


Row = dict[str, Any]

_SURROGATE = re.compile("[\ud800-\udfff]")

# The size of a batch, far below the 2 GiB of a string column.
_ROWS = 8192
_CHARACTERS = 32_000_000
_LONG = ("document_id", "text", "context", "metadata")


def chunk_rows(document: Document, chunks: list[Chunk], embedding: Embedding | None) -> Iterator[Row]:
    """A document's chunks as rows, lazily; errors come before the first row.

    Raises `ModelError`: a model wrote an unpaired surrogate, which Arrow's strings cannot hold.
    """
    for chunk in chunks:
        if found := _SURROGATE.search(chunk.text) or _SURROGATE.search(chunk.context):
            raise ModelError(
                f"a model wrote an unpaired surrogate, which Arrow's strings cannot hold: {found.group()!r}"
            )
    given = document.metadata
    shared = as_json(given)
    told = [as_json(_beside(given, chunk.metadata)) if chunk.metadata else shared for chunk in chunks]
    return _rows(chunks, told, embedding)


def _rows(chunks: list[Chunk], metadata: list[str], embedding: Embedding | None) -> Iterator[Row]:
    taken: set[str] = set()
    for place, chunk in enumerate(chunks):
        row: Row = {
            "document_id": chunk.document_id,
            "chunk_id": unused_id(chunk.id, taken),
            "index": chunk.index,
            "spans": _pairs(chunk.spans),
            "text": chunk.text,
            "token_count": chunk.token_count,
            "context": chunk.context,
            "metadata": metadata[place],
            "derived": chunk.derived,
            "segments": [_pairs(segment) for segment in chunk.segments],
            "content_hash": chunk.content_hash,
        }
        if embedding is not None:
            vectors, truncated = embedding
            row |= {"vector": vectors[place], "truncated": truncated[place]}
        yield row


def batched(answers: Iterable[Iterable[Row]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """All rows in order, in batches of bounded size."""

    def characters(row: Row) -> int:
        return sum(len(row.get(column) or "") for column in _LONG)

    for rows in batches_of(chain.from_iterable(answers), characters, _CHARACTERS, _ROWS):
        yield pa.RecordBatch.from_pylist(rows, schema=schema)


def _beside(given: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Both metadata; a key of the document's stays, and the strategy's gets the prefix ``chunk_``.

    >>> _beside({"title": "Tea"}, {"title": "Green", "headings": ["Tea"]})
    {'title': 'Tea', 'chunk_title': 'Green', 'headings': ['Tea']}
    """
    found = dict(given)
    for key, value in own.items():
        name = key
        while name in found:
            name = f"chunk_{name}"
        found[name] = value
    return found


def _pairs(spans: Iterable[Span]) -> list[tuple[int, int]]:
    return [(span.start, span.end) for span in spans]
