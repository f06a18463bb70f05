"""Token counters, and texts with their tokens."""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING:
    from chunkcore.tokens.counters import (
        CharacterCounter as CharacterCounter,
        HuggingFaceCounter as HuggingFaceCounter,
        TiktokenCounter as TiktokenCounter,
        WordCounter as WordCounter,
        get_counter as get_counter,
    )
    from chunkcore.tokens.tokenized import (
        TokenCounter as TokenCounter,
        TokenizedText as TokenizedText,
    )

on_first_use(
    __name__,
    {
        "chunkcore.tokens.counters": (
            "CharacterCounter HuggingFaceCounter TiktokenCounter WordCounter get_counter"
        ),
        "chunkcore.tokens.tokenized": "TokenCounter TokenizedText",
    },
)
