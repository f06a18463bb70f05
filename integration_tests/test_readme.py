"""What the README shows runs as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("title", "program"), BLOCKS, ids=[title for title, _ in BLOCKS])
def test_the_readme_s_examples_run(title: str, program: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        cwd=tmp_path,
        encoding="utf-8",
        env=os.environ | {"HAYSTACK_TELEMETRY_ENABLED": "False", "PYTHONIOENCODING": "utf-8"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    last = done.stdout.strip().splitlines()[-1]
    if "evaluate_retriever" in program:
        assert all(0 <= float(score) <= 1 for score in last.split()), last
    else:
        assert last.endswith("まだ閉まっていない。"), last


def test_each_framework_has_an_example() -> None:
    for framework in ("LangChain", "LlamaIndex", "Haystack"):
        assert sum(framework in title for title, _ in BLOCKS) == 1


def test_every_link_of_the_pages_leads_somewhere() -> None:
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert target.startswith("https://") or (page.parent / target).exists(), f"{page.name}: {target}"
