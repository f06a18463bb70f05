"""Numbers of texts by their keys: what a dictionary would answer."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from chunkcore import columns as keyed
from chunkcore.columns import NumberByText, text_keys
from chunkcore.models.cache import text_key

TEXTS = st.lists(st.sampled_from([f"text {number}" for number in range(12)]), max_size=9)


@given(st.lists(TEXTS, max_size=9), TEXTS, st.integers(0, 9))
def test_numbers_are_those_of_a_dictionary(calls: list[list[str]], asked: list[str], recent: int) -> None:
    known: dict[str, int] = {}
    limit, keyed._RECENT = keyed._RECENT, recent
    try:
        numbers = NumberByText(np.int64)
        for call, texts in enumerate(calls):
            values = [100 * call + place + 1 for place in range(len(texts))]
            for text, value in zip(texts, values, strict=True):
                known.setdefault(text, value)
            numbers.add(text_keys(texts), np.array(values, dtype=np.int64))
            found, here = numbers.of(text_keys(asked))
            assert found.tolist() == [known.get(text, 0) for text in asked]
            assert here.tolist() == [text in known for text in asked]
    finally:
        keyed._RECENT = limit
    assert numbers.keys.tolist() == sorted(text_keys(list(known)).tolist())


def test_keys_that_end_in_zeros_are_told_apart() -> None:
    """NumPy drops zeros at the end of bytes when it hands them out, and two keys may differ in such alone."""
    keys = np.array([b"a" * 19 + b"\0", b"a" * 18 + b"\0\0", b"a" * 20, b"a" * 18 + b"\0a"], dtype="S20")
    numbers = NumberByText(np.int64)
    numbers.add(keys, np.array([1, 2, 3, 4]))
    assert numbers.of(keys)[0].tolist() == [1, 2, 3, 4]


def test_a_texts_key_is_the_caches() -> None:
    texts = [f"text {number}" for number in range(2_000)]  # of which some keys end in a zero
    assert text_keys(texts).tobytes() == b"".join(map(text_key, texts))
