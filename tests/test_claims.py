"""The figures of README and of the pages on passages are those of the result files that programs wrote."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from chunkadapters.behind import FETCH_K
from integration_tests.benchmarks.passages_table import (
    CHOSEN,
    CONFIRMED,
    LABELS,
    MAIN,
    embedder_tables,
    mean_recall,
    tables,
)

from tests.fuzzing.of_hostile_files import FAMILIES

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
NAMES = {"lochmere": "lochmere", "Chroma report": "chroma", "COVID-QA": "covid_qa", "QMSum": "qmsum"}
FRAMEWORKS = ("LangChain", "LlamaIndex", "Haystack")


def test_the_table_of_readme_is_that_of_the_stores() -> None:
    results = json.loads((ROOT / "docs/evidence/data/behind.json").read_text(encoding="utf-8"))
    rows = re.findall(r"^\| ([\w -]+) \((\d+)\) \| (.*) \|$", README, flags=re.MULTILINE)
    assert [NAMES[name] for name, _, _ in rows] == list(NAMES.values())
    for name, questions, cells in rows:
        stated = [tuple(map(int, re.findall(r"\d+", cell))) for cell in cells.split(" | ")]
        for framework, scores, gain in zip(FRAMEWORKS, stated[::2], stated[1::2], strict=True):
            (result,) = (
                result
                for result in results
                if (result["collection"], result["hits"]) == (NAMES[name], 100)
                and result["store"] == f"{framework}, in memory"
            )
            budget = result["1000"]
            assert int(questions) == result["questions"]
            assert scores == (round(budget["bare"]), round(budget["behind"]))
            assert gain == tuple(map(round, budget["difference"]))


def results_of(name: str) -> Any:
    return json.loads((ROOT / "docs" / "evidence" / "data" / f"{name}.json").read_text(encoding="utf-8"))


EVIDENCE = (ROOT / "docs" / "evidence" / "passages.md").read_text(encoding="utf-8").splitlines()


def test_the_tables_of_passages_are_those_that_the_program_prints() -> None:
    lines = "\n".join([*tables(results_of("passages")), *embedder_tables(results_of("embedders"))]).splitlines()
    printed = [row for row in lines if row.startswith("|")]
    assert [row for row in printed if row not in EVIDENCE] == []
    losing = {re.split(r",| \|", row.strip("| "))[0] for row in printed if "**" in row}
    sentence = README.split("**Where it loses**")[1].split("[")[0]
    assert losing == {name for name in losing if name in sentence}
    means = re.findall(r"(?m)^\| (\d+ .*, .*) \| (.*) \| (.*) \|$", README)
    assert len(means) == 3
    for label, *cells in means:
        (row,) = (row for row in printed if row.startswith(f"| {label} |"))
        assert row.strip("| ").split(" | ")[2:4] == cells


def test_where_passages_lose_the_page_says_so() -> None:
    whole, _, recall = (line for line in EVIDENCE if line.startswith("- **"))
    for name, row in results_of("passages").items():
        for kind, said in (("whole", whole), ("recall", recall)):
            for own, (_, _, high) in zip(row[kind][MAIN], row.get(f"{kind} against best", []), strict=False):
                assert high >= 0 or LABELS[name] in said
                assert high >= 0 or kind == "recall" or f"({own:.1f} against" in said


def test_the_cost_of_passages_is_what_was_measured() -> None:
    measured = (ROOT / "docs/evidence/data/passages_cost.txt").read_text(encoding="utf-8").splitlines()[2:]
    rows = [row.strip("| ").split(" | ") for row in measured]
    assert all(any(line == f"| {' | '.join(row[:7])} |" for line in EVIDENCE) for row in rows)
    few, many = (round(float(row[3])) for row in rows)
    stated = f"{few} milliseconds of processor time over 9,000 units, {many} over 100,000"
    assert stated in (ROOT / "docs/guides/passages.md").read_text(encoding="utf-8")


def test_the_tables_of_stores_are_those_of_the_stores() -> None:
    for result in results_of("behind"):
        budget = result["1000"]
        _, low, high = budget["difference"]
        (row,) = (row for row in EVIDENCE if row.startswith(f"| {result['store'].split(',')[0]}, {FETCH_K} |"))
        assert f"{budget['bare']:.1f} → {budget['behind']:.1f} ({low:+.1f}…{high:+.1f})" in row


def test_the_gain_that_the_guide_of_passages_names_is_that_of_the_stores() -> None:
    guide = (ROOT / "docs" / "guides" / "passages.md").read_text(encoding="utf-8")
    gains = [
        row["1000"]["difference"][0] for row in results_of("behind") if "memory" in row["store"] and row["hits"] == 100
    ]
    assert f"{min(gains):+.0f} to {max(gains):+.0f} points" in guide


def test_the_default_number_of_hits_is_the_better_of_those_that_were_tried() -> None:
    for names in (CHOSEN, CONFIRMED):
        means = {hits: mean_recall(results_of("passages"), f"behind {hits}, hits", names) for hits in (10, FETCH_K)}
        assert all(many > few for few, many in zip(means[10], means[FETCH_K], strict=True))


def lines_of(name: str) -> list[list[str]]:
    lines = (ROOT / "docs" / "evidence" / "data" / f"{name}.csv").read_text(encoding="utf-8").splitlines()
    return [line.split(",") for line in lines[1:]]


def rows_of(page: str) -> list[str]:
    return re.findall(r"(?m)^\|.*\|$", (ROOT / "docs" / page).read_text(encoding="utf-8"))


def test_the_speeds_of_adapters_are_those_that_were_timed() -> None:
    timed = lines_of("adapter_speed")
    for (_, splitter, whole), (_, _, short) in zip(timed[:3], timed[3:], strict=True):
        assert any(row.endswith(f" {splitter} | {whole} × | {short} × |") for row in rows_of("evidence/benchmarks.md"))
    stated = f"[{float(timed[0][2]):.0f} times as fast, {float(timed[3][2]):.0f} on short documents]"
    assert any(stated in row for row in rows_of("guides/move_from.md"))


def test_the_runs_of_fuzzing_are_those_that_were_counted() -> None:
    runs = [
        f"| {kind} | {seed} | {int(texts):,} | {minutes} | {failures} |"
        for kind, seed, texts, minutes, failures in lines_of("fuzzing")
    ]
    assert rows_of("evidence/fuzzing.md")[2:] == runs
    assert sum(run.startswith("| generated ") and run.endswith(" 0 |") for run in runs) >= 3


def test_the_numbers_of_faults_are_those_that_were_tried() -> None:
    tried: Counter[str] = Counter({"hostile files": len(FAMILIES)})
    for fault, _, number in lines_of("faults"):
        tried[fault] += int(number)
    for fault, number in tried.items():
        (row,) = (row for row in rows_of("evidence/faults.md") if row.startswith(f"| {fault.split(':')[0]}: "))
        assert f"{number:,}" in row.split(" | ")[1]


def test_the_shares_of_wrong_advice_are_those_of_the_simulation() -> None:
    shares = [row.split(" | ")[1:] for row in rows_of("guides/tuning.md")[-3:]]
    assert [share.rstrip("% |") for row in shares for share in row] == [line[-1] for line in lines_of("tuning")]


def test_other_numbers_of_readme_are_sizes_and_names() -> None:
    """A figure that is new here needs its result file above; sizes of extras are those of their table."""
    prose = re.sub(r"(?ms)^```.*?^```|^\|.*?$|^    .*?$|\]\([^)]*\)|`[^`]*`", "", README)
    numbers = set(re.findall(r"\d[\d,.]*\d|\d", prose))
    sizes = {size for row in rows_of("reference/install.md") for size in re.findall(r"\d[\d,]*(?= \|$)", row)}
    assert numbers <= sizes | {"100", "250", "500", "1,000", "95", "300,000", "6", "2", "1,024", "3.10", "3.13", "2.0"}


@pytest.mark.parametrize(
    ("page", "files"),
    [
        ("evidence/retrievers.md", ["retrievers"]),
        ("evidence/chunkers.md", ["chunkers"]),
        ("evidence/statistics.md", ["statistics_pairs"]),
        ("evidence/chroma_report.md", ["chroma_report", "chroma_report_tokens"]),
        ("evidence/benchmarks.md", ["chunking_speed"]),
        ("reference/alignment.md", ["alignment"]),
    ],
)
def test_the_first_numbers_of_a_page_stand_in_its_result_files(page: str, files: list[str]) -> None:
    """In the first table with decimals; what is above it names no other figure."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    tables = re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
    (table, *_) = (table for table in tables if len(re.findall(r"\d\.\d", table)) > 3)
    results = " ".join((ROOT / "docs/evidence/data" / f"{name}.csv").read_text(encoding="utf-8") for name in files)
    assert set(re.findall(r"\d+\.\d+", table)) - set(re.findall(r"\d+\.\d+", results)) == set()
