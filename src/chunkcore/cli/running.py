"""What commands do around their work: show progress, stop, tell language models' costs."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import typer

from chunkcore.errors import counted
from chunkcore.plain import terminal_text

if TYPE_CHECKING:
    from chunkcore.chunkers.base import Chunker
    from chunkcore.concurrency import Progress
    from chunkcore.models.llm import LLM, CachedLLM, Prices, Usage
    from chunkcore.text import Document


def say(*lines: str, err: bool = False) -> None:
    """Print lines that may quote hostile text."""
    for line in lines:
        typer.echo(terminal_text(line), err=err)


# ---- progress


_STEP_PAUSE = 5.0  # seconds between two lines of a log about one step
_COUNTED = {
    "chunk": "documents",
    "embed": "texts, those that chunkers share once",
    "queries": "questions",
    "search": "systems",
}
quiet: ContextVar[bool] = ContextVar("quiet", default=False)  # set by the option of every command


def reporting() -> Progress:
    """Writes a line to standard error as a step begins, when its first part is done, now and then, and at its end."""
    times: dict[str, list[float]] = defaultdict(list)  # of each step's lines

    def log(step: str, done: int, total: int) -> None:
        now, lines = time.monotonic(), times[step]
        is_due = len(lines) < 2 or done >= total or now - lines[-1] >= _STEP_PAUSE
        if is_due and not quiet.get():
            noun = "" if lines or step not in _COUNTED else f" {_COUNTED[step]}"
            lines.append(now)
            left = _left(now - lines[0], done, total)
            line = f"{terminal_text(step)}: {done:,} of {total:,}{noun}{left}"
            print(line, file=sys.stderr, flush=True)  # noqa: T201

    return log


def _left(seconds: float, done: int, total: int) -> str:
    """How long the rest takes if it goes on like this; "" if that is not known, or nothing is left."""
    if not 0 < done < total:
        return ""
    left = seconds * (total - done) / done
    return f", about {left:,.0f} s left" if left < 100 else f", about {left / 60:,.0f} min left"


# ---- being stopped


_WAITING = b"\nchunkcore: stopping once what is under way is done; stop it again to end at once\n"


class StoppedError(Exception):
    """The user stopped the command. The message says what is kept."""


class StopSignals:
    """Ctrl-C and SIGTERM raise KeyboardInterrupt once; a second signal ends the process at once.

    Calls to a model that are under way are paid for. They are awaited, which can take as long as a time-out. A second
    signal kills: Python's own handlers may run late in a thread that waits for others. `code` is the exit code of a
    stopped process: 128 and the signal's number.
    """

    def __init__(self) -> None:
        self.code = 128 + signal.SIGINT
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> StopSignals:
        # Handlers that somebody else has set stay: shells ignore SIGINT for what runs in the background.
        usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
        if threading.current_thread() is threading.main_thread():
            for number, handler in usual.items():
                if signal.getsignal(number) == handler:
                    self._before[number] = signal.signal(number, self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _stop(self, number: int, _: FrameType | None) -> None:
        self.code = 128 + number
        for each in self._before:
            signal.signal(each, signal.SIG_DFL)
        with suppress(OSError):  # standard error may be closed
            os.write(2, _WAITING)
        raise KeyboardInterrupt


# ---- language models


_ASSUMED = (
    "Tokens are counted as cl100k_base, and answers are as each chunker's documentation assumes; questions that must "
    "be repeated and answers that are kept already are not foreseen. Nothing was asked."
)


@dataclass
class LanguageModels:
    """The language models of a command: a file of answers before them, and what they are asked and cost.

    `path` is None where nothing is kept, `prices` where none are given.
    """

    path: Path | None = None
    prices: Prices | None = None
    chunkers: list[Chunker] = field(default_factory=list)

    def __call__(self, chunker: Chunker) -> Chunker:
        """The chunker over the file, and so the one that it wraps."""
        self.chunkers.append(self._kept(chunker))
        return self.chunkers[-1]

    def _kept(self, chunker: Chunker) -> Chunker:
        from chunkcore.chunkers.llm import Contextual, LLMChunker

        if not self.path or not isinstance(chunker, LLMChunker):
            return chunker
        if isinstance(chunker, Contextual):
            chunker = replace(chunker, chunker=self._kept(chunker.inner))
        return replace(chunker, llm=self.model(chunker.llm))

    def model(self, llm: LLM | str) -> CachedLLM:
        """A language model over the file."""
        from chunkcore.models.llm import CachedLLM, LLMCache, get_llm

        model = get_llm(llm)
        return model if isinstance(model, CachedLLM) else CachedLLM(model, LLMCache(self.path))

    def used(self) -> list[str]:
        """What each language model of the chunkers was asked, a line each."""
        from chunkcore.chunkers.llm import llms_of
        from chunkcore.models.llm import Usage

        usages = {
            llm.name: getattr(llm, "usage", Usage())
            for chunker in self.chunkers
            for llm in llms_of(chunker)
        }
        return [f"{name}: {self.spent(usage)}" for name, usage in usages.items()]

    def estimates(
        self, chunkers: Mapping[str, Chunker], documents: Iterable[Document]
    ) -> Iterator[str]:
        """What each chunker would ask, a line each, and what the estimates assume."""
        from chunkcore.chunkers.llm import LLMChunker
        from chunkcore.models.llm import Usage

        for spec, chunker in chunkers.items():
            usage = chunker.estimate(documents) if isinstance(chunker, LLMChunker) else Usage()
            yield f"{spec}: {self.spent(usage)}"
        yield _ASSUMED

    def spent(self, usage: Usage) -> str:
        """Calls, tokens and, with prices, their cost."""
        parts = [
            counted(usage.calls, "call"),
            f"{usage.input_tokens:,} tokens in",
            f"{usage.output_tokens:,} tokens out",
        ]
        if usage.kept_answers:
            parts.append(f"{usage.kept_answers:,} answers kept from before")
        if self.prices:
            parts.append(f"cost {usage.cost(self.prices):,.4f}")
        return ", ".join(parts)

    @property
    def resume(self) -> str:
        """How to resume after a stop."""
        if not self.path:
            return "nothing was kept, and the same command begins anew"
        return f"what models answered is kept in {self.path}: the same command goes on with it"

    @contextmanager
    def stoppable(self) -> Iterator[None]:
        """Tell a user who stops the block how to resume. Raises `StoppedError`: in place of KeyboardInterrupt."""
        try:
            yield
        except KeyboardInterrupt as error:
            raise StoppedError(f"stopped before the end; {self.resume}") from error
