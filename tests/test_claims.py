"""The figures of README are those of the result files that programs wrote."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
NAMES = {"lochmere": "lochmere", "Chroma report": "chroma", "COVID-QA": "covid_qa", "CUAD": "cuad", "QMSum": "qmsum"}
FRAMEWORKS = ("LangChain", "LlamaIndex", "Haystack")


def test_the_table_of_readme_is_that_of_the_stores() -> None:
    results = json.loads((ROOT / "docs/evidence/data/behind.json").read_text(encoding="utf-8"))
    rows = re.findall(r"^\| ([\w -]+) \((\d+)\) \| (.*) \|$", README, flags=re.MULTILINE)
    assert [NAMES[name] for name, _, _ in rows] == list(dict.fromkeys(result["collection"] for result in results))
    for name, questions, cells in rows:
        stated = [tuple(map(int, re.findall(r"\d+", cell))) for cell in cells.split(" | ")]
        for framework, scores, gain in zip(FRAMEWORKS, stated[::2], stated[1::2], strict=True):
            (result,) = (
                result
                for result in results
                if (result["collection"], result["hits"]) == (NAMES[name], 10)
                and result["store"] == f"{framework}, in memory"
            )
            budget = result["1000"]
            assert int(questions) == result["questions"]
            assert scores == (round(budget["bare"]), round(budget["behind"]))
            assert gain == tuple(map(round, budget["difference"]))


def test_other_numbers_of_readme_are_sizes_and_names() -> None:
    """A figure that is new here needs its result file above."""
    prose = re.sub(r"(?ms)^```.*?^```|^\|.*?$|^    .*?$|\]\([^)]*\)|`[^`]*`", "", README)
    numbers = set(re.findall(r"\d[\d,.]*\d|\d", prose))
    assert numbers <= {"1,000", "95", "300,000", "6", "2", "1,024", "3.10", "3.13", "2.0"}
