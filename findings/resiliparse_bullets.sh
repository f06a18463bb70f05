#!/usr/bin/env bash
# Guess: the main content of an article has its bulleted lists, as it has its numbered ones.
# Seen: resiliparse 2.0.1, main_content=True, leaves out the items of every bulleted list (<ul>), however long they are;
#       numbered lists (<ol>), tables, code and quotations stay.
# Why it matters: warnings, requirements and steps in bullets are in no chunk, and nobody sees that they are missing.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet resiliparse==2.0.1
venv/bin/python - <<'PYTHON'
from importlib.metadata import version

from resiliparse.extract.html2text import extract_plain_text

paragraph = "<p>The pump of the ferry is primed before each start, and the valve is closed by hand after it.</p>"
steps = ["Close the valve that leads to the tank.", "Call the office, which keeps the keys of the engine room."]
items = "".join(f"<li>{step}</li>" for step in steps)
seen = {}
for tag in ("ul", "ol"):
    page = f"<html><body><article><h1>Pump</h1>{paragraph}<{tag}>{items}</{tag}>{paragraph}</article></body></html>"
    for main_content in (False, True):
        text = extract_plain_text(page, main_content=main_content)
        seen[tag, main_content] = sum(step in text for step in steps)
print("resiliparse", version("resiliparse"), "items by (list, main_content):", seen)
assert seen == {("ul", False): 2, ("ul", True): 0, ("ol", False): 2, ("ol", True): 2}, "changed"
PYTHON
