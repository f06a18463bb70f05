"""Questions by a model behind an endpoint: killed as a process again and again, and by a real model."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from chunkcore import Document, get_llm, load_benchmark, load_dataset
from chunkcore.cli import main
from chunkcore.datasets import dataset_path
from chunkcore.questions import Generated, GenerationOptions, generate_benchmark
from chunkcore.questions.page import files_beside
from integration_tests.small_llm import MODEL, is_installed, served
from tests.fake_llm_server import FakeServer, Handler
from tests.fake_writers import SENTENCES, mixed

pytestmark = pytest.mark.skipif(find_spec("openai") is None, reason="the package openai is not installed")

ROOT = Path(__file__).resolve().parents[1]
KILLS = 3
QUESTIONS = 20
CHUNKCORE = [sys.executable, "-m", "chunkcore"]


class Writer(Handler):
    """Answers with questions, some of them with excerpts that do not stand in the passage."""

    def do_POST(self) -> None:  # noqa: N802
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.log.append({"asked": json.dumps(body["messages"])})
        self.wait_at_the_gate()
        time.sleep(0.02)
        with suppress(OSError):  # whoever asked was killed
            self.complete(mixed(body["messages"], None))


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as made:
        made.RequestHandlerClass = Writer  # type: ignore[assignment]
        threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield made
        made.gate.opened.set()
        made.shutdown()


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.txt").write_text("\n".join(SENTENCES[number * 30 : number * 30 + 30]))
    return folder


def answered(journal: Path) -> int:
    return journal.read_bytes().count(b'{"answered"') if journal.exists() else 0


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_the_command_is_killed_again_and_again_and_its_questions_can_be_compared_on(
    server: FakeServer, docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, once = tmp_path / "questions.jsonl", tmp_path / "once.jsonl"
    concurrency = 3
    spec = f"openai:m@{server.url}#tries=1&concurrency={concurrency}"
    program = ["questions", "generate", "--docs", str(docs), "--llm", spec, "-n", str(QUESTIONS)]
    program += ["--sample-size", "300", "--concurrency", str(concurrency), "--embedder", "none"]
    chance = random.Random(0)
    kills, code = 0, None
    while code is None:
        journal = files_beside(output).journal
        before = answered(journal)
        wanted = before + chance.randint(1, 6) if kills < KILLS else 10**9
        server.gate.most = len(server.log) + 12 if kills < KILLS else sys.maxsize  # so that it is killed at work
        with subprocess.Popen(
            [*CHUNKCORE, *program, "--output", str(output)], cwd=ROOT, stdout=subprocess.DEVNULL
        ) as process:
            while process.poll() is None and answered(journal) < wanted:
                time.sleep(0.005)
            time.sleep(chance.random() / 30 if kills < KILLS else 0)
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                kills += 1
            else:
                code = process.returncode
    assert code in (0, 1)  # 1 where documents were given up before there were as many as wanted
    assert kills >= KILLS - 2
    counts = Counter(each["asked"] for each in server.log)
    assert sum(counts.values()) - len(counts) <= kills * concurrency
    assert len(counts) == answered(files_beside(output).journal)
    server.log.clear()
    assert main([*program, "--output", str(once)]) == code
    for mine, other in ((output, once), (files_beside(output).rejected, files_beside(once).rejected)):
        assert mine.read_bytes() == other.read_bytes()
    reasons = [json.loads(line)["reason"] for line in files_beside(output).rejected.read_text().splitlines()]
    assert any("does not stand in the passage" in reason for reason in reasons)
    benchmark = load_benchmark(docs, output)
    assert not benchmark.problems
    for query in benchmark.queries:
        (evidence,) = query.evidence
        assert evidence.span.slice(benchmark.document(evidence.document_id).text) in SENTENCES
    collection = ["--docs", str(docs), "--questions", str(output)]
    compare = ["compare", *collection, "-s", "recursive:size=20", "-s", "recursive:size=60", "--resamples", "200"]
    assert main([*compare, "--output", str(tmp_path / "report")]) == 0
    assert "recursive:size=20" in capsys.readouterr().out
    # The fake writer asks in nearly the same words again and again; beside that nothing is wrong.
    assert main(["questions", "check", *collection, "--size", "40", "--ignore", "duplicate"]) == 0
    assert capsys.readouterr().out == "nothing is wrong\n"


@pytest.mark.skipif(not is_installed(), reason="the small language model is not installed")
def test_a_real_model_writes_questions_or_rejections_and_pays_for_none_twice(tmp_path: Path) -> None:
    """A base model copies little without a slip: every question that it writes is right or told to be wrong."""
    manual = (dataset_path("lochmere") / "documents" / "manual.md").read_text(encoding="utf-8")
    reference = load_dataset("lochmere").documents[0]
    documents = [Document("manual.md", manual[:2_500]), Document(reference.id, reference.text[:2_500])]
    options = GenerationOptions(questions=1, sample_size=300, retries=0, patience=1, concurrency=1)
    with served() as url:
        llm = get_llm(f"openai:{MODEL}@{url}#max_tokens=60&timeout=300&tries=1&concurrency=1")
        made = generate_benchmark(documents, llm, options, journal=tmp_path / "journal.jsonl")
        calls = llm.usage.calls  # type: ignore[attr-defined]
        again = generate_benchmark(documents, llm, options, journal=tmp_path / "journal.jsonl")
        assert llm.usage.calls == calls == made.usage.calls  # type: ignore[attr-defined]
    assert (again.rows, again.rejections) == (made.rows, made.rejections)
    assert made.usage.estimated_calls == 0
    assert calls == len(made.rows) + len(made.rejections) > 0
    assert_that_all_is_right(made, {document.id: document.text for document in documents})


def assert_that_all_is_right(made: Generated, texts: dict[str, str]) -> None:
    for row in made.rows:
        for each in row["evidence"]:
            assert texts[row["document_id"]][each["start"] : each["end"]] == each["text"]
    assert all(each.reason for each in made.rejections)
