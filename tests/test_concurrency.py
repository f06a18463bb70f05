"""Threads whose work nobody waits for any more stop before the next dear thing."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from chunkcore.concurrency import check_wanted, ordered


def test_whoever_is_in_no_such_thread_is_wanted():
    check_wanted()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(check_wanted).result()
        assert list(ordered(pool, lambda _: check_wanted(), iter("ab"), ahead=1)) == [None, None]
        pool.submit(check_wanted).result()  # what was done in this thread before is over


def test_what_was_not_begun_is_not_begun_after_an_error():
    begun, ended = [], threading.Event()

    def work(number):
        begun.append(number)
        if number == 0:
            raise ValueError(number)
        ended.wait(60)

    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(ValueError, match="0"):
            list(ordered(pool, work, iter(range(100)), ahead=50))
        ended.set()
    assert len(begun) <= 2


def test_threads_within_threads_end_at_the_next_check():
    begun, go, told = threading.Event(), threading.Event(), []

    def inner(number):
        begun.set()
        go.wait(60)
        check_wanted()
        told.append(number)

    def outer(number):
        if number == 0:
            begun.wait(60)
            raise ValueError
        with ThreadPoolExecutor(1) as own:
            return list(ordered(own, inner, iter(range(5)), ahead=2))

    with ThreadPoolExecutor(2) as pool:
        with pytest.raises(ValueError):
            next(ordered(pool, outer, iter(range(2)), ahead=2))
        go.set()  # the other thread, and the one that it waits for, were at work meanwhile
    assert told == []
