"""DuckDB: what a query finds goes through the chunker and back into SQL, as a stream."""

import sys
import tempfile
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from chunkadapters.arrow import ArrowChunker
from chunkcore import load_dataset


def main(documents: Path, chunks: Path) -> None:
    connection = duckdb.connect()
    chunker = ArrowChunker("recursive:size=200")
    found = connection.cursor().sql(f"select id, text from read_parquet('{documents}')").to_arrow_reader(64)
    cut = pa.RecordBatchReader.from_batches(chunker.schema, chunker.batches(found))
    connection.from_arrow(cut).write_parquet(str(chunks))
    print(connection.sql(f"select count(*) as chunks, count(error) as bad from read_parquet('{chunks}')").fetchall())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        rows = [{"id": each.id, "text": each.text} for each in load_dataset("lochmere").documents]
        pq.write_table(pa.Table.from_pylist(rows), Path(folder, "documents.parquet"))
        main(Path(*sys.argv[1:2] or [folder, "documents.parquet"]), Path(folder, "chunks.parquet"))
