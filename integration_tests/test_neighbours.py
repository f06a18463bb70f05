"""Passages from a store that holds the only copy of the texts: exact places, in the scope of what came back."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("langchain_text_splitters", reason="langchain-text-splitters is not installed")
pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
pytest.importorskip("haystack", reason="haystack-ai is not installed")

from chunkadapters.behind import PassageWarning
from chunkadapters.langchain import PassageRetriever
from chunkadapters.langchain.retrieval import hit_of
from chunkadapters.neighbours import StoreIndex
from chunkcore import ChunkcoreError, Retrieved, Span, get_counter
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document as LangChainDocument
from langchain_core.runnables import RunnableLambda

from integration_tests.test_passages import FRAMEWORKS, TEXTS

COUNTER = get_counter("cl100k_base")
ROWS = [chunk for name, text in TEXTS.items() for chunk in FRAMEWORKS["LangChain"].cut(name, text)]
QUESTION = "What is said about ice?"


def pieces_around(hits, reach=400):
    """What a store's filter by document and place gives."""
    for row in map(hit_of, ROWS):
        start, end = row.spans[0].start, row.spans[0].end
        if any(
            hit.document == row.document and start < hit.spans[-1].end + reach and end > hit.spans[0].start - reach
            for hit in hits
        ):
            yield Retrieved(row.document, row.spans, text=row.text)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_passage_grows_over_a_hits_neighbours_and_states_its_place(framework):
    framework = FRAMEWORKS[framework]
    name = "ann/doc0.md"
    hit = framework.cut(name, TEXTS[name])[1]
    (passage, *_) = framework.behind([hit], QUESTION, index=StoreIndex(pieces_around), show="whole", max_tokens=120)
    place = framework.metadata(passage)
    text = framework.text(passage)
    assert TEXTS[name][place["start"] : place["end"]].split() == text.split()
    assert place["source_id"] == name
    assert place["tenant"] == "ann"
    assert len(text) > 250  # more than any chunk


some_rows = st.lists(st.integers(0, len(ROWS) - 1), min_size=1, max_size=8, unique=True)


@settings(max_examples=30, deadline=None)
@given(some_rows, st.integers(10, 400), st.sampled_from(["hits", "whole", "all"]), st.integers(0, 500))
def test_nothing_but_what_the_store_gave_within_the_budget(numbers, budget, show, reach):
    hits = [ROWS[number] for number in numbers]
    index = StoreIndex(lambda places: pieces_around(places, reach))
    retriever = PassageRetriever(RunnableLambda(lambda question: hits), index=index, show=show, max_tokens=budget)
    passages = retriever.invoke(QUESTION)
    assert 0 < sum(COUNTER.count(passage.page_content) for passage in passages) <= budget
    seen: set[object] = set()
    allowed = [*hits, *(pieces_around(list(map(hit_of, hits)), reach) if show != "hits" else [])]
    allowed = [piece if isinstance(piece, Retrieved) else hit_of(piece) for piece in allowed]
    covered = {
        (getattr(piece, "document_id", "") or piece.document, place)
        for piece in allowed
        for place in range(piece.spans[0].start, piece.spans[0].end)
    }
    for passage in passages:
        name, start, end = (passage.metadata[key] for key in ("source_id", "start_index", "end_index"))
        assert passage.page_content.split() == TEXTS[name][start:end].split()
        places = {(name, place) for place in range(start, end) if not TEXTS[name][place].isspace()}
        assert not places & seen
        assert places <= covered
        seen |= places


def test_hits_without_a_place_stay_and_ids_reach_the_function():
    asked: list[object] = []
    hits = [LangChainDocument(page_content="A summary of everything.", id="7"), ROWS[0].model_copy(update={"id": "8"})]
    index = StoreIndex(lambda places: [asked.extend(places)][1:])  # type: ignore[func-returns-value, return-value]
    retriever = PassageRetriever(RunnableLambda(lambda question: hits), index=index, show="whole")
    with pytest.warns(PassageWarning, match="1 of 2 hits"):
        first, second = retriever.invoke(QUESTION)
    assert first == hits[0]
    assert second.page_content == hits[1].page_content
    assert [hit.id for hit in asked] == ["8"]


def test_a_text_that_differs_where_chunks_overlap_does_not_mix():
    """The document was written anew between the two calls."""
    hit = LangChainDocument(page_content="Tea is hot. It boils.", metadata={"source": "tea.md", "start_index": 0})
    new = [Retrieved("tea.md", (Span(12, 33),), text="It cools. Ice is cold.")]
    new = [Retrieved("tea.md", (Span(12, 12 + len(new[0].text)),), text=new[0].text)]
    retriever = PassageRetriever(RunnableLambda(lambda question: [hit]), index=StoreIndex(lambda hits: new), show="all")
    assert [passage.page_content for passage in retriever.invoke("Is tea hot?")] == [hit.page_content]


@pytest.mark.parametrize("second", ["Ice is cold.", "It is tea."])
def test_hits_under_a_stores_own_address_are_not_stitched(second):
    start = 13 if second == "Ice is cold." else 4
    hits = [
        LangChainDocument(page_content=text, metadata={"source": "/data/store", "start_index": place})
        for text, place in (("Tea is hot.", 0), (second, start))
    ]
    retriever = PassageRetriever(RunnableLambda(lambda question: hits), index=StoreIndex(lambda hits: []))
    assert [passage.page_content for passage in retriever.invoke("Is tea hot?")] == ["Tea is hot.", second]


def test_wrong_values_are_named():
    search: Any = RunnableLambda(lambda question, filter: ROWS[:1])  # noqa: A006
    with pytest.raises(ValueError, match="has no metadata of documents"):
        PassageRetriever(search, index=StoreIndex(pieces_around), show=lambda metadata: False)
    (passage,) = PassageRetriever(search, index=StoreIndex(pieces_around)).invoke(QUESTION, filter={})
    assert passage.page_content in ROWS[0].page_content
    with pytest.raises(ChunkcoreError, match="whatever filter may hide"):
        PassageRetriever(search, index=StoreIndex(pieces_around), show="whole").invoke(QUESTION, filter={})
    for answer in ([3], [Retrieved("a", (Span(0, 3),), text="abcd")], [Retrieved("a", (), text="abcd")]):
        index = StoreIndex(lambda hits: answer)  # type: ignore[return-value]  # noqa: B023
        retriever = PassageRetriever(RunnableLambda(lambda question: ROWS[:1]), index=index, show="all")
        with pytest.raises(ChunkcoreError, match="neighbours gives"):
            retriever.invoke(QUESTION)


def test_lancedb(tmp_path):
    lancedb = pytest.importorskip("lancedb", reason="lancedb is not installed")
    from lancedb.index import FTS, BTree

    rows = []
    for number, row in enumerate(ROWS):
        place = {"source": row.metadata["source"], "start": row.metadata["start_index"]}
        rows.append({"id": number, **place, "text": row.page_content, "vector": [float(number % 7), 1.0]})
    table = lancedb.connect(tmp_path).create_table("units", rows)
    table.create_index("text", config=FTS())
    table.create_index("id", config=BTree())

    def document(row):
        metadata = {"source": row["source"], "start_index": row["start"]}
        return LangChainDocument(page_content=row["text"], metadata=metadata, id=str(row["id"]))

    def search(question):
        found = table.search(query_type="hybrid").vector([1.0, 1.0]).text(question).limit(10).to_list()
        return [document(row) for row in found]

    def neighbours(hits):
        ids = {int(hit.id) + step for hit in hits for step in (-1, 0, 1)}
        found = table.search().where(f"id IN ({', '.join(map(str, sorted(ids)))})").limit(len(ids)).to_list()
        return [
            Retrieved(row["source"], (Span(row["start"], row["start"] + len(row["text"])),), text=row["text"])
            for row in found
        ]

    retriever = PassageRetriever(RunnableLambda(search), index=StoreIndex(neighbours), show="whole", max_tokens=200)
    passages = retriever.invoke("ice ann0word")
    for passage in passages:
        name, start, end = (passage.metadata[key] for key in ("source_id", "start_index", "end_index"))
        assert passage.page_content.split() == TEXTS[name][start:end].split()
    assert any("ann0word" in passage.page_content for passage in passages)
    assert max(len(passage.page_content) for passage in passages) > max(len(row.page_content) for row in ROWS)
