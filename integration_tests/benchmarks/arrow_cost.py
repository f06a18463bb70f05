"""What record batches cost beside `chunk_each`, how large a document may be, and what batches do to a model's vectors.

python -m integration_tests.benchmarks.arrow_cost overhead          2,000 documents of 2,500 characters
python -m integration_tests.benchmarks.arrow_cost large 200         one document of so many MB
python -m integration_tests.benchmarks.arrow_cost vectors [MODEL]   embedded a document at a time, and all together
"""

from __future__ import annotations

import hashlib
import resource
import sys
import time

import numpy as np
import pyarrow as pa

from chunkadapters.arrow import ArrowChunker
from chunkcore import Document, get_chunker, load_dataset
from chunkcore.models import embed, get_embedder

SPEC = "recursive:size=200"
TEXT = "\n\n".join(each.text for each in load_dataset("lochmere").documents if each.id != "handbook-ja.txt")


def overhead() -> None:
    """Processor seconds of the chunker, and of the chunker over Arrow, of the same documents."""
    documents = [(str(number), TEXT[number * 700 % 90_000 :][:2500]) for number in range(2000)]
    chunker = get_chunker(SPEC)
    batch = pa.RecordBatch.from_pylist([{"id": name, "text": text} for name, text in documents])
    for _ in range(3):
        start = time.process_time()
        chunks = sum(map(len, chunker.chunk_each(Document(*each) for each in documents)))
        between = time.process_time()
        rows = ArrowChunker(chunker)(batch).num_rows
        end = time.process_time()
        assert rows == chunks
        print(
            f"{rows} chunks: chunk_each {between - start:.2f} s, Arrow {(end - between) / (between - start):.2f} times"
        )


def large(megabytes: int) -> None:
    """Rows, seconds and memory of one large document, with the default limit and without."""
    body = (TEXT * (megabytes * 1_000_000 // len(TEXT) + 1))[: megabytes * 1_000_000]
    columns = [pa.array(["large"]), pa.array([body], pa.large_string())]
    del body
    batch = pa.RecordBatch.from_arrays(columns, names=["id", "text"])
    for limit in (20_000_000, 500_000_000):
        before, start = _peak(), time.process_time()
        made = [(each.num_rows, each.nbytes, each["error"][0]) for each in
                ArrowChunker(SPEC, max_characters=limit).batches([batch])]  # fmt: skip
        spent, peak = time.process_time() - start, _peak() - before
        rows, largest = sum(rows for rows, _, _ in made), max(size for _, size, _ in made) / 1e6
        print(f"{megabytes} MB, max_characters={limit:,}: {spent:.1f} s, {peak:.0f} MB over the text")
        print(f"  {rows} rows in {len(made)} batches of at most {largest:.1f} MB; error: {made[0][2]}")


def vectors(name: str = "all-MiniLM-L6-v2") -> None:
    """How many vectors change when chunks of several documents go to the model together."""
    documents = [TEXT[number * 900 :][: 300 + 40 * number] for number in range(30)]
    batch = pa.RecordBatch.from_pylist([{"id": str(number), "text": text} for number, text in enumerate(documents)])
    chunker = ArrowChunker("recursive:size=60", embedder=name)
    made = chunker(batch)
    apart = np.array(made["vector"].to_pylist(), np.float32)
    model = get_embedder(name)
    together = embed(model, made["text"].to_pylist())
    again = [chunker(batch.slice(place, 1)) for place in reversed(range(len(documents)))][::-1]
    alone = np.array([row["vector"] for each in again for row in each.to_pylist()], np.float32)
    changed = int((apart != together).any(axis=1).sum())
    told = hashlib.blake2b(apart.tobytes(), digest_size=8).hexdigest()
    print(f"{model.name}: {len(apart)} chunks of {len(documents)} documents; the vectors' digest is {told}")
    print(f"one batch and a batch a document, in the other order: {int((apart != alone).any(axis=1).sum())} differ")
    print(f"all chunks given to the model together: {changed} differ, by at most {np.abs(apart - together).max():.1e}")


def _peak() -> float:
    """The most memory that the process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["overhead"]:
            overhead()
        case ["large", megabytes]:
            large(int(megabytes))
        case ["vectors", *name]:
            vectors(*name)
        case _:
            sys.exit(__doc__)
