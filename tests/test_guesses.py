"""What somebody types who knows other libraries works, or one sentence says how it is written here."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import chunkcore
import pytest
from chunkcore import (
    Benchmark,
    ChunkcoreError,
    Document,
    Evidence,
    Query,
    Span,
    chunk_corpus,
    get_chunker,
    get_counter,
    get_retriever,
    load_benchmark,
    load_index,
    run_experiment,
    run_retriever,
    score,
)
from chunkcore.chunkers import Recursive
from chunkcore.cli import main
from chunkcore.tokens import TokenCounter

from tests.layouts import collection

TEA = Document("tea.md", "Green tea is mild. Black tea is strong.")
CORPUS = chunk_corpus([TEA], "sentence:size=8")
INDEX = get_retriever("bm25").index(CORPUS)
BENCHMARK = Benchmark("tea", [TEA], [Query("1", "Which tea is mild?", (Evidence("tea.md", Span(0, 18)),))])
THEIRS: Any = SimpleNamespace(page_content="Tea.")  # a Document of LangChain
FORGOTTEN = r"retriever = get_retriever\('bm25'\)\.index\(corpus\)"


@pytest.mark.parametrize(
    ("guess", "answer"),
    [
        (lambda: get_retriever("bm25").retrieve("tea"), FORGOTTEN),
        (lambda: run_retriever(get_retriever("bm25"), BENCHMARK), FORGOTTEN),
        (lambda: run_retriever("bm25", BENCHMARK), FORGOTTEN),  # type: ignore[arg-type]
        (lambda: get_retriever("dense").index(CORPUS, THEIRS).retrieve("tea"), "as_embedder of the framework's"),
        (lambda: get_retriever("bm25,dense"), "several are given one by one"),
        (lambda: get_chunker("recursive,size=200"), "options follow a colon"),
        (lambda: get_chunker("RecursiveCharacterTextSplitter"), "did you mean 'recursive:counter=characters'"),
        (lambda: get_chunker("recursive", model_name="gpt-4o"), "did you mean 'counter'"),
        (lambda: load_benchmark([TEA], [{"question": "Mild?"}]), 'expected lines like {"question"'),
        (lambda: get_retriever("bm25").index([TEA]), r"index\(chunk_corpus\(documents, "),
        (lambda: INDEX.search("one text"), "put one question in a list"),
        (lambda: INDEX.search(None), "an index takes a list of questions, got None"),
        (lambda: INDEX.retrieve(["tea"]), "one question as a string"),
        (lambda: INDEX.retrieve("tea", k=0), "k is at least 1"),
        (lambda: get_chunker("recursiv"), "did you mean 'recursive'"),
        (lambda: Recursive(chunk_size=50), "did you mean 'size'"),  # type: ignore[call-arg]
        (lambda: chunk_corpus([TEA], 3), "a chunker is given as name:option=value"),
        (lambda: chunk_corpus(["text"], "recursive"), r'Document\("faq.md", text\), or load_d'),  # type: ignore[list-item]
        (lambda: chunk_corpus([THEIRS], "recursive"), r"join_pages_by_source\(documents\) of chunkadapters.langchain"),
        (lambda: chunk_corpus([TEA, TEA], "recursive"), "two documents have the id 'tea.md'"),
        (lambda: get_retriever("bm25").index(CORPUS).update([TEA, TEA]), "two documents have the id 'tea.md'"),
        (lambda: get_counter("gpt-4o"), "did you mean o200k_base"),
        (lambda: load_index("nowhere"), "nowhere"),
        (lambda: chunkcore.load_documents("Tea is hot. " * 99), r'of a text make a Document\("faq.md", text\)'),
        (lambda: load_benchmark("Tea is hot. " * 99), "does not exist: expected documents, as a folder or a file"),
        (lambda: score(BENCHMARK, run_retriever(INDEX, BENCHMARK)), "the run first, then the benchmark: swap"),  # type: ignore[arg-type]
        (lambda: run_retriever(THEIRS, BENCHMARK), "evaluate_retriever of its adapter"),
        (lambda: score(run_retriever(INDEX, BENCHMARK), BENCHMARK).mean(), r"report.mean\('Recall@1000tok'\)"),
        (lambda: get_chunker("recursive", max_tokens=200), "did you mean 'size'"),
        (lambda: load_benchmark(docs=[TEA]), "did you mean 'documents'"),  # type: ignore[call-arg]
        (lambda: run_experiment(BENCHMARK, "recursive", retriever="bm25"), "did you mean 'retrievers'"),  # type: ignore[call-arg]
        (lambda: run_experiment("docs/", "recursive"), r"got str: load_benchmark\(documents, questions\)"),  # type: ignore[arg-type]
        (lambda: INDEX.retrieve("tea", top_k=3), "did you mean 'k'"),  # type: ignore[call-arg]
        (lambda: load_benchmark([TEA], [{"q": "Mild?"}]), r"the line has \['q'\]"),
        (lambda: run_retriever(BENCHMARK, INDEX), "retriever first, then the benchmark"),  # type: ignore[arg-type]
        (lambda: load_benchmark([{"question": "Mild?"}], [TEA]), "documents first, then the questions"),  # type: ignore[list-item]
    ],
)
def test_a_guess_is_answered_in_one_sentence_of_the_library(guess: Callable[[], Any], answer: str) -> None:
    with pytest.raises(ChunkcoreError, match=answer) as caught:
        guess()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("chunk DOCS --size 200", "--chunker recursive:size=200?"),
        ("chunk DOCS --chunk-overlap 20", "--chunker recursive:size=200,overlap=20?"),
        ("compare DOCS --metric Recall@5", "--measure?"),
        ("index DOCS --save x", "--output?"),
        ("index DOCS", "'--output' / '-o', such as -o docs.index;"),
        ("search DOCS tea --size 100", "--max-tokens?"),
        ("search DOCS tea -n 3", "-k?"),
        ("questions generate DOCS --questions 200", "--count?"),
        ("questions generate DOCS", "such as --llm openai:gpt-5-mini@https://api.openai.com/v1;"),
        ("compare DOCS questions.jsonl", "questions after --questions"),
        ("chunk DOCS -s recursive:size={50,100}", "several values in braces are for chunkcore tune"),
        ("search tea DOCS", "name the folder first, then the question"),
        ("compare DOCS -r bm-25", "did you mean 'bm25'?"),
        ("chunk DOCS -s sentences", "did you mean 'sentence'?"),
        ("evaluate DOCS", "chunkcore compare?"),
        ("split DOCS", "chunkcore chunk?"),
        ("demo", "compare, which without DOCS compares on the collection that ships?"),
        ("report", "compare, which writes report.html?"),
        ("init", "label, which gets questions for your documents?"),
        ("version", "chunkcore --version?"),
        ("help", "chunkcore --help?"),
        ("label", "no documents are named"),
        ("list splitters", ""),
        ("list metrics", ""),
        ("compare DOCS --questions questions.jsonl -s recursive -r bm25 --k 5,1000tok", ""),
    ],
)
def test_a_guess_at_the_command_line_works_or_one_line_says_what_is_meant(words, answer, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    collection(tmp_path, [TEA], {"question": "Which tea is mild?", "evidence": ["Green tea is mild."]})
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "tea.md").write_text(TEA.text)
    assert main(words.replace("DOCS", "docs").split()) == (2 if answer else 0)
    told = capfd.readouterr().err.strip()
    assert answer in told
    assert not answer or told.count("\n") == 0


@pytest.mark.parametrize(
    ("framework", "names"),
    [
        ("langchain", "PassageCompressor IndexRetriever ChunkcoreTextSplitter PassageRetriever"),
        ("llamaindex", "PassagePostprocessor IndexRetriever ChunkcoreNodeParser PassageRetriever"),
        ("haystack", "ChunkcorePassageRanker ChunkcoreIndexRetriever"),
    ],
)
def test_a_guess_for_a_framework_is_answered_without_a_frame_of_pydantic_or_python(framework: str, names: str) -> None:
    adapter = pytest.importorskip(f"chunkadapters.{framework}", exc_type=ImportError)
    documents = [adapter.from_document(TEA)]
    passages, index, *more = (getattr(adapter, name) for name in names.split())
    retriever = index(documents=documents)
    guesses: dict[str, Callable[[], Any]] = {
        "^give either an index": passages,
        "did you mean 'max_tokens'": lambda: passages(documents=documents, max_token=5),
        "did you mean 'documents'": lambda: passages(document=documents),
        "^max_tokens is at least 1, got 0$": lambda: passages(documents=documents, max_tokens=0),
        "^documents is empty": lambda: passages(documents=[]),
        "documents=documents": lambda: passages(documents),
        "evaluate.* no option 'metric'.*'measures'": lambda: adapter.evaluate_retriever(retriever, BENCHMARK, metric=1),
        "a name; these have one: measures=, k=": lambda: adapter.evaluate_retriever(retriever, BENCHMARK, "Recall@5"),
    }
    if more:
        guesses["sizes have names: Chunkcore"] = lambda: more[0](1000, 200)
        guesses["PassageRetriever has no option 'top_k'.*'k'"] = lambda: more[1](retriever, top_k=5)
    for answer, guess in guesses.items():
        with pytest.raises(ChunkcoreError, match=answer) as caught:
            guess()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("sign", [",", ";", "\t"])
def test_a_table_of_questions_may_have_semicolons_or_tabs_and_filters_are_kept(tmp_path: Path, sign: str) -> None:
    table = tmp_path / "questions.csv"
    table.write_text(f"question{sign}evidence\nWhich tea is mild?{sign}Green tea is mild.\n")
    (query,) = load_benchmark([TEA], table).queries
    assert query.evidence == BENCHMARK.queries[0].evidence
    benchmark = Benchmark("tea", [TEA], [replace(query, where={"year": 2020})])
    row = {"question": query.text, "evidence": ["Green tea is mild."], "where": {"year": 2020}}
    assert load_benchmark([TEA], collection(tmp_path, [TEA], row)[1]).queries == benchmark.queries
    assert run_retriever(INDEX, benchmark).results[query.id] == []  # no document is of that year


def test_a_document_of_ones_own_has_arguments_of_its_own() -> None:
    page: Any = type("Page", (Document,), {"__init__": lambda self, path: Document.__init__(self, path, TEA.text)})
    assert page(path="tea.md").id == page("tea.md").id == "tea.md"


def test_names_stand_for_chunkers_retrievers_and_counters_everywhere() -> None:
    (report,) = run_experiment(BENCHMARK, "sentence:size=8", retrievers="bm25")
    run = run_retriever(get_retriever("bm25").index(chunk_corpus(BENCHMARK.documents, "sentence:size=8")), BENCHMARK)
    assert report.mean("Recall@1000tok") == score(run, BENCHMARK, "Recall@1000tok").mean("Recall@1000tok") == 1
    assert isinstance(get_counter("characters"), TokenCounter)
    passages = pickle.loads(pickle.dumps(get_retriever("passages:lexical").index(CORPUS)))
    (short,) = run_retriever(passages, BENCHMARK, None, 4, counter="words").results["1"]
    assert short.text == "Green tea is mild."
    assert get_retriever("bm25+merge").index(CORPUS, "no-such-model").retrieve("mild")  # loaded when something embeds


def test_a_misspelt_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'load_document'; did you mean 'load_documents'"):
        _ = chunkcore.load_document  # type: ignore[attr-defined]
