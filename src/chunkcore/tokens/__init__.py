"""Token counters, and texts with their tokens."""

from chunkcore.tokens.counters import (
    CharacterCounter as CharacterCounter,
    HuggingFaceCounter as HuggingFaceCounter,
    TiktokenCounter as TiktokenCounter,
    WordCounter as WordCounter,
    get_counter as get_counter,
)
from chunkcore.tokens.tokenized import TokenCounter as TokenCounter, TokenizedText as TokenizedText
