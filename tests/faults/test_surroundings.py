"""Locale, time zone, the encodings that are set, and a clock that goes backwards: the same bytes come out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults.places import ROOT

PROGRAM = """
import itertools, locale, sys, time
from pathlib import Path

if sys.argv[1] == "backwards":  # from 2100 to 1970, a day at each look
    days = itertools.count(130 * 365, -1)
    time.time = lambda: 86_400.0 * next(days)
    time.time_ns = lambda: int(1e9 * time.time())
try:
    locale.setlocale(locale.LC_ALL, "")  # as a program may do that the package is used in
except locale.Error:
    pass

import chunkcore.models.loading
from chunkcore.cli import main
from tests.fakes import FakeEmbedder

chunkcore.models.get_embedder = chunkcore.models.loading.get_embedder = lambda name: FakeEmbedder()
out = sys.argv[2]
chunk = ["chunk", "docs", "-s", "recursive:size=20", "-o", f"{out}/chunks.jsonl"]
compare = "compare docs --questions questions.jsonl -r dense -s recursive:size=20 -s sentence".split()
sys.exit(main(chunk) or main([*compare, "-k", "3", "--cache", f"{out}/cache.sqlite", "--resamples", "100", "-o", out]))
"""

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
SURROUNDINGS = {
    "ascii": (ASCII | {"TZ": "America/Adak"}, "as it is"),
    "turkish, a clock that goes backwards": (
        {"LC_ALL": "tr_TR.UTF-8", "TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "1"},
        "backwards",
    ),
}


def outcome(folder: Path, name: str, settings: dict[str, str], clock: str) -> dict[str, Any]:
    """What the two commands write, but for the seconds that they took and the day."""
    usual = {key: value for key, value in os.environ.items() if not key.startswith(("LC_", "LANG", "PYTHON", "TZ"))}
    environment = {**usual, "PYTHONSAFEPATH": "1", "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", **settings}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, clock, name], cwd=folder, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    reports = json.loads((folder / name / "report.json").read_bytes())["reports"]
    assert all(seconds >= 0 for report in reports for seconds in report["seconds"].values())
    timeless = [{key: value for key, value in report.items() if key not in ("seconds", "cost")} for report in reports]
    files = ("chunks.jsonl", "questions.csv")
    return {"reports": timeless} | {each: (folder / name / each).read_bytes() for each in files}


@pytest.mark.skipif(sys.platform != "linux", reason="names of files and locales are others elsewhere")
def test_neither_locale_nor_time_zone_nor_encodings_nor_the_clock_change_a_byte(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for name, text in {
        "İstanbul.txt": "Iğdır'da İSTANBUL ile ISPARTA. ",
        "犬.md": "# Über\n\n犬が走る。Größe 1,5 — naïve café. ",
        "z.txt": "The fox naps. ",
    }.items():
        (docs / name).write_text(text * 20, "utf-8")
    (docs / os.fsdecode(b"caf\xe9.txt")).write_text("A name that is no UTF-8.")
    questions = [("Größe?", "# Über", "犬.md"), ("Nap?", "A name that is no", "caf\udce9.txt")]
    rows = [{"question": q, "evidence": [{"text": text, "document": name}]} for q, text, name in questions]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    usual = outcome(tmp_path, "usual", {"LC_ALL": "C.UTF-8"}, "as it is")
    assert "İstanbul.txt".encode() in usual["chunks.jsonl"]
    for name, (settings, clock) in SURROUNDINGS.items():
        assert outcome(tmp_path, name, settings, clock) == usual, name
