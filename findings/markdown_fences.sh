#!/usr/bin/env bash
# Guess: splitters by Markdown's headings take no comment in a block of code for a heading.
# Seen: llama-index-core 0.14.25's MarkdownNodeParser knows no fence of "~~~"; langchain-text-splitters 1.1.3's
#       MarkdownHeaderTextSplitter ends a fence of four backticks at the three inside. "# make" is a heading to both.
# Why it matters: a script is torn, and all that follows has its comment as the title of its section.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet langchain-text-splitters==1.1.3 llama-index-core==0.14.25
venv/bin/python -W ignore - <<'PYTHON'
from importlib.metadata import version

from langchain_text_splitters import MarkdownHeaderTextSplitter
from llama_index.core import Document
from llama_index.core.node_parser import MarkdownNodeParser

tildes = "# Build\n\n~~~sh\n# make\n~~~\n\nThen test.\n"
backticks = "# Build\n\n````md\n```\n# make\n```\n````\n\nThen test.\n"
nodes = MarkdownNodeParser().get_nodes_from_documents([Document(text=tildes)])
chunks = MarkdownHeaderTextSplitter([("#", "title")]).split_text(backticks)
seen = [[node.text for node in nodes], [chunk.metadata["title"] for chunk in chunks]]
print({name: version(name) for name in ("langchain-text-splitters", "llama-index-core")}, seen)
assert seen == [["# Build\n\n~~~sh", "# make\n~~~\n\nThen test."], ["Build", "make"]], "changed"
PYTHON
