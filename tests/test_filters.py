"""Filters: an index's answer within some documents is that of an index over these documents alone."""

from __future__ import annotations

import math
from array import array
from datetime import date
from functools import partial
from typing import Any

import numpy as np
import pytest
from chunkadapters.behind import Behind
from chunkcore import Document, chunk_corpus, get_retriever
from chunkcore.errors import OptionError
from chunkcore.locating import Hit
from chunkcore.retrieval import Reranked, TextVectors
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes import FakeEmbedder

WORDS = ["fox", "crow", "rain", "naps", "sings", "hill", "night", "tea"]
SPECS = ["bm25", "bm25:words=first5", "dense", "hybrid", "hybrid:fusion=ranks,depth=3", "passages", "passages:lexical"]
SPECS += ["bm25+window:1", "dense+merge"]

texts = st.lists(st.lists(st.sampled_from(WORDS), min_size=2, max_size=9).map(" ".join), min_size=1, max_size=4)
documents_lists = st.lists(texts, min_size=1, max_size=5).map(
    lambda rows: [
        Document(f"d{number}", ". ".join(row) + ".", {"tenant": "ab"[number % 2], "title": f"Tale {number}"})
        for number, row in enumerate(rows)
    ]
)
questions = st.lists(st.sampled_from([*WORDS, "unknown"]), min_size=1, max_size=4).map(" ".join)


@settings(max_examples=25, deadline=None)
@given(documents_lists, questions, st.sampled_from(["list", "mapping", "function"]), st.booleans(), st.data())
@pytest.mark.parametrize("spec", SPECS)
def test_the_answer_is_that_of_an_index_over_the_allowed_documents(spec, documents, question, form, by_k, data):
    allowed = {document.id for document in documents if document.metadata["tenant"] == "a"}
    filters: dict[str, Any] = {
        "list": sorted(allowed),
        "mapping": {"tenant": "a"},
        "function": lambda metadata: metadata["tenant"] == "a",
    }
    limits = {"k": data.draw(st.integers(1, 5))} if by_k else {"max_tokens": data.draw(st.integers(1, 40))}
    chunker = "sentence:size=8,counter=words"
    vectors = TextVectors(FakeEmbedder())
    method = get_retriever(spec)
    index = method.index(chunk_corpus(documents, chunker), vectors)
    alone = method.index(chunk_corpus([document for document in documents if document.id in allowed], chunker), vectors)
    found = index.retrieve(question, **limits, where=filters[form])
    expected = alone.retrieve(question, **limits)
    assert [(hit.document_id, hit.spans, hit.text) for hit in found] == [
        (hit.document_id, hit.spans, hit.text) for hit in expected
    ]
    np.testing.assert_allclose([hit.score for hit in found], [hit.score for hit in expected], atol=1e-6)
    assert {hit.document_id for hit in found} <= allowed


def test_a_reranker_reads_only_what_is_allowed() -> None:
    read: list[str] = []

    def scores(pairs: list[tuple[str, str]]) -> list[float]:
        read.extend(text for _, text in pairs)
        return [0.0] * len(pairs)

    documents = [Document("a", "A fox naps."), Document("b", "A fox sings: secret.")]
    method = Reranked(method=get_retriever("bm25"), model=scores)
    found = method.index(chunk_corpus(documents, "sentence:size=8")).retrieve("fox", where=["a"])
    assert ([hit.document_id for hit in found], read) == (["a"], ["A fox naps."])


async def async_filter(data: object) -> bool:
    return False


STORED = [(44, 44.0), (np.int64(44), 44), (44, np.float32(44)), (("x", "y"), ["x", "y"]), (date(2024, 5, 1),) * 2]


@pytest.mark.parametrize(("stored", "value"), STORED)
def test_values_and_names_are_compared_as_what_they_say(stored, value) -> None:
    documents = [Document("Über.md", "A fox.", {"key": stored}), Document("b", "A fox.", {"key": math.nan})]
    index = get_retriever("bm25").index(chunk_corpus(documents, "sentence:size=8"))
    for where in ({"key": value}, ["U\u0308ber.md"], {"key": None}):
        assert [hit.document_id for hit in index.retrieve("fox", where=where)] == ["Über.md"] * (where != {"key": None})


def test_nested_metadata_is_the_documents_own() -> None:
    groups = ["staff"]
    index = get_retriever("bm25").index(chunk_corpus([Document("a", "A fox.", {"groups": groups})], "sentence:size=8"))
    groups.append("guest")
    assert index.retrieve("fox", where=lambda data: data["groups"].append("all") is None)
    assert index.retrieve("fox", where={"groups": ["staff"]})


def test_what_is_no_filter_is_refused() -> None:
    index = get_retriever("bm25").index(chunk_corpus([Document("a", "A fox.")], "sentence:size=8"))
    assert index.retrieve("fox", where="a")
    assert index.retrieve("fox", where=["b"]) == index.retrieve("fox", where=[]) == []
    for wrong in (3, [1], b"a", 10**5000, np.array([1, 2]), [10**5000]):
        with pytest.raises(OptionError, match="where is document ids"):
            index.retrieve("fox", where=wrong)  # type: ignore[arg-type]
    for no_predicate in (dict, bool, type, async_filter, (lambda data: (yield))):
        with pytest.raises(OptionError, match="where is a function"):
            index.retrieve("fox", where=no_predicate)  # type: ignore[arg-type]
    for operator in ({"year": {"$gt": 2020}}, {"$and": [{"year": 2020}]}, {"operator": "AND", "conditions": []}):
        with pytest.raises(OptionError, match="where knows no operators"):
            index.retrieve("fox", where=operator)


UNCLEAR = [dict, list[int], np.array, async_filter, lambda data: async_filter(data), lambda data: lambda: False]
UNCLEAR += [lambda data, to=to: to for to in ("false", NotImplemented, {"ok": False}, 0, None, np.array(False))]


@pytest.mark.parametrize("function", UNCLEAR)
def test_an_answer_that_is_not_true_or_false_lets_no_document_through(function: Any) -> None:
    index = get_retriever("passages:lexical").index(chunk_corpus([Document("a.md", "A fox.")], "sentence:size=8"))
    hits = [Hit("A fox.", names=("a.md",))]
    function = partial(function)  # no class that is known by itself
    with pytest.raises(OptionError, match=r"True or False.*('a.md'|async_filter)"):
        index.retrieve("fox", where=function)
    with pytest.raises(OptionError, match=r"True or False.*('a.md'|async_filter)"):
        Behind(index, show=function).passages("fox", hits)
    assert index.retrieve("fox", where=lambda data: np.bool_(False)) == []  # type: ignore[return-value]


ITSELF: list[object] = []
ITSELF.append(ITSELF)


IMPOSSIBLE = [10**5000, b"a", bytearray(b"a"), memoryview(b"a"), np.array([1]), array("i", [1])]
IMPOSSIBLE += [math.nan, object(), len, ITSELF]


@pytest.mark.parametrize("value", IMPOSSIBLE, ids=lambda value: type(value).__name__)
def test_a_value_that_no_metadata_can_equal_is_refused(value: object) -> None:
    index = get_retriever("bm25").index(chunk_corpus([Document("a", "A fox.", {"t": None})], "sentence:size=8"))
    nested = {"t": [date(2024, 5, 1), {"u": value}]}
    for where in ({"t": value}, nested, {value: 1} if isinstance(value, bytes) else nested):
        with pytest.raises(OptionError, match="where names metadata and their values"):
            index.retrieve("fox", where=where)  # type: ignore[arg-type]
    assert index.retrieve("fox", where={"t": math.inf}) == []


def test_a_part_of_an_index_is_not_saved(tmp_path) -> None:
    index = get_retriever("bm25").index(chunk_corpus([Document("a", "A fox."), Document("b", "Secret.")], "sentence"))
    part = index.within(["a"])
    for change in (lambda: part.save(tmp_path / "part"), lambda: part.update([]), lambda: part.delete(["a"])):
        with pytest.raises(OptionError, match="the whole one"):
            change()


def test_questions_may_come_one_by_one_and_a_lone_one_is_put_into_a_list() -> None:
    corpus = chunk_corpus([Document("a", "A fox.")], "sentence:size=8")
    for spec in ("bm25", "passages:lexical"):
        index = get_retriever(spec).index(corpus)
        assert [len(hits) for hits in index.answers(iter(["fox"]), 1)] == [1]
        assert index.search(iter(["fox"])).counts.tolist() == [1]
        with pytest.raises(OptionError, match="put one question in a list"):
            index.answers("fox")


@pytest.mark.parametrize("spec", ["bm25", "dense", "hybrid", "hybrid+merge", "passages:lexical"])
def test_without_a_limit_it_returns_ten_at_most_and_nothing_where_no_document_is_allowed(spec: str) -> None:
    documents = [Document(f"d{number}", f"A fox naps {number}.") for number in range(30)]
    index = get_retriever(spec).index(chunk_corpus(documents, "sentence:size=8"), TextVectors(FakeEmbedder()))
    assert (len(index.retrieve("fox")), index.retrieve("fox", where=["none"])) == (10, [])
    cut = [(hit.text, hit.match == "part") for hit in index.retrieve("fox", max_tokens=2)]
    assert cut == [("A fox", index.method.makes_passages)]
    index.corpus._chunker = partial(get_retriever, "of another machine")  # type: ignore[assignment]  # raises
    assert index.retrieve("fox", max_tokens=20), "then chunks are whole"
