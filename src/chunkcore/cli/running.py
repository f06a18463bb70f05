"""What commands do around their work: show progress, stop, count language models' costs, hold to a gate, save runs."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, TextIO

import typer

from chunkcore.errors import DataError, OptionError
from chunkcore.escaping import terminal_text

if TYPE_CHECKING:
    from rich.progress import TaskID
    from rich.table import Table

    from chunkcore.chunkers.base import Chunker
    from chunkcore.concurrency import Progress
    from chunkcore.document import Document
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark
    from chunkcore.evaluation.measures import Depth, Measure
    from chunkcore.evaluation.results import Report
    from chunkcore.evaluation.statistics.comparison import Comparison
    from chunkcore.evaluation.statistics.gate import Check, Requirement
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
_PAUSE = 30.0  # seconds between two lines of a log about a stream
_SHORT = 30.0  # seconds; shorter streams are not summed up in a log
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


@contextmanager
def rate(
    stream: TextIO,
    total: Callable[[], int | None],
    *,
    quiet: bool = False,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Rate]:
    """Show how far a stream is, and how fast: one changing line in a terminal, a line now and then in a log.

    `total` gives the bytes to read, None if unknown; it is called in a thread: a million files take a while to count.
    """
    if quiet:
        yield Rate(StringIO(), lambda: None, clock)
    elif stream.isatty():
        from rich.console import Console
        from rich.status import Status

        with Status("", console=Console(file=stream)) as status:
            yield Rate(stream, total, clock, status.update)
    else:
        yield Rate(stream, total, clock)


class Rate:
    """Called with the tally after each step."""

    def __init__(
        self,
        stream: TextIO,
        total: Callable[[], int | None],
        clock: Callable[[], float],
        show: Callable[[str], None] | None = None,
    ) -> None:
        self._stream = stream
        self._show = show
        self._clock = clock
        self._began = self._written = clock()
        self._before = 0  # bytes that an earlier run had read
        self._total: int | None = None

        def count() -> None:
            self._total = total()

        threading.Thread(target=count, daemon=True).start()

    def start(self, tally: Tally) -> None:
        """Begin with what an earlier run has done."""
        self._before = tally.read

    def __call__(self, tally: Tally) -> None:
        now = self._clock()
        if now - self._written >= (_PAUSE if self._show is None else 0.1):
            self._written = now
            speed = self._speed(tally)
            line = f"{done_so_far(tally)}, {speed / _MB:,.1f} MB/s"
            if self._total and speed and tally.read <= self._total:
                share, left = tally.read / self._total, (self._total - tally.read) / speed
                line += f", {share:.0%} of {self._total / _MB:,.0f} MB, about {_hours(left)} left"
            _write(self._stream, line) if self._show is None else self._show(line)

    def end(self, tally: Tally) -> None:
        """Sum up; in a log only what took long."""
        took = self._clock() - self._began
        if self._show is not None or took >= _SHORT:
            summed = f"{done_so_far(tally)}, in {_hours(took)} ({self._speed(tally) / _MB:,.1f} MB/s)"
            _write(self._stream, summed)

    def _speed(self, tally: Tally) -> float:
        return (tally.read - self._before) / max(1e-9, self._clock() - self._began)


def done_so_far(tally: Tally) -> str:
    """The documents, chunks and bytes of a tally, in words."""
    skipped = [f"{tally.skipped:,} skipped"] if tally.skipped else []
    counts = [several(tally.documents, "document"), *skipped, several(tally.chunks, "chunk")]
    return ", ".join([*counts, f"{tally.read / _MB:,.1f} MB read"])


def several(number: int, name: str) -> str:
    """A count with its noun."""
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def _hours(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> _hours(3725.4), _hours(65)
    ('1:02:05', '1:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


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
    from chunkcore.chunkers.contextual import Contextual
    from chunkcore.chunkers.llm import LLMChunker
    from chunkcore.models.llm import CachedLLM, LLMCache, get_llm

    if path is None or not isinstance(chunker, LLMChunker):
        return chunker
    if isinstance(chunker, Contextual):
        chunker = replace(chunker, chunker=keeping(chunker.inner, path))
    llm = get_llm(chunker.llm)
    return chunker if isinstance(llm, CachedLLM) else replace(chunker, llm=CachedLLM(llm, LLMCache(path)))


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


# ---- the gate and saved runs


@dataclass(frozen=True)
class Gate:
    """What every strategy is held to: requirements, and earlier reports (None: no baseline)."""

    requirements: tuple[Requirement, ...]
    earlier: Sequence[Report] | None

    @property
    def ks(self) -> list[Depth]:
        return [measure.k for measure in self.measures if measure.k is not None]

    @property
    def measures(self) -> list[Measure]:
        return [requirement.measure for requirement in self.requirements]

    def check_names(self, names: Sequence[str]) -> None:
        """Check before long work that the baseline has one of these strategies.

        A single strategy is compared with a single earlier one, whatever their names.
        """
        if self.earlier is None or len(names) == len(self.earlier) == 1:
            return
        before = [report.system[0] for report in self.earlier]
        if not set(before) & set(names):
            raise DataError(
                f"the baseline has none of the strategies: it has {', '.join(before)}; compared are {', '.join(names)}"
            )

    def checks(self, reports: Sequence[Report], verdict_by: Measure, *, resamples: int, seed: int) -> list[Check]:
        """Every requirement of every strategy, then every strategy against its earlier report."""
        from chunkcore.evaluation.statistics.gate import check_baseline, check_requirement

        found = [
            check_requirement(report, requirement, resamples=resamples, seed=seed)
            for requirement in self.requirements
            for report in reports
        ]
        for report, earlier in self._pairs(reports):
            measures = [each for each in dict.fromkeys([verdict_by, *self.measures]) if each in earlier.scores]
            # The verdict's measure is needed: if it was not scored before, the error says so.
            for measure in measures if verdict_by in earlier.scores else [verdict_by]:
                found.append(check_baseline(report, earlier, measure, resamples=resamples, seed=seed))  # noqa: PERF401
        return found

    def _pairs(self, reports: Sequence[Report]) -> Iterator[tuple[Report, Report]]:
        self.check_names([report.system[0] for report in reports])
        if self.earlier is None:
            return
        if len(reports) == len(self.earlier) == 1:
            yield reports[0], self.earlier[0]
            return
        # An earlier report of several retrievers has the retriever in its name.
        before = {report.system: report for report in self.earlier} | {report.name: report for report in self.earlier}
        for report in reports:
            if earlier := before.get(report.name) or before.get(report.system):
                yield report, earlier


def check_savable(benchmark: Benchmark) -> None:
    """Check before long work that TREC's columns can hold the questions' ids."""
    from chunkcore.evaluation.run_files import is_column

    for query in benchmark.queries:
        if not is_column(query.id):
            raise OptionError(
                f"--save-runs writes TREC's columns, which are separated by spaces, and the question's id {query.id!r} "
                "cannot be one: rename it, or leave --save-runs out"
            )


_NO_FILE_NAME = re.compile(r"[^\w.=-]+")


def save_runs(reports: Sequence[Report], benchmark: Benchmark, folder: Path) -> list[Path]:
    """Write each report's run as JSON lines and in TREC's columns, and the chunks that they name.

    The files of a system are its number and name with the endings ``.jsonl``, ``.trec`` and ``.chunks.jsonl``.
    """
    from chunkcore.evaluation.run_files import write_pool, write_run

    digits = len(str(len(reports)))
    written = []
    for number, report in enumerate(reports, start=1):
        if report.run is None or report.run.pool is None:
            continue
        stem = f"{number:0{digits}}-{_NO_FILE_NAME.sub('_', report.name)[:80].strip('_')}"
        written.append(write_run(report.run, folder / f"{stem}.jsonl", benchmark))
        try:
            written.append(write_run(report.run, folder / f"{stem}.trec"))
        except DataError as error:  # the names of documents may have spaces
            warnings.warn(f"{folder / stem}.trec is not written: {error}", stacklevel=2)
        written.append(write_pool(report.run.pool, folder / f"{stem}.chunks.jsonl", benchmark))
    return written


# ---- the report


def report_page(
    comparison: Comparison, benchmark: Benchmark | None, settings: Mapping[str, object], stopped: str = ""
) -> ReportPage:
    """A comparison as a page: with today's date, the settings that have a value, and why it was stopped early."""
    from datetime import datetime, timezone

    from chunkcore.report import ReportPage

    given = {name: str(value) for name, value in settings.items() if value}
    today = datetime.now(timezone.utc).date().isoformat()
    return ReportPage(comparison, benchmark, given, today, stopped=stopped and f"{stopped.capitalize()}.")


def finish(page: ReportPage, html: Path, checks: Sequence[Check], lines: Iterable[str] = ()) -> None:
    """Print the report, the lines, the checks, and last the path of the page; exit with 1 if a check failed."""
    from rich.console import Console

    from chunkcore.report.terminal import print_report

    print_report(page, Console(highlight=False))
    for line in (*lines, *(check.sentence for check in checks)):
        typer.echo(f"\n{terminal_text(line)}")
    typer.echo(f"\n{html}")
    if any(check.failed for check in checks):
        raise typer.Exit(1)
