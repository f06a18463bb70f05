"""What copies cost: recall where a third of the documents stand there twice, the second time with small edits.

    python -m integration_tests.benchmarks.copied_documents --shared ../shared

`passages:lexical` over `sentence:size=50`, 60 questions of a collection at most, documents as in `passages_table`. In a
third of a copy's sentences one word is another. A passage's `sources` count as found. The figures go to
docs/evidence/data/copied_documents.json.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from chunkcore import Benchmark, Document, Index, chunk_corpus, get_retriever, score
from chunkcore.study.experiment import run_retriever
from integration_tests.benchmarks.passages_table import CHOSEN, CONFIRMED, UNITS, benchmark_of

DATA = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "data" / "copied_documents.json"
BUDGETS = (500, 1000)
INSTEAD = ("clearly", "such", "given", "known", "other", "later")


def edited(text: str, rng: random.Random) -> str:
    pieces = []
    for sentence in re.split(r"(?<=[.!?\n])(?=\s)", text):
        words = list(re.finditer(r"\b[a-z]{4,}\b", sentence))
        if words and rng.random() < 1 / 3:
            word = rng.choice(words)
            sentence = sentence[: word.start()] + rng.choice(INSTEAD) + sentence[word.end() :]
        pieces.append(sentence)
    return "".join(pieces)


def with_copies(documents: Sequence[Document]) -> list[Document]:
    rng = random.Random(5)
    some = rng.sample(list(documents), max(1, len(documents) // 3))
    both = [*documents, *(Document(f"{document.id}-copy", edited(document.text, rng)) for document in some)]
    rng.shuffle(both)
    return both


def recall(index: Index, benchmark: Benchmark, budget: int) -> float:
    measure = f"Recall@{budget}tok"
    run = run_retriever(index, benchmark, None, budget)
    return round(100 * score(run, benchmark, [measure]).mean(measure), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, required=True, help="the folder with data/")
    shared = parser.parse_args().shared
    data: dict[str, Any] = {}
    for name in (*CHOSEN, *CONFIRMED):
        benchmark = benchmark_of(name, shared, 60)
        data[name] = {}
        for label, documents in (("alone", benchmark.documents), ("with copies", with_copies(benchmark.documents))):
            index = get_retriever("passages:lexical").index(chunk_corpus(documents, UNITS))
            whole = replace(benchmark, documents=documents)
            data[name][label] = [recall(index, whole, budget) for budget in BUDGETS]
        print(name, data[name], flush=True)
    for label, names in (("chosen on", CHOSEN), ("unseen", CONFIRMED)):
        rows = [np.mean([data[name][kind] for name in names], axis=0) for kind in ("alone", "with copies")]
        data[label] = np.round(rows[1] - rows[0], 1).tolist()
        print(label, data[label], flush=True)
    DATA.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
