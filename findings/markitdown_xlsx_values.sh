#!/usr/bin/env bash
# Guess: markitdown shows a cell as the file holds it: a text stays a text.
# Seen: 0.1.9 shows the text 007 as 7.0, TRUE as 1.0, 1200000 as 1.200000e+06 and an empty cell as NaN where a
#       column has an empty cell; hidden sheets are shown like others.
# Why it matters: article numbers, postcodes and phone numbers lose their zeros, so a question that names one
#                 finds nothing.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet 'markitdown[xlsx]==0.1.9' openpyxl==3.1.5
venv/bin/python - <<'PYTHON'
import openpyxl
from markitdown import MarkItDown

book = openpyxl.Workbook()
book.active.append(["article", "stock", "sold"])
book.active.append(["007", 1200000, True])
book.active.append([None, 1e-07, False])
hidden = book.create_sheet("prices")
hidden.sheet_state = "hidden"
hidden["A1"] = "secret"
book.save("stock.xlsx")
seen = MarkItDown().convert("stock.xlsx").markdown
print("markitdown 0.1.9", seen)
assert "| 7.0 | 1.200000e+06 |" in seen, "changed"
assert "| NaN |" in seen, "changed"
assert "secret" in seen, "changed"
PYTHON
