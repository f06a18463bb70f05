"""`compare_systems`: what ``chunkcore compare`` does, in one call; `StudySettings`: how systems are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cache, cached_property, partial
from typing import cast

import numpy as np

from chunkcore.chunkers.base import Chunker, get_chunker
from chunkcore.chunkers.llm import llms_of
from chunkcore.concurrency import Progress
from chunkcore.errors import OptionError, echo
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Evidence, question_documents
from chunkcore.evaluation.comparison import By, Comparison, compare
from chunkcore.evaluation.experiment import run_experiment
from chunkcore.evaluation.gate import Check, Gate, parse_requirement
from chunkcore.evaluation.measures import (
    DEFAULT_DEPTHS,
    Depth,
    Measure,
    RetrievalMeasure,
    budget_of,
    get_measure,
    measures_at,
)
from chunkcore.evaluation.results import ModelPrices, Report, system_name
from chunkcore.evaluation.scoring import Scorer
from chunkcore.models.base import Embedder
from chunkcore.models.cache import CachedEmbedder
from chunkcore.models.loading import DEFAULT_MODEL, cached_embedder, lazy_embedder
from chunkcore.options import check_options, split_spec
from chunkcore.report.advice import overlap
from chunkcore.report.page import Above, ReportPage
from chunkcore.report.pasting import BEHIND, UNITS
from chunkcore.report.tables import FEW
from chunkcore.retrieval import Index, chunk_corpus, get_retriever
from chunkcore.retrieval.assembly import MAX_TOKENS
from chunkcore.retrieval.passages import WindowIndex
from chunkcore.retrieval.vectors import TextVectors
from chunkcore.run import Run
from chunkcore.spans import Numbers
from chunkcore.tokens import TokenCounter
from chunkcore.tuning import DEFAULT_RETRIEVERS as TUNED_RETRIEVERS
from chunkcore.tuning import TuneOptions, Tuning, tune

# Small units, three plain sizes, of which the last is more than the default model reads, and a semantic chunker.
DEFAULT_CHUNKERS = (
    "sentence:size=50",
    "recursive:size=100",
    "recursive:size=200",
    "recursive:size=400",
    "cluster_semantic:size=200",
)
DEFAULT_RETRIEVERS = ("hybrid", "passages")


def default_chunkers(retrievers: Sequence[str] = DEFAULT_RETRIEVERS) -> list[str]:
    """`DEFAULT_CHUNKERS`, without those that need a model where no retriever does."""
    embeds = any(get_retriever(spec).embeds for spec in retrievers)
    return [
        spec
        for spec in DEFAULT_CHUNKERS
        if embeds or "embedder" not in get_chunker(spec).option_names()
    ]


PASSAGES, OTHER_BALANCES, *_ = TUNED_RETRIEVERS
_HITS = 10  # of a question that passages are made of: what a retriever returns by default


@dataclass(frozen=True, kw_only=True)
class StudySettings:
    """How systems are scored, compared and held to a gate."""

    depths: tuple[Depth, ...] = (
        DEFAULT_DEPTHS  # what is scored: numbers of pieces, token budgets, "min"
    )
    measure: str = ""  # of the verdict; by default Recall at the first depth
    counter: str | TokenCounter = "cl100k_base"  # of the tokens that are scored
    margin: float = 0.02  # the smallest difference that matters, as a share
    by: By = "auto"  # what is resampled, "question", "document" or "auto"; see `compare`
    seed: int = 0
    resamples: int = 10_000
    prices: ModelPrices = field(
        default_factory=ModelPrices
    )  # of the embedder and of the chunkers' language models
    requirements: tuple[str, ...] = ()  # such as "HitRate@5>=0.70"
    earlier: Sequence[Report] | None = (
        None  # that no system may fall behind significantly; None for no baseline
    )
    extras: bool = True  # also passages behind a retriever, and other balances of passages on held-out questions

    def __post_init__(self) -> None:
        check_options(self)

    @cached_property
    def verdict_by(self) -> Measure:
        return get_measure(self.measure) if self.measure else get_measure("Recall", self.depths[0])

    @cached_property
    def gate(self) -> Gate:
        return Gate(tuple(map(parse_requirement, self.requirements)), self.earlier)

    @cached_property
    def measures(self) -> list[Measure]:
        """Of all depths, of the verdict and of the requirements."""
        others = [self.verdict_by, *self.gate.measures]
        depths = [*self.depths, *(measure.k for measure in others if measure.k is not None)]
        return list(dict.fromkeys([*measures_at(dict.fromkeys(depths)), *others]))

    def scorer(self, benchmark: Benchmark) -> Scorer:
        return Scorer(benchmark, counter=self.counter)

    def check(self, benchmark: Benchmark) -> None:
        """Check before long work that the questions can be resampled so. Raises `OptionError`."""
        if self.by == "document" and benchmark.without_evidence:
            raise OptionError(
                "by document needs the documents that evidence is in, and some questions have none"
            )
        if self.by == "document" and len(set(question_documents(benchmark).values())) < 2:
            raise OptionError(
                "by document needs questions about two documents or more: resample by question"
            )

    def compare(self, reports: Sequence[Report], measure: Measure | None = None) -> Comparison:
        """The reports compared by the verdict's measure, or another."""
        measure = measure or self.verdict_by
        return compare(
            reports,
            measure,
            resamples=self.resamples,
            seed=self.seed,
            margin=self.margin,
            by=self.by,
        )

    def checks(self, reports: Sequence[Report]) -> list[Check]:
        """Whether the reports pass the requirements, and are not significantly worse than the earlier ones."""
        reports = [
            report for report in reports if not report.name.endswith(BEHIND)
        ]  # a row of our own
        return self.gate.checks(reports, self.verdict_by, resamples=self.resamples, seed=self.seed)

    def measures_of(self, run: Run) -> list[Measure]:
        """The measures that a run can have: PrecisionOmega needs its chunks."""
        pool = run.pool is not None
        return [
            measure
            for measure in self.measures
            if pool or measure.k is not None or not measure.needs_pool
        ]

    def score_runs(
        self,
        runs: Sequence[Run],
        benchmark: Benchmark,
        facts: Mapping[str, str],
        progress: Progress,
    ) -> ReportPage:
        """Score and compare what systems retrieved elsewhere; `facts` are shown as settings."""
        scorer = self.scorer(benchmark)
        reports = []
        for number, run in enumerate(runs, 1):
            reports.append(scorer.score(run, self.measures_of(run)))
            progress("score", number, len(runs))
        return ReportPage(self.compare(reports), benchmark, facts, today(), counter=self.counter)


def compare_systems(
    benchmark: Benchmark,
    chunkers: Sequence[str] | None = None,
    retrievers: Sequence[str] = DEFAULT_RETRIEVERS,
    embedders: Sequence[Embedder | str] = (DEFAULT_MODEL,),
    *,
    settings: StudySettings | None = None,
    runs: Sequence[Run] = (),
    prepare: Callable[[Chunker], Chunker] = lambda chunker: chunker,
    progress: Progress | None = None,
) -> ReportPage:
    """Score every chunker with every retriever and embedder, and compare them.

    Runs of your own retrievers are scored alone and with passages behind them; without runs, so is the best system that
    makes no passages. Other balances of `passages` are tried on held-out questions. A report indexes the advised system
    again, to say what outranked its evidence. Stopped by Ctrl-C, it compares what was scored, and the page says so.

    Args:
        chunkers: specs, as are `retrievers`; None: `default_chunkers`. A report's name has the chunker's size even if
            it is the default.
        embedders: models or their names; a `CachedEmbedder` keeps vectors. Nothing is loaded unless something embeds.
        runs: what your retrievers found.
        prepare, progress: as in `tune`.

    Raises:
        OptionError: a spec or a setting is wrong, or a system is named twice.
        DataError: the baseline has none of the systems.

    >>> from chunkcore.datasets import load_dataset
    >>> page = compare_systems(load_dataset("lochmere"), ["sentence:size=50", "recursive"], ["bm25"])
    >>> [report.name for report in page.reports]
    ['recursive:size=200 · passages behind', 'recursive:size=200', 'sentence:size=50']
    """
    settings = settings or StudySettings()
    chunkers = default_chunkers(retrievers) if chunkers is None else chunkers
    methods = [get_retriever(spec).name for spec in retrievers]
    models = list(map(cached_embedder, embedders))
    built = build_chunkers(chunkers, models[0])
    settings.gate.check_names([name for name in built for _ in methods for _ in models])
    settings.check(benchmark)  # raises before the work
    scorer = settings.scorer(benchmark)
    reports: list[Report] = []
    stopped, balances, measures = "", None, settings.measures
    built_with, done = partial(build_chunkers, chunkers, prepare=prepare), reports.append
    try:
        run_experiment(
            scorer,
            built_with,
            models,
            measures=measures,
            retrievers=methods,
            progress=progress,
            done=done,
        )
        balances = _balances(reports, models, scorer, settings, prepare, progress)
        reports += _behind_retrievers(reports, runs, scorer, settings)
    except KeyboardInterrupt:
        if not reports:
            raise
        stopped = (
            f"Stopped before the end; the report is of the first {len(reports):,} to be scored."
        )
    reports = [
        replace(report, cost=report.cost and report.cost.priced(settings.prices))
        for report in reports
    ]
    # Specs have all options, to repeat the run.
    facts = _facts(reports, models, methods, settings) | {
        name: chunker.spec for name, chunker in built.items()
    }
    above = None if stopped else _above(scorer, models, built_with)
    comparison = settings.compare(reports)
    return ReportPage(
        comparison,
        benchmark,
        facts,
        today(),
        stopped=stopped,
        balances=balances,
        above=above,
        counter=settings.counter,
    )


def _above(
    scorer: Scorer,
    models: Sequence[CachedEmbedder],
    built_with: Callable[[Embedder], Mapping[str, Chunker]],
) -> Above:
    """How far down a system ranks evidence. The system is indexed once more when asked; vectors come from the cache."""

    @cache
    def indexed(chunker: str, retriever: str, embedder: str) -> tuple[Index, Numbers] | None:
        model = next((model for model in models if model.name == embedder), models[0])
        cutter = built_with(model)[chunker]
        if llms_of(cutter) or "late" in retriever:
            return None  # answers may not be kept, vectors of tokens never are
        corpus = chunk_corpus(scorer.benchmark.documents, cutter)
        index = get_retriever(retriever).index(corpus, TextVectors(model))
        return index, scorer.token_counts(corpus.retrieved)

    def above(report: Report, question: str, piece: Evidence) -> Numbers | None:
        retriever = report.retriever.removesuffix(f" · {BEHIND}")
        system = indexed(report.chunker, retriever, report.embedder) if report.chunker else None
        if system is None:
            return None
        index, sizes = system
        hits, _ = index.search([question], len(index.corpus)).row(0)
        names, _ = index.corpus.described
        if piece.document_id not in names:
            return None
        number = names.index(piece.document_id)
        chunks = np.flatnonzero(index.corpus.document_numbers == number).tolist()
        holding = [chunk for chunk in chunks if overlap(index.corpus.retrieved[chunk], piece)]
        places = np.flatnonzero(np.isin(hits, holding))
        return sizes[hits[: places[0]]] if len(places) else None

    return above


def _facts(
    reports: Sequence[Report],
    models: Sequence[CachedEmbedder],
    methods: Sequence[str],
    settings: StudySettings,
) -> dict[str, str]:
    """How the reports were made."""
    used = [
        described(model)
        for model in models
        if any(report.embedder == model.name for report in reports)
    ]
    return {
        **({"Embedder": "; ".join(used)} if used else {}),
        "Retrievers": ", ".join(methods),
        "Scores count tokens of": str(getattr(settings.counter, "name", settings.counter)),
    }


def _balances(
    reports: Sequence[Report],
    models: Sequence[CachedEmbedder],
    scorer: Scorer,
    settings: StudySettings,
    prepare: Callable[[Chunker], Chunker],
    progress: Progress | None,
) -> Tuning | None:
    """Other balances of vectors and words, held out, for the best passages of default balance; None without these."""
    measure, few = settings.verdict_by, len(scorer.benchmark.queries) < FEW
    passages = [report for report in reports if report.retriever == PASSAGES]
    if few or not settings.extras or not passages or not isinstance(measure, RetrievalMeasure):
        return None
    best = settings.compare(passages).ranked[0]
    options = TuneOptions(
        measure=str(measure),
        default=system_name(best.chunker, PASSAGES),
        counter=settings.counter,
        by=settings.by,
        seed=settings.seed,
        resamples=settings.resamples,
    )
    model = next(model for model in models if model.name == best.embedder)
    retrievers, benchmark = [PASSAGES, OTHER_BALANCES], scorer.benchmark
    return tune(
        benchmark,
        best.chunker,
        model,
        retrievers=retrievers,
        options=options,
        prepare=prepare,
        progress=progress,
    )


def _behind_retrievers(
    reports: Sequence[Report], runs: Sequence[Run], scorer: Scorer, settings: StudySettings
) -> list[Report]:
    """The rows of runs, alone and with passages behind them; without runs, of the best that makes no passages."""
    alone = [scorer.score(run, settings.measures_of(run)) for run in runs]
    plain = alone
    if not runs and len(reports) > 1:
        ranked = settings.compare(reports).standing
        plain = [report for report in ranked if not report.retriever.startswith(PASSAGES)][:1]
    return [*alone, *(_behind(report, settings, scorer) for report in plain if settings.extras)]


def _behind(report: Report, settings: StudySettings, scorer: Scorer) -> Report:
    """The report of a system with passages behind it, which are chosen anew for each budget of the measures."""
    assert report.run is not None
    queries, results = scorer.benchmark.queries, report.run.results
    units = chunk_corpus(
        scorer.benchmark.documents, replace(get_chunker(UNITS), counter=settings.counter)
    )
    index = cast("WindowIndex", get_retriever("passages:lexical").index(units))
    hits = {query.id: list(results.get(query.id, ()))[:_HITS] for query in queries}

    def behind(budget: int) -> Run:
        passages = {
            query.id: index.behind(
                query.text,
                hits[query.id],
                max_tokens=budget,
                documents="whole",
                counter=settings.counter,
            )
            for query in queries
        }
        return Run(system_name(report.name, BEHIND), passages)

    by_budget: dict[int, list[Measure]] = {}
    for measure in settings.measures:
        if not measure.needs_pool:
            budget = None if measure.k is None else budget_of(measure.k)
            by_budget.setdefault(budget or MAX_TOKENS, []).append(measure)
    scored = [scorer.score(behind(budget), measures) for budget, measures in by_budget.items()]
    joined = scored[0].joined(
        scored[1:], [measure for measures in by_budget.values() for measure in measures]
    )
    retriever = system_name(report.retriever, BEHIND) if report.retriever else ""
    # The chunks and their cost are those of the retriever; words cost no model.
    joined = replace(joined, chunks=report.chunks, cost=report.cost)
    return replace(joined, chunker=report.chunker, retriever=retriever, embedder=report.embedder)


def tuning_page(tuning: Tuning, benchmark: Benchmark) -> ReportPage:
    """A search as a page: its choice, and its best configurations compared with the default in pairs."""
    options, by = tuning.options, tuning.comparison.by
    comparison = compare(
        tuning.shown, options.goal, resamples=options.resamples, seed=options.seed, by=by
    )
    facts = {
        "Embedder": ", ".join(sorted({report.embedder for report in tuning.reports} - {""})),
        "Held out": f"{len(tuning.folds)} parts, by {by}",
    }
    return ReportPage(comparison, benchmark, facts, today(), tuning=tuning, counter=options.counter)


def today() -> str:
    """Today's date, for a report."""
    return datetime.now(timezone.utc).date().isoformat()


def described(model: Embedder) -> str:
    """An embedder's name, and how much of a text it reads."""
    reads = f"its first {model.max_tokens} tokens of a text" if model.max_tokens else "whole texts"
    return f"{model.name}, which reads {reads}" if model.name else ""


def build_chunkers(
    specs: Sequence[str],
    model: Embedder,
    prepare: Callable[[Chunker], Chunker] = lambda chunker: chunker,
) -> dict[str, Chunker]:
    """The chunkers by their specs; those that embed use this model unless they name another.

    A name has the chunker's size even if it is the default. `prepare` is called with each chunker. Raises
    `OptionError`: two chunkers are the same.

    >>> list(build_chunkers(["recursive"], lazy_embedder(DEFAULT_MODEL)))
    ['recursive:size=200']
    """
    built: dict[str, Chunker] = {}
    plain: list[tuple[Chunker, bool]] = []
    for spec in map(str.strip, specs):
        chunker, options = get_chunker(spec), split_spec(spec)[1]
        named = "embedder" in options  # the default model by its name is not the run's
        if (chunker, named) in plain:
            other = list(built)[plain.index((chunker, named))]
            raise OptionError(
                f"the chunkers {echo(other)} and {echo(spec)} are the same: give each once"
            )
        plain.append((chunker, named))
        size = getattr(chunker, "size", None)
        sized = "size" not in options and type(size) is int
        if "embedder" in chunker.option_names():
            chunker = replace(chunker, embedder=lazy_embedder(chunker.embedder) if named else model)  # type: ignore
        built[f"{spec}{',' if options else ':'}size={size}" if sized else spec] = prepare(chunker)
    return built
