"""Texts that are long, deep or odd, over every strategy that needs no model: nothing is lost, and it ends.

Here they have at most some thousand characters; with ``-m slow`` long ones are long, and nested ones nest no deeper.
"""

from __future__ import annotations

import pytest
from chunkcore.chunkers import Chunker, get_chunker
from chunkcore.text import text_of_spans

from tests.promises import chunks_of, lost

CHUNKERS: dict[str, dict[str, object]] = {
    "recursive": {"size_of": "text"},
    "recursive by patterns": {"regex": True, "separators": [r"(?<=[.?!])\s+", r"\s+", ""], "size_of": "text"},
    "fixed_token": {},
    "sentence": {},
    "fixed_sentences": {},
    "markdown": {},
    "html": {},
    "code in python": {"language": "python"},
    "code in cpp": {"language": "cpp"},
    "code in java": {"language": "java"},
    "code in typescript": {"language": "typescript"},
    "auto": {},
}

# Of each, what repeats, and how often at full size.
TEXTS: dict[str, tuple[str, int]] = {
    "a line of letters": ("a", 10_000_000),
    "a line of sentences": ("The fox naps. ", 700_000),
    "a line without spaces": ("犬が走る。", 2_000_000),
    "spaces": (" ", 10_000_000),
    "line ends": ("\n", 10_000_000),
    "headings": ("# The fox\n", 100_000),
    "quotes in quotes": ("> ", 400),
    "lists in lists": ("- ", 400),
    "fences": ("```\n", 400),
    "table rows": ("| a | b |\n", 100_000),
    "links that do not end": ("[a](", 400),
    "emphasis that does not end": ("**a _b ", 400),
    "divisions in divisions": ("<div>", 400),
    "tables in tables": ("<table><tr><td>", 400),
    "formatting in formatting": ("<b><p><i>", 400),
    "tags that do not end": ("<a b='", 400),
    "comments that do not end": ("<!-- ", 400),
    "entities": ("&amp;&#x41;&", 100_000),
    "brackets in brackets": ("([{", 400),
    "blocks in blocks": ("if (a) { ", 400),
    "strings that do not end": ("\"'`", 400),
    "JSON in JSON": ('{"a": [', 400),
    "unpaired surrogates": ("\ud83d \udc00", 1_000_000),
    "bidirectional controls": ("\u202ea\u2066b\u2069\u202c ", 500_000),
    "joined families": ("👩\u200d👩\u200d👧 ", 200_000),
    "marks on a letter": ("a\u0301\u0302\u0303 ", 300_000),
    "controls": ("\x00\x1b\x85\u2028", 1_000_000),
}


def chunker_of(name: str) -> Chunker:
    if name.startswith(("html", "auto")):
        pytest.importorskip("justhtml", reason="the extra structure is not installed")
    if name.startswith("code"):
        pytest.importorskip("tree_sitter", reason="the extra structure is not installed")
    return get_chunker(name.partition(" ")[0], **({"size": 400, **CHUNKERS[name]} if "fixed_sent" not in name else {}))


@pytest.mark.parametrize("most", [4_000, pytest.param(10_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", list(CHUNKERS))
@pytest.mark.parametrize("kind", list(TEXTS))
def test_nothing_is_lost(name: str, kind: str, most: int) -> None:
    unit, times = TEXTS[kind]
    text = unit * min(times, most // len(unit))
    chunks = chunks_of(chunker_of(name), text)
    assert all(chunk.text == text_of_spans(text, chunk.spans) for chunk in chunks)
    assert lost(text, chunks) == ""
