"""Every text of `test_large` at its full size, by every strategy: processor time, peak memory, what is lost.

    python -m tests.hostile.full_size LOG [-k WORDS] [--part N]

Each pair runs in a process of its own (a fork, so not on Windows), with a limit to its time and memory, and is a line
of the log, a file of JSON lines; pairs that the log has are not run again. Any 31 in a row meet every text, and every
strategy at least twice.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from tests.hostile.test_large import CHUNKERS, TEXTS, check, chunker_of

SECONDS, GIGABYTES = 300, 8


def pairs() -> list[tuple[str, str]]:
    """All of them; any beginning has about as many of each strategy, and of each text, as of the others."""
    names, kinds = list(CHUNKERS), list(TEXTS)
    return [
        (kind, names[(number + turn) % len(names)]) for turn in range(len(names)) for number, kind in enumerate(kinds)
    ]


def run(kind: str, name: str, part: int = 1) -> dict[str, Any]:
    """What one pair took, of one of so many parts of its size, and how it ended: "kept" where nothing was lost."""
    begun = time.perf_counter()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os._exit(_child(kind, name, part, writer))
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8", errors="replace") as pipe:
        told = pipe.read()
    _, status, usage = os.wait4(child, 0)
    return {
        "text": kind,
        "strategy": name,
        "end": "kept" if status == 0 else told or f"stopped by signal {os.WTERMSIG(status)}",
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 2),
        "wall_s": round(time.perf_counter() - begun, 2),
        "peak_mb": usage.ru_maxrss // 1024,
    }


def _child(kind: str, name: str, part: int, writer: int) -> int:
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (GIGABYTES << 30, GIGABYTES << 30))
        unit, times = TEXTS[kind]
        check(name, unit * (times // part))
    except BaseException:
        os.write(writer, traceback.format_exc()[-2000:].encode("utf-8", "replace"))
        return 1
    return 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("log", type=Path)
    parser.add_argument("-k", default="", help="only pairs whose 'text-strategy' holds these words")
    parser.add_argument("--part", type=int, default=1, help="texts of a part of the size, to see how they grow")
    options = parser.parse_args(arguments)
    lines = options.log.read_text("utf-8").splitlines() if options.log.exists() else []
    done = {(row["text"], row["strategy"]) for row in map(json.loads, lines)}
    for name in CHUNKERS:
        chunker_of(name)
    faults = 0
    for kind, name in pairs():
        if (kind, name) in done or options.k not in f"{kind}-{name}":
            continue
        row = run(kind, name, options.part)
        faults += row["end"] != "kept"
        with options.log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(row) + "\n")
        print(f"{row['cpu_s']:>7} s {row['peak_mb']:>6} MB  {kind} - {name}: {row['end'].strip()[-80:]}", flush=True)
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
