"""`compare_systems`: what ``chunkcore compare`` does, in one call; `StudySettings`: how systems are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cached_property
from typing import Literal, cast, get_args

import chunkcore.models
from chunkcore.chunkers.base import Chunker, get_chunker
from chunkcore.concurrency import Progress
from chunkcore.errors import OptionError, echo
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, question_documents
from chunkcore.evaluation.comparison import Comparison, compare
from chunkcore.evaluation.costs import ModelPrices
from chunkcore.evaluation.experiment import run_experiment, with_run_embedder
from chunkcore.evaluation.gate import Check, Gate, parse_requirement
from chunkcore.evaluation.measures import DEFAULT_DEPTHS, Depth, Measure, budget_of, get_measure, measures_at
from chunkcore.evaluation.results import Report, system_name
from chunkcore.evaluation.scoring import MinRule, Scorer
from chunkcore.models.base import Embedder, Vectors
from chunkcore.models.cache import CachedEmbedder, EmbeddingCache
from chunkcore.models.loading import DEFAULT_MODEL
from chunkcore.report.page import ReportPage
from chunkcore.report.pasting import BEHIND, UNITS
from chunkcore.retrieval import chunk_corpus, get_retriever
from chunkcore.retrieval.assembly import MAX_TOKENS
from chunkcore.retrieval.passages import WindowIndex
from chunkcore.run import Run
from chunkcore.specs import split_spec
from chunkcore.tokens import TokenCounter

# Small units, three plain sizes, of which the last is more than the default model reads, and a semantic chunker.
DEFAULT_CHUNKERS = (
    "sentence:size=50",
    "recursive:size=100",
    "recursive:size=200",
    "recursive:size=400",
    "cluster_semantic:size=200",
)
By = Literal["auto", "question", "document"]
DEFAULT_RETRIEVERS = ("hybrid", "passages")


@dataclass(frozen=True, kw_only=True)
class StudySettings:
    """How systems are scored, compared and held to a gate.

    Attributes:
        depths: what is scored: numbers of pieces, token budgets, "min".
        measure: of the verdict; by default Recall at the first depth.
        counter: of the tokens that are scored.
        min_rule: which chunks k = "min" counts; see `score`.
        margin: the smallest difference that matters, as a share.
        by: what is resampled, "question", "document" or "auto"; see `compare`.
        prices: of the embedder and of the chunkers' language models.
        requirements: such as "HitRate@5>=0.70".
        earlier: reports that no system may surely fall behind; None for no baseline.
    """

    depths: tuple[Depth, ...] = DEFAULT_DEPTHS
    measure: str = ""
    counter: str | TokenCounter = "cl100k_base"
    min_rule: str = "holding"
    margin: float = 0.02
    by: str = "auto"
    seed: int = 0
    resamples: int = 10_000
    prices: ModelPrices = field(default_factory=ModelPrices)
    requirements: tuple[str, ...] = ()
    earlier: Sequence[Report] | None = None

    def __post_init__(self) -> None:
        if self.by not in get_args(By):
            raise OptionError(f"by is auto, question or document, got {echo(self.by)}")

    @cached_property
    def verdict_by(self) -> Measure:
        return get_measure(self.measure) if self.measure else get_measure("Recall", self.depths[0])

    @cached_property
    def gate(self) -> Gate:
        return Gate(tuple(map(parse_requirement, self.requirements)), self.earlier)

    @cached_property
    def measures(self) -> list[Measure]:
        """Of all depths, of the verdict and of the requirements."""
        depths = [*self.depths, *([] if self.verdict_by.k is None else [self.verdict_by.k]), *self.gate.ks]
        return list(dict.fromkeys([*measures_at(tuple(dict.fromkeys(depths))), self.verdict_by, *self.gate.measures]))

    def scorer(self, benchmark: Benchmark) -> Scorer:
        return Scorer(benchmark, counter=self.counter, min_rule=cast("MinRule", self.min_rule))

    def check(self, benchmark: Benchmark) -> None:
        """Check before long work that the questions can be resampled so. Raises `OptionError`."""
        if self.by == "document" and benchmark.without_evidence:
            raise OptionError("by document needs the documents that evidence is in, and some questions have none")
        if self.by == "document" and len(set(question_documents(benchmark).values())) < 2:
            raise OptionError("by document needs questions about two documents or more: resample by question")

    def compare(self, reports: Sequence[Report], measure: Measure | None = None) -> Comparison:
        """The reports compared by the verdict's measure, or another."""
        by = cast("By", self.by)
        measure = measure or self.verdict_by
        return compare(reports, measure, resamples=self.resamples, seed=self.seed, margin=self.margin, by=by)

    def checks(self, reports: Sequence[Report]) -> list[Check]:
        """Whether the reports pass the requirements, and are not surely worse than the earlier ones."""
        reports = [report for report in reports if not report.name.endswith(BEHIND)]  # a row of our own
        return self.gate.checks(reports, self.verdict_by, resamples=self.resamples, seed=self.seed)

    def measures_of(self, run: Run) -> list[Measure]:
        """The measures that a run can have: PrecisionOmega needs its chunks."""
        known = run.pool is not None
        return [measure for measure in self.measures if known or measure.k is not None or not measure.needs_pool]

    def score_runs(
        self,
        runs: Sequence[Run],
        benchmark: Benchmark,
        facts: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> ReportPage:
        """Score and compare what systems retrieved elsewhere; `facts` are shown as settings."""
        scorer = self.scorer(benchmark)
        reports = []
        for number, run in enumerate(runs):
            if progress is not None:
                progress("score", number, len(runs))
            # PrecisionOmega only of a run whose chunks are known.
            reports.append(scorer.score(run, self.measures_of(run)))
        if progress is not None:
            progress("score", len(runs), len(runs))
        return ReportPage(self.compare(reports), benchmark, facts or {}, today())


def compare_systems(
    benchmark: Benchmark,
    chunkers: Sequence[str] = DEFAULT_CHUNKERS,
    retrievers: Sequence[str] = DEFAULT_RETRIEVERS,
    embedders: Sequence[Embedder | str] = (DEFAULT_MODEL,),
    *,
    settings: StudySettings | None = None,
    cache: EmbeddingCache | None = None,
    prepare: Callable[[Chunker], Chunker] = lambda chunker: chunker,
    progress: Progress | None = None,
    runs: Sequence[Run] = (),
    behind: bool = True,
) -> ReportPage:
    """Score every chunker with every retriever and embedder, and compare them.

    The runs of retrievers that are used elsewhere are scored alone and with passages behind them, as `PassageRetriever`
    deploys them. Without runs, the best of several systems whose retriever makes no
    passages has a row with passages behind it.
    Stopped by Ctrl-C, it compares the systems that were scored, and the page says so.

    Args:
        chunkers: specs; a report's name has the chunker's size even if it is the default.
        retrievers: specs.
        embedders: models or their names. No model is loaded if nothing embeds.
        cache: of embeddings.
        prepare: called with each chunker before it is used, for example to cache its language model.
        progress: called with a step, the count done and the total.
        runs: what your retrievers found.
        behind: whether passages are put behind them.

    Raises:
        OptionError: a spec or a setting is wrong, or a system is named twice.
        DataError: the baseline has none of the systems.

    >>> from chunkcore.datasets import load_dataset
    >>> page = compare_systems(load_dataset("lochmere"), ["sentence:size=50", "recursive"], ["bm25"])
    >>> [report.name for report in page.reports]
    ['recursive:size=200 · passages behind', 'recursive:size=200', 'sentence:size=50']
    """
    settings = settings or StudySettings()
    methods = [get_retriever(spec).name for spec in retrievers]
    models = load_needed(embedders, chunkers, methods)
    built = build_chunkers(chunkers, models[0])
    settings.gate.check_names([name for name in built for _ in methods for _ in models])
    settings.check(benchmark)  # raises before the work
    reports: list[Report] = []
    stopped = ""
    store = EmbeddingCache(None) if cache is None else cache
    cached = [model if isinstance(model, CachedEmbedder) else CachedEmbedder(model, store) for model in models]
    scorer = settings.scorer(benchmark)
    try:
        run_experiment(
            scorer,
            lambda model: {name: prepare(chunker) for name, chunker in build_chunkers(chunkers, model).items()},
            cached,
            measures=settings.measures,
            retrievers=methods,
            progress=progress,
            done=lambda report: reports.append(
                replace(report, cost=report.cost and report.cost.priced(settings.prices))
            ),
        )
    except KeyboardInterrupt:
        if not reports:
            raise
        stopped = f"Stopped before the end; the report is of the first {len(reports):,} to be scored."
    if not stopped and runs:
        alone = [scorer.score(run, settings.measures_of(run)) for run in runs]
        reports += [*alone, *(_behind(report, settings, scorer) for report in alone if behind)]
    elif not stopped and behind and len(reports) > 1:
        reports += _best_behind(reports, settings, scorer)
    facts = {
        "Embedder": "; ".join(map(described, models)),
        "Retrievers": ", ".join(methods),
        "Scores count tokens of": getattr(settings.counter, "name", settings.counter),
        **{name: chunker.spec for name, chunker in built.items()},  # with all options, to repeat the run
    }
    return ReportPage(
        settings.compare(reports),
        benchmark,
        {name: str(value) for name, value in facts.items() if value},
        today(),
        stopped=stopped,
        embedders={model.name: _spec(embedder, model) for model, embedder in zip(models, embedders, strict=False)},
    )


def _best_behind(reports: Sequence[Report], settings: StudySettings, scorer: Scorer) -> list[Report]:
    """The best system whose retriever makes no passages, with passages behind its first ten hits."""
    best = [report for report in settings.compare(reports).standing if not report.retriever.startswith("passages")]
    return [_behind(report, settings, scorer) for report in best[:1]]


def _behind(report: Report, settings: StudySettings, scorer: Scorer) -> Report:
    """The report of a system with passages behind it, which are chosen anew for each budget of the measures."""
    assert report.run is not None
    name = system_name(report.name, BEHIND)
    by_budget: dict[int, list[Measure]] = {}
    for measure in settings.measures:
        if not measure.needs_pool:
            budget = None if measure.k is None else budget_of(measure.k)
            by_budget.setdefault(budget or MAX_TOKENS, []).append(measure)
    scored = [
        scorer.score(passages_behind(report.run, scorer.benchmark, name, max_tokens=budget), measures)
        for budget, measures in by_budget.items()
    ]
    joined = scored[0].joined(scored[1:], [measure for measures in by_budget.values() for measure in measures])
    retriever = system_name(report.retriever, BEHIND) if report.retriever else ""
    return replace(joined, chunker=report.chunker, retriever=retriever, embedder=report.embedder)


def passages_behind(run: Run, benchmark: Benchmark, name: str, *, hits: int = 10, max_tokens: int = MAX_TOKENS) -> Run:
    """A run with passages behind it: of each question's first hits, with the words of their documents.

    Args:
        hits: of each question; what a retriever returns by default.
        max_tokens: of each question's passages.
    """
    index = cast("WindowIndex", get_retriever("passages:lexical").index(chunk_corpus(benchmark.documents, UNITS)))
    results = {
        query.id: index.behind(query.text, list(run.results.get(query.id, ()))[:hits], max_tokens=max_tokens)
        for query in benchmark.queries
    }
    return Run(name, results)


def today() -> str:
    """Today's date, for a report."""
    return datetime.now(timezone.utc).date().isoformat()


def described(model: Embedder) -> str:
    """An embedder's name, and how much of a text it reads."""
    reads = f"its first {model.max_tokens} tokens of a text" if model.max_tokens else "whole texts"
    return f"{model.name}, which reads {reads}" if model.name else ""


def _spec(embedder: Embedder | str, model: Embedder) -> str:
    return embedder if isinstance(embedder, str) else model.name


def load_needed(
    embedders: Sequence[Embedder | str], chunkers: Sequence[str], retrievers: Sequence[str]
) -> list[Embedder]:
    """The embedders; where nothing embeds, one stand-in that is never called, so that no model is needed."""
    stand_in = CachedEmbedder(NoEmbedder(), EmbeddingCache(None))
    built = map(get_chunker, chunkers)
    if any(get_retriever(spec).embeds for spec in retrievers) or any(
        with_run_embedder(chunker, stand_in) is not chunker for chunker in built
    ):
        return [chunkcore.models.get_embedder(embedder) for embedder in embedders]
    return [NoEmbedder()]


class NoEmbedder:
    """Stands for the embedder where nothing embeds."""

    name = ""
    fingerprint = "none"
    max_tokens: int | None = None

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        raise OptionError("an embedder is needed after all: name it with embedder")

    embed_queries = embed_documents


def build_chunkers(specs: Sequence[str], model: Embedder) -> dict[str, Chunker]:
    """The chunkers by their specs; those that embed use this model unless they name another.

    A name has the chunker's size even if it is the default. Raises `OptionError`: two chunkers are the same.

    >>> list(build_chunkers(["recursive"], NoEmbedder()))
    ['recursive:size=200']
    """
    built: dict[str, Chunker] = {}
    for spec in map(str.strip, specs):
        chunker = get_chunker(spec)
        options = split_spec(spec)[1]
        if "embedder" in chunker.option_names():
            # A named model is loaded here: as a name it could not be distinguished from the default, which runs share.
            named = chunkcore.models.get_embedder(chunker.embedder) if "embedder" in options else model  # type: ignore[attr-defined]
            chunker = replace(chunker, embedder=named)  # type: ignore[call-arg]
        for other, known in built.items():
            if known == chunker:
                raise OptionError(f"the chunkers {echo(other)} and {echo(spec)} are the same: give each once")
        size = getattr(chunker, "size", None)
        sized = "size" not in options and type(size) is int
        built[f"{spec}{',' if options else ':'}size={size}" if sized else spec] = chunker
    return built
