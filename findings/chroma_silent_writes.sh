#!/usr/bin/env bash
# Guess: Chroma refuses an id that exists, an update of an id that does not, and NaN as metadata.
# Seen: 1.5.9 keeps the old chunk and says nothing, updates nothing and says nothing, and forgets a key whose
#       value is NaN.
# Why it matters: re-indexing by add() leaves the old text in place; only the count tells.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet chromadb==1.5.9
venv/bin/python - <<'PYTHON'
import chromadb

chunks = chromadb.EphemeralClient().create_collection("chunks", embedding_function=None)
chunks.add(ids=["a"], embeddings=[[1.0, 0.0]], documents=["old"], metadatas=[{"score": float("nan")}])
chunks.add(ids=["a", "b"], embeddings=[[0.0, 1.0], [1.0, 1.0]], documents=["new", "more"])
chunks.update(ids=["nowhere"], embeddings=[[1.0, 1.0]], documents=["lost"])
answer = chunks.get()
seen = [answer["ids"], answer["documents"], answer["metadatas"][0]]
print("chromadb", chromadb.__version__, seen)
assert seen == [["a", "b"], ["old", "more"], None], "changed"
PYTHON
