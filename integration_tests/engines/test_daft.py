"""Daft: a function over columns, the bytes of one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow (the extra arrow) is not installed")
daft = pytest.importorskip("daft", reason="daft is not installed: make test-engines")

from integration_tests.engines.collection import CHUNKER, canonical, expected, write_documents  # noqa: E402


@pytest.mark.parametrize("rows", [4, 1000])
def test_lists_of_chunks_exploded_are_the_bytes_of_one_process(tmp_path: Path, rows: int) -> None:
    answer = daft.DataType.from_arrow_type(pa.list_(pa.struct(list(CHUNKER.schema))))

    @daft.func.batch(return_dtype=answer, batch_size=rows)
    def chunk_corpus(ids: Any, texts: Any, metadata: Any) -> Any:
        columns = [ids.to_arrow(), texts.to_arrow(), metadata.to_arrow()]
        return CHUNKER.nested(pa.RecordBatch.from_arrays(columns, names=["id", "text", "metadata"]))

    frame = daft.read_parquet(str(write_documents(tmp_path / "documents")))
    lists = frame.select(chunk_corpus(frame["id"], frame["text"], frame["metadata"]).alias("chunk"))
    table = lists.explode("chunk").select(daft.col("chunk").unnest()).to_arrow()
    assert canonical(table) == expected()
