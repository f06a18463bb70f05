#!/usr/bin/env bash
# Guess: every sentence of sentencex has a word in it.
# Seen: 1.0.32 gives the blank lines between two paragraphs as a sentence of white space; joined, the sentences
#       are the text.
# Why it matters: sizes and overlaps counted in sentences are off by the blank ones.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet sentencex==1.0.32
venv/bin/python - <<'PYTHON'
from sentencex import segment

text = "Dr. Smith came. He left.\n\n\nThe next day he came back."
seen = list(segment("en", text))
print("sentencex 1.0.32", seen)
assert "".join(seen) == text, "changed"
assert [sentence.strip() for sentence in seen].count("") == 1, "changed"
PYTHON
