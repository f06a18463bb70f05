"""From what a tokenizer answers to tokens that stand at places of the document."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from chunkcore.models.base import TextTokens

__all__ = ["text_tokens"]


def text_tokens(
    text: str,
    ids: Sequence[int],
    offsets: Sequence[tuple[int, int]],
    special: Sequence[int],
    *,
    prompt: str = "",
    lowercase: bool = False,
) -> TextTokens:
    """Tokens of a prompt with a document after it, at places of the document alone.

    Args:
        text: the document.
        ids: of the tokens.
        offsets: half-open code points of what the tokenizer was given: the prompt and the document.
        special: 1 for a token that the tokenizer put there, 0 for one of the text.
        prompt: what was put before the document.
        lowercase: whether the tokenizer was given it in lower case, in which some characters are longer.

    >>> text_tokens("İs", [1, 7, 8, 2], [(0, 0), (0, 2), (2, 3), (0, 0)], [1, 0, 0, 1], lowercase=True).ends.tolist()
    [0, 1, 2, 2]
    """
    places = np.array(offsets, dtype=np.int64).reshape(-1, 2)
    own = np.asarray(special, dtype=np.int64) == 0
    # A token that begins in the prompt and ends in the document stands for what it covers of the document.
    own &= places[:, 1] > len(prompt.lower() if lowercase else prompt)
    numbers = np.flatnonzero(own)
    before = int(numbers[0]) if len(numbers) else int(np.count_nonzero(np.cumprod(np.asarray(special))))
    after = len(ids) - 1 - int(numbers[-1]) if len(numbers) else len(ids) - before
    places = np.maximum(places - len(prompt.lower() if lowercase else prompt), 0)
    if lowercase:
        places = _raised(text, places)
    places[:before] = 0
    places[len(ids) - after :] = len(text)
    # Tokens of one character share its place; a few tokenizers step back by a character, which searches do not expect.
    starts, ends = np.maximum.accumulate(places, axis=0).T
    return TextTokens(np.array(ids, dtype=np.int64), starts.copy(), ends.copy(), before, after)


def _raised(text: str, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Places in the text from places in it in lower case."""
    if len(text.lower()) == len(text):
        return places
    lengths = np.array([len(character.lower()) for character in text], dtype=np.int64)
    origin = np.append(np.repeat(np.arange(len(text), dtype=np.int64), lengths), len(text))
    raised = origin[np.minimum(places, len(origin) - 1)]
    # An end inside a character is after it.
    ends = np.append(0, np.repeat(np.arange(1, len(text) + 1, dtype=np.int64), lengths))
    raised[:, 1] = ends[np.minimum(places[:, 1], len(ends) - 1)]
    return raised
