"""A real browser opens the report of hostile data, and only the report's own script runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from chunkcore.evaluation.benchmark import Problem
from chunkcore.evaluation.comparison import compare
from chunkcore.evaluation.results import ChunkStatistics
from chunkcore.report import Study, html_report
from tests.report_data import NASTY, study

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason="Debian's chromium is not installed")


class Dom(HTMLParser):
    """What the page had become when its script was done."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.title = self.count = ""
        self.questions: list[str] = []
        self.tags: list[str] = []
        self.open_views = 0
        self._in = ""
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append(tag)
        self._in = "title" if tag == "title" else ""
        if given.get("id") == "count":
            self._in = "count"
        if given.get("class") == "text" and tag == "span":
            self._in = "question"
            self.questions.append("")
        self.open_views += given.get("class") == "view" and "hidden" not in given

    def handle_endtag(self, tag):
        self._in = ""

    def handle_data(self, data):
        if self._in == "title":
            self.title += data
        elif self._in == "count":
            self.count += data
        elif self._in == "question":
            self.questions[-1] += data


def rendered(source: str, folder: Path, *more: str) -> Dom:
    page = folder / "report.html"
    page.write_text(source, "utf-8")
    command = [str(CHROMIUM), *FLAGS, *more, f"--user-data-dir={folder / 'profile'}", "--dump-dom", page.as_uri()]
    # No proxy and no home: the page and the browser have nothing to reach for.
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(folder)}
    done = subprocess.run(command, capture_output=True, timeout=120, check=True, env=environment)
    shutil.rmtree(folder / "profile", ignore_errors=True)
    return Dom(done.stdout.decode("utf-8"))


@pytest.fixture(scope="module")
def nasty():
    return study(
        names=NASTY,
        texts=NASTY,
        collections=NASTY[:3],
        excerpt="".join(NASTY),
        problems=tuple(Problem(text, text) for text in NASTY),
    )


def test_no_script_from_the_data_runs_and_the_questions_are_shown_as_text(nasty, tmp_path):
    dom = rendered(html_report(nasty), tmp_path)
    assert dom.title.startswith("Chunking strategies on </script><script>document.title='pwned'")
    assert "pwned" not in dom.title.split("=")[0]
    assert dom.tags.count("script") == 2
    assert "img" not in dom.tags
    assert dom.count == "20 of 20 questions shown."
    assert dom.questions[1] == f"{NASTY[1]} (1)"
    assert dom.questions[0] == f"{NASTY[0]} (0)"


def test_a_script_that_got_past_the_escaping_would_still_be_stopped(nasty, tmp_path):
    smuggled = "<script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">"
    source = html_report(nasty).replace("<main>", f"<main>{smuggled}", 1)
    assert not rendered(source, tmp_path).title.startswith("pwned")


def test_thousands_of_questions_are_listed_a_page_at_a_time(tmp_path):
    many = study(names=tuple(f"recursive:size={size}" for size in range(100, 1300, 100)), questions=3000)
    dom = rendered(html_report(many), tmp_path)
    assert dom.count == "30 of 3,000 questions shown."
    assert len(dom.questions) == 30
    assert dom.open_views == 2  # the table and the plot at the verdict's depth


# Tells by the title how many pixels of the page and of the widest table in sight lie out of sight.
MEASURE = """<script>document.title = [document.documentElement, ...document.querySelectorAll(".scroll")]
  .map((each) => each.scrollWidth - each.clientWidth).sort((a, b) => a - b).pop() + " px hidden"</script>"""


def test_on_a_laptops_screen_no_table_needs_scrolling_sideways(tmp_path):
    sizes = ("size=200", "size=400,overlap=200", "size=400")
    names = tuple(f"{name}:{size}" for name in ("recursive", "fixed_token", "cluster_semantic") for size in sizes)[:8]
    wide = study(names=names, questions=472)
    seconds = {"chunk": 1234.5, "embed": 12345.6, "search": 12.3}
    reports = [
        replace(
            report,
            seconds=seconds,
            chunks=ChunkStatistics(np.full(54_321, 345)),
            retrieved_tokens={k: 10 * tokens for k, tokens in report.retrieved_tokens.items()},
        )
        for report in wide.reports
    ]
    page = html_report(Study(compare(reports, resamples=200), wide.benchmark))
    # The policy would stop the measuring, too.
    page = re.sub(r"<meta http-equiv.*?>", "", page).replace("</body>", f"{MEASURE}</body>")
    assert rendered(page, tmp_path, "--window-size=1280,900").title.startswith("0 px hidden")
