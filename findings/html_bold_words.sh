#!/usr/bin/env bash
# Guess: splitters of HTML by its headings keep the words of a sentence in their order.
# Seen: langchain-text-splitters 1.1.3 puts words in bold after their paragraph (HTMLHeaderTextSplitter) or before
#       it (HTMLSemanticPreservingSplitter); llama-index-core 0.14.25's HTMLNodeParser makes them a node of their own.
# Why it matters: 'The pump is <b>not</b> safe' is embedded, and shown to the model, as 'The pump is safe'.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet langchain-text-splitters==1.1.3 llama-index-core==0.14.25 beautifulsoup4==4.15.0 lxml==6.1.3
venv/bin/python -W ignore - <<'PYTHON'
from importlib.metadata import version

from langchain_text_splitters import HTMLHeaderTextSplitter, HTMLSemanticPreservingSplitter
from llama_index.core import Document
from llama_index.core.node_parser import HTMLNodeParser

page = "<html><body><h1>Use</h1><p>The pump is <b>not</b> safe.</p></body></html>"
headings = [("h1", "title")]
nodes = HTMLNodeParser().get_nodes_from_documents([Document(text=page)])
seen = {
    "headers": [chunk.page_content.split() for chunk in HTMLHeaderTextSplitter(headings).split_text(page)][-1],
    "preserving": [chunk.page_content.split() for chunk in HTMLSemanticPreservingSplitter(headings).split_text(page)][-1],
    "nodes": [" ".join(node.text.split()) for node in nodes],
}
print({name: version(name) for name in ("langchain-text-splitters", "llama-index-core")}, seen)
assert seen == {
    "headers": ["The", "pump", "is", "safe.", "not"],
    "preserving": ["not", "The", "pump", "is", "safe."],
    "nodes": ["Use", "The pump is safe.", "not"],
}, "changed"
PYTHON
