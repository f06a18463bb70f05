"""Time and memory of `chunkcore chunk` as its input grows, and what cutting a text in parts changes.

    python -m integration_tests.benchmarks.growth --sizes 1 10 100 1000
    python -m integration_tests.benchmarks.growth --seams

Documents of about 10,000 characters are paragraphs of the Chroma report's corpora, drawn at random and numbered: as one
file of JSON lines, and as one text file, which is cut in parts. Memory is the most that the process held, on Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from chunkcore import get_chunker
from chunkcore.scale.sources import parts
from integration_tests.benchmarks.chunking_speed import read_corpora

MB = 1_000_000
STRATEGY = "recursive:size=200"


def documents(size: int) -> Iterator[str]:
    """Texts of so many bytes together, or a little more."""
    paragraphs = [part for document in read_corpora() for part in document.text.split("\n") if len(part) > 40]
    rng = random.Random(0)
    written = number = 0
    while written < size:
        number += 1
        lines = [f"## Document {number}"]
        while sum(map(len, lines)) < 10_000:
            lines.append(f"{rng.randrange(10**6)} {rng.choice(paragraphs)[:2000]}")
        text = "\n\n".join(lines)
        written += len(text.encode())
        yield text


def measure(size: int, folder: Path) -> None:
    rows = ({"id": f"d{number:07}", "text": text} for number, text in enumerate(documents(size * MB)))
    with (folder / "documents.jsonl").open("w") as lines, (folder / "text.txt").open("w") as whole:
        for row in rows:
            lines.write(json.dumps(row) + "\n")
            whole.write(row["text"] + "\n\n")
    for name, file in (("documents", "documents.jsonl"), ("one file", "text.txt")):
        command = [sys.executable, "-m", "chunkcore", "chunk", str(folder / file), "-s", STRATEGY, "--quiet"]
        began = time.monotonic()
        process = subprocess.Popen([*command, "-o", str(folder / "out.jsonl")])
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
        assert not status
        with (folder / "out.jsonl").open("rb") as chunks:
            count = sum(1 for _ in chunks)
        (folder / "out.jsonl").unlink()
        print(f"| {size:,} MB | {name} | {seconds:.1f} s | {usage.ru_maxrss / 1024:.0f} MB | {count:,} |", flush=True)


def seams(size: int, part_size: int) -> None:
    """How many chunks of a whole text are not among those of its parts, by strategy."""
    text = "\n\n".join(documents(size))
    pieces = [part.decode() for part in parts(BytesIO(text.encode()), part_size)]
    print("| strategy | chunks of the whole | other chunks a seam |\n|---|--:|--:|", flush=True)
    for spec in (STRATEGY, "fixed_token:size=200", "sentence:size=200", "markdown:size=200"):
        chunker = get_chunker(spec)
        whole = {(spans[0].start, spans[0].end) for spans in chunker.spans(text)}
        count, offset = len(whole), 0
        for piece in pieces:
            whole -= {(offset + spans[0].start, offset + spans[0].end) for spans in chunker.spans(piece)}
            offset += len(piece)
        print(f"| `{spec}` | {count:,} | {len(whole) / (len(pieces) - 1):.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1, 10, 100], help="MB")
    parser.add_argument("--seams", action="store_true", help="how parts differ from the whole, and nothing else")
    options = parser.parse_args()
    if options.seams:
        seams(4 * MB, MB // 4)
        return
    print("| text | how | time | memory | chunks |\n|--:|---|--:|--:|--:|", flush=True)
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            measure(size, Path(folder))


if __name__ == "__main__":
    main()
