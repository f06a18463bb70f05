#!/usr/bin/env bash
# Guess: Haystack's DocumentSplitter by words splits wherever white space is, and by passages also after
#        DocumentCleaner, which stands before it in most pipelines.
# Seen: haystack-ai 3.4.1 splits words at spaces only: a list of 1,000 lines is one word, and one chunk of a split
#       of 10; the cleaner's defaults make every blank line a space, so three paragraphs are one passage.
# Why it matters: chunks far over what an embedder reads are cut by it, and the rest is never found.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet haystack-ai==3.4.1
HAYSTACK_TELEMETRY_ENABLED=False venv/bin/python - <<'PYTHON'
from importlib.metadata import version

from haystack import Document
from haystack.components.preprocessors import DocumentCleaner, DocumentSplitter

lines = [Document(content="\n".join(f"article-{number}" for number in range(1000)))]
words = DocumentSplitter(split_by="word", split_length=10).run(lines)["documents"]
passages = DocumentSplitter(split_by="passage", split_length=1)
page = [Document(content="Tea is hot.\n\nCoffee is long.\n\nWater is cold.")]
cleaned = DocumentCleaner().run(page)["documents"]
seen = [len(words), len(passages.run(page)["documents"]), len(passages.run(cleaned)["documents"])]
print("haystack-ai", version("haystack-ai"), "chunks: words, passages, passages after cleaning:", seen)
assert seen == [1, 3, 1], "changed"
PYTHON
