"""Hits that lie together become one: what is united, in which order, and that nothing is said twice or lost."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkadapters.hits import Hit, merge_hits, merged_id, merged_metadata
from chunkcore.document import Span
from chunkcore.spans import length, union
from tests.strategies import hard_text

TEXT = "The tea is hot. The sea is deep. The fee is low."


def at(*places: tuple[int, int], document: str = "d", text: str = TEXT, gap: str = " / ", derived: bool = False) -> Hit:
    spans = tuple(Span(start, end) for start, end in places)
    return Hit(gap.join(span.slice(text) for span in spans), spans=spans, derived=derived, document=document)


def said(hits: list[Hit], **options):
    """Each result's members, places and text."""
    found = merge_hits(hits, **options)
    return [(each.members, [(span.start, span.end) for span in each.spans], each.text) for each in found]


def test_hits_that_overlap_are_one():
    assert said([at((8, 20)), at((0, 10))]) == [((0, 1), [(0, 20)], TEXT[:20])]


def test_hits_that_touch_are_one():
    assert said([at((10, 20)), at((0, 10))], max_gap=0) == [((0, 1), [(0, 20)], TEXT[:20])]


def test_neighbours_with_next_to_nothing_between_are_one_of_two_places():
    hits = [at((16, 32)), at((0, 15))]
    assert said(hits) == [((0, 1), [(0, 15), (16, 32)], f"{TEXT[:15]}\n{TEXT[16:32]}")]
    assert said(hits, separator=" … ")[0][2] == f"{TEXT[:15]} … {TEXT[16:32]}"
    assert [members for members, *_ in said(hits, max_gap=0)] == [(0,), (1,)]


def test_a_hit_inside_another_adds_nothing():
    assert said([at((5, 8)), at((0, 20))]) == [((0, 1), [(0, 20)], TEXT[:20])]


def test_the_order_is_that_of_the_best_hit_of_each():
    hits = [at((20, 25)), at((0, 5)), at((40, 45)), at((22, 30)), at((3, 8))]
    assert [members for members, *_ in said(hits)] == [(0, 3), (1, 4), (2,)]


def test_the_order_is_that_of_the_hits_whatever_documents_they_are_of_and_whether_they_have_a_place():
    hits = [at((0, 5)), Hit("no place"), at((0, 5), document="e"), at((20, 25))]
    assert [members for members, *_ in said(hits)] == [(0,), (1,), (2,), (3,)]


def test_a_hit_inside_another_does_not_hide_what_overlaps_with_that():
    assert said([at((0, 30)), at((5, 8)), at((20, 40))]) == [((0, 1, 2), [(0, 40)], TEXT[:40])]


def test_hits_of_different_documents_stay_apart():
    assert [members for members, *_ in said([at((0, 9)), at((0, 9), document="e")])] == [(0,), (1,)]


def test_hits_of_several_places_are_united_place_by_place():
    hits = [at((0, 10), (33, 40)), at((0, 10), (38, 48)), at((16, 20))]
    assert said(hits) == [((0, 1), [(0, 10), (33, 48)], f"{TEXT[:10]}\n{TEXT[33:48]}"), ((2,), [(16, 20)], TEXT[16:20])]


def test_one_hit_can_join_two_others():
    assert said([at((0, 10)), at((20, 30)), at((8, 22))]) == [((0, 1, 2), [(0, 30)], TEXT[:30])]


@pytest.mark.parametrize(
    "odd",
    [
        Hit(TEXT[:9], spans=(Span(0, 9),)),  # of no document
        Hit(TEXT[:9], document="d"),  # of no place
        Hit(TEXT[:9] + "!", spans=(Span(0, 9),), document="d"),  # altered
        Hit("A summary", spans=(Span(0, 9),), derived=True, document="d"),
    ],
)
def test_a_hit_without_a_place_stays_as_it_is_and_is_said_once(odd):
    found = merge_hits([odd, at((4, 12)), odd])
    assert [(each.members, each.text) for each in found] == [((0,), odd.text), ((1,), TEXT[4:12])]


def test_two_texts_that_a_model_wrote_of_one_passage_both_stay():
    hits = [Hit(text, spans=(Span(0, 9),), derived=True, document="d") for text in ("Tea is hot", "Tea is a drink")]
    assert len(merge_hits(hits)) == 2


def test_another_version_of_the_document_is_not_mixed_in():
    """The index holds an old chunk still: at the same place stands another text."""
    old = TEXT.replace("sea", "bay")
    hits = [at((10, 25)), at((0, 22), text=old), at((0, 12)), at((18, 30), text=old)]
    assert said(hits) == [((0, 2), [(0, 25)], TEXT[:25]), ((1, 3), [(0, 30)], old[:30])]


def test_the_first_is_the_one_that_begins_first():
    assert [each.first for each in merge_hits([at((8, 20)), at((0, 10)), at((0, 4))])] == [1]


def test_the_id_is_the_same_for_the_same_hits():
    assert merged_id(["a", "b"]) == merged_id(["b", "a"]) != merged_id(["a", "c"])


def test_what_was_said_of_one_hit_alone_is_left_out():
    known = {"page": 3, "spans": "0-2,4-5", "segments": "0-2", "neighbour": 1}
    assert merged_metadata([known, {"pages": "10, 9"}, {"pages": "2"}], ["b", "a"], ["neighbour"]) == {
        "page": 3,
        "pages": "2, 9, 10",
        "merged_ids": "b,a",
    }


@st.composite
def retrieved(draw):
    """A text, and hits of one place or several in it."""
    text = draw(hard_text().filter(lambda text: len(text) >= 2))
    ends = st.lists(st.integers(0, len(text)), min_size=2, max_size=6, unique=True).map(sorted)
    places = ends.map(lambda found: list(zip(found[::2], found[1::2], strict=False)))
    hits = draw(st.lists(places, min_size=1, max_size=8))
    return text, [at(*each, text=text, gap=draw(st.sampled_from(["\n", " / "]))) for each in hits]


@given(retrieved(), st.integers(0, 5))
def test_the_union_of_the_spans_is_unchanged_and_no_overlap_remains(case, max_gap):
    text, hits = case
    found = merge_hits(hits, max_gap, "|")
    assert union(*(each.spans for each in found)) == union(*(hit.spans for hit in hits))
    assert sum(length(each.spans) for each in found) == length(union(*(each.spans for each in found)))
    assert sorted(place for each in found for place in each.members) == list(range(len(hits)))
    assert [each.members[0] for each in found] == sorted(each.members[0] for each in found)
    for each in found:
        if len(each.members) > 1:
            assert each.text == "|".join(span.slice(text) for span in each.spans)
            assert list(each.members) == sorted(each.members)
    ends = sorted((min(each.spans).start, max(each.spans).end) for each in found if len(each.spans) == 1)
    assert all(after[0] - before[1] > max_gap for before, after in pairwise(ends))


@given(retrieved())
def test_what_was_united_once_stays_as_it_is(case):
    _, hits = case
    once = merge_hits(hits)
    again = merge_hits([Hit(each.text, spans=each.spans, document="d") for each in once])
    assert [(each.spans, each.text) for each in again] == [(each.spans, each.text) for each in once]
