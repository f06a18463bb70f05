"""Language models: the `LLM` protocol, endpoints and functions, asking, caching, costs."""

from chunkcore.models.cache import LLMCache
from chunkcore.models.llm.asking import BadAnswerError, Estimator, Question, ask
from chunkcore.models.llm.base import LLM, CachedLLM, Message, Prices, Reply, UnreachableError, Usage
from chunkcore.models.llm.endpoint import OpenAILLM
from chunkcore.models.llm.loading import CallableLLM, check_llm, get_llm, llms

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
    "llms",
]
