"""Keys of texts."""

from __future__ import annotations

from chunkcore.columns import text_key, text_keys


def test_keys_in_an_array_are_the_keys_of_single_texts() -> None:
    texts = [f"text {number}" for number in range(2_000)]  # of which some keys end in a zero
    assert text_keys(texts).tobytes() == b"".join(map(text_key, texts))
