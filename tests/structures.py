"""Texts full of a format's marks, and what holds for the blocks of any text."""

from __future__ import annotations

from collections.abc import Sequence

from chunkcore.boundaries import Block
from hypothesis import strategies as st

from tests.strategies import hard_text

__all__ = ["check_blocks", "marked_text"]


def marked_text(marks: Sequence[str], max_parts: int = 40) -> st.SearchStrategy[str]:
    """Marks of a format between words and hard text, in any order."""
    part = st.sampled_from(marks) | st.sampled_from(marks) | st.sampled_from(["tea", "one two ", "\n"])
    return st.lists(part | hard_text(max_parts=3), max_size=max_parts).map("".join)


def check_blocks(text: str, blocks: Sequence[Block], start: int = 0, end: int | None = None, depth: int = 0) -> None:
    """Blocks and the blocks in them are in order, do not overlap, and leave nothing out but white space."""
    reached = start
    for block in blocks:
        assert reached <= block.start < block.end
        assert text[reached : block.start].strip() == ""
        assert text[block.end - 1].strip() != ""
        if block.parts is not None and depth < 8:
            check_blocks(text, block.parts(), block.start, block.end, depth + 1)
        reached = block.end
    assert text[reached : len(text) if end is None else end].strip() == ""
