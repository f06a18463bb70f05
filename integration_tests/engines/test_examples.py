"""The programs that the page on Arrow shows run as they stand there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.mark.parametrize(
    ("engine", "package", "told"),
    [
        ("duckdb", "duckdb", "[(307, 0)]"),
        ("daft", "daft", "307 chunks"),
        ("ray", "ray", "307 chunks, 0 documents that could not be cut"),
        ("spark", "pyspark", "307 chunks, 0 documents that could not be cut"),
    ],
)
def test_an_example_runs(engine: str, package: str, told: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow (the extra arrow) is not installed")
    pytest.importorskip(package, reason=f"{package} is not installed: make test-engines")
    if engine == "spark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not installed")
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{engine}_example.py"],
        capture_output=True,
        cwd=tmp_path,
        encoding="utf-8",
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYTHONIOENCODING": "utf-8"},
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().splitlines()[-1].endswith(told)
