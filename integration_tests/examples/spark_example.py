"""Spark: chunks from a folder of Parquet files."""

import os
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from chunkadapters.arrow import ArrowChunker, spark_chunks
from chunkcore import load_dataset
from pyspark.sql import SparkSession


def main(documents: Path, chunks: Path) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers' interpreter, with chunkadapters installed
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    chunker = ArrowChunker("recursive:size=200")
    spark_chunks(session.read.parquet(str(documents)), chunker).write.parquet(str(chunks))
    found = session.read.parquet(str(chunks))
    print(f"{found.count()} chunks, {found.filter('error is not null').count()} documents that could not be cut")
    session.stop()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        rows = [{"id": each.id, "text": each.text} for each in load_dataset("lochmere").documents]
        pq.write_table(pa.Table.from_pylist(rows), Path(folder, "documents.parquet"))
        main(Path(*sys.argv[1:2] or [folder, "documents.parquet"]), Path(folder, "chunks"))
