"""Rounds: so many cases of one target, from a seed, counted; and what the failures were."""

from __future__ import annotations

import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from hashlib import blake2b
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzzing.targets import Target, load_targets

__all__ = ["Outcome", "Round", "play", "property_of", "rounds"]

ROUND = 400  # cases; Hypothesis remembers all of a round, so that it tries nothing twice
LIMIT = 60  # seconds of processor time that a case may take: a busy machine is no fault of the case


@dataclass(frozen=True)
class Round:
    """Some cases of a target: the same ones for the same seed and number."""

    target: str
    seed: int
    number: int
    cases: int = ROUND

    @property
    def own_seed(self) -> int:
        """A number that another round does not have."""
        name = f"{self.seed} {self.target} {self.number}"
        return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")


@dataclass(frozen=True)
class Outcome:
    """What a round came to."""

    target: str
    texts: int  # generated ones that were checked to the end
    seconds: float  # of processor time
    failure: str = ""  # the smallest case that fails, and how
    places: tuple[str, ...] = field(default=())


class TooSlowError(Exception):
    """A case took longer than any small text may."""


def property_of(target: Target, after: Callable[[], None] = lambda: None) -> Callable[[], None]:
    """The target as a property of Hypothesis that calls `after` each time that a text has passed."""
    together = target.texts > 1
    drawn = dict(target.arguments)
    if together:  # what a case costs beside its texts is paid once
        drawn["text"] = st.tuples(*[drawn["text"]] * target.texts)

    @wraps(target.check)
    def check(**arguments: Any) -> None:
        with _limited(LIMIT):
            for text in arguments["text"] if together else [None]:
                target.check(**arguments | ({"text": text} if together else {}))
                after()

    del check.__wrapped__  # Hypothesis would look for the arguments there
    return given(**drawn)(check)


def play(played: Round) -> Outcome:
    """Try a round's cases."""
    target = load_targets()[played.target]
    passed = 0

    def count() -> None:
        nonlocal passed
        passed += 1

    tried = settings(
        max_examples=played.cases,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
        print_blob=False,
    )(property_of(target, count))
    began = time.process_time()
    failure, places = "", ()
    try:
        hypothesis.seed(played.own_seed)(tried)()
    except Exception as error:
        failure, places = _told(error)
    return Outcome(played.target, passed, time.process_time() - began, failure, places)


def rounds(targets: dict[str, Target], seed: int) -> Iterator[Round]:
    """Rounds without end, of each target as many as its share asks for, spread evenly."""
    given_texts = dict.fromkeys(targets, 0.0)
    numbers = dict.fromkeys(targets, 0)
    while True:
        name = min(targets, key=lambda each: (given_texts[each] / targets[each].share, each))
        yield Round(name, seed, numbers[name], ROUND // targets[name].texts)
        given_texts[name] += ROUND
        numbers[name] += 1


def _told(error: Exception) -> tuple[str, tuple[str, ...]]:
    """A failure in words, and the places that it came through, the last ones, which tell it apart."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [
        f"{frame.filename.rpartition('/')[2]}:{frame.name}" for frame in frames if "hypothesis" not in frame.filename
    ]
    notes = "\n".join(getattr(error, "__notes__", ()))
    said = "".join(traceback.format_exception(type(error), error, error.__traceback__, limit=-4))
    return f"{said}\n{notes}".encode("utf-8", "backslashreplace").decode(), (type(error).__name__, *ours[-2:])


@contextmanager
def _limited(seconds: int) -> Iterator[None]:
    """Raise where what is inside does not end in time; on systems without such alarms nothing does."""
    if not hasattr(signal, "SIGPROF"):
        yield
        return

    def stop(*_: object) -> None:
        raise TooSlowError(f"a case takes over {seconds} seconds")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
