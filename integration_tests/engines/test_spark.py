"""Spark with two workers: the bytes of one process, bad documents as rows."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow (the extra arrow) is not installed")
pyspark = pytest.importorskip("pyspark.sql", reason="pyspark is not installed: make test-engines")
if shutil.which("java") is None:
    pytest.skip("Spark needs Java, which is not installed", allow_module_level=True)

from chunkadapters.arrow import SPARK_SCHEMA, ArrowChunker, spark_chunks  # noqa: E402

from integration_tests.engines.collection import CHUNKER, canonical, expected, write_documents  # noqa: E402


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        builder = pyspark.SparkSession.builder.master("local[2]")
        options = {
            "spark.ui.enabled": "false",
            "spark.driver.memory": "1g",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.execution.arrow.maxRecordsPerBatch": "5",
            "spark.sql.session.timeZone": "Pacific/Auckland",
        }
        for name, value in options.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        yield session
        session.stop()


@pytest.mark.parametrize("partitions", [1, 5])
def test_two_workers_make_the_bytes_of_one_process(session: Any, tmp_path: Path, partitions: int) -> None:
    frame = session.read.parquet(str(write_documents(tmp_path / "documents"))).repartition(partitions)
    session = spark_chunks(frame, CHUNKER).toArrow()
    assert canonical(session) == expected()


def test_columns_as_spark_types_them(session: Any) -> None:
    rows = session.sql(
        "select 7L as id, encode('Green tea.', 'utf-8') as text, "
        "named_struct('at', timestamp'2024-05-01T10:00:00Z', 'shop', map('town', 'Kyōto')) as metadata"
    )
    cut = ArrowChunker("recursive:size=60")
    (row,) = rows.mapInArrow(cut.batches, SPARK_SCHEMA).toArrow().to_pylist()
    assert (row["document_id"], row["text"], row["error"]) == ("7", "Green tea.", None)
    assert row["metadata"] == '{"at": "2024-05-01T10:00:00+00:00", "shop": {"town": "Kyōto"}}'
