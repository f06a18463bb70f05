"""Measures of retrieval; docs/reference/measures.md works an example of each.

A relevant unit counts once, however often it is retrieved. A retrieved unit counts every time, except documents and
parts. MRR, MAP and nDCG follow trec_eval, with any unit in place of documents.
"""

from __future__ import annotations

import numpy as np

from chunkcore.evaluation.measures.base import Counts, RetrievalMeasure, divide, measures
from chunkcore.spans import Scores

_CHROMA = 'the Chroma report "Evaluating Chunking Strategies for Retrieval", section "Metrics"'
_DUAL = "the paper on the Dual Semantic Chunker, Table 2"


@measures.register("Recall")
class Recall(RetrievalMeasure):
    """The share of the evidence that was retrieved."""

    formula = "relevant retrieved / relevant"
    source = _CHROMA
    usual = True

    def compute(self, counts: Counts) -> Scores:
        return divide(counts.hit, counts.relevant)


@measures.register("Precision")
class Precision(RetrievalMeasure):
    """The share of what was retrieved that is evidence."""

    formula = "relevant retrieved / retrieved, repeats included"
    source = _CHROMA
    usual = True

    def compute(self, counts: Counts) -> Scores:
        return divide(counts.hit, counts.retrieved)


@measures.register("IoU")
class IoU(RetrievalMeasure):
    """Recall and precision in one: what is both evidence and retrieved, over what is either."""

    formula = "relevant retrieved / (relevant + retrieved − relevant retrieved)"
    source = _CHROMA
    usual = True

    def compute(self, counts: Counts) -> Scores:
        return divide(counts.hit, counts.relevant + counts.retrieved - counts.hit)


@measures.register("F1")
class F1(RetrievalMeasure):
    """Recall and precision in one: their harmonic mean."""

    formula = "2 · relevant retrieved / (relevant + retrieved)"
    usual = True

    def compute(self, counts: Counts) -> Scores:
        return divide(counts.hit, (counts.relevant + counts.retrieved) / 2)


@measures.register("PrecisionOmega")
class PrecisionOmega(RetrievalMeasure):
    """The precision if exactly the chunks that hold evidence had been retrieved."""

    title = "PrecisionΩ"
    formula = "relevant / units of all chunks that hold evidence; text that chunks share counts once"
    source = _CHROMA
    usual = True
    depth = "none"
    units = ("token", "character", "sentence", "part")
    of_pool = True

    def compute(self, counts: Counts) -> Scores:
        return divide(counts.hit, counts.retrieved)


@measures.register("PrecisionOmegaReleased")
class PrecisionOmegaReleased(PrecisionOmega):
    """`PrecisionOmega` as the report's released code has it: evidence in no chunk counts as retrieved, too."""

    title = "PrecisionΩ, released code"
    formula = "relevant / (units of all chunks that hold evidence + evidence that no chunk covers)"
    usual = False

    def compute(self, counts: Counts) -> Scores:
        return divide(counts.hit, counts.retrieved + counts.relevant - counts.hit)


@measures.register("HitRate")
class HitRate(RetrievalMeasure):
    """The share of questions for which any evidence was retrieved."""

    formula = "1 where anything relevant was retrieved, else 0"

    def compute(self, counts: Counts) -> Scores:
        return (counts.hit > 0).astype(np.float64)


@measures.register("AllEvidence")
class AllEvidence(RetrievalMeasure):
    """The share of questions whose every piece of evidence was retrieved whole."""

    formula = "1 where relevant retrieved = relevant, else 0"

    def compute(self, counts: Counts) -> Scores:
        return np.equal(counts.hit, counts.relevant).astype(np.float64)


@measures.register("MRR")
class MRR(RetrievalMeasure):
    """One over the rank of the first piece with evidence."""

    formula = "1 / rank of the first piece with evidence"
    depth = "optional"

    def compute(self, counts: Counts) -> Scores:
        ranking = counts.ranking
        best = np.zeros(len(counts.relevant))
        brings = ranking.new > 0
        np.maximum.at(best, ranking.query[brings], 1 / (ranking.rank[brings] + 1.0))
        return best


@measures.register("MAP")
class MAP(RetrievalMeasure):
    """The precision down to where each part of the evidence comes up, on average; what never does counts 0."""

    formula = "precision down to the piece with a relevant unit, the mean over all relevant units"
    depth = "optional"

    def compute(self, counts: Counts) -> Scores:
        ranking = counts.ranking
        relevant = ranking.before(ranking.new) + ranking.new
        seen = ranking.before(ranking.sizes) + ranking.sizes
        return divide(ranking.sum(ranking.new * divide(relevant, seen)), counts.relevant)


@measures.register("nDCG")
class NDCG(RetrievalMeasure):
    """The evidence that each piece adds, worth less the further down, over the most that is possible."""

    title = "nDCG"
    names_unit = True
    formula = "new evidence in the piece / log2(rank + 1), summed, over the most that any pieces could reach"
    depth = "optional"

    def compute(self, counts: Counts) -> Scores:
        ranking = counts.ranking
        return divide(ranking.sum(ranking.new * ranking.discount), ranking.ideal)


@measures.register("DCG")
class DCG(RetrievalMeasure):
    """The share of each piece that is evidence, worth less the further down, summed."""

    formula = "new evidence in the piece / its size / log2(rank + 1), summed"
    source = f"{_DUAL}, which leaves the gain open"
    highest = np.inf

    def compute(self, counts: Counts) -> Scores:
        return counts.ranking.sum(counts.ranking.share * counts.ranking.discount)


@measures.register("ChunkPrecision")
class ChunkPrecision(RetrievalMeasure):
    """The share of a piece that is evidence, the mean over the pieces."""

    formula = "new evidence in the piece / the piece's size, the mean over the retrieved pieces"
    source = f"after P@5 of {_DUAL}, which does not define a relevant chunk; overlaps count once here"
    units = ("token", "character", "sentence", "part")

    def compute(self, counts: Counts) -> Scores:
        share = counts.ranking.share
        return divide(counts.ranking.sum(share), counts.ranking.sum(np.ones_like(share)))
