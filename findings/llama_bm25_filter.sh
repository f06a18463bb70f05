#!/usr/bin/env bash
# Guess: LlamaIndex's BM25Retriever with a metadata filter returns only nodes that pass it.
# Seen: llama-index-retrievers-bm25 0.8.0 fills the list up with nodes that do not pass, at score 0: asked for two
#       of 2024, it gives one of 2024 and one of 2023, before others of 2024.
# Why it matters: an old version's text reaches the prompt as if it had been asked for.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet llama-index-retrievers-bm25==0.8.0 llama-index-core==0.14.25 bm25s==0.3.16
venv/bin/python -W ignore - <<'PYTHON'
from importlib.metadata import version

from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.retrievers.bm25 import BM25Retriever

texts = {"pump pump is red": 2023, "pump is blue": 2024, "tea is hot": 2024, "the valve": 2024, "pump valve": 2023}
nodes = [TextNode(text=text, metadata={"year": year}) for text, year in texts.items()]
only = MetadataFilters(filters=[MetadataFilter(key="year", value=2024)])
retriever = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=2, filters=only)
seen = [(hit.node.text, hit.node.metadata["year"], round(hit.score, 2)) for hit in retriever.retrieve("pump")]
print("llama-index-retrievers-bm25", version("llama-index-retrievers-bm25"), seen)
assert seen == [("pump is blue", 2024, 0.22), ("pump valve", 2023, 0.0)], "changed"
PYTHON
