"""The classes that are one strategy: each framework writes them down, copies them and builds them again."""

from __future__ import annotations

import os
import pickle
import re
import sys
from pathlib import Path
from subprocess import run
from typing import Any

import pytest

import chunkadapters
from chunkadapters import configuration
from chunkcore import strategies
from chunkcore.tokens import get_counter

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # nothing here goes online

TEXT = "Green tea is mild. Black tea is strong.\n\nEspresso is short. Filter coffee is long."
STRATEGIES = {"Recursive": "recursive", "Semantic": "breakpoint", "ClusterSemantic": "cluster_semantic"}
NAMES = [*STRATEGIES, "Lumber"]
OPTIONS: dict[str, dict[str, Any]] = {
    "Recursive": {"size": 5, "overlap": 0, "counter": "words"},
    "Semantic": {"size": 9, "counter": "words", "embedder": "all-MiniLM-L6-v2"},
    "ClusterSemantic": {"size": 9, "piece_size": 3, "counter": "words", "embedder": "all-MiniLM-L6-v2"},
    "Lumber": {"llm": "openai:tiny@http://localhost:9/v1"},
}
STRATEGIES["Lumber"] = "lumber"


@pytest.mark.parametrize("name", NAMES)
def test_langchain_pickles_them(name: str) -> None:
    pytest.importorskip("langchain_text_splitters", reason="langchain-text-splitters is not installed")
    from chunkadapters import langchain

    named = getattr(langchain, f"{name}TextSplitter")(**OPTIONS[name])
    general = langchain.ChunkcoreTextSplitter(strategy=STRATEGIES[name], **OPTIONS[name])
    again = pickle.loads(pickle.dumps(named))
    assert type(again) is type(named)
    assert again.chunker == named.chunker == general.chunker
    if name == "Recursive":
        assert again.split_text(TEXT) == general.split_text(TEXT)
        encoded = langchain.RecursiveTextSplitter.from_tiktoken_encoder("o200k_base", chunk_size=7, chunk_overlap=0)
        assert (type(encoded), encoded.chunker.size) == (langchain.RecursiveTextSplitter, 7)
    with pytest.raises(ValueError, match="'recursive:size=5' was given"):
        getattr(langchain, f"{name}TextSplitter")(chunker="recursive:size=5")
    with pytest.raises(TypeError):
        getattr(langchain, f"{name}TextSplitter")("recursive:size=5")
    with pytest.raises(ValueError, match="was given"):
        getattr(langchain, f"{name}TextSplitter")(strategy="fixed_token")


@pytest.mark.parametrize("name", NAMES)
def test_llamaindex_builds_them_from_their_dictionary(name: str) -> None:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    from llama_index.core import Document
    from llama_index.core.ingestion.pipeline import get_transformation_hash

    from chunkadapters import llamaindex

    cls = getattr(llamaindex, f"{name}NodeParser")
    named = cls(**OPTIONS[name])
    general = llamaindex.ChunkcoreNodeParser(strategy=STRATEGIES[name], **OPTIONS[name])
    again = cls.from_dict(named.to_dict())
    assert type(again) is cls
    assert named.to_dict()["class_name"] == f"{name}NodeParser"
    assert again.chunker == named.chunker == general.chunker
    assert pickle.loads(pickle.dumps(named)).chunker == named.chunker
    nodes = [Document(text=TEXT)]
    assert get_transformation_hash(nodes, again) == get_transformation_hash(nodes, named)
    if name == "Recursive":
        texts = [node.text for node in named.get_nodes_from_documents(nodes)]
        assert texts == [node.text for node in general.get_nodes_from_documents(nodes)]
    with pytest.raises(ValueError, match="was given"):
        cls(strategy="fixed_token")


@pytest.mark.parametrize("name", NAMES)
def test_haystack_loads_them_from_yaml(name: str) -> None:
    pytest.importorskip("haystack", reason="haystack-ai is not installed")
    from haystack import Document, Pipeline

    from chunkadapters import haystack

    cls = getattr(haystack, f"{name}Splitter")
    named = cls(options=OPTIONS[name])
    general = haystack.ChunkcoreDocumentSplitter(strategy=STRATEGIES[name], options=OPTIONS[name])
    pipeline = Pipeline()
    pipeline.add_component("splitter", named)
    again = Pipeline.loads(pipeline.dumps()).get_component("splitter")
    assert type(again) is cls
    assert again.chunker == named.chunker == general.chunker
    if name == "Recursive":
        documents = [Document(id="tea", content=TEXT)]
        found = Pipeline.loads(pipeline.dumps()).run({"splitter": {"documents": documents}})["splitter"]["documents"]
        assert found == general.run(documents)["documents"]
    with pytest.raises(ValueError, match="was given"):
        cls(strategy="fixed_token")


TYPED = """
from chunkadapters.haystack import ChunkcoreDocumentSplitter, RecursiveSplitter
from chunkadapters.langchain import ChunkcoreTextSplitter, SemanticTextSplitter
from chunkadapters.llamaindex import ChunkcoreNodeParser, SemanticNodeParser

ChunkcoreTextSplitter(strategy="recursive", chunk_overlap=3, fit_to="a model")
SemanticTextSplitter(size=9, embedder="a model", add_start_index=True)
ChunkcoreNodeParser(chunk_overlap=3, metadata_aware=True)
SemanticNodeParser(size=9, metadata_aware=True)
ChunkcoreDocumentSplitter("recursive:size=9", keep_white_space=True)
RecursiveSplitter(options={"chunk_overlap": 3}, fit_to="a model")
ChunkcoreTextSplitter(separators=[","], keep_separator="end", is_separator_regex=False, strip_whitespace=False)
ChunkcoreNodeParser(length_function=len, keep_separator=False)
ChunkcoreDocumentSplitter(chunk_size=9, strip_whitespace=False)
ChunkcoreTextSplitter(chunk_overlpa=3)  # wrong
ChunkcoreTextSplitter(keep_separator="middle")  # wrong
ChunkcoreDocumentSplitter(chunk_overlpa=3)  # wrong
RecursiveSplitter(chunk_overlap=3)
RecursiveSplitter(threshold="percentile")  # wrong
ChunkcoreTextSplitter.from_tiktoken_encoder(chunk_overlpa=3)  # wrong
SemanticTextSplitter(overlap=3)  # wrong
ChunkcoreNodeParser(chunk_overlpa=3)  # wrong
SemanticNodeParser(overlap=3)  # wrong
ChunkcoreDocumentSplitter(options={"chunk_overlpa": 3})  # wrong
RecursiveSplitter(options={"threshold": "percentile"})  # wrong
"""


def test_a_type_checker_sees_a_misspelt_option(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    program = tmp_path / "program.py"
    program.write_text(TYPED, encoding="utf-8")
    # The frameworks are not read: a keyword is checked against our own signatures, in seconds.
    options = ("--config-file=", "--no-site-packages", "--ignore-missing-imports", "--follow-imports=silent")
    told = run(
        [sys.executable, "-m", "mypy", *options, f"--cache-dir={tmp_path}", program],
        env=os.environ | {"MYPYPATH": str(Path(chunkadapters.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    wrong = [number for number, line in enumerate(TYPED.splitlines(), start=1) if line.endswith("# wrong")]
    assert [int(each) for each in re.findall(r"py:(\d+): error", told)] == wrong, told


def test_the_options_that_type_checkers_see_are_the_strategies() -> None:
    names: dict[str, set[str]] = {name: set(strategies[name].option_names()) for name in STRATEGIES.values()}
    recursive = {"keep_separator", "is_separator_regex", "strip_whitespace", "length_function"}
    alias = {"recursive": recursive | {"chunk_size", "chunk_overlap"}}
    for name, strategy in STRATEGIES.items():
        typed = set(getattr(configuration, f"{name}Options").__annotations__)
        assert typed == names[strategy] | alias.get(strategy, {"chunk_size"})
    shipped = [each for _, each in strategies.items() if each.__module__.startswith("chunkcore.")]
    known = {option for strategy in shipped for option in strategy.option_names()}
    assert set(configuration.Options.__annotations__) == known - {"chunker"} | alias["recursive"]


@pytest.mark.parametrize(
    "options",
    [
        {"keep_separator": True},
        {"keep_separator": "end", "strip_whitespace": False},
        {"keep_separator": False, "separators": [". ", " "]},
        {"is_separator_regex": True, "separators": ["[.] ", "e"], "strip_whitespace": False},
    ],
)
def test_langchain_s_options_of_the_recursive_splitter_mean_the_same(options: dict[str, Any]) -> None:
    splitters = pytest.importorskip("langchain_text_splitters", reason="LangChain is not installed")
    from chunkadapters.langchain import ChunkcoreTextSplitter

    size = {"chunk_size": 40, "chunk_overlap": 0, "length_function": len}
    original = splitters.RecursiveCharacterTextSplitter(**size, **options).split_text(TEXT * 3)
    ours = ChunkcoreTextSplitter(**size, **options)
    assert ours.chunker.to_dict()["counter"] == "characters"
    assert ours.split_text(TEXT * 3) == original


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"separator": " "}, "is an option of CharacterTextSplitter.*exact.*here it is separators"),
        ({"split_length": 3}, "is an option of Haystack's splitters.*exact.*here it is size"),
        ({"length_function": lambda text: 1}, "length_function is len or a counter's count here"),
        ({"keep_separator": True, "keep": "end"}, "keep_separator and keep are the same option"),
        ({"keep_separator": "middle"}, "keep.*'middle'"),
        ({"strategy": "sentence", "keep_separator": True}, "has no option 'keep_separator'"),
    ],
)
def test_an_option_that_has_no_equal_is_told_with_what_to_use(options: dict[str, Any], told: str) -> None:
    options = dict(options)
    with pytest.raises(ValueError, match=told):
        configuration.build(strategy=options.pop("strategy", None), options=options)


def test_a_counter_s_count_is_that_counter() -> None:
    counter = get_counter("words")
    assert configuration.build(options={"length_function": counter.count}).token_counter == counter
