"""How large the report's page is, and how long it takes to write it, to open it and to look at a question.

python -m integration_tests.benchmarks.report_size                       # 1,000 questions, 12 strategies
python -m integration_tests.benchmarks.report_size --characters 1000000  # of each of 60 documents
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from chunkcore.report import html_report
from integration_tests.browser import CHROMIUM, Browser, browser
from tests.report_data import large

SEARCH = "document.getElementById('search').focus()"
ONE_LEFT = "document.querySelectorAll('#list > li').length === 1"
OPEN = "document.querySelector('#list summary').click()"
BUTTON = "document.querySelector('#list button.small')"
MARKED = "document.querySelector('#v-rows mark')"
SHOWN = "document.querySelector('.switches input[value=\"5\"]')"


def main() -> None:
    """Print one line a step."""
    options = argparse.ArgumentParser()
    options.add_argument("--questions", type=int, default=1000)
    options.add_argument("--strategies", type=int, default=12)
    options.add_argument("--characters", type=int, default=60_000)
    given = options.parse_args()
    made = large(questions=given.questions, systems=given.strategies, size=given.characters)
    began = time.perf_counter()
    source = html_report(made)
    print(f"{time.perf_counter() - began:6.1f} s  written")
    print(f"{len(source.encode()) / 1e6:6.1f} MB written")
    if CHROMIUM.exists():
        with tempfile.TemporaryDirectory() as folder, browser() as tab:
            page = Path(folder) / "report.html"
            page.write_text(source, "utf-8")
            look(tab, page, given.questions // 2)


def look(tab: Browser, page: Path, number: int) -> None:
    """Open the page, filter for one question, and show its first evidence."""
    tab.size(1280, 900)
    clock = time.perf_counter()
    tab.open(page)
    tab.wait(SHOWN)
    print(f"{time.perf_counter() - clock:6.1f} s  opened")
    tab.ask(SEARCH)
    clock = time.perf_counter()
    tab.write(f"question {number}:")
    tab.wait(ONE_LEFT)
    print(f"{time.perf_counter() - clock:6.1f} s  filtered, of which 0.1 s waits for the next key")
    tab.ask(OPEN)
    tab.wait(BUTTON)
    clock = time.perf_counter()
    tab.ask(f"{BUTTON}.click()")
    tab.wait(MARKED)
    print(f"{time.perf_counter() - clock:6.1f} s  the question's document, chunks and evidence shown")
    assert not tab.errors, tab.errors


if __name__ == "__main__":
    main()
