"""Answers without a language model: the sentence of the retrieved passages that is nearest to the question.

    python -m integration_tests.benchmarks.extractive_answers ../shared/data/covid_qa --limit 100

It stands where a language model would, and is told just what one is told, so that the whole way can be measured where
no capable model is at hand. Prints the table of docs/guides/answers.md.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from chunkcore import compare, get_chunker, get_embedder, load_benchmark
from chunkcore.answers import AnswerModels, answer_questions, score_answers
from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.cli.options import default_cache
from chunkcore.evaluation.experiment import run_experiment
from chunkcore.evaluation.measures import get_measure, measures_at
from chunkcore.evaluation.resampling import mean_intervals
from chunkcore.models import CachedEmbedder, Embedder, EmbeddingCache
from chunkcore.models.llm import CallableLLM, Message

K = 5
STRATEGIES = ("recursive:size=100", "recursive:size=200", "recursive:size=400")
MEASURES = ("SquadF1", "ExactMatch", "RougeL", "Bleu1", "Bleu4", "Meteor", "BertScore", "AnswerCosine")


class NearestSentence:
    """Answers with the passages' sentence of the highest cosine to the question."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder

    def __call__(self, messages: Sequence[Message], schema: Mapping[str, Any] | None) -> str:
        content = messages[-1]["content"]
        passages, end = json.JSONDecoder().raw_decode(content, content.index("["))
        sentences = [text[start:stop] for text in passages for start, stop in sentence_ranges(text).tolist()]
        if not sentences:
            return json.dumps({"answer": ""})
        question = content[end:].partition("Question: ")[2]
        vector = self.embedder.embed_queries([question])[0]
        best = int(np.argmax(self.embedder.embed_documents(sentences) @ vector))
        return json.dumps({"answer": sentences[best]})


def main() -> None:
    """Retrieve, answer, score, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("collection", type=Path)
    parser.add_argument("--limit", type=int, default=100)
    options = parser.parse_args()
    benchmark = load_benchmark(options.collection)
    drawn = random.Random(0).sample(range(len(benchmark.queries)), options.limit)
    benchmark = replace(benchmark, queries=[benchmark.queries[number] for number in sorted(drawn)])
    model = CachedEmbedder(get_embedder("all-MiniLM-L6-v2"), EmbeddingCache(default_cache()))
    llm = CallableLLM(NearestSentence(model), name="the nearest sentence")
    reports = []
    chunkers = {spec: get_chunker(spec) for spec in STRATEGIES}
    for report in run_experiment(benchmark, chunkers, model, measures=measures_at((K,))):
        assert report.run is not None
        answered = answer_questions(benchmark, report.run, llm, K)
        scored = score_answers(benchmark, answered, MEASURES, AnswerModels(embedder=model))
        reports.append(replace(report, scores={**report.scores, **scored.scores}))
    names = (*MEASURES, "Recall")
    print(f"| strategy | {' | '.join(names)} | tokens |\n|{'---|' * (len(names) + 2)}")
    for report in reports:
        columns = np.column_stack([report.values(get_measure(name, K)) for name in names])  # type: ignore[arg-type]
        low, high = 100 * np.array(mean_intervals(columns))
        cells = [f"{mean:.1f} ({low[i]:.1f} to {high[i]:.1f})" for i, mean in enumerate(100 * columns.mean(axis=0))]
        print(f"| `{report.name}` | {' | '.join(cells)} | {report.mean_tokens(K):.0f} |")
    for name in ("SquadF1", "BertScore"):
        print(f"\n{compare(reports, get_measure(name, K)).verdict}")


if __name__ == "__main__":
    main()
