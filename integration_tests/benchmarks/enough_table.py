"""Is the answer there, and how many tokens hold it: the numbers of docs/evidence/enough.md.

    python -m integration_tests.benchmarks.enough_table --shared ../shared [--only lochmere] [--fit] [--tables]

Collections are drawn as in passages_table. Each question is asked of its collection, and of the collection without its
documents. `--fit` prints the weights of `presence`, fitted on the seven collections on which choices were made; the
numbers of each of the seven are of weights fitted on the six others. Promises are made on one half of the questions and
held to the other, in 1,000 random splits. The numbers go to docs/evidence/data/enough.json.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from chunkcore import Document, load_dataset
from chunkcore.cli.options import default_cache
from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder
from chunkcore.retrieval import TextVectors, chunk_corpus, get_retriever
from chunkcore.study.enough import Needs, UnattainableError, by_document, controlled, measure_needs
from integration_tests.benchmarks.copied_documents import edited
from integration_tests.benchmarks.passages_table import CHOSEN, COLLECTIONS, UNITS, benchmark_of

DATA = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "data" / "enough.json"
KINDS = {"words": "passages:lexical", "vectors": "passages"}
MISSES = (0.1, 0.2, 0.3)
SPLITS, OVER = 1000, 0.05
COUNTED = 200  # of these splits' tokens
RIDGE = 10.0
# Questions of lochmere that another document answers in other words or another language; found by reading.
ELSEWHERE = {
    "api-reference-06": "postmortem-2025-02-03.md",
    "faq-02": "postmortem-2025-02-03.md",
    "handbook-ja-05": "wartung-de.md",
    "manual-02": "faq.md",
    "manual-03": "wartung-de.md",
    "manual-04": "faq.md",
    "service-agreement-05": "meeting-minutes.md",
    "wartung-de-03": "handbook-ja.txt",
}


def area(high: np.ndarray, low: np.ndarray) -> float:
    """The area under the curve: how often an answerable question has the higher presence."""
    return float(((high[:, None] > low).mean() + (high[:, None] >= low).mean()) / 2)


def fitted(needs: Sequence[Needs]) -> np.ndarray:
    """Weights and bias of a logistic regression with a ridge on standardised signs; collections count by questions."""
    rows = np.concatenate([np.concatenate((one.present, one.absent)) for one in needs])
    there = np.concatenate([np.repeat([1.0, 0.0], [len(one.present), len(one.absent)]) for one in needs])
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    wide = np.column_stack(((rows - mean) / deviation, np.ones(len(rows))))
    ridge = np.diag([RIDGE] * rows.shape[1] + [0.0])
    weights = np.zeros(wide.shape[1])
    for _ in range(30):
        odds = 1 / (1 + np.exp(-(wide @ weights)))
        curvature = wide.T @ (wide * (odds * (1 - odds))[:, None]) + ridge
        weights += np.linalg.solve(curvature, wide.T @ (there - odds) - ridge @ weights)
    plain = weights[:-1] / deviation
    return np.append(plain, weights[-1] - plain @ mean)


def told_apart(needs: Needs, weights: np.ndarray) -> dict[str, float]:
    high, low = (np.column_stack((rows, np.ones(len(rows)))) @ weights for rows in (needs.present, needs.absent))
    least = np.quantile(high, 0.05)
    return {"area": round(area(high, low), 3), "pass": round(100 * float((low >= least).mean()), 1)}


def promise(needs: Needs, miss: float) -> dict[str, float]:
    """Calibrated on one half and held to the other, in random splits."""
    generator = np.random.default_rng(3)
    size = len(needs.levels)
    risks: list[float] = []
    tokens: list[float] = []
    fixed: list[float] = []
    by_budget = np.array([_tokens_needed(needs, row) for row in range(size)])
    for _ in range(SPLITS):
        half, rest = np.split(generator.permutation(size), [size // 2])
        try:
            level = controlled(needs.levels[half], miss)
            fixed.append(controlled(by_budget[half], miss))
        except UnattainableError:
            continue
        risks.append(float((needs.levels[rest] > level).mean()))
        if len(tokens) < COUNTED:
            part = replace(needs, curves=[needs.curves[row] for row in rest.tolist()])
            tokens.append(float(part.tokens(np.array([level]))[0]))
    refused = round(100 * (1 - len(risks) / SPLITS), 1)
    if refused > 99:
        return {"reached": round(100 * float(np.isfinite(needs.levels).mean()), 1), "refused": refused}
    return {
        "tokens": round(float(np.mean(tokens))),
        "one_budget": round(float(np.mean(fixed))),
        "risk": round(100 * float(np.mean(risks)), 1),
        "risk_of_all": round(100 * sum(risks) / SPLITS, 1),
        "over": round(100 * float(np.sum(np.array(risks) > miss + OVER + 1e-9)) / SPLITS, 1),
        "refused": refused,
    }


def _tokens_needed(needs: Needs, row: int) -> float:
    rising, tokens = needs.curves[row]
    place = int(np.searchsorted(rising, needs.levels[row]))
    return float(tokens[place]) if np.isfinite(needs.levels[row]) else np.inf


def read_by_hand(needs: Needs, weights: np.ndarray) -> dict[str, float]:
    """Lochmere without the questions that another document answers."""
    ids = [query.id for query in by_document(load_dataset("lochmere").queries)]
    kept = [place for place, row in enumerate(needs.unanswered.tolist()) if ids[row] not in ELSEWHERE]
    return told_apart(replace(needs, absent=needs.absent[kept]), weights)


def copies_named() -> dict[str, list[int]]:
    """Of lochmere's questions whose documents stand there twice, how many are named, and all: in the copies, a third of
    the sentences have another word, or every digit is another.
    """
    lochmere = load_dataset("lochmere")
    rows = {}
    for kind, edit in (("edited", edited), ("digits", other_digits)):
        generator = random.Random(5)
        copies = [Document(f"{one.id}-copy", edit(one.text, generator)) for one in lochmere.documents[:4]]
        names = {document.id for document in lochmere.documents[:4]}
        index = get_retriever("passages:lexical").index(chunk_corpus([*lochmere.documents, *copies], UNITS))
        repeated = measure_needs(index, lochmere).repeated
        twice = [query for query in lochmere.queries if names.issuperset(piece.document_id for piece in query.evidence)]
        rows[kind] = [sum(query.id in repeated for query in twice), len(twice)]
    return rows


def other_digits(text: str, _: random.Random) -> str:
    return text.translate(str.maketrans("0123456789", "3456789012"))


def measured(name: str, shared: Path, vectors: TextVectors) -> dict[str, Needs]:
    benchmark = benchmark_of(name, shared)
    corpus = chunk_corpus(benchmark.documents, UNITS)
    texts = TextVectors(vectors.embedder, [corpus])
    return {
        kind: measure_needs(get_retriever(spec).index(corpus, texts if kind == "vectors" else None), benchmark)
        for kind, spec in KINDS.items()
    }


def table(results: dict[str, Any]) -> str:
    head = "| | area, words | with vectors | pass, words | with vectors |"
    lines = [
        head
        + " 10 %: tokens (one budget) | risk | over | refused | 20 %: tokens (one budget) | risk | over | refused |"
    ]
    lines.append("|---|" + "--:|" * 12)
    for name, row in results["collections"].items():
        cells = [str(row[kind][key]) for key in ("area", "pass") for kind in KINDS]
        for miss in ("0.1", "0.2"):
            kept = row["vectors"]["promise"][miss]
            if "tokens" in kept:
                cells.append(f"{kept['tokens']:,} ({kept['one_budget']:,})")
                risk = f"{kept['risk']} ({kept['risk_of_all']})" if kept["refused"] else str(kept["risk"])
                cells += [risk, str(kept["over"]), str(kept["refused"])]
            else:
                cells += [f"{kept['reached']} % reached", "", "", str(kept["refused"])]
        lines.append(f"| {COLLECTIONS[name]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--only", nargs="*", default=list(COLLECTIONS))
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--tables", action="store_true")
    arguments = parser.parse_args()
    if arguments.tables:
        print(table(json.loads(DATA.read_text())))
        return
    embedder = CachedEmbedder(get_embedder("all-MiniLM-L6-v2"), EmbeddingCache(default_cache()))
    vectors = TextVectors(embedder)
    needs = {}
    for name in arguments.only:
        needs[name] = measured(name, arguments.shared, vectors)
        print(name, len(needs[name]["words"].levels), flush=True)
    chosen = [name for name in CHOSEN if name in needs]
    results: dict[str, Any] = {"collections": {}, "weights": {}, "copies": copies_named()}
    for kind in KINDS:
        weights = fitted([needs[name][kind] for name in chosen])
        results["weights"][kind] = np.round(weights, 2).tolist()
        if arguments.fit:
            print(kind, np.round(weights, 2).tolist())
    for name in needs:
        row = results["collections"].setdefault(name, {"questions": len(needs[name]["words"].levels)})
        row["repeated"] = len(needs[name]["words"].repeated)
        for kind in KINDS:
            others = [needs[other][kind] for other in chosen if other != name]
            kept = {str(miss): promise(needs[name][kind], miss) for miss in MISSES}
            row[kind] = {**told_apart(needs[name][kind], fitted(others)), "promise": kept}
            if name == "lochmere":
                row[kind]["without those elsewhere"] = read_by_hand(needs[name][kind], fitted(others))
    for kind in KINDS:
        rows = [results["collections"][name][kind] for name in chosen]
        print(kind, "mean of the seven", np.mean([row["area"] for row in rows]), np.mean([row["pass"] for row in rows]))
    if set(needs) == set(COLLECTIONS):
        DATA.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
