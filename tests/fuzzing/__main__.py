"""``make fuzz``: generated texts until there were enough or the time is over; what failed, and the counts."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from tests.fuzzing.running import Outcome, Round, play, rounds
from tests.fuzzing.targets import MISSING, load_targets
from tests.results import keep_result

GIVEN_UP = 5  # rounds of a target that fail, after which it gets no more


def main(arguments: list[str] | None = None) -> int:
    """Run; 1 where something failed."""
    asked = _asked(arguments)
    targets = load_targets()
    for room, reason in MISSING.items():
        print(f"left out: {room} ({reason})")
    if asked.only:
        targets = {name: each for name, each in targets.items() if any(part in name for part in asked.only)}
    if not targets:
        print(f"no target's name has {' or '.join(asked.only)} in it: {', '.join(load_targets())}", file=sys.stderr)
        return 2
    print(f"{len(targets)} targets, seed {asked.seed}", flush=True)
    tally = Tally(time.monotonic())
    stopped = False
    try:
        for outcome in _played(rounds(targets, asked.seed), tally, asked.count, asked.minutes * 60):
            tally.add(outcome)
    except KeyboardInterrupt:
        stopped = True
    print(tally.table(asked.seed))
    minutes = round(tally.elapsed / 60, 1)
    keep_result("generated", asked.seed, sum(tally.texts.values()), minutes, len(tally.failures))
    return 130 if stopped else 1 if tally.failures else 0


class Tally:
    """What was counted so far."""

    def __init__(self, began: float) -> None:
        self.began = began
        self.texts: Counter[str] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.failing: Counter[str] = Counter()
        self.failures: dict[tuple[str, ...], str] = {}
        self.said = began

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.began

    def add(self, outcome: Outcome) -> None:
        """Count a round, and tell what failed for the first time; every minute, how far this is."""
        self.texts[outcome.target] += outcome.texts
        self.seconds[outcome.target] += outcome.seconds
        if outcome.failure:
            self.failing[outcome.target] += 1
            key = (outcome.target, *outcome.places)
            if key not in self.failures:
                self.failures[key] = outcome.failure
                print(f"\n=== {outcome.target} failed\n{outcome.failure}\n", flush=True)
        if time.monotonic() - self.said > 60:
            self.said = time.monotonic()
            print(f"{sum(self.texts.values()):,} texts, {self.elapsed / 60:.0f} min", flush=True)

    def table(self, seed: int) -> str:
        """The counts, a line a target."""
        wide = max(map(len, self.texts), default=0)
        lines = [
            f"{name:<{wide}}  {self.texts[name]:>9,}  {1000 * self.seconds[name] / max(1, self.texts[name]):6.2f} ms"
            f"{'  FAILED' if self.failing[name] else ''}"
            for name in sorted(self.texts, key=lambda each: (-self.texts[each], each))
        ]
        total, seconds = sum(self.texts.values()), sum(self.seconds.values())
        lines.append(
            f"{total:,} generated texts checked, {len(self.failures)} failures, seed {seed}, "
            f"{self.elapsed / 60:.1f} minutes ({seconds / 60:.1f} of processor time)"
        )
        return "\n".join(lines)


def _played(wanted: Iterator[Round], tally: Tally, count: int | None, seconds: float) -> Iterator[Outcome]:
    """The outcomes of rounds until there are enough; what is under way then is finished."""
    for each in wanted:
        if tally.elapsed > seconds or (count is not None and sum(tally.texts.values()) >= count):
            return
        if tally.failing[each.target] < GIVEN_UP:
            yield play(each)
        elif min(tally.failing[name] for name in tally.texts) >= GIVEN_UP:
            return


def _asked(arguments: Iterable[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("--count", type=int, help="stop after so many generated texts")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so many minutes")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other texts")
    parser.add_argument("--only", nargs="+", default=[], help="parts of the names of targets")
    asked = parser.parse_args(None if arguments is None else list(arguments))
    if asked.count is None and asked.minutes == float("inf"):
        asked.count = 1_000_000
    return asked


if __name__ == "__main__":
    logging.disable()  # frameworks log what is odd about a text, and here all are
    sys.exit(main())
