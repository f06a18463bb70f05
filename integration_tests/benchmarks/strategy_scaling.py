"""Time and peak memory of each strategy as its text grows, without its models: `python strategy_scaling.py` tables it.

Each run is a process of its own, on Linux: it reads a text, lets the strategy cut it, and tells processor seconds,
less those of the embedder, and by how much its memory peaked over what it held before, with the text and the
tokenizer already there. The embedder is a hash: 64 numbers a text, any two of them strangers. The language model is
none at all: each question has the answer that its strategy's estimate assumes. What stands at 0.1 MB
says whether the next size can be run: what would take over two minutes is not, and says so. The order is the exponent
of time between the last two sizes.

Texts are sentences of random words of the shipped collection, in paragraphs under headings: no two are alike. For
`html` and `code` they are in tags and functions.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from chunkcore import Document, get_chunker, get_counter, load_dataset, strategies
from chunkcore.models.base import Vectors
from chunkcore.models.llm import Estimator, Question

MB = 1_000_000
SIZES = (0.1, 1, 10, 100)
SECONDS = 120  # what would take longer is not run
DIMENSIONS = 64


class HashEmbedder:
    """Any text's numbers, with the time that they took."""

    name = fingerprint = "hash"
    max_tokens = None
    seconds = 0.0

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        began = time.process_time()
        digests = b"".join(blake2b(text.encode(), digest_size=64).digest() for text in texts)
        vectors = np.frombuffer(digests, dtype=np.uint8).reshape(-1, DIMENSIONS).astype(np.float32) - 127.5
        self.seconds += time.process_time() - began
        return vectors

    embed_queries = embed_documents


class Assuming(Estimator):
    """Answers as an estimate does, and counts nothing."""

    def assume(self, question: Question[Any]) -> str:
        return json.dumps(question.assumed)


def write_text(path: Path, size: float, kind: str) -> None:
    """As many megabytes of a kind of text."""
    rng = np.random.default_rng(0)
    words = np.array(sorted(set(re.findall(r"[a-z]{2,}", " ".join(each.text for each in load_dataset().documents)))))
    with path.open("w", encoding="utf-8") as file:
        number = 0
        while file.tell() < size * MB:
            number += 1
            paragraphs = [
                " ".join(" ".join(rng.choice(words, rng.integers(5, 30))).capitalize() + "." for _ in range(6))
                for _ in range(4)
            ]
            file.write(section(kind, number, paragraphs))


def section(kind: str, number: int, paragraphs: Sequence[str]) -> str:
    if kind == "html":
        return f"<h2>Section {number}</h2>\n" + "".join(f"<p>{each}</p>\n" for each in paragraphs)
    if kind == "code":
        lines = "".join(f"    text.append({each!r})\n" for part in paragraphs for each in part.split(". "))
        return f'def section_{number}(text):\n    """Add section {number}."""\n{lines}    return text\n\n\n'
    return f"## Section {number}\n\n" + "".join(f"{each}\n\n" for each in paragraphs)


def measure(strategy: str, path: Path) -> dict[str, float | str]:
    """In this process: seconds, peak in MB, chunks; or the error."""
    resource.setrlimit(resource.RLIMIT_CPU, (3 * SECONDS, 3 * SECONDS))
    embedder = HashEmbedder()
    name, _, options = strategy.partition(":")
    models = {"embedder": embedder, "llm": Assuming()}
    needed = {option: model for option, model in models.items() if option in strategies[name].option_names()}
    chunker = get_chunker(name, **dict(each.split("=") for each in options.split(",") if each), **needed)
    document = Document("text", path.read_text(encoding="utf-8"))
    chunker.chunk(Document("warm", "# One\n\nTwo sentences. Three of them."))  # what is loaded once, is
    get_counter("cl100k_base").count("all of it")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    embedder.seconds = 0.0
    before, began = peak(), time.process_time()
    try:
        chunks = len(chunker.chunk(document))
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    seconds = time.process_time() - began - embedder.seconds
    return {"seconds": seconds, "peak": peak() - before, "chunks": chunks}


def peak() -> float:
    """The most memory that was resident, in MB."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1024 / MB  # type: ignore[index]


def in_own_process(strategy: str, path: Path) -> dict[str, float | str]:
    done = subprocess.run(
        [sys.executable, __file__, "--measure", strategy, str(path)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return {"error": f"ended with {done.returncode} {done.stderr.strip().splitlines()[-1:]}"}
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def kind_of(strategy: str) -> str:
    return {"html": "html", "code": "code"}.get(strategy, "prose")


def row(strategy: str, folder: Path, largest: float) -> str:
    """A line of the table: one strategy at each size, as far as it goes."""
    cells, seconds, exponent = [], [], math.nan
    spec = "code:language=python" if strategy == "code" else strategy
    asks = {"embedder", "llm"} & set(strategies[strategy].option_names())
    last = min(largest, 10) if asks else largest
    note = ""
    for size in SIZES:
        if size > last:
            cells.append("")
            continue
        expected = 0.0 if len(seconds) < 2 else seconds[-1] * 10 ** max(1.0, math.log10(seconds[-1] / seconds[-2]))
        if note or expected > SECONDS:
            cells.append(note or f"not run: about {expected:.0f} s")
            note = note or cells[-1]
            continue
        path = folder / f"{kind_of(strategy)}-{size}"
        if not path.exists():
            write_text(path, size, kind_of(strategy))
        found = in_own_process(spec, path)
        if "error" in found:
            cells.append(note := str(found["error"])[:120])
            continue
        seconds.append(max(1e-3, float(found["seconds"])))
        if len(seconds) > 1:
            exponent = math.log10(seconds[-1] / seconds[-2])
        cells.append(f"{seconds[-1]:.3g} s, {float(found['peak']):.0f} MB")
    return f"| `{strategy}` | {' | '.join(cells)} | {exponent:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("strategies", nargs="*", help="names; none for all")
    parser.add_argument("--largest", type=float, default=100, help="the largest text, in MB")
    parser.add_argument("--measure", nargs=2, metavar=("STRATEGY", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure[0], Path(arguments.measure[1]))))
        return
    names = arguments.strategies or list(strategies)
    print(f"| strategy | {' | '.join(f'{size:g} MB' for size in SIZES)} | order |", flush=True)
    print("|---|" + "--:|" * (len(SIZES) + 1), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            print(row(name, Path(folder), arguments.largest), flush=True)


if __name__ == "__main__":
    main()
