"""The classes that are one strategy: each framework writes them down, copies them and builds them again."""

from __future__ import annotations

import os
import pickle
from typing import Any

import pytest

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # nothing here goes online

TEXT = "Green tea is mild. Black tea is strong.\n\nEspresso is short. Filter coffee is long."
STRATEGIES = {"Recursive": "recursive", "Semantic": "breakpoint", "ClusterSemantic": "cluster_semantic"}
NAMES = [*STRATEGIES, "Lumber"]
OPTIONS: dict[str, dict[str, Any]] = {
    "Recursive": {"size": 5, "overlap": 0, "counter": "words"},
    "Semantic": {"max_size": 9, "counter": "words", "embedder": "all-MiniLM-L6-v2"},
    "ClusterSemantic": {"max_size": 9, "piece_size": 3, "counter": "words", "embedder": "all-MiniLM-L6-v2"},
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
