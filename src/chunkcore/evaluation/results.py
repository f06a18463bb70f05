"""`Report`: one system's scores for each query, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from chunkcore.errors import DataError, OptionError, counted
from chunkcore.evaluation.measures import Depth, Measure, get_measure, parse_depth
from chunkcore.evaluation.resampling import mean_std
from chunkcore.models.llm import Prices, Usage
from chunkcore.options import check_number, check_option
from chunkcore.plain import Frame, columns_of, html_table, html_text, plain
from chunkcore.run import MatchKind, Run
from chunkcore.spans import Numbers, Scores

_MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True)
class ModelPrices:
    """What models cost, in any currency.

    Attributes:
        embedding: the price of a million tokens that the embedder reads; None if unknown.
        llm: the prices of the language models; None if unknown.

    Raises `OptionError`: the price is negative or not finite.
    """

    embedding: float | None = None
    llm: Prices | None = None

    def __post_init__(self) -> None:
        if self.embedding is not None:
            check_number("the price of a million tokens (embedding)", self.embedding, whole=False)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The model cost of indexing a benchmark's documents, for one chunker and one retriever, as if alone.

    Cached texts count too; a text that a chunker embeds twice counts once. A chunker that embeds each sentence to find
    boundaries pays the model a second time (Qu, Tu and Bao 2024, section 5).

    Attributes:
        source_tokens: tokens of all documents, by the counter that scores.
        embedder_calls: batches sent to the embedder.
        embedded_texts: distinct chunks (or their segments), and the chunker's own texts for finding boundaries.
        embedded_tokens: what the embedder reads of these texts; None if it does not say.
        llm_calls: of the chunker's language models, retries included; answers from a cache are not counted.
        llm_input_tokens: of the calls; `llm_output_tokens` are of their answers.
        money: for the documents, without queries, in the prices' currency; None if a price is unknown.

    >>> cost = Cost(source_tokens=2_000_000, embedded_texts=9, embedded_tokens=3_000_000)
    >>> priced = cost.priced(ModelPrices(embedding=0.02))
    >>> priced.money, round(priced.money_per_million, 3), cost.tokens_ratio
    (0.06, 0.03, 1.5)
    """

    source_tokens: int = 0
    embedder_calls: int = 0
    embedded_texts: int = 0
    embedded_tokens: int | None = None
    llm_calls: int = 0
    llm_input_tokens: int = 0
    llm_output_tokens: int = 0
    money: float | None = None

    def priced(self, prices: ModelPrices) -> Cost:
        """The cost with `money`, if all models that were used have prices."""
        if prices == ModelPrices():
            return self
        money = 0.0
        if self.embedded_texts:
            if prices.embedding is None or self.embedded_tokens is None:
                return self
            money += prices.embedding * self.embedded_tokens / _MILLION
        if self.llm_calls:
            if prices.llm is None:
                return self
            used = Usage(input_tokens=self.llm_input_tokens, output_tokens=self.llm_output_tokens)
            money += used.cost(prices.llm)
        return replace(self, money=money)

    @property
    def money_per_million(self) -> float:
        """Money per million source tokens; NaN without prices or tokens."""
        return _ratio(self.money, self.source_tokens) * _MILLION

    @property
    def tokens_ratio(self) -> float:
        """Embedded tokens per source token; NaN if unknown."""
        return _ratio(self.embedded_tokens, self.source_tokens)


def _ratio(amount: float | None, tokens: int) -> float:
    return math.nan if amount is None or not tokens else amount / tokens


@dataclass(frozen=True, eq=False)
class ChunkStatistics:
    """The chunks' lengths.

    Attributes:
        tokens: of each chunk, int64, shape (chunks,).
        truncated: distinct chunk texts over the embedder's limit; 0 if unknown.
        tokens_lost: the embedder's tokens cut off of them.

    >>> lengths = ChunkStatistics(np.array([2, 4]))
    >>> lengths.count, lengths.mean
    (2, 3.0)
    """

    tokens: Numbers
    truncated: int = 0
    tokens_lost: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", np.asarray(self.tokens, np.int64))

    @property
    def count(self) -> int:
        return len(self.tokens)

    @property
    def mean(self) -> float:
        return mean_std(self.tokens)[0]

    @property
    def minimum(self) -> int:
        return int(self.tokens.min()) if self.count else 0

    @property
    def maximum(self) -> int:
        return int(self.tokens.max(initial=0))


@dataclass(frozen=True, slots=True)
class System:
    """What is scored: a chunker, the retriever of its chunks, the embedder of both, and what stands behind them.

    A value: the systems of two reports are equal or not, whatever the reports' names.

    Attributes:
        chunker: its spec, or its name in a mapping of chunkers; "" for a system that was run elsewhere.
        retriever: its spec; "" likewise.
        embedder: its name; "" likewise, or if nothing embeds.
        behind: the text that passages behind the retriever may show: "hits" or "whole" documents; "" for no passages.

    >>> System("recursive:size=200", "bm25", behind="hits").search
    'bm25 · passages behind'
    """

    chunker: str = ""
    retriever: str = ""
    embedder: str = ""
    behind: str = ""

    @property
    def stage(self) -> str:
        """What stands behind the retriever, for people; "" for nothing."""
        return STAGES.get(self.behind, "")

    @property
    def search(self) -> str:
        """The retriever and what stands behind it, for people."""
        return system_name(self.retriever, self.stage)

    @property
    def name(self) -> str:
        """All parts, for people."""
        return system_name(self.chunker, self.retriever, self.embedder, self.stage)


# What may stand behind a retriever, and its name for people.
STAGES = {"": "", "hits": "passages behind", "whole": "whole documents behind"}


def system_name(*parts: str) -> str:
    """The name of a chunker with its retriever or embedder, without empty parts.

    >>> system_name("sentence:size=50", "hybrid", "")
    'sentence:size=50 · hybrid'
    """
    return " · ".join(filter(None, parts))


@dataclass(frozen=True, eq=False)
class Report(Frame):
    """One system's scores on one benchmark.

    Attributes:
        query_ids: in the benchmark's order, as every array below.
        scores: by measure, float64, shape (queries,); NaN if undefined.
        retrieved_tokens: by k, the tokens retrieved for each query, repeats included.
        found: by k, per query, per evidence span, the share of its tokens that was retrieved.
        located: the number of retrieved pieces by `Retrieved.match`.
        unanswered: the queries missing from the run; they score 0.
        chunks: statistics of the pool; None without a pool.
        seconds: of "chunk", "embed", "search", "score", if known.
        min_rule: which chunks k = "min" counts, "holding" or "touching".
        run: the scored run with its pool, most of a report's memory; ``replace(report, run=None)`` frees it. `to_dict`
            leaves it out; `write_run` saves it.
        cost: in models; None if unknown.
        documents_digest: of the documents' ids and texts; "" if unknown.
        documents: the document of each query's first evidence; empty if unknown.
        system: what was scored.
        bounds: by measure, the mean at worst and at best, where the text of a hit stands at several places and its
            stated place is uncertain; `scores` are of the stated places. Empty if there are no such hits.
        asked: how many questions a system was asked that was stopped, as it was surely behind: the other scores are
            NaN; None for all.
        curve: by budget of tokens, the recall of each query in tokens; empty if unknown.
        counter: the name of what counted tokens; "" if unknown.

    >>> report = Report("a", "toy", ("q1", "q2"), ("", ""), {get_measure("Recall", 5): np.array([1.0, 0.5])})
    >>> report.mean("Recall@5")
    0.75
    """

    name: str
    benchmark: str
    query_ids: tuple[str, ...]
    collections: tuple[str, ...]
    scores: Mapping[Measure, Scores]
    retrieved_tokens: Mapping[Depth, Scores] = field(default_factory=dict)
    found: Mapping[Depth, tuple[tuple[float, ...], ...]] = field(default_factory=dict)
    located: Mapping[MatchKind, int] = field(default_factory=dict)
    unanswered: tuple[str, ...] = ()
    chunks: ChunkStatistics | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    min_rule: str = "holding"
    run: Run | None = field(default=None, repr=False)
    cost: Cost | None = None
    documents_digest: str = ""
    documents: tuple[str, ...] = ()
    system: System = System()
    bounds: Mapping[Measure, tuple[float, float]] = field(default_factory=dict)
    curve: Mapping[int, Scores] = field(default_factory=dict)
    asked: int | None = None
    counter: str = ""

    @property
    def chunker(self) -> str:
        """The chunker, for people; the report's name for a system that was run elsewhere."""
        return self.system.chunker or self.name

    @property
    def differing_documents(self) -> list[str]:
        """Documents of which the system returned another text, as where an app reads its files otherwise."""
        results = {} if self.run is None else self.run.results
        pieces = chain.from_iterable(results.values())
        changed = ("fuzzy", "part", "quoted")
        return sorted({piece.document_id for piece in pieces if piece.match in changed})

    @property
    def unlocated_share(self) -> float:
        """The share of retrieved pieces that were found in no document; 0 if nothing was retrieved."""
        return self.located.get("unlocated", 0) / max(1, sum(self.located.values()))

    def __repr__(self) -> str:
        shown = f"{self.name!r} on {self.benchmark!r}: {counted(len(self.query_ids), 'question')}"
        for measure in list(self.scores)[:1]:
            shown += f", {measure} {measure.show(self.mean(measure))}{measure.suffix}"
        return f"Report({shown})"

    def tidy(self) -> dict[str, Sequence[Any]]:
        """A row a question and measure: system, question, collection, measure, k, unit, score."""
        names = "system question collection measure k unit score"
        rows = []
        for measure, values in self.scores.items():
            about = str(measure), str(measure.k or ""), measure.unit
            scores = zip(self.query_ids, self.collections, values.tolist(), strict=True)
            for query, collection, score in scores:
                rows.append((self.name, query, collection, *about, score))
        return columns_of(names.split(), rows)

    def _repr_html_(self) -> str:
        rows = [(str(measure), *mean_std(values)) for measure, values in self.scores.items()]
        columns = columns_of(("measure", "mean", "standard deviation", "questions"), rows)
        return f"<p>{html_text(self.name)}</p>{html_table(columns)}"

    def values(self, measure: Measure | str) -> Scores:
        """The measure's score of each query. Raises `OptionError` if it was not evaluated."""
        key = get_measure(measure)
        if key not in self.scores:
            raise OptionError(
                f"{self.name} was not evaluated with {key}: expected one of {', '.join(map(str, self.scores))}"
            )
        return self.scores[key]

    def mean(self, measure: Measure | str = "") -> float:
        """The mean over the queries with a defined score; NaN if there are none.

        Raises `OptionError`: no measure is named, or one that was not scored.
        """
        if measure == "":
            first = str(next(iter(self.scores), "Recall@5"))
            raise OptionError(
                f"mean takes a measure, such as report.mean({first!r}); report.scores has all"
            )
        return mean_std(self.values(measure))[0]

    def by_collection(self, measure: Measure | str) -> dict[str, tuple[float, float, int]]:
        """Mean, standard deviation and number of queries of each collection, sorted by name."""
        values = self.values(measure)
        member = np.array(self.collections, dtype=object)
        return {name: mean_std(values[member == name]) for name in sorted(set(self.collections))}

    def mean_tokens(self, k: Depth) -> float:
        """Retrieved tokens per query at k, repeats included; NaN if unknown."""
        return mean_std(self.retrieved_tokens[k])[0] if k in self.retrieved_tokens else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Everything but the run as plain JSON values, NaN as null."""
        values: dict[str, Any] = plain(replace(self, run=None))
        del values["run"]
        return values

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Report:
        """The inverse of `to_dict`. Raises `DataError`: a part is missing, of the wrong type, or out of range."""
        try:
            values = {name: check_option(cls, name, data[name]) for name in _TEXTS.split()}
            # Raises: questions and collections are not as many.
            count = len(list(zip(values["query_ids"], values["collections"], strict=True)))
            chunks, cost, system = data["chunks"], data["cost"], data["system"].items()
            return cls(
                **values,
                scores={
                    get_measure(name): _numbers(row, count, get_measure(name).highest)
                    for name, row in data["scores"].items()
                },
                retrieved_tokens={
                    parse_depth(k): _numbers(row, count)
                    for k, row in data["retrieved_tokens"].items()
                },
                counter=check_option(cls, "counter", data.get("counter", "")),
                found={parse_depth(k): _shares(rows) for k, rows in data["found"].items()},
                located=_amounts(data["located"]),
                chunks=chunks and ChunkStatistics(**chunks),
                seconds=_amounts(data["seconds"]),
                cost=cost and Cost(**_amounts(cost)),
                system=System(**{name: check_option(System, name, part) for name, part in system}),
                bounds={
                    get_measure(name): tuple(_numbers(pair, 2).tolist())
                    for name, pair in data["bounds"].items()
                },
                curve={
                    int(budget): _numbers(row, count, 1) for budget, row in data["curve"].items()
                },
            )
        except (LookupError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise DataError(
                f"this is no report that Report.to_dict wrote ({type(error).__name__}: {error})"
            ) from error


# The fields of a report that hold texts, or a number.
_TEXTS = "name benchmark query_ids collections unanswered min_rule documents_digest documents asked"


def _shares(rows: Sequence[Sequence[float | None]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(_numbers(row, len(row), 1).tolist()) for row in rows)


def _numbers(
    values: Sequence[float | None],
    count: int,
    highest: float = math.inf,
) -> Scores:
    """Numbers from 0 to the highest; None for NaN. Raises `ValueError` for any other."""
    numbers = np.array(values, float)  # None becomes NaN
    defined = numbers[[value is not None for value in values]]
    is_in_range = (defined >= -1e-9) & (defined <= highest + 1e-9) & np.isfinite(defined)
    if numbers.shape != (count,) or not is_in_range.all():
        raise ValueError(f"expected {count} numbers from 0 to {highest:g}, got {values!s:.60}")
    return numbers


def _amounts(values: Mapping[Any, Any]) -> dict[Any, Any]:
    amounts = dict(values)
    _numbers(list(amounts.values()), len(amounts))
    return amounts
