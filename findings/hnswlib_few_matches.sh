#!/usr/bin/env bash
# Guess: where fewer vectors than k pass the filter, hnswlib returns the fewer ones.
# Seen: 0.8.0 raises RuntimeError and speaks of ef and M; no result comes back.
# Why it matters: a tenant with three chunks ends a search for ten, and the message sends one to the wrong
#                 setting.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet hnswlib==0.8.0 numpy==2.4.6
venv/bin/python - <<'PYTHON'
import hnswlib
import numpy as np

index = hnswlib.Index("l2", 8)
index.init_index(1000)
vectors = np.random.default_rng(0).normal(size=(1000, 8))
index.add_items(vectors)
try:
    seen = index.knn_query(vectors[:1], k=10, filter=lambda number: number < 3)[0].tolist()
except RuntimeError as error:
    seen = str(error)
print("hnswlib 0.8.0", seen)
assert "ef or M is too small" in seen, "changed"
PYTHON
