"""`passages` beside other systems at equal retrieved tokens: the numbers of docs/evidence/passages.md.

    python -m integration_tests.benchmarks.passages_table --shared ../shared --questions 100 [--only lochmere]
    python -m integration_tests.benchmarks.passages_table --shared ../shared --questions 60 --characters 100000 \\
        --embedder e5
    python -m integration_tests.benchmarks.passages_table --tables

Of each collection, documents up to 1.3 million characters and 300 questions at most are drawn with a fixed seed; no
titles are put before questions. Every row is asked at each budget. The numbers go to docs/evidence/data/passages.json,
those of a named embedder and a few systems to embedders.json, a collection at a time; `--tables` prints both as tables.
What other systems found is kept beside the cache of vectors. Intervals are of 10,000 paired resamples, of documents
where questions share them. "The best other" is chosen for each budget by itself, in hindsight. RedHop is a row of few
systems where the package `redhop` is installed.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from chunkcore import Benchmark, Document, Retrieved, get_counter, load_benchmark, load_dataset, run_retriever
from chunkcore.cli.options import default_cache
from chunkcore.evaluation.comparison import shared_documents
from chunkcore.evaluation.resampling import intervals, resampled_means, units_of
from chunkcore.evaluation.scoring import Scorer
from chunkcore.locating.alignment import Aligner
from chunkcore.retrieval import ChunkedCorpus, Index, TextVectors, WindowIndex, chunk_corpus, get_retriever
from chunkcore.retrieval.passages.index import KINDS, Passages
from integration_tests.benchmarks import framework_stages  # noqa: F401  # registers +rse and +automerge
from integration_tests.benchmarks.embedders import EMBEDDERS, embedder_of
from tests.results import mean_intervals

CHOSEN = ("lochmere", "chroma", "covid_qa", "cuad", "qmsum", "fairytaleqa", "evidence_inference")
CONFIRMED = ("legal_contractnli", "legal_privacy_qa", "policyqa", "xquad_en")
NAMES = "lochmere,Chroma,COVID-QA,CUAD,QMSum,FairytaleQA,Evidence Inference,ContractNLI,PrivacyQA,PolicyQA,XQuAD en"
COLLECTIONS = dict(zip((*CHOSEN, *CONFIRMED), NAMES.split(","), strict=True))
LABELS = COLLECTIONS | {"union": "all as one"}
BUDGETS = (250, 500, 1000, 2000)
KEYS = {"recall": "Recall", "whole": "AllEvidence", "precision": "Precision"}
CHARACTERS, QUESTIONS, UNION = 1_300_000, 300, 20  # UNION: questions of each collection
UNITS, STORE = "sentence:size=50", "recursive:size=200"
CHUNKERS = (UNITS, "recursive:size=100", STORE, "recursive:size=400")
OTHERS = [(chunker, name) for chunker in CHUNKERS for name in ("dense", "bm25", "hybrid", "hybrid:fusion=ranks")] + [
    (UNITS, "hybrid+window:1"),
    ("recursive:size=100", "hybrid+automerge"),
    ("recursive:size=100", "hybrid+rse"),
]
PASSAGES = ("passages", "passages:lexical", "passages:dense", "passages:balance=0.36")
BEHIND = ((100, "hits"), (50, "hits"), (10, "hits"), (10, "whole"))
MAIN, WORDS, MULTI = f"{UNITS} passages", f"{UNITS} passages:lexical", "four chunk sizes, reciprocal ranks"
DENSE, ENSEMBLE, REDHOP = f"{STORE} dense", f"{STORE} hybrid:fusion=ranks", "RedHop"
PERFECT, BEHIND_PERFECT = "all evidence first", "behind 100, all evidence first"
BEHIND_DENSE, BEHIND_ENSEMBLE = "behind 100, hits", "behind 100 of an ensemble, hits"
PAIRS = [(BEHIND_DENSE, DENSE), (BEHIND_ENSEMBLE, ENSEMBLE)]  # of three embedders
PAIRS += [(MAIN, f"{STORE} hybrid"), (WORDS, f"{STORE} bm25"), (MAIN, REDHOP)]
HITS = {
    DENSE: "the retriever alone",
    "behind 10, hits": "10 hits, their own text",
    BEHIND_DENSE: "100 hits, the default",
    "behind 10, whole": "10 hits, whole documents",
    PERFECT: "a retriever that is always right, alone",
    BEHIND_PERFECT: "100 of its hits",
}
SYSTEMS = {
    DENSE: "`dense`, 200",
    f"{STORE} bm25": "`bm25`, 200",
    ENSEMBLE: "both, by ranks",
    f"{STORE} hybrid": "`hybrid`, 200",
    REDHOP: "RedHop",
    WORDS: "`passages:lexical`",
    BEHIND_DENSE: "behind `dense`",
    BEHIND_ENSEMBLE: "behind both, by ranks",
    MAIN: "`passages`",
}
DATA = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "data"
HEAD = f"| {' | '.join(f'{budget:,}' for budget in BUDGETS)} |\n|---|" + "--:|" * len(BUDGETS)


class MultiScale:
    """Reciprocal ranks over several chunk sizes, as in AI21's multi-window chunk size: hits of each vote for units."""

    def __init__(self, units: ChunkedCorpus, indexes: Sequence[Index], depth: int = 50) -> None:
        self._units = units
        self._indexes = indexes
        self._depth = depth
        self._ranked: dict[str, list[Retrieved]] = {}

    def retrieve(self, query: str, k: int | None = None, max_tokens: int = 1000) -> list[Retrieved]:
        if query not in self._ranked:
            self._ranked[query] = self._rank(query)
        return within(self._ranked[query], max_tokens)

    def _rank(self, query: str) -> list[Retrieved]:
        votes = np.zeros(len(self._units))
        documents, extents = self._units.document_numbers, self._units.extents
        for index in self._indexes:
            chunks = index.search([query], self._depth).row(0)[0]
            for rank, chunk in enumerate(chunks.tolist(), start=1):
                start, end = index.corpus.extents[chunk]
                inside = (documents == index.corpus.document_numbers[chunk]) & (extents[:, 0] < end)
                votes[inside & (extents[:, 1] > start)] += 1 / (60 + rank)
        best = np.argsort(-votes, kind="stable")[:150].tolist()
        return [replace(self._units.retrieved[unit], score=float(votes[unit])) for unit in best]


def within(ranked: Sequence[Retrieved], max_tokens: int) -> list[Retrieved]:
    """The pieces, in their order, that a budget still holds."""
    pieces = []
    for piece, size in zip(ranked, get_counter("cl100k_base").count_many([each.text for each in ranked]), strict=True):
        if size <= max_tokens:
            pieces.append(piece)
            max_tokens -= size
    return pieces


class Perfect:
    """A retriever of whose chunks those that hold evidence come first."""

    def __init__(self, retriever: Index, benchmark: Benchmark) -> None:
        self._retriever = retriever
        self._evidence = {query.text: query.evidence for query in benchmark.queries}

    def retrieve(self, query: str, k: int | None = None, max_tokens: int = 1000) -> list[Retrieved]:
        right = [piece for piece in self._retriever.corpus.retrieved if self._is_right(query, piece)]
        others = [piece for piece in self._retriever.retrieve(query, 100) if not self._is_right(query, piece)]
        return [*right, *others][:k] if k else within([*right, *others], max_tokens)

    def _is_right(self, query: str, piece: Retrieved) -> bool:
        return any(
            row.document_id == piece.document_id
            and row.span.start < piece.spans[-1].end
            and piece.spans[0].start < row.span.end
            for row in self._evidence[query]
        )


class RedHop:
    """The package of this name, by its defaults over a folder of the documents; its texts are searched in them."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._aligner = Aligner(documents)
        self._names: dict[str, str] = {}
        with TemporaryDirectory() as folder:
            for number, document in enumerate(documents):
                path = Path(folder, f"{number}.txt")
                path.write_text(document.text, encoding="utf-8")
                self._names[path.name] = document.id
            self._document = import_module("redhop").Document.from_folder(folder)

    def retrieve(self, query: str, k: int | None = None, max_tokens: int = 1000) -> list[Retrieved]:
        pieces = []
        for citation in self._document.context(query, budget=max_tokens).citations:
            name = self._names[Path(citation["source"]).name]
            pieces.append(self._aligner.locate(citation["text"], document_id=name))
        return pieces


class Behind:
    """A retriever's first hits, and local words behind it."""

    def __init__(self, retriever: Index | Perfect, index: WindowIndex, hits: int, show: str) -> None:
        self._retriever = retriever
        self._index = index
        self._hits = hits
        self._show: Any = show

    def retrieve(self, query: str, k: int | None = None, max_tokens: int = 1000) -> list[Retrieved]:
        hits = self._retriever.retrieve(query, self._hits)
        return self._index.behind(query, hits, max_tokens=max_tokens, show=self._show)


def benchmark_of(name: str, shared: Path, questions: int = QUESTIONS, characters: int = CHARACTERS) -> Benchmark:
    """A draw of a collection, the same each time."""
    if name == "union":
        return union([benchmark_of(name, shared, UNION, characters) for name in COLLECTIONS])
    folder = shared / "data" / ("unseen" if name in CONFIRMED else "") / name
    benchmark = load_dataset(name) if name == "lochmere" else load_benchmark(folder)
    documents = sorted(benchmark.documents, key=lambda document: document.id)
    if name != "lochmere":
        random.Random(0).shuffle(documents)
    drawn, size = [], 0
    for document in documents:
        if size + document.size <= characters:
            drawn.append(document)
            size += document.size
    ids = {document.id for document in drawn}
    queries = [
        query
        for query in benchmark.queries
        if query.evidence and all(evidence.document_id in ids for evidence in query.evidence)
    ]
    random.Random(1).shuffle(queries)
    return Benchmark(name, drawn, queries[:questions])


def union(parts: Sequence[Benchmark]) -> Benchmark:
    """All collections as one; ids begin with the collection's name."""
    documents = [replace(document, id=f"{part.name}/{document.id}") for part in parts for document in part.documents]
    queries = []
    for part in parts:
        for query in part.queries:
            evidence = tuple(replace(row, document_id=f"{part.name}/{row.document_id}") for row in query.evidence)
            queries.append(replace(query, id=f"{part.name}/{query.id}", text=query.text, evidence=evidence))
    return Benchmark("union", documents, queries)


def systems(benchmark: Benchmark, vectors: TextVectors, few: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The name of each row, and what makes its retriever; with `few` those of three embedders and of the union."""
    corpora = {chunker: chunk_corpus(benchmark.documents, chunker) for chunker in ((UNITS, STORE) if few else CHUNKERS)}
    vectors = TextVectors(vectors.embedder, list(corpora.values()))

    def indexed(chunker: str, name: str) -> Callable[[], Any]:
        return lambda: get_retriever(name).index(corpora[chunker], vectors)

    for chunker, name in OTHERS:
        if not few or (chunker == STORE):
            yield f"{chunker} {name}", indexed(chunker, name)
    for name in PASSAGES[:2] if few else PASSAGES:
        yield f"{UNITS} {name}", indexed(UNITS, name)
    words, dense = indexed(UNITS, PASSAGES[1])(), indexed(STORE, "dense")()
    if few:
        yield REDHOP, lambda: RedHop(benchmark.documents)
        yield BEHIND_ENSEMBLE, lambda: Behind(indexed(STORE, "hybrid:fusion=ranks")(), words, 100, "hits")
    else:
        yield MULTI, lambda: MultiScale(corpora[UNITS], [indexed(chunker, "dense")() for chunker in corpora])
        perfect = Perfect(dense, benchmark)
        yield PERFECT, lambda: perfect
        yield BEHIND_PERFECT, lambda: Behind(perfect, words, 100, "hits")
    for hits, shown in BEHIND:
        yield f"behind {hits}, {shown}", partial(Behind, dense, words, hits, shown)


def is_other(system: str) -> bool:
    """Whether this project's passages have no part in a row, so that it stays as it is while they change."""
    return not system.startswith((MAIN, "behind"))


class Kept:
    """What other systems found, in a file: a second run asks this project's rows alone."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def values(self, key: Sequence[object], compute: Callable[[], Any]) -> np.ndarray:
        name = " ".join(map(str, key))
        if name not in self._rows:
            self._rows[name] = compute().tolist()
            self._path.write_text(json.dumps(self._rows))
        return np.array(self._rows[name])


def asked(retriever: Any, benchmark: Benchmark, scorer: Scorer) -> np.ndarray:
    """Of each kind of measure, each question's score at each budget."""
    columns = []
    for budget in BUDGETS:
        run = run_retriever(retriever, benchmark, None, budget)
        measures = [f"{measure}@{budget}tok" for measure in KEYS.values()]
        columns.append([*map(scorer.score(run, measures).values, measures)])
    return np.array(columns).transpose(1, 2, 0)


def scored(name: str, shared: Path, embedder: str, vectors: TextVectors, size: tuple[int, int]) -> dict[str, Any]:
    """A collection's rows: recall, whole evidence and precision of each question at each budget."""
    benchmark = benchmark_of(name, shared, *size)
    scorer = Scorer(benchmark)
    vectors.queries([query.text for query in benchmark.queries])
    kept = Kept(default_cache().with_name("passages_table.json"))
    scores: dict[str, dict[str, np.ndarray]] = {kind: {} for kind in KEYS}
    for system, retriever in systems(benchmark, vectors, bool(embedder) or name == "union"):
        if system == REDHOP and not find_spec("redhop"):
            continue

        def values(retriever: Callable[[], Any] = retriever) -> np.ndarray:
            return asked(retriever(), benchmark, scorer)

        found = kept.values((name, embedder, *size, system), values) if is_other(system) else values()
        for place, kind in enumerate(KEYS):
            scores[kind][system] = found[place]
    return {
        "questions": len(benchmark.queries),
        "documents": len(benchmark.documents),
        "clusters": shared_documents([query.evidence[0].document_id for query in benchmark.queries], "auto"),
        **scores,
    }


def difference(one: np.ndarray, other: np.ndarray, clusters: Sequence[str] | None) -> list[float]:
    """The mean difference in points, and its interval, as `compare` has it."""
    columns = (one - other)[:, None]
    means = resampled_means(columns, resamples=10_000, seed=0, clusters=clusters)
    low, high = intervals(means, units_of(columns, clusters), 0.95)
    return [round(100 * float(value), 1) for value in (np.mean(one - other), low[0], high[0])]


def summary(rows: dict[str, Any]) -> dict[str, Any]:
    """Means of every row; of `passages` and of what stands behind a store the differences from others, by budget."""
    recall, whole, precision = (rows[kind] for kind in KEYS)
    others = [name for name in (*(f"{chunker} {name}" for chunker, name in OTHERS), MULTI) if name in recall]
    clusters = rows["clusters"]
    means: dict[str, Any] = {"questions": rows["questions"], "documents": rows["documents"]}
    means["resampled"] = "documents" if clusters else "questions"
    for kind in KEYS:
        means[kind] = {system: np.round(100 * values.mean(axis=0), 1).tolist() for system, values in rows[kind].items()}
    for kind, values in (("recall", recall), ("whole", whole)):
        best = [max(others, key=lambda other, place=place: values[other][:, place].mean()) for place in range(4)]  # type: ignore[misc]
        means[f"{kind} best other"] = best
        means[f"{kind} against best"] = [
            difference(values[MAIN][:, place], values[other][:, place], clusters) for place, other in enumerate(best)
        ]
    for label, other in (("dense", DENSE), ("hybrid", f"{STORE} hybrid")):
        for system in (name for name in recall if name == MAIN or name.startswith("behind")):
            means[f"{system}, against {label}"] = [
                difference(recall[system][:, place], recall[other][:, place], clusters) for place in range(4)
            ]
        means[f"precision, against {label}"] = [
            difference(precision[MAIN][:, place], precision[other][:, place], clusters) for place in range(4)
        ]
    return means


def of_embedder(rows: dict[str, Any]) -> dict[str, Any]:
    """Mean recall of each system, and the differences of `PAIRS`, by budget."""
    recall, clusters = rows["recall"], rows["clusters"]
    result: dict[str, Any] = {"questions": rows["questions"], "documents": rows["documents"]}
    result |= {system: np.round(100 * values.mean(axis=0), 1).tolist() for system, values in recall.items()}
    for one, other in PAIRS:
        if other in recall:
            columns = zip(recall[one].T, recall[other].T, strict=True)
            result[f"{one} less {other}"] = [difference(*column, clusters) for column in columns]
    return result


def cells(values: Sequence[float], differences: Sequence[Sequence[float]]) -> list[str]:
    shown = []
    for value, (mean, low, high) in zip(values, differences, strict=True):
        text = f"{value:.1f} ({mean:+.1f}, {low:+.1f}…{high:+.1f})"
        shown.append(f"**{text}**" if high < 0 else text)
    return shown


def mean_recall(data: dict[str, Any], system: str, names: Sequence[str]) -> list[float]:
    """In the mean of these collections, by budget."""
    return np.mean([data[name]["recall"][system] for name in names], axis=0).tolist()


def tables(data: dict[str, Any]) -> Iterator[str]:
    """Markdown, as it stands on the page; what is surely behind is bold."""
    for names in (CHOSEN, CONFIRMED):
        yield f"\nrecall of `passages`, less the best of {len(OTHERS) + 1} others; all evidence whole\n"
        yield (f"| collection, questions {HEAD[: HEAD.index(chr(10))]} whole at 1,000 |\n|---|" + "--:|" * 5)
        for name in (name for name in names if name in data):
            row = data[name]
            shown = cells(row["recall"][MAIN], row["recall against best"])
            shown += cells(row["whole"][MAIN][2:3], row["whole against best"][2:3])
            yield f"| {COLLECTIONS[name]}, {row['questions']} | {' | '.join(shown)} |"
    yield "\nthe mean difference; the interval of these collections' questions; that of such collections\n"
    yield f"| collections, other {HEAD}"
    for label, members in (("chosen on", list(CHOSEN)), ("unseen", list(CONFIRMED)), ("in all", list(COLLECTIONS))):
        yield from mean_rows(label, [data[name] for name in members if name in data])
    yield "\nmean recall at 250/500/1,000/2,000 tokens\n\n| | chosen on | unseen |\n|---|--:|--:|"
    for system, label in HITS.items():
        means = [mean_recall(data, system, names) for names in (CHOSEN, CONFIRMED)]
        yield f"| {label} | {' | '.join('/'.join(f'{value:.1f}' for value in mean) for mean in means)} |"
    yield "\nbehind a retriever, recall at 1,000 tokens, and its difference from that retriever\n"
    yield "| collection | `dense`, 200 | behind 100 hits | less `hybrid` |\n|---|--:|--:|--:|"
    for name, row in data.items():
        shown = cells([row["recall"]["behind 100, hits"][2]], [row["behind 100, hits, against dense"][2]])
        mean, low, high = row["behind 100, hits, against hybrid"][2]
        shown = [f"{row['recall'][f'{STORE} dense'][2]:.1f}", *shown, f"{mean:+.1f} ({low:+.1f}…{high:+.1f})"]
        yield f"| {LABELS[name]} | {' | '.join(shown)} |"
    passages = (*PASSAGES[:1], PASSAGES[3], *PASSAGES[1:3])
    systems = [*(f"{UNITS} {name}" for name in passages), MULTI, f"{STORE} bm25", f"{STORE} hybrid"]
    head = "`passages` | `balance=0.36` | words alone | vectors alone | four chunk sizes | `bm25`, 200"
    yield (f"\nrecall at 1,000 tokens\n\n| collection | {head} | `hybrid`, 200 |\n|---|" + "--:|" * len(systems))
    for name, row in data.items():
        shown = [f"{row['recall'][system][2]:.1f}" if system in row["recall"] else "" for system in systems]
        yield f"| {LABELS[name]} | {' | '.join(shown)} |"


def embedder_tables(data: dict[str, Any]) -> Iterator[str]:
    """Means over the collections that all embedders have; then `passages` less RedHop, a row a collection."""
    names = [name for name in COLLECTIONS if all(name in rows for rows in data.values())]
    head = f"{' | '.join(EMBEDDERS[embedder] for embedder in data)} |\n|---|" + "--:|" * len(data)
    yield f"\nrecall at 500/1,000 tokens, the mean of {', '.join(LABELS[name] for name in names)}\n\n| system | {head}"
    for system, label in SYSTEMS.items():
        shown = []
        for rows in data.values():
            means = np.mean([rows[name][system] for name in names], axis=0)
            shown.append(f"{means[1]:.1f}/{means[2]:.1f}")
        yield f"| {label} | {' | '.join(shown)} |"
    yield f"\n| difference at 1,000 tokens | {head}"
    for one, other in PAIRS:
        shown = []
        for rows in data.values():
            mean, low, high = combined(np.array([rows[name][f"{one} less {other}"][2] for name in names]))
            shown.append(f"{mean:+.1f} ({low:+.1f}…{high:+.1f})")
        yield f"| {SYSTEMS[one]} less {SYSTEMS[other]} | {' | '.join(shown)} |"
    yield "\n`passages` less RedHop\n\n| collection, questions | 500 | 1,000 |\n|---|--:|--:|"
    for name, row in data["minilm"].items():
        shown = [f"{mean:+.1f} ({low:+.1f}…{high:+.1f})" for mean, low, high in row[f"{MAIN} less {REDHOP}"][1:3]]
        yield f"| {COLLECTIONS[name]}, {row['questions']} | {' | '.join(shown)} |"


def combined(differences: np.ndarray) -> tuple[float, float, float]:
    """The mean over collections, and its interval combined of theirs (mean, low, high; Zou and Donner 2008)."""
    means = differences[:, 0]
    low, high = np.sqrt(((differences[:, 1:] - means[:, None]) ** 2).sum(axis=0)) / len(means)
    mean = float(means.mean())
    return mean, mean - low, mean + high


def mean_rows(label: str, rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The mean over collections with the interval of these collections' questions, and that of such collections.

    The first is combined of the collections' own: Zou and Donner, Statistics in Medicine 27 (2008).
    """
    others = {"best other": "recall against best", "`hybrid`, 200": f"{MAIN}, against hybrid"}
    others["precision, `hybrid`"] = "precision, against hybrid"
    for other, key in [*others.items()][: 3 if label == "in all" else 1]:
        differences = np.array([row[key] for row in rows])  # collections, budgets, and mean, low and high
        means = differences[..., 0].mean(axis=0)
        reach = np.sqrt(((differences[..., 1:] - differences[..., :1]) ** 2).sum(axis=0)).T / len(rows)
        ends = zip(means, means - reach[0], means + reach[1], *mean_intervals(differences[..., 0]), strict=True)
        shown = [f"{mean:+.1f} ({a:+.1f}…{b:+.1f}; {c:+.1f}…{d:+.1f})" for mean, a, b, c, d in ends]
        yield f"| {len(rows)} {label}, {other} | {' | '.join(shown)} |"


def write(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def related(shared: Path, vectors: TextVectors) -> Iterator[str]:
    """For which share of its own and of other collections' questions an index says that nothing is related."""
    benchmarks = {name: benchmark_of(name, shared, 60, 300_000) for name in COLLECTIONS}
    for (name, benchmark), kinds in product(benchmarks.items(), (("lexical",), KINDS)):
        index = Passages(kinds=kinds).index(chunk_corpus(benchmark.documents, UNITS), vectors)
        assert isinstance(index, WindowIndex)
        said: dict[bool, list[bool]] = {True: [], False: []}
        for source, other in benchmarks.items():
            said[source == name] += [not index.is_related(query.text) for query in other.queries]
        own, others = (f"{100 * np.mean(said[kind]):.1f} % of {len(said[kind])}" for kind in (True, False))
        yield f"{COLLECTIONS[name]}, by {' and '.join(kinds)}: {own} of its own questions, {others} of the others'"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, help="the folder with data/")
    parser.add_argument(
        "--only", action="append", choices=[*COLLECTIONS, "union"], help="this collection; may be repeated"
    )
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="at most so many of a collection")
    parser.add_argument("--characters", type=int, default=CHARACTERS, help="at most so many of a collection")
    parser.add_argument("--embedder", choices=EMBEDDERS, default="", help="few systems, with this one")
    parser.add_argument("--folder", type=Path, help="of all-mpnet-base-v2")
    parser.add_argument("--cache", type=Path, help="the file of vectors")
    parser.add_argument("--related", action="store_true", help="how often nothing is said to be related")
    parser.add_argument("--tables", action="store_true", help="print the tables of what is there")
    options = parser.parse_args(arguments)
    path, others = DATA / "passages.json", DATA / "embedders.json"
    data, of_embedders = (json.loads(place.read_text()) if place.exists() else {} for place in (path, others))
    if options.shared:
        vectors = TextVectors(embedder_of(options.embedder, options.folder, options.cache))
        for line in related(options.shared, vectors) if options.related else ():
            print(line, flush=True)
        for name in [] if options.related else options.only or COLLECTIONS:
            began = time.perf_counter()
            size = options.questions, options.characters
            rows = scored(name, options.shared, options.embedder, vectors, size)
            if options.embedder:
                of_embedders.setdefault(options.embedder, {})[name] = of_embedder(rows)
                write(others, of_embedders)
            else:
                data[name] = summary(rows)
                data = {name: data[name] for name in LABELS if name in data}
                write(path, data)
            print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
    if options.tables:
        print("\n".join([*tables(data), *(embedder_tables(of_embedders) if of_embedders else ())]))


if __name__ == "__main__":
    main()
