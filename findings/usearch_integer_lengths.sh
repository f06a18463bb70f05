#!/usr/bin/env bash
# Guess: usearch with vectors as 8-bit integers ranks about as with floats, by inner product and by distance, too.
# Seen: 2.26.6 scales each vector to length 1 before it stores it, for every metric: exact search by inner product or
#       distance ranks as by cosine, and recall at 10 falls from 1.0 to under 0.7; by cosine it stays over 0.9.
# Why it matters: models trained for the dot product say by a vector's length how much a text is worth.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet usearch==2.26.6 numpy==2.4.6
venv/bin/python - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from usearch.index import Index

random = np.random.default_rng(0)
vectors = random.normal(size=(2000, 32)).astype(np.float32)
questions = random.normal(size=(50, 32)).astype(np.float32)
lengths = np.linalg.norm(vectors, axis=1)
products = questions @ vectors.T
nearness = {"ip": products, "l2sq": 2 * products - lengths**2, "cos": products / lengths}


def recall(metric, dtype):
    index = Index(ndim=32, metric=metric, dtype=dtype)
    index.add(np.arange(len(vectors)), vectors)
    found = index.search(questions, 10, exact=True).keys
    nearest = np.argsort(-nearness[metric], axis=1)[:, :10]
    return float(np.mean([len(set(hits) & set(best)) / 10 for hits, best in zip(found, nearest, strict=True)]))


seen = {metric: {dtype: recall(metric, dtype) for dtype in ("f32", "i8")} for metric in nearness}
index = Index(ndim=2, metric="ip", dtype="i8")
index.add(np.array([1, 2]), np.array([[3, 4], [0.3, 0.4]], dtype=np.float32))
stored = [index.get(1).tolist(), index.get(2).tolist()]
print({"usearch": version("usearch")}, "recall at 10:", seen, "3, 4 and 0.3, 0.4 are stored as:", stored)
assert stored[0] == stored[1], "changed"
assert all(recalls["f32"] > 0.99 for recalls in seen.values()), "changed"
assert seen["ip"]["i8"] < 0.7 and seen["l2sq"]["i8"] < 0.7 and seen["cos"]["i8"] > 0.9, "changed"
PYTHON
