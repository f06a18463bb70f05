#!/usr/bin/env bash
# Guess: an upsert replaces what is stored under an id: its metadata are then the new chunk's.
# Seen: chromadb 1.5.9 (so langchain-chroma 1.1.0's add_documents, too), milvus-lite 3.2.2 and lancedb 0.40.0
#       (merge_insert) keep the keys that the new chunk lacks, and filters find them; qdrant-client 1.20.0 replaces.
# Why it matters: a chunk that was indexed again still has its old page, end of validity or readers.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet chromadb==1.5.9 langchain-chroma==1.1.0 milvus-lite==3.2.2 pymilvus==3.0.2
venv/bin/pip install --quiet lancedb==0.40.0 qdrant-client==1.20.0
venv/bin/python -W ignore - <<'PYTHON'
from importlib.metadata import version

import chromadb
import lancedb
from langchain_chroma import Chroma
from langchain_core.documents import Document as LangChainDocument
from langchain_core.embeddings import DeterministicFakeEmbedding
from pymilvus import MilvusClient
from qdrant_client import QdrantClient, models

vector, old, new = [1.0, 0.0], {"status": "draft", "page": 7}, {"status": "final"}
chroma = chromadb.EphemeralClient().create_collection("chunks", embedding_function=None)
langchain = Chroma("texts", DeterministicFakeEmbedding(size=2), client=chromadb.EphemeralClient())
milvus = MilvusClient("milvus.db")
milvus.create_collection("chunks", dimension=2)
lance = lancedb.connect("lance").create_table("chunks", [{"id": 0, "vector": vector, **old}])
qdrant = QdrantClient(":memory:")
qdrant.create_collection("chunks", vectors_config=models.VectorParams(size=2, distance=models.Distance.COSINE))
for metadata in (old, new):
    chroma.upsert(ids=["0"], embeddings=[vector], documents=["Lid."], metadatas=[metadata])
    langchain.add_documents([LangChainDocument("Lid.", metadata=metadata)], ids=["0"])
    milvus.upsert("chunks", [{"id": 0, "vector": vector, **metadata}])
    merge = lance.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute([{"id": 0, "vector": vector, **metadata}])
    qdrant.upsert("chunks", [models.PointStruct(id=0, vector=vector, payload=metadata)])

stored = {
    "chromadb": chroma.get(where={"page": 7})["metadatas"],
    "langchain-chroma": langchain.get(where={"page": 7})["metadatas"],
    "milvus-lite": milvus.query("chunks", filter="page == 7", output_fields=["*"]),
    "lancedb": lance.search().where("page = 7").to_list(),
    "qdrant-client": [qdrant.retrieve("chunks", [0])[0].payload],
}
seen = {name: {key: row[key] for key in ("status", "page") if key in row} for name, (row,) in stored.items()}
print({name: version(name) for name in seen}, seen)
assert seen.pop("qdrant-client") == new, "changed"
assert all(metadata == {"status": "final", "page": 7} for metadata in seen.values()), "changed"
PYTHON
