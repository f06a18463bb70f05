"""Processes that cut, each with its own models; their results in order, a bounded number under way."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any, NamedTuple

from chunkcore.chunkers import Chunker
from chunkcore.concurrency import ordered
from chunkcore.errors import ChunkcoreError
from chunkcore.streaming.cutting import Cut, Cutter
from chunkcore.streaming.sources import Piece

__all__ = ["cut_batches"]

Batch = Sequence[Piece]

_AHEAD = 2  # batches that a process has: the one that it is at, and the next


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
    and whoever waits for them, for ever.
    """
    workers: list[_Worker] = []
    done: dict[int, list[Cut]] = {}
    finished = False
    try:
        settings = (cutter.chunker.to_dict(), cutter.part_size, cutter.workers)
        workers += [_Worker(*settings) for _ in range(processes)]
        numbered = enumerate(batches)
        wanted = given = 0
        while True:
            for number, batch in islice(numbered, _AHEAD * processes - (given - wanted)):
                min(workers, key=lambda each: len(each.numbers)).give(number, batch)
                given = number + 1
            if wanted == given:
                break
            while wanted not in done:
                for worker in _answering(workers):
                    number, done[number] = worker.answer()
            yield done.pop(wanted)
            wanted += 1
        finished = True
    finally:
        for each in workers:
            each.end(wait=finished)


def _answering(workers: Sequence[_Worker]) -> list[_Worker]:
    """Those that have an answer, or have died; one of them at least."""
    ready = wait([worker.pipe for worker in workers if worker.numbers])
    return [worker for worker in workers if worker.pipe in ready]


class _Answer(NamedTuple):
    """What comes of a batch: cuts, or what was raised and where."""

    cuts: list[Cut]
    error: Exception | None = None
    trace: str = ""


class _Worker:
    """A process, from outside.

    Attributes:
        pipe: from which its answers come.
        numbers: of the batches that it has, in their order.
    """

    def __init__(self, *settings: Any) -> None:
        # Spawned, not forked: models, their threads and open caches do not survive a fork.
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.numbers: deque[int] = deque()
        self._process = context.Process(target=_serve, args=(theirs, *settings), daemon=True)
        self._process.start()
        theirs.close()  # so that the pipe ends with the process

    def give(self, number: int, batch: Batch) -> None:
        """Send a batch, which it reads even while it is at another.

        Raises:
            ChunkcoreError: it has died.
        """
        try:
            self.pipe.send(batch)
        except OSError as error:
            raise self._dead() from error
        self.numbers.append(number)

    def answer(self) -> tuple[int, list[Cut]]:
        """The number of its first batch, and what came of it.

        Raises:
            ChunkcoreError: it has died, or something was wrong with more than a document.
        """
        try:
            cuts, error, trace = self.pipe.recv()
        except (EOFError, OSError) as gone:
            raise self._dead() from gone
        if error is not None:
            raise error from ChunkcoreError(f"in a worker process:\n{trace}")
        return self.numbers.popleft(), cuts

    def end(self, *, wait: bool) -> None:
        """Let it end by itself, or at once: what it is at is not wanted any more, and may take long."""
        if wait:
            self.pipe.send(None)
        else:
            self._process.terminate()
        self._process.join()
        self.pipe.close()

    def _dead(self) -> ChunkcoreError:
        return ChunkcoreError(
            "a worker process ended before its work did: it was killed, or ran out of memory; try fewer --processes or "
            "a smaller --part-size"
        )


def _serve(pipe: Connection, strategy: dict[str, Any], part_size: int, workers: int) -> None:
    """Cut what comes, until None does: the work of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is told, and ends its workers
    batches: SimpleQueue[Batch | None] = SimpleQueue()
    threading.Thread(target=_read, args=(pipe, batches), daemon=True).start()
    cutter: Cutter | None = None
    while (batch := batches.get()) is not None:
        try:
            cutter = cutter or Cutter(Chunker.from_dict(strategy), part_size, workers)
            answer = _Answer(cutter(batch))
        except Exception as error:  # noqa: BLE001
            answer = _Answer([], error, traceback.format_exc())
        _send(pipe, answer)


def _read(pipe: Connection, batches: SimpleQueue[Batch | None]) -> None:
    """Read ahead, so that nobody waits for this process to read; and end it at once where its parent is gone."""
    try:
        while True:
            batches.put(pipe.recv())
    except (EOFError, OSError):
        os._exit(1)


def _send(pipe: Connection, answer: _Answer) -> None:
    try:
        pipe.send(answer)
    except OSError:
        os._exit(1)  # nobody is there to read it
    except Exception as error:  # noqa: BLE001
        told = answer.error or error
        pipe.send(_Answer([], ChunkcoreError(f"{type(told).__name__}: {told}"), answer.trace))
