#!/usr/bin/env bash
# Guess: where hits are chunks, and what is expected are documents, average precision and nDCG are at most 1.
# Seen: llama-index-core 0.14.25 counts an expected id again in each hit that has it: four chunks of one of two expected
#       documents have an average precision of 2.0, nDCG of 1.57 and a precision of 1.0; a recall of 0.5.
# Why it matters: a retriever that repeats one document looks better than one that finds both.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet llama-index-core==0.14.25
venv/bin/python - <<'PYTHON'
from importlib.metadata import version

from llama_index.core.evaluation.retrieval import metrics

seen = {}
for metric in (metrics.AveragePrecision, metrics.NDCG, metrics.Precision, metrics.Recall):
    hits = {"repeated": ["a", "a", "a", "a"], "both": ["a", "c", "b", "d"]}
    seen[metric.__name__] = {
        name: round(metric().compute(expected_ids=["a", "b"], retrieved_ids=ids).score, 2) for name, ids in hits.items()
    }
print("llama-index-core", version("llama-index-core"), seen)
assert seen == {
    "AveragePrecision": {"repeated": 2.0, "both": 0.83},
    "NDCG": {"repeated": 1.57, "both": 0.92},
    "Precision": {"repeated": 1.0, "both": 0.5},
    "Recall": {"repeated": 0.5, "both": 1.0},
}, "changed"
PYTHON
