"""What finds boundaries: tokens, sentences, blocks of Markdown, HTML and code, and parts that fit a maximum."""

from __future__ import annotations

from itertools import chain

import numpy as np
from chunkcore.boundaries.code import LANGUAGES, code_blocks
from chunkcore.boundaries.formats import format_of
from chunkcore.boundaries.html import VisibleHtml, html_blocks
from chunkcore.boundaries.markdown import markdown_blocks
from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.packing import split_to_maximum
from chunkcore.tokens import get_counter
from hypothesis import strategies as st

from tests.fuzzing.chunkers import counters
from tests.fuzzing.targets import target
from tests.fuzzing.texts import texts
from tests.structures import check_blocks

_ends = st.lists(st.integers(0, 1 << 12), max_size=12)


@target(share=4, texts=4, text=texts(), counter=counters(), ends=_ends)
def pieces_count_as_if_they_stood_alone(text: str, counter: str, ends: list[int]) -> None:
    """What `TokenizedText` counts from one pass is what the counter counts of each piece; its boundaries are places."""
    measure = get_counter(counter)
    source = measure.tokenize(text)
    places = sorted(end % (len(text) + 1) for end in ends)
    pairs = [(a, b) for a in places for b in places if a <= b]
    starts, stops = (np.array(each, dtype=np.int64) for each in (zip(*pairs, strict=True) if pairs else ((), ())))
    assert source.counts(starts, stops).tolist() == [measure.count(text[a:b]) for a, b in pairs]
    found = source.boundaries
    assert len(found) == measure.count(text)
    assert (np.diff(found) >= 0).all()
    assert not len(found) or (found[0] >= 0 and found[-1] < len(text))


@target(share=2, texts=4, text=texts(), counter=counters(), maximum=st.integers(1, 40), strip=st.booleans())
def parts_fit_and_lose_only_white_space(text: str, counter: str, maximum: int, strip: bool) -> None:
    """The fallback from words to graphemes, under every strategy with a maximum."""
    measure = get_counter(counter)
    pieces = [
        text[start:end] for start, end in split_to_maximum(measure.tokenize(text), 0, len(text), maximum, strip=strip)
    ]
    assert all(measure.count(piece) <= maximum or len(piece) == 1 for piece in pieces)
    if strip:
        assert "".join("".join(pieces).split()) == "".join(text.split())
        assert all(piece == piece.strip() for piece in pieces)
    else:
        assert "".join(pieces) == text


_SPLITTERS = st.sampled_from(["default", r"regex:(?<=[.?!])\s+", r"regex:\b"])


@target(share=4, texts=4, guided=True, text=texts(), splitter=_SPLITTERS)
def sentences_lose_nothing(text: str, splitter: str) -> None:
    """They are in order and stripped, too."""
    ranges = sentence_ranges(text, splitter).tolist()
    flat = list(chain.from_iterable(ranges))
    assert flat == sorted(flat)
    found = [text[start:end] for start, end in ranges]
    assert all(sentence and sentence == sentence.strip() for sentence in found)
    assert "".join("".join(found).split()) == "".join(text.split())


@target(share=4, texts=4, guided=True, text=texts())
def markdown_blocks_cover_the_text(text: str) -> None:
    """Blocks, and the blocks in them, leave nothing out but white space."""
    check_blocks(text, markdown_blocks(text))


@target(share=4, texts=4, guided=True, text=texts(), only_text=st.booleans())
def html_blocks_cover_the_text(text: str, only_text: bool) -> None:
    """The same of HTML, or of the text that is left without its markup."""
    page = VisibleHtml(text)
    check_blocks(*((page.text, page.blocks()) if only_text else (text, html_blocks(text))))


@target(share=4, texts=4, guided=True, text=texts(), language=st.sampled_from([*LANGUAGES]))
def code_blocks_cover_the_text(text: str, language: str) -> None:
    """The same of eight programming languages, where the text is any code of it at all."""
    blocks = code_blocks(text, language)
    if blocks is not None:
        check_blocks(text, blocks)


@target(share=1, texts=4, guided=True, text=texts())
def every_text_has_a_format(text: str) -> None:
    """A guess that is always made."""
    assert format_of(text).kind in ("markdown", "html", "code", "prose")
