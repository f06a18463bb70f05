"""Pages: of a span, of chunks, and of chunks in each framework under the framework's own key."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace

import pytest
from chunkadapters.places import join_pages, join_pages_by_source, marks_of, with_page_marks
from chunkcore import DataError, Document, Mark, Span, get_chunker, load_benchmark
from chunkcore.locating import Locator

from tests.layouts import collection

TEXT = "Black tea is hot. Green tea is not. White tea is rare."
MARKS = tuple(
    Mark("page", Span(start, end), {"number": number, "label": label})
    for start, end, number, label in [(0, 17, 1, "i"), (18, 35, 2, "ii"), (36, 54, 4, "1")]
)
PAGED = Document("tea.pdf", TEXT, {"title": "Tea"}, MARKS)
TWO_WORDS = "recursive:size=2,counter=words"


def test_a_span_is_on_the_pages_it_touches():
    assert PAGED.pages_of(Span(0, 17)) == (1,)
    assert PAGED.pages_of(Span(16, 40)) == (1, 2, 4)
    assert PAGED.pages_of([Span(40, 44), Span(0, 3)]) == (1, 4)
    assert PAGED.pages_of(Span(17, 18)) == ()  # what joins two pages
    assert Document("a", TEXT).pages_of(Span(0, 5)) == ()


def test_pages_of_marks_that_overlap_or_are_out_of_order():
    marks = (
        Mark("page", Span(20, 30), {"number": 3}),
        Mark("page", Span(0, 50), {"number": 1}),
        Mark("page", Span(5, 8), {"number": 2}),
        Mark("heading", Span(20, 22), {"level": 1}),
        Mark("page", Span(0, 9)),  # without a number
    )
    document = Document("a", TEXT, marks=marks)
    for start in range(50):
        expected = {m.data["number"] for m in marks[:3] if m.span.start <= start < m.span.end}
        assert set(document.pages_of(Span(start, start + 1))) == expected


def test_a_part_of_a_document_keeps_its_marks():
    part = PAGED.part(10, 40)
    assert part.text == TEXT[10:40]
    assert [part.pages_of(Span(place, place + 1)) for place in (0, 6, 7, 8, 26)] == [(1,), (1,), (), (2,), (4,)]


def test_marks_survive_json_lines(tmp_path):
    collection(tmp_path, [PAGED], {"question": "Hot?", "evidence": ["hot"]})
    assert load_benchmark(tmp_path).documents == [PAGED]


@pytest.mark.parametrize("spec", ["recursive:size=6,counter=words", "sentence:size=4,counter=words", "auto:size=6"])
def test_chunks_say_their_pages(spec):
    other = Document("other", "No pages here.")
    for chunks in get_chunker(spec).chunks_per_document([PAGED, other]):
        for chunk in chunks:
            expected = PAGED.pages_of(chunk.spans) if chunk.document_id == "tea.pdf" else ()
            assert chunk.metadata.get("pages", []) == list(expected)


def test_page_marks_travel_as_a_string(deep_json):
    assert marks_of(with_page_marks(PAGED)) == MARKS
    for damaged in ("", "[", "[[1]]", '[["x",0,1]]', "[[1,5,2]]", '"DEEP"', 7):
        assert marks_of({"page_marks": damaged}) == ()


@pytest.mark.parametrize("framework", ["langchain", "llamaindex", "haystack"])
def test_chunks_of_a_framework_say_their_pages_under_its_keys(framework):
    adapter = pytest.importorskip(f"chunkadapters.{framework}")
    paged, spec = adapter.from_document(PAGED), "recursive:size=6,counter=words"
    if framework == "langchain":
        chunks = [chunk.metadata for chunk in adapter.ChunkcoreTextSplitter(spec).split_documents([paged])]
        rows = [(chunk, chunk["start_index"], chunk["end_index"]) for chunk in chunks]
    elif framework == "llamaindex":
        nodes = adapter.ChunkcoreNodeParser(spec).get_nodes_from_documents([paged])
        rows = [(node.metadata, node.start_char_idx, node.end_char_idx) for node in nodes]
        assert not any("page_marks" in node.get_content(metadata_mode="all") for node in nodes)
    else:
        chunks = [chunk.meta for chunk in adapter.ChunkcoreDocumentSplitter(spec).run([paged])["documents"]]
        rows = [(chunk, chunk["split_idx_start"], chunk["split_idx_end"]) for chunk in chunks]
    assert len(rows) > 1
    for metadata, start, end in rows:
        pages = PAGED.pages_of(Span(start, end))
        label = {1: "i", 2: "ii", 4: "1"}[pages[0]]
        keys = {  # type: ignore[operator]
            "langchain": {"page": pages[0] - 1, "page_label": label, "title": "Tea"},
            "llamaindex": {"page_label": label},
            "haystack": {"page_number": pages[0]},
        }[framework] | {"pages": ", ".join(map(str, pages))}
        assert {key: metadata[key] for key in keys} == keys
        assert "page_marks" not in metadata


def test_join_pages_of_langchain():
    documents = pytest.importorskip("langchain_core.documents")
    pages = [
        documents.Document(page_content=text, metadata={"source": "tea.pdf", "page": page, "page_label": label, "k": 1})
        for page, label, text in [(0, "i", "Tea is hot."), (1, "ii", ""), (2, "1", "Tea is")]
    ]
    joined = join_pages(pages)
    assert (joined.id, joined.text, joined.metadata) == (
        "tea.pdf",
        "Tea is hot.\nTea is",
        {"source": "tea.pdf", "k": 1},
    )
    assert [(mark.data["number"], mark.data["label"]) for mark in joined.marks] == [(1, "i"), (3, "1")]
    (chunk,) = get_chunker("recursive").chunk(joined)
    assert chunk.metadata["pages"] == [1, 3]
    splitter = pytest.importorskip("chunkadapters.langchain").ChunkcoreTextSplitter(TWO_WORDS)
    assert starts_in(joined, "langchain", splitter.split_documents(pages)) == [0, 7, 12]


def starts_in(joined, framework, chunks):
    hits = map(import_module(f"chunkadapters.{framework}.retrieval").hit_of, chunks)
    return [verdict.piece.spans[0].start for verdict in Locator({joined.id: joined}).locate_all(list(hits))]


def test_join_pages_of_llamaindex():
    schema = pytest.importorskip("llama_index.core.schema")
    pages = [
        schema.Document(text=text, metadata={"page_label": label, "file_name": "tea.pdf", "file_path": "/x/tea.pdf"})
        for label, text in [("i", "Tea is hot."), ("ii", "Tea is"), ("1", "Tea is")]
    ]
    joined = join_pages(pages)
    assert (joined.id, joined.text) == ("/x/tea.pdf", "Tea is hot.\nTea is\nTea is")
    assert joined.pages_of(Span(8, 15)) == (1, 2)
    parser = pytest.importorskip("chunkadapters.llamaindex").ChunkcoreNodeParser(TWO_WORDS)
    third = schema.TextNode(text="Tea is", metadata=pages[1].metadata, start_char_idx=19, end_char_idx=25)
    assert starts_in(joined, "llamaindex", [*parser(pages), third]) == [0, 7, 12, 19, 19]


def test_join_pages_of_haystack():
    haystack = pytest.importorskip("haystack")
    one = haystack.Document(content="Black tea is\fhot.\f\fAnd cold.", meta={"file_path": "tea.pdf"})
    joined = join_pages([one])
    assert joined.text == "Black tea is\nhot.\nAnd cold."
    assert [mark.data["number"] for mark in joined.marks] == [1, 2, 4]
    several = [haystack.Document(content=each, meta={"file_path": "tea", "page_number": int(each)}) for each in "12"]
    assert join_pages(several).pages_of(Span(2, 3)) == (2,)


def test_join_pages_refuses_what_it_cannot_join():
    page = SimpleNamespace(page_content="Tea", metadata={"source": "a", "page": 0})
    other = SimpleNamespace(page_content="Tea", metadata={"source": "b", "page": 0})
    assert [each.id for each in join_pages_by_source([page, other])] == ["a", "b"]
    empty = SimpleNamespace(page_content="", metadata={"source": "a", "page": 0})
    cases = [([page, other], "one file"), ([], "at least one"), ("tea.pdf", "list"), (7, "list")]
    cases += [([7], "document 0 is a int"), ([empty], "OCR")]
    for wrong, told in cases:
        with pytest.raises(DataError, match=told):
            join_pages(wrong)
