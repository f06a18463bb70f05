"""Processes of one machine: the bytes of one of them, with nothing but the standard library."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow (the extra arrow) is not installed")

from chunkadapters.arrow import ArrowChunker  # noqa: E402

from integration_tests.engines.collection import SCHEMA, canonical, documents  # noqa: E402


def test_two_processes_make_the_bytes_of_one() -> None:
    chunk = ArrowChunker("recursive:size=60")
    batch = pa.RecordBatch.from_pylist(documents(), SCHEMA)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        batches = list(pool.map(chunk, [batch.slice(start, 5) for start in range(0, len(batch), 5)]))
    table = pa.Table.from_batches(batches)
    assert table["text"].drop_null().length() > 80
    assert canonical(table) == canonical(pa.Table.from_batches([chunk(batch)]))
