#!/usr/bin/env bash
# Guess: a DOCX converter leaves out text that Word hides, and a list that is interrupted goes on.
# Seen: markitdown 0.1.9 (mammoth 1.13.0) shows text marked as hidden, begins the interrupted list at 1 again,
#       and lets an equation vanish.
# Why it matters: hidden notes reach the prompt; 'see step 3' names a step 1; formulas cannot be found.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet 'markitdown[docx]==0.1.9' mammoth==1.13.0 python-docx==1.2.0
venv/bin/python - <<'PYTHON'
import docx
from docx.oxml import parse_xml
from markitdown import MarkItDown

MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
document = docx.Document()
paragraph = document.add_paragraph("Rate ")
paragraph.add_run("internal").font.hidden = True
fraction = "<m:f><m:num><m:r><m:t>1</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f>"
document.add_paragraph("Half is ")._p.append(parse_xml(f'<m:oMath xmlns:m="{MATH}">{fraction}</m:oMath>'))
document.add_paragraph("one", style="List Number")
document.add_paragraph("two", style="List Number")
document.add_paragraph("A remark.")
document.add_paragraph("three", style="List Number")
document.save("rates.docx")
seen = MarkItDown().convert("rates.docx").markdown
print("markitdown 0.1.9", repr(seen))
assert "Rate internal" in seen, "changed"
assert "1. three" in seen, "changed"
PYTHON
