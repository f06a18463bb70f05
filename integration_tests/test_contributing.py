"""The strategy of CONTRIBUTING.md, as somebody else's package, is built by name in all three frameworks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.plugins import Installed, on_path

TEXT = "One.\n\n\nTwo is four words."
CUT = ["One.", "Two is four", "words."]


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installed]:
    with on_path(tmp_path, monkeypatch) as package:
        package.offer()
        yield package


def test_langchain_builds_it_and_knows_its_size_by_langchain_s_name() -> None:
    pytest.importorskip("langchain_text_splitters")
    from chunkadapters.langchain import ChunkcoreTextSplitter

    assert ChunkcoreTextSplitter("paragraph", chunk_size=3, counter="words").split_text(TEXT) == CUT


def test_llamaindex_builds_it_and_builds_it_again() -> None:
    pytest.importorskip("llama_index.core")
    from chunkadapters.llamaindex import ChunkcoreNodeParser
    from llama_index.core import Document

    parser = ChunkcoreNodeParser("paragraph:size=3,counter=words")
    for each in (parser, ChunkcoreNodeParser.from_dict(parser.to_dict())):
        nodes = each.get_nodes_from_documents([Document(text=TEXT)])
        assert [TEXT[node.start_char_idx : node.end_char_idx] for node in nodes] == CUT


def test_haystack_builds_it_from_a_pipeline_s_yaml() -> None:
    pytest.importorskip("haystack")
    from chunkadapters.haystack import ChunkcoreDocumentSplitter
    from haystack import Document, Pipeline

    pipeline = Pipeline()
    pipeline.add_component("cut", ChunkcoreDocumentSplitter("paragraph", options={"size": 3, "counter": "words"}))
    again = Pipeline.loads(pipeline.dumps())
    found = again.run({"cut": {"documents": [Document(content=TEXT)]}})["cut"]["documents"]
    assert [each.content.strip() for each in found] == CUT
