#!/usr/bin/env bash
# Guess: striprtf leaves out what a word processor hides and keeps footnotes.
# Seen: 0.0.35 shows hidden text as if it were written, and drops footnotes without a note.
# Why it matters: confidential remarks become evidence, and evidence in footnotes is lost.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet striprtf==0.0.35
venv/bin/python - <<'PYTHON'
from striprtf.striprtf import rtf_to_text

seen = rtf_to_text(r"{\rtf1\ansi The fee is due {\v (margin 40)} in May.{\footnote Not in leap years.}\par}")
print("striprtf 0.0.35", repr(seen))
assert "(margin 40)" in seen, "changed"
assert "leap" not in seen, "changed"
PYTHON
