#!/usr/bin/env bash
# Guess: fusion by reciprocal ranks counts a text that is several times in one list once, at its best rank.
# Seen: langchain-classic 1.0.8's EnsembleRetriever adds a share for each time: three chunks with the same remark
#       come before the chunk that both retrievers have first.
# Why it matters: headers, footers and remarks that many documents repeat are the first hit of many questions.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet langchain-classic==1.0.8
venv/bin/python - <<'PYTHON'
from importlib.metadata import version

from langchain_classic.retrievers import EnsembleRetriever
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

remark = "Subject to change."
by_vectors, by_words = ["The pump weighs 9 kg.", "The valve is red.", remark, remark, remark, remark], ["The pump weighs 9 kg."]


def retriever(texts):
    return RunnableLambda(lambda question: [Document(text, metadata={"chunk": at}) for at, text in enumerate(texts)])


ensemble = EnsembleRetriever(retrievers=[retriever(by_vectors), retriever(by_words)])
seen = [hit.page_content for hit in ensemble.invoke("How heavy is the pump?")]
print("langchain-classic", version("langchain-classic"), seen)
assert seen == [remark, "The pump weighs 9 kg.", "The valve is red."], "changed"
PYTHON
