#!/usr/bin/env bash
# Guess: BM25Retriever finds the text with the question's word first.
# Seen: langchain-community 0.4.2 cuts words at spaces alone ("Pump" and "pump?" are not "pump"), rank-bm25 0.2.2
#       gives a word that half of the texts have the weight 0; where all scores are 0, the last texts come first.
# Why it matters: of two documents, the wrong one answers; of four, two that have nothing to do with the question.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet langchain-community==0.4.2 rank-bm25==0.2.2
venv/bin/python -W ignore - <<'PYTHON'
from importlib.metadata import version

from langchain_community.retrievers import BM25Retriever

few = BM25Retriever.from_texts(["The fox runs.", "The hen sleeps."], k=1)
more = BM25Retriever.from_texts(["The pump runs at noon.", "The hen sleeps.", "A gate is shut.", "Boats pay."], k=2)
seen = [
    few.invoke("fox")[0].page_content,
    [text.page_content for text in more.invoke("When does Pump 1 start?")],
    more.vectorizer.get_scores(["pump?"]).tolist(),
]
print({name: version(name) for name in ("langchain-community", "rank-bm25")}, seen)
assert seen == ["The hen sleeps.", ["Boats pay.", "A gate is shut."], [0.0, 0.0, 0.0, 0.0]], "changed"
PYTHON
