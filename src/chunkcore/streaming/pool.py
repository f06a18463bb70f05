"""Processes that cut, each with its own models; their results in order, a bounded number under way."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from queue import SimpleQueue
from typing import Any, NamedTuple

from chunkcore.chunkers import Chunker
from chunkcore.concurrency import ordered
from chunkcore.errors import ChunkcoreError, DataError, ModelError, NoAnswerError, OptionError, SizeError
from chunkcore.streaming.cutting import Cut, Cutter
from chunkcore.streaming.sources import Piece

__all__ = ["cut_batches"]

Batch = Sequence[Piece]

_AHEAD = 2  # batches that a process has: the one that it is at, and the next
_OWN = (SizeError, NoAnswerError, ModelError, OptionError, DataError)


def cut_batches(cutter: Cutter, batches: Iterator[Batch], processes: int) -> Iterator[list[Cut]]:
    """What comes of each batch, in order.

    With one process, strategies that wait for models run in the cutter's threads, a batch each. With several the
    strategy is built once in each, from its name and options, and at most two batches a process are under way.

    Raises:
        OptionError: the strategy holds an object that cannot be named to another process.
        ChunkcoreError: a process died, or something is wrong with more than a document.
    """
    if processes > 1:
        yield from _in_processes(cutter, batches, processes)
    elif cutter.workers > 1 and not cutter.chunker.tokens_only:
        with ThreadPoolExecutor(cutter.workers) as threads:
            yield from ordered(threads, cutter, batches, 4 * cutter.workers)
    else:
        yield from map(cutter, batches)


def _in_processes(cutter: Cutter, batches: Iterator[Batch], processes: int) -> Iterator[list[Cut]]:
    """Each process has a pipe of its own, and so the death of one is seen whatever it was at.

    An executor's processes share one, with a lock: one that is killed while it hands something over keeps the others,
    and whoever waits for them, for ever. What goes wrong with a batch is raised in its place, as in one process.
    """
    settings = (cutter.chunker.to_dict(), cutter.part_size, cutter.workers)
    workers: list[_Worker] = []
    finished = False

    def stop() -> None:
        for each in workers:
            each.stop(kindly=finished)
        for each in workers:
            each.join()

    atexit.register(stop)  # of a generator that nobody reads to its end
    try:
        with _interrupts_ignored():
            workers.extend(_Worker(*settings) for _ in range(processes))
        done: dict[int, _Answer] = {}
        wanted = given = 0
        more = True
        while True:
            while more and given - wanted < _AHEAD * processes:
                try:
                    batch = next(batches, None)
                except Exception as error:  # noqa: BLE001
                    batch, done[given] = None, _Answer([], error)
                    given += 1
                more = batch is not None
                if batch is not None:
                    min(workers, key=_Worker.load).give(given, batch)
                    given += 1
            if wanted == given:
                break
            while wanted not in done:
                for worker in _answering(workers):
                    done.update(worker.answers())
            yield done.pop(wanted).cuts_or_error()
            wanted += 1
        finished = True
    finally:
        stop()
        atexit.unregister(stop)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Processes that are started here ignore Ctrl-C from their first moment: the parent is told, and ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)


def _answering(workers: Sequence[_Worker]) -> list[_Worker]:
    """Those that have an answer, or have died; one of them at least."""
    lost = [worker for worker in workers if worker.dead and worker.numbers]
    ready = wait([worker.pipe for worker in workers if worker.numbers], 0 if lost else None)
    return lost + [worker for worker in workers if worker.pipe in ready and worker not in lost]


class _Answer(NamedTuple):
    """What comes of a batch: cuts, or what was raised and where."""

    cuts: list[Cut]
    error: Exception | None = None
    trace: str = ""

    def cuts_or_error(self) -> list[Cut]:
        """The cuts.

        Raises:
            Exception: what was raised instead.
        """
        if self.error is None:
            return self.cuts
        if self.trace:
            raise self.error from ChunkcoreError(f"in a worker process:\n{self.trace}")
        raise self.error


class _Worker:
    """A process, from outside.

    Attributes:
        pipe: from which its answers come.
        numbers: of the batches that it has, in their order.
        dead: whether it could not be written to or read from.
    """

    def __init__(self, *settings: Any) -> None:
        # Spawned, not forked: models, their threads and open caches do not survive a fork.
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.numbers: deque[int] = deque()
        self.dead = False
        # No daemon, which may have no processes of its own: some models' loaders do.
        self._process = context.Process(target=_serve, args=(theirs, *settings), daemon=False)
        self._process.start()
        theirs.close()  # so that the pipe ends with the process

    def load(self) -> tuple[bool, int]:
        """The least is that of the one that should have the next batch."""
        return self.dead, len(self.numbers)

    def give(self, number: int, batch: Batch) -> None:
        """Send a batch, which it reads even while it is at another."""
        data = ForkingPickler.dumps(batch)
        self.numbers.append(number)
        try:
            self.pipe.send_bytes(data)
        except OSError:
            self.dead = True

    def answers(self) -> dict[int, _Answer]:
        """What came of its first batch, by its number; of a process that has died, of all that it had."""
        try:
            data = self.pipe.recv_bytes()
        except (EOFError, OSError):
            self.dead = True
            lost, self.numbers = self.numbers, deque()
            return dict.fromkeys(lost, _Answer([], _gone()))
        try:
            answer = _Answer(*ForkingPickler.loads(data))
        except Exception as error:  # noqa: BLE001
            answer = _Answer([], ChunkcoreError(f"what a worker process answered cannot be read: {error!r}"))
        return {self.numbers.popleft(): answer}

    def stop(self, *, kindly: bool) -> None:
        """Let it end by itself, or at once: what it is at is not wanted any more, and may take long."""
        if kindly:
            with suppress(OSError):  # one that had nothing more to do may have died
                self.pipe.send_bytes(b"")
        else:
            self._process.terminate()
            self.pipe.close()  # whose end ends it even where it has inherited to ignore SIGTERM

    def join(self) -> None:
        """Wait until it has ended."""
        self._process.join()
        self.pipe.close()


def _gone() -> ChunkcoreError:
    return ChunkcoreError(
        "a worker process ended before its work did: it was killed, or ran out of memory; try fewer --processes or a "
        "smaller --part-size"
    )


def _serve(pipe: Connection, strategy: dict[str, Any], part_size: int, workers: int) -> None:
    """Cut what comes, until nothing does: the work of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    batches: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read, args=(pipe, batches), daemon=True).start()
    cutter: Cutter | None = None
    while data := batches.get():
        try:
            cutter = cutter or Cutter(Chunker.from_dict(strategy), part_size, workers)
            cuts = [
                cut if cut.error is None else cut._replace(error=_portable(cut.error))
                for cut in cutter(ForkingPickler.loads(data))
            ]
            answer = ForkingPickler.dumps(tuple(_Answer(cuts)))
        except Exception as error:  # noqa: BLE001
            answer = ForkingPickler.dumps(tuple(_Answer([], _portable(error), traceback.format_exc())))
        try:
            pipe.send_bytes(answer)
        except OSError:
            os._exit(1)  # nobody is there to read it


def _read(pipe: Connection, batches: SimpleQueue[bytes]) -> None:
    """Read ahead, so that nobody waits for this process to read; and end it at once where its parent is gone."""
    try:
        while True:
            batches.put(pipe.recv_bytes())
    except BaseException:  # noqa: BLE001  # without this thread the process would wait for ever
        os._exit(1)


def _portable(error: Exception) -> Any:
    """The error, or where another process could not build it again, one of ours that says the same."""
    try:
        ForkingPickler.loads(ForkingPickler.dumps(error))
    except Exception:  # noqa: BLE001
        own = next((each for each in _OWN if isinstance(error, each)), ChunkcoreError)
        return own(str(error) if own is not ChunkcoreError else f"{type(error).__name__}: {error}")
    return error
