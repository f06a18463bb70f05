#!/usr/bin/env bash
# Guess: 'year is not 2023' lets the same chunks pass in every store, those without a year too.
# Seen: chromadb 1.5.9 returns chunks without the key, lancedb 0.40.0 and milvus-lite 3.2.2 do not; qdrant-client
#       1.20.0 does by must_not, and does not by except.
# Why it matters: after a move to another store, undated chunks come into every prompt, or into none.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet chromadb==1.5.9 lancedb==0.40.0 milvus-lite==3.2.2 pymilvus==3.0.2 qdrant-client==1.20.0
venv/bin/python -W ignore - <<'PYTHON'
import chromadb
import lancedb
from pymilvus import MilvusClient
from qdrant_client import QdrantClient, models

names, years, vector = ["old", "new", "undated"], [{"year": 2023}, {"year": 2024}, {}], [1.0, 0.0]
chroma = chromadb.EphemeralClient().create_collection("chunks", embedding_function=None)
metadatas = [{"name": name, **year} for name, year in zip(names, years)]
chroma.add(ids=names, embeddings=[vector] * 3, metadatas=metadatas)
rows = [{"name": name, "year": year.get("year"), "vector": vector} for name, year in zip(names, years)]
lance = lancedb.connect("lance").create_table("chunks", rows)
milvus = MilvusClient("milvus.db")
milvus.create_collection("chunks", dimension=2)
milvus.insert("chunks", [{"id": at, "vector": vector, **metadata} for at, metadata in enumerate(metadatas)])
qdrant = QdrantClient(":memory:")
qdrant.create_collection("chunks", vectors_config=models.VectorParams(size=2, distance=models.Distance.COSINE))
points = [models.PointStruct(id=at, vector=vector, payload=metadata) for at, metadata in enumerate(metadatas)]
qdrant.upsert("chunks", points)
is_2023 = models.FieldCondition(key="year", match=models.MatchValue(value=2023))
other = models.FieldCondition(key="year", match=models.MatchExcept(**{"except": [2023]}))
filters = {"qdrant must_not": models.Filter(must_not=[is_2023]), "qdrant except": models.Filter(must=[other])}
seen = {
    "chroma": chroma.get(where={"year": {"$ne": 2023}})["ids"],
    "lancedb": [row["name"] for row in lance.search(vector).where("year != 2023").to_list()],
    "milvus": [row["name"] for row in milvus.query("chunks", filter="year != 2023", output_fields=["name"])],
}
for name, where in filters.items():
    seen[name] = [point.payload["name"] for point in qdrant.scroll("chunks", scroll_filter=where)[0]]
print("chromadb 1.5.9, lancedb 0.40.0, milvus-lite 3.2.2, qdrant-client 1.20.0", seen)
with_undated = {name for name, chunks in seen.items() if sorted(chunks) == ["new", "undated"]}
without = {name for name, chunks in seen.items() if chunks == ["new"]}
assert with_undated == {"chroma", "qdrant must_not"} and without == {"lancedb", "milvus", "qdrant except"}, "changed"
PYTHON
