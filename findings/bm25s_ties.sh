#!/usr/bin/env bash
# Guess: bm25s answers a question without a known word with its first documents, and a saved index answers as
#        the one in memory.
# Seen: 0.3.16 gives the last documents, last first, at score 0; a loaded index answers with dictionaries where
#       the one in memory gave the texts.
# Why it matters: the last documents of a collection become passages of unrelated questions, unless hits of
#                 score 0 are dropped.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet bm25s==0.3.16 numpy==2.4.6
venv/bin/python - <<'PYTHON'
import tempfile

import bm25s

texts = ["tea is hot", "ice is cold", "fog is damp", "sun is bright"]
index = bm25s.BM25(corpus=texts)
index.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)


def ask(retriever, question, k):
    tokens = bm25s.tokenize(question, show_progress=False)
    documents, scores = retriever.retrieve(tokens, k=k, show_progress=False)
    return documents[0].tolist(), [round(float(score), 3) for score in scores[0]]


folder = tempfile.mkdtemp()
index.save(folder)
seen = [
    ask(index, "zebra", 2),
    ask(index, "tea", 3)[0],
    ask(bm25s.BM25.load(folder, load_corpus=True), "tea", 1)[0],
]
print("bm25s", bm25s.__version__, seen)
assert seen == [
    (["sun is bright", "fog is damp"], [0.0, 0.0]),
    ["tea is hot", "sun is bright", "fog is damp"],
    [{"id": 0, "text": "tea is hot"}],
], "changed"
PYTHON
