"""DuckDB: documents from SQL, chunks back into SQL, the bytes of one process."""

from __future__ import annotations

from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow (the extra arrow) is not installed")
duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: make test-engines")

from chunkadapters.arrow import ArrowChunker  # noqa: E402

from integration_tests.engines.collection import CHUNKER, canonical, expected, write_documents  # noqa: E402


@pytest.mark.parametrize("rows", [4, 1000])
def test_a_stream_from_sql_makes_the_bytes_of_one_process(tmp_path: Path, rows: int) -> None:
    connection = duckdb.connect()
    files = write_documents(tmp_path / "documents") / "*.parquet"
    batches = connection.cursor().sql(f"select * from read_parquet('{files}')").to_arrow_reader(rows)
    cut = pa.RecordBatchReader.from_batches(CHUNKER.schema, CHUNKER.batches(batches))
    table = connection.from_arrow(cut).order("document_id").to_arrow_table()
    assert canonical(table) == expected()


def test_columns_as_duckdb_types_them() -> None:
    query = "select 7 as id, 'Green tea.' as text, '{\"year\": 1}'::json as metadata"
    table = ArrowChunker("recursive:size=60")(duckdb.connect().sql(query).to_arrow_table())
    assert table.select(["document_id", "text", "metadata", "error"]).to_pylist() == [
        {"document_id": "7", "text": "Green tea.", "metadata": '{"year": 1}', "error": None}
    ]
