"""Context, headings, several spans and a model's texts reach each framework, and come back from it."""

from __future__ import annotations

import os
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # nothing here goes online
pytest.importorskip("langchain_text_splitters")
pytest.importorskip("llama_index.core")
pytest.importorskip("haystack")

from chunkadapters import langchain, llamaindex
from chunkadapters.places import WHOLE, PlaceKeys, chunk_records
from chunkcore import Benchmark, Evidence, Query, get_chunker
from chunkcore.chunkers.base import Draft
from chunkcore.text import Chunk, Document, Span, text_of_spans
from haystack import Document as HaystackDocument
from langchain_core.documents import Document as LangChainDocument
from langchain_core.runnables import RunnableLambda
from llama_index.core.schema import MetadataMode
from tests.strategies import hard_text

from integration_tests.frameworks import FRAMEWORKS, haystack_chunks, llamaindex_chunks
from integration_tests.toys import BENCHMARK, CHUNKERS, JOINTS, TEXTS, Telling, Windows, lost, registered


@pytest.fixture(autouse=True, scope="module")
def _registered():
    with registered(Telling, Windows):
        yield


frameworks = pytest.mark.parametrize("framework", FRAMEWORKS.values(), ids=FRAMEWORKS.keys())

TEXT = "0123456789abcdefghijABCDEFGHIJ----------"


TABLE = "# Prices\n\nAll hold.\n\n| part | price |\n|---|---|\n" + "".join(
    f"| part{n} | {n} euro |\n" for n in range(30)
)


@frameworks
@pytest.mark.parametrize("chunkers", [("markdown:size=20",), ("markdown:size=60", "fixed_token:size=40,overlap=0")])
def test_the_text_of_a_chunk_and_of_a_hit_is_the_text_of_its_place(framework, chunkers):
    chunks = framework.cut(TABLE, *map(get_chunker, chunkers))
    assert any(len(chunk.spans) > 1 for chunk in chunks)
    for chunk in chunks:
        assert chunk.text == text_of_spans(TABLE, chunk.spans)
    benchmark = Benchmark("b", [Document("d", TABLE)], [Query("q", "What?", (Evidence("d", Span(0, 8)),))])
    run = framework.hooks.run_retriever(framework.answer([chunk.own for chunk in chunks]), benchmark)
    located = run.results["q"]
    assert [hit.spans for hit in located] == [chunk.spans for chunk in chunks]
    assert [hit.text for hit in located] == [text_of_spans(TABLE, hit.spans) for hit in located]


def places_of(chunks):
    return [[(span.start, span.end) for span in chunk.spans] for chunk in chunks]


@frameworks
@given(text=hard_text().filter(bool), outer=st.sampled_from(CHUNKERS), inner=st.sampled_from(CHUNKERS))
def test_a_chain_of_splitters_gives_places_in_the_document(framework, text, outer, inner):
    chunks = framework.cut(text, outer, inner)
    placed = [chunk for chunk in chunks if chunk.spans]
    assert not lost(text, places_of(placed))
    # Only the joint of a scattered piece is no source text; a chunk of nothing else has no place.
    assert all(set(chunk.text) <= JOINTS for chunk in chunks if not chunk.spans)
    for chunk in placed:
        source = text_of_spans(text, chunk.spans)
        if getattr(outer, "scattered", False):
            assert [c for c in source if c not in JOINTS] == [c for c in chunk.text if c not in JOINTS]
        else:
            assert source == chunk.text


@frameworks
@given(text=hard_text().filter(str.strip), language=st.sampled_from(["en", "ja"]))
def test_all_that_a_chunk_tells_comes_back_out_of_its_metadata(framework, text, language):
    core = Telling().chunk(Document("d", text, {"language": language}))
    for chunk, made in zip(core, framework.cut(text, Telling(), language=language), strict=True):
        told = made.metadata
        assert {type(value) for value in told.values()} <= {str, int, float, bool}  # which any store can keep
        assert made.text == chunk.text
        assert made.spans == chunk.spans
        assert told.get("context", "") == chunk.context
        assert told.get("derived", False) is chunk.derived
        assert told.get("headings", "").split(" > ") == chunk.metadata.get("headings", [""])
        # The strategy saw the document's metadata, and what it tells of that name stands beside.
        assert told["language"] == language
        assert told.get("chunk_language") == chunk.metadata.get("language")


@frameworks
def test_a_chunk_tells_no_more_than_there_is(framework):
    plain, told, derived, several = framework.cut(TEXT, Telling())
    names = ["context", "derived", "headings", "spans", "weights", "empty", "language"]
    assert [name for name in names if name in plain.metadata] == []
    assert {name: told.metadata[name] for name in names if name in told.metadata} == {
        "context": "Window 1 of 012.",
        "headings": "Top > Part 1",
        "weights": '{"a": 1}',
    }
    assert {name: derived.metadata[name] for name in names if name in derived.metadata} == {"derived": True}
    assert {name: several.metadata[name] for name in names if name in several.metadata} == {"spans": "30-40,0-5"}


def test_a_models_text_has_no_white_space_after_it():
    chunk = Chunk("d", 0, (Span(0, 4),), "A model wrote.", 3, derived=True)
    ((*_, record),) = chunk_records(Document("d", "Tea.\n"), [chunk], WHOLE, {}, PlaceKeys("start", "end"), set())
    assert record == {"derived": True, "start": 0, "end": 4}


@frameworks
def test_what_the_user_wrote_is_never_overwritten(framework):
    mine = {"headings": "mine", "context": "mine, too", "weights": [1, 2]}
    for made in framework.cut(TEXT, Telling(), **mine):
        assert {name: made.metadata[name] for name in mine} == mine
    told = framework.cut(TEXT, Telling(), **mine)[1].metadata
    assert told["chunk_context"] == "Window 1 of 012."
    assert told["chunk_headings"] == "Top > Part 1"


@frameworks
def test_every_part_of_a_models_text_comes_from_its_passage(framework):
    parts = [made for made in framework.cut(TEXT, Telling(), Windows(size=6)) if made.metadata.get("derived")]
    assert [made.text for made in parts] == ["A mode", "l wrot", "e of 0", "1."]
    assert {made.spans for made in parts} == {(Span(20, 30),)}


@frameworks
def test_a_chunk_of_a_chunk_keeps_its_headings_and_its_place(framework):
    made = framework.cut(TEXT, Telling(), Windows(size=6))
    assert [each.metadata.get("headings") for each in made[2:4]] == ["Top > Part 1"] * 2
    assert [each.metadata.get("context") for each in made[2:4]] == ["Window 1 of 012."] * 2
    assert [each.spans for each in made[-3:]] == [(Span(30, 36),), (Span(36, 40), Span(0, 1)), (Span(1, 5),)]


@frameworks
def test_a_models_text_is_scored_by_its_passage(framework):
    text = TEXTS["tea.md"]
    derived = [made for made in framework.cut(text, Telling(), source="tea.md") if made.metadata.get("derived")]
    for made in derived:
        # The store kept what the source is called.
        if isinstance(made.own, LangChainDocument | HaystackDocument):
            made.metadata["source_id"] = "tea.md"
    run = framework.hooks.run_retriever(framework.answer([made.own for made in derived]), BENCHMARK)
    found = run.results["q1"]
    assert {each.match for each in found} == {"spans"}
    assert [(each.document_id, each.spans, each.text) for each in found] == [
        ("tea.md", made.spans, made.text) for made in derived
    ]


def test_a_llamaindex_model_reads_the_context_and_the_llm_the_headings_too():
    _, told, derived, several = (made.own for made in llamaindex_chunks(TEXT, Telling(), author="Ada"))
    assert told.get_content(MetadataMode.EMBED) == "author: Ada\ncontext: Window 1 of 012.\n\nabcdefghij"
    shown = 'author: Ada\nheadings: Top > Part 1\nweights: {"a": 1}\ncontext: Window 1 of 012.\n\nabcdefghij'
    assert told.get_content(MetadataMode.LLM) == shown
    for node in (derived, several):
        for mode in (MetadataMode.EMBED, MetadataMode.LLM):
            assert node.get_content(mode) == f"author: Ada\n\n{node.text}"


def test_haystack_counts_no_page_breaks_of_a_models_text():
    @dataclass(frozen=True, kw_only=True)
    class Broken(Telling):
        def cut(self, source):
            return [Draft((Span(0, 3),), derived="\f\fa model's")]

    assert haystack_chunks("one\ftwo", Broken())[0].metadata["page_number"] == 1


@dataclass(frozen=True, kw_only=True)
class WrittenOfTwo(Telling):
    """One text of a model, written from two places."""

    name = "written-of-two"

    def cut(self, source):
        return [Draft((Span(20, 30), Span(0, 5)), derived="A model wrote this.")]


@frameworks
def test_a_models_text_of_two_places_keeps_both_when_it_is_cut(framework):
    with registered(WrittenOfTwo):
        parts = framework.cut(TEXT, WrittenOfTwo(), Windows(size=8))
    assert [made.text for made in parts] == ["A model ", "wrote th", "is."]
    assert {made.spans for made in parts} == {(Span(20, 30), Span(0, 5))}


def test_llamaindex_nodes_of_a_models_text_say_so_without_inherited_metadata():
    derived = llamaindex_chunks(TEXT, Telling())[2].own
    (node, *_) = llamaindex.ChunkcoreNodeParser(Windows(), include_metadata=False)([derived])
    assert (node.metadata, node.start_char_idx, node.end_char_idx) == ({"derived": True}, 20, 30)


def test_spans_that_somebody_handed_down_without_knowing_them_are_not_believed():
    text = "Green tea"
    told = {"source_id": "tea.md", "start_index": 0, "end_index": 9, "spans": "20-25,40-45"}
    answer = RunnableLambda(lambda query: [LangChainDocument(page_content=text, metadata=told)])  # type: ignore[var-annotated]
    found = langchain.run_retriever(answer, BENCHMARK).results["q1"][0]
    assert (found.spans, found.match) == ((Span(0, 9),), "spans")


@frameworks
def test_metadata_are_copied_deeply_and_the_parents_stay_as_they_were(framework):
    mine = {"tags": ["a"], "nested": {"deep": [1]}}
    first, second, *_ = framework.cut(TEXT, Windows(size=10), **mine)
    first.metadata["tags"].append("b")
    assert (second.metadata["tags"], mine["tags"], second.metadata["nested"]) == (["a"], ["a"], {"deep": [1]})


@frameworks
def test_texts_and_the_white_space_after_them_are_the_source(framework):
    text = "def f(x):\n    if x:\n        return 1\n\n\ndef g(y):\n    return y\n"
    for counter in ("words", "characters"):
        chunks = framework.cut(text, get_chunker("recursive", size=8, counter=counter))
        assert len(chunks) > 1
        assert "".join(made.text + made.metadata.get("white_space", "") for made in chunks) == text
