"""Token counters, and texts with their tokens."""

from chunkcore.tokens.counters import (
    CharacterCounter,
    HuggingFaceCounter,
    TiktokenCounter,
    WordCounter,
    get_counter,
)
from chunkcore.tokens.tokenized import TokenCounter, TokenizedText

__all__ = [
    "CharacterCounter",
    "HuggingFaceCounter",
    "TiktokenCounter",
    "TokenCounter",
    "TokenizedText",
    "WordCounter",
    "get_counter",
]
