"""`passages` beside other systems at equal retrieved tokens: the tables and the picture of docs/evidence/passages.md.

    python -m integration_tests.benchmarks.passages_table --shared ../shared [--only chroma] [--picture curves.svg]

The collections are whole. Questions of
CUAD, Evidence Inference and FairytaleQA do not name their document: its title stands before them. `passages` reads such
a title; so that like is compared with like, the other systems get the same there (the stage `named`). Every row
is read at each budget, passages assembled for it. Intervals are of 10,000 paired resamples of questions.

Each row is kept in a folder as soon as it is scored, and read from there the next time; --anew scores those of
`passages` again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from chunkcore.chunkers import get_chunker
from chunkcore.cli.options import default_cache
from chunkcore.evaluation.experiment import run_experiment, run_retriever
from chunkcore.evaluation.results import Report
from chunkcore.evaluation.scoring import Scorer
from chunkcore.evaluation.statistics.resampling import mean_intervals
from chunkcore.models import CachedEmbedder, EmbeddingCache, get_embedder
from chunkcore.models.base import Embedder
from chunkcore.retrieval import TextVectors, chunk_corpus, get_retriever
from chunkcore.retrieval import passages as retriever
from chunkcore.retrieval.corpus import Titles
from integration_tests.benchmarks.collections_table import UNNAMED, benchmark_of, describe
from integration_tests.benchmarks.embedder_effect import Truncated
from integration_tests.benchmarks.passages_picture import curves
from integration_tests.benchmarks.static_model import StaticModel

COLLECTIONS = {
    "lochmere": "lochmere",
    "chroma": "Chroma",
    "covid_qa": "COVID-QA",
    "cuad": "CUAD",
    "qmsum": "QMSum",
    "fairytaleqa": "FairytaleQA",
    "evidence_inference": "Evidence Inference",
}
BUDGETS = (125, 250, 500, 1000, 2000, 4000)
SHOWN = (250, 500, 1000, 2000)
UNITS = "sentence:size=50"
Row = tuple[str, str]  # a chunker and a retriever
Scores = dict[int, np.ndarray]  # by budget, of each question
MAIN: Row = (UNITS, "passages")
SIZES = (UNITS, "recursive:size=50", "recursive:size=100", "recursive:size=200", "recursive:size=400")
CUT_BY_MEANING = ("lochmere", "chroma", "covid_qa")  # where these strategies' chunks are searched, too
SEMANTIC = ("cluster_semantic:size=200", "dual_semantic:size=100,size_of=text")
FAMILIES = {  # the lines of the picture
    "dense": ("dense",),
    "bm25": ("bm25", "bm25:words=first5"),
    "hybrid": ("hybrid", "hybrid:fusion=ranks", 'hybrid:dense,"bm25:words=first5"'),
}
NAMED = {  # the same where questions name their document
    "dense": "dense+named",
    "bm25": "bm25+named",
    "bm25:words=first5": "bm25:words=first5+named",
    "hybrid": 'hybrid:"dense+named","bm25+named"',
    "hybrid:fusion=ranks": 'hybrid:"dense+named","bm25+named",fusion=ranks',
    'hybrid:dense,"bm25:words=first5"': 'hybrid:"dense+named","bm25:words=first5+named"',
}
STAGES = (
    (UNITS, "+merge"),
    (UNITS, "+window:1"),
    (UNITS, "+window:3"),
    ("recursive:size=100", "+automerge"),
    ("recursive:size=100", "+rse"),
    ("recursive:size=200", "+window:1"),
    ("recursive:size=200", "+rse"),
)
UNTOLD: list[Row] = [  # on the same collections, without the stage
    (chunker, each) for each in ("bm25", "hybrid") for chunker in (UNITS, "recursive:size=100", "recursive:size=200")
]
PARTS: dict[str, Row] = {
    "as it is": MAIN,
    "whole words": (UNITS, "passages:words=whole"),
    "dense alone": (UNITS, "passages:dense"),
    "words alone": (UNITS, "passages:lexical"),
    "first 50 hits": (UNITS, "passages:hits=50"),
    "first 200 hits": (UNITS, "passages:hits=200"),
}
UNREAD: Row = (UNITS, "passages, titles not read")
ABLATIONS: dict[str, Row] = {
    "units of 25 tokens": ("sentence:size=25", "passages"),
    "units of 100": ("sentence:size=100", "passages"),
    "`recursive` units of 50": ("recursive:size=50", "passages"),
    "no windows: scale 0": (UNITS, "passages:scales=0"),
    "scales 0, 1, 3, of both kinds": (UNITS, "passages:scales=0/1/3"),
    "all scales, of both kinds": (UNITS, "passages:scales=0/1/3/7/15/31/document"),
    "reciprocal ranks in place of scores": (UNITS, "passages, by ranks"),
}


class Table:
    """The rows of one collection, scored when first asked for and kept."""

    def __init__(self, name: str, shared: Path, embedder: Embedder, kept: Path, *, anew: bool) -> None:
        self.name = name
        self._benchmark = benchmark_of(name, shared)
        self._scorer: Scorer | None = None
        self._embedder = embedder
        self._kept = kept
        self._anew = anew
        self._scored: set[Row] = set()  # by this run
        self._rows: dict[Row, tuple[Scores, Scores]] = {}

    @property
    def questions(self) -> int:
        return len(self._benchmark.queries)

    @property
    def families(self) -> dict[str, list[Row]]:
        """The other systems by kind."""

        def told(name: str) -> str:
            return NAMED[name] if self.name in UNNAMED else name

        plain = {
            kind: [(size, told(name)) for name in names for size in SIZES]
            + [(semantic, names[0]) for semantic in SEMANTIC if self.name in CUT_BY_MEANING]
            for kind, names in FAMILIES.items()
        }
        stages = [(size, told("hybrid") + stage) for size, stage in STAGES if self.name not in UNNAMED]
        return plain | {"stages": stages}

    @property
    def others(self) -> list[Row]:
        return [row for rows in self.families.values() for row in rows]

    def recall(self, row: Row) -> Scores:
        return self._row(row)[0]

    def whole(self, row: Row) -> Scores:
        """By budget, the share of a question's pieces of evidence that stand whole in the context."""
        return self._row(row)[1]

    def best(self, rows: Sequence[Row], budget: int) -> Row:
        return max(rows, key=lambda row: float(np.nanmean(self.recall(row)[budget])))

    def first_fifths(self) -> list[float]:
        """How much of the evidence, and of the passages for 1,000 tokens, is in its document's first fifth."""
        sizes = {document.id: document.size for document in self._benchmark.documents}
        questions = self._benchmark.queries
        corpus = chunk_corpus(self._benchmark.documents, get_chunker(UNITS))
        index = get_retriever("passages").index(corpus, TextVectors(self._embedder))
        places = [[(each.document_id, each.span) for query in questions for each in query.evidence]]
        for what in ("titles not read", ""):
            with changed(what):
                found = run_retriever(index, questions, None, 1000).results.values()
            places.append([(each.document_id, span) for pieces in found for each in pieces for span in each.spans])
        return [
            sum(max(0.0, min(span.end, sizes[name] / 5) - span.start) for name, span in own)
            / sum(len(span) for _, span in own)
            for own in places
        ]

    def score(self, rows: Sequence[Row]) -> None:
        """Score what is not kept of these rows, the retrievers of a chunker together."""
        missing: dict[tuple[str, str], list[str]] = {}
        for chunker, name in rows:
            anew = self._anew and name.startswith("passages") and (chunker, name) not in self._scored
            if anew or not self._path((chunker, name)).exists():
                missing.setdefault((chunker, name.partition(", ")[2]), []).append(name)
        for (chunker, what), names in missing.items():
            if self._scorer is None:
                print(f"\n{self.name}: {describe(self._benchmark)}", file=sys.stderr, flush=True)
                self._scorer = Scorer(self._benchmark)
            began, left = time.perf_counter(), iter(names)
            with changed(what):
                run_experiment(
                    self._scorer,
                    [get_chunker(chunker)],
                    self._embedder,
                    retrievers=[name.partition(", ")[0] for name in names],
                    measures=[f"Recall@{budget}tok" for budget in BUDGETS],
                    done=lambda report, chunker=chunker, left=left: self._keep((chunker, next(left)), report),  # type: ignore[misc]
                )
            print(f"  {chunker}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)

    def _keep(self, row: Row, report: Report) -> None:
        recall = {budget: report.values(f"Recall@{budget}tok").tolist() for budget in BUDGETS}
        told = {"row": row, "recall": recall, "whole": {budget: _whole(report, budget) for budget in BUDGETS}}
        self._kept.mkdir(parents=True, exist_ok=True)
        self._path(row).write_text(json.dumps(told))
        self._scored.add(row)
        print(f"  {' · '.join(row)}", file=sys.stderr, flush=True)

    def _path(self, row: Row) -> Path:
        key = json.dumps([self.name, self._benchmark.documents_digest, *row, self._embedder.fingerprint, BUDGETS])
        return self._kept / f"{self.name}-{sha256(key.encode()).hexdigest()[:16]}.json"

    def _row(self, row: Row) -> tuple[Scores, Scores]:
        if row not in self._rows:
            self.score([row])
            told = json.loads(self._path(row).read_text())
            read = [{int(k): np.array(v, dtype=float) for k, v in told[each].items()} for each in ("recall", "whole")]
            self._rows[row] = read[0], read[1]
        return self._rows[row]


def _whole(report: Report, budget: int) -> list[float]:
    return [float(np.mean(np.array(shares) > 1 - 1e-9)) for shares in report.found[f"{budget}tok"]]


@contextmanager
def changed(what: str = "") -> Iterator[None]:
    """Within: an index of passages scores its questions once for all budgets; and what the row's name says."""
    scored = retriever._ByWindows.scored
    known: dict[tuple[Any, tuple[str, ...]], list[Any]] = {}  # by the index itself: an id may be given to another

    def once(index: Any, queries: Sequence[str], k: int) -> Iterator[Any]:
        key = index, tuple(queries)
        if key not in known:
            known[key] = [(numbers, scores.copy()) for numbers, scores in scored(index, queries, k)]
        return iter(known[key])

    with ExitStack() as stack:
        stack.enter_context(patch.object(retriever._ByWindows, "scored", once))
        if what == "by ranks":
            stack.enter_context(patch.object(retriever, "standardised", _ranked))
        if what == "titles not read":
            stack.enter_context(patch.object(Titles, "read", lambda self, question: ([], question)))
        yield


def _ranked(asked: Any, ranges: Any, told: Any = None) -> Any:
    """Reciprocal ranks (60, as `hybrid`) of each kind and scale, summed."""
    scores = np.zeros(len(ranges))
    for kind, question in asked:
        for values, _ in kind.values(question, ranges):
            wide = values if len(values) == len(scores) else np.repeat(values, ranges.lengths)
            ranks = np.empty(len(wide))
            ranks[np.argsort(-wide, kind="stable")] = np.arange(1, len(wide) + 1)
            scores += 1 / (60 + ranks)
    return scores


def percent(scores: np.ndarray) -> str:
    return f"{100 * np.nanmean(scores):.1f}"


def less(one: np.ndarray, other: np.ndarray) -> str:
    """The mean difference of two systems, with its interval."""
    apart = one - other
    low, high = mean_intervals(apart[~np.isnan(apart)][:, None])
    return f"{100 * np.nanmean(apart):+.1f}, {100 * low[0]:+.1f} to {100 * high[0]:+.1f}"


def heading(*cells: str) -> Iterator[str]:
    yield f"| {' | '.join(cells)} |"
    yield "|---|" + "--:|" * (len(cells) - 1)


def line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def against(tables: Sequence[Table], *, whole: bool = False) -> Iterator[str]:
    """Each collection's recall (or whole evidence), and how far the best of the others is, budget by budget."""
    yield from heading("collection, questions, others", *(f"{budget:,}" for budget in SHOWN))
    for table in tables:
        told = table.whole if whole else table.recall
        cells = []
        for budget in SHOWN:
            best = max(table.others, key=lambda row: float(np.nanmean(told(row)[budget])))
            cells.append(f"{percent(told(MAIN)[budget])} ({less(told(MAIN)[budget], told(best)[budget])})")
        yield line(f"{COLLECTIONS[table.name]}, {table.questions:,}, {len(table.others)}", *cells)


def rest(tables: Sequence[Table]) -> Iterator[str]:
    yield from heading("collection", *(f"{budget:,}" for budget in SHOWN), "at 1,000")
    for table in tables:
        best = {budget: table.best(table.others, budget) for budget in SHOWN}
        cells = [percent(table.recall(best[budget])[budget]) for budget in SHOWN]
        yield line(COLLECTIONS[table.name], *cells, "`{}`, `{}`".format(*best[1000]))


def tokens_needed(tables: Sequence[Table]) -> Iterator[str]:
    """Tokens for 80 and 90 % of the best recall of the others at 4,000, between budgets by interpolation."""
    yield from heading("collection", "80 %: `passages`", "best of the rest", "90 %: `passages`", "best of the rest")
    for table in tables:
        lines = [
            [float(np.nanmean(table.recall(MAIN)[budget])) for budget in BUDGETS],
            [float(np.nanmean(table.recall(table.best(table.others, budget))[budget])) for budget in BUDGETS],
        ]
        cells = []
        for share in (0.8, 0.9):
            for values in lines:
                wanted = share * lines[1][-1]
                reached = np.interp(wanted, [0, *np.maximum.accumulate(values)], [0, *BUDGETS])
                cells.append(f"{round(float(reached), -1):,.0f}")
        yield line(COLLECTIONS[table.name], *cells)


def parts(tables: Sequence[Table], rows: Mapping[str, Row], budget: int = 1000) -> Iterator[str]:
    yield from heading("", *(COLLECTIONS[table.name].split(",")[0] for table in tables))
    for name, row in rows.items():
        yield line(name, *(percent(table.recall(row)[budget]) for table in tables))


def staged(tables: Sequence[Table]) -> Iterator[str]:
    tables = [table for table in tables if table.families["stages"]]
    yield from heading("", *(COLLECTIONS[table.name].split(",")[0] for table in tables))
    for place, (size, stage) in enumerate(STAGES):
        own = [table.recall(table.families["stages"][place])[1000] for table in tables]
        yield line(f"`{size}`, `{stage}`", *map(percent, own))


def untold(tables: Sequence[Table]) -> Iterator[str]:
    yield from heading("collection", *(f"{budget:,}" for budget in SHOWN))
    for table in tables:
        best = [table.recall(table.best(UNTOLD, budget))[budget] for budget in SHOWN]
        yield line(COLLECTIONS[table.name], *map(percent, best))


def all_budgets(table: Table, rows: Sequence[Row]) -> Iterator[str]:
    yield from heading(f"{table.name}: chunks · retriever", *(f"{budget:,}" for budget in BUDGETS))
    for row in rows:
        yield line(" · ".join(row), *(percent(table.recall(row)[budget]) for budget in BUDGETS))


def titles(tables: Sequence[Table]) -> Iterator[str]:
    """What reading the title does, and the share of the evidence, and of what passages return, in the first fifth."""
    cells = [f"{told}: {budget:,}" for told in ("not read", "read") for budget in SHOWN]
    yield from heading("collection", *cells, "evidence in the first fifth", "returned: not read", "read")
    for table in tables:
        found = [percent(table.recall(row)[budget]) for row in (UNREAD, MAIN) for budget in SHOWN]
        yield line(COLLECTIONS[table.name], *found, *(f"{100 * share:.0f} %" for share in table.first_fifths()))


def weak(tables: Sequence[Table]) -> Iterator[str]:
    """A weaker model's best of three chunk sizes, beside its passages."""
    sizes = (UNITS, "recursive:size=100", "recursive:size=200")
    yield from heading("collection", "best `dense`", "best `hybrid`", "`passages:dense`", "`passages`", "words alone")
    for table in tables:
        rows = [table.best([(size, name) for size in sizes], 1000) for name in ("dense", "hybrid")]
        rows += [(UNITS, "passages:dense"), MAIN, (UNITS, "passages:lexical")]
        yield line(COLLECTIONS[table.name], *(percent(table.recall(row)[1000]) for row in rows))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, required=True, help="the folder with data/")
    parser.add_argument("--only", action="append", choices=list(COLLECTIONS), help="this collection; may be repeated")
    parser.add_argument("--what", choices=("page", "titles", "ablations", "weak"), default="page", help="which tables")
    parser.add_argument("--static", type=Path, help="a folder with a static model's files, for --what weak")
    parser.add_argument("--kept", type=Path, default=default_cache().parent / "passages_table", help="scored rows")
    parser.add_argument("--anew", action="store_true", help="score the rows of passages again")
    parser.add_argument("--all", action="store_true", help="every row at every budget, too")
    parser.add_argument("--picture", type=Path, help="write the curves as SVG to this file")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="the file that keeps embeddings")
    options = parser.parse_args(arguments)
    embedder = CachedEmbedder(get_embedder(), EmbeddingCache(options.cache))

    def tables(model: Embedder) -> list[Table]:
        names = options.only or COLLECTIONS
        return [Table(name, options.shared, model, options.kept, anew=options.anew) for name in names]

    if options.what == "ablations":
        found = tables(embedder)
        for table in found:
            table.score(list(ABLATIONS.values()))
        show("Recall at 1,000 tokens", parts(found, {"as it is": MAIN, **ABLATIONS}))
    elif options.what == "titles":
        found = [table for table in tables(embedder) if table.name in UNNAMED]
        show("Recall, and where it is from", titles(found))
    elif options.what == "weak":
        models: list[Embedder] = [Truncated(embedder, 64), *([StaticModel(options.static)] if options.static else [])]
        for model in models:
            show(f"{model.name}: recall at 1,000 tokens", weak(tables(model)))
    else:
        found = tables(embedder)
        for table in found:
            table.score([*PARTS.values(), *table.others, *(UNTOLD if table.name in UNNAMED else [])])
        show("`passages`, and how far it is from the best of the others", against(found))
        show("The best of the rest", rest(found))
        show("Evidence that stands whole in the context", against(found, whole=True))
        show("Tokens needed", tokens_needed(found))
        show("Recall at 1,000 tokens: parts", parts(found, PARTS))
        show("Recall at 1,000 tokens: stages after hybrid", staged(found))
        show("The best of 6 others that do not read titles", untold([each for each in found if each.name in UNNAMED]))
        if options.all:
            for table in found:
                show(COLLECTIONS[table.name], all_budgets(table, [*PARTS.values(), *table.others]))
        if options.picture:
            options.picture.write_text(curves({COLLECTIONS[table.name]: drawn(table) for table in found}, BUDGETS))


def drawn(table: Table) -> dict[str, list[float]]:
    lines = {"passages": [MAIN]} | {name: table.families[name] for name in FAMILIES}
    return {
        name: [100 * float(np.nanmean(table.recall(table.best(own, budget))[budget])) for budget in BUDGETS]
        for name, own in lines.items()
    }


def show(text: str, lines: Iterator[str]) -> None:
    print(f"\n### {text}\n", "\n".join(lines), sep="\n", flush=True)


if __name__ == "__main__":
    main()
