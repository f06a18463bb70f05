"""`auto`: what is picked for which document, and that it is what the strategy itself does."""

from __future__ import annotations

import re
from typing import Any

import pytest
from chunkcore.boundaries.formats import Format, format_of
from chunkcore.chunkers import Auto, Chunker, Code, Html, Markdown, Sentence
from chunkcore.datasets import load_dataset
from chunkcore.text import Document
from hypothesis import given, settings

from tests.promises import check_promises
from tests.structures import marked_text
from tests.test_code import PYTHON
from tests.test_html import PAGE

PROSE = "The kettle sings. Nobody listens to it, though the water has been hot for some time - ten minutes. " * 9
NOTES = "# Tea\n\nTwo kinds.\n\n- green\n- black\n\n#### Green\n\nSteam it for three minutes, not more."


def strategies_of(document: Document, **options: Any) -> set[str]:
    return {chunk.metadata["chunker"] for chunk in Auto(size=9, counter="words", **options).chunk(document)}


def test_a_short_document_is_one_chunk() -> None:
    (chunk,) = Auto(size=20, counter="words").chunk(Document("notes.md", f"\n{NOTES}\n"))
    assert chunk.text == NOTES
    assert chunk.metadata == {"chunker": "whole"}


@pytest.mark.parametrize(
    ("document", "strategy"),
    [
        (Document("a.md", PROSE), "markdown"),
        (Document("a.HTML", PROSE), "html"),
        (Document("a.go", PROSE), "code"),
        (Document("17", PROSE, {"file_path": "src/a.rb"}), "code"),
        (Document("17", PROSE, {"mime_type": "text/html; charset=utf-8"}), "html"),
        (Document("a.txt", PROSE, {"format": "Markdown"}), "markdown"),
        (Document("17", PROSE, {"language": "rust"}), "code"),
        (Document("17", PROSE, {"language": "en"}), "sentence"),
        (Document("17", PROSE, {"mime_type": "text/x-python"}), "code"),
        (Document("a.txt", PROSE, {"content_type": "text/psv"}), "table"),
        (Document("a", PROSE, {"file_type": ".md"}), "markdown"),
        (Document("a", PROSE, {"source": "CSV"}), "table"),
        (Document("a.nxml", PROSE), "code"),
        (Document("src/Makefile", NOTES), "code"),
        (Document(".env", NOTES), "code"),
        (Document("wiki", PROSE, {"source": "c"}), "sentence"),
        (Document("https://example.net/show.php?id=3", PROSE), "sentence"),
        (Document("https://harbour.pl", PROSE), "sentence"),
        (Document("https://example.net/wiki/Vue.js", PROSE), "sentence"),
        (Document("https://example.net/package/chart.js", PROSE), "sentence"),
        (Document("https://example.net/raw/tea.py", PROSE), "code"),
        (Document("From Vue.js", PROSE), "sentence"),
        (Document("a.org", NOTES), "sentence"),
        (Document("a.txt", PROSE), "sentence"),
        (Document("a.txt", NOTES), "markdown"),
        (Document("17", PAGE), "html"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.id,
)
def test_the_strategy_is_picked_by_what_is_said_of_a_document_then_by_its_looks(document, strategy):
    assert strategies_of(document) == {strategy}


SAID = "The gate is open now. " * 20


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", f'id,text\n1,"{SAID}"\n2,"{SAID}"\n'),
        ("a.md", f"| id | text |\n|---|---|\n| 1 | {SAID}|\n| 2 | {SAID}|\n"),
        ("a.json", f'{{"id": 1, "text": "{SAID}"}}'),
        ("a.xml", f"<a><p>{SAID}<b>gate</b> {SAID}</p></a>"),
        ("a.py", f'x = """{SAID}"""\n'),
    ],
)
def test_a_row_or_line_over_the_maximum_is_cut_between_its_sentences(name, text):
    chunks = [chunk.text for chunk in Auto(size=20, counter="words").chunk(Document(name, text))]
    assert len(chunks) > 5
    assert not any(re.search("(The|The gate|is|open)$", chunk) for chunk in chunks)


@pytest.mark.parametrize(
    "text",
    [
        PROSE,
        "1. What is it?\n\nA buoy; it floats (mostly).",
        "Q: why?\nA: because.\n",
        "import duties were raised.\nclass struggles followed.\n" * 9,
        "He said: <em>no</em> and left. " * 20,
        "a - b - c\n" * 9,
        "*** START OF TEA ***\n\nTea is hot.\n\n" + "   *    *    *\n\nTea.\n\n" * 3 + "*** END OF TEA ***\n",
        "これは文章です。次の文です。" * 9,
        "",
    ],
)
def test_prose_is_not_taken_for_more(text: str) -> None:
    assert format_of(text) == Format("prose")


def test_code_in_a_manual_does_not_make_it_code() -> None:
    assert format_of(f"Install it:\n\n```python\n{PYTHON}```\n").kind == "markdown"


def test_the_shipped_documents_are_taken_for_what_they_are() -> None:
    documents = load_dataset("lochmere").documents
    kinds = {
        document.id: format_of(document.text).kind for document in documents if document.id.endswith((".md", ".txt"))
    }
    assert kinds["manual.md"] == "markdown"
    assert kinds["api-reference.md"] == "markdown"
    assert kinds["feature-brennen.txt"] == "prose"
    assert "html" not in kinds.values()
    assert "code" not in kinds.values()


@pytest.mark.parametrize(
    ("name", "text", "cls"),
    [("a.md", NOTES, Markdown), ("a.html", PAGE, Html), ("a.py", PYTHON, Code), ("a.txt", PROSE, Sentence)],
    ids=["markdown", "html", "code", "sentence"],
)
def test_chunks_are_those_of_the_strategy_that_is_picked(name: str, text: str, cls: type[Chunker]) -> None:
    options: dict[str, Any] = {"size": 9, "minimum": 4, "maximum": 20, "counter": "words"}
    document = Document(name, text)
    expected = [(chunk.spans, dict(chunk.metadata)) for chunk in cls(**options).chunk(document)]
    found = [(chunk.spans, dict(chunk.metadata)) for chunk in Auto(**options).chunk(document)]
    assert found == [(spans, {**told, "chunker": cls.name}) for spans, told in expected]


@given(
    marked_text(["# ", "<p>", "</p>", "<html>", "```\n", "def f(): ", "|", "- ", "{\n", "}\n", "import a\n", "\n\n"])
)
@settings(max_examples=60)
def test_the_promises_hold_for_any_mixture(text: str) -> None:
    check_promises(Auto(size=9, minimum=3, maximum=15, counter="words"), text)
