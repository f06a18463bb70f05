"""`Postings` count each word of each text, and join."""

from __future__ import annotations

import numpy as np
from chunkcore.retrieval.lexicon import Postings, word_keys
from hypothesis import given
from hypothesis import strategies as st

some = st.lists(st.lists(st.sampled_from(["fox", "foxes", "a", "b", "東京"]), max_size=6).map(" ".join), max_size=6)


def counted(postings: Postings, word: str) -> list[tuple[int, int]]:
    texts, counts = postings.of_word(word)
    return list(zip(texts.tolist(), counts.tolist(), strict=True))


@given(some, st.sampled_from(["whole", "first3"]))
def test_postings_count_each_word_of_each_text(texts, form):
    postings = Postings.of(texts, form)
    keys = [word_keys(text, form) for text in texts]
    assert postings.lengths.tolist() == [len(own) for own in keys]
    for word in {word for own in keys for word in own} | {"cow"}:
        expected = [(number, own.count(word)) for number, own in enumerate(keys) if word in own]
        assert counted(postings, word) == expected


@given(some, some, st.randoms(use_true_random=False))
def test_joined_postings_are_those_of_the_texts_together(first, second, random):
    order = list(range(len(first) + len(second)))
    random.shuffle(order)
    kept, added = ([n if random.random() < 0.7 else -1 for n in order[: len(first)]], order[len(first) :])
    texts = {n: text for n, text in zip([*kept, *added], [*first, *second], strict=True) if n >= 0}
    numbers = {number: place for place, number in enumerate(sorted(texts))}
    expected = Postings.of([texts[number] for number in numbers])
    maps = [np.array([numbers.get(n, -1) for n in own], dtype=np.int64) for own in (kept, added)]
    joined = Postings.joined([(Postings.of(first), maps[0]), (Postings.of(second), maps[1])], len(numbers))
    assert joined.lengths.tolist() == expected.lengths.tolist()
    for word in ("fox", "foxes", "a", "b", "東京"):
        assert counted(joined, word) == counted(expected, word)
