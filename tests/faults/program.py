"""``chunkcore`` with a model that needs no weights, tells what it embeds, and takes its time.

    python -m tests.faults.program LOG SECONDS HELD ARGUMENTS...

It writes each text that it embeds as a line of LOG, SECONDS for each batch. The line "held" follows when the system
number HELD (0 for none) is about to be searched, which then takes for ever.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import chunkcore.models
from chunkcore.cli import main
from chunkcore.evaluation import experiment
from chunkcore.models import Vectors
from tests.fakes import FakeEmbedder


class Slow(FakeEmbedder):
    """Attributes: where it tells what it embeds, and how long each batch takes it."""

    def __init__(self, log: Path, seconds: float) -> None:
        super().__init__(8)
        self.log = log
        self.seconds = seconds

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        with self.log.open("a") as file:
            file.writelines(f"{json.dumps(text)}\n" for text in texts)
        time.sleep(self.seconds)
        return super().embed_documents(texts)


def hold(log: Path, number: int) -> None:
    real, searched = experiment.run_retriever, []

    def run_retriever(*given: Any, **options: Any) -> Any:
        searched.append(given)
        if len(searched) == number:
            with log.open("a") as file:
                file.write("held\n")
            time.sleep(600)
        return real(*given, **options)

    experiment.run_retriever = run_retriever


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # under nohup it is ignored, and so in every child
    place, seconds, held, *arguments = sys.argv[1:]
    embedder = Slow(Path(place), float(seconds))
    chunkcore.models.get_embedder = lambda name: embedder  # type: ignore[assignment]
    hold(Path(place), int(held))
    sys.exit(main(arguments))
