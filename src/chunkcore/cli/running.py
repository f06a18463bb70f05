"""What commands do around their work: show progress, stop, tell language models' costs, print the report."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, TextIO

import typer

from chunkcore.escaping import terminal_text

if TYPE_CHECKING:
    from rich.progress import TaskID
    from rich.table import Table

    from chunkcore.chunkers.base import Chunker
    from chunkcore.concurrency import Progress
    from chunkcore.document import Document
    from chunkcore.evaluation.gate import Check
    from chunkcore.models.llm import Prices, Usage
    from chunkcore.report import ReportPage
    from chunkcore.scale import Tally


def say(*lines: str, err: bool = False) -> None:
    """Print lines that may quote hostile text."""
    for line in lines:
        typer.echo(terminal_text(line), err=err)


def strategy_table(title: str | None, headings: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> Table:
    """A table for a terminal: strategies on the left, numbers on the right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    table.add_column("Strategy", overflow="fold")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, cells in rows:
        table.add_row(Text(terminal_text(name)), *cells)
    return table


# ---- progress


_STEP_PAUSE = 5.0  # seconds between two lines of a log about one step
_MB = 1_000_000


quiet: ContextVar[bool] = ContextVar("quiet", default=False)  # set by the option of every command


@contextmanager
def reporting(stream: TextIO) -> Iterator[Progress]:
    """Show the steps of the block: bars in a terminal; in a log a line as one begins and ends, and now and then."""
    if quiet.get():
        yield lambda step, done, total: None
        return
    if not stream.isatty():
        written: dict[str, float] = {}

        def log(step: str, done: int, total: int) -> None:
            now = time.monotonic()
            if step not in written or done >= total or now - written[step] >= _STEP_PAUSE:
                written[step] = now
                _write(stream, f"{terminal_text(step)}: {done:,} of {total:,}")

        yield log
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    name = TextColumn("{task.description:<10}", markup=False)
    columns = (name, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=stream), transient=False) as progress:
        tasks: dict[str, TaskID] = {}

        def show(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = progress.add_task(terminal_text(step), total=total)
            progress.update(tasks[step], completed=done, total=total)

        yield show


def _write(stream: TextIO, line: str) -> None:
    stream.write(f"{line}\n")
    stream.flush()


def done_so_far(tally: Tally) -> str:
    """The documents, chunks and bytes of a tally, in words."""
    skipped = [f"{tally.skipped:,} skipped"] if tally.skipped else []
    counts = [several(tally.documents, "document"), *skipped, several(tally.chunks, "chunk")]
    return ", ".join([*counts, f"{tally.read / _MB:,.1f} MB read"])


def several(number: int, name: str) -> str:
    """A count with its noun."""
    return f"{number:,} {name}{'' if number == 1 else 's'}"


# ---- being stopped


_WAITING = b"\nchunkcore: stopping; calls under way are awaited and kept. Stop it again to end at once\n"


class StoppedError(Exception):
    """The user stopped the command. The message says what is kept."""


class StopSignals:
    """Ctrl-C and SIGTERM raise KeyboardInterrupt once; a second signal ends the process at once.

    Calls to a model that are under way are paid for. They are awaited, which can take as long as a time-out. A second
    signal is as safe as a kill.

    Attributes:
        code: the exit code of a stopped process: 128 and the signal's number.
    """

    def __init__(self) -> None:
        self.code = 128 + signal.SIGINT
        self._stopped = False
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> StopSignals:
        # Handlers that somebody else has set stay: shells ignore SIGINT for what runs in the background.
        usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
        if threading.current_thread() is threading.main_thread():
            self._before = {each: usual[each] for each in usual if signal.getsignal(each) == usual[each]}
        for each in self._before:
            signal.signal(each, self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)  # type: ignore[arg-type]

    def _stop(self, number: int, _: FrameType | None) -> None:
        self.code = 128 + number
        if self._stopped:
            os._exit(self.code)
        self._stopped = True
        with suppress(OSError):  # standard error may be closed
            os.write(2, _WAITING)
        raise KeyboardInterrupt


def stop_at_once() -> None:
    """Ctrl-C says nothing of calls under way: a server has none."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def resume(*kept: Path | None) -> str:
    """How to resume after a stop, given the files that keep models' answers."""
    files = " and ".join(str(each) for each in dict.fromkeys(kept) if each is not None)
    if not files:
        return "nothing was kept, and the same command begins anew"
    return f"what models answered is kept in {files}: the same command goes on with it"


@contextmanager
def stoppable(sentence: str) -> Iterator[None]:
    """Tell a user who stops the block this sentence. Raises `StoppedError`: in place of KeyboardInterrupt."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise StoppedError(f"stopped before the end; {sentence}") from error


# ---- language models' costs


_ASSUMED = (
    "Tokens are counted as cl100k_base, and answers are as each strategy's documentation assumes; questions that must "
    "be repeated and answers that are kept already are not foreseen. Nothing was asked."
)


def keeping(chunker: Chunker, path: Path | None) -> Chunker:
    """The strategy, and the one that it wraps, with language models' answers kept in a file; None keeps none."""
    from chunkcore.chunkers.llm import LLMChunker
    from chunkcore.chunkers.writing import Contextual
    from chunkcore.models.llm import CachedLLM, LLMCache, get_llm

    if path is None or not isinstance(chunker, LLMChunker):
        return chunker
    if isinstance(chunker, Contextual):
        chunker = replace(chunker, chunker=keeping(chunker.inner, path))
    llm = get_llm(chunker.llm)
    return chunker if isinstance(llm, CachedLLM) else replace(chunker, llm=CachedLLM(llm, LLMCache(path)))


def kept_chunker(kept: list[Chunker], path: Path | None, chunker: Chunker) -> Chunker:
    """`keeping`, and the chunker is added to a list, for `used`."""
    kept.append(keeping(chunker, path))
    return kept[-1]


def estimates(chunkers: Mapping[str, Chunker], documents: Iterable[Document], prices: Prices | None) -> Iterator[str]:
    """What each strategy would ask, a line each, and what the estimates assume."""
    from chunkcore.chunkers.llm import LLMChunker
    from chunkcore.models.llm import Usage

    for spec, chunker in chunkers.items():
        usage = chunker.estimate(documents) if isinstance(chunker, LLMChunker) else Usage()
        yield f"{spec}: {spent(usage, prices)}"
    yield _ASSUMED


def used(chunkers: Iterable[Chunker], prices: Prices | None) -> list[str]:
    """What each language model of the strategies was asked, a line each."""
    from chunkcore.chunkers.llm import llms_of
    from chunkcore.models.llm import Usage

    found = {llm.name: getattr(llm, "usage", Usage()) for chunker in chunkers for llm in llms_of(chunker)}
    return [f"{name}: {spent(usage, prices)}" for name, usage in found.items()]


def spent(usage: Usage, prices: Prices | None) -> str:
    """Calls, tokens and, with prices, their cost."""
    parts = [
        f"{usage.calls:,} {'call' if usage.calls == 1 else 'calls'}",
        f"{usage.input_tokens:,} tokens in"
        + (f" ({usage.cached_tokens:,} of them read before)" if usage.cached_tokens else ""),
        f"{usage.output_tokens:,} tokens out",
    ]
    if usage.kept_answers:
        parts.append(f"{usage.kept_answers:,} answers kept from before")
    if prices is not None:
        parts.append(f"cost {usage.cost(prices):,.4f}")
    return ", ".join(parts)


# ---- the report


def finish(page: ReportPage, html: Path | None, checks: Sequence[Check], lines: Iterable[str] = ()) -> None:
    """Print the report, the lines, the checks, and last the path of the page; exit with 1 if a check failed."""
    from rich.console import Console

    from chunkcore.report.terminal import print_report

    print_report(page, Console(highlight=False))
    for line in (*lines, *(check.sentence for check in checks)):
        typer.echo(f"\n{terminal_text(line)}")
    typer.echo(f"\n{html}")
    if any(check.failed for check in checks):
        raise typer.Exit(1)
