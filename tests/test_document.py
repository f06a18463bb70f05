"""Spans, documents and chunks are validated when they are made, and stay as they are."""

from __future__ import annotations

import dataclasses
import json
import pickle

import numpy as np
import pytest
from chunkcore.columns import text_keys
from chunkcore.errors import ChunkcoreError, DataError, MissingExtraError, OptionError
from chunkcore.plain import text_key
from chunkcore.text import Chunk, Document, Mark, Span
from hypothesis import given

from tests.strategies import hard_text


@pytest.mark.parametrize(("start", "end"), [(3, 3), (4, 3), (-1, 2)])
def test_an_empty_reversed_or_negative_span_is_an_error(start: int, end: int) -> None:
    with pytest.raises(DataError, match=f"0 <= start < end, got start={start}, end={end}"):
        Span(start, end)


@pytest.mark.parametrize("value", [1.0, "1", None, True, np.float64(1)])
def test_an_end_that_is_no_whole_number_is_an_error(value: object) -> None:
    with pytest.raises(DataError, match="whole numbers of code points"):
        Span(0, value)  # type: ignore[arg-type]


def test_numbers_of_numpy_become_plain_ones() -> None:
    span = Span(np.int64(1), np.uint32(4))  # type: ignore[arg-type]
    assert type(span.start) is type(span.end) is int
    assert json.dumps([span.start, span.end]) == "[1, 4]"
    assert span == Span(1, 4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Document("", "x"), "id is a non-empty string, got ''"),
        (lambda: Document(3, "x"), "id is a non-empty string, got 3"),  # type: ignore[arg-type]
        (lambda: Document("a", b"x"), "document 'a': its text is a string, got bytes; decode bytes first"),  # type: ignore[arg-type]
        (lambda: Document("a", "xy", marks=(Mark("page", Span(0, 3)),)), "mark 'page' ends at 3, the text at 2"),
        (
            lambda: Mark.from_dict({"kind": "page", "end": 1}),
            "a span's ends are whole numbers of code points, got None",
        ),
        (lambda: Chunk("a", 4, (), "", 0), "chunk 4 of 'a': spans are a tuple of Spans"),
    ],
)
def test_what_is_wrong_is_told_when_it_is_made(make: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        make()  # type: ignore[operator]


def test_nothing_can_be_changed_afterwards() -> None:
    for value, attribute in [
        (Span(0, 1), "end"),
        (Document("a", "b"), "text"),
        (Chunk("a", 0, (Span(0, 1),), "b", 1), "text"),
    ]:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, attribute, 7)


def chunk(**changes: object) -> Chunk:
    return dataclasses.replace(Chunk("doc", 0, (Span(0, 3), Span(5, 7)), "abc\nfg", 4, fingerprint="f"), **changes)


def test_an_id_is_document_chunker_and_place() -> None:
    assert chunk().id == chunk(index=9, text="other", token_count=1, context="c").id
    spans = (Span(0, 3),), (Span(5, 7), Span(0, 3))
    others = [chunk(document_id="do"), chunk(fingerprint="g"), *(chunk(spans=each) for each in spans)]
    assert len({chunk().id, *(other.id for other in others)}) == 5
    assert len(chunk().id) == 32
    # Pinned: an id that changes with a version makes every index stale.
    assert chunk().id == "18b56052ea924939708d5a12ee599736"


def test_parts_of_an_id_do_not_run_into_each_other() -> None:
    assert chunk(document_id="ab", fingerprint="c").id != chunk(document_id="a", fingerprint="bc").id


@given(hard_text().filter(bool))
def test_any_text_has_an_id_and_survives_pickling(text: str) -> None:
    made = Chunk(text, 0, (Span(0, len(text)),), text, 1, context=text)
    assert len(made.id) == 32
    assert pickle.loads(pickle.dumps(made)) == made
    document = Document(text, text, marks=(Mark("page", Span(0, len(text))),))
    assert pickle.loads(pickle.dumps(document)) == document


def test_every_error_is_a_chunkcore_error_and_the_builtin_that_it_is_like() -> None:
    assert issubclass(OptionError, ChunkcoreError)
    assert issubclass(OptionError, ValueError)
    assert issubclass(DataError, ValueError)
    assert issubclass(MissingExtraError, ImportError)
    assert 'pip install "chunkadapters[models]"' in str(MissingExtraError.of("x", "models", "y"))


def test_keys_of_texts_in_an_array_are_those_of_single_texts() -> None:
    texts = [f"text {number}" for number in range(2_000)]  # of which some keys end in a zero
    assert text_keys(texts).tobytes() == b"".join(map(text_key, texts))
