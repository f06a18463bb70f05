#!/usr/bin/env bash
# Guess: what widens hits to their surroundings gives each text once, with the score of its hit.
# Seen: haystack-ai 3.4.1's SentenceWindowRetriever gives the chunks between two hits twice; AutoMergingRetriever
#       gives a merged parent no score, and puts it after a single leaf with a lower one.
# Why it matters: a prompt's tokens go to repeated text, and a cut by rank or score drops the merged parent first.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet haystack-ai==3.4.1
HAYSTACK_TELEMETRY_ENABLED=False venv/bin/python - <<'PYTHON'
from dataclasses import replace
from importlib.metadata import version

from haystack import Document
from haystack.components.preprocessors import DocumentSplitter, HierarchicalDocumentSplitter
from haystack.components.retrievers import AutoMergingRetriever, SentenceWindowRetriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

page = [Document(content=" ".join(f"w{number}" for number in range(12)))]


def store(documents):
    filled = InMemoryDocumentStore()
    filled.write_documents(documents)
    return filled


chunks = DocumentSplitter(split_by="word", split_length=3, split_overlap=0).run(page)["documents"]
windows = SentenceWindowRetriever(store(chunks), window_size=1).run(retrieved_documents=chunks[1:3])["context_windows"]
levels = HierarchicalDocumentSplitter(block_sizes={6, 3}, split_overlap=0).run(page)["documents"]
leaves = [replace(leaf, score=score) for leaf, score in zip(levels[3:6], (0.9, 0.8, 0.1))]
merging = AutoMergingRetriever(store(levels[:3]), threshold=0.6)
merged = [(hit.content.strip(), hit.score) for hit in merging.run(documents=leaves)["documents"]]
print("haystack-ai", version("haystack-ai"), windows, merged)
assert windows == ["w0 w1 w2 w3 w4 w5 w6 w7 w8 ", "w3 w4 w5 w6 w7 w8 w9 w10 w11"], "changed"
assert merged == [("w6 w7 w8", 0.1), ("w0 w1 w2 w3 w4 w5", None)], "changed"
PYTHON
