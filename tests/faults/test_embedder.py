"""Embedders that hang: given up at the time-out, asked once more, and what they answer later disturbs nobody."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from chunkcore.chunkers import get_chunker
from chunkcore.concurrency import with_timeout
from chunkcore.document import Document, Span
from chunkcore.errors import ModelError, OptionError
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Evidence, Query
from chunkcore.evaluation.experiment import run_experiment
from chunkcore.evaluation.measures import measures_at
from chunkcore.models import CachedEmbedder, EmbeddingCache, Vectors
from tests.fakes import FakeEmbedder, RaisingEmbedder
from tests.faults.places import ROOT


class Hanging(FakeEmbedder):
    """Does not answer its first `times` calls until it is let go."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times
        self.free = threading.Event()
        self.began: list[float] = []

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.began.append(time.monotonic())
        if len(self.began) <= self.times:
            self.free.wait(60)
            raise RuntimeError("nobody is there any more to hear this")
        return super().embed_documents(texts)


@pytest.mark.parametrize("ask", [CachedEmbedder.embed_documents, CachedEmbedder.embed_queries])
def test_a_model_that_hangs_is_asked_once_more_and_then_given_up(tmp_path: Path, ask) -> None:
    model = Hanging(2)
    cache = EmbeddingCache(tmp_path / "cache.sqlite")
    embedder = CachedEmbedder(model, cache, timeout=0.2)
    asked = time.monotonic()
    with pytest.raises(ModelError, match=r"the model 'fake' gave no answer to 3 texts in 0\.2 s"):
        ask(embedder, ["a", "b", "c"])
    assert len(model.began) == 2
    assert model.began[1] - asked >= 0.2
    model.free.set()
    assert len(cache) == 0  # nothing of what it was asked is taken for answered
    embedder.timeout = 60
    assert len(ask(embedder, ["a", "b", "c"])) == len(cache) == 3


def test_a_model_that_hangs_once_costs_a_run_one_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    model, limits = Hanging(1), []

    def limited(seconds: float | None, work):
        limits.append(seconds)
        return with_timeout(seconds if len(limits) == 1 else 60, work)

    monkeypatch.setattr("chunkcore.models.base.with_timeout", limited)
    sea = Query("q", "sea", (Evidence("d", Span(12, 28)),))
    benchmark = Benchmark("b", [Document("d", "Tea is hot. The sea is deep. Fees are low.")], [sea])
    chunker = get_chunker("fixed_sentences:sentences=1")
    began = time.monotonic()
    (report,) = run_experiment(benchmark, [chunker], CachedEmbedder(model, timeout=0.5), measures=measures_at([1]))
    assert report.mean("Recall@1") == 1
    assert model.began[1] - began >= 0.5
    assert set(limits) == {0.5}
    model.free.set()


def test_other_failures_are_what_they_were() -> None:
    with pytest.raises(ModelError, match="ConnectionError: the model's server hung up"):
        CachedEmbedder(RaisingEmbedder(), timeout=5).embed_documents(["a"])


def test_a_time_out_is_a_time_and_travels() -> None:
    for wrong in (0, -1, float("inf"), float("nan")):
        with pytest.raises(OptionError, match="timeout is over 0 seconds"):
            CachedEmbedder(FakeEmbedder(), timeout=wrong)
    assert pickle.loads(pickle.dumps(CachedEmbedder(FakeEmbedder(), timeout=7))).timeout == 7


PROGRAM = """
import time
from chunkcore.models import CachedEmbedder
from chunkcore.errors import ModelError
from tests.fakes import FakeEmbedder

class Hanging(FakeEmbedder):
    def embed_documents(self, texts):
        time.sleep(600)

try:
    CachedEmbedder(Hanging(), timeout=0.1).embed_documents(["a"])
except ModelError as error:
    print(error)
"""


def test_a_process_ends_though_its_model_still_hangs() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "the model 'fake' gave no answer to 1 texts in 0.1 s\n"
