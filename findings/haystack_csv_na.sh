#!/usr/bin/env bash
# Guess: CSVDocumentCleaner removes empty rows and columns, and keeps every other cell as it is written.
# Seen: haystack-ai 3.0.0 empties the cells "NA", "N/A", "None" and "null", and removes rows and columns of these alone.
# Why it matters: Namibia loses its code, and "not applicable" reads as not answered, in the text that is indexed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet haystack-ai==3.0.0 pandas==2.3.3
HAYSTACK_TELEMETRY_ENABLED=False venv/bin/python -W ignore - <<'PYTHON'
from importlib.metadata import version

from haystack import Document
from haystack.components.preprocessors import CSVDocumentCleaner


def cleaned(text):
    return CSVDocumentCleaner().run([Document(content=text)])["documents"][0].content


seen = [
    cleaned("country,code\nNamibia,NA\nNorway,NO\n"),
    cleaned("test,result\nlead,N/A\nnone,None\nzinc,null\n"),
    cleaned("None,None\nlead,7\n"),
]
print("haystack-ai", version("haystack-ai"), seen)
assert seen == ["country,code\nNamibia,\nNorway,NO\n", "test,result\nlead,\nnone,\nzinc,\n", "lead,7\n"], "changed"
PYTHON
