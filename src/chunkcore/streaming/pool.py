"""Processes that cut, each with its own models; their results in order, a bounded number under way."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from chunkcore.chunkers import Chunker
from chunkcore.concurrency import ordered
from chunkcore.errors import ChunkcoreError
from chunkcore.streaming.cutting import Cut, Cutter
from chunkcore.streaming.sources import Piece

__all__ = ["cut_batches"]

Batch = Sequence[Piece]
_cutter: Cutter | None = None  # of a worker process


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
    # Spawned, not forked: models, their threads and open caches do not survive a fork.
    context = multiprocessing.get_context("spawn")
    settings = (cutter.chunker.to_dict(), cutter.part_size, cutter.workers)
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=_begin, initargs=settings)
    finished = False
    try:
        yield from ordered(pool, _cut, batches, 2 * processes)
        finished = True
    except BrokenProcessPool as error:
        raise ChunkcoreError(
            "a worker process ended before its work did: it was killed, or ran out of memory; try fewer --processes or "
            "a smaller --part-size"
        ) from error
    finally:
        pool.shutdown(wait=finished, cancel_futures=True)
        if not finished:  # what they are at is not wanted any more, and may take long
            for child in set(multiprocessing.active_children()) - before:
                child.terminate()


def _begin(strategy: dict[str, Any], part_size: int, workers: int) -> None:
    """Make this process a worker."""
    global _cutter  # one a process: how an executor's processes keep what they load
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is told, and ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _cutter = Cutter(Chunker.from_dict(strategy), part_size, workers)


def _cut(batch: Batch) -> list[Cut]:
    assert _cutter is not None
    return _cutter(batch)


def _end_with_parent() -> None:
    """Leave no worker behind where the parent was killed: it waits for work from itself, too, for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
