"""Stages: what a hit brings along, under a budget, against plain oracles; and how they are named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import make_dataclass, replace

import pytest
from chunkcore import Chunk, ChunkedCorpus, Document, OptionError, Retrieved, Span, get_chunker, get_counter
from chunkcore.retrieval import BM25, Merge, RetrievalMethod, Stage, Window, chunk_corpus, get_retriever, stages
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes import Fixed

WORDS = get_counter("words")
SPECS = ["recursive:size=3,counter=words", "fixed_token:size=5,overlap=3,counter=words", "sentence:size=4"]


def sentences(*counts: int) -> ChunkedCorpus:
    """Documents of so many sentences of 4 words, a sentence a chunk; 2 characters between neighbours."""
    texts = ["  ".join(f"Unit {number} {i} here." for i in range(count)) for number, count in enumerate(counts)]
    documents = [Document(f"d{number}", text) for number, text in enumerate(texts)]
    chunks = []
    for document in documents:
        for index, sentence in enumerate(re.finditer(r"Unit \d+ \d+ here\.", document.text)):
            chunks.append(Chunk(document.id, index, (Span(*sentence.span()),), sentence[0], 4))
    return ChunkedCorpus(chunks, documents)


def passages(
    stage: Stage, corpus: ChunkedCorpus, k: int | None = None, max_tokens: int | None = None
) -> list[Retrieved]:
    return list(stage.index(corpus).answers(["?"], k, max_tokens, counter=WORDS)[0])


def units(corpus: ChunkedCorpus, found: Sequence[Retrieved]) -> list[list[int]]:
    """The chunks of each passage."""
    number = {(chunk.document_id, chunk.spans): i for i, chunk in enumerate(corpus)}
    return [[number[part.document_id, part.spans] for part in passage.parts] for passage in found]


def test_a_hit_brings_its_neighbours_and_no_other_document() -> None:
    corpus = sentences(5, 5)
    found = passages(Window(method=Fixed((7, 0))), corpus, k=2)
    assert units(corpus, found) == [[6, 7, 8], [0, 1]]
    assert found[0].text == "Unit 1 1 here.  Unit 1 2 here.  Unit 1 3 here."
    assert found[0].spans == (Span(16, 62),)
    assert [part.score for part in found[0].parts] == [0, 1, 0]  # a neighbour has no score of its own
    assert [each.score for each in found] == [1, 0.99]
    assert units(corpus, passages(Window(method=Fixed((4,)), units=9), corpus, k=1)) == [[0, 1, 2, 3, 4]]


def test_hits_that_are_neighbours_or_overlap_are_one_passage() -> None:
    corpus = sentences(9)
    assert units(corpus, passages(Merge(method=Fixed((4, 1, 3, 8))), corpus, k=4)) == [[3, 4], [1], [8]]
    text = "one two three four five six seven eight nine ten"
    overlapping = chunk_corpus([Document("d", text)], get_chunker("fixed_token:size=4,overlap=3,counter=words"))
    (passage,) = passages(Merge(method=Fixed((0, 2))), overlapping, k=2)
    assert (passage.text, passage.spans) == ("one two three four five six ", (Span(0, 28),))


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from([Window, Merge]),
    st.lists(st.text(alphabet="ab. \n", max_size=60), min_size=1, max_size=4),
    st.sampled_from(SPECS),
    st.integers(1, 40),
    st.integers(1, 6) | st.none(),
    st.randoms(use_true_random=False),
)
def test_passages_keep_their_promises(kind, texts, spec, budget, k, random):
    documents = [Document(f"d{number}", text) for number, text in enumerate(texts)]
    corpus = chunk_corpus(documents, get_chunker(spec), workers=1)
    index = kind(method=Fixed(tuple(random.sample(range(len(corpus)), len(corpus))))).index(corpus)
    found = index.answers(["?"], k, budget, counter=WORDS)[0]
    assert found == index.answers(["?"], k, budget, counter=WORDS)[0]
    assert sum(WORDS.count(each.text) for each in found) <= budget
    assert len(found) <= (k or len(found))
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    source = {document.id: document.text for document in documents}
    taken: set[tuple[str, int]] = set()
    whole = {chunk.spans for chunk in corpus}
    for each in found:
        assert each.text == " ".join(span.slice(source[each.document_id]) for span in each.spans)
        places = {(each.document_id, at) for span in each.spans for at in range(span.start, span.end)}
        assert not places & taken
        taken |= places
        assert each.match == "part" or all(part.spans in whole for part in each.parts)
        assert all(each.spans[0].start <= part.spans[0].start < each.spans[-1].end for part in each.parts)
    if k is None and len(found):  # the next unit would not fit
        assert all(each.match != "part" for each in found) or len(found) == 1


def test_as_many_hits_are_used_as_the_budget_holds() -> None:
    corpus = sentences(*[1] * 100)
    stage = Merge(method=Fixed(tuple(range(100))))
    assert len(passages(stage, corpus, max_tokens=4 * 70 + 3)) == 70  # more than are searched at first
    assert len(passages(stage, corpus, max_tokens=10_000)) == 100
    assert len(passages(stage, corpus, 3, 10_000)) == 3
    assert len(passages(stage, corpus)) == 100


def test_chunks_of_several_spans_stand_alone() -> None:
    chunks = [Chunk("d", 0, (Span(0, 3), Span(8, 11)), "fox hen", 2), Chunk("d", 1, (Span(4, 7),), "cow", 1)]
    chunks += [Chunk("e", 0, (Span(0, 3),), "owl", 1), Chunk("e", 1, (Span(4, 7),), "elk", 1)]
    known = ChunkedCorpus(chunks, [Document("d", "fox cow hen"), Document("e", "owl elk")])
    found = passages(Merge(method=Fixed((0, 1, 2, 3))), known, k=4)
    assert [(each.text, len(each.spans)) for each in found] == [("fox hen", 2), ("cow", 1), ("owl elk", 1)]
    assert [known.document_numbers.tolist(), Merge(method=Fixed(())).index(known).nested] == [[0, 0, 1, 1], False]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("bm25+window", Window(method=BM25())),
        ("bm25+window:2", Window(method=BM25(), units=2)),
        ("bm25 + window : units=2", Window(method=BM25(), units=2)),
        ("bm25+merge", Merge(method=BM25())),
        ("bm25+rerank:depth=3+window", Window(method=replace(get_retriever("bm25+rerank"), depth=3))),  # type: ignore[call-arg]
    ],
)
def test_a_string_names_stages_and_their_name_reads_the_same(spec: str, expected: RetrievalMethod) -> None:
    assert get_retriever(spec) == expected
    assert get_retriever(expected.name) == expected


@pytest.mark.parametrize("option", ["[1, 2]", "null", "3"])
def test_an_option_without_its_name_needs_no_default(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    namespace = {"kind": "near", "leading": "units"}
    near = make_dataclass("Near", [("units", object)], bases=(Merge,), namespace=namespace, frozen=True, kw_only=True)
    monkeypatch.setitem(stages.entries, "near", near)
    assert get_retriever(f"bm25+near:{option}").name == f"bm25+near:{option}"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("bm25+windw", "unknown stage 'windw': expected one of "),
        ("bm25+windw:2", "did you mean 'window'?"),
        ("bm25+window+merge", "merge works on chunks, and bm25+window makes passages"),
        ("bm25+merge+rerank", "rerank works on chunks"),
        ('hybrid:bm25,"bm25+merge"', "hybrid fuses chunks, and bm25+merge makes passages"),
        ("bm25+window:0", "units is at least 1, got 0"),
        ("bm25+window:x", "window: units is a whole number; got 'x'"),
        ("bm25+window:1,units=2", "takes options as option=value, got '1'"),
        ("bm25+merge:1", "takes options as option=value, got '1'"),
        ("bm25+merge:method=dense", "the method stands before +merge"),
    ],
)
def test_a_string_that_names_no_stage_is_refused(spec: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        get_retriever(spec)
    assert message in str(caught.value)
