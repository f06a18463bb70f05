"""Strategies: the promises for any text and any options, what an index needs, and the way to a configuration."""

from __future__ import annotations

import json

from chunkcore import Chunker, Document, OptionError, get_chunker
from hypothesis import strategies as st

from tests.fuzzing.chunkers import chunkers
from tests.fuzzing.targets import target
from tests.fuzzing.texts import texts
from tests.promises import check_promises, chunks_of

# Strategies that take a language model or a clustering through each text take ten times as long as the others.
SLOW = ("agentic", "contextual", "dbscan", "llm_semantic", "lumber", "propositions")

_names = st.sampled_from(["d", "a.md", "b.html", "c.py", "d.rs", "e.tsx", "f.go", "Ünïcode/文書.txt"])


@target(share=10, texts=6, chunker=chunkers(without=SLOW), text=texts(), name=_names)
def chunks_keep_their_promises(chunker: Chunker, text: str, name: str) -> None:
    """Exact, in bounds, in order, nothing lost, none over the maximum; whatever the document's name says that it is."""
    check_promises(chunker, text, name)


@target(share=0.6, texts=3, chunker=chunkers(SLOW), text=texts(80))
def chunks_of_slow_strategies_keep_their_promises(chunker: Chunker, text: str) -> None:
    """The same of chunkers that ask a language model (which obeys, errs or babbles), or cluster."""
    check_promises(chunker, text)


@target(share=1, texts=4, chunker=chunkers(), text=texts(80))
def the_same_text_gives_the_same_chunks(chunker: Chunker, text: str) -> None:
    """Alone, again, and among others."""
    chunks = chunks_of(chunker, text)
    assert chunker.spans(text) == [chunk.spans for chunk in chunks]
    assert chunker.split_text(text) == [chunk.text for chunk in chunks]
    documents = [Document("b", "Others. And others."), Document("d", text), Document("e", "")]
    assert [chunk for chunk in chunker.chunk_many(documents) if chunk.document_id == "d"] == chunks


@target(share=0.3, chunker=chunkers(named=True))
def a_strategy_comes_back_from_every_form(chunker: Chunker) -> None:
    """From its dictionary as JSON, and from its string."""
    data = chunker.to_dict()
    assert get_chunker(json.loads(json.dumps(data))) == chunker
    assert get_chunker(chunker.spec) == chunker


@target(share=0.3, guided=True, text=texts())
def a_string_is_a_strategy_or_an_option_error(text: str) -> None:
    """Whatever a user writes for one."""
    for spec in (text, f"recursive:{text}", f"sentence:splitter={text}", f"code:{text}"):
        try:
            chunker = get_chunker(spec)
        except OptionError:
            continue
        assert get_chunker(chunker.spec) == chunker
