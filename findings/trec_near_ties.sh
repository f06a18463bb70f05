#!/usr/bin/env bash
# Guess: measures of trec_eval score a ranking in the order of its scores, and RR and RR@10 of three hits are equal.
# Seen: pytrec_eval-terrier 0.5.11 keeps 7 digits of a score and orders equal ones by id, last first: the hit at
#       0.99999999 comes after the one at 0.99999998. ir-measures 0.4.3 takes RR from there, RR@10 from elsewhere.
# Why it matters: rerankers' probabilities near 1, and hits without scores, are measured in an order that nobody
#                 ranked them in.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet pytrec-eval-terrier==0.5.11 ir-measures==0.4.3
venv/bin/python - <<'PYTHON'
from importlib.metadata import version

import ir_measures
import pytrec_eval
from ir_measures import RR

evidence = {"question": {"a": 1}}
ranking = {"question": {"a": 0.99999999, "b": 0.99999998, "c": 0.5}}
evaluator = pytrec_eval.RelevanceEvaluator(evidence, {"recip_rank"})
rank = evaluator.evaluate(ranking)["question"]["recip_rank"]
both = ir_measures.calc_aggregate([RR, RR @ 10], evidence, ranking)
seen = [rank, both[RR], both[RR @ 10]]
print({name: version(name) for name in ("pytrec-eval-terrier", "ir-measures")}, "recip_rank, RR, RR@10:", seen)
assert seen == [0.5, 0.5, 1.0], "changed"
PYTHON
