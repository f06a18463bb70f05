"""Regular expressions that users give: they find what Python's `re` finds, and no text makes them run for ever."""

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
        found = patterns._stoppable(compiled).finditer(text)
    expected = [(match.span(), match.groups()) for match in compiled.finditer(text)]
    assert [(match.span(), match.groups()) for match in found] == expected


@pytest.mark.parametrize("pattern", [r"\. ", "(?<=[.?!]) ", "\n\n|\r\n\r\n", "[,;]"])
def test_what_repeats_nothing_is_left_to_re(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "_stoppable", None)
    assert [match.group() for match in finder(re.compile(pattern), 20)("One, two. 3;\n\nFour")]


# A pattern, and a text on which it tries more ways than there are atoms.
ENDLESS = ("(?:.*,){8}x", "a," * 10_000)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "_SECONDS", 0.05)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("recursive", {"separators": [ENDLESS[0]], "regex": True}),
        ("recursive", {"separators": [ENDLESS[0]], "regex": True, "keep": "drop"}),
        ("sentence", {"splitter": f"regex:{ENDLESS[0]}"}),
        ("fixed_sentences", {"splitter": f"regex:{ENDLESS[0]}"}),
        ("markdown", {"splitter": f"regex:{ENDLESS[0]}", "size": 50}),
        ("breakpoint", {"splitter": f"regex:{ENDLESS[0]}", "embedder": FakeEmbedder()}),
        ("lumber", {"paragraph_end": ENDLESS[0], "llm": FakeLLM()}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_pattern_that_blows_up_is_stopped_and_named(name: str, options: dict[str, Any], impatient: None) -> None:
    chunker = get_chunker(name, **({"counter": "characters", **options} if "embedder" not in options else options))
    with pytest.raises(DataError, match=r"'\(\?:\.\*,\)\{8\}x' was stopped after 0 s on a text of 20,000 characters"):
        chunker.split_text(ENDLESS[1])


def test_the_time_is_that_of_all_parts_of_a_text(impatient: None) -> None:
    find = finder(re.compile(ENDLESS[0]), 5000)
    for _ in range(2):  # the second has next to none left
        with pytest.raises(DataError, match="tries too many ways"):
            find(ENDLESS[1])


def test_a_usual_pattern_is_quick_on_a_hostile_text() -> None:
    text = "a. " * 50_000 + " " * 200_000 + "\n" * 200_000
    sentences = get_chunker("sentence", splitter=r"regex:(?<=[.?!])\s+", size=3000, counter="characters")
    assert "".join("".join(sentences.split_text(text)).split()) == "a." * 50_000
    lumber = re.compile(get_chunker("lumber", llm=FakeLLM()).paragraph_end)  # type: ignore[attr-defined]
    assert len(finder(lumber, len(text))(text)) == 1
