"""`exact`: the frameworks' own splitters, with generated options, text for text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from langchain_text_splitters import CharacterTextSplitter, RecursiveCharacterTextSplitter
from llama_index.core.node_parser import SentenceSplitter, TokenTextSplitter
from llama_index.core.utils import globals_helper
from tests.fuzzing.targets import target
from tests.fuzzing.texts import texts

from integration_tests.test_exact import HAYSTACK, LLAMA, check, check_haystack, cut, plain

assert globals_helper.punkt_tokenizer  # asking for it tells nltk where its sentences are
_sizes = st.integers(1, 40).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size)))
_keep = st.sampled_from([False, "start", "end"])
_separators = st.sampled_from(["\n\n", "\n", " ", "a", ",", "。", ""])


@target(share=0.7, texts=4, text=texts(), separator=_separators, keep=_keep, sizes=_sizes, strip=st.booleans())
def langchains_character_splitter_is_copied_exactly(
    text: str, separator: str, keep: Any, sizes: tuple[int, int], strip: bool
) -> None:
    """The same texts, and where each stands."""
    splitter = CharacterTextSplitter(
        separator=separator, keep_separator=keep, chunk_size=sizes[0], chunk_overlap=sizes[1], strip_whitespace=strip
    )
    check(splitter.split_text(text), cut(splitter, text), text, joiner="" if keep else separator)


@target(
    share=0.7, texts=4, text=texts(), keep=st.sampled_from([True, "start", "end"]), sizes=_sizes, strip=st.booleans()
)
def langchains_recursive_splitter_is_copied_exactly(text: str, keep: Any, sizes: tuple[int, int], strip: bool) -> None:
    """The same of the most used one."""
    splitter = RecursiveCharacterTextSplitter(
        keep_separator=keep, chunk_size=sizes[0], chunk_overlap=sizes[1], strip_whitespace=strip
    )
    check(splitter.split_text(text), cut(splitter, text), text)


@target(share=0.2, texts=4, text=texts(), splitter=st.sampled_from(LLAMA))
def llamaindex_splitters_are_copied_exactly(text: str, splitter: Any) -> None:
    """Of several options each."""
    text = plain(text)
    check(splitter.split_text(text) if text else [], cut(splitter, text), text)


@target(share=0.2, texts=4, text=texts(), size=st.integers(8, 40), overlap=st.integers(0, 8))
def llamaindex_splitters_of_small_sizes_are_copied_exactly(text: str, size: int, overlap: int) -> None:
    """Where single words are over the size, the same error."""
    text = plain(text)
    for splitter in (
        SentenceSplitter(chunk_size=size, chunk_overlap=overlap, paragraph_separator="\n\n"),
        TokenTextSplitter(chunk_size=size, chunk_overlap=overlap),
    ):
        expected, raised = [], ""
        try:
            expected = splitter.split_text(text) if text else []
        except ValueError as error:
            raised = str(error)
        if raised:
            assert "Single token" in raised
            with pytest.raises(ValueError, match="choose a larger size"):
                cut(splitter, text)
        else:
            check(expected, cut(splitter, text), text)


@target(share=0.2, texts=4, text=texts(), number=st.integers(0, len(HAYSTACK) - 1))
def haystack_splitters_are_copied_exactly(text: str, number: int) -> None:
    """Of several options each."""
    text = plain(text)
    if text:
        check_haystack(number, text)
