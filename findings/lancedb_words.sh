#!/usr/bin/env bash
# Guess: lancedb's full-text index keeps every word as it is written, in any script.
# Seen: 0.40.0 drops English stop words, stems, and takes a run of Chinese as one word: 'not', 'to be or not to
#       be' and the word for Tokyo find nothing.
# Why it matters: hybrid search over it misses Chinese and Japanese altogether, and questions on a negation.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet lancedb==0.40.0
venv/bin/python - <<'PYTHON'
import lancedb

rows = [
    {"id": "en", "text": "to be or not to be, the pumps are running"},
    {"id": "zh", "text": "\u4e1c\u4eac\u5854\u5f88\u9ad8"},
]
table = lancedb.connect("lance").create_table("t", rows)
table.create_fts_index("text")
questions = ["run", "not", "\u4e1c\u4eac", "\u4e1c\u4eac\u5854\u5f88\u9ad8"]
seen = [[hit["id"] for hit in table.search(question, query_type="fts").to_list()] for question in questions]
print("lancedb", lancedb.__version__, seen)
assert seen == [["en"], [], [], ["zh"]], "changed"
PYTHON
