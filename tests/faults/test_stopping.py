"""Commands that are killed, stopped by Ctrl-C or by SIGTERM: what is kept, what is told, and what is paid for twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests import fake_llm_server
from tests.fake_llm_server import FakeServer, Gate
from tests.fake_writers import SENTENCES, honest
from tests.faults.places import ROOT
from tests.processes import started, wait_for

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
needs_openai = pytest.mark.skipif(find_spec("openai") is None, reason="the package openai is not installed")

BATCH = 256  # texts that a model is given at once: what a kill can cost
WAITING = "chunkcore: stopping once what is under way is done; stop it again to end at once"


class Program:
    """``chunkcore`` as a process, with its own cache folder; `log` is what its model embedded, `told` its errors."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "embedded.txt"
        self.told = folder / "told.txt"
        self.environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache"), "COLUMNS": "200"}

    def command(self, *arguments: object, batch: int = 0, search: int = 0) -> list[str]:
        own = [str(self.log), str(batch), str(search)]
        return [sys.executable, "-m", "tests.faults.program", *own, *map(str, arguments)]

    @contextmanager
    def started(self, *arguments: object, **held: int) -> Iterator[subprocess.Popen[str]]:
        options = {"cwd": ROOT, "env": self.environment, "stdout": subprocess.PIPE, "text": True}
        with self.told.open("w") as told, started(self.command(*arguments, **held), stderr=told, **options) as process:
            yield process

    def stopped(
        self,
        reached: Callable[[], bool],
        *arguments: object,
        how: int = signal.SIGINT,
        gate: Gate | None = None,
        **held: int,
    ) -> tuple[int, str, str]:
        """Its exit code, standard output and error, where it was sent the signal once it had reached a place.

        A gate is opened once it has noticed the signal.
        """
        with self.started(*arguments, **held) as process:
            wait_for(reached, process)
            process.send_signal(how)
            if gate is not None:
                wait_for(self.is_stopping, process)
                gate.opened.set()
            out, _ = process.communicate(timeout=200)
        return process.returncode, out, self.told.read_text()

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments), cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=200
        )

    def is_stopping(self) -> bool:
        return WAITING in self.told.read_text()

    def is_held(self) -> bool:
        return self.log.exists() and self.log.read_text().endswith("held\n")

    def embedded(self) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if line != "held"]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def scores(folder: Path) -> list[Any]:
    """What a report says, but for the time that it took."""
    reports = json.loads((folder / "report.json").read_text())["reports"]
    return [{key: each[key] for key in ("name", "scores", "retrieved_tokens")} for each in reports]


SPECS = ["-s", "recursive:size=12", "-s", "fixed_token:size=40", "-k", "3", "--resamples", "100"]


@pytest.fixture
def comparing(tmp_path: Path) -> list[object]:
    """A comparison with several batches to embed."""
    (tmp_path / "docs").mkdir()
    lines = [f"Ship number {number} lies in harbour {number % 7}." for number in range(3 * BATCH)]
    (tmp_path / "docs" / "ships.txt").write_text("\n".join(lines))
    rows = [{"question": f"Where does ship {number} lie?", "evidence": [lines[number]]} for number in range(0, 90, 9)]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return ["--docs", tmp_path / "docs", "--questions", tmp_path / "questions.jsonl", *SPECS]


def test_a_killed_comparison_embeds_again_no_more_than_the_batch_that_was_under_way(program, tmp_path, comparing):
    arguments = ["compare", "-r", "dense", *comparing, "-o", tmp_path / "out"]
    code, *_ = program.stopped(program.is_held, *arguments, how=signal.SIGKILL, batch=3)
    assert code == -signal.SIGKILL
    assert not (tmp_path / "out").exists()
    assert program.run(*arguments).returncode == 0
    embedded = program.embedded()
    assert len(embedded) > 3 * BATCH
    assert len(embedded) - len(set(embedded)) <= BATCH
    assert program.run("compare", "-r", "dense", *comparing, "--no-cache", "-o", tmp_path / "whole").returncode == 0
    assert scores(tmp_path / "out") == scores(tmp_path / "whole")  # as if it had never been killed


def test_a_comparison_that_is_stopped_reports_what_was_scored_and_says_how_to_go_on(program, tmp_path, comparing):
    arguments = ["compare", "-r", "dense", *comparing, "-o", tmp_path / "out"]
    code, out, err = program.stopped(program.is_held, *arguments, search=3)
    assert code == 130
    assert [each["name"] for each in scores(tmp_path / "out")] == ["recursive:size=12"]
    assert str(tmp_path / "out" / "report.html") in out
    cache = tmp_path / "cache" / "chunkcore" / "cache.sqlite"
    assert WAITING in err.splitlines()
    assert err.splitlines()[-1] == (
        "chunkcore: stopped before the end; the report is of the first 1 to be scored; what models answered is kept in "
        f"{cache}: the same command goes on with it"
    )
    sentence = "Stopped before the end; the report is of the first 1 to be scored."
    assert all(sentence in (tmp_path / "out" / f"report.{kind}").read_text() for kind in ("html", "md"))
    assert f"! {sentence}" in out


@pytest.fixture
def server(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    def write(handler: Any, body: dict[str, Any]) -> None:
        handler.wait_at_the_gate()
        handler.complete(honest(body["messages"], None))

    monkeypatch.setitem(fake_llm_server.FAULTS, "writer", write)
    return server


def paid(server: FakeServer) -> list[str]:
    return [json.dumps(each["body"], sort_keys=True) for each in server.log]


def generating(server: FakeServer, folder: Path, model: str) -> list[object]:
    (folder / "docs").mkdir(exist_ok=True)
    (folder / "docs" / "story.txt").write_text("\n".join(SENTENCES))
    named = ["--llm", f"openai:{model}@{server.url}", "--docs", folder / "docs", "--embedder", "none"]
    return ["questions", "generate", *named, "-n", "30", "--sample-size", "400", "-o", folder / "questions.jsonl"]


@needs_openai
def test_generating_that_is_stopped_leaves_the_questions_so_far_and_pays_twice_only_for_what_a_kill_met(
    program: Program, server: FakeServer, tmp_path: Path
) -> None:
    arguments = generating(server, tmp_path, "writer")
    server.gate.most = 12
    code, _, err = program.stopped(lambda: len(server.log) > 12, *arguments, gate=server.gate)
    server.gate.most = sys.maxsize
    assert code == 130
    rows = (tmp_path / "questions.jsonl").read_text().splitlines()
    assert 4 <= len(rows) < 30
    assert all(json.loads(row)["evidence"] for row in rows)
    assert err.splitlines()[-1].startswith(f"chunkcore: stopped before the end, with {len(rows)} questions; what ")
    assert err.endswith("the same command goes on with it\n")
    info = json.loads((tmp_path / "questions.info.json").read_text())
    assert info["stopped"] == "it was interrupted"
    asked = len(server.log)
    server.gate.most = asked + 6
    server.gate.opened.clear()
    code, *_ = program.stopped(lambda: len(server.log) > asked + 6, *arguments, how=signal.SIGKILL)
    assert code == -signal.SIGKILL
    server.gate.most = sys.maxsize
    assert program.run(*arguments).returncode == 0
    after = (tmp_path / "questions.jsonl").read_text().splitlines()
    assert (len(after), after[: len(rows)]) == (30, rows)
    counts = Counter(paid(server))
    assert sum(counts.values()) - len(counts) <= 4  # what was under way at the kill; at Ctrl-C it was waited for


@needs_openai
def test_whoever_does_not_want_to_wait_for_a_hanging_model_stops_twice(program, server, tmp_path):
    with program.started(*generating(server, tmp_path, "hanging")) as process:
        wait_for(lambda: server.log, process)
        process.send_signal(signal.SIGINT)
        wait_for(program.is_stopping, process)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=200) == -signal.SIGINT  # the model hangs for longer


@needs_openai
def test_strategies_that_ask_a_model_ask_no_more_once_stopped_and_pay_nothing_twice(
    program: Program, server: FakeServer, tmp_path: Path, comparing: list[object]
) -> None:
    strategy = f"contextual:llm=openai:gated@{server.url}#concurrency=2"
    chosen = ["-r", "dense", "-s", strategy, "-k", "3", "--resamples", "100"]
    arguments = ["compare", *comparing[:4], *chosen, "-o", tmp_path / "out"]
    server.gate.most = 6
    code, _, err = program.stopped(lambda: len(server.log) > 6, *arguments, gate=server.gate)
    assert code == 130
    assert "cache.sqlite: the same command goes on with it" in err
    assert len(server.log) < 20  # of more than 40
    server.gate.most = sys.maxsize
    done = program.run(*arguments)
    assert done.returncode == 0, done.stderr
    assert "answers kept from before" in done.stdout
    counts = Counter(paid(server))
    assert len(counts) > 40
    assert max(counts.values()) == 1
