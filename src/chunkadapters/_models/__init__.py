"""What the bridges from the frameworks' models share: an identity without secrets, checked vectors, counted answers.

A framework says how its models are called; nothing here knows a framework.
"""

from chunkadapters._models.embedder import BridgedEmbedder
from chunkadapters._models.identity import Identity, identify
from chunkadapters._models.llm import BridgedLLM, reply_of

__all__ = ["BridgedEmbedder", "BridgedLLM", "Identity", "identify", "reply_of"]
