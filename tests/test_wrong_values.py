"""Public constructors and calls refuse values of wrong types with the project's errors, which say what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chunkcore import Chunk, Document, Mark, Span, chunk_corpus, get_chunker, get_counter, load_dataset
from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.chunkers import Recursive, strategies
from chunkcore.errors import ChunkcoreError, DataError, OptionError
from chunkcore.segmenters import get_segmenter
from chunkcore.tokens import TiktokenCounter
from chunkcore.update import plan_update

WRONG = [None, 3, -1, 1.5, True, float("nan"), "x", "", b"x", [], ["x"], {}, {"a": 1}, object(), Span(0, 1), (1,)]
DOCUMENT = Document("d", "One two. Three.")
CHUNKER: Any = Recursive(size=3, counter="words")
SPANS = (Span(0, 1),)

FACES: dict[str, Callable[[Any], object]] = {
    "Document(id)": lambda value: Document(value, "t"),
    "Document(text)": lambda value: Document("d", value),
    "Document(one)": lambda value: Document(value),
    "Document(metadata)": lambda value: Document("d", "t", metadata=value),
    "Document(marks)": lambda value: Document("d", "t", marks=value),
    "Span": lambda value: Span(value, value),
    "Mark": lambda value: Mark(value, value),
    "Mark(data)": lambda value: Mark("page", Span(0, 1), value),
    "Mark.from_dict": Mark.from_dict,
    "Chunk(id)": lambda value: Chunk(value, 0, SPANS, "t", 1),
    "Chunk(index)": lambda value: Chunk("d", value, SPANS, "t", 1),
    "Chunk(spans)": lambda value: Chunk("d", 0, value, "t", 1),
    "Chunk(text)": lambda value: Chunk("d", 0, SPANS, value, 1),
    "Chunk(token_count)": lambda value: Chunk("d", 0, SPANS, "t", value),
    "Chunk(metadata)": lambda value: Chunk("d", 0, SPANS, "t", 1, metadata=value),
    "pages_of": DOCUMENT.pages_of,
    "highlight": DOCUMENT.highlight,
    "chunk": CHUNKER.chunk,
    "split": CHUNKER.split,
    "split_text": CHUNKER.split_text,
    "spans": CHUNKER.spans,
    "chunk_many": lambda value: list(CHUNKER.chunk_many(value)),
    "chunk_many(workers)": lambda value: list(CHUNKER.chunk_many([DOCUMENT], workers=value)),
    "get_chunker": get_chunker,
    "get_counter": get_counter,
    "get_segmenter": get_segmenter,
    "TiktokenCounter": lambda value: TiktokenCounter(value).count("x"),
    "count": TiktokenCounter().count,
    "boundaries": TiktokenCounter().boundaries,
    "sentence_ranges": sentence_ranges,
    "sentence_ranges(splitter)": lambda value: sentence_ranges("a b. c", value),
    "chunk_corpus": lambda value: chunk_corpus([DOCUMENT], value),
    "load_dataset": load_dataset,
    "plan_update(old)": lambda value: plan_update(value, DOCUMENT, CHUNKER),
    "plan_update(document)": lambda value: plan_update([], value, CHUNKER),
    "plan_update(chunker)": lambda value: plan_update([], DOCUMENT, value),
}


def refused(call: Callable[[Any], object]) -> list[Any]:
    """The wrong values that a call refuses; any error but the project's is raised."""
    errors = []
    for value in WRONG:
        try:
            call(value)
        except ChunkcoreError:
            errors.append(value)
    return errors


@pytest.mark.parametrize("face", FACES)
def test_a_wrong_value_is_refused_by_the_projects_errors(face: str) -> None:
    assert len(refused(FACES[face])) >= len(WRONG) // 2


@pytest.mark.parametrize("name", [name for name in strategies if strategies[name].__module__.startswith("chunkcore.")])
def test_every_option_of_every_strategy_refuses_wrong_values(name: str) -> None:
    options = strategies[name].option_names()
    required = {"llm": "openai:x@http://localhost:9/v1"} if "llm" in options else {}
    for option in options:
        assert refused(lambda value, option=option: get_chunker(name, **{**required, option: value}))


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: Document("Some text"), DataError, 'Document\\("faq.md", text\\)'),
        (lambda: Document("d", "t", metadata=5), DataError, "its metadata is a mapping, got int: 5"),
        (lambda: Document("d", "t", marks=("page",)), DataError, "each of its marks is a Mark, got str"),
        (
            lambda: Recursive(chunk_size=50),
            OptionError,
            "no option 'chunk_size': expected some of .* did you mean 'size'",
        ),
        (lambda: Recursive(50), OptionError, "options are given by name, as in Recursive\\(size=200\\); got 50"),
        (lambda: CHUNKER.split("text"), DataError, "use split_text, spans or chunk; got 'text'"),
        (lambda: chunk_corpus([DOCUMENT], 3), OptionError, "a strategy is given as name:option=value,...; got 3"),
        (lambda: CHUNKER.chunk("text"), DataError, "wrap a text as Document"),
        (lambda: get_chunker("agentic"), OptionError, "llm"),
    ],
)
def test_the_error_says_what_to_do(call: Callable[[], object], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()
