"""Examples whose engine is not installed here are left alone; the tests that run them skip with the reason."""

from __future__ import annotations

from importlib.util import find_spec

ENGINES = {"daft": "daft", "duckdb": "duckdb", "ray": "ray", "spark": "pyspark"}
collect_ignore = [f"{name}_example.py" for name, package in ENGINES.items() if find_spec(package) is None]
