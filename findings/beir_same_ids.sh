#!/usr/bin/env bash
# Guess: BEIR's evaluation lets document '1' answer question '1', and counts a question without hits as 0.
# Seen: beir 2.2.0 takes a hit whose id is the question's out of the results, for good; a question that is not in
#       the results counts in no mean.
# Why it matters: of a folder whose questions and documents are numbered, right answers count as wrong; a retriever
#                 that finds nothing for the hard questions is the best.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet pytrec-eval-terrier==0.5.11 tqdm==4.67.1 requests==2.32.5
venv/bin/pip install --quiet --no-deps beir==2.2.0
venv/bin/python - <<'PYTHON'
from importlib.metadata import version

from beir.retrieval.evaluation import EvaluateRetrieval

evidence = {"1": {"1": 1}, "2": {"7": 1}, "3": {"9": 1}}


def recall(results):
    return EvaluateRetrieval.evaluate(evidence, results, [10])[2]["Recall@10"]


results = {"1": {"1": 0.9, "5": 0.3}, "2": {"7": 0.8}}
seen = [recall(results), results["1"], recall({"2": {"7": 0.8}})]
print("beir", version("beir"), seen)
assert seen == [0.5, {"5": 0.3}, 1.0], "changed"
PYTHON
