#!/usr/bin/env bash
# Guess: a splitter of Markdown by headings keeps the lines between them as they are.
# Seen: langchain-text-splitters 1.1.3's MarkdownHeaderTextSplitter strips every line, in fenced code and nested lists
#       too.
# Why it matters: Python code in documentation reaches the prompt without indentation, so it means something else.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet langchain-text-splitters==1.1.3
venv/bin/python - <<'PYTHON'
from importlib.metadata import version

from langchain_text_splitters import MarkdownHeaderTextSplitter

page = "# Use\n\n```python\nfor pump in pumps:\n    stop(pump)\nreport()\n```\n\n- valves\n  - red ones\n"
(chunk,) = MarkdownHeaderTextSplitter([("#", "title")]).split_text(page)
seen = [line.rstrip() for line in chunk.page_content.split("\n")]
print("langchain-text-splitters", version("langchain-text-splitters"), seen)
assert seen == ["```python", "for pump in pumps:", "stop(pump)", "report()", "```", "- valves", "- red ones"], "changed"
PYTHON
