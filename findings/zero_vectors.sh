#!/usr/bin/env bash
# Guess: a vector of zeros has the cosine distance 1 everywhere, so its text is a late hit.
# Seen: lancedb 0.40.0 never returns the row; duckdb 2.0.1 gives NaN, which comes first where similarity is
#       sorted in descending order.
# Why it matters: an embedder that fails on an empty text gives zeros: its chunk is lost in one store and the
#                 first hit of every question in the other.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet lancedb==0.40.0 duckdb==2.0.1 numpy==2.4.6
venv/bin/python - <<'PYTHON'
import duckdb
import lancedb

rows = [("a", [1.0, 0.0]), ("b", [0.0, 1.0]), ("zero", [0.0, 0.0])]
question = [1.0, 0.2]
table = lancedb.connect("lance").create_table("t", [{"id": name, "vector": vector} for name, vector in rows])
hits = table.search(question).distance_type("cosine").limit(3).to_list()
lance = [hit["id"] for hit in hits]
database = duckdb.connect()
database.execute("create table t (id text, vector float[2])")
database.executemany("insert into t values (?, ?)", rows)
order = "select id from t order by array_cosine_similarity(vector, ?::float[2]) desc"
duck = [name for (name,) in database.execute(order, [question]).fetchall()]
print("lancedb", lancedb.__version__, lance, "duckdb", duckdb.__version__, duck)
assert (lance, duck) == (["a", "b"], ["zero", "a", "b"]), "changed"
PYTHON
