#!/usr/bin/env bash
# Guess: the chunks of a document together have all its headings and all cells of its tables.
# Seen: docling-core 2.104.0's HierarchicalChunker leaves out a heading that no text follows, and the first column's
#       heading of every table: 'valve, Price = 10' of a table of parts.
# Why it matters: questions and warnings that are written as headings cannot be found, nor what a table lists.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet 'docling-core[chunking]==2.104.0'
venv/bin/python -W ignore - <<'PYTHON'
from importlib.metadata import version

from docling_core.transforms.chunker.hierarchical_chunker import HierarchicalChunker
from docling_core.types.doc import DocItemLabel, DoclingDocument, TableCell, TableData


def cell(text, row, column):
    places = {"start_row_offset_idx": row, "end_row_offset_idx": row + 1}
    places |= {"start_col_offset_idx": column, "end_col_offset_idx": column + 1}
    return TableCell(text=text, column_header=row == 0, **places)


document = DoclingDocument(name="manual")
document.add_heading("Never open the lid while it is hot")
document.add_heading("Prices")
document.add_text(DocItemLabel.TEXT, "They hold until May.")
rows = [["Part", "Price"], ["valve", "10"], ["lid", "12"]]
cells = [cell(text, row, column) for row, texts in enumerate(rows) for column, text in enumerate(texts)]
document.add_table(TableData(num_rows=3, num_cols=2, table_cells=cells))
seen = [(chunk.meta.headings, chunk.text) for chunk in HierarchicalChunker().chunk(document)]
print("docling-core", version("docling-core"), seen)
assert seen == [(["Prices"], "They hold until May."), (["Prices"], "valve, Price = 10. lid, Price = 12")], "changed"
PYTHON
