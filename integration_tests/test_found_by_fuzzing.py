"""What `make fuzz` found wrong in the adapters, each as the smallest case that showed it."""

from __future__ import annotations

import os

import pytest

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # nothing here goes online
pytest.importorskip("langchain_text_splitters")
pytest.importorskip("llama_index.core")
pytest.importorskip("haystack")

from chunkadapters import llamaindex
from chunkadapters.exact import exact_chunker
from chunkcore.chunkers import FixedSentences, Sentence
from chunkcore.chunkers.semantic import SemanticOverlap
from langchain_text_splitters import CharacterTextSplitter
from llama_index.core import Document
from llama_index.core.schema import MetadataMode
from tests.fakes import FakeEmbedder

from integration_tests.frameworks import FRAMEWORKS


@pytest.mark.parametrize("framework", FRAMEWORKS.values(), ids=FRAMEWORKS)
@pytest.mark.parametrize("strategy", [Sentence, FixedSentences])
def test_a_semantic_overlap_is_an_overlap_to_every_framework(framework, strategy):
    overlap = SemanticOverlap(threshold=-1.0, embedder=FakeEmbedder())
    options = {"size": 2} if strategy is Sentence else {"sentences": 1}
    made = framework.cut("A.\n\nB.\n\nC.", strategy(overlap=overlap, counter="characters", **options))
    assert [each.text for each in made] == ["A.", "B.", "C."]
    if "_split_overlap" in made[0].metadata:  # Haystack's, which said so by a TypeError
        assert [each.metadata["_split_overlap"] for each in made] == [[], [], []]


MINIMUM = [f"{name}:size=40,minimum=35" for name in ("recursive", "markdown", "sentence")]


@pytest.mark.parametrize("spec", [*MINIMUM, "fixed_token:size=40,minimum=39", "sentence:size=40,overlap=38"])
def test_options_that_go_with_the_size_shrink_with_it_where_metadata_take_room(spec):
    parser = llamaindex.ChunkcoreNodeParser(spec, metadata_aware=True)
    text = "The quick fox. " * 40
    nodes = parser([Document(text=text, metadata={"title": "a title of a text"})])
    assert len(nodes) > 2
    assert all(text[node.start_char_idx : node.end_char_idx] == node.text for node in nodes)
    if "minimum" not in spec:  # which is kept to before the size
        counted = [parser.chunker.token_counter.count(node.get_content(MetadataMode.EMBED)) for node in nodes]
        assert max(counted) <= 41  # two line ends stand between


@pytest.mark.parametrize("text", ["        aa ", "  aa ", "x  aa y", " aab", " aa", "aa"])
def test_separators_between_white_space_are_a_chunk_to_exact_as_to_langchain(text):
    splitter = CharacterTextSplitter("a", keep_separator=False, chunk_size=10, chunk_overlap=0, strip_whitespace=True)
    assert exact_chunker(splitter).split_text(text) == splitter.split_text(text)
