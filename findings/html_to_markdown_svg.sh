#!/usr/bin/env bash
# Guess: html-to-markdown leaves out a drawing, or gives its text.
# Seen: 3.21.2 writes an inline SVG as a picture in base64, which is longer than the drawing.
# Why it matters: icons and charts become hundreds of tokens that no question can find, in chunks of their own.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet html-to-markdown==3.21.2
venv/bin/python - <<'PYTHON'
from html_to_markdown import convert

seen = convert("<p>Load <svg><title>rising</title><path d='M0 0L9 9'/></svg> by hour</p>").content
print("html-to-markdown 3.21.2", repr(seen))
assert "data:image/svg+xml;base64," in seen, "changed"
PYTHON
