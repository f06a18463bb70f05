#!/usr/bin/env bash
# Guess: inscriptis numbers a list as a browser does, and leaves out what a browser hides.
# Seen: 2.7.6 numbers a list that starts at 5 from 1, and shows elements with the attribute hidden and
#       templates.
# Why it matters: clause 5 of a contract becomes clause 1, and texts that no reader saw are indexed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet inscriptis==2.7.6
venv/bin/python - <<'PYTHON'
from inscriptis import get_text

html = "<ol start=5><li>five</li><li>six</li></ol><p hidden>draft</p><template>blank</template>"
seen = get_text(html)
print("inscriptis 2.7.6", repr(seen))
assert "1. five" in seen, "changed"
assert "draft" in seen, "changed"
assert "blank" in seen, "changed"
PYTHON
