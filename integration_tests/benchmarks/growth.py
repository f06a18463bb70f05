"""Time and memory of `chunkcore chunk` as its input grows: one process, two, and Ray Data.

    python -m integration_tests.benchmarks.growth --largest 1000 --ray python

Documents of about 10,000 characters are made from paragraphs of the Chroma report's corpora in ``../shared``, or of the
collection that ships, drawn at random and numbered, so that no two are alike: as one file of JSON lines, as one text
file (which is cut in parts), and for Ray as Parquet. Each run is a process of its own, with those that it starts, whose
memory (PSS, which counts a shared page once) and processor time are read from /proc five times a second, on Linux.
`--ray` names a Python that has Ray; without it there is no such line. Chunks are written to a disk in each run; the
bytes of one process and of two are compared, and the number of Ray's chunks.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from hashlib import blake2b
from io import BytesIO
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

from chunkcore import get_chunker, load_dataset
from chunkcore.scale import sources as parts

MB = 1_000_000
SIZES = (1, 10, 100, 1000)
SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "chroma"
STRATEGY = "recursive:size=200"
DOCUMENT = 10_000  # characters
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100

RAY = """
import sys
import pyarrow.parquet as pq
import ray
from chunkadapters.arrow import ArrowChunker, ray_chunks
ray.init(num_cpus=2, include_dashboard=False, object_store_memory=500_000_000, logging_level="error")
chunks = ray_chunks(ray.data.read_parquet(sys.argv[1]), ArrowChunker(sys.argv[3]), actors=2, num_cpus=0.5)
chunks.write_parquet(sys.argv[2])
"""


class Run(NamedTuple):
    """What a run took."""

    seconds: float
    processor: float
    memory: float  # MB, of all its processes together
    largest: float  # MB, of the one that had most


def documents(size: int) -> Iterator[str]:
    """Texts of so many bytes together, or a little more."""
    files = sorted(SHARED.rglob("*.md"))
    texts = [file.read_text(encoding="utf-8") for file in files] or [each.text for each in load_dataset().documents]
    paragraphs = [part for text in texts for part in text.split("\n") if len(part) > 40]
    rng = random.Random(0)
    written = number = 0
    while written < size:
        number += 1
        parts, length = [f"## Document {number}"], 0
        while length < DOCUMENT:
            parts.append(f"{rng.randrange(10**6)} {rng.choice(paragraphs)[:2000]}")
            length += len(parts[-1])
        text = "\n\n".join(parts)
        written += len(text.encode())
        yield text


def write_inputs(folder: Path, size: int, *, parquet: bool) -> None:
    with (folder / "documents.jsonl").open("w", encoding="utf-8") as rows, (folder / "text.txt").open("wb") as whole:
        for number, text in enumerate(documents(size)):
            rows.write(json.dumps({"id": f"d{number:07}", "text": text}, ensure_ascii=False) + "\n")
            whole.write(text.encode() + b"\n\n")
    if parquet:
        import pyarrow as pa
        import pyarrow.parquet as pq

        (folder / "parquet").mkdir()
        rows = ({"id": f"d{number:07}", "text": text} for number, text in enumerate(documents(size)))
        for number in count():
            some = list(islice(rows, 2000))
            if not some:
                return
            pq.write_table(pa.Table.from_pylist(some), folder / "parquet" / f"{number:05}.parquet")


def run(command: list[str]) -> Run:
    began = time.monotonic()
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    seen = Watch(process.pid)
    threading.Thread(target=seen.watch, daemon=True).start()
    _, err = process.communicate()
    seconds = time.monotonic() - began
    seen.ended = True
    if process.returncode:
        sys.exit(f"{command} ended with {process.returncode}: {err.decode()[-2000:]}")
    return Run(seconds, sum(seen.processor.values()), seen.memory / MB, max(seen.most.values()) / MB)


class Watch:
    """A process and all that it started: their processor time and memory."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.ended = False
        self.processor: dict[int, float] = {}
        self.most: dict[int, int] = {}
        self.memory = 0

    def watch(self) -> None:
        while not self.ended:
            together = 0
            for pid in self.pids(self.pid):
                try:
                    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
                except OSError:
                    continue
                self.processor[pid] = (int(fields[11]) + int(fields[12])) / TICKS
                pss = next((int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")), 0) * 1024
                self.most[pid] = max(pss, self.most.get(pid, 0))
                together += pss
            self.memory = max(self.memory, together)
            time.sleep(0.2)

    def pids(self, pid: int) -> Iterator[int]:
        yield pid
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                children = task.read_text().split()
            except OSError:
                continue
            for child in children:
                yield from self.pids(int(child))


def digest(path: Path) -> str:
    found = blake2b(digest_size=8)
    with path.open("rb") as file:
        while block := file.read(MB):
            found.update(block)
    return found.hexdigest()


def chunk_command(file: Path, out: Path, processes: int) -> list[str]:
    options = ["-s", STRATEGY, "--processes", str(processes), "-o", str(out), "--quiet"]
    return [sys.executable, "-m", "chunkcore", "chunk", str(file), *options]


def line(name: str, size: int, took: Run, told: str) -> None:
    rate = size / took.seconds
    print(
        f"| {size:,} MB | {name} | {took.seconds:.1f} s | {took.processor:.1f} s | {rate:.1f} MB/s | "
        f"{took.memory:.0f} MB | {took.largest:.0f} MB | {told} |",
        flush=True,
    )


def measure(size: int, folder: Path, ray: str | None, kinds: list[str]) -> None:
    write_inputs(folder, size * MB, parquet=ray is not None)
    for kind, file in (("lines", "documents.jsonl"), ("file", "text.txt")):
        digests = set()
        for processes in (1, 2):
            name = (
                f"{'documents' if kind == 'lines' else 'one file'}, {('one process', 'two processes')[processes - 1]}"
            )
            if f"{kind}{processes}" in kinds:
                out = folder / "out.jsonl"
                took = run(chunk_command(folder / file, out, processes))
                with out.open("rb") as chunks:
                    found = sum(1 for _ in chunks)
                digests.add(digest(out))
                out.unlink()
                line(name, size, took, f"{found:,} chunks{'; other bytes' if len(digests) > 1 else ''}")
    if ray is not None and "ray" in kinds:
        import pyarrow.dataset as ds

        took = run([ray, "-c", RAY, str(folder / "parquet"), str(folder / "chunks"), STRATEGY])
        line("documents, Ray, two actors", size, took, f"{ds.dataset(folder / 'chunks').count_rows():,} chunks")


def seams(size: int, part_size: int) -> None:
    """How many chunks of a whole text are not among those of its parts, by strategy."""
    text = "\n\n".join(documents(size * MB))
    pieces = [part.decode() for part in parts(BytesIO(text.encode()), part_size)]
    print("| strategy | seams | chunks of the whole | other chunks a seam |\n|---|--:|--:|--:|", flush=True)
    for spec in (
        STRATEGY,
        "recursive:size=200,overlap=50",
        "fixed_token:size=200",
        "sentence:size=200",
        "markdown:size=200",
    ):
        chunker = get_chunker(spec)
        whole = [spans[0] for spans in chunker.spans(text)]
        found, offset = set(), 0
        for piece in pieces:
            found |= {(offset + spans[0].start, offset + spans[0].end) for spans in chunker.spans(piece)}
            offset += len(piece)
        others = sum((span.start, span.end) not in found for span in whole)
        print(f"| `{spec}` | {len(pieces) - 1} | {len(whole):,} | {others / (len(pieces) - 1):.1f} |", flush=True)


def files(numbers: list[int]) -> None:
    """Folders of small files: what each takes beside its text."""
    print("| files | time | processor time | memory |\n|--:|--:|--:|--:|", flush=True)
    for number in numbers:
        with tempfile.TemporaryDirectory() as folder:
            for each in range(number):
                path = Path(folder, "docs", f"{each // 1000:04}", f"{each:07}.txt")
                if not each % 1000:
                    path.parent.mkdir(parents=True)
                path.write_text(f"Document {each}. " + "The fox naps under the lid. " * 10)
            took = run(chunk_command(Path(folder, "docs"), Path(folder, "out.jsonl"), 1))
            print(f"| {number:,} | {took.seconds:.1f} s | {took.processor:.1f} s | {took.memory:.0f} MB |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smallest", type=int, default=1, help="MB")
    parser.add_argument("--largest", type=int, default=1000, help="MB")
    parser.add_argument("--ray", help="a Python that has Ray")
    parser.add_argument("--kinds", nargs="*", default=["lines1", "lines2", "ray", "file1", "file2"])
    parser.add_argument("--files", nargs="*", type=int, help="folders of so many small files, and nothing else")
    parser.add_argument("--seams", action="store_true", help="how parts differ from the whole, and nothing else")
    arguments = parser.parse_args()
    if arguments.files:
        files(arguments.files)
        return
    if arguments.seams:
        seams(4, MB // 4)
        return
    print("| text | how | time | processor time | rate | memory, all processes | the largest of them | chunks |")
    print("|--:|---|--:|--:|--:|--:|--:|--:|", flush=True)
    for size in SIZES:
        if arguments.smallest <= size <= arguments.largest:
            with tempfile.TemporaryDirectory() as folder:
                measure(size, Path(folder), arguments.ray, arguments.kinds)


if __name__ == "__main__":
    main()
