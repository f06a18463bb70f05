"""What a call brings: how it reaches the retrievers inside of a LangChain runnable, and which of them would drop it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from inspect import signature
from typing import Any, TypeAlias, cast

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    Runnable,
    RunnableConfig,
    RunnableLambda,
    RunnableSequence,
    RunnableWithFallbacks,
    ensure_config,
)
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.vectorstores import VectorStoreRetriever

AnyRunnable: TypeAlias = Runnable[Any, Any]


@contextmanager
def for_children(config: RunnableConfig | None) -> Iterator[None]:
    """Every runnable that is called meanwhile sees the configuration, whatever its caller passes on."""
    own = {"callbacks", "run_id", "run_name"}
    inherited = {key: value for key, value in ensure_config(config).items() if key not in own}
    token = var_child_runnable_config.set(cast(RunnableConfig, inherited))
    try:
        yield
    finally:
        var_child_runnable_config.reset(token)


def dropping(runnable: AnyRunnable, names: Collection[str]) -> AnyRunnable | None:
    """The runnable that would drop the arguments of a call in silence, of one and those inside; None if none would."""
    inner: Iterable[AnyRunnable] = ()
    if isinstance(runnable, BaseRetriever):
        if not runnable._expects_other_args:
            return runnable
        inner = [child for child in _held(runnable) if isinstance(child, _PASSING)]
    elif isinstance(runnable, RunnableSequence):
        inner = [runnable.first]
    elif isinstance(runnable, DynamicRunnable):
        inner = [runnable.prepare()[0]]
    elif isinstance(runnable, RunnableBindingBase | RunnableWithFallbacks):
        inner = _held(runnable)
    elif not isinstance(runnable, RunnableLambda) and not _takes(runnable, names):
        return runnable
    for child in inner:
        dropped_by = dropping(child, names)
        if dropped_by is not None:
            return dropped_by
    return None


def _takes(runnable: AnyRunnable, names: Iterable[str]) -> bool:
    return set(names) <= signature(runnable.invoke).parameters.keys()


# What may hold a retriever, and hands a call's arguments on.
_PASSING = (
    BaseRetriever,
    RunnableSequence,
    DynamicRunnable,
    RunnableBindingBase,
    RunnableWithFallbacks,
)


def _held(runnable: AnyRunnable) -> list[AnyRunnable]:
    """The runnables among a runnable's fields."""
    children: list[AnyRunnable] = []
    for value in vars(runnable).values():
        values: Iterable[object] = value if isinstance(value, list | tuple) else [value]
        if isinstance(value, Mapping):
            values = value.values()
        children += [item for item in values if isinstance(item, Runnable)]
    return children


def stated_k(runnable: AnyRunnable) -> int | None:
    """The number of hits of a vector store's retriever that takes it in a call, also through wrappers; else None."""
    if isinstance(runnable, DynamicRunnable):
        return stated_k(runnable.prepare()[0])
    if isinstance(runnable, RunnableWithFallbacks):
        numbers = [stated_k(child) for child in _held(runnable)]
        return None if None in numbers else max(cast(list[int], numbers))
    if isinstance(runnable, RunnableBindingBase):
        k = stated_k(runnable.bound)
        return k if k is None else runnable.kwargs.get("k", k)
    search = VectorStoreRetriever._get_relevant_documents
    if isinstance(runnable, VectorStoreRetriever) and (
        type(runnable)._get_relevant_documents is search
    ):
        return int(runnable.search_kwargs.get("k", 1))
    return None
