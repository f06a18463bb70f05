"""`Measure`: a value such as ``Recall@5``, ``IoU@4096tok`` or ``nDCG@10[document]``; `get_measure` reads the name.

The measures of retrieval stand at the end; docs/reference/measures.md works an example of each. MRR, MAP and nDCG
follow trec_eval, with any unit in place of documents.

A measure of your own registers with ``@measures.register("Name")`` or the entry point group ``chunkcore.measures``.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import ClassVar, Literal

import numpy as np

from chunkcore.errors import OptionError, echo
from chunkcore.evaluation.counting import Counts as Counts
from chunkcore.evaluation.counting import divide, running
from chunkcore.registry import Registry
from chunkcore.spans import Scores as Scores

Depth = int | str
DEFAULT_DEPTHS: tuple[Depth, ...] = ("1000tok", 5, 10, "min")  # an equal budget first
Unit = Literal["token", "character", "sentence", "document", "answer"]

_COUNTED: tuple[Unit, ...] = ("token", "character", "sentence", "document")
_NAME = re.compile(r"(?P<kind>\w+)(?:@(?P<k>\w+))?(?:\[(?P<unit>\w+)\])?", re.ASCII)
_BUDGET = re.compile(r"([1-9][0-9]{0,8})tok")
_EXPECTED = 'a whole number from 1 to 999,999,999, "min", or a budget of tokens like "4096tok"'
_ORDER = count()


@dataclass(frozen=True)
class Measure:
    """A measure, its depth k, and its unit.

    `RetrievalMeasure` and `AnswerMeasure` define what it is computed from. Class attributes describe it.

    Attributes:
        k: the best k pieces; "min" for as many as the chunks that hold the query's evidence; "4096tok" for the best
            pieces up to 4,096 retrieved tokens, the last one cut there; None for all that was retrieved.
        unit: what is counted: tokens, characters, sentences or documents; "answer"
            for measures of answers.
        kind: the registered name, such as "Recall".
        title: the column heading; by default the class's name.
        meaning: one line for readers of a report; by default the docstring's first.
        highest: the highest score. If 1, scores are shown in percent.
        usual: whether it is a default measure.
        depth: whether k must, may or must not be given.
        units: the allowed units; the first is the default.
        of_pool: looks at every chunk that holds evidence, retrieved or not.
        names_unit: the name says the unit, the default one as well: other programs mean another unit by the bare name.

    Raises `OptionError`: a k or a unit that does not go with the measure.

    >>> recall = get_measure("Recall@5")
    >>> recall.name, recall.kind, recall.k, recall.show(0.8125) + recall.suffix
    ('Recall@5', 'Recall', 5, '81.2 %')
    """

    k: Depth | None = None
    unit: Unit = "token"

    kind: ClassVar[str] = ""
    title: ClassVar[str] = ""
    meaning: ClassVar[str] = ""
    highest: ClassVar[float] = 1.0
    usual: ClassVar[bool] = False
    depth: ClassVar[Literal["needed", "optional", "none"]] = "needed"
    units: ClassVar[tuple[Unit, ...]] = _COUNTED
    of_pool: ClassVar[bool] = False
    names_unit: ClassVar[bool] = False
    order: ClassVar[int] = 0

    def __init_subclass__(cls) -> None:
        cls.title = cls.__dict__.get("title", cls.__name__)
        cls.meaning = cls.__dict__.get("meaning", (cls.__doc__ or "").partition("\n")[0])
        cls.order = next(_ORDER)  # columns keep the order of definition

    def __post_init__(self) -> None:
        kind = self.kind or type(self).__name__
        if self.unit not in self.units:
            raise OptionError(
                f"{kind} does not count {echo(self.unit)}: expected one of {', '.join(self.units)}"
            )
        if self.depth == "none" and self.k is not None:
            raise OptionError(f"{kind} looks at no ranking and takes no k, got k={echo(self.k)}")
        is_whole = self.k is None and self.depth != "needed"
        if not is_whole and not _is_depth(self.k):
            raise OptionError(f"{kind} needs k, {_EXPECTED}, got k={echo(self.k)}")

    @property
    def name(self) -> str:
        """The name, as `get_measure` reads it."""
        name = self.kind
        if self.k is not None:
            name += f"@{self.k}"
        if self.names_unit or self.unit != self.units[0]:
            name += f"[{self.unit}]"
        return name

    def __str__(self) -> str:
        return self.name

    @property
    def needs_pool(self) -> bool:
        """Whether it is undefined for a run without a pool."""
        return self.of_pool or self.k == "min"

    @property
    def is_share(self) -> bool:
        """Whether scores are 0 to 1, and shown in percent."""
        return self.highest == 1

    @property
    def suffix(self) -> str:
        return " %" if self.is_share else ""

    @property
    def points(self) -> str:
        return " points" if self.is_share else ""

    def show(self, value: float, *, signed: bool = False) -> str:
        """A score (`signed`: a difference of scores) as reports show it; a dash for NaN.

        >>> get_measure("Recall@5").show(0.125), get_measure("DCG@5").show(-0.0001, signed=True)
        ('12.5', '+0.000')
        """
        if math.isnan(value):
            return "–"
        scaled, digits = value, 3
        if self.is_share:
            scaled, digits = 100 * value, 1
        sign = "+" if signed else ""
        return f"{round(scaled, digits) + 0.0:{sign}.{digits}f}"  # -0.0 becomes 0.0


Measures = Iterable[Measure | str] | Measure | str | None

measures: Registry[type[Measure]] = Registry(
    "measure",
    "chunkcore.measures",
    base=Measure,
    attribute="kind",
    entries={
        "ExactMatch": "chunkcore.evaluation.answer_measures:ExactMatch",
        "Faithfulness": "chunkcore.evaluation.answer_measures:Faithfulness",
        "Relevancy": "chunkcore.evaluation.answer_measures:Relevancy",
        "SquadF1": "chunkcore.evaluation.answer_measures:SquadF1",
    },
)


class RetrievalMeasure(Measure):
    """A measure of what was retrieved."""

    @abstractmethod
    def compute(self, counts: Counts) -> Scores:
        """The score of each query, shape (queries,). Queries without a unit of evidence become NaN afterwards."""


def get_measure(
    measure: Measure | str, k: Depth | None = None, unit: Unit | None = None
) -> Measure:
    """The measure of a name such as "Recall@5[character]", or of a kind with its k and unit; a `Measure` unchanged.

    Raises `OptionError`: no such measure, or a k or a unit that does not go with it.

    >>> get_measure("IoU@10[character]"), get_measure("Recall", 5).name
    (IoU(k=10, unit='character'), 'Recall@5')
    """
    if isinstance(measure, Measure):
        return measure
    parts = _NAME.fullmatch(measure.strip()) if isinstance(measure, str) else None
    if parts is None:
        raise OptionError(
            f"{echo(measure)} is no measure: expected something like Recall@5, IoU@min or Recall@5[character]"
        )
    meant = _meant(parts[0])
    if meant and parts["kind"] not in measures:
        raise OptionError(f"unknown measure {echo(measure)}: did you mean {meant}?")
    cls = measures.get(parts["kind"])
    if parts["k"] is not None:
        k = _number_or_text(parts["k"])
    unit = parts["unit"] or unit or cls.units[0]  # type: ignore[assignment]
    return cls(k, unit)  # type: ignore[arg-type]


# The names of trec_eval, ir_measures and ranx.
_ELSEWHERE = {
    "Recall": "r recall",
    "Precision": "p precision",
    "MAP": "ap map",
    "MRR": "rr mrr recip_rank",
    "nDCG": "ndcg ndcg_cut",
    "HitRate": "success hits hit_rate",
    "F1": "f1",
    "IoU": "iou",
}


def _meant(name: str) -> str:
    """Our names for another program's measure: of documents, as it counts there, and of tokens; "" if unknown."""
    parts = re.fullmatch(r"([a-z_0-9]*?[a-z1])(?:[@_]?([0-9]+))?", name.lower())
    if parts is None:
        return ""
    for ours, names in _ELSEWHERE.items():
        if parts[1] in names.split():
            depth = "" if measures.get(ours).depth == "optional" else "@5"
            if parts[2]:
                depth = f"@{parts[2]}"
            return f"{ours}{depth}[document], of whole documents, or {ours}{depth}, of tokens"
    return ""


def known_measures() -> list[type[Measure]]:
    """Every measure's class, in column order."""
    return sorted((cls for _, cls in measures.items()), key=lambda cls: cls.order)


def retrieval_measures(chosen: Measures) -> list[RetrievalMeasure]:
    """Measures of retrieval, once each; by default `measures_at()`.

    Raises `OptionError`: none, or a measure of answers.
    """
    if chosen is None:
        chosen = measures_at()
    if isinstance(chosen, str | Measure):
        chosen = [chosen]
    of_retrieval = []
    for measure in dict.fromkeys(map(get_measure, chosen)):
        if not isinstance(measure, RetrievalMeasure):
            raise OptionError(f"{measure} is of answers, not of retrieval: see score_answers")
        of_retrieval.append(measure)
    if not of_retrieval:
        raise OptionError("there is no measure to score: expected at least one")
    return of_retrieval


def measures_at(
    ks: Iterable[Depth] = DEFAULT_DEPTHS, units: Iterable[Unit] = ("token", "character")
) -> list[Measure]:
    """The usual measures at every k, then those without a k, for each unit.

    >>> [str(measure) for measure in measures_at([5], ["token"])]
    ['Recall@5', 'Precision@5', 'IoU@5', 'F1@5', 'PrecisionOmega']
    """
    depths = list(ks)
    chosen = []
    for unit in units:
        usual = [cls for cls in known_measures() if cls.usual and unit in cls.units]
        chosen += [kind(k, unit) for k in depths for kind in usual if kind.depth != "none"]
        chosen += [kind(None, unit) for kind in usual if kind.depth == "none"]
    return chosen


def _is_depth(k: object) -> bool:
    if type(k) is int:
        return 1 <= k < 10**9
    return k == "min" or budget_of(k) is not None


def budget_of(k: object) -> int | None:
    """The tokens of a token-budget depth; None for any other.

    >>> budget_of("4096tok"), budget_of(5), budget_of("min")
    (4096, None, None)
    """
    match = _BUDGET.fullmatch(k) if isinstance(k, str) else None
    return int(match[1]) if match else None


def describe_depth(k: Depth) -> str:
    """A depth in words."""
    budget = budget_of(k)
    return f"k = {k}" if budget is None else f"{budget:,} tokens"


def parse_depth(text: str) -> Depth:
    """The inverse of ``str(depth)``. Raises `OptionError` for another text.

    >>> parse_depth("5"), parse_depth("min"), parse_depth("4096tok")
    (5, 'min', '4096tok')
    """
    k = _number_or_text(text)
    if not _is_depth(k):
        raise OptionError(f"expected {_EXPECTED}, got {echo(text)}")
    return k


def _number_or_text(text: str) -> Depth:
    # Python refuses numbers of thousands of digits; such a text stays text, and is refused by name.
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else text


@measures.register("Recall")
class Recall(RetrievalMeasure):
    """The share of the evidence that was retrieved.

    Source: the Chroma report "Evaluating Chunking Strategies for Retrieval", section "Metrics".
    """

    usual = True

    def compute(self, counts: Counts) -> Scores:
        return divide(counts.found, counts.relevant)


@measures.register("Precision")
class Precision(RetrievalMeasure):
    """The share of what was retrieved that is evidence.

    Source: as `Recall`.
    """

    usual = True

    def compute(self, counts: Counts) -> Scores:
        return divide(counts.hit, counts.retrieved)


@measures.register("IoU")
class IoU(RetrievalMeasure):
    """Recall and precision in one: what is both evidence and retrieved, over what is either.

    Source: as `Recall`.
    """

    usual = True

    def compute(self, counts: Counts) -> Scores:
        return divide(counts.hit, counts.relevant + counts.retrieved - counts.hit)


@measures.register("F1")
class F1(RetrievalMeasure):
    """Recall and precision in one: their harmonic mean."""

    usual = True

    def compute(self, counts: Counts) -> Scores:
        return divide(counts.hit, (counts.relevant + counts.retrieved) / 2)


@measures.register("PrecisionOmega")
class PrecisionOmega(Precision):
    """The precision if exactly the chunks that hold evidence had been retrieved.

    Source: as `Recall`.
    """

    title = "PrecisionΩ"
    depth = "none"
    units = ("token", "character", "sentence")
    of_pool = True


@measures.register("PrecisionOmegaReleased")
class PrecisionOmegaReleased(PrecisionOmega):
    """`PrecisionOmega` as the report's released code has it: evidence in no chunk counts as retrieved, too."""

    title = "PrecisionΩ, released code"
    usual = False

    def compute(self, counts: Counts) -> Scores:
        return divide(counts.hit, counts.retrieved + counts.relevant - counts.hit)


@measures.register("HitRate")
class HitRate(RetrievalMeasure):
    """The share of questions for which any evidence was retrieved."""

    def compute(self, counts: Counts) -> Scores:
        return (counts.found > 0).astype(float)


@measures.register("AllEvidence")
class AllEvidence(RetrievalMeasure):
    """The share of questions whose every piece of evidence was retrieved whole."""

    def compute(self, counts: Counts) -> Scores:
        return np.equal(counts.found, counts.relevant).astype(float)


@measures.register("MRR")
class MRR(RetrievalMeasure):
    """One over the rank of the first piece with evidence."""

    depth = "optional"

    def compute(self, counts: Counts) -> Scores:
        ranking = counts.ranking
        best = np.zeros(len(counts.relevant))
        is_new = ranking.new > 0
        np.maximum.at(best, ranking.query[is_new], 1 / (ranking.rank[is_new] + 1.0))
        return best


@measures.register("MAP")
class MAP(RetrievalMeasure):
    """The precision down to where each part of the evidence comes up, on average; what never does counts 0."""

    depth = "optional"

    def compute(self, counts: Counts) -> Scores:
        ranking = counts.ranking
        relevant = running(ranking.new, ranking.query) + ranking.new
        seen = running(ranking.sizes, ranking.query) + ranking.sizes
        return divide(ranking.sum(ranking.new * divide(relevant, seen)), counts.relevant)


@measures.register("nDCG")
class NDCG(RetrievalMeasure):
    """The evidence that each piece adds, worth less the further down, over the most that is possible."""

    title = "nDCG"
    names_unit = True
    depth = "optional"

    def compute(self, counts: Counts) -> Scores:
        ranking = counts.ranking
        return divide(ranking.sum(ranking.new * ranking.discount), ranking.ideal)


@measures.register("DCG")
class DCG(RetrievalMeasure):
    """The share of each piece that is evidence, worth less the further down, summed.

    Source: the paper on the Dual Semantic Chunker, Table 2, which leaves the gain open.
    """

    highest = np.inf

    def compute(self, counts: Counts) -> Scores:
        return counts.ranking.sum(counts.ranking.share * counts.ranking.discount)


@measures.register("ChunkPrecision")
class ChunkPrecision(RetrievalMeasure):
    """The share of a piece that is evidence, the mean over the pieces.

    After P@5 of the paper on the Dual Semantic Chunker, Table 2, which does not define a relevant chunk; overlaps count
    once here.
    """

    units = ("token", "character", "sentence")

    def compute(self, counts: Counts) -> Scores:
        share = counts.ranking.share
        return divide(counts.ranking.sum(share), counts.ranking.sum(np.ones_like(share)))
