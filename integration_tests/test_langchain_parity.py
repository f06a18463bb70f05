"""`recursive` and `fixed_token` give LangChain's texts, wherever those are source text."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

pytest.importorskip("langchain_text_splitters")
from chunkcore.chunkers.recursive import Recursive
from chunkcore.chunkers.sentence import FixedToken
from chunkcore.tokens import TiktokenCounter, get_counter
from langchain_text_splitters import Language, RecursiveCharacterTextSplitter, TokenTextSplitter
from tests.conftest import shared
from tests.strategies import hard_text, prose

pytestmark = pytest.mark.peers

REPORT_SEPARATORS = ["\n\n", "\n", ".", "?", "!", " ", ""]
KEEP = {"start": "start", "end": "end", "drop": False}
SAMPLES = ["cuad", "covid_qa", "qmsum", "fairytaleqa", "wiki300", "evidence_inference"]


def corpora() -> list[str]:
    folder = shared("data/chroma/corpora")
    return [path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.md"))]


def sample(name: str, number: int = 4) -> list[str]:
    path: Path = shared(f"data/{name}/documents.jsonl")
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line, _ in zip(lines, range(number), strict=False)]


def langchain_recursive(counter: str, **options: Any) -> RecursiveCharacterTextSplitter:
    """The original, which measures with the same counter; `logging` of its long pieces is left to pytest."""
    if "separators" in options:
        options["separators"] = list(options["separators"])
    return RecursiveCharacterTextSplitter(
        chunk_size=options.pop("size"),
        chunk_overlap=options.pop("overlap", 0),
        separators=options.pop("separators", None),
        keep_separator=KEEP[options.pop("keep", "start")],
        is_separator_regex=options.pop("regex", False),
        strip_whitespace=options.pop("strip", True),
        length_function=get_counter(counter).count,
        **options,
    )


def langchain_fixed(encoding: str, size: int, overlap: int) -> Callable[[str], list[str]]:
    _ = TiktokenCounter(encoding).encoding  # tiktoken knows the encoding from here on, with its files
    splitter = TokenTextSplitter(encoding_name=encoding, chunk_size=size, chunk_overlap=overlap, disallowed_special=())
    return splitter.split_text


def is_subsequence(some: list[str], all_of: list[str]) -> bool:
    rest = iter(all_of)
    return all(text in rest for text in some)


def assert_same_pieces(ours: list[str], theirs: list[str]) -> None:
    """Text for text, but where theirs joined pieces by another string than the one that stands between them.

    Such a text may stand elsewhere in the document by chance; it never stands where the pieces do.
    """
    assert len(ours) == len(theirs)
    for our, their in zip(ours, theirs, strict=True):
        assert our == their or their not in our


def assert_same(keep: str, ours: list[str], theirs: list[str]) -> None:
    """Text for text; where separators are dropped, see `assert_same_pieces`."""
    if keep == "drop":
        assert_same_pieces(ours, theirs)
    else:
        assert ours == theirs


GRID = [
    {"size": size, "overlap": overlap, "keep": keep, "strip": strip}
    for (size, overlap), keep, strip in product([(200, 0), (400, 200), (7, 7)], KEEP, [True, False])
]


@pytest.mark.parametrize("options", GRID, ids=str)
def test_recursive_on_the_report_s_corpora(options: dict[str, Any]) -> None:
    for text in corpora():
        text = text if options["size"] > 100 else text[:20_000]
        for separators in (("\n\n", "\n", " ", ""), REPORT_SEPARATORS):
            ours = Recursive(separators=separators, **options).split_text(text)
            theirs = langchain_recursive("cl100k_base", separators=separators, **options).split_text(text)
            assert_same(options["keep"], ours, theirs)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("counter", ["cl100k_base", "o200k_base", "characters", "words"])
def test_recursive_on_samples_of_other_collections(name: str, counter: str) -> None:
    for text in sample(name):
        for options in ({"size": 120}, {"size": 90, "overlap": 40, "separators": REPORT_SEPARATORS}):
            ours = Recursive(counter=counter, **options).split_text(text)
            assert ours == langchain_recursive(counter, **options).split_text(text)


@pytest.mark.parametrize("language", [Language.PYTHON, Language.MARKDOWN, Language.HTML, Language.LATEX])
def test_recursive_with_the_regular_expressions_for_languages(language: Language) -> None:
    separators = RecursiveCharacterTextSplitter.get_separators_for_language(language)
    for text in [*sample("wiki300", 2), Path(__file__).read_text(encoding="utf-8")]:
        for keep in ("start", "end"):
            options = {"size": 60, "overlap": 20, "separators": separators, "keep": keep, "regex": True}
            ours = Recursive(**options).split_text(text)
            assert ours == langchain_recursive("cl100k_base", **options).split_text(text)


_FEW = [("",), ("e",), ("\r\n", "  ", "a", ""), ("aa", "\n\n", "  ", " "), ("", "\n"), ("。", "，", "<|", " ")]
separator_lists = st.sampled_from([("\n\n", "\n", " ", ""), tuple(REPORT_SEPARATORS), ("\n\n", "\n", " "), *_FEW])
# No pattern's own text occurs in the texts: the original glues pieces with it where matches are dropped.
_PATTERNS = [(r"\n+", r"(?<=[.!?])\s+", r"\s", ""), (r"(?=[A-Z#])", r"\s*", ""), (r"\b", "")]
patterns = st.sampled_from([*_PATTERNS, (r"(?<=\.)", r"(?:$)", r"(?:^)", "x*"), (r"(?:a|the)\s", r"[^\n]")])
sizes = st.integers(1, 40).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size)))
texts = hard_text() | prose() | hard_text(max_parts=200)
many = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def without_surrogates(text: str) -> str:
    """tiktoken reads two surrogates that stand side by side as the one character that they would make."""
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)


@given(
    texts, sizes, separator_lists, st.sampled_from(list(KEEP)), st.booleans(),
    st.sampled_from(["cl100k_base", "o200k_base", "characters", "words"]),
)  # fmt: skip
@many
@example("a\n\n\n\nb c", (3, 0), ("\n\n", " "), "drop", True, "characters")
def test_recursive_on_generated_text(text, sizes, separators, keep, strip, counter):
    options = {"size": sizes[0], "overlap": sizes[1], "separators": separators, "keep": keep, "strip": strip}
    ours = Recursive(counter=counter, **options).split_text(text)
    assert_same(keep, ours, langchain_recursive(counter, **options).split_text(text))


@given(
    texts, sizes, patterns, st.sampled_from(["start", "end"]), st.booleans(),
    st.sampled_from(["cl100k_base", "characters"]),
)  # fmt: skip
@many
def test_recursive_with_regular_expressions_on_generated_text(text, sizes, separators, keep, strip, counter):
    """Not dropped ones: there the original glues pieces with the pattern itself, which is no text of the source."""
    options = {"size": sizes[0], "overlap": sizes[1], "separators": separators, "keep": keep, "strip": strip}
    ours = Recursive(counter=counter, regex=True, **options).split_text(text)
    theirs = langchain_recursive(counter, regex=True, **options).split_text(text)
    assert_same(keep, ours, theirs)


def test_dropped_groups_of_a_regular_expression_are_pieces_as_in_the_original() -> None:
    text = "One. Two! Three? Four."
    for size in (3, 5, 12):
        options = {"size": size, "separators": [r"([.!?])\s", ""], "keep": "drop", "regex": True}
        ours = Recursive(counter="characters", **options).split_text(text)
        assert_same("drop", ours, langchain_recursive("characters", **options).split_text(text))


def assert_same_windows(text: str, ours: list[str], theirs: list[str]) -> None:
    """Text for text; those of theirs that are no source text cut a character, and wrote U+FFFD for it."""
    if all(chunk in text for chunk in theirs):
        assert ours == theirs
    else:
        assert is_subsequence([chunk for chunk in theirs if chunk in text], ours)


@pytest.mark.parametrize(("size", "overlap"), [(200, 0), (400, 200), (50, 25), (1, 0)])
@pytest.mark.parametrize("encoding", ["cl100k_base", "o200k_base"])
def test_fixed_token_on_the_report_s_corpora(encoding: str, size: int, overlap: int) -> None:
    split = langchain_fixed(encoding, size, overlap)
    chunker = FixedToken(size=size, overlap=overlap, counter=encoding)
    for text in [*corpora(), *sample("qmsum", 2)]:
        text = text if size > 1 else text[:50_000]
        assert_same_windows(text, chunker.split_text(text), split(text))


@given(texts, st.integers(1, 12).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1))))
@many
@example("x𠮷y" * 4, (2, 1))
@example("   ", (2, 1))
def test_fixed_token_on_generated_text(text: str, sizes: tuple[int, int]) -> None:
    # U+FFFD in the text would make theirs, for a character that was cut, look like source text.
    text = without_surrogates(text).replace("\ufffd", "x")
    split = langchain_fixed("cl100k_base", *sizes)
    assert_same_windows(text, FixedToken(size=sizes[0], overlap=sizes[1]).split_text(text), split(text))
