"""`BridgedLLM`: a framework's language model as an `LLM`."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from chunkadapters._awaiting import at_once, finished
from chunkadapters._models.identity import Identity, secrets_of, without_secrets
from chunkcore.errors import ChunkcoreError, ModelError, NoAnswerError
from chunkcore.models.batching import encodable
from chunkcore.models.llm.answers import BadAnswerError
from chunkcore.models.llm.base import Message, Reply
from chunkcore.models.llm.metered import MeteredLLM

__all__ = ["BridgedLLM", "json_text", "reply_of", "titled"]

_SCHEMA_REFUSED = (400, 404, 415, 422, 501)  # what endpoints answer that know no structured output
_BUSY = (408, 409, 429)
# What frameworks raise over an answer that they cannot read.
_UNREADABLE = (ValueError, TypeError, AttributeError, LookupError)

# The names that the frameworks and, through them, the services have for the same counts.
_USAGE = ("usage", "usage_metadata", "token_usage")
_INPUT = ("input_tokens", "prompt_tokens", "prompt_token_count", "prompt_eval_count", "inputTokens")
_OUTPUT = ("output_tokens", "completion_tokens", "candidates_token_count", "eval_count", "outputTokens")
_CACHED = ("cached_tokens", "cache_read", "cache_read_input_tokens", "cached_content_token_count")
_DETAILS = ("prompt_tokens_details", "input_tokens_details", "input_token_details")
_FINISH = ("finish_reason", "stop_reason", "done_reason", "stopReason")
_CUT_OFF = ("length", "max_tokens", "max_output_tokens", "model_length")
_REFUSED = (
    "content_filter",
    "refusal",
    "safety",
    "recitation",
    "blocklist",
    "prohibited_content",
    "guardrail_intervened",
)

_Ask = Callable[[Sequence[Message], Mapping[str, Any] | None], Awaitable[Reply]]


class BridgedLLM(MeteredLLM):
    """A framework's language model, asked by that framework's own methods.

    A JSON schema is passed on where the framework has a way to hold the model to it; a model that refuses it is asked
    without from then on. Tokens are counted as the framework tells them. The model's own settings (temperature,
    retries, time-outs) stay what they are.

    Attributes:
        model: the framework's object.
    """

    def __init__(self, model: Any, identity: Identity, concurrency: int) -> None:
        super().__init__(name=identity.name, fingerprint=identity.fingerprint, concurrency=concurrency)
        self.model = model
        self._takes_schema = True

    def __getstate__(self) -> dict[str, Any]:
        # Locks and counts belong to the process.
        return {key: getattr(self, key) for key in ("model", "name", "fingerprint", "concurrency", "_takes_schema")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__init__(name=state["name"], fingerprint=state["fingerprint"], concurrency=state["concurrency"])
        self.model, self._takes_schema = state["model"], state["_takes_schema"]

    async def acomplete(self, messages: Sequence[Message], schema: Mapping[str, Any] | None = None) -> Reply:
        """`complete` by the model's asynchronous method; how many are under way is up to whoever awaits them.

        Raises:
            NoAnswerError: this question cannot be answered.
            ModelError: no question can.
        """
        reply = await self._answer(messages, schema, self._aask)
        self._meter.add_call(messages, reply)
        return reply

    def _complete(self, messages: Sequence[Message], schema: Mapping[str, Any] | None) -> Reply:
        return finished(self._answer(messages, schema, at_once(self._ask)))

    async def _answer(self, messages: Sequence[Message], schema: Mapping[str, Any] | None, ask: _Ask) -> Reply:
        readable: list[Message] = [
            {"role": each["role"], "content": encodable([each["content"]])[0]} for each in messages
        ]
        try:
            if schema is None or not self._takes_schema:
                return await ask(readable, None)
            return await self._held(readable, schema, ask)
        except Exception as error:  # noqa: BLE001  # a model may raise anything
            raise self._failed(error) from None

    async def _held(self, messages: Sequence[Message], schema: Mapping[str, Any], ask: _Ask) -> Reply:
        """The answer of a model that is held to the schema; one that refuses it is asked without."""
        try:
            return await ask(messages, schema)
        except Exception as error:
            if not _refuses_schema(error):
                raise
        reply = await ask(messages, None)
        self._takes_schema = False  # it answers without: the schema was what it refused
        return reply

    @abstractmethod
    def _ask(self, messages: Sequence[Message], schema: Mapping[str, Any] | None) -> Reply:
        """The answer. `NotImplementedError` where the model cannot be held to a schema."""

    @abstractmethod
    async def _aask(self, messages: Sequence[Message], schema: Mapping[str, Any] | None) -> Reply:
        """`_ask`, asynchronously."""

    def _failed(self, error: Exception) -> Exception:
        """The error as one of our tree. The chain of causes is left out: a service's message may repeat the key."""
        if isinstance(error, ChunkcoreError | BadAnswerError):
            return error
        told = f"the model {self.name!r} failed: {type(error).__name__}: " + without_secrets(
            error, secrets_of(self.model)
        )
        status, code = _status(error), str(getattr(error, "code", ""))
        if _is_a(error, "timeout", "contentfilter", "refusal") or code == "content_filter":
            return NoAnswerError(told)
        if status is not None:
            busy = (status in _BUSY or status >= 500) and code != "insufficient_quota"
            return NoAnswerError(told) if busy else ModelError(told)
        if isinstance(error, _UNREADABLE) or _is_a(error, "finishreason"):
            return BadAnswerError(f"expected an answer that can be read ({told})")
        return ModelError(told)


def _refuses_schema(error: Exception) -> bool:
    return isinstance(error, NotImplementedError) or _status(error) in _SCHEMA_REFUSED


def _status(error: Exception) -> int | None:
    """The HTTP status that an exception of any client tells of."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "http_status", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, int) and 400 <= value < 600:
                return value
    return None


def _is_a(error: Exception, *words: str) -> bool:
    """Whether the error's class, or one that it derives from, has such a name: each client has classes of its own."""
    names = [cls.__name__.lower() for cls in type(error).__mro__]
    return any(word in name for name in names for word in words)


def titled(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with the title and description that the frameworks make a function's name and purpose of."""
    return {"title": "answer", "description": "The answer, as it was asked for.", **schema}


def json_text(value: Any) -> str:
    """A structured answer as the text that it stands for."""
    return json.dumps(value, ensure_ascii=False, default=str)


def reply_of(text: object, *told: Any) -> Reply:
    """A reply from an answer's text and whatever the framework tells about it: mappings and objects.

    >>> reply_of("Yes.", {"finish_reason": "stop", "usage": {"prompt_tokens": 9, "completion_tokens": 2}})
    Reply(text='Yes.', finish='stop', input_tokens=9, output_tokens=2, cached_tokens=0)

    Raises:
        BadAnswerError: the text is none.
    """
    if not isinstance(text, str):
        raise BadAnswerError(f"expected a text, got {type(text).__name__}")
    holders = [each for each in told if each is not None]
    counts = [*(held for each in holders for name in _USAGE if (held := _get(each, name)) is not None), *holders]
    details = [held for each in counts for name in _DETAILS if (held := _get(each, name)) is not None]
    refusal = next((held for each in holders if isinstance(held := _get(each, "refusal"), str) and held), "")
    return Reply(
        text=str(text) or refusal,
        finish="refusal" if refusal else _finish(holders),
        input_tokens=_first_number(counts, _INPUT),
        output_tokens=_first_number(counts, _OUTPUT),
        cached_tokens=_first_number([*details, *counts], _CACHED) or 0,
    )


def _finish(holders: Sequence[Any]) -> Literal["stop", "length", "refusal"]:
    for reason in _values(holders, _FINISH):
        word = str(getattr(reason, "value", reason)).lower()
        if word in _CUT_OFF:
            return "length"
        if word in _REFUSED:
            return "refusal"
    return "stop"


def _first_number(holders: Sequence[Any], names: Sequence[str]) -> int | None:
    numbers = (value for value in _values(holders, names) if isinstance(value, int) and not isinstance(value, bool))
    return next((value for value in numbers if value >= 0), None)


def _values(holders: Sequence[Any], names: Sequence[str]) -> Iterator[Any]:
    for holder in holders:
        for name in names:
            if (value := _get(holder, name)) is not None:
                yield value


def _get(holder: Any, name: str) -> Any:
    if isinstance(holder, Mapping):
        return holder.get(name)
    return getattr(holder, name, None)
