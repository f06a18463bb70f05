"""Language models: the `LLM` protocol, endpoints and functions, asking, caching, costs."""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING:
    from chunkcore.models.cache import LLMCache as LLMCache
    from chunkcore.models.llm.base import (
        LLM as LLM,
        BadAnswerError as BadAnswerError,
        CachedLLM as CachedLLM,
        Estimator as Estimator,
        Message as Message,
        Prices as Prices,
        Question as Question,
        Reply as Reply,
        Usage as Usage,
        ask as ask,
    )
    from chunkcore.models.endpoint import (
        CallableLLM as CallableLLM,
        OpenAILLM as OpenAILLM,
        check_llm as check_llm,
        get_llm as get_llm,
        llms as llms,
    )

on_first_use(
    __name__,
    {
        "chunkcore.models.cache": "LLMCache",
        "chunkcore.models.llm.base": (
            "LLM BadAnswerError CachedLLM Estimator Message Prices Question Reply Usage ask"
        ),
        "chunkcore.models.endpoint": "CallableLLM OpenAILLM check_llm get_llm llms",
    },
)
