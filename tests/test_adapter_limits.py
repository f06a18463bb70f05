"""What is warned about before a model cuts it off, and the sizes that a model asks for, without a framework."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
from chunkadapters.configuration import TruncationWarning, build, merged, warn_on_truncation
from chunkcore.chunkers import FixedToken
from chunkcore.errors import OptionError
from chunkcore.models.loading import EmbedderCounter
from chunkcore.text import Document

from tests.fakes import FakeEmbedder
from tests.test_late_chunking import FakeTokenEmbedder

DOCUMENTS = [Document("a", "one two three four five. " * 4), Document("b", ""), Document("c", "one two three")]


def test_chunks_that_would_be_cut_off_are_told_with_the_tokens_lost() -> None:
    chunker = FixedToken(size=10, counter="words")
    chunks = list(chunker.chunks_per_document(DOCUMENTS))
    message = r"2 of 3 chunks are longer than the 12 tokens that fake reads: 4 of"
    with pytest.warns(TruncationWarning, match=message) as warned:
        # 10 words, two full stops and the two tokens around them are 14.
        assert list(warn_on_truncation(chunks, FakeEmbedder(max_tokens=12))) == chunks
    assert [warning.filename for warning in warned] == [__file__]


@pytest.mark.parametrize("model", [None, FakeEmbedder(max_tokens=None), FakeEmbedder(max_tokens=14)])
def test_nothing_is_said_where_nothing_is_lost(model: FakeEmbedder | None) -> None:
    chunks = list(FixedToken(size=10, counter="words").chunks_per_document(DOCUMENTS))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(warn_on_truncation(chunks, model)) == chunks


def test_a_size_that_is_left_out_suits_the_model() -> None:
    model = FakeTokenEmbedder(max_tokens=20)
    for built in (build(fit_to=model), build("recursive:overlap=0", fit_to=model), build("recursive", fit_to=model)):
        assert (built.size, built.counter) == (12, EmbedderCounter(model))  # type: ignore[attr-defined]
    assert build("recursive", options={"chunk_size": 7}, fit_to=model).size == 7  # type: ignore[attr-defined]
    assert build("recursive:overlap=3", {"size": 7}).label == "recursive:size=7,overlap=3"
    chunker = FixedToken(size=5)
    assert build(chunker, fit_to=model) is chunker
    texts = build(fit_to=model).split_text(DOCUMENTS[0].text)
    assert max(model.count_tokens(texts)) <= 20


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: build("recursiv"), "unknown chunker 'recursiv'"),
        (lambda: build("recursive", {"size": 5, "chunk_size": 5}), "the same option"),
        (lambda: build("recursive", {"length_function": str.count}), "length_function is len or a counter's count"),
        (lambda: build("recursive:size=9", {"size": 1}), "size: given twice"),
        (lambda: build(9), "name:option=value,...; got 9"),  # type: ignore[arg-type]
        (lambda: build(FixedToken(), {"size": 3}), "takes no more options, got size"),
        (lambda: merged({"size": 2}, {"size": 3}), "in options and as a keyword"),
    ],
)
def test_options_that_contradict_each_other_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make()
