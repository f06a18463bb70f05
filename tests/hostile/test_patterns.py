"""Regular expressions that users give: they find what Python's `re` finds, within a limit of time."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest
from chunkcore.boundaries import separators as patterns
from chunkcore.boundaries.separators import finder
from chunkcore.chunkers import get_chunker
from chunkcore.errors import DataError
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.fakes import FakeEmbedder, FakeLLM

PARTS = (
    *(r"\s", r"\S", r"\w", r"\W", r"\d", ".", "a", "é", " ", r"\.", r"\n", r"\x1c"),
    *("{", "a{e}", "#", "[.?!]", r"[^\s.]"),
    *(r"[\W_]", r"[^\W\d_]", r"[\s\S]", r"[^\S\n]", "[[a]", "[]a]", "[^]a]", "[a-c]", r"[\b]", r"[\w-]", r"[^\W]"),
    *(r"(\n|a)", "(?:ab|a)", "(?i:A)", "(?#[)", r"\N{EM DASH}"),
)
PLACES = (r"\b", r"\B", "^", "$", "(?<=[.?!])", r"(?<!\w)", "(?=[A-Z])", r"(?!\s)")
REPEATS = ("", "", "", "?", "*", "+", "+?", "{2}", "{,2}", "{1,}")
LETTERS = "aAbB c.?!\n\r\x1c\x1d_1²½\u0301é中ſsK\x08-—{}[]e#\u00a0\u2028\ud800ı"

written = st.lists(
    st.one_of(st.sampled_from(PLACES), st.builds("{}{}".format, st.sampled_from(PARTS), st.sampled_from(REPEATS))),
    min_size=1,
    max_size=4,
).map("".join)


@given(pattern=written, text=st.text(st.sampled_from(LETTERS), min_size=1, max_size=25))
@settings(max_examples=120)
@pytest.mark.parametrize("flags", [0, re.MULTILINE | re.IGNORECASE, re.ASCII, re.VERBOSE | re.DOTALL])
def test_the_matches_are_those_of_re(pattern: str, text: str, flags: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "[[" may once mean something else
        try:
            compiled = re.compile(pattern, flags)
        except re.error:
            assume(False)
        found = patterns.stoppable(compiled).finditer(text)
    expected = [(match.span(), match.groups()) for match in compiled.finditer(text)]
    assert [(match.span(), match.groups()) for match in found] == expected


# A harmless pattern, and a text that takes it some milliseconds: more than a limit of none.
PATTERN, TEXT = r"\w+\. ", "The tea is hot. " * 20_000


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "SECONDS", 0.0)
    monkeypatch.setattr(patterns, "SECONDS_A_CHARACTER", 0.0)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("recursive", {"separators": [PATTERN], "regex": True}),
        ("recursive", {"separators": [PATTERN], "regex": True, "keep": "drop"}),
        ("sentence", {"splitter": f"regex:{PATTERN}"}),
        ("fixed_sentences", {"splitter": f"regex:{PATTERN}"}),
        ("markdown", {"splitter": f"regex:{PATTERN}", "size": 50}),
        ("breakpoint", {"splitter": f"regex:{PATTERN}", "embedder": FakeEmbedder()}),
        ("lumber", {"paragraph_end": PATTERN, "llm": FakeLLM()}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_pattern_over_its_time_is_stopped_and_named(name: str, options: dict[str, Any], impatient: None) -> None:
    chunker = get_chunker(name, **({"counter": "characters", **options} if "embedder" not in options else options))
    with pytest.raises(DataError, match=r"was stopped after 0 s on a text of 3[12][09],[09]{3} characters"):
        chunker.split_text(TEXT)


def test_the_time_is_that_of_all_parts_of_a_text(impatient: None) -> None:
    find = finder(re.compile(PATTERN), 5000)
    for _ in range(2):  # the second has next to none left
        with pytest.raises(DataError, match="tries too many ways"):
            find(TEXT)


def test_a_usual_pattern_is_quick_on_a_hostile_text() -> None:
    text = "a. " * 50_000 + " " * 200_000 + "\n" * 200_000
    sentences = get_chunker("sentence", splitter=r"regex:(?<=[.?!])\s+", size=3000, counter="characters")
    assert "".join("".join(sentences.split_text(text)).split()) == "a." * 50_000
    lumber = re.compile(get_chunker("lumber", llm=FakeLLM()).paragraph_end)  # type: ignore[attr-defined]
    assert len(finder(lumber, len(text))(text)) == 1
