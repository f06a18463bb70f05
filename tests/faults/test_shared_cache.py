"""Several processes at one cache: whoever begins, opens and closes it when, nothing is lost and nothing is refused."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time

import numpy as np
import pytest

from chunkcore.columns import text_key
from chunkcore.models import EmbeddingCache

ONE = np.ones((1, 4), dtype=np.float32)

BEGIN_TOGETHER = """
import multiprocessing, sys, warnings
import numpy as np
from pathlib import Path
from chunkcore.columns import text_key
from chunkcore.models.cache import EmbeddingCache

warnings.simplefilter("error")
folder, processes, rounds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])

def work(number, barrier, failed):
    for turn in range(rounds):
        barrier.wait(60)
        try:
            cache = EmbeddingCache(folder / f"{turn}.sqlite")
            key = [text_key(f"{number} of {turn}")]
            cache.store("m", key, np.ones((1, 4), dtype=np.float32))
            if not cache.fetch("m", key)[0].all():
                failed.put(f"{number} lost what it kept in turn {turn}")
        except BaseException as error:
            failed.put(repr(error))

context = multiprocessing.get_context("fork")
barrier, failed = context.Barrier(processes), context.SimpleQueue()
crowd = [context.Process(target=work, args=(number, barrier, failed)) for number in range(processes)]
for process in crowd:
    process.start()
for process in crowd:
    process.join()
while not failed.empty():
    print(failed.get())
for turn in range(rounds):
    cache = EmbeddingCache(folder / f"{turn}.sqlite")
    if len(cache) != processes:
        print(f"turn {turn}: {len(cache)} of {processes} are there")
"""


def begin_together(folder, processes: int, rounds: int) -> None:
    command = [sys.executable, "-c", BEGIN_TOGETHER, str(folder), str(processes), str(rounds)]
    one = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # Python warns of a fork among threads
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=one)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@needs_fork
def test_processes_that_begin_one_file_at_the_same_moment_all_keep_theirs_in_it(tmp_path):
    begin_together(tmp_path, 6, 12)


STORE_FOR_EVER = """
import itertools, sys, warnings
import numpy as np
from chunkcore.columns import text_key
from chunkcore.models.cache import EmbeddingCache

warnings.simplefilter("error")
for number in itertools.count():
    cache = EmbeddingCache(sys.argv[1])
    cache.store("m", [text_key(f"{sys.argv[2]} {number}")], np.ones((1, 4), dtype=np.float32))
    print(number, flush=True)
"""


@pytest.mark.slow
def test_processes_that_are_killed_at_any_moment_lose_nothing_that_was_kept(tmp_path):
    path, chance, kept = tmp_path / "cache.sqlite", random.Random(0), {}

    def started(number: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", STORE_FOR_EVER, str(path), str(number)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    crowd = {number: started(number) for number in range(3)}
    for number in range(3, 43):
        time.sleep(chance.random())
        victim = chance.choice(list(crowd))
        process = crowd.pop(victim)
        process.kill()
        told, errors = process.communicate()
        assert errors == ""
        kept[victim] = told.count("\n")
        crowd[number] = started(number)
    for process in crowd.values():
        process.kill()
        process.communicate()
    assert sum(kept.values()) > 100
    cache = EmbeddingCache(path)
    assert all(
        cache.fetch("m", [text_key(f"{victim} {number}")])[0].all()
        for victim, count in kept.items()
        for number in range(count)
    )
