"""A file that was written and is read again is as it was, or it is refused: any byte changed, or cut anywhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chunkcore.document import Document, Span
from chunkcore.errors import DataError
from chunkcore.evaluation.benchmarks import load_benchmark, write_benchmark
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Evidence, Query
from chunkcore.evaluation.benchmarks.documents import BENCHMARK_NAMES, CHECKSUMS
from chunkcore.evaluation.measures import get_measure
from chunkcore.evaluation.results import Report
from chunkcore.evaluation.run_files import read_pool, read_run, write_pool, write_run
from chunkcore.evaluation.scoring import score
from chunkcore.report import read_reports, write_report
from chunkcore.run import Retrieved, Run

TEXT = "Tea is hot. The sea is deep. Fees are low."
BENCHMARK = Benchmark(
    "b",
    [Document("d", TEXT)],
    [Query("q", "sea", (Evidence("d", Span(12, 28)),)), Query("r", "fees", (Evidence("d", Span(29, 42)),))],
)
POOL = [
    Retrieved("d", (Span(start, start + 6),), 0.5, TEXT[start : start + 6], id=f"c{start}") for start in (0, 12, 29)
]
RUN = Run("run", {"q": POOL[:2], "r": [Retrieved("", (), 0.25, "Not there."), POOL[2]]}, POOL)


def _reports(path: Path) -> list[dict[str, Any]]:
    return [report.to_dict() for report in read_reports(path)]


def _run(path: Path) -> dict[str, list[Retrieved]]:
    return {query: list(hits) for query, hits in read_run(path, BENCHMARK).results.items()}


FILES: dict[str, tuple[Callable[[Path], Path], Callable[[Path], Any]]] = {
    "run": (lambda folder: write_run(RUN, folder / "run.jsonl", BENCHMARK), _run),
    "pool": (
        lambda folder: write_pool(POOL, folder / "pool.jsonl", BENCHMARK),
        lambda path: read_pool(path, BENCHMARK),
    ),
    "report": (lambda folder: write_report([score(RUN, BENCHMARK, ["Recall@2"])], folder).json, _reports),
}


@pytest.mark.parametrize("kind", FILES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_a_damaged_file_gives_the_same_or_is_refused(tmp_path: Path, kind: str, data: st.DataObject) -> None:
    write, read = FILES[kind]
    path = tmp_path / kind / "written"
    if not path.exists():
        path.parent.mkdir()
        path = write(tmp_path / kind)
        (tmp_path / kind / "written").write_bytes(path.read_bytes())
    content = (tmp_path / kind / "written").read_bytes()
    damaged = tmp_path / kind / ("damaged.json" if kind == "report" else "damaged.jsonl")
    damaged.write_bytes(content)
    whole = read(damaged)
    place = data.draw(st.integers(0, len(content) - 1))
    other = bytes([content[place] ^ data.draw(st.integers(1, 255))])
    cut = data.draw(st.booleans())
    damaged.write_bytes(content[:place] if cut else content[:place] + other + content[place + 1 :])
    try:
        again = read(damaged)
    except DataError as error:
        refusal = str(error)
    else:
        assert again == whole
        return
    assert damaged.name in refusal or "no report" in refusal
    assert "\n" not in refusal


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_a_damaged_benchmark_is_the_same_or_is_refused(tmp_path: Path, data: st.DataObject) -> None:
    write_benchmark(BENCHMARK, tmp_path)
    file = tmp_path / data.draw(st.sampled_from([*BENCHMARK_NAMES, CHECKSUMS]))
    content = file.read_bytes()
    place = data.draw(st.integers(0, len(content) - 1))
    other = bytes([content[place] ^ data.draw(st.integers(1, 255))])
    file.write_bytes(content[:place] if data.draw(st.booleans()) else content[:place] + other + content[place + 1 :])
    with pytest.raises(DataError):
        load_benchmark(tmp_path)
    file.write_bytes(content)
    assert load_benchmark(tmp_path, name="b").queries == BENCHMARK.queries


def test_a_benchmark_that_is_edited_on_purpose_is_accepted_without_its_checksums(tmp_path: Path) -> None:
    _, questions = write_benchmark(BENCHMARK, tmp_path)
    questions.write_text(questions.read_text().replace("fees", "costs"))
    with pytest.raises(DataError, match=r"questions\.jsonl is not what was .* delete checksums\.json to accept"):
        load_benchmark(tmp_path)
    (tmp_path / CHECKSUMS).unlink()
    assert [query.text for query in load_benchmark(tmp_path).queries] == ["sea", "costs"]


def test_the_refusal_names_the_file_and_the_line(tmp_path: Path) -> None:
    path = write_run(RUN, tmp_path / "run.jsonl", BENCHMARK)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    with pytest.raises(
        DataError, match=r"run\.jsonl, line 1: what follows is not what was written \(4 lines then, 3 now\)"
    ):
        read_run(path, BENCHMARK)
    path.write_text("".join(lines[1:]))
    assert len(read_run(path, BENCHMARK).results) == 2, "a run of another program has no such line"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("scores", {"Recall@2": [9.41, 0.5]}),
        ("scores", {"Recall@2": [-0.1, 0.5]}),
        ("scores", {"Recall@2": [1.0]}),
        ("scores", {"Recall@2": [float("inf"), 0.0]}),
        ("retrieved_tokens", {"2": [-1, 3]}),
        ("certainty", {"exact": 1.5}),
        ("located", {"exact": -3}),
        ("seconds", {"chunk": float("nan")}),
        ("query_ids", "ab"),
        ("documents", [1, 2]),
    ],
)
def test_a_value_out_of_range_is_no_report(key: str, value: object) -> None:
    plain = Report("a", "b", ("q", "r"), ("", ""), {get_measure("Recall@2"): np.ones(2)}).to_dict()
    assert Report.from_dict(json.loads(json.dumps(plain))).name == "a"
    with pytest.raises(DataError, match="this is no report"):
        Report.from_dict(plain | {key: value})
