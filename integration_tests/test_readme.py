"""What the README shows runs as it stands there."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**/*.md")


def test_the_readme_s_example_answers_its_question(tmp_path, monkeypatch, capsys):
    pytest.importorskip("langchain_core")
    monkeypatch.chdir(tmp_path)
    (program,) = PROGRAMS
    Path("program.py").write_text(program, encoding="utf-8")
    runpy.run_path("program.py", run_name="__main__")
    answer, bare, behind = capsys.readouterr().out.strip().rsplit("\n", 2)
    assert "How often should the wiper run?\n\nSix hours suit most lakes." in answer
    assert 0 <= float(bare) < float(behind) <= 1


def test_the_readme_is_short_and_begins_with_an_example() -> None:
    assert len(README.split()) <= 700
    assert "```python" in README.splitlines()[:25]


def test_every_link_of_the_pages_leads_somewhere() -> None:
    for page in sorted(path for pattern in PAGES for path in ROOT.glob(pattern)):
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
            assert target.startswith("https://") or (page.parent / target).exists(), f"{page.name}: {target}"


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"(?m)^#+ (.+)$", re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_anchor_of_the_links_is_a_heading() -> None:
    for page in sorted(path for pattern in PAGES for path in ROOT.glob(pattern)):
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", page.read_text(encoding="utf-8")):
            if not target.startswith("https://"):
                assert anchor in anchors(page.parent / target if target else page), f"{page.name}: {target}#{anchor}"
