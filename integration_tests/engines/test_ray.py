"""Ray Data with two actors: the bytes of one process, bad documents as rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow (the extra arrow) is not installed")
ray = pytest.importorskip("ray", reason="ray is not installed: make test-engines")
pytest.importorskip("ray.data", reason="ray[data] is not installed: make test-engines")

from chunkadapters.arrow import ArrowChunker, ray_chunks  # noqa: E402

from integration_tests.engines.collection import (  # noqa: E402
    CHUNKER,
    canonical,
    expected,
    write_documents,
)


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=200_000_000, logging_level="error")
    yield
    ray.shutdown()


def table_of(dataset: Any) -> Any:
    """The rows that a dataset comes to."""
    return pa.concat_tables([table for table in map(ray.get, dataset.to_arrow_refs()) if table.num_rows])


@pytest.mark.parametrize(("blocks", "batch_size"), [(1, 64), (7, 5)])
def test_two_actors_make_the_bytes_of_one_process(tmp_path: Path, blocks: int, batch_size: int) -> None:
    dataset = ray.data.read_parquet(str(write_documents(tmp_path / "documents"))).repartition(blocks)
    chunks = table_of(ray_chunks(dataset, CHUNKER, actors=2, batch_size=batch_size, num_cpus=0.5))
    assert canonical(chunks) == expected()


def test_documents_that_ray_made_of_dictionaries() -> None:
    rows = [
        {"id": "a", "text": "Green tea.", "metadata": {"year": 1}},
        {"id": "b", "text": "Black tea.", "metadata": {"year": 2, "shop": "Kyōto"}},
        {"id": "c", "text": None, "metadata": {}},
    ]
    cut = ArrowChunker("recursive:size=60")
    chunks = table_of(ray_chunks(ray.data.from_items(rows), cut, actors=1))
    assert canonical(chunks) == canonical(cut(pa.Table.from_pylist(rows)))
    assert sorted(chunks["metadata"].drop_null().to_pylist()) == ['{"shop": "Kyōto", "year": 2}', '{"year": 1}']
