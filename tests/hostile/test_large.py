"""Texts that are long, deep or odd, over every strategy that needs no model: nothing is lost, and it ends.

Here they have at most some thousand characters; with ``-m slow`` long ones are long, and nested ones nest no deeper.
"""

from __future__ import annotations

import pytest
from chunkcore.chunkers import Chunker, get_chunker
from chunkcore.text import Document

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
SMALL = 4_000  # characters
ONLY_SLOW = ("code in java", "code in typescript", "fixed_sentences")


def chunker_of(name: str) -> Chunker:
    if name.startswith(("html", "auto")):
        pytest.importorskip("justhtml", reason="the extra structure is not installed")
    if name.startswith("code"):
        pytest.importorskip("tree_sitter", reason="the extra structure is not installed")
    return get_chunker(name.partition(" ")[0], **({"size": 400, **CHUNKERS[name]} if "fixed_sent" not in name else {}))


def check(name: str, text: str) -> None:
    covered = bytearray(len(text))
    for chunk in chunker_of(name).chunk(Document("d", text)):
        assert chunk.text == "".join(text[span.start : span.end] for span in chunk.spans) or len(chunk.spans) > 1
        for span in chunk.spans:
            covered[span.start : span.end] = b"\x01" * len(span)
    lost = {char for char, seen in zip(text, covered, strict=True) if not seen}
    assert all(char.isspace() for char in lost)


@pytest.mark.parametrize("name", [name for name in CHUNKERS if name not in ONLY_SLOW])
@pytest.mark.parametrize("kind", list(TEXTS))
def test_nothing_is_lost(name: str, kind: str) -> None:
    unit, times = TEXTS[kind]
    check(name, unit * min(times, SMALL // len(unit)))


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CHUNKERS))
@pytest.mark.parametrize("kind", list(TEXTS))
def test_nothing_is_lost_at_full_size(name: str, kind: str) -> None:
    unit, times = TEXTS[kind]
    check(name, unit * times)
