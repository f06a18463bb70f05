#!/usr/bin/env bash
# Guess: ragas' measures without a language model count a passage that has the reference in it as found, and a
#        passage that says something else as not found.
# Seen: 0.4.3: a passage of two sentences, one of which is the reference, has recall and precision 0; 'ten days'
#       instead of 'two years' has 1.
# Why it matters: larger chunks score 0 whatever they contain, and wrong evidence scores as right: edit distance
#                 to the whole passage decides.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet ragas==0.4.3 langchain-community==0.3.31 rapidfuzz==3.14.6
venv/bin/python -W ignore - <<'PYTHON'
from importlib.metadata import version

from ragas import SingleTurnSample
from ragas.metrics import NonLLMContextPrecisionWithReference, NonLLMContextRecall

reference = "The warranty of the pump lasts two years."
passages = {
    "the reference": reference,
    "with a neighbour": reference + " The pump is red and stands in the cellar beside the boiler, which is old.",
    "wrong": "The warranty of the pump lasts ten days.",
}
seen = {}
for name, passage in passages.items():
    sample = SingleTurnSample(retrieved_contexts=[passage], reference_contexts=[reference])
    measures = (NonLLMContextRecall(), NonLLMContextPrecisionWithReference())
    seen[name] = [round(measure.single_turn_score(sample), 3) for measure in measures]
print("ragas", version("ragas"), seen)
assert seen == {"the reference": [1, 1], "with a neighbour": [0, 0], "wrong": [1, 1]}, "changed"
PYTHON
