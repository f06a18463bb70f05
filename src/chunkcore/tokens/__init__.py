"""Token counters, and texts with their tokens."""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING or on_first_use(__name__):
    from chunkcore.tokens.counters import CharacterCounter as CharacterCounter
    from chunkcore.tokens.counters import HuggingFaceCounter as HuggingFaceCounter
    from chunkcore.tokens.counters import TiktokenCounter as TiktokenCounter
    from chunkcore.tokens.counters import WordCounter as WordCounter
    from chunkcore.tokens.counters import get_counter as get_counter
    from chunkcore.tokens.tokenized import TokenCounter as TokenCounter
    from chunkcore.tokens.tokenized import TokenizedText as TokenizedText
