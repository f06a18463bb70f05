"""What the filters of generated questions drop at the thresholds that they propose: wrongly, and rightly.

    python -m integration_tests.benchmarks.generation_filters --shared ../shared

The questions of the Chroma report's five corpora were filtered by hand, so what is dropped of them is dropped wrongly
(but for what its authors passed over). Then every fifth question is asked a second time in other words, and every
fifth is given one more excerpt that stands elsewhere in its document: those are to be dropped.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from chunkcore import Benchmark, Evidence, Query, get_embedder, load_benchmark
from chunkcore.cli.options import default_cache
from chunkcore.models import CachedEmbedder, Embedder, EmbeddingCache
from chunkcore.questions import FilterThresholds
from chunkcore.questions.filters import Filtered, filter_questions
from chunkcore.questions.prompts import draw_sample

_EVERY = 5
PROPOSED = FilterThresholds()
# The second is what `chunkcore validate` goes by.
WAYS = {"proposed": FilterThresholds(relevance=None), "at 0.90": FilterThresholds(duplicate=0.9, relevance=None)}

REWORDINGS: dict[str, Callable[[str], str]] = {
    "small letters, no signs": lambda text: " ".join(re.findall(r"\w+", text.lower())),
    "asked politely": lambda text: f"Could you tell me {text[:1].lower()}{text[1:].rstrip('?')}, please?",
    "every sixth word left out": lambda text: " ".join(
        word for number, word in enumerate(text.split(), start=1) if number % 6
    ),
}


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    benchmark = load_benchmark(parser.parse_args().shared / "data" / "chroma")
    model = CachedEmbedder(get_embedder("all-MiniLM-L6-v2"), EmbeddingCache(default_cache(), private=True))
    by_document: dict[str, list[Query]] = defaultdict(list)
    for query in benchmark.queries:
        by_document[query.evidence[0].document_id].append(query)
    print(
        "| corpus | questions | relevance | dropped wrongly | foreign excerpts caught | duplicate | dropped wrongly |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|")
    caught: dict[tuple[str, str], list[bool]] = defaultdict(list)
    wrongly: Counter[tuple[str, str]] = Counter()
    for name, queries in by_document.items():
        clean = _filtered(benchmark, queries, model)
        foreign = _filtered(benchmark, _with_foreign(benchmark, queries), model)
        wrong = {stage: sum(each.stage == stage for each in clean.dropped) for stage in ("relevance", "duplicate")}
        chosen = range(0, len(queries), _EVERY)
        found = {each.index for each in foreign.dropped if each.stage == "relevance"}
        print(
            f"| {name} | {len(queries)} | {clean.relevance:.2f} | {wrong['relevance']} | "
            f"{sum(each in found for each in chosen)} of {len(chosen)} (at {foreign.relevance:.2f}) | "
            f"{clean.duplicate:.2f} | {wrong['duplicate']} |"
        )
        for kind, reword in REWORDINGS.items():
            again = [replace(each, id=f"{each.id}-again", text=reword(each.text)) for each in queries[::_EVERY]]
            for way, thresholds in WAYS.items():
                done = _filtered(benchmark, [*queries, *again], model, thresholds)
                dropped = {each.index for each in done.dropped}
                caught[kind, way] += [len(queries) + place in dropped for place in range(len(again))]
                wrongly[kind, way] += sum(index < len(queries) for index in dropped)
    print(f"\n| asked again | {' | '.join(f'caught, {way} | dropped wrongly' for way in WAYS)} |")
    print(f"|---|{'---:|' * 2 * len(WAYS)}")
    for kind in REWORDINGS:
        cells = [f"{sum(caught[kind, way])} of {len(caught[kind, way])} | {wrongly[kind, way]}" for way in WAYS]
        print(f"| {kind} | {' | '.join(cells)} |")


def _filtered(
    benchmark: Benchmark, queries: Sequence[Query], model: Embedder, thresholds: FilterThresholds = PROPOSED
) -> Filtered:
    excerpts = [
        [each.span.slice(benchmark.document(each.document_id).text) for each in query.evidence] for query in queries
    ]
    evidence = [query.evidence for query in queries]
    return filter_questions([query.text for query in queries], evidence, excerpts, model, thresholds)


def _with_foreign(benchmark: Benchmark, queries: Sequence[Query]) -> list[Query]:
    """Every fifth question with one more excerpt, of about the length of its first, from elsewhere."""
    changed = list(queries)
    for place in range(0, len(queries), _EVERY):
        query = queries[place]
        document = benchmark.document(query.evidence[0].document_id)
        size = len(query.evidence[0].span)
        spans = (draw_sample(document, size, 0, number).span for number in range(place, place + 100))
        far = next(
            span
            for span in spans
            if min(abs(span.start - each.span.start) for each in query.evidence) > 4_000 or len(document.text) < 9_000
        )
        changed[place] = replace(query, evidence=(*query.evidence, Evidence(document.id, far)))
    return changed


if __name__ == "__main__":
    main()
