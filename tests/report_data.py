"""Studies to render: a small one, a nasty one, one of realistic size. The scores are drawn, not measured."""

from __future__ import annotations

import numpy as np
from chunkcore import Document, Retrieved, Run, Span, compare
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, DataProblem, Evidence, Query
from chunkcore.evaluation.measures import measures_at
from chunkcore.evaluation.results import ChunkStatistics, Cost, Report, System
from chunkcore.study.comparing import ReportPage

NASTY = (
    "</script><script>document.title='pwned'</script>",
    "<img src=x onerror=\"document.title='pwned'\">",
    "<!--<script>",
    "]]> ' \" ` {{ 7*7 }} {% raw %} &lt;b&gt;",
    '=HYPERLINK("http://example.invalid")|cmd',
    "\u202eesrever\u202c \x1b[31mred\x07 \ud800 \x00",
    "javascript:document.title='pwned'",
    "\u2028\u2029 \u200f مرحبا 👩‍👩‍👧 \ufeff",
)


def study(
    *,
    names: tuple[str, ...] = ("recursive:size=200", "fixed_token:size=250", "cluster_semantic:size=400"),
    questions: int = 20,
    collections: tuple[str, ...] = ("",),
    texts: tuple[str, ...] = ("Where is the valve?",),
    excerpt: str = "The valve is under the lid.",
    ks: tuple[int | str, ...] = (5, 10, "min"),
    problems: tuple[DataProblem, ...] = (),
    measure: str = "Recall@5",
    seed: int = 0,
    price: float | None = None,
) -> ReportPage:
    """A study whose scores are drawn at random, each system a little worse than the one before."""
    draw = np.random.default_rng(seed)
    documents = tuple(Document(f"{text[:40]} {i}.md", f"{excerpt} {text}\n" * 3) for i, text in enumerate(texts))
    queries = tuple(
        Query(
            f"q{i}",
            f"{texts[i % len(texts)]} ({i})",
            tuple(
                Evidence(documents[i % len(documents)].id, Span(part * 5, len(excerpt) - part))
                for part in range(1 + (i % 5 == 0))
            ),
            collections[i % len(collections)],
            {"answer": texts[i % len(texts)]},
        )
        for i in range(questions)
    )
    benchmark = Benchmark(texts[0], documents, queries, problems)
    hardness = draw.beta(2.2, 0.9, questions)
    reports = [_report(name, benchmark, index, hardness, ks, draw, price) for index, name in enumerate(names)]
    comparison = compare(reports, measure, resamples=1000)
    return ReportPage(comparison, benchmark, settings={"Embedder": "all-MiniLM-L6-v2"}, written="2026-11-21")


class Prose:
    """Words that come up about as unevenly as those of a language, in lines."""

    def __init__(self, draw: np.random.Generator) -> None:
        self.draw = draw
        self.words = ["".join(draw.choice(list("etaoinshrdlu"), draw.integers(2, 11))) for _ in range(3_000)]

    def text(self, size: int) -> str:
        """So many characters."""
        count = size // 4
        ranks = np.minimum(self.draw.zipf(1.3, count), len(self.words)) - 1
        ends = self.draw.choice([" ", " ", " ", " ", ", ", ". ", "\n"], count)
        return "".join(self.words[rank] + end for rank, end in zip(ranks, ends, strict=True))[:size].ljust(size)


def large(
    questions: int = 1000, systems: int = 12, documents: int = 60, size: int = 60_000, depth: int = 20
) -> ReportPage:
    """A study of the size that the page is made for: drawn scores, prose that packs about as well as English."""
    draw = np.random.default_rng(5)
    prose = Prose(draw)
    made = tuple(Document(f"handbook/{number:03}.md", prose.text(size)) for number in range(documents))
    queries = []
    for number in range(questions):
        document, start = made[number % documents], int(draw.integers(0, size - 400))
        evidence = [
            Evidence(document.id, Span(start, start + int(draw.integers(60, 400)))) for _ in range(1 + number % 2)
        ]
        queries.append(
            Query(f"q{number}", f"Question {number}: {prose.text(90)}?", tuple(evidence), f"part {number % 5}")
        )
    benchmark = Benchmark("large", made, queries)
    hardness = draw.beta(2.2, 0.9, questions)
    reports = []
    for index in range(systems):
        name, cut = f"recursive:size={100 * (1 + index)}", (500 + 300 * index, 100 * (index % 2), depth)
        reports.append(_report(name, benchmark, index, hardness, (5,), draw, cut=cut))
    return ReportPage(compare(reports, "Recall@5", resamples=200), benchmark)


def _report(
    name: str,
    benchmark: Benchmark,
    index: int,
    hardness: np.ndarray,
    ks: tuple[int | str, ...],
    draw: np.random.Generator,
    price: float | None = None,
    cut: tuple[int, int, int] | None = None,
) -> Report:
    """A drawn report. `chunk_corpus`: size and overlap of its chunks in characters, and how many are retrieved."""
    count = len(benchmark.queries)
    size = (120, 190, 240, 330, 60, 400, 150)[index % 7]
    base = np.clip(hardness + draw.normal(-0.02 * index, 0.22, count), 0, 1)
    base[base > 0.7] = 1.0
    scores, found, tokens = {}, {}, {}
    for k in ks:
        pieces = k if isinstance(k, int) else 2
        tokens[k] = draw.normal(size * pieces, size / 3, count).clip(20)
        share = np.clip(base + 0.02 * (pieces - 5), 0, 1)
        found[k] = tuple(tuple([float(s)] * len(q.evidence)) for s, q in zip(share, benchmark.queries, strict=True))
        for measure in measures_at([k]):
            values = share if measure.kind == "Recall" else share * 60 / tokens[k]
            scores[measure] = np.full(count, 0.31) if measure.k is None else values
    run = _run(name, benchmark, *(cut or (max(5, size // 8), 4 * (index % 2), 10)), draw)
    lengths = draw.normal(size, size / 5, 400 - 40 * (index % 7)).clip(8, 1.5 * size).astype(np.int64)
    return Report(
        name,
        benchmark.name,
        tuple(query.id for query in benchmark.queries),
        tuple(query.collection for query in benchmark.queries),
        scores,
        tokens,
        found,
        {"spans": count * 10},
        (),
        ChunkStatistics(lengths, truncated=12 if size > 300 else 0, tokens_lost=900 if size > 300 else 0),
        {"chunk": 0.04 * (index + 1), "embed": 12.1 / (index + 1), "search": 0.003, "score": 0.02},
        run=run,
        cost=_cost(index, price),
        system=system(name),
    )


def system(name: str) -> System:
    """A drawn report's system, by its name."""
    return System(*name.split(" · "))


def _cost(index: int, price: float | None) -> Cost:
    """Each system's embedder reads more than that of the one before; the third also asks a language model."""
    tokens = 100_000 + 50_000 * index
    return Cost(
        source_tokens=100_000,
        embedder_calls=10 + index,
        embedded_texts=300 * (index + 1),
        embedded_tokens=tokens,
        llm_calls=7 if index == 2 else 0,
        llm_input_tokens=9_000 if index == 2 else 0,
        llm_output_tokens=1_000 if index == 2 else 0,
        money=None if price is None else price * tokens / 1e6,
    )


def _run(name: str, benchmark: Benchmark, size: int, overlap: int, depth: int, draw: np.random.Generator) -> Run:
    """Chunks of so many characters, drawn ones for each question, and one text that stands nowhere."""
    pool = [
        Retrieved(document.id, (Span(start, min(start + size + overlap, len(document.text))),))
        for document in benchmark.documents
        for start in range(0, len(document.text), size)
    ]
    results = {}
    for query in benchmark.queries:
        found = list(dict.fromkeys(draw.integers(0, len(pool), depth).tolist()))
        scores = np.sort(draw.random(len(found)))[::-1]
        pieces = [Retrieved(pool[i].document_id, pool[i].spans, float(s)) for i, s in zip(found, scores, strict=True)]
        lost = Retrieved("", (), 0.0, f"{query.text} {query.text}", match="unlocated", certainty=0.0)
        results[query.id] = [*pieces, lost]
    return Run(name, results, pool)


def nasty_study() -> ReportPage:
    """Every name and text is hostile."""
    problems = tuple(DataProblem(text, text) for text in NASTY)
    return study(names=NASTY, texts=NASTY, collections=NASTY[:3], excerpt="".join(NASTY), problems=problems)
