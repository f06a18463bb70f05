"""``chunkcore`` with a model that needs no weights and tells what it embeds, and which waits for ever at one place.

    python -m tests.faults.program LOG BATCH SEARCH ARGUMENTS...

It writes each text that it embeds as a line of LOG. Number BATCH of what is embedded, or search number SEARCH (0 for
none), is never done: the line "held" then ends the log. A system is searched for its scores, and for its curve.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import chunkcore.models
from chunkcore.cli import main
from chunkcore.models import Vectors, loading
from chunkcore.study import experiment

from tests.fakes import FakeEmbedder


def hold(log: Path) -> NoReturn:
    with log.open("a") as file:
        file.write("held\n")
    while True:  # a signal just before a longer sleep would be noticed only after it
        time.sleep(0.02)


class Telling(FakeEmbedder):
    """Attributes: where it tells what it embeds; how many batches are left until it hangs."""

    def __init__(self, log: Path, batch: int) -> None:
        super().__init__(8)
        self.log = log
        self.left = batch

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        with self.log.open("a") as file:
            file.writelines(f"{json.dumps(text)}\n" for text in texts)
        self.left -= 1
        if self.left == 0:
            hold(self.log)
        return super().embed_documents(texts)


def hold_search(log: Path, number: int) -> None:
    real, searched = experiment.run_index, []

    def run_index(*given: Any, **options: Any) -> Any:
        searched.append(given)
        if len(searched) == number:
            hold(log)
        return real(*given, **options)

    experiment.run_index = run_index


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # under nohup it is ignored, and so in every child
    place, batch, search, *arguments = sys.argv[1:]
    embedder = Telling(Path(place), int(batch))
    chunkcore.models.get_embedder = loading.get_embedder = lambda name: embedder  # type: ignore[assignment]
    hold_search(Path(place), int(search))
    sys.exit(main(arguments))
