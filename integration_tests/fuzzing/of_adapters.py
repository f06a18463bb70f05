"""Frameworks: their chunks are the core's, through chains and configurations; and what comes back is located."""

from __future__ import annotations

import os
import pickle

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # nothing here goes online

from typing import Any

from chunkadapters import haystack, langchain, llamaindex
from chunkcore import Benchmark, Chunker, Document, Evidence, OptionError, Query, Span
from chunkcore.reading.visible import is_html
from chunkcore.text import text_of_spans
from hypothesis import assume
from hypothesis import strategies as st
from llama_index.core import Document as LlamaIndexDocument
from tests.fuzzing.chunkers import chunkers
from tests.fuzzing.of_chunkers import SLOW
from tests.fuzzing.targets import target
from tests.fuzzing.texts import texts
from tests.promises import chunks_of

from integration_tests.frameworks import FRAMEWORKS

_frameworks = st.sampled_from(sorted(FRAMEWORKS))
_PLAIN = ("auto", "code", "fixed_sentences", "fixed_token", "html", "markdown", "recursive", "sentence")


@target(share=1, texts=3, name=_frameworks, chunker=chunkers(), text=texts(80))
def a_framework_has_the_chunks_of_the_core(name: str, chunker: Chunker, text: str) -> None:
    """Text for text and place for place, of every strategy, with different ids."""
    core = chunks_of(chunker, text)
    if core is None or not text:
        return
    made = FRAMEWORKS[name].cut(text, chunker)
    assert [(each.text, each.spans) for each in made] == [(chunk.text, chunk.spans) for chunk in core]
    ids = [getattr(each.own, "id_", None) or each.own.id for each in made]
    assert len(set(ids)) == len(ids)
    if name != "Haystack":  # which makes ids of context and text, too
        assert {chunk.id for chunk in core} <= set(ids)


@target(
    share=0.7, texts=3, name=_frameworks, outer=chunkers(_PLAIN), inner=chunkers(_PLAIN), text=texts(80).filter(bool)
)
def a_chain_of_splitters_tells_places_in_the_source(name: str, outer: Chunker, inner: Chunker, text: str) -> None:
    """What the second one cuts out of the chunks of the first stands in the source where it says."""
    first = chunks_of(outer, text)
    assume(all(len(chunk.spans) == 1 for chunk in first))
    made = FRAMEWORKS[name].cut(text, outer, inner)
    for each in made:
        assert text_of_spans(text, each.spans) == each.text
    if inner.name in ("auto", "code"):  # which look at what a document is called, too
        return
    expected = []
    for chunk in first:
        piece = Document("d", chunk.text)
        assume(not is_html(piece))  # a piece is no page of its own
        found = inner.chunk(piece)
        expected += [tuple(Span(s.start + chunk.start, s.end + chunk.start) for s in each.spans) for each in found]
    assert [each.spans for each in made] == expected


@target(share=0.5, texts=2, name=_frameworks, chunker=chunkers(without=SLOW), text=texts(80).filter(str.strip))
def what_a_retriever_returns_is_located_where_it_stands(name: str, chunker: Chunker, text: str) -> None:
    """By the spans that the framework's metadata carry."""
    core = chunks_of(chunker, text)
    if not core:
        return
    framework = FRAMEWORKS[name]
    made = framework.cut(text, chunker)
    start = len(text) - len(text.lstrip())
    benchmark = Benchmark("b", [Document("d", text)], [Query("q", "?", (Evidence("d", Span(start, start + 1)),))])
    run = framework.hooks.run_retriever(framework.answer([each.own for each in made]), benchmark)
    found = run.results["q"]
    assert [(each.document_id, each.spans, each.match) for each in found] == [
        ("d", made.spans, "spans") for made in core
    ]


_WHOLE = chunkers(("auto", "code", "fixed_token", "html", "markdown", "recursive", "sentence"))


@target(share=0.3, texts=3, chunker=_WHOLE, title=texts(8), text=texts(60))
def nodes_leave_room_for_their_metadata(chunker: Chunker, title: str, text: str) -> None:
    """Smaller chunks, of which none is lost, or an error that says what the metadata count."""
    parser = llamaindex.ChunkcoreNodeParser(chunker, metadata_aware=True)
    try:
        nodes: Any = parser([LlamaIndexDocument(text=text, metadata={"title": title})])
    except OptionError as error:
        if "which leaves nothing of size=" in str(error):
            return
        raise
    for node in nodes:
        assert "spans" in node.metadata or text[node.start_char_idx : node.end_char_idx] == node.text


@target(share=0.2, chunker=chunkers(_PLAIN), text=texts(60).filter(bool))
def a_splitter_that_was_written_down_cuts_alike(chunker: Chunker, text: str) -> None:
    """By pickle, by each framework's own dictionary."""
    assume(isinstance(getattr(chunker, "overlap", 0), int))
    core = chunks_of(chunker, text)
    if core is None:
        return
    expected = [chunk.text for chunk in core]
    assert pickle.loads(pickle.dumps(langchain.ChunkcoreTextSplitter(chunker))).split_text(text) == expected
    parser = llamaindex.ChunkcoreNodeParser(chunker)
    assert llamaindex.ChunkcoreNodeParser.from_dict(parser.to_dict()).chunker == chunker
    splitter = haystack.ChunkcoreDocumentSplitter(chunker, keep_white_space=False)
    again = haystack.ChunkcoreDocumentSplitter.from_dict(splitter.to_dict())
    documents = [haystack_document(text)]
    assert [each.content for each in again.run(documents)["documents"]] == expected


def haystack_document(text: str) -> object:
    from haystack import Document as HaystackDocument

    return HaystackDocument(content=text, id="d")
