"""Results as data frames, and what they show in a notebook: tidy columns, escaped text, short reprs."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from chunkcore import Report, chunk_corpus, compare, get_chunker, get_retriever, load_dataset, run_experiment
from chunkcore.chunkers import chunkers  # noqa: F401
from chunkcore.errors import MissingExtraError
from chunkcore.evaluation.measures import get_measure
from chunkcore.plain import marked
from chunkcore.run import RankedList, Retrieved, Run
from chunkcore.text import Chunk, Chunks, Document, Span

from tests.report_data import NASTY, study


class Tags(HTMLParser):
    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.text = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def reports():
    cutters = [get_chunker("recursive:size=100"), get_chunker("sentence:size=400")]
    options = {"retrievers": ["bm25"], "measures": ["Recall@1000tok", "Recall@5"]}
    return run_experiment(load_dataset("lochmere"), cutters, **options)


def test_columns_are_tidy_and_equal_in_pandas(reports):
    found = compare(reports, resamples=200)
    corpus = chunk_corpus(load_dataset("lochmere").documents[:2], get_chunker("sentence:size=50"))
    for frame, rows in ((reports[0], 180), (found, 2), (reports[0].run, None), (corpus, len(corpus))):
        columns = frame.tidy()
        assert len({len(values) for values in columns.values()}) == 1
        if rows is not None:
            assert len(next(iter(columns.values()))) == rows
        pandas = pytest.importorskip("pandas") and frame.to_pandas()
        assert list(pandas.columns) == list(columns)
        assert len(pandas) == len(next(iter(columns.values())))
    scores = reports[0].to_pandas().query("measure == 'Recall@5'").score
    assert scores.mean() == pytest.approx(reports[0].mean("Recall@5"))
    text = load_dataset("lochmere").documents[0].text
    first = corpus.to_pandas().iloc[0]
    assert text[first.start : first.end] == first.text


def test_lists_of_chunks_and_passages_are_lists_and_tables():
    benchmark = load_dataset("lochmere")
    chunker = get_chunker("markdown:size=200")
    chunks = chunker.chunk(benchmark.documents[0])
    assert chunks == list(chunks) == list(next(iter(chunker.chunks_per_document(benchmark.documents))))
    assert chunks.tidy()["headings"] == [each.metadata["headings"] for each in chunks]
    assert Chunks().tidy()["text"] == []
    index = get_retriever("passages:lexical").index(chunk_corpus(benchmark.documents, get_chunker("sentence:size=25")))
    found = index.retrieve("How often does the pH probe need recalibrating?", max_tokens=300)
    assert found.tidy()["rank"] == list(range(1, len(found) + 1))
    assert sum(found.tidy()["tokens"]) <= 300
    texts = {document.id: document.text for document in benchmark.documents}
    for each in (found, found.parts):
        pytest.importorskip("pandas")
        row = each.to_pandas().iloc[-1]
        assert texts[row.document][row.start : row.end] == row.text
        assert len(each.to_pandas()) == len(each)
    assert len(found.parts) == sum(len(each.parts) for each in found)
    assert [each.score for each in found[:1].parts] == [each.score for each in found[0].parts]
    assert chunks[1:3].tidy()["text"] == [chunks[1].text, chunks[2].text]
    for table in (chunks, found):
        assert "<table>" in table._repr_html_()


def test_without_pandas_the_extra_is_named(reports, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"chunkadapters\[frames\]"):
        reports[0].to_pandas()


def test_reprs_are_short_and_say_what_is_inside(reports):
    benchmark = load_dataset("lochmere")
    assert repr(benchmark) == "Benchmark('lochmere': 12 documents, 90 questions)"
    assert repr(reports[0]).startswith("Report('recursive:size=100' on 'lochmere': 90 questions, Recall@1000tok ")
    chunks = get_chunker("recursive:size=400").chunk(benchmark.documents[0])
    corpus = chunk_corpus(benchmark.documents, get_chunker("recursive:size=400"))
    for each in (*benchmark.documents, *chunks, corpus, *get_retriever("bm25").index(corpus).retrieve("buoy", 3)):
        assert len(repr(each)) < 500
    assert repr(Document("a", "A fox.")) == "Document(id='a', text='A fox.', metadata={}, marks=())"


@pytest.mark.parametrize("text", NASTY)
def test_hostile_text_is_shown_and_does_nothing(text):
    chunk = Chunk(text, 0, (Span(0, 3),), text * 3, 9)
    hit = Retrieved(text, (Span(0, 3),), 2.0, text, (Retrieved(text, (Span(0, 2),), 1.0),))
    document = Document(text, text * 3)
    shown = [document._repr_html_(), document.highlight([chunk, hit])]
    shown += [Chunks([chunk])._repr_html_(), RankedList([hit])._repr_html_()]
    page = study(names=NASTY[:3], texts=(text,))
    shown += [page.comparison._repr_html_(), page.reports[0]._repr_html_(), Run(text, {text: [hit]})._repr_html_()]
    allowed = {"p", "b", "div", "mark", "table", "thead", "tbody", "tr", "th", "td"}
    for source in shown:
        found = Tags(source)
        assert set(found.tags) <= allowed
        assert set(found.attributes) <= {"style", "dir"}


def test_passages_are_highlighted_by_the_scores_of_their_parts():
    document = Document("d", "The fox naps. The dog runs. The owl reads.")
    parts = (Retrieved("d", (Span(0, 13),), 1.0), Retrieved("d", (Span(14, 27),), 4.0))
    passage = Retrieved("d", (Span(0, 27),), 5.0, parts=parts)
    marks = re.findall(r"rgba\([\d]+,[\d]+,[\d]+,([\d.]+)\)[^>]*>([^<]*)<", document.highlight([passage]))
    assert [text for _, text in marks] == ["The fox naps.", "The dog runs."]
    assert float(marks[0][0]) < float(marks[1][0])
    assert document.highlight([Retrieved("other", (Span(0, 3),))]).count("<mark") == 0


def test_overlapping_pieces_are_marked_once():
    document = Document("d", "abcdefgh")
    chunks = [Chunk("d", 0, (Span(0, 5),), "abcde", 1), Chunk("d", 1, (Span(3, 8),), "defgh", 1)]
    assert re.findall(r"<mark[^>]*>(\w+)</mark>", document.highlight(chunks)) == ["abcde", "fgh"]
    assert len(marked("x" * 1_000_000, ())) < 300_000


def test_the_table_of_a_comparison_ends_with_what_is_not_defined():
    measure, ids = get_measure("Recall@5"), tuple("abc")
    scores = {"undefined": [np.nan] * 3, "few": [0.1] * 3, "many": [0.9] * 3}
    reports = [Report(name, "toy", ids, ("",) * 3, {measure: np.array(row)}) for name, row in scores.items()]
    names = re.findall(r"<tr><td>([^<]*)", compare(reports, measure, resamples=200)._repr_html_())
    assert names == ["many", "few", "undefined"]
