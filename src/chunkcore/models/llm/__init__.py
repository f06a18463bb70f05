"""Language models: the `LLM` protocol, endpoints and functions, asking, caching, costs."""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING or on_first_use(__name__):
    from chunkcore.models.cache import LLMCache as LLMCache
    from chunkcore.models.llm.base import LLM as LLM
    from chunkcore.models.llm.base import BadAnswerError as BadAnswerError
    from chunkcore.models.llm.base import CachedLLM as CachedLLM
    from chunkcore.models.llm.base import Estimator as Estimator
    from chunkcore.models.llm.base import Message as Message
    from chunkcore.models.llm.base import Prices as Prices
    from chunkcore.models.llm.base import Question as Question
    from chunkcore.models.llm.base import Reply as Reply
    from chunkcore.models.llm.base import Usage as Usage
    from chunkcore.models.llm.base import ask as ask
    from chunkcore.models.llm.endpoint import CallableLLM as CallableLLM
    from chunkcore.models.llm.endpoint import OpenAILLM as OpenAILLM
    from chunkcore.models.llm.endpoint import check_llm as check_llm
    from chunkcore.models.llm.endpoint import get_llm as get_llm
    from chunkcore.models.llm.endpoint import llms as llms
