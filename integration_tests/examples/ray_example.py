"""Ray Data: chunks from a folder of Parquet files, by two processes."""

import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import ray
from chunkadapters.arrow import ArrowChunker, ray_chunks
from chunkcore import load_dataset


def main(documents: Path, chunks: Path) -> None:
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=200_000_000, logging_level="error")
    chunker = ArrowChunker("recursive:size=200")
    ray_chunks(ray.data.read_parquet(str(documents)), chunker, actors=2, num_cpus=0.5).write_parquet(str(chunks))
    found = pq.read_table(chunks)
    print(f"{found.num_rows} chunks, {found['error'].drop_null().length()} documents that could not be cut")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        rows = [{"id": each.id, "text": each.text} for each in load_dataset("lochmere").documents]
        pq.write_table(pa.Table.from_pylist(rows), Path(folder, "documents.parquet"))
        main(Path(*sys.argv[1:2] or [folder, "documents.parquet"]), Path(folder, "chunks"))
