"""`compare_systems`: what ``chunkcore compare`` does, in one call; `StudySettings`: how systems are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cached_property
from math import inf
from typing import Any, get_args

from chunkcore.chunkers.base import Chunker, get_chunker
from chunkcore.concurrency import Progress
from chunkcore.errors import OptionError, echo
from chunkcore.evaluation.benchmarks import Benchmark
from chunkcore.evaluation.comparison import (
    By,
    Comparison,
    compare,
    enumerated,
    shared_documents,
)
from chunkcore.evaluation.gate import (
    Check,
    Requirement,
    check_baseline,
    check_names,
    check_requirement,
    parse_requirement,
    with_earlier,
)
from chunkcore.evaluation.measures import (
    DEFAULT_DEPTHS,
    Depth,
    Measure,
    Unit,
    budget_of,
    get_measure,
    measures_at,
)
from chunkcore.evaluation.results import ModelPrices, Report, System, system_name
from chunkcore.evaluation.scoring import Scorer
from chunkcore.models.base import Embedder
from chunkcore.models.loading import DEFAULT_MODEL, CachedEmbedder, cached_embedder
from chunkcore.options import check_options, split_spec
from chunkcore.retrieval import get_retriever
from chunkcore.run import Run
from chunkcore.study.behind import PassagesBehind, Race, curve_of, recalls
from chunkcore.study.experiment import run_experiment
from chunkcore.study.tuning import Tuning
from chunkcore.tokens import TokenCounter, get_counter

# Coverage of the 95 % interval in 2,000 samples from a system of 90 % recall (found or not): 64 % with 10 questions,
# 86 % with 20, 95 % with 30.
FEW = 30


@dataclass(frozen=True, eq=False)
class ReportPage:
    """The input of a report.

    Attributes:
        comparison: the systems' scores and the verdict.
        benchmark: shows its questions and documents, if given.
        settings: names and values to show.
        written: the date to show; "" for none.
        tuning: a search, to show its folds, configurations and plots.
        stopped: one sentence on what is missing because work was stopped; "" for nothing.
        more_questions: the command to run where there are too few questions.
        folder: of the documents, for code to paste.
        counter: of the tokens that the scores count.
    """

    comparison: Comparison
    benchmark: Benchmark | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    written: str = ""
    tuning: Tuning | None = None
    stopped: str = ""
    more_questions: str = "chunkcore questions label docs/"
    folder: str = "docs/"
    counter: str | TokenCounter = "cl100k_base"

    @property
    def name(self) -> str:
        """The collection's name."""
        return self.reports[0].benchmark

    @property
    def reports(self) -> tuple[Report, ...]:
        """The best by the verdict's measure first; see `Comparison.ranked`."""
        return self.comparison.ranked

    @property
    def systems(self) -> list[tuple[int, Report]]:
        """The reports with their numbers on the page, from 1."""
        return list(enumerate(self.reports, 1))

    @cached_property
    def ks(self) -> tuple[Depth, ...]:
        """The depths of all reports: numbers, then token budgets, then "min"; 5 if there are none."""
        depths = {measure.k for measure in self._scored if measure.k}
        ordered = sorted(depths, key=lambda k: (isinstance(k, str), budget_of(k) or inf, k))
        # Every depth's table also shows the scores of whole rankings.
        return tuple(ordered) or (5,)

    @cached_property
    def _scored(self) -> set[Measure]:
        return {measure for report in self.reports for measure in report.scores}

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """The units of all reports, tokens first."""
        seen = {measure.unit for measure in self._scored}
        return tuple(filter(seen.__contains__, get_args(Unit)))

    def measures(self, k: Depth | None, unit: Unit) -> list[Measure]:
        """The columns at a depth, or for whole rankings (None): the usual measures, then all others scored."""
        ks = [k] if k else []
        usual = [measure for measure in measures_at(ks, [unit]) if measure.k == k]
        same = {measure for measure in self._scored if (measure.k, measure.unit) == (k, unit)}
        return usual + sorted(same.difference(usual), key=lambda measure: measure.order)

    @property
    def chosen_k(self) -> Depth:
        """The depth shown first: the verdict's."""
        return self.comparison.measure.k or self.ks[0]


# Small units, three plain sizes, of which the last is more than the default model reads, and a semantic chunker.
DEFAULT_CHUNKERS = (
    "sentence:size=50",
    "recursive:size=100",
    "recursive:size=200",
    "recursive:size=400",
    "cluster_semantic:size=200",
)
DEFAULT_RETRIEVERS = ("hybrid", "passages")
WITHOUT_MODEL = ("bm25", "passages:lexical")


def embeds(chunkers: Sequence[str], retrievers: Sequence[str]) -> bool:
    """Whether one of these needs an embedder."""
    by_model = ["embedder" in get_chunker(spec).option_names() for spec in chunkers]
    return any(by_model) or any(get_retriever(spec).embeds for spec in retrievers)


def default_chunkers(retrievers: Sequence[str] = DEFAULT_RETRIEVERS) -> list[str]:
    """`DEFAULT_CHUNKERS`, without those that need a model where no retriever does."""
    with_model = embeds([], retrievers)
    return [spec for spec in DEFAULT_CHUNKERS if with_model or not embeds([spec], [])]


BEHIND = "hits"  # passages behind a retriever show the hits' own text


@dataclass(frozen=True, kw_only=True)
class StudySettings:
    """How systems are scored, compared and held to a gate.

    Attributes:
        depths: what is scored: numbers of pieces, token budgets, "min".
        measure: of the verdict; by default Recall at the first depth.
        baseline: the system in use today: the name of a report, chunker or retriever; by default your first run, else
            the first system.
        counter: of the tokens that are scored.
        margin: the smallest difference that matters, as a share.
        by: what is resampled, "question", "document" or "auto"; see `compare`.
        seed, resamples: as of `compare`.
        prices: of the embedder and of the chunkers' language models.
        requirements: such as "HitRate@5>=0.70".
        earlier: reports that no system may fall behind significantly; None for no gate.
        every_question: ask systems all questions, even if they are surely behind after some; so it is with a gate.
        extras: also passages behind your runs, or behind the best retriever without them.
    """

    depths: tuple[Depth, ...] = DEFAULT_DEPTHS
    measure: str = ""
    baseline: str = ""
    counter: str | TokenCounter = "cl100k_base"
    margin: float = 0.02
    by: By = "auto"
    seed: int = 0
    resamples: int = 10_000
    prices: ModelPrices = field(default_factory=ModelPrices)
    requirements: tuple[str, ...] = ()
    earlier: Sequence[Report] | None = None
    every_question: bool = False
    extras: bool = True

    def __post_init__(self) -> None:
        check_options(self)
        if self.earlier and not any(self.verdict_by in report.scores for report in self.earlier):
            known = ", ".join(map(str, self.earlier[0].scores))
            raise OptionError(
                f"the baseline was not evaluated with {self.verdict_by}: expected one of {known}"
            )

    @cached_property
    def verdict_by(self) -> Measure:
        return get_measure(self.measure) if self.measure else get_measure("Recall", self.depths[0])

    @cached_property
    def required(self) -> list[Requirement]:
        return list(map(parse_requirement, self.requirements))

    @cached_property
    def measures(self) -> list[Measure]:
        """Of all depths, of the verdict and of the requirements."""
        others = [self.verdict_by, *(requirement.measure for requirement in self.required)]
        depths = [*self.depths, *(measure.k for measure in others if measure.k)]
        return list(dict.fromkeys([*measures_at(dict.fromkeys(depths)), *others]))

    def compare(self, reports: Sequence[Report]) -> Comparison:
        """The reports compared by the verdict's measure."""
        baseline = ""
        for report in reversed(reports):
            # That of a run of yours is "", as are its chunker and retriever.
            if self.baseline in (report.name, report.chunker, report.system.retriever):
                baseline = report.name
        return compare(
            reports,
            self.verdict_by,
            baseline=baseline,
            resamples=self.resamples,
            seed=self.seed,
            margin=self.margin,
            by=self.by,
        )

    def race(self, benchmark: Benchmark) -> Race | None:
        """The race in which systems are stopped that are surely behind; None where all questions are asked."""
        if self.every_question or self.requirements or self.earlier is not None:
            return None
        return Race(benchmark, self.verdict_by, self.by, self.seed, self.baseline)

    def checks(self, reports: Sequence[Report]) -> list[Check]:
        """Whether the reports pass the requirements, and are not significantly worse than the earlier ones."""
        asked_for = [report for report in reports if not report.system.behind]
        drawn: dict[str, Any] = {"resamples": self.resamples, "seed": self.seed, "by": self.by}
        checks = []
        for requirement in self.required:
            checks += [check_requirement(report, requirement, **drawn) for report in asked_for]
        pairs = [] if self.earlier is None else with_earlier(asked_for, self.earlier)
        for report, earlier in pairs:
            required = [requirement.measure for requirement in self.required]
            # The verdict's measure is needed: if it was not scored before, the error says so.
            measures = [self.verdict_by, *filter(earlier.scores.__contains__, required)]
            for measure in dict.fromkeys(measures):
                checks.append(check_baseline(report, earlier, measure, **drawn))
        return checks


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
    makes no passages. Stopped by Ctrl-C, it compares what was scored, and the page says so.

    Args:
        chunkers: specs, as are `retrievers`; none of them: runs alone are scored. None: `default_chunkers`. A report's
            name has the chunker's size even if it is the default.
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
    study = _Study(benchmark, settings, build_chunkers(chunkers, prepare), methods, models, runs)
    study.check()
    reports: list[Report] = []
    stopped = ""
    try:
        study.score(reports, progress)
    except KeyboardInterrupt:
        if not reports:
            raise
        count = len(reports)
        stopped = f"Stopped before the end; the report is of the first {count:,} to be scored."
    reports = [
        replace(report, cost=report.cost and report.cost.priced(settings.prices))
        for report in reports
    ]
    comparison, facts = settings.compare(reports), study.facts(reports)
    counter = settings.counter
    return ReportPage(comparison, benchmark, facts, today(), stopped=stopped, counter=counter)


@dataclass
class _Study:
    """What is compared: chunkers by the names of their reports, retrievers, embedders and runs."""

    benchmark: Benchmark
    settings: StudySettings
    chunkers: Mapping[str, Chunker]
    methods: Sequence[str]
    models: Sequence[CachedEmbedder]
    runs: Sequence[Run]

    def check(self) -> None:
        """Check before long work that the baseline is among the systems, and that the questions can be resampled."""
        settings = self.settings
        others = [run.name for run in self.runs]
        if settings.earlier is not None:
            systems = [*self.chunkers] * len(self.methods) * len(self.models)
            check_names([*systems, *others], settings.earlier)
        names = [*self.chunkers, *self.methods, *others]
        starts = tuple(f"{name} · " for name in names)  # of a part of systems, or of a system
        if settings.baseline and not f"{settings.baseline} · ".startswith(starts):
            raise OptionError(
                f"no system is called {echo(settings.baseline)}: expected one of {enumerated(names)}"
            )
        shared_documents(self.benchmark.question_documents, settings.by)  # raises

    def score(self, reports: list[Report], progress: Progress | None) -> None:
        """Add the report of each system, as it is scored."""
        settings = self.settings
        scorer = Scorer(self.benchmark, counter=settings.counter)
        if self.chunkers:
            run_experiment(
                scorer,
                self.chunkers,
                self.models,
                measures=settings.measures,
                curved=True,
                race=settings.race(self.benchmark),
                choose=self._best_alone,
                retrievers=self.methods,
                progress=progress,
                done=reports.append,
            )
        behind, system = PassagesBehind(scorer), System(behind=BEHIND)
        for run in self.runs:
            budgets, measures = recalls(scorer, run), settings.measures
            if run.pool is None:  # PrecisionOmega needs the chunks
                measures = [measure for measure in measures if measure.k or not measure.needs_pool]
            curve = curve_of(scorer.score(run, budgets))
            reports.append(replace(scorer.score(run, measures), curve=curve))
            if settings.extras:
                name = system_name(run.name, system.stage)
                curve = curve_of(behind.score(run, budgets, BEHIND, name))
                report = behind.score(run, settings.measures, BEHIND, name)
                reports.append(replace(report, system=system, curve=curve))

    def _best_alone(self, reports: Sequence[Report]) -> Report | None:
        """The best without passages; None where no other is asked for, or known."""
        makes = {name: get_retriever(name).makes_passages for name in self.methods}
        plain = [report for report in reports if not makes[report.system.retriever]]
        if self.runs or not self.settings.extras or not plain or len(reports) < 2:
            return None
        return self.settings.compare(plain).ranked[0]

    def facts(self, reports: Sequence[Report]) -> dict[str, str]:
        """How the reports were made; the chunkers with all options."""
        names = {report.system.embedder for report in reports}
        embedders = []
        for model in self.models:
            if model.name in names:
                most = model.max_tokens
                reads = f"its first {most} tokens of a text" if most else "whole texts"
                embedders.append(f"{model.name}, which reads {reads}")
        facts = {
            "Embedder": "; ".join(embedders),
            "Retrievers": ", ".join(self.methods),
            "Scores count tokens of": get_counter(self.settings.counter).name,
        }
        specs = {name: chunker.spec for name, chunker in self.chunkers.items()}
        return {name: value for name, value in facts.items() if value} | specs


def tuning_page(tuning: Tuning, benchmark: Benchmark) -> ReportPage:
    """A search as a page: its choice, and its best configurations compared with the default in pairs."""
    options, by = tuning.options, tuning.comparison.by
    comparison = compare(
        tuning.shown, options.goal, resamples=options.resamples, seed=options.seed, by=by
    )
    facts = {
        "Embedder": ", ".join(sorted({report.system.embedder for report in tuning.reports} - {""})),
        "Held out": f"{len(tuning.choices)} parts, by {by}",
    }
    return ReportPage(comparison, benchmark, facts, today(), tuning=tuning, counter=options.counter)


def today() -> str:
    """Today's date, for a report."""
    return datetime.now(timezone.utc).date().isoformat()


def build_chunkers(
    specs: Sequence[str], prepare: Callable[[Chunker], Chunker] = lambda chunker: chunker
) -> dict[str, Chunker]:
    """The chunkers by their specs. A name has the chunker's size even if it is the default.

    `prepare` is called with each chunker. Raises `OptionError`: two chunkers are the same.

    >>> list(build_chunkers(["recursive"]))
    ['recursive:size=200']
    """
    built: dict[str, Chunker] = {}
    plain: dict[tuple[str, bool], str] = {}
    for spec in map(str.strip, specs):
        chunker: Any = get_chunker(spec)
        _, options = split_spec(spec)
        has_model = "embedder" in options  # the default model by its name is not the run's
        name, size = spec, getattr(chunker, "size", None)
        if "size" not in options and type(size) is int:
            name += "," if options else ":"
            name += f"size={size}"
        other = plain.setdefault((chunker.spec, has_model), name)
        if other in built:
            raise OptionError(
                f"the chunkers {echo(other)} and {echo(spec)} are the same: give each once"
            )
        if has_model:
            chunker = replace(chunker, embedder=cached_embedder(chunker.embedder))
        built[name] = prepare(chunker)
    return built
