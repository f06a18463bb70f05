#!/usr/bin/env bash
# Guess: tantivy deletes the chunk whose id is named, and no other.
# Seen: 0.27.0, where the id is a text field as usual: deleting 'report-2023.pdf#1' deletes nothing, deleting 'report'
#       deletes the chunks of every file with that word in its name; tokenizer_name='raw' deletes by the whole id.
# Why it matters: re-indexed files keep their old chunks beside the new ones, and one file's removal takes others along.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet tantivy==0.27.0
venv/bin/python - <<'PYTHON'
from importlib.metadata import version

import tantivy

IDS = ["notes.md#1", "report", "report-2023.pdf#1", "report-2023.pdf#2"]


def left(tokenizer, deleted):
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name=tokenizer)
    index = tantivy.Index(builder.build())
    writer = index.writer()
    for identifier in IDS:
        writer.add_document(tantivy.Document(id=identifier))
    writer.commit()
    writer.delete_documents_by_term("id", deleted)
    writer.commit()
    index.reload()
    searcher = index.searcher()
    hits = searcher.search(tantivy.Query.all_query(), 10).hits
    return sorted(searcher.doc(address)["id"][0] for _, address in hits)


seen = {name: [left(name, "report-2023.pdf#1"), left(name, "report")] for name in ("default", "raw")}
print({"tantivy": version("tantivy")}, "left:", seen)
assert seen["default"] == [IDS, ["notes.md#1"]], "changed"
assert seen["raw"] == [[IDS[0], IDS[1], IDS[3]], [IDS[0], IDS[2], IDS[3]]], "changed"
PYTHON
