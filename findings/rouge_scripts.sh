#!/usr/bin/env bash
# Guess: the ROUGE of an answer against the same answer is 1.
# Seen: rouge-score 0.1.2 keeps Latin letters and digits alone: an answer in Chinese or Russian scores 0 against itself,
#       and only its numbers count where it has some, so that two opposite answers with one number score 1.
# Why it matters: answers in other scripts are measured by the years and amounts in them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet rouge-score==0.1.2
venv/bin/python - <<'PYTHON'
from importlib.metadata import version

from rouge_score.rouge_scorer import RougeScorer

score = RougeScorer(["rougeL"]).score
pairs = [
    ("泵在早上启动。", "泵在早上启动。"),
    ("Насос включают утром.", "Насос включают утром."),
    ("Насос включают в 7 утра.", "В 7 вечера его выключают."),
    ("Die Größe", "Die Größe"),
]
seen = [float(score(*pair)["rougeL"].fmeasure) for pair in pairs]
print("rouge-score", version("rouge-score"), seen)
assert seen == [0.0, 0.0, 1.0, 1.0], "changed"
PYTHON
