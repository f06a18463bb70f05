"""Compares this edition with an earlier one: every strategy's chunks and every score, as digests.

    python -m integration_tests.editions --write FILE   # with the earlier edition: PYTHONPATH=its/src
    python -m integration_tests.editions --check FILE   # with this one; exit code 1 where something differs
    python -m integration_tests.editions --show KEY     # what a digest is of: run with both editions, and diff

Commit 920d294 wrote `edition_920d294.json`. A key names what was computed; its digest is of canonical JSON, where a
float64 has all its digits. Seconds are left out, and words that may be chosen anew: verdicts and messages. Intervals of
single means, and the number of questions needed, are left out, too: 0.2.0 computes them otherwise.
The embedder is a hashed bag of words, and the language model answers by the prompt's digest: a changed prompt is a
difference. MiniLM embeds lochmere only. Its vectors' last digits depend on the processor: no digest holds them, but
those of its runs hold scores, so that 18 keys differ on another processor. On one processor both editions' scores are
equal.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import random
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from hashlib import blake2b, sha256
from itertools import product
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

import numpy as np

# The edition's names stand here and in the section "The edition", and the digests hold none of them.
from chunkcore.answers import answer_questions, score_answers
from chunkcore.chunkers import get_chunker, strategies
from chunkcore.chunkers.overlap import SemanticOverlap
from chunkcore.datasets import load_dataset
from chunkcore.document import Chunk, Document
from chunkcore.errors import MissingExtraError
from chunkcore.evaluation.alignment import Aligner
from chunkcore.evaluation.benchmarks import load_benchmark, load_segmented
from chunkcore.evaluation.benchmarks.benchmark import Benchmark
from chunkcore.evaluation.benchmarks.documents import load_documents
from chunkcore.evaluation.benchmarks.stitching import sample_queries, stitch
from chunkcore.evaluation.experiment import run_experiment
from chunkcore.evaluation.measures import measures_at
from chunkcore.evaluation.results import Report
from chunkcore.evaluation.run_files import read_run, write_pool, write_run
from chunkcore.evaluation.scoring import score
from chunkcore.evaluation.segmentation import SegmentOptions, score_segments
from chunkcore.evaluation.statistics.comparison import compare
from chunkcore.models import CachedEmbedder, EmbeddingCache, LateEmbedder, get_embedder
from chunkcore.models.base import TextTokens
from chunkcore.models.loading import EmbedderCounter
from chunkcore.questions import GenerationOptions, generate_benchmark, validate_benchmark
from chunkcore.retrieval import CallableReranker, Reranked, Sharded, get_retriever
from chunkcore.run import Retrieved, Run
from chunkcore.tuning import Branch, Range, Space, TuneOptions, Values, tune
from chunkcore.update import plan_update

EDITION = Path(__file__).with_name("edition_920d294.json")
DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"
COLLECTIONS = ("chroma", "cuad", "evidence_inference", "covid_qa", "qmsum", "fairytaleqa", "wiki300")
Found = Iterator[tuple[str, Any]]  # keys, and what JSON knows

# What is compared: strategies with their options, "-" for the defaults. "semantic" and "embedder" are the hashed one.

_SIZES = "- size=50 size=500,counter=characters size=60,counter=words size=40,counter=embedder"
_OVERLAPS = "size=50,overlap=10 overlap=100 size=100,overlap=semantic"
_BLOCKS = f"{_SIZES} size=100,minimum=40 size=80,maximum=120"
_BREAKPOINTS = (
    "- threshold=standard_deviation threshold=interquartile threshold=gradient threshold=absolute_gradient "
    "threshold=distance,amount=0.5,buffer=0,empty_end=true min_size=30,max_size=100,splitter=default"
)
STRATEGIES = {
    "recursive": f"{_SIZES} {_OVERLAPS} size=400,overlap=80,counter=characters size=50,keep=end,strip=false "
    "size=50,keep=drop size=50,maximum=text,minimum=25",
    "fixed_token": f"{_SIZES} {_OVERLAPS} size=100,minimum=60",
    "sentence": rf"{_BLOCKS} {_OVERLAPS} size=80,overlap_sentences=2 size=80,splitter=regex:[.?!]\s+",
    "fixed_sentences": "- sentences=3,overlap=1 sentences=2,minimum=2 chunks=7",
    "markdown": f"{_BLOCKS} size=100,heading_level=2",
    "html": f"{_BLOCKS} size=60,content=text",
    "code": f"{_BLOCKS} size=30,language=python",
    "auto": _BLOCKS,
    "breakpoint": _BREAKPOINTS,
    "kamradt": _BREAKPOINTS,
    "kamradt_modified": "- size=50,minimum=20 size=200,goal=mean,piece_size=50,buffer=3 size=50,counter=embedder",
    "cluster_semantic": "- max_size=200,piece_size=20,min_size=40 maximum=text,mean=0.2",
    "dual_semantic": "- k=1.5,d=5,max_size=200,min_size=20 spread=root,maximum=pieces",
    "dbscan": "- max_size=50,eps=0.5,position_weight=0.2 counter=embedder,min_samples=3",
    "single_linkage": "- max_size=50,stop=0.7 chunks=9,counter=words",
    "hierarchical": "segmenter=texttiling,k=0.8 segmenter=texttiling:5:0.5,max_segment=50,max_size=200",
    "agentic": "- window=300,max_size=100,min_size=20",
    "contextual": '- chunker="recursive:size=60,counter=words",context_size=10,document_size=300',
    "llm_semantic": "- window=300,max_size=100,piece_size=20",
    "lumber": "- window=200,max_size=100,min_size=20",
    "propositions": "- passage_size=50,max_size=30,passage_minimum=20",
}
READS = {"embedder": 60_000, "llm": 15_000, "": 120_000}  # characters of a collection, by the model that is asked

RETRIEVERS = ("dense", "dense:cluster_only=true", "late", "bm25", "hybrid", "hnsw:threads=1", "bm25+rerank")
MEASURES = (
    *(f"{name}@{k}" for name in ("Recall", "Precision", "IoU", "F1", "HitRate") for k in (1, 5, 10, "min", "500tok")),
    *(f"{name}@5[{unit}]" for name in ("Recall", "F1", "HitRate") for unit in ("character", "sentence", "document")),
    *("PrecisionOmega", "PrecisionOmega[character]", "PrecisionOmega[sentence]", "Recall@min[character]"),
    *("MRR", "MAP", "nDCG", "MRR@5", "MAP@10", "nDCG@10", "nDCG@500tok", "MAP[document]", "nDCG@5[sentence]"),
    *("DCG@5", "ChunkPrecision@5", "ChunkPrecision@5[character]"),
)
OF_PARTS = ("F1@5[part]", "Recall@10[part]", "MAP[part]", "nDCG@5[part]")
OF_ANSWERS = ("ExactMatch", "SquadF1", "RougeL", "Bleu1", "Bleu4", "BertScore", "AnswerCosine")
JUDGED = ("Faithfulness", "Relevancy")
COSTS = (
    *("source_tokens", "embedder_calls", "embedded_texts", "embedded_tokens", "query_texts", "query_tokens"),
    *("llm_calls", "llm_kept_answers", "llm_input_tokens", "llm_output_tokens", "money"),
)
RULES = ({"min_rule": "touching"}, {"omega_rule": "repeats"}, {"counter": "words"})

_PAGE = "<h1>Tea</h1><p>Pour it &amp; wait. Drink.</p><ul><li>Green<li>Black</ul>"
_ROWS = "<table><tr><th>Kind</th><th>Minutes</th></tr><tr><td>Oolong</td><td>4</td></tr></table>" * 9
_CODE = "class Tea:\n    '''Tea.'''\n\n    def brew(self, n):\n        return n * 2\n\n\n"
_SIGNS = "A\r\nb.\r\n\r\n\u200bCafe\u0301 \ud800 \x00 <|endoftext|> \U0001f468\u200d\U0001f469\u200d\U0001f467. "
ODD = {
    "page.html": f"<html><body>{_PAGE}{_ROWS}<pre>boil(water)\n</pre></body></html>",
    "tea.py": "import os\n\n\n" + _CODE * 30,
    "odd.txt": _SIGNS + "これは文です。次の文。" * 40 + "هذه جملة. " * 40 + "x" * 900 + "\n\n\n\t" + "no end " * 200,
    "short.md": "# One\n",
    "tables.md": "# Prices\n\n| a | b |\n|---|---|\n" + "| 1 | two |\n" * 60 + f"\n## Code\n\n```\n{_CODE * 9}```\n",
}

# Models without weights, the same on every machine.

_WORD = re.compile(r"\w+|[^\w\s]")


@cache
def _token(word: str) -> int:
    """Numbers from 2; 0 and 1 stand around a text."""
    return 2 + int.from_bytes(blake2b(word.lower().encode("utf-8", "surrogatepass"), digest_size=7).digest(), "big")


@cache
def _vector(token: int) -> bytes:
    return blake2b(token.to_bytes(8, "big"), digest_size=32).digest()


class HashedEmbedder:
    """A word's vector is its digest, a text's is their sum: sums of whole numbers are the same everywhere."""

    name = fingerprint = "hashed"
    max_tokens = 256
    symmetric = True

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        words = (_WORD.findall(text)[: self.max_tokens - 2] for text in texts)
        sums = np.array([self._rows(map(_token, own or [""])).sum(axis=0) for own in words]).reshape(-1, 32)
        return (sums / np.sqrt((sums * sums).sum(axis=1, keepdims=True))).astype(np.float32)

    embed_queries = embed_documents

    def count_tokens(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([len(_WORD.findall(text)) + 2 for text in texts], dtype=np.int64)

    def tokenize(self, text: str) -> TextTokens:
        words = [(_token(each.group()), *each.span()) for each in _WORD.finditer(text)]
        return TextTokens(*np.array([(0, 0, 0), *words, (1, len(text), len(text))], dtype=np.int64).T, 1, 1)

    def embed_tokens(self, windows: Sequence[np.ndarray]) -> list[np.ndarray]:
        rows = [self._rows(own.tolist()) for own in windows]
        return [(each / 64 + each.sum(axis=0) / (256 * len(each))).astype(np.float32) for each in rows]

    def _rows(self, tokens: Iterator[int]) -> np.ndarray:
        return np.frombuffer(b"".join(map(_vector, tokens)), dtype=np.int8).reshape(-1, 32).astype(np.int64)


class HashedLLM:
    """Answers with JSON of the schema, by the messages' digest: words and sentences of the prompt; or nonsense."""

    name = fingerprint = "hashed-llm"
    concurrency = 1

    def complete(self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any]) -> str:
        chance = random.Random(digest([list(messages), schema]))
        shown = max((each["content"] for each in messages if each["role"] == "user"), key=len)
        answer = json.dumps(self._answer(schema, chance, shown))
        return answer if chance.random() < 0.9 else chance.choice(["", "No.", "{}", "[]", answer[: len(answer) // 2]])

    def _answer(self, schema: Mapping[str, Any], chance: random.Random, shown: str, listed: bool = False) -> Any:
        kind = schema["type"] if isinstance(schema["type"], str) else chance.choice(schema["type"])
        if kind == "object":
            return {name: self._answer(each, chance, shown, listed) for name, each in schema["properties"].items()}
        if kind == "array":
            items = [self._answer(schema["items"], chance, shown, True) for _ in range(chance.randint(1, 4))]
            return _ascending(items, schema["items"])
        if kind == "integer":
            return chance.randint(schema.get("minimum", 0), schema.get("maximum", 9))
        if kind == "string":
            pieces = [each for each in re.split(r"(?<=[.?!])\s+|\n+", shown) if len(each) > 30]
            if listed and pieces:  # the first ones: a passage stands before what else is told
                return chance.choice(pieces[: len(pieces) // 2 + 1])
            return " ".join(chance.choices(shown.split(), k=8))
        return chance.random() < 0.5 if kind == "boolean" else None


def _ascending(items: list[Any], schema: Mapping[str, Any]) -> list[Any]:
    """As models number things: each number once, in order; of sections the first begins at the beginning."""
    if schema["type"] == "integer":
        return sorted(set(items))
    name = next((name for name, each in schema.get("properties", {}).items() if each["type"] == "integer"), "")
    if not name:
        return items
    items[0][name] = schema["properties"][name]["minimum"]
    return [item for _, item in sorted({item[name]: item for item in items}.items())]


HASHED, LLM = HashedEmbedder(), HashedLLM()


@cache
def minilm() -> Any:
    """The default model; each edition keeps vectors in a file of its own, as it sets aside another's."""
    code = Path(inspect.getfile(EmbeddingCache)).read_text(encoding="utf-8")
    kept = os.environ.get("EDITIONS_CACHE") or Path(gettempdir(), f"chunkcore-editions-{digest(code)}.sqlite")
    return CachedEmbedder(get_embedder(), EmbeddingCache(kept))


# The edition.


def build(spec: str, embedder: Any = HASHED) -> Any:
    """A strategy whose models are ours."""
    name, _, options = spec.partition(":")
    known = strategies.get(name).option_names()
    unasked = ["llm=openai:none@http://localhost/v1"] if "llm" in known else []
    made = get_chunker(f"{name}:{','.join([*unasked, *filter(None, [options])])}".rstrip(":"))
    own = {option: model for option, model in {"embedder": embedder, "llm": LLM}.items() if option in known}
    if isinstance(getattr(made, "overlap", 0), SemanticOverlap):
        own["overlap"] = replace(made.overlap, embedder=embedder)
    return replace(made, **own, **({"counter": EmbedderCounter(embedder)} if "counter=embedder" in spec else {}))


def retriever(name: str) -> Any:
    if name == "sharded":
        return Sharded(size=100)
    if not name.endswith("+rerank"):
        return get_retriever(f"{name}:fusion=ranks" if name == "hybrid" else name)  # 0.1 knew ranks alone
    shared = CallableReranker(lambda pairs: [len({*q.split()} & {*t.split()}) for q, t in pairs], name="shared words")
    return Reranked(method=get_retriever(name.removesuffix("+rerank")), model=shared, depth=20)


def reports_of(
    benchmark: Benchmark, specs: Sequence[str], retrievers: Sequence[str], embedder: Any = HASHED
) -> dict[str, Report]:
    """One report a retriever and strategy, by names of our own."""
    keys = [f"{how}/{spec}" for how, spec in product(retrievers, specs)]
    found = run_experiment(
        benchmark,
        [build(spec, embedder) for spec in specs],
        embedder,
        measures=[*measures_at(), *MEASURES, *(OF_PARTS if benchmark.name == "stitched" else ())],
        retrievers=[retriever(each) for each in retrievers],
        workers=1,
    )
    priced = [replace(report, cost=report.cost.priced(embedding=0.5)) for report in found]
    return {key: replace(report, name=key) for key, report in zip(keys, priced, strict=True)}


@cache
def documents_of(collection: str) -> Sequence[Document]:
    """Of a shared collection the shortest first, of more than 1,000 characters."""
    if collection == "odd texts":
        return [Document(name, text) for name, text in ODD.items()]
    if collection == "lochmere":
        return load_dataset("lochmere").documents
    found = load_documents(DATA / collection / ("corpora" if collection == "chroma" else ""))
    return sorted((Document(each.id, each.text) for each in found if each.size > 1_000), key=lambda each: each.size)


@cache
def benchmark_of(name: str) -> Benchmark:
    """lochmere, chroma, a part of covid, or the same stitched."""
    if name in ("lochmere", "chroma"):
        return load_dataset(name) if name == "lochmere" else load_benchmark(DATA / name)
    whole = load_benchmark(DATA / "covid_qa")
    documents = whole.documents[:12]
    queries = [query for query in whole.queries if query.evidence[0].document_id in {each.id for each in documents}]
    part = sample_queries(replace(whole, documents=documents, queries=queries), 150)
    return replace(stitch(part, sentences=700) if name == "stitched" else part, name=name)


def chunk_row(chunk: Chunk) -> list[Any]:
    texts = [digest(chunk.text), digest(chunk.context), chunk.content_hash]
    numbers = [chunk.index, pairs(chunk.spans), chunk.token_count, list(map(pairs, chunk.segments)), chunk.derived]
    metadata = {key: value for key, value in chunk.metadata.items() if key != "fallback_reason"}  # a message
    return [chunk.document_id, *numbers, *texts, chunk.id, metadata]


def hit_row(hit: Retrieved) -> list[Any]:
    sure = rounded([hit.score, hit.certainty])
    return [hit.document_id, pairs(hit.spans), *sure, digest(hit.text), hit.how, hit.id]


def pairs(spans: Sequence[Any]) -> list[list[int]]:
    return [[span.start, span.end] for span in spans]


def run_rows(run: Run) -> dict[str, Any]:
    return {query: list(map(hit_row, hits)) for query, hits in run.results.items()}


def difference_row(found: Any) -> list[Any]:
    """Of two systems: what their comparison and tuning both tell."""
    return [found.mean, found.low, found.high, found.distinct, found.equivalent, found.wins, found.losses]


def report_parts(report: Report) -> dict[str, Any]:
    """All of a report but seconds."""
    cost = report.cost and [getattr(report.cost, each) for each in COSTS]
    lengths = report.chunks and [report.chunks.tokens.tolist(), report.chunks.truncated, report.chunks.tokens_lost]
    return {
        "measures": {str(measure): values.tolist() for measure, values in report.scores.items()},
        "tokens": {str(k): values.tolist() for k, values in report.retrieved_tokens.items()},
        "found": {str(k): rows for k, rows in report.found.items()},
        "run": run_rows(report.run) | {"pool": list(map(hit_row, report.run.pool or ()))},
        "rest": [
            *(report.query_ids, report.collections, report.unanswered, report.documents_digest, report.min_rule),
            *(report.located, rounded(report.certainty), lengths, cost),
            report.search_recall and report.search_recall.to_dict(),
        ],
    }


# The probes: each yields keys and values.


def chunks(spec: str, embedder: Callable[[], Any], collection: str, reads: float) -> Found:
    """Of a collection's first two documents, and of as many as have so many characters."""
    chosen: list[Document] = []
    for each in documents_of(collection):
        if len(chosen) < 2 or sum(own.size for own in chosen) + each.size <= reads:
            chosen.append(each)
    rows = list(map(chunk_row, build(spec, embedder()).chunk_many(chosen)))
    first = {each.id for each in chosen[:2]}
    yield "2 documents", [row for row in rows if row[0] in first]
    if reads:
        yield "documents", rows


def scores(name: str, embedder: Callable[[], Any], quick: bool = False) -> Found:
    """Retrievers over strategies; comparisons, files and other rules on the first reports."""
    benchmark, model = benchmark_of(name), embedder()
    plain = ("recursive:size=100", "sentence:size=60,overlap=20")
    segments = ("recursive:size=80,overlap=semantic,counter=words", "hierarchical:segmenter=texttiling,max_size=300")
    if quick:
        reports = reports_of(benchmark, plain, ("dense", "bm25"), model)
    else:
        reports = reports_of(benchmark, plain + segments, RETRIEVERS, model)
        reports |= reports_of(benchmark, plain, ["sharded"], model)
    for key, report in reports.items():
        yield from ((f"{key}/{part}", value) for part, value in report_parts(report).items())
    some = list(reports.values())[:6]
    documents = {each.id: each.evidence[0].document_id for each in benchmark.queries}
    for measure, clusters in product(("Recall@5", "IoU@5", "nDCG@10"), (None, documents)):
        found = compare(some, measure, clusters=clusters, resamples=2_000, seed=3)
        apart = [
            [each.a, each.b, *difference_row(each), each.p_value, each.adjusted_p, each.effect]
            for each in found.differences
        ]
        rest = [found.best, found.tied, found.firsts]
        yield f"compared/{measure}/{'by document' if clusters else ''}", rounded([apart, rest])
    for rules in RULES:
        report = score(some[1].run, benchmark, ["Recall@min", "IoU@5", "PrecisionOmega", "F1@200tok"], **rules)
        yield f"rules/{rules}", report_parts(report)["measures"]
    yield from files(some[0].run, benchmark)


def files(run: Run, benchmark: Benchmark) -> Found:
    """A run in both formats, as bytes and read again; changed texts that are located."""
    short = {key: [replace(hit, score=round(hit.score, 6)) for hit in hits] for key, hits in run.results.items()}
    run = replace(run, name="run", results=short)
    with TemporaryDirectory() as folder:
        pool = write_pool(run.pool, Path(folder, "pool.jsonl"), benchmark)
        for ending in ("jsonl", "trec"):
            path = write_run(run, Path(folder, f"run.{ending}"), benchmark)
            yield f"files/{ending}", path.read_text(encoding="utf-8").splitlines()
            yield f"files/{ending}, read", run_rows(read_run(path, benchmark, chunks=pool))
        yield "files/pool", pool.read_text(encoding="utf-8").splitlines()
    aligner = Aligner(benchmark.documents)
    texts = [benchmark.document(hit.document_id).text[hit.spans[0].start :][:200] for hit in run.pool[:600:20]]
    changes = (str.upper, lambda text: "Title\n" + " ".join(text.split()), lambda text: text[:60] + text[64:])
    yield "files/located", [hit_row(aligner.locate(change(text))) for text, change in product(texts, changes)]


def late_vectors() -> Found:
    """Of late chunking, short and long windows."""
    chosen = documents_of("lochmere")
    own = list(build("recursive:size=60").chunk_many(chosen))
    for window in (32, 256):
        vectors = LateEmbedder(HASHED, window=window, overlap=10).embed_chunks(chosen, own)
        yield f"window {window}", rounded(vectors[:, :4].tolist())


def updates() -> Found:
    """Which of a document's chunks stay when its text changes."""
    for each, spec in product(documents_of("lochmere"), ("recursive:size=50", "sentence", "fixed_token")):
        chunker, middle = build(spec), each.size // 2
        changed = replace(each, text=f"{each.text[:middle]}New. {each.text[middle:]}", marks=())
        plan = plan_update(chunker.chunk(each), changed, chunker)
        kept = [[one.old.id, one.new.id] for one in plan.stay]
        yield f"{spec}/{each.id}", [kept, [one.id for one in plan.go], [one.id for one in plan.come]]


def segments(collection: str) -> Found:
    """Boundaries against the texts' own."""
    texts = load_segmented(DATA / collection)[:5]
    specs = ("sentence:size=100", "fixed_sentences", "breakpoint", "hierarchical:segmenter=texttiling")
    for options in (SegmentOptions(), SegmentOptions(unit="character", tolerance=20), SegmentOptions(tolerance=2)):
        for spec, report in zip(specs, score_segments(texts, list(map(build, specs)), options), strict=True):
            arrays = {measure: values.tolist() for measure, values in report.scores.items()}
            rest = [report.text_ids, report.segments.tolist()]
            yield f"{options.unit} {options.tolerance}/{spec}", [arrays, rest]


def answers() -> Found:
    """What a model answers, and every measure of it."""
    benchmark = benchmark_of("lochmere")
    (report,) = reports_of(benchmark, ["sentence:size=80"], ["dense"]).values()
    for k in (3, "300tok"):
        found = answer_questions(benchmark, report.run, LLM, k)
        rows = {key: [own.text, own.passages, own.choice, not own.failure] for key, own in found.answers.items()}
        yield f"{k}/answers", rows
        scored = score_answers(benchmark, found, OF_ANSWERS + JUDGED, embedder=HASHED, judge=LLM)
        yield from (
            (f"{k}/{str(measure).partition('@')[0]}", rounded(values.tolist()))
            for measure, values in scored.scores.items()
        )


def tuning() -> Found:
    """What was tried, and what was chosen. Other versions of Optuna may propose other sizes."""
    sizes = {"size": Range(low=40, high=300, log=True), "overlap": Values(values=(0, 0.25), share_of="size")}
    space = Space(branches=(Branch(strategy="recursive", parameters=sizes), Branch(strategy="fixed_sentences")))
    options = TuneOptions(trials=6, folds=3, measure="Recall@500tok", resamples=200, baseline="sentence:size=100")
    found = tune(benchmark_of("lochmere"), space, HASHED, options=options)
    yield "chosen", [found.winner.spec, [each.spec for each in found.front], [each.spec for each in found.folds]]
    yield "worth", rounded([found.held_out, found.picked, difference_row(found.difference)])
    for each in found.trials:
        arrays = [each.scores.tolist(), each.tokens.tolist()]
        yield f"trial {each.number}", [each.spec, each.chunks, each.embedded, *arrays]


def questions() -> Found:
    """What a model asks, what the filters leave, and what is wrong with it."""
    own = documents_of("lochmere")
    options = GenerationOptions(questions=30, concurrency=1, seed=5, patience=20)
    made = generate_benchmark(own, LLM, options, embedder=HASHED)
    yield "kept", made.rows
    yield "rejected", [[each.id, each.document_id] for each in made.rejections]
    yield "wrong", sorted([each.kind, each.query_id] for each in validate_benchmark(own, made.rows, embedder=HASHED))


def probes(quick: bool) -> dict[str, Callable[[], Found]]:
    """All of them by name; without ../shared/data those of lochmere and of the odd texts."""
    here = [name for name in COLLECTIONS if (DATA / name).exists()]
    hashed, found = (lambda: HASHED), {}
    for name, cls in strategies.items():
        if not cls.__module__.startswith("chunkcore."):  # registered by another test, or a package
            continue
        model = next((each for each in ("embedder", "llm") if each in cls.option_names()), "")
        for options, collection in product(STRATEGIES.get(name, "-").split(), ("lochmere", "odd texts", *here)):
            shared = collection in COLLECTIONS
            reads = inf if not shared or (options == "-" and not model) else READS[model]
            if quick and shared:
                reads = 0
            spec = name if options == "-" else f"{name}:{options}"
            found[f"chunks/{spec}/{collection}"] = partial(chunks, spec, hashed, collection, reads)
        # The weights that `hierarchical` uses by default are new in 0.2.
        if not quick and name != "hierarchical" and (model == "embedder" or name == "recursive"):
            spec = name if model else f"{name}:overlap=semantic"
            found[f"chunks/{spec} of MiniLM/lochmere"] = partial(chunks, spec, minilm, "lochmere", inf)
    found |= {"late/lochmere": late_vectors, "updates/lochmere": updates, "answers/lochmere": answers}
    found |= {"tuning/lochmere": tuning, "questions/lochmere": questions}
    found |= {f"segments/{name}": partial(segments, name) for name in ("wiki300", "qmsum") if name in here}
    found["scores/lochmere, few"] = partial(scores, "lochmere", hashed, quick=True)
    if quick:
        return found
    needs = {"lochmere": "", "chroma": "chroma", "covid": "covid_qa", "stitched": "covid_qa"}
    found |= {f"scores/{name}": partial(scores, name, hashed) for name, data in needs.items() if data in ("", *here)}
    return found | {"scores/lochmere, MiniLM": partial(scores, "lochmere", minilm)}


# Digests, and the command line.


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=list)


def digest(value: Any) -> str:
    return sha256(canonical(value).encode("ascii")).hexdigest()[:20]


def rounded(value: Any) -> Any:
    """With 9 digits, for what matrix products make, whose last digits are the processor's."""
    if isinstance(value, Mapping):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(each) for each in value]
    return f"{value:.9g}" if isinstance(value, float) else value


def results(chosen: Callable[[str], bool], *, quick: bool = False) -> Found:
    """Every key of the chosen probes, with its value. A probe whose package is not installed is left out."""
    for name, probe in probes(quick).items():
        if not chosen(name):
            continue
        began = time.process_time()
        try:
            yield from ((f"{name}/{key}", value) for key, value in probe())
        except MissingExtraError as error:
            print(f"left out: {name}: {error}", file=sys.stderr)
        if (seconds := time.process_time() - began) > 5:
            print(f"{seconds:5.0f} s  {name}", file=sys.stderr)


def differences(expected: Mapping[str, str], chosen: Callable[[str], bool], *, quick: bool = False) -> list[str]:
    """What differs, or is in one edition only, and how to look closer."""
    seen = {key: digest(value) for key, value in results(chosen, quick=quick)}
    gone = [] if quick else [key for key in expected if chosen(key) and key not in seen]
    return [
        f"{key}\n    expected {expected.get(key)}, seen {seen.get(key)}; in both editions run\n"
        f"    python -m integration_tests.editions --show {key!r}"
        for key in [*seen, *gone]
        if seen.get(key) != expected.get(key)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--write", type=Path, metavar="FILE", help="write the digests of the edition that is imported")
    task.add_argument("--check", type=Path, metavar="FILE", help="compare them with those of a file")
    task.add_argument("--show", metavar="KEY", help="print the values of all keys that begin so")
    parser.add_argument("--only", default="", metavar="KEY", help="the probes that begin so")
    parser.add_argument("--quick", action="store_true", help="lochmere, two documents of each collection; no model")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    prefix = options.show or options.only

    def chosen(name: str) -> bool:
        return name.startswith(prefix) or prefix.startswith(f"{name}/")

    if options.show:
        for key, value in results(chosen):
            rows = value.items() if isinstance(value, Mapping) else enumerate(value)
            if key.startswith(prefix):
                print(key, *(f"{row}: {canonical(each)}" for row, each in rows), sep="\n    ")
        return 0
    if options.write:
        found = {key: digest(value) for key, value in results(chosen)}
        options.write.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n", encoding="utf-8")
        return 0
    unlike = differences(json.loads(options.check.read_text(encoding="utf-8")), chosen, quick=options.quick)
    print(*unlike, f"{len(unlike)} differences", sep="\n")
    return int(bool(unlike))


if __name__ == "__main__":
    sys.exit(main())
