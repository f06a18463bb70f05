#!/usr/bin/env bash
# Guess: an evaluator that asks a model for YES or NO takes "NO. The passage is about eyes." for no.
# Seen: llama-index-core 0.14.25's FaithfulnessEvaluator and RelevancyEvaluator look for the letters "yes" anywhere, so
#       this passes with score 1. LLMRerank reads a relevance of 8.9 as 8, and "Doc 2 (Relevance: 9)" as no hit.
# Why it matters: refusals that are explained raise a system's score; a model that words its ranking otherwise than the
#                 prompt's example leaves the answer without sources.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet llama-index-core==0.14.25
venv/bin/python -W ignore - <<'PYTHON'
from importlib.metadata import version

from llama_index.core.evaluation import FaithfulnessEvaluator, RelevancyEvaluator
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.postprocessor import LLMRerank
from llama_index.core.schema import NodeWithScore, TextNode


class Model(CustomLLM):
    reply: str

    @property
    def metadata(self):
        return LLMMetadata()

    def complete(self, prompt, formatted=False, **options):
        return CompletionResponse(text=self.reply)

    def stream_complete(self, prompt, formatted=False, **options):
        yield CompletionResponse(text=self.reply)


def verdicts(reply):
    evaluators = [evaluator(llm=Model(reply=reply)) for evaluator in (FaithfulnessEvaluator, RelevancyEvaluator)]
    results = [evaluator.evaluate(query="?", response="Rinse.", contexts=["Rinse."]) for evaluator in evaluators]
    return [(result.passing, result.score) for result in results]


def reranked(reply):
    nodes = [NodeWithScore(node=TextNode(text=text)) for text in ("pump", "valve")]
    hits = LLMRerank(llm=Model(reply=reply), top_n=2).postprocess_nodes(nodes, query_str="?")
    return [(hit.node.text, hit.score) for hit in hits]


passing = {reply: verdicts(reply) for reply in ("NO", "NO. The passage is about eyes.", "No, that was yesterday.")}
hits = {reply: reranked(reply) for reply in ("Doc: 2, Relevance: 8.9", "Doc 2 (Relevance: 9)", "Document 2: 9")}
print("llama-index-core", version("llama-index-core"), passing, hits)
assert list(passing.values()) == [[(False, 0.0)] * 2, [(True, 1.0)] * 2, [(True, 1.0)] * 2], "changed"
assert list(hits.values()) == [[("valve", 8.0)], [], []], "changed"
PYTHON
