#!/usr/bin/env bash
# Guess: a list of chunks, some of which have a page or a heading, becomes a table with all keys, empty where a chunk
#        lacks one.
# Seen: pyarrow 26.0.1, datasets 5.2.0 and lancedb 0.40.0 take the keys of the first row, polars 2.1.0 those of the
#       first 100; keys that come later are gone, with their values, and nothing is said.
# Why it matters: a title page has no heading, so no chunk has one; filters by it find nothing.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet pyarrow==26.0.1 datasets==5.2.0 lancedb==0.40.0 polars==2.1.0
venv/bin/python -W ignore - <<'PYTHON'
from importlib.metadata import version

import lancedb
import polars
import pyarrow
from datasets import Dataset

first = {"text": "Title", "vector": [1.0, 0.0]}
later = {"text": "The fee is due in May.", "vector": [0.0, 1.0], "heading": "Fees"}
tables = {
    "pyarrow": pyarrow.Table.from_pylist([first, later]).column_names,
    "datasets": Dataset.from_list([first, later]).column_names,
    "lancedb": lancedb.connect("store").create_table("chunks", [first, later]).schema.names,
    "polars": polars.from_dicts([first] * 100 + [later]).columns,
}
seen = {name: "heading" in columns for name, columns in tables.items()}
print({name: version(name) for name in tables}, "have a heading:", seen)
assert not any(seen.values()), "changed"
assert "heading" in pyarrow.Table.from_pylist([later, first]).column_names, "changed"
assert "heading" in polars.from_dicts([first] * 99 + [later]).columns, "changed"
PYTHON
