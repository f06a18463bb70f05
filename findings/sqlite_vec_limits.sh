#!/usr/bin/env bash
# Guess: sqlite-vec takes any k, and a metadata column that is empty for some chunks.
# Seen: 0.1.9 refuses k over 4,096, and refuses NULL in a metadata column.
# Why it matters: pages and headings exist for some chunks only, and a wide list of candidates can be longer
#                 than 4,096.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet sqlite-vec==0.1.9 apsw==3.54.1.0
venv/bin/python - <<'PYTHON'
import struct

import apsw
import sqlite_vec

database = apsw.Connection(":memory:")
database.enable_load_extension(True)
database.load_extension(sqlite_vec.loadable_path())
database.execute("create virtual table chunks using vec0(vector float[2], page text)")
vector = struct.pack("2f", 1, 0)


def refused(statement, values):
    try:
        database.execute(statement, values).fetchall()
    except apsw.Error as error:
        return str(error)
    return ""


seen = [
    refused("insert into chunks(rowid, vector, page) values (1, ?, ?)", (vector, None)),
    refused("select rowid from chunks where vector match ? and k = 5000", (vector,)),
]
print("sqlite-vec 0.1.9", seen)
assert "NULL" in seen[0], "changed"
assert "4096" in seen[1], "changed"
PYTHON
