"""chunkcore over Arrow: a record batch of documents in, a record batch of chunks out.

    chunk = ArrowChunker("recursive:size=200")
    chunks = chunk(batch)                      # columns id, text and, where there is one, metadata

Ray Data, Spark, Daft and DuckDB call it as it is; `ray_chunks` and `spark_chunks` are shortcuts.
"""

from chunkcore.errors import MissingExtraError

try:
    import pyarrow as _pyarrow  # noqa: F401
except ImportError as error:
    raise MissingExtraError.of("pyarrow", "arrow", "chunk Arrow record batches") from error

from chunkadapters.arrow.chunker import ArrowChunker, ray_chunks, spark_chunks
from chunkadapters.arrow.writing import chunk_schema, spark_schema

__all__ = ["ArrowChunker", "chunk_schema", "ray_chunks", "spark_chunks", "spark_schema"]
