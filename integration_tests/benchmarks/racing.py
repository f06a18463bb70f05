"""What the races of the adapters share: the texts, taking turns, and a table with ratios."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from pathlib import Path

CORPORA = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "chroma" / "corpora"

Contestants = dict[str, Callable[[], int]]


def corpora() -> dict[str, str]:
    """The five corpora of data/chroma by name."""
    if not CORPORA.is_dir():
        raise SystemExit(f"the collection data/chroma is not at {CORPORA}: nothing to measure")
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(CORPORA.iterdir())}


def pieces(texts: dict[str, str], length: int, count: int) -> dict[str, str]:
    """So many documents of one length, each cut from another place of the texts."""
    joined = "\n".join(texts.values())
    step = max(1, (len(joined) - length) // count)
    return {f"piece-{i}": joined[i * step : i * step + length] for i in range(count)}


def race(
    title: str,
    texts: dict[str, str],
    running: Contestants,
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Time every contestant once a round, one after the other, and print medians and ratios to the first.

    Each returns how many chunks it made. Nothing is asserted. Returns the seconds of each round.
    """
    size = sum(map(len, texts.values())) / 1e6
    print(f"\n{title}: {len(texts)} documents, {size:.2f} million characters, median of {rounds} rounds")
    chunks = {name: run() for name, run in running.items()}  # once for what is loaded on first use
    seconds: dict[str, list[float]] = {name: [] for name in running}
    for _ in range(rounds):
        for name, run in running.items():
            gc.collect()  # what the one before left behind
            began = clock()
            run()
            seconds[name].append(clock() - began)
    core = next(iter(seconds.values()))
    for name, each in seconds.items():
        median = statistics.median(each)
        # Of the same round: a machine that is slow for a while is so for both.
        ratio = statistics.median(own / other for own, other in zip(each, core, strict=True))
        print(f"  {name:46} {median:8.3f} s {size / median:7.2f} M/s {ratio:7.2f} x core {chunks[name]:8} chunks")
    return seconds
