"""An index that is updated by plan holds what one built anew holds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from chunkcore import Chunk, Chunker, Document, Span
from chunkcore.chunkers import FixedSentences, FixedToken, Recursive, Sentence
from chunkcore.errors import DataError
from chunkcore.update import UpdatePlan, plan_update
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.strategies import hard_text, prose
from tests.test_chunker_promises import every_chunker

# A word a chunk, so that a text reads as a list of chunks.
WORDS = FixedSentences(sentences=1, splitter="regex: ")


def plan(old: str, new: str, chunker: Chunker = WORDS) -> UpdatePlan:
    return plan_update(chunker.chunk(Document("d", old)), Document("d", new), chunker)


def texts(chunks: tuple[Chunk, ...]) -> list[str]:
    return [chunk.text for chunk in chunks]


def moves(planned: UpdatePlan) -> list[tuple[str, int, int]]:
    return [(kept.new.text, kept.old.start, kept.new.start) for kept in planned.kept]


def test_what_is_the_same_stays_what_is_not_goes_and_comes() -> None:
    planned = plan("one two three", "one 2 three four")
    assert moves(planned) == [("one", 0, 0), ("three", 8, 6)]
    assert texts(planned.removed) == ["two"]
    assert texts(planned.added) == ["2", "four"]
    assert [kept.new.text for kept in planned.moved] == ["three"]


def test_equal_chunks_stay_as_often_as_both_have_them() -> None:
    fewer = plan("a b a a", "a a c")
    assert len(fewer.kept) == 2
    assert texts(fewer.removed) == ["b", "a"]
    assert texts(fewer.added) == ["c"]
    more = plan("a b", "a a c a c b")
    assert moves(more) == [("a", 0, 0), ("b", 2, 10)]
    assert texts(more.added) == ["a", "c", "a", "c"]


def test_new_context_is_new_content() -> None:
    (old,) = WORDS.chunk(Document("d", "a"))
    planned = plan_update([replace(old, context="A title")], Document("d", "a"), WORDS)
    assert (planned.kept, texts(planned.removed), texts(planned.added)) == ((), ["a"], ["a"])


def test_segments_are_part_of_the_content_wherever_the_chunk_stands() -> None:
    def chunk(start: int, cut: int) -> Chunk:
        parts = (Span(start, start + cut),), (Span(start + cut, start + 4),)
        return Chunk("d", 0, (Span(start, start + 4),), "aaaa", 1, segments=parts)

    class Fixed(FixedToken):
        def chunk(self, document: Document) -> list[Chunk]:
            return [chunk(3, cut=2)]

    assert len(plan_update([chunk(0, cut=2)], Document("d", ""), Fixed()).kept) == 1
    assert len(plan_update([chunk(0, cut=1)], Document("d", ""), Fixed()).added) == 1


def test_an_edit_reaches_as_far_as_the_strategy_lets_it() -> None:
    paragraphs = [f"Paragraph {n} says what number {n} has to say, and not a word more." for n in range(40)]
    old = "\n\n".join(paragraphs)
    paragraphs[20] = f"Now, {paragraphs[20]}"
    new = "\n\n".join(paragraphs)
    for chunker in (Recursive(size=20), Sentence(size=20)):
        planned = plan(old, new, chunker)
        assert len(planned.removed) <= 2
        assert len(planned.kept) >= 36
        assert len(planned.moved) >= 18
    assert len(plan(old, new, FixedToken(size=20)).kept) < 30


@pytest.mark.parametrize("chunks", [WORDS.chunk(Document("other", "a")), ["a"], [None]])
def test_chunks_of_another_document_and_no_chunks_are_refused(chunks: list[Chunk]) -> None:
    with pytest.raises(DataError, match="old_chunks are"):
        plan_update(chunks, Document("d", "a"), WORDS)


@st.composite
def edits(draw: st.DrawFn) -> tuple[str, str]:
    """A text before and after: parts of it changed, moved, repeated or gone."""
    parts = draw(st.lists(prose(max_sentences=4) | hard_text(max_parts=12), min_size=1, max_size=5))
    after = draw(st.permutations(parts)) if draw(st.booleans()) else list(parts)
    place = draw(st.integers(0, len(after)))
    after[place : place + draw(st.integers(0, 2))] = draw(
        st.lists(st.sampled_from(parts) | prose(max_sentences=3), max_size=2)
    )
    return "".join(parts), "".join(after)


@every_chunker
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(texts=edits())
@example(texts=("The. The. The. ", "The. " * 9))  # `hierarchical`: a text that is held, with other segments
def test_an_updated_index_is_one_built_anew(chunker: Chunker, texts: tuple[str, str]) -> None:
    before, after = (Document("d", text) for text in texts)
    old, new = chunker.chunk(before), chunker.chunk(after)
    planned = plan_update(old, after, chunker)
    assert sorted([*(kept.old.index for kept in planned.kept), *(chunk.index for chunk in planned.removed)]) == [
        *range(len(old))
    ]
    assert sorted([*(kept.new for kept in planned.kept), *planned.added], key=lambda chunk: chunk.index) == new
    assert all(kept.old.content_hash == kept.new.content_hash for kept in planned.kept)
    if not any(chunk.segments for chunk in [*old, *new]):
        both = Counter(chunk.content_hash for chunk in old) & Counter(chunk.content_hash for chunk in new)
        assert len(planned.kept) == both.total()
