"""Make the pages, from the root of the repository; names of chunkers make only theirs."""

from __future__ import annotations

import sys

from docs.making.page import ROOT, make_index, make_page
from docs.making.shown import SHOWN

made: dict[str, str] = {}
for name in sys.argv[1:] or SHOWN:
    made |= make_page(name)
for path, text in (made if sys.argv[1:] else make_index(made)).items():
    (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
    (ROOT / path).write_text(text, encoding="utf-8")
    sys.stdout.write(f"{path}\n")
