"""`calibrate`: how many tokens hold the evidence, and when it is not in the documents, with a promised error rate.

Source: Angelopoulos, Bates, Fisch, Lei and Schuster, Conformal Risk Control (ICLR 2024, arXiv 2208.02814), theorem 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import cast

import numpy as np

from chunkcore.errors import DataError, OptionError, echo
from chunkcore.evaluation.benchmarks import Benchmark, Evidence, Query
from chunkcore.evaluation.comparison import shared_documents
from chunkcore.evaluation.resampling import BUDGETS, Clusters, CurvePoint, curve_points
from chunkcore.options import check_number, suggesting
from chunkcore.plain import digest
from chunkcore.retrieval.base import Index
from chunkcore.retrieval.corpus import ChunkedCorpus
from chunkcore.retrieval.passages.index import WindowIndex
from chunkcore.retrieval.passages.units import MOST, Signs, presence
from chunkcore.retrieval.saved import Enough, IndexFacts
from chunkcore.run import Retrieved, Run
from chunkcore.spans import Numbers, Scores

_ALARM = 0.05  # of `drift`
_POINTS = 0.05  # a promise is broken by more than so much
_SELDOM = 0.1  # in at most this share of batches
_DOCUMENTS = 1000  # whose ids are kept
_FEWER = 0.05  # of the units: as many may go in edits
_LARGE = 1 / 2  # of an index; of larger documents only the evidence is taken out


class UnattainableError(DataError):
    """The promise cannot be made with these questions; the message says how many it would take."""


@dataclass(frozen=True, eq=False)
class Needs:
    """What labelled questions need of an index. Arrays have one row a question, in the order of `by_document`.

    Attributes:
        levels: the level that shows all evidence; infinite if none does.
        curves: the rising levels of the units, and the tokens that each shows.
        present: `Signs` of the question and the index.
        absent: the same without the question's documents; of documents that are over half of the index, without the
            evidence. Of the questions in `unanswered` alone.
        unanswered: the rows of the questions whose evidence is then gone.
        repeated: the ids of the other questions, and of the document that says their evidence again.
        clusters: the questions' documents, where questions share them.
        behind: whether the passages are behind another retriever.
        index: what was measured.
    """

    levels: Scores
    curves: Sequence[tuple[Scores, Numbers]]
    present: Scores
    absent: Scores
    unanswered: Numbers
    repeated: Mapping[str, str]
    clusters: Clusters
    by_words: bool
    behind: bool
    index: IndexFacts

    def tokens(self, levels: Scores) -> Scores:
        """The tokens that a question gets at each of these levels, in the mean."""
        total = np.zeros(len(levels))
        for rising, tokens in self.curves:
            if len(tokens):
                places = np.searchsorted(rising, levels, side="right") - 1
                total += tokens[places.clip(min=0)]
        return total / len(self.curves)

    def presences(self, rows: Scores) -> Scores:
        """The presence of each answer, by the rows of `present` or `absent`."""
        signs = [Signs(*row) for row in rows.tolist()]
        return np.array([presence(row, by_words=self.by_words) for row in signs])

    def enough(self, miss: float = 0.1, refuse: float = 0.05) -> Enough:
        """The thresholds for these promises. Raises `UnattainableError`: see `calibrate`."""
        level = controlled(self.levels, miss)
        presences = self.presences(self.present)
        return Enough(
            miss=miss,
            refuse=refuse,
            level=level,
            least=-controlled(-presences, refuse),
            questions=len(self.levels),
            tokens=float(self.tokens(np.array([level]))[0]),
            behind=self.behind,
            repeated=self.repeated,
            presences=tuple(np.round(presences, 4).tolist()),
            index=self.index,
        )

    def curve(self) -> list[CurvePoint]:
        """Tokens in the mean against the share of questions with all evidence in them: a point for some budgets, with
        95 % bands.
        """
        rising = np.unique(np.concatenate([row[np.isfinite(row)] for row, _ in self.curves]))
        tokens = self.tokens(rising)  # never falling
        chosen = np.unique(np.searchsorted(tokens, (125, *BUDGETS)).clip(max=len(rising) - 1))
        columns = (self.levels[:, None] <= rising[chosen]).astype(np.float64)
        return curve_points(tokens[chosen].tolist(), columns, self.clusters)

    def passing(self, least: float) -> tuple[float, float, float]:
        """The share of unanswered questions whose presence is at least this, and its 95 % interval."""
        passed = (self.presences(self.absent) >= least).astype(np.float64)
        clusters = self.clusters
        if clusters:
            clusters = [clusters[row] for row in self.unanswered]
        (point,) = curve_points([0.0], passed[:, None], clusters)
        return point[1:]  # without its tokens


def controlled(needs: Scores, miss: float) -> float:
    """The least threshold under which a new question's need is over it in at most `miss` of cases, in the mean, and
    that is broken by more than five points in at most one of ten batches of as many new questions.

    With n questions exchangeable with new ones, of which k have a need over the threshold, the share of cases is
    (k + 1) / (n + 1) in the mean. More than x of n new ones are over it if at most k labelled ones are among the
    highest k + x + 1 of all, which is hypergeometric. Infinite needs are over every threshold.

    Raises `UnattainableError`: there is none. That, too, keeps the promise: the mean is over all that might have been
    labelled, so that where nearly as much is out of reach as is promised, few are promised it, and too much.

    >>> controlled(np.arange(24.0), 0.1)
    23.0
    """
    count = len(needs)
    check_number("a promised share", miss, 0, 1, whole=False)
    if not miss:
        raise UnattainableError("no number of questions promises that nothing is missed")
    allowed = _allowed(count, miss)
    if allowed < 0:
        fewest = max(count, math.ceil(1 / miss) - 1)
        while _allowed(fewest, miss) < 0:
            fewest += 1
        raise UnattainableError(
            f"a promise of at most {miss:.0%} takes at least {fewest} questions, got {count}: label more"
        )
    highest = float(np.sort(needs)[max(0, count - 1 - allowed)])
    if highest < np.inf:
        return highest
    out_of_reach = np.isinf(needs).mean()
    message = (
        f"{out_of_reach:.0%} of {count} questions have evidence that is not shown in {MOST:,} tokens: "
        f"a promise of at most {miss:.0%} "
    )
    if out_of_reach >= miss:
        raise UnattainableError(
            f"{message}is out of reach with any number of questions: promise less, or mend the retriever or the labels"
        )
    enough = count
    while _allowed(enough, miss) < out_of_reach * enough:
        enough = math.ceil(1.1 * enough)
    raise UnattainableError(f"{message}would take about {enough:,} such questions")


def _allowed(count: int, miss: float) -> int:
    """How many of so many labelled questions may be over a threshold; under 0: not even none keeps the promise."""
    over = math.floor((count + 1) * miss + 1e-9) - 1
    while over >= 0 and _broken(over, count, miss + _POINTS) > _SELDOM:
        over -= 1
    return over


def _broken(over: int, count: int, share: float) -> float:
    """How often more than this share of new questions are over what `over` of as many labelled ones are over."""
    most = math.floor(share * count + 1e-9)
    if most >= count:
        return 0.0
    highest = over + most + 1
    both = _log_ways(2 * count, highest)
    shares = [
        math.exp(_log_ways(count, labelled) + _log_ways(count, highest - labelled) - both)
        for labelled in range(max(0, highest - count), over + 1)
    ]
    return math.fsum(shares)


def _log_ways(count: int, chosen: int) -> float:
    """The logarithm of the number of ways to choose so many of a count."""
    return math.lgamma(count + 1) - math.lgamma(chosen + 1) - math.lgamma(count - chosen + 1)


def drift(before: Sequence[float], now: Sequence[float]) -> float:
    """The probability that two samples of one distribution differ as much as these: under 0.05 is a drift.

    The two-sample Kolmogorov-Smirnov test by its limit, which errs towards no drift; of few questions it finds large
    changes alone. 1 if a sample is empty.

    Source: Smirnov, Table for Estimating the Goodness of Fit of Empirical Distributions (1948).

    >>> drift([0.1, 0.2, 0.3], [0.1, 0.2, 0.3]), round(drift(range(20), range(15, 35)), 4)
    (1.0, 0.0)
    """
    samples = np.sort(before), np.sort(now)
    sizes = list(map(len, samples))
    if not all(sizes):
        return 1.0
    both = np.concatenate(samples)
    shares, others = (np.searchsorted(one, both, side="right") / len(one) for one in samples)
    reach = math.sqrt(math.prod(sizes) / sum(sizes)) * np.abs(shares - others).max()
    if reach < 0.2:
        return 1.0
    terms = np.arange(1, 101)
    signs = np.resize((1, -1), len(terms))
    return 2 * math.fsum(signs * np.exp(-2 * (terms * reach) ** 2))


def index_facts(index: WindowIndex) -> IndexFacts:
    """What `index_changes` compares."""
    kept = sorted(index.units.names, key=digest)[:_DOCUMENTS]
    name = fingerprint = ""
    if index.vectors:
        name, fingerprint = index.vectors.embedder.name, index.vectors.embedder.fingerprint
    return IndexFacts(name, fingerprint, len(index.units), tuple(sorted(kept)))


def index_changes(index: Index, questions: Sequence[str]) -> dict[str, str]:
    """How an index differs from what was calibrated, in words: by "embedder" if that is another, "lost" if documents or
    units are gone, and "drift" if the questions' presence has drifted, by `drift` at 5 %. Empty if nothing has changed,
    or the index is not calibrated.
    """
    changes: dict[str, str] = {}
    if not isinstance(index, WindowIndex) or not index.enough:
        return changes
    before, now = index.enough.index, index_facts(index)
    if now.fingerprint != before.fingerprint:
        words = f"{now.embedder or 'none'}, calibrated was {before.embedder or 'none'}"
        changes["embedder"] = f"the embedder is {words}"
    gone = sorted(set(before.documents).difference(index.units.names))
    if gone:
        changes["lost"] = (
            f"{len(gone):,} of {len(before.documents):,} documents are gone: {echo(gone[0])}"
        )
    elif now.units < (1 - _FEWER) * before.units:
        changes["lost"] = (
            f"the index has {now.units:,} units, and had {before.units:,}: a part is lost"
        )
    chance = drift(index.enough.presences, list(map(index.presence, questions)))
    if chance < _ALARM:
        changes["drift"] = f"the questions' presence has drifted (p = {chance:.3f})"
    return changes


@suggesting
def calibrate(
    index: Index,
    benchmark: Benchmark,
    miss: float = 0.1,
    *,
    refuse: float = 0.05,
    behind: Run | None = None,
) -> WindowIndex:
    """The index with two thresholds: ``retrieve(question, max_tokens="auto")`` gives each question the tokens that it
    needs, and `is_related` says whether its answer is there. `enough.repeated` has the questions that another document
    answers as well: asked without their own, they do not count as unanswerable.

    The promise is of the mean over questions like the labelled ones, whose answers are in the documents: in at most
    `miss` of them some evidence is not in the passages, and at most `refuse` of them are called unrelated. It is none
    of a single question. Save the index to keep the thresholds.

    Args:
        index: of the retriever `passages`.
        benchmark: the documents' labelled questions.
        miss: from 0 to 1.
        refuse: from 0 to 1.
        behind: another retriever's answers to the questions: passages are shown behind it, by
            ``index.behind(question, hits, max_tokens="auto")`` and the frameworks' classes. Each adapter's
            `run_retriever` gives it.

    Raises:
        UnattainableError: too few questions, or too much evidence out of reach; it says how many it would take.
        OptionError: the index is none of passages, or an option is out of range.

    >>> from chunkcore import chunk_corpus, get_retriever, load_dataset
    >>> lochmere = load_dataset("lochmere")
    >>> words = get_retriever("passages:lexical").index(chunk_corpus(lochmere.documents, "sentence:size=50"))
    >>> calibrated = calibrate(words, lochmere, miss=0.3)
    >>> question = "How often does the B3 sample in burst mode?"
    >>> tokens = sum(len(passage.text.split()) for passage in calibrated.retrieve(question, max_tokens="auto"))
    >>> 50 < tokens < 2000
    True
    """
    check_number("miss", miss, 0, 1, whole=False)
    check_number("refuse", refuse, 0, 1, whole=False)
    needs = measure_needs(index, benchmark, behind=behind)
    assert isinstance(index, WindowIndex)
    calibrated = copy(index)
    calibrated.enough = needs.enough(miss, refuse)
    return calibrated


def measure_needs(index: Index, benchmark: Benchmark, *, behind: Run | None = None) -> Needs:
    """What the labelled questions need of an index; see `calibrate`."""
    if not isinstance(index, WindowIndex):
        raise OptionError(
            f"calibrate takes an index of the retriever passages, got {type(index).__name__}: make it anew, by "
            "chunkcore index, or get_retriever('passages').index(corpus)"
        )
    queries = by_document(benchmark.queries)
    if index.vectors:
        index.vectors.queries([query.text for query in queries])  # in one batch
    levels, curves, present, absent, unanswered = [], [], [], [], []
    repeated = {}
    for row, (query, without) in enumerate(zip(queries, _without(index, queries), strict=True)):
        part = index
        if query.where is not None:
            part = index.within(query.where)  # type: ignore[assignment]
        hits = behind.results.get(query.id, ()) if behind else None
        places = [Retrieved(piece.document_id, (piece.span,)) for piece in query.evidence]
        level, scores = part.needed(query.text, places, hits)
        levels.append(level)
        curves.append(part.levels(scores))
        present.append(index.signs(query.text))
        sayer = _sayer(index.corpus, benchmark, query, without)
        if sayer is None:
            unanswered.append(row)
            absent.append(without.signs(query.text))
        else:
            repeated[query.id] = sayer
    names = [query.evidence[0].document_id for query in queries]
    return Needs(
        levels=np.array(levels),
        curves=curves,
        present=np.array(present),
        absent=np.array(absent).reshape(-1, len(Signs._fields)),
        unanswered=np.array(unanswered, dtype=np.int64),
        repeated=repeated,
        clusters=shared_documents(names, "auto"),
        by_words=not index.vectors,
        behind=behind is not None,
        index=index_facts(index),
    )


def by_document(queries: Iterable[Query]) -> list[Query]:
    """The questions in the order of the rows of `Needs`."""
    return sorted(queries, key=lambda query: sorted(piece.document_id for piece in query.evidence))


def _without(index: WindowIndex, queries: Sequence[Query]) -> Iterator[WindowIndex]:
    """The index without what answers each question. Questions of one document often follow each other."""
    corpus, part = index.corpus, index
    last = np.zeros(len(corpus), np.bool_)
    for query in queries:
        names = [piece.document_id for piece in query.evidence]
        numbers = [corpus.number_of[name] for name in names if name in corpus.number_of]
        gone = np.isin(corpus.document_numbers, numbers)
        if gone.mean() > _LARGE:
            gone[:] = False
            for piece in query.evidence:
                gone[_chunks(corpus, piece)] = True
        if not np.array_equal(gone, last):
            last = gone
            kept = corpus.selected(np.flatnonzero(~gone))
            part = cast("WindowIndex", index.method.index(kept, index.vectors))
        yield part


def _sayer(
    corpus: ChunkedCorpus, benchmark: Benchmark, query: Query, part: WindowIndex
) -> str | None:
    """A document of a part, if the part says all evidence again: that of the last piece."""
    sayer = None
    for piece in query.evidence:
        evidence = piece.span.slice(benchmark.document(piece.document_id).text)
        near = " ".join(corpus[chunk].text for chunk in _chunks(corpus, piece).tolist())
        sayer = part.sayer(near, evidence)
        if sayer is None:
            break
    return sayer


def _chunks(corpus: ChunkedCorpus, piece: Evidence) -> Numbers:
    """The chunks that hold some of the evidence."""
    is_there = corpus.document_numbers == corpus.number_of[piece.document_id]
    starts, ends = corpus.extents.T
    return np.flatnonzero(is_there & (starts < piece.span.end) & (ends > piece.span.start))
