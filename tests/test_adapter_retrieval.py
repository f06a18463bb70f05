"""Asking a retriever of no framework: what is kept, what is told, what is asked again."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chunkadapters.hits import Hit
from chunkadapters.retrieval import AnswersFile, DeployedRetriever, RetrieverHooks
from chunkcore.datasets import load_dataset
from chunkcore.document import Document, Span
from chunkcore.errors import DataError, OptionError
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Query
from chunkcore.evaluation.benchmarks.questions import Evidence
from tests.processes import started

TEXT = "Tea is hot. The sea is deep. \ud800 Fees are low."
QUESTIONS = ["tea", "sea \ud800", "fee"]
BENCHMARK = Benchmark(
    "b",
    [Document("d", TEXT)],
    [Query(f"q{i}", text, (Evidence("d", Span(0, 11)),)) for i, text in enumerate(QUESTIONS)],
)


class Toy:
    """Answers with the question's own words and the first sentence; raises on some questions."""

    def __init__(self, *fails: str) -> None:
        self.fails = set(fails)
        self.asked: list[str] = []

    def ask(self, question: str) -> list[Hit]:
        self.asked.append(question)
        if question in self.fails:
            raise ConnectionError("nobody there")
        return [Hit(TEXT[:11], 0.5, ("d",), (Span(0, 11),)), Hit(question)]

    async def aask(self, question: str) -> list[Hit]:
        await asyncio.sleep(0)
        return self.ask(question)


HOOKS: RetrieverHooks[Toy, Hit] = RetrieverHooks(
    lambda toy: DeployedRetriever("toy", toy.ask, toy.aask, None, callable), list
)


def run(toy: Toy, way: str = "run", **options):
    options = {"retries": 0, **options}
    if way == "run":
        return HOOKS.run_retriever(toy, BENCHMARK, **options)
    return asyncio.run(HOOKS.arun_retriever(toy, BENCHMARK, **options))


both = pytest.mark.parametrize("way", ["run", "arun"])


@both
def test_only_what_was_not_answered_is_asked_when_a_run_goes_on(way, tmp_path):
    file = tmp_path / "answers.jsonl"
    first = Toy("fee")
    with pytest.warns(UserWarning, match="1 of 3 questions went unanswered"):
        before = run(first, way, answers_file=file)
    assert set(before.failures) == {"q2"}
    second = Toy()
    after = run(second, way, answers_file=file)
    assert second.asked == ["fee"]
    assert after.results == run(Toy(), way).results
    third = Toy()
    assert run(third, way, answers_file=file).results == after.results
    assert third.asked == []


def test_a_last_line_that_is_not_whole_is_asked_for_again(tmp_path):
    file = tmp_path / "answers.jsonl"
    run(Toy(), answers_file=file)
    whole = file.read_bytes()
    for cut in range(len(whole)):
        file.write_bytes(whole[:cut])
        toy = Toy()
        run(toy, answers_file=file)
        assert len(toy.asked) == 3 - max(0, whole[:cut].count(b"\n") - 1)
        assert file.read_bytes() == whole


@pytest.mark.parametrize(
    ("line", "number"),
    [
        (b"no JSON", 2),
        (b'{"question": "tea"}', 2),
        (b'{"question": 1, "pieces": []}', 2),
        (b'{"question": "tea", "pieces": [{"text": "a"}]}', 2),
        (b'{"question": "t", "pieces": [{"text": "", "score": 1, "document_ids": [], "spans": [[5, 2]]}]}', 2),
        (
            b'{"question": "t", "pieces": [{"text": "", "score": 1%s, "document_ids": [], "spans": []}]}'
            % (b"0" * 400),
            2,
        ),
        (b"[" * 100_000, 2),
    ],
)
def test_a_damaged_file_is_told_with_its_line(line, number, tmp_path):
    file = tmp_path / "answers.jsonl"
    run(Toy(), answers_file=file)
    head, *answers = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(head + line + b"\n" + b"".join(answers))
    told = "damaged, expected one JSON object|expected a retriever's kept answers"
    with pytest.raises(DataError, match=rf"answers\.jsonl, line {number}: ({told}).* delete "):
        run(Toy(), answers_file=file)


@pytest.mark.parametrize("data", [b'{"my": "data"}\n', b'{"my": "data"}', b"notes\nand no line end", b"\n", b"{}\n{"])
def test_a_file_of_others_is_refused_and_left_as_it_is(data, tmp_path):
    file = tmp_path / "answers.jsonl"
    file.write_bytes(data)
    with pytest.raises(DataError, match=r"is no file of a retriever's kept answers: name another file"):
        run(Toy(), answers_file=file)
    assert file.read_bytes() == data


def test_a_score_that_is_no_number_is_kept_as_it_is(tmp_path):
    for _ in range(2):
        with AnswersFile(tmp_path / "answers.jsonl", "toy") as kept:
            kept.keep("tea", [Hit("a", score=float("nan")), Hit("b", score=float("-inf"))])
    with AnswersFile(tmp_path / "answers.jsonl", "toy") as kept:
        assert [str(hit.score) for hit in kept.fetch("tea")] == ["nan", "-inf"]


def test_another_system_is_refused(tmp_path):
    file = tmp_path / "answers.jsonl"
    run(Toy(), answers_file=file, name="one")
    with pytest.raises(DataError, match="has the answers of 'one', and this is 'two'"):
        run(Toy(), answers_file=file, name="two")
    with pytest.raises(DataError, match="cannot be opened for writing"):
        run(Toy(), answers_file=tmp_path)


@both
def test_progress_is_told_of_kept_answers_too(way, tmp_path):
    for _ in range(2):
        told: list[tuple] = []
        run(Toy(), way, answers_file=tmp_path / "a", progress=lambda *each, told=told: told.append(each))
        assert told == [("retrieve", done, 3) for done in (1, 2, 3)]


@both
def test_a_bar_is_shown_on_standard_error_and_goes_away(way, capsys):
    run(Toy(), way, progress=True)
    told = capsys.readouterr()
    assert told.out == ""
    assert "Traceback" not in told.err
    run(Toy(), way, progress=False)
    assert capsys.readouterr().err == ""


PROGRAM = """
import sys, time
sys.path[:0] = sys.argv[2:]
from tests.test_adapter_retrieval import Toy, run
class Slow(Toy):
    def ask(self, question):
        found = super().ask(question)
        if len(self.asked) == 3:
            print("third", flush=True)
            time.sleep(60)
        return found
run(Slow(), answers_file=sys.argv[1])
"""


@pytest.mark.skipif(os.name != "posix", reason="kills a process")
def test_a_process_that_was_killed_leaves_what_it_was_answered(tmp_path):
    file = tmp_path / "answers.jsonl"
    root = Path(__file__).resolve().parents[1]
    arguments = [sys.executable, "-c", PROGRAM, str(file), str(root / "src"), str(root)]
    with started(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "third"
        process.send_signal(signal.SIGKILL)
    toy = Toy()
    run(toy, answers_file=file)
    assert toy.asked == ["fee"]


def evaluated(toy: Toy, way: str = "run", benchmark=BENCHMARK, **options):
    options = {"retries": 0, **options}
    if way == "run":
        return HOOKS.evaluate_retriever(toy, benchmark, **options)
    return asyncio.run(HOOKS.aevaluate_retriever(toy, benchmark, **options))


@both
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measures": ["Foo@5"]}, "Foo"),
        ({"measures": ["TokenF1"]}, "TokenF1"),
        ({"measures": []}, "measures is empty"),
        ({"measures": 5}, "measures: expected one or a list"),
        ({"k": 0}, "0"),
        ({"k": [5, "many"]}, "many"),
        ({"k": None}, "k: expected one or a list"),
        ({"counter": "none-such"}, "none-such"),
        ({"benchmark": "none-such"}, "none-such"),
        ({"benchmark": 3}, "expected a Benchmark or a collection's name, got int"),
        ({"retries": "2"}, "retries is a whole number.*'2'"),
        ({"retries": 1.5}, "retries is a whole number.*1.5"),
        ({"retry_wait": "1"}, "retry_wait is a number, got .1."),
        ({"progress": 3}, "progress is True, False or a function"),
        ({"answers_file": 3}, "answers_file is a file's path"),
        ({"top_k": 3}, "there is no option 'top_k'; expected one of answers_file"),
    ],
)
def test_a_mistake_is_told_before_the_first_question(way, options, message):
    toy = Toy()
    with pytest.raises(OptionError, match=message):
        evaluated(toy, way, **options)
    assert toy.asked == []


def test_concurrency_is_of_the_asynchronous_forms():
    with pytest.raises(OptionError, match="concurrency is of the asynchronous forms"):
        evaluated(Toy(), concurrency=4)
    with pytest.raises(OptionError, match=r"concurrency is a whole number.*'4'"):
        evaluated(Toy(), "arun", concurrency="4")


@both
def test_one_measure_needs_no_list(way):
    report = evaluated(Toy(), way, measures="Recall@5")
    assert [str(each) for each in report.scores] == ["Recall@5"]
    assert report.mean("Recall@5") == 1


def test_a_shipped_collection_goes_by_its_name():
    toy = Toy()
    with pytest.warns(UserWarning, match="was the index built from other texts"):
        assert evaluated(toy, benchmark="lochmere", k=1).benchmark == "lochmere"
    assert len(toy.asked) == len(load_dataset("lochmere").queries)


class Keyed:
    """Holds a key two objects deep, and tells it in its errors."""

    def __init__(self, api_key: str) -> None:
        self.client = Client(api_key)

    def ask(self, question: str) -> list[Hit]:
        if question == "tea":
            return []
        raise PermissionError(f"{self.client.api_key} is wrong; so are sk-abcdefgh1234 and http://me:pass@host/a")

    async def aask(self, question: str) -> list[Hit]:
        return self.ask(question)


class Client:
    def __init__(self, api_key: str) -> None:
        self.api_key = api_key


@both
def test_keys_in_a_retrievers_errors_are_told_to_nobody(way):
    hooks: RetrieverHooks[Keyed, Hit] = RetrieverHooks(
        lambda keyed: DeployedRetriever("keyed", keyed.ask, keyed.aask, keyed, callable), list
    )
    keyed = Keyed("hunter2hunter2")
    ways = {
        "run": lambda: hooks.run_retriever(keyed, BENCHMARK, retries=0),
        "arun": lambda: asyncio.run(hooks.arun_retriever(keyed, BENCHMARK, retries=0)),
    }
    with pytest.warns(UserWarning, match="2 of 3 questions went unanswered") as warned:
        found = ways[way]()
    reason = "PermissionError: [secret] is wrong; so are [secret] and http://[secret]@host/a"
    assert found.failures == {"q1": reason, "q2": reason}
    assert "hunter2" not in str(warned[0].message)


def test_other_settings_are_another_system(tmp_path):
    hooks: RetrieverHooks[Toy, Hit] = RetrieverHooks(
        lambda toy, *, k: DeployedRetriever("toy", toy.ask, toy.aask, k, callable), list
    )
    file, toy = tmp_path / "answers", Toy()
    hooks.run_retriever(toy, BENCHMARK, answers_file=file, k=5)
    hooks.run_retriever(toy, BENCHMARK, answers_file=file, k=5)
    assert len(toy.asked) == 3
    with pytest.raises(DataError, match="has the answers of 'toy' with other settings"):
        hooks.run_retriever(toy, BENCHMARK, answers_file=file, k=20)
