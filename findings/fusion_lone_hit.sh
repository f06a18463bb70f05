#!/usr/bin/env bash
# Guess: where one of two lists has a single hit, fusion of scores counts it as that list's best.
# Seen: ranx 0.3.21 (min-max) gives it 0, as if it had not been found; llama-index-core 0.14.25 (relative_score) the
#       full weight; haystack-ai 3.4.1 (distribution based) leaves its score as it was, so that 12 beats every other.
# Why it matters: an exact number or name is often the only hit of a word search, and it is the evidence.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet ranx==0.3.21 llama-index-core==0.14.25 haystack-ai==3.4.1
HAYSTACK_TELEMETRY_ENABLED=False venv/bin/python -W ignore - <<'PYTHON'
from importlib.metadata import version

from haystack import Document
from haystack.components.joiners import DocumentJoiner
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from ranx import Run, fuse

by_vectors, by_words = {"a": 0.9, "b": 0.8, "c": 0.1}, {"lone": 12.0}


class Hits(BaseRetriever):
    def __init__(self, scores):
        super().__init__()
        self.scores = scores

    def _retrieve(self, query):
        return [NodeWithScore(node=TextNode(text=name), score=score) for name, score in self.scores.items()]


def documents(scores):
    return [Document(id=name, content=name, score=score) for name, score in scores.items()]


fused = fuse([Run({"q": by_vectors}), Run({"q": by_words})], norm="min-max", method="sum").to_dict()["q"]
retrievers = [Hits(by_vectors), Hits(by_words)]
llama = QueryFusionRetriever(
    retrievers, llm=MockLLM(), num_queries=1, mode="relative_score", use_async=False, similarity_top_k=4
)
joiner = DocumentJoiner(join_mode="distribution_based_rank_fusion")
joined = joiner.run(documents=[documents(by_vectors), documents(by_words)])["documents"]
seen = {
    "ranx": fused,
    "llama-index-core": {hit.node.text: hit.score for hit in llama.retrieve("q")},
    "haystack-ai": {document.id: document.score for document in joined},
}
seen = {name: {hit: round(score, 2) for hit, score in scores.items()} for name, scores in seen.items()}
print({name: version(name) for name in seen}, seen)
assert seen["ranx"]["lone"] == seen["ranx"]["c"] == 0, "changed"
assert seen["llama-index-core"]["lone"] == seen["llama-index-core"]["a"] == 0.5, "changed"
assert (seen["haystack-ai"]["lone"], seen["haystack-ai"]["a"]) == (12, 0.64), "changed"
PYTHON
