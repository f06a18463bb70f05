"""How much the names of long reports help to find the page: CUAD's contracts, joined four to a volume.

    python -m integration_tests.benchmarks.long_reports --shared ../shared

A volume is named after the first company and the first year that its contracts have, as a filing is, and a question
begins with both. A page has 3,000 characters; the pages of a question are those that hold some of its evidence in the
volume. "Without names" has the same volumes under numbers. "With headings" has volumes under numbers in which a
Markdown heading of its company and year stands above each contract, a question asks for one of them, and "without
headings" has two spaces instead of the mark; by words alone. Share of the pages and of the documents found within 1,000
and 5,000 tokens, in %; dense vectors are of all-MiniLM-L6-v2. All goes to docs/evidence/data/long_reports.json.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from chunkcore import Benchmark, Document, Evidence, Query, Retrieved, Span, load_benchmark
from chunkcore.cli.options import default_cache
from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder
from chunkcore.retrieval import TextVectors, chunk_corpus, get_retriever
from integration_tests.benchmarks.passages_table import STORE, UNITS, Behind

PAGE, CONTRACTS, QUESTIONS, BUDGETS = 3000, 4, 100, (1000, 5000)
COMPANY = re.compile(
    r"((?:[A-Z0-9][\w.&/'-]*[ ,]+){1,4}?)"
    r"(?:Inc|INC|LLC|Ltd|LTD|Limited|LIMITED|Corp|CORP|Corporation|CORPORATION|L\.P|LP|Trust|TRUST|Company)\b"
)
YEAR = re.compile(r"\b(?:19[89]|20[012])\d\b")
NO_NAMES = {"THIS", "AGREEMENT", "BETWEEN", "THE", "AND", "BY", "OF", "MADE", "CLIENT", "EXCHANGE"}
DATA = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "data" / "long_reports.json"


def company(text: str) -> str:
    """The first company that a contract names, in three words at most; empty if none is found."""
    for match in COMPANY.finditer(text[:6000]):
        words = [word.strip(",. ") for word in match[1].split()]
        kept = [word for word in words if word.upper() not in NO_NAMES and len(word) > 1]
        if kept:
            return " ".join(kept[:3])
    return ""


def volumes(shared: Path) -> Benchmark:
    whole = load_benchmark(shared / "data" / "cuad")
    contracts = sorted(whole.documents, key=lambda document: document.id)
    random.Random(0).shuffle(contracts)
    documents, queries = [], []
    for first in range(0, len(contracts), CONTRACTS):
        part = contracts[first : first + CONTRACTS]
        named = next(contract for contract in part if company(contract.text) and YEAR.search(contract.text))
        title = f"{company(named.text)} {YEAR.findall(named.text)[0]}"
        name = f"{title.replace(' ', '_')}.pdf"
        begins, text = {}, ""
        for contract in part:
            begins[contract.id] = len(text)
            text += f"{contract.text}\n\n"
        documents.append(Document(name, text))
        places: dict[str, list[Evidence]] = defaultdict(list)
        for query in whole.queries:
            for row in query.evidence:
                if row.document_id in begins:
                    begin = begins[row.document_id]
                    places[query.text].append(Evidence(name, Span(row.span.start + begin, row.span.end + begin)))
        queries += [Query(f"{name} {asked}", f"{title}: {asked}", tuple(rows)) for asked, rows in places.items()]
    random.Random(1).shuffle(queries)
    return Benchmark("volumes", documents, queries[:QUESTIONS])


def headed(shared: Path, mark: str) -> Benchmark:
    whole = load_benchmark(shared / "data" / "cuad")
    contracts = sorted(whole.documents, key=lambda document: document.id)
    contracts = [contract for contract in contracts if company(contract.text) and YEAR.search(contract.text)]
    random.Random(0).shuffle(contracts)
    asked = defaultdict(list)
    for query in whole.queries:
        asked[query.evidence[0].document_id].append(query)
    documents, queries = [], []
    for first in range(0, len(contracts), CONTRACTS):
        name, text = f"{first:03}.md", ""
        for contract in contracts[first : first + CONTRACTS]:
            title = f"{company(contract.text)} {YEAR.findall(contract.text)[0]}"
            text += f"{mark}{title}\n\n"
            for query in asked[contract.id]:
                spans = [Span(row.span.start + len(text), row.span.end + len(text)) for row in query.evidence]
                evidence = tuple(Evidence(name, span) for span in spans)
                queries.append(Query(f"{contract.id} {query.id}", f"{title}: {query.text}", evidence))
            text += f"{contract.text}\n\n"
        documents.append(Document(name, text))
    random.Random(1).shuffle(queries)
    return Benchmark("headed", documents, queries[:QUESTIONS])


def numbered(benchmark: Benchmark) -> Benchmark:
    """The same under numbers."""
    names = {document.id: f"{number:03}" for number, document in enumerate(benchmark.documents)}
    documents = [replace(document, id=names[document.id]) for document in benchmark.documents]
    queries = []
    for query in benchmark.queries:
        evidence = tuple(replace(row, document_id=names[row.document_id]) for row in query.evidence)
        queries.append(replace(query, evidence=evidence))
    return Benchmark(benchmark.name, documents, queries)


def pages(pieces: Sequence[Evidence | Retrieved]) -> set[tuple[str, int]]:
    found: set[tuple[str, int]] = set()
    for piece in pieces:
        spans = piece.spans if isinstance(piece, Retrieved) else (piece.span,)
        for span in spans:
            numbers = range(span.start // PAGE, (span.end - 1) // PAGE + 1)
            found.update((piece.document_id, number) for number in numbers)
    return found


def systems(benchmark: Benchmark, embedder: Any) -> Iterator[tuple[str, Any]]:
    units, store = chunk_corpus(benchmark.documents, UNITS), chunk_corpus(benchmark.documents, STORE)
    vectors = TextVectors(embedder, [units, store])
    words: Any = get_retriever("passages:lexical").index(units)
    yield "bm25, 200 tokens", get_retriever("bm25").index(store)
    yield "passages:lexical", words
    yield "passages", get_retriever("passages").index(units, vectors)
    for name in ("dense", "hybrid"):
        index = get_retriever(name).index(store, vectors)
        yield f"behind 100 hits of {name}", Behind(index, words, 100, "hits")
        yield f"behind 10 hits of {name}, all documents", Behind(index, words, 10, "all")


def means_of(benchmark: Benchmark, name: str, system: Any, rows: dict[str, dict[str, list[float]]], label: str) -> None:
    """Ask a system all questions; its means go to its row."""
    scores = []
    for query in benchmark.queries:
        relevant = pages(query.evidence)
        for budget in BUDGETS:
            found = pages(system.retrieve(query.text, max_tokens=budget))
            documents = {document for document, _ in found}
            scores += [len(found & relevant) / len(relevant), query.evidence[0].document_id in documents]
    means = 100 * np.reshape(scores, (-1, 2 * len(BUDGETS))).mean(axis=0)
    rows.setdefault(name, {})[label] = means.round(1).tolist()
    print(name, label, rows[name][label], flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, required=True, help="the folder with data/")
    parser.add_argument("--headings", action="store_true", help="only the volumes with headings")
    options = parser.parse_args(arguments)
    rows: dict[str, dict[str, list[float]]] = {}
    for label, mark in (("without headings", "  "), ("with headings", "# ")):
        benchmark = headed(options.shared, mark)
        index = get_retriever("passages:lexical").index(chunk_corpus(benchmark.documents, UNITS))
        means_of(benchmark, "passages:lexical", index, rows, label)
    if not options.headings:
        embedder = CachedEmbedder(get_embedder("openvino:all-MiniLM-L6-v2"), EmbeddingCache(default_cache()))
        named = volumes(options.shared)
        for label, benchmark in (("without names", numbered(named)), ("with names", named)):
            for name, system in systems(benchmark, embedder):
                means_of(benchmark, name, system, rows, label)
    kept = json.loads(DATA.read_text()) if DATA.exists() else {}
    for name, row in rows.items():
        kept.setdefault(name, {}).update(row)
    DATA.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
