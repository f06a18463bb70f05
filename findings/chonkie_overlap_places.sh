#!/usr/bin/env bash
# Guess: chonkie's OverlapRefinery, which adds text of the neighbour to a chunk, moves the chunk's places with
#        it, and the size still holds.
# Seen: 1.7.0 leaves start_index and end_index as they were: text[start_index:end_index] is not the chunk;
#       chunks are over the size that was asked for.
# Why it matters: evidence is looked up by these places, so what the overlap added is credited to nobody.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet chonkie==1.7.0
venv/bin/python - <<'PYTHON'
from importlib.metadata import version

from chonkie import OverlapRefinery, SentenceChunker

text = "One is here now. Two is here now. Three is here now. Four is here now. Five is it."
chunks = SentenceChunker(tokenizer="character", chunk_size=30, chunk_overlap=0)(text)
refined = OverlapRefinery(tokenizer="character", context_size=5, method="prefix", merge=True)(chunks)
seen = [(text[chunk.start_index : chunk.end_index] == chunk.text, len(chunk.text)) for chunk in refined]
print("chonkie", version("chonkie"), seen)
assert seen == [(True, 17), (False, 22), (False, 24), (False, 34)], "changed"
PYTHON
