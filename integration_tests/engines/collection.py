"""The same documents for every engine, good and bad, and what one process makes of them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from chunkadapters.arrow import ArrowChunker
from chunkcore import load_dataset

__all__ = ["CHUNKER", "SCHEMA", "canonical", "documents", "expected", "write_documents"]

SCHEMA = pa.schema([("id", pa.string()), ("text", pa.string()), ("metadata", pa.string())])
CHUNKER = ArrowChunker("recursive:size=60", max_characters=20_000)


def documents() -> list[dict[str, Any]]:
    """Pieces of the collection that ships, of 1 to 4 chunks, and bad documents among them."""
    bad: list[dict[str, Any]] = [
        {"id": "null text", "text": None},
        {"id": None, "text": "A text without a name."},
        {"id": "blank", "text": " \n\t"},
        {"id": "long", "text": "word " * 5000},
        {"id": "metadata", "text": "Text.", "metadata": "{no JSON"},
        {"id": "null\x00 and 文書", "text": "a\x00b <|endoftext|> 日本語 👩‍👩‍👧‍👦"},
    ]
    rows: list[dict[str, Any]] = []
    for number, row in enumerate(load_dataset("lochmere").documents):
        for part in range(2):
            text = row.text[part * 900 : part * 900 + 200 + 40 * number]
            metadata = json.dumps({"part": part, "of": row.id, "更新": None})
            rows.append({"id": f"{row.id}/{part}", "text": text, "metadata": metadata})
    for place, row in enumerate(bad):
        rows.insert(4 * place, row)
    return rows


def write_documents(folder: Path, files: int = 3) -> Path:
    """The documents as Parquet files."""
    rows = documents()
    folder.mkdir()
    for number in range(files):
        pq.write_table(pa.Table.from_pylist(rows[number::files], SCHEMA), folder / f"{number}.parquet")
    return folder


@cache
def expected() -> bytes:
    """What one process makes of all documents at once."""
    table = CHUNKER(pa.Table.from_pylist(documents(), SCHEMA))
    assert table["text"].drop_null().length() > 80  # not only errors
    assert table["error"].drop_null().length() == 5
    return canonical(table)


def canonical(table: pa.Table) -> bytes:
    """Its rows in the order of documents and chunks, as Arrow's stream: equal where all is, to the last bit."""
    schema = CHUNKER.schema
    assert set(table.column_names) == set(schema.names)
    rows = table.select(schema.names).cast(schema).to_pylist()
    rows.sort(key=lambda row: (row["document_id"] or "", row["index"] or 0))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        stream.write_batch(pa.RecordBatch.from_pylist(rows, schema))
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]
