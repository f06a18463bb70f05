#!/usr/bin/env bash
# Guess: what is a string in JSON stays one, so an id such as "2024-01-05" is itself after loading.
# Seen: pyarrow 26.0.1, datasets 5.2.0 (load_dataset("json")) and duckdb 2.0.1 make dates of a column whose strings
#       all look like dates, duckdb times of "12:30"; polars 2.1.0 keeps the strings.
# Why it matters: documents that are named by their day have other ids than the evidence says: every score is 0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet pyarrow==26.0.1 datasets==5.2.0 duckdb==2.0.1 polars==2.1.0
HF_HUB_OFFLINE=1 venv/bin/python -W ignore - <<'PYTHON'
import json
from importlib.metadata import version
from pathlib import Path

import duckdb
import polars
import pyarrow.json
from datasets import load_dataset

records = [{"id": "2024-01-05", "text": "12:30"}, {"id": "2024-01-06", "text": "13:40"}]
Path("documents.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
rows = {
    "pyarrow": pyarrow.json.read_json("documents.jsonl").to_pylist(),
    "datasets": load_dataset("json", data_files="documents.jsonl", split="train", cache_dir="cache").to_list(),
    "duckdb": duckdb.sql("SELECT * FROM read_json('documents.jsonl')").to_arrow_table().to_pylist(),
    "polars": polars.read_ndjson("documents.jsonl").to_dicts(),
}
seen = {name: {key: type(value).__name__ for key, value in table[0].items()} for name, table in rows.items()}
print({name: version(name) for name in seen}, "types:", seen)
assert seen == {
    "pyarrow": {"id": "datetime", "text": "str"},
    "datasets": {"id": "datetime", "text": "str"},
    "duckdb": {"id": "date", "text": "time"},
    "polars": {"id": "str", "text": "str"},
}, "changed"
PYTHON
