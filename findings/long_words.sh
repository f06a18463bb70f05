#!/usr/bin/env bash
# Guess: a word index finds every word, however long: a checksum, a path, a chemical name.
# Seen: tantivy 0.27.0 drops words of over 40 bytes while indexing, and lancedb 0.40.0 does the same: nothing is
#       found, nothing is said.
# Why it matters: identifiers, hashes and URLs are what people search by words for.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet lancedb==0.40.0 tantivy==0.27.0
venv/bin/python - <<'PYTHON'
import lancedb
import tantivy

word = "f3a9" * 11
text = f"The file {word} is the release."
builder = tantivy.SchemaBuilder()
builder.add_text_field("text", stored=True)
index = tantivy.Index(builder.build())
writer = index.writer()
writer.add_document(tantivy.Document(text=[text]))
writer.commit()
writer.wait_merging_threads()
index.reload()
searcher = index.searcher()
by_tantivy = [len(searcher.search(index.parse_query(query, ["text"]), 5).hits) for query in ("release", word)]
table = lancedb.connect("lance").create_table("t", [{"text": text}])
table.create_fts_index("text")
by_lance = [len(table.search(query, query_type="fts").to_list()) for query in ("release", word)]
print("tantivy 0.27.0", by_tantivy, "lancedb", lancedb.__version__, by_lance)
assert by_tantivy == by_lance == [1, 0], "changed"
PYTHON
