"""How long ``import chunkcore`` takes, beside numpy, which it cannot do without.

python -m integration_tests.benchmarks.import_speed
"""

from __future__ import annotations

import subprocess
import sys
from statistics import median
from time import perf_counter

ROUNDS = 11
STATEMENTS = {"python alone": "pass", "numpy": "import numpy", "chunkcore": "import chunkcore"}


def seconds(statement: str) -> float:
    started = perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return perf_counter() - started


def main() -> None:
    for statement in STATEMENTS.values():  # compiled and in the file cache from here on
        seconds(statement)
    rounds = [{name: seconds(statement) for name, statement in STATEMENTS.items()} for _ in range(ROUNDS)]
    bare = median(each["python alone"] for each in rounds)
    for name in STATEMENTS:
        taken = median(each[name] for each in rounds)
        print(f"{name:14} {taken:.3f} s, {taken - bare:.3f} s beyond the interpreter's start")
    print(f"medians of {ROUNDS} interleaved rounds; wanted: chunkcore under 0.5 s")


if __name__ == "__main__":
    main()
