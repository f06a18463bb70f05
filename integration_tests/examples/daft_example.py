"""Daft: a function over columns that answers with a list of chunks a document, which `explode` makes rows."""

import sys
import tempfile
from pathlib import Path

import daft
import pyarrow as pa
import pyarrow.parquet as pq
from chunkadapters.arrow import ArrowChunker
from chunkcore import load_dataset


def main(documents: Path) -> None:
    chunker = ArrowChunker("recursive:size=200")
    answer = daft.DataType.from_arrow_type(pa.list_(pa.struct(list(chunker.schema))))

    @daft.func.batch(return_dtype=answer)
    def cut(ids: daft.Series, texts: daft.Series) -> pa.Array:
        return chunker.nested(pa.RecordBatch.from_arrays([ids.to_arrow(), texts.to_arrow()], names=["id", "text"]))

    frame = daft.read_parquet(str(documents))
    found = (
        frame.select(cut(frame["id"], frame["text"]).alias("chunk")).explode("chunk").select(daft.col("chunk").unnest())
    )
    found.select("document_id", "index", "token_count", "error").show(5)
    print(found.count_rows(), "chunks")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        rows = [{"id": each.id, "text": each.text} for each in load_dataset("lochmere").documents]
        pq.write_table(pa.Table.from_pylist(rows), Path(folder, "documents.parquet"))
        main(Path(*sys.argv[1:2] or [folder, "documents.parquet"]))
