#!/usr/bin/env bash
# Guess: LaTeX as text has what is set in typewriter, and the units of quantities.
# Seen: pylatexenc 2.11's LatexNodes2Text gives nothing for \texttt{...} and \verb|...|, '20' for \SI{20}{\celsius},
#       and nothing for a macro that the document defines by \newcommand.
# Why it matters: names of functions and settings vanish from papers and manuals, and 20 degrees are 20 of anything.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet pylatexenc==2.11
venv/bin/python - <<'PYTHON'
from importlib.metadata import version

from pylatexenc.latex2text import LatexNodes2Text

sources = [
    r"Call \texttt{open} first, \textbf{then} \verb|read|.",
    r"Heat to \SI{20}{\celsius} for \qty{5}{\minute}.",
    r"\newcommand{\name}{Lochmere} The pump of \name{} is red.",
]
seen = [" ".join(LatexNodes2Text().latex_to_text(source).split()) for source in sources]
print({"pylatexenc": version("pylatexenc")}, seen)
assert seen == ["Call first, then .", "Heat to 20 for 5.", "The pump of is red."], "changed"
PYTHON
