"""Generated families of repeated code points: the work of every strategy grows with the text, not with its square.

Counted is what the regular expression of graphemes is shown, and what counters are asked to encode.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from chunkcore import Document, TokenCounter, packing
from chunkcore.chunkers import chunkers, get_chunker
from chunkcore.spans import Numbers

from tests.fakes import FakeEmbedder, FakeLLM

FAMILIES = {
    "regional indicators": "\U0001f1e9",
    "combining marks": "\u0301",
    "joiners": "\u200d",
    "joined people": "👩\u200d",
    "first consonants": "\u1100",
    "brackets": "(",
    "links": "[",
    "tags": "<b>",
    "quote markers": "> ",
    "quoted lines": "> a\n",
    "list markers": "- ",
    "numbers": "1. ",
    "rules": "-",
    "stars": "*",
    "fences": "```\n",
    "rows": "|-|\n",
}


class Counting(TokenCounter):
    """Characters; remembers how many it was asked to count."""

    name = "characters-that-are-counted"

    def __init__(self) -> None:
        self.characters = 0

    def boundaries(self, text: str) -> Numbers:
        self.characters += len(text)
        return np.arange(len(text), dtype=np.int64)


class Shown:
    """The pattern of graphemes; remembers how many characters its slices had."""

    def __init__(self, pattern: Any) -> None:
        self.pattern = pattern
        self.characters = 0

    def finditer(self, text: str) -> Any:
        self.characters += len(text)
        return self.pattern.finditer(text)


def work(name: str, unit: str, length: int, monkeypatch: pytest.MonkeyPatch) -> int:
    shown = Shown(packing.GRAPHEME)
    with monkeypatch.context() as patch:
        patch.setattr(packing, "GRAPHEME", shown)
        counter = Counting()
        models = {"embedder": FakeEmbedder(), "llm": FakeLLM(), "retries": 0}
        options = {option: model for option, model in models.items() if option in chunkers[name].option_names()}
        ending = {"html": ".html", "markdown": ".md", "code": ".c"}.get(name, ".txt")
        get_chunker(name, counter=counter, **options).chunk(Document(f"d{ending}", unit * (length // len(unit))))
    return counter.characters + shown.characters


@pytest.mark.parametrize("name", [name for name in chunkers if chunkers[name].__module__.startswith("chunkcore.")])
def test_twice_the_text_is_twice_the_work(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for family, unit in FAMILIES.items():
        # Blocks of code may be in each other a hundred deep, and each level counts what is in it.
        length = 32_000 if (name, family) == ("code", "quoted lines") else 1_000
        one, two = (work(name, unit, size, monkeypatch) for size in (length, 2 * length))
        assert two < 2.6 * one + 20_000, family
