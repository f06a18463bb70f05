"""The Haystack component and the scores of Haystack's own retrievers and pipelines."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version

import pytest
from hypothesis import given
from hypothesis import strategies as st

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # nothing here goes online
pytest.importorskip("haystack", reason="haystack-ai is not installed")

from chunkadapters.haystack import arun_retriever, run_retriever
from chunkcore.chunkers.base import Chunker, Draft, chunkers
from chunkcore.errors import DataError, OptionError
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, Query
from chunkcore.text import Document as Source
from chunkcore.text import Span
from chunkcore.tokens import TokenizedText
from haystack import Document, Pipeline, component
from haystack.components.embedders import MockDocumentEmbedder, MockTextEmbedder
from haystack.components.joiners import DocumentJoiner
from haystack.components.preprocessors import DocumentSplitter
from haystack.components.retrievers import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
from haystack.components.writers import DocumentWriter
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.document_stores.types import DuplicatePolicy
from haystack_integrations.components.preprocessors.chunkadapters import ChunkcoreDocumentSplitter
from tests.strategies import hard_text

from integration_tests.toys import evidence as evidence_in


@chunkers.register("haystack-test-windows")
@dataclass(frozen=True, kw_only=True)
class Windows(Chunker):
    """So many characters, some of them shared with the chunk before."""

    size: int = 10
    overlap: int = 0
    counter: str = "characters"

    def cut(self, source: TokenizedText) -> list[tuple[int, int]]:
        length, step = len(source.text), self.size - self.overlap
        starts = range(0, max(length - self.overlap, 1), step)
        return [(start, min(start + self.size, length)) for start in starts if start < length]


@dataclass(frozen=True, kw_only=True)
class EveryOther(Chunker):
    """Two chunks: the even tens of characters and the odd ones; one says a context, and one a number of that name."""

    said = "part 1"

    counter: str = "characters"

    def cut(self, source: TokenizedText) -> list[Draft]:
        length = len(source.text)
        tens = [Span(start, min(start + 10, length)) for start in range(0, length, 10)]
        halves = [spans for spans in (tuple(tens[::2]), tuple(tens[1::2])) if spans]
        metadata = {"parts": 2, "context": 0}
        return [Draft(spans, metadata, context=self.said * number) for number, spans in enumerate(halves)]


def windows(size: int = 10, overlap: int = 0) -> ChunkcoreDocumentSplitter:
    return ChunkcoreDocumentSplitter(Windows(size=size, overlap=overlap))


def split(splitter, *documents: Document) -> list[Document]:
    return splitter.run(list(documents))["documents"]


# The splitter: places


@given(text=hard_text().filter(bool), outer=st.integers(5, 30), inner=st.integers(1, 12))
def test_a_chain_of_splitters_keeps_the_offsets_in_the_parent_too(text, outer, inner):
    root = Document(id="root", content=text)
    parents = split(windows(outer, outer // 3), root)
    by_id = {parent.id: parent for parent in parents}
    for chunk in split(windows(inner), *parents):
        meta = chunk.meta
        parent = by_id[meta["source_id"]]
        assert parent.content[meta["split_idx_start"] : meta["split_idx_end"]] == chunk.content  # type: ignore[index]
    whole = split(ChunkcoreDocumentSplitter(f"recursive:size={inner},counter=words"), root)
    assert "".join(chunk.content for chunk in whole) in ("", text)


def test_a_root_is_told_right_or_not_at_all_where_another_splitter_stood_in_between():
    root = Document(id="root", content="".join(f"w{i:02d} " for i in range(60)))
    outer = split(windows(50, 5), root)
    middle = split(windows(33, 5), *outer)
    scattered = split(ChunkcoreDocumentSplitter(EveryOther()), replace(root, content=root.content[:21]))  # type: ignore[index]
    between = [
        chunk
        for parents in (outer, middle, scattered)
        for chunk in DocumentSplitter(split_by="word", split_length=3).run(parents)["documents"]
    ]
    texts = {document.id: document.content for document in [root, *outer, *middle, *scattered]}
    for chunk in split(windows(2), *between):
        if "root_source_id" in chunk.meta:
            text = texts[chunk.meta["root_source_id"]]
            found = text[chunk.meta["root_idx_start"] : chunk.meta["root_idx_end"]]  # type: ignore[index]
            assert found == chunk.content  # the joint of two places stands nowhere


@pytest.mark.parametrize("meta", [{}, {"context": "theirs"}])
def test_an_id_changes_with_the_context_that_was_written(meta, monkeypatch):
    ids = set()
    for said in ("one", "two"):
        monkeypatch.setattr(EveryOther, "said", said)
        ids.add(split(ChunkcoreDocumentSplitter(EveryOther()), Document(id="d", content="a" * 20, meta=meta))[1].id)
    assert len(ids) == 2


def test_chunks_of_several_places_say_all_of_them_and_their_own_chunks_find_the_root():
    text = "0123456789abcdefghijABCDEFGHIJ----------"
    even, odd = split(ChunkcoreDocumentSplitter(EveryOther()), Document(id="root", content=text))
    assert even.content == "0123456789 ABCDEFGHIJ"
    assert even.meta["spans"] == "0-10,20-30"
    assert (even.meta["split_idx_start"], even.meta["split_idx_end"]) == (0, 30)
    assert (even.meta["context"], odd.meta["context"], odd.meta["parts"]) == (0, "part 1", 2)
    first, second, third = split(windows(8), even)
    assert (first.content, first.meta["root_idx_start"], first.meta["root_idx_end"]) == ("01234567", 0, 8)
    assert (second.content, second.meta["root_spans"]) == ("89 ABCDE", "8-10,20-25")
    assert (third.content, third.meta["root_idx_start"], third.meta["root_idx_end"]) == ("FGHIJ", 25, 30)
    assert "spans" not in first.meta
    assert "root_spans" not in third.meta
    assert {first.meta["root_source_id"], second.meta["root_source_id"], even.meta["root_source_id"]} == {"root"}


# The splitter: overlap, pages, metadata, ids

HAYSTACK_VERSION = tuple(map(int, version("haystack-ai").split(".")[:2]))


def own_splitter_as_windows(words: int, overlap: int) -> tuple[DocumentSplitter, ChunkcoreDocumentSplitter]:
    """Haystack's word splitter, and one of ours that cuts words of four letters and a space alike."""
    return (
        DocumentSplitter(split_by="word", split_length=words, split_overlap=overlap),
        windows(5 * words, 5 * overlap),
    )


@pytest.mark.skipif(
    HAYSTACK_VERSION < (3, 4), reason="before 3.4, Haystack counts a page break that begins a chunk to the page before"
)
@pytest.mark.parametrize(("words", "overlap"), [(4, 0), (4, 1), (5, 4)])
def test_overlap_and_pages_are_told_exactly_as_haystacks_own_splitter_tells_them(words, overlap):
    parts = [f"w{i:03d} " for i in range(37)]
    for place in (0, 3, 4, 5, 11, 12, 30):
        parts[place] = f"\f{parts[place][1:]}"  # a page begins with this word
    parts[20] = "\f\f\f\f "
    text = "".join(parts)
    theirs, ours = own_splitter_as_windows(words, overlap)
    expected = theirs.run([Document(id="x", content=text, meta={"k": 1})])["documents"]
    found = split(ours, Document(id="x", content=text, meta={"k": 1}))
    assert [doc.content for doc in found] == [doc.content for doc in expected]
    for their, mine in zip(expected, found, strict=True):
        meta = dict(mine.meta)
        del meta["split_idx_end"]
        told = dict(their.meta)
        told.pop("_split_overlap", None)
        assert meta == told


@pytest.mark.parametrize("cast", [int, float, str])
@given(pages=st.lists(st.text("ab\f", max_size=6), min_size=1, max_size=6), outer=st.integers(1, 12))
def test_pages_through_a_chain_are_those_of_the_root(cast, pages, outer):
    text = "\f".join(pages) + "."
    parents = split(windows(outer), Document(content=text))
    for parent in parents:
        parent.meta["page_number"] = cast(parent.meta["page_number"])  # as some stores give it back
    for chunk in split(windows(3), *parents):
        first = len(chunk.content) - len(chunk.content.lstrip("\f"))
        if first < len(chunk.content):
            assert chunk.meta["page_number"] == 1 + text.count("\f", 0, chunk.meta["root_idx_start"] + first)


def test_ids_are_the_same_in_every_run_and_tell_text_place_and_options_apart():
    def ids(content="aaaaaaaaaaaaaaaaaaaa", size=10, **meta):
        return [chunk.id for chunk in split(windows(size), Document(id="doc", content=content, meta=meta))]

    assert ids() == ids() == ids(tags={"b", "a"})
    assert len(set(ids())) == 2  # the same text twice
    assert ids()[0] != ids(size=11)[0]
    assert ids()[0] != ids("aaaaaaaaab" * 2)[0]  # an edited text under the old name must be written again
    assert len(ids()[0]) == 64


# The splitter: Haystack's conventions


def test_documents_are_a_list_of_texts_also_asynchronously():
    for wrong in ("text", Document(content="a"), None):
        with pytest.raises(TypeError, match="expects a list of Documents as input, got"):
            windows().run(wrong)
    with pytest.raises(ValueError, match="document ID x is None"):
        windows().run([Document(id="x", content=None)])
    documents = [Document(id="x", content="0123456789abc"), Document(id="y", content="")]
    assert asyncio.run(windows().run_async(documents)) == windows().run(documents)
    assert type("Own", (ChunkcoreDocumentSplitter,), {"run": len, "run_async": print}).run_async is print


# The splitter: configuration


INDEXING = """\
import sys
from haystack import Document, Pipeline

assert not any(name.startswith(("chunkcore", "chunkadapters", "haystack_integrations")) for name in sys.modules)
pipeline = Pipeline.loads(sys.stdin.read())
text = "One sentence here. " * 30
pipeline.run({"splitter": {"documents": [Document(id="doc", content=text)]}})
store = pipeline.get_component("writer").document_store
for chunk in store.filter_documents():
    assert text[chunk.meta["split_idx_start"]:chunk.meta["split_idx_end"]] == chunk.content
print(store.count_documents())
print(pipeline.dumps(), end="")
"""


def test_a_pipeline_is_loaded_by_a_process_that_knows_haystack_alone():
    pipeline = Pipeline()
    options = {"size": 20, "overlap": 4, "counter": "words"}
    pipeline.add_component("splitter", ChunkcoreDocumentSplitter("recursive", options=options))
    pipeline.add_component("writer", DocumentWriter(InMemoryDocumentStore(), policy=DuplicatePolicy.OVERWRITE))
    pipeline.connect("splitter", "writer")
    written = pipeline.dumps()
    done = subprocess.run([sys.executable, "-c", INDEXING], input=written, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    count, again = done.stdout.split("\n", 1)
    assert int(count) > 3
    assert again == written
    assert "size: 20" in written


# The scores of retrievers and pipelines

REFRAIN = "The notice period is thirty days. "
TEXTS = {
    "lease.md": f"The flat is in Leipzig. {REFRAIN}Dogs are welcome. Cats need a permit. {REFRAIN}",
    "job.md": f"The office is in Essen. {REFRAIN}Lunch is free on Fridays. Bicycles are paid for.",
}


evidence = partial(evidence_in, TEXTS)


@pytest.fixture
def benchmark() -> Benchmark:
    queries = [
        Query("pets", "Which pets need a permit? Cats or dogs?", (evidence("lease.md", "Cats need a permit."),)),
        Query("food", "Is the lunch free on Fridays?", (evidence("job.md", "Lunch is free on Fridays."),)),
    ]
    return Benchmark("letters", [Source(key, text) for key, text in TEXTS.items()], queries)


def parents(**meta) -> list[Document]:
    return [Document(id=key, content=text, meta=meta) for key, text in TEXTS.items()]


def store_of(documents: list[Document]) -> InMemoryDocumentStore:
    store = InMemoryDocumentStore()
    store.write_documents(documents)
    return store


WORDS = ["cats", "dogs", "permit", "lunch", "fridays", "notice", "days", "office"]


def word_counts(text: str) -> list[float]:
    words = text.lower().replace("?", " ").replace(".", " ").split()
    return [0.01] + [float(words.count(word)) for word in WORDS]


@pytest.fixture
def chunks() -> list[Document]:
    return split(windows(30), *parents())


@pytest.fixture
def embedded(chunks) -> InMemoryDocumentStore:
    return store_of(MockDocumentEmbedder(embedding_fn=word_counts).run(chunks)["documents"])


def test_a_retriever_of_our_chunks_is_located_by_their_spans(benchmark, chunks):
    run = run_retriever(InMemoryBM25Retriever(store_of(chunks), top_k=2), benchmark)
    assert run.name == "InMemoryBM25Retriever"
    assert list(run.results) == ["pets", "food"]
    for found in run.results.values():
        assert [piece.match for piece in found] == ["spans"] * len(found)
        for piece in found:
            assert TEXTS[piece.document_id][piece.spans[0].start : piece.spans[0].end] == piece.text
    assert run.results["food"][0].document_id == "job.md"
    assert run.results["food"][0].score > run.results["pets"][-1].score > 0


@component
class Fixed:
    """Answers with the same documents whatever is asked, and fails where the question holds a word."""

    def __init__(self, documents: list[Document], fail_on: str = "\0", times: int = 10**9):
        self.documents = documents
        self.fail_on = fail_on
        self.times = times
        self.asked: list[str] = []

    @component.output_types(documents=list[Document])
    def run(self, query: str):
        self.asked.append(query)
        if self.fail_on in query and self.times > 0:
            self.times -= 1
            raise RuntimeError("the index is away")
        return {"documents": self.documents}


def located(benchmark, *documents: Document):
    return run_retriever(Fixed(list(documents)), benchmark).results["pets"]


NAMED = [{key: "job.md"} for key in ("source_id", "file_path")] + [{"file_path": "/data/letters/job.md"}]


@pytest.mark.parametrize("meta", [*NAMED, {"name": "job"}, {"source_id": "some hash", "file_name": "job.md"}])
def test_a_document_is_known_by_what_its_metadata_call_it(benchmark, meta):
    place = evidence("job.md", REFRAIN).span
    assert place == evidence("lease.md", REFRAIN).span  # the same text at the same place of another document
    (found,) = located(benchmark, Document(content=REFRAIN, meta={**meta, "split_idx_start": place.start}))
    assert (found.document_id, found.spans, found.match) == ("job.md", (place,), "spans")


def test_an_embedding_retriever_is_asked_in_a_pipeline(benchmark, embedded):
    retriever = InMemoryEmbeddingRetriever(embedded, top_k=1)
    with pytest.raises(OptionError, match="scored in a pipeline with its text embedder"):
        run_retriever(retriever, benchmark)
    run = run_retriever(dense(embedded), benchmark)
    assert run.results["food"][0].document_id == "job.md"
    assert asyncio.run(arun_retriever(dense(embedded), benchmark)).results == run.results


def dense(store) -> Pipeline:
    pipeline = Pipeline()
    pipeline.add_component("embedder", MockTextEmbedder(embedding_fn=word_counts))
    pipeline.add_component("retriever", InMemoryEmbeddingRetriever(store, top_k=2))
    pipeline.connect("embedder.embedding", "retriever.query_embedding")
    return pipeline


def hybrid(store) -> Pipeline:
    pipeline = dense(store)
    pipeline.add_component("bm25", InMemoryBM25Retriever(store, top_k=2))
    pipeline.add_component("joiner", DocumentJoiner())
    pipeline.connect("bm25.documents", "joiner.documents")
    pipeline.connect("retriever.documents", "joiner.documents")
    return pipeline


def test_several_ways_in_are_named_in_the_error_and_by_the_user(benchmark, embedded):
    pipeline = hybrid(embedded)
    with pytest.raises(
        OptionError, match=r"several inputs take a string: (embedder\.text, bm25\.query|bm25\.query, embedder\.text);"
    ):
        run_retriever(pipeline, benchmark)
    both = run_retriever(pipeline, benchmark, query_socket=["embedder.text", "bm25.query"])
    assert 2 <= len(both.results["food"]) <= 4
    one = run_retriever(pipeline, benchmark, query_socket="embedder.text", inputs={"bm25": {"query": "office"}})
    assert any("office" in piece.text for piece in one.results["food"])
    with pytest.raises(OptionError, match=r"nothing is given for the mandatory bm25\.query"):
        run_retriever(pipeline, benchmark, query_socket="embedder.text")


def test_an_inner_retriever_is_reached_by_name(benchmark, embedded):
    pipeline = hybrid(embedded)
    ways_in = ["embedder.text", "bm25.query"]
    inner = run_retriever(pipeline, benchmark, query_socket=ways_in, documents_socket="bm25.documents")
    alone = run_retriever(InMemoryBM25Retriever(embedded, top_k=2), benchmark)
    later = asyncio.run(arun_retriever(pipeline, benchmark, query_socket=ways_in, documents_socket="bm25.documents"))
    assert inner.results == alone.results == later.results


def test_other_inputs_are_passed_on(benchmark, embedded):
    assert [
        len(found)
        for found in run_retriever(dense(embedded), benchmark, inputs={"retriever": {"top_k": 1}}).results.values()
    ] == [1, 1]
    run = run_retriever(InMemoryBM25Retriever(embedded), benchmark, inputs={"top_k": 1})
    assert [len(found) for found in run.results.values()] == [1, 1]
    inputs = {"embedder": {}, "retriever": {"top_k": 1}}
    run_retriever(dense(embedded), benchmark, inputs=inputs)
    assert inputs == {"embedder": {}, "retriever": {"top_k": 1}}


@component
class NoDocuments:
    @component.output_types(words=list[str])
    def run(self, query: str):
        return {"words": [query]}


@component
class NoQuestion:
    @component.output_types(documents=list[Document])
    def run(self, query: str | None = None, top_k: int = 1):
        return {"documents": []}


@pytest.mark.parametrize(
    ("retriever", "options", "error", "message"),
    [
        (NoDocuments(), {}, OptionError, "no output gives a list of documents: name one of words"),
        (NoQuestion(), {}, OptionError, "no mandatory input takes a string: name one of query, top_k as query_socket"),
        (NoQuestion(), {"query_socket": "question"}, OptionError, "there is no 'question'; expected one of query"),
        (Fixed([]), {"documents_socket": "answers"}, OptionError, "there is no 'answers'; expected one of documents"),
        (Fixed([]), {"inputs": {"topk": 3}}, OptionError, "inputs: there is no topk; expected some of query"),
        (InMemoryDocumentStore(), {}, DataError, "InMemoryDocumentStore; a store is asked through its retriever"),
        (Fixed(["text"]), {}, DataError, "question food: expected Haystack documents, got a str among the answers"),  # type: ignore[list-item]
        (Fixed("text"), {}, DataError, "question food: expected a list of Haystack documents, got a str"),
        (Fixed([]), {"retries": -1}, OptionError, "retries is at least 0, got -1"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_what_to_do(benchmark, retriever, options, error, message):
    with pytest.raises(error, match=message):
        run_retriever(retriever, benchmark, **options)


def test_places_of_a_source_document_that_is_no_chunk_are_its_own():
    odd = {"spans": "3-4,9-10", "derived": True}
    (chunk,) = split(windows(40), Document(id="a", content="Tea is hot.", meta=odd))
    assert not {"spans", "derived"} & chunk.meta.keys()
    assert {f"source_{key}": value for key, value in odd.items()}.items() <= chunk.meta.items()
    (again,) = split(windows(40), chunk)
    assert again.meta["root_idx_end"] == len("Tea is hot.")


@pytest.mark.parametrize("first", ["markdown:size=30,counter=words", "markdown:size=20,counter=words"])
@pytest.mark.parametrize("second", ["recursive:size=5,counter=words", "sentence:size=8,counter=words"])
def test_a_chain_after_a_repeated_header_states_whole_places(first: str, second: str) -> None:
    rows = "".join(f"| drug{number} | {number} |\n" for number in range(12))
    text = f"# T\n\n| a | b |\n|---|---|\n{rows}\nAfter the table comes text. And more text here.\n"
    tables = ChunkcoreDocumentSplitter(first).run([Document(content=text)])["documents"]
    chunks = ChunkcoreDocumentSplitter(second).run(tables)["documents"]
    for chunk in chunks:
        if "root_spans" not in chunk.meta:
            assert text[chunk.meta["root_idx_start"] : chunk.meta["root_idx_end"]] == chunk.content
