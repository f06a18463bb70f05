#!/usr/bin/env bash
# Guess: a filter of redundant hits keeps the first of those that are alike, and the order of the others.
# Seen: langchain-community 0.4.2's EmbeddingsRedundantFilter keeps the last of them: of a first hit and two that are
#       like it, the third is left, behind all others.
# Why it matters: the best hit is what the filter takes away, and its place goes to the worst.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet langchain-community==0.4.2 langchain-core==1.8.3
venv/bin/python -W ignore - <<'PYTHON'
from importlib.metadata import version

from langchain_community.document_transformers import EmbeddingsRedundantFilter
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings


class Words(Embeddings):
    def embed_query(self, text):
        return [float(word in text) for word in ("pump", "weighs", "valve")]

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]


ranked = ["The pump weighs 9 kg.", "What the pump weighs is below.", "The valve is red.", "No pump weighs nothing."]
kept = EmbeddingsRedundantFilter(embeddings=Words()).transform_documents([Document(text) for text in ranked])
seen = [document.page_content for document in kept]
print("langchain-community", version("langchain-community"), seen)
assert seen == ["The valve is red.", "No pump weighs nothing."], "changed"
PYTHON
