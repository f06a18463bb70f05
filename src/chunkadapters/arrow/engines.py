"""The few lines that Ray Data and Spark need around an `ArrowChunker`. Neither is imported by this."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from chunkadapters.arrow.chunker import ArrowChunker
from chunkadapters.arrow.schema import spark_schema

__all__ = ["ray_chunks", "spark_chunks"]


def ray_chunks(dataset: Any, chunker: ArrowChunker, *, actors: int = 2, batch_size: int = 64, **options: Any) -> Any:
    """The chunks of a Ray dataset of documents, as a Ray dataset: nothing runs before it is read.

    Args:
        dataset: a `ray.data.Dataset` with the chunker's columns.
        chunker: what cuts.
        actors: processes that cut at the same time; each loads the model once. Each takes one of Ray's cores, unless
            ``num_cpus`` says less: there have to be cores beside them, which read the documents.
        batch_size: documents that an actor is given at once.
        options: others of `ray.data.Dataset.map_batches`, such as ``num_cpus``, ``num_gpus`` or ``memory`` of an actor.

    Warns:
        UserWarning: the actors take all cores that there are now: Ray would wait for more, without an end.
    """
    import ray
    from ray.data import ActorPoolStrategy

    cores = ray.cluster_resources().get("CPU", 0) if ray.is_initialized() else None
    taken = actors * (options.get("num_cpus") or (0 if options.get("num_gpus") else 1))
    if cores is not None and taken >= cores:
        warnings.warn(
            f"{actors} actors take {taken:g} of Ray's {cores:g} cores, and none is left to read the documents: ask for "
            "fewer actors, or give num_cpus=0.5",
            stacklevel=2,
        )
    return dataset.map_batches(
        _Actor,
        fn_constructor_args=(chunker,),
        batch_format="pyarrow",
        batch_size=batch_size,
        compute=ActorPoolStrategy(size=actors),
        **options,
    )


def spark_chunks(frame: Any, chunker: ArrowChunker) -> Any:
    """The chunks of a Spark data frame of documents, as a data frame: nothing runs before it is read.

    Args:
        frame: a `pyspark.sql.DataFrame` with the chunker's columns.
        chunker: what cuts. Its schema is asked for here: see `ArrowChunker.schema` and its ``dimensions``. Vectors
            are arrays of floats: Spark has no lists of a fixed size.
    """

    def cut(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return map(_without_fixed_sizes, chunker.batches(batches))

    return frame.mapInArrow(cut, spark_schema(chunker.schema))


def _without_fixed_sizes(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with its vectors as plain lists: Spark reads no others."""
    fields = [
        field.with_type(pa.list_(field.type.value_type)) if pa.types.is_fixed_size_list(field.type) else field
        for field in batch.schema
    ]
    return batch.cast(pa.schema(fields))


class _Actor:
    """Ray builds one in each process of its pool."""

    def __init__(self, chunker: ArrowChunker) -> None:
        self._chunker = chunker

    def __call__(self, batch: pa.Table) -> pa.Table:
        return self._chunker(batch)
