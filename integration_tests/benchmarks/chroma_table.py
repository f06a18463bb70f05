"""The Chroma report's table, "All corpora, all-MiniLM-L6-v2", beside ours.

    python -m integration_tests.benchmarks.chroma_table --shared ../shared

Eight strategies × k = 5, 10, min. The first run embeds about 25,000 texts, which takes some minutes; the command
line's cache makes the next one quick.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from chunkcore import Benchmark, Chunk, Report, Retrieved, Run, Span, get_chunker, load_benchmark, run_experiment
from chunkcore.cli.options import default_cache
from chunkcore.evaluation.measures import Depth, Measure, get_measure, measures_at
from chunkcore.evaluation.scoring import Scorer
from chunkcore.models import CachedEmbedder, Embedder, EmbeddingCache, get_embedder
from chunkcore.retrieval.vectors import top_k

MEASURES = {"recall": "Recall", "precision": "Precision", "precision_omega": "PrecisionOmega", "iou": "IoU"}
_RELEASED = "PrecisionOmegaReleased"
KS: tuple[Depth, ...] = (5, 10, "min")
_SEPARATORS = r'["\n\n","\n",".","?","!"," ",""]'

Key = tuple[str, int, int]
# The report's name, size and overlap, and ours.
STRATEGIES: dict[Key, str] = {
    ("Recursive", 250, 125): f"recursive:size=250,overlap=125,separators={_SEPARATORS}",
    ("TokenText", 250, 125): "fixed_token:size=250,overlap=125",
    ("Recursive", 250, 0): f"recursive:size=250,separators={_SEPARATORS}",
    ("TokenText", 250, 0): "fixed_token:size=250",
    ("Recursive", 200, 0): f"recursive:size=200,separators={_SEPARATORS}",
    ("TokenText", 200, 0): "fixed_token:size=200",
    ("Cluster", 250, 0): "cluster_semantic:size=250",
    ("Cluster", 200, 0): "cluster_semantic:size=200",
}


@dataclass(frozen=True)
class Row:
    """One strategy at one k, in percent, by the column names of the reference files."""

    key: Key
    k: Depth
    values: Mapping[str, float]


def read_reference(path: Path) -> dict[tuple[Key, Depth], dict[str, float]]:
    """The rows of a reference file, those of all corpora on MiniLM where it has others."""
    results: dict[tuple[Key, Depth], dict[str, float]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row.get("model", "all-MiniLM-L6-v2") != "all-MiniLM-L6-v2" or row.get("corpus", "all") != "all":
                continue
            key = (row["chunker"], int(row["size"]), int(row["overlap"]))
            k: Depth = "min" if row["retrieve"] == "Min" else int(row["retrieve"])
            results[key, k] = {name: float(row[name]) for name in MEASURES}
    return results


def our_rows(reports: Sequence[Report], unit: str = "character") -> list[Row]:
    return [
        Row(key, k, {column: 100 * report.mean(_measure(name, k, unit)) for column, name in MEASURES.items()})
        for k in KS
        for key, report in zip(STRATEGIES, reports, strict=True)
    ]


def _measure(name: str, k: Depth, unit: str) -> Measure:
    return get_measure(name, None if name.startswith("PrecisionOmega") else k, unit)  # type: ignore[arg-type]


def run(benchmark: Benchmark, embedder: Embedder, *, published: bool) -> list[Report]:
    """The eight strategies, with k = "min" as the released code counts it, or by the report's text."""
    scorer = Scorer(benchmark, min_rule="touching" if published else "holding")
    return run_experiment(scorer, list(map(get_chunker, STRATEGIES.values())), embedder, measures=measures_at(KS))


def by_first_occurrence(benchmark: Benchmark, embedder: Embedder) -> list[Report]:
    """Ours with the chunks where the released code places them: at the first occurrence of their text.

    It also takes a full stop off the end of the text that it looks for.
    """
    texts = {document.id: document.text for document in benchmark.documents}
    queries = embedder.embed_queries([query.text for query in benchmark.queries])
    scorer = Scorer(benchmark, min_rule="touching")
    measures = [_measure(name, k, "character") for name in (*MEASURES.values(), _RELEASED) for k in KS]
    reports = []
    for spec in STRATEGIES.values():
        chunker = get_chunker(spec)
        if "embedder" in chunker.option_names():
            chunker = replace(chunker, embedder=embedder)  # type: ignore[call-arg]
        chunks = [*chunker.chunk_many(benchmark.documents)]
        pool = [first_occurrence(chunk, texts[chunk.document_id]) for chunk in chunks]
        deepest = max(10, int(scorer.depths(pool).max()))
        indices, _ = top_k(queries, embedder.embed_documents([chunk.text for chunk in chunks]), deepest)
        results = {
            query.id: [pool[i] for i in row] for query, row in zip(benchmark.queries, indices.tolist(), strict=True)
        }
        reports.append(scorer.score(Run(spec, results, pool), measures))
    return reports


def first_occurrence(chunk: Chunk, text: str) -> Retrieved:
    # A chunk that is a full stop alone is looked for as nothing, and found at the beginning.
    sought = chunk.text.removesuffix(".")
    start = text.find(sought)
    return Retrieved(chunk.document_id, (Span(start, start + max(1, len(sought))),))


def table(rows: Iterable[Row], reference: Mapping[tuple[Key, Depth], Mapping[str, float]]) -> list[str]:
    """Markdown: ours, theirs and the difference of every measure."""
    heads = ["Recall", "Precision", "PrecisionΩ", "IoU"]
    lines = [
        "| strategy | k | " + " | ".join(f"{head} | theirs | Δ" for head in heads) + " |",
        "|---|---|" + "--:|--:|--:|" * len(heads),
    ]
    for row in rows:
        theirs = reference.get((row.key, row.k))
        cells = []
        for column in MEASURES:
            ours = row.values[column]
            other = theirs[column] if theirs else None
            cells += (
                [f"{ours:.1f}", "–", "–"]
                if other is None
                else [f"{ours:.1f}", f"{other:.1f}", f"{_signed(ours - other)}"]
            )
        lines.append(f"| {_name(row.key)} | {row.k} | {' | '.join(cells)} |")
    return lines


def plain_table(reports: Sequence[Report]) -> list[str]:
    lines = [
        "| strategy | chunks | mean tokens | k | Recall | Precision | PrecisionΩ | IoU | retrieved tokens |",
        "|---|--:|--:|---|--:|--:|--:|--:|--:|",
    ]
    by_key = dict(zip(STRATEGIES, reports, strict=True))
    for row in our_rows(reports, "token"):
        report = by_key[row.key]
        assert report.chunks is not None
        values = " | ".join(f"{row.values[column]:.1f}" for column in MEASURES)
        lines.append(
            f"| {_name(row.key)} | {report.chunks.count:,} | {report.chunks.mean:.0f} | {row.k} | {values} "
            f"| {report.mean_tokens(row.k):,.0f} |"
        )
    return lines


def corpus_table(reports: Sequence[Report], k: Depth) -> list[str]:
    """Recall, Precision and IoU of each corpus by itself; all corpora are searched together all the same."""
    shown: tuple[str, ...] = ("Recall", "Precision", "IoU")
    corpora = {name: count for name, (_, _, count) in reports[0].by_collection(_measure("Recall", k, "token")).items()}
    heads = [f"{name} ({count})" for name, count in corpora.items()]
    lines = [f"| strategy | {' | '.join(heads)} |", "|---|" + "--:|" * len(heads)]
    for key, report in zip(STRATEGIES, reports, strict=True):
        results = [report.by_collection(_measure(name, k, "token")) for name in shown]
        cells = [" / ".join(f"{100 * row_scores[corpus][0]:.1f}" for row_scores in results) for corpus in corpora]
        lines.append(f"| {_name(key)} | {' | '.join(cells)} |")
    return lines


def omega_table(reports: Sequence[Report], *references: Mapping[tuple[Key, Depth], Mapping[str, float]]) -> list[str]:
    """PrecisionΩ with and without the evidence that no chunk covers, beside theirs."""
    lines = ["| strategy | PrecisionΩ | as the released code | report | released code |", "|---|--:|--:|--:|--:|"]
    for key, report in zip(STRATEGIES, reports, strict=True):
        values = [100 * report.mean(_measure(name, 5, "character")) for name in ("PrecisionOmega", _RELEASED)]
        values += [reference[key, 5]["precision_omega"] for reference in references]
        lines.append(f"| {_name(key)} | {' | '.join(f'{value:.2f}' for value in values)} |")
    return lines


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-0.0", "+0.0")


def _name(key: Key) -> str:
    name, size, overlap = key
    return f"{name} {size}/{overlap}"


def largest(rows: Iterable[Row], reference: Mapping[tuple[Key, Depth], Mapping[str, float]]) -> list[str]:
    """The largest difference of each measure, apart for the Cluster rows and for k = "min"."""
    groups: dict[str, list[Row]] = {
        "Recursive and TokenText, k = 5, 10": [],
        "Cluster, k = 5, 10": [],
        "all, k = min": [],
    }
    for row in rows:
        name = "all, k = min" if row.k == "min" else "Cluster, k = 5, 10" if row.key[0] == "Cluster" else None
        groups[name or "Recursive and TokenText, k = 5, 10"].append(row)
    lines = ["| rows | Recall | Precision | PrecisionΩ | IoU |", "|---|--:|--:|--:|--:|"]
    for name, members in groups.items():
        pairs = [(row.values, reference[row.key, row.k]) for row in members if (row.key, row.k) in reference]
        worst = [max(abs(ours[column] - theirs[column]) for ours, theirs in pairs) for column in MEASURES]
        lines.append(f"| {name} | {' | '.join(f'{value:.2f}' for value in worst)} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, required=True, help="the folder with data/chroma and reference/")
    options = parser.parse_args(arguments)
    print("\n".join(write(options.shared)))


def write(shared: Path) -> list[str]:
    benchmark = load_benchmark(shared / "data/chroma")
    published = read_reference(shared / "reference/chroma_report_all_corpora.csv")
    rerun = read_reference(shared / "reference/chroma_released_code_rerun.csv")
    embedder = CachedEmbedder(get_embedder(), EmbeddingCache(default_cache()))
    by_default, by_code = (run(benchmark, embedder, published=published) for published in (False, True))
    rows = our_rows(by_code)
    first = by_first_occurrence(benchmark, embedder)
    misplaced = our_rows(first)
    return [
        "## Ours, counted as the released code counts, against the report",
        "",
        'Percent, of characters, `min_rule="touching"`, means over 472 questions.',
        "",
        *table(rows, published),
        "",
        "The largest differences, in points:",
        "",
        *largest(rows, published),
        "",
        "## The same against the released code run again",
        "",
        *table(rows, rerun),
        "",
        *largest(rows, rerun),
        "",
        "## The same with every chunk placed at the first occurrence of its text, as the released code places it",
        "",
        *table(misplaced, rerun),
        "",
        *largest(misplaced, rerun),
        "",
        "## PrecisionΩ, chunks at first occurrences",
        "",
        *omega_table(first, published, rerun),
        "",
        "## Ours by the defaults, against the report",
        "",
        'Percent, of characters, `min_rule="holding"`, the default.',
        "",
        *table(our_rows(by_default), published),
        "",
        *largest(our_rows(by_default), published),
        "",
        "## Ours, of tokens",
        "",
        "Percent, of cl100k_base tokens, by the defaults.",
        "",
        *plain_table(by_default),
        "",
        "## Ours, corpus by corpus",
        "",
        "Recall / Precision / IoU, percent, of tokens, by the defaults; the number of questions behind each corpus.",
        "",
        *(line for k in KS for line in (f"k = {k}:", "", *corpus_table(by_default, k), "")),
    ]


if __name__ == "__main__":
    main()
