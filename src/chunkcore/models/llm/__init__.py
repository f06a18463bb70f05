"""Language models: endpoints and functions as an `LLM`, how they are asked, what is kept, what it costs."""

from chunkcore.models.llm.asking import BadAnswerError, Estimator, Question, ask
from chunkcore.models.llm.base import LLM, Message, Prices, Reply, UnreachableError, Usage
from chunkcore.models.llm.cache import CachedLLM, LLMCache
from chunkcore.models.llm.endpoint import OpenAILLM
from chunkcore.models.llm.loading import CallableLLM, check_llm, get_llm

__all__ = [
    "LLM",
    "BadAnswerError",
    "CachedLLM",
    "CallableLLM",
    "Estimator",
    "LLMCache",
    "Message",
    "OpenAILLM",
    "Prices",
    "Question",
    "Reply",
    "UnreachableError",
    "Usage",
    "ask",
    "check_llm",
    "get_llm",
]
