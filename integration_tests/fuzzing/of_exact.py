"""`exact`: the frameworks' own splitters, with generated options, text for text."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core.utils import globals_helper
from tests.fuzzing.targets import inner_test, target
from tests.fuzzing.texts import texts

from integration_tests import test_exact

assert globals_helper.punkt_tokenizer  # asking for it tells nltk where its sentences are
_sizes = st.integers(1, 40).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size)))
_keep = st.sampled_from([False, "start", "end"])
_separators = st.sampled_from(["\n\n", "\n", " ", "a", "。", ""])


@target(share=0.7, texts=4, text=texts(), separator=_separators, keep=_keep, sizes=_sizes, strip=st.booleans())
def langchains_character_splitter_is_copied_exactly(
    text: str, separator: str, keep: Any, sizes: tuple[int, int], strip: bool
) -> None:
    """The same texts, and where each stands."""
    inner_test(test_exact.test_langchain_character_on_generated_text)(text, separator, keep, sizes, strip)


@target(
    share=0.7, texts=4, text=texts(), keep=st.sampled_from([True, "start", "end"]), sizes=_sizes, strip=st.booleans()
)
def langchains_recursive_splitter_is_copied_exactly(text: str, keep: Any, sizes: tuple[int, int], strip: bool) -> None:
    """The same of the most used one."""
    splitter = RecursiveCharacterTextSplitter(
        keep_separator=keep, chunk_size=sizes[0], chunk_overlap=sizes[1], strip_whitespace=strip
    )
    test_exact.check(splitter.split_text(text), test_exact.cut(splitter, text), text)


@target(share=0.2, texts=4, text=texts(), number=st.integers(0, len(test_exact.LLAMA) - 1))
def llamaindex_splitters_are_copied_exactly(text: str, number: int) -> None:
    """Of several options each."""
    inner_test(test_exact.test_llamaindex_on_generated_text)(text, number)


@target(share=0.2, texts=4, text=texts(), size=st.integers(8, 40), overlap=st.integers(0, 8))
def llamaindex_splitters_of_small_sizes_are_copied_exactly(text: str, size: int, overlap: int) -> None:
    """Where single words are over the size, the same error."""
    inner_test(test_exact.test_llamaindex_small_sizes_on_generated_text)(text, size, overlap)


@target(share=0.2, texts=4, text=texts(), number=st.integers(0, len(test_exact.HAYSTACK) - 1))
def haystack_splitters_are_copied_exactly(text: str, number: int) -> None:
    """Of several options each."""
    inner_test(test_exact.test_haystack_on_generated_text)(text, number)
