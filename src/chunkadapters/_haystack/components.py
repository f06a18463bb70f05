"""What is asked of any Haystack component: whether it is one, to warm up, to run without blocking."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

__all__ = ["is_component", "run_async", "warm_up"]


def is_component(candidate: Any) -> bool:
    """Whether it is an object of a class that Haystack's ``component`` decorated."""
    return hasattr(candidate, "__haystack_input__") and hasattr(candidate, "__haystack_output__")


def warm_up(component: Any) -> None:
    """Warm it up, where it has to be."""
    if hasattr(component, "warm_up"):
        component.warm_up()


async def run_async(component: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Its outputs: by its own asynchronous method, or from a thread where it has none."""
    if getattr(component, "__haystack_supports_async__", False):
        return cast("Mapping[str, Any]", await component.run_async(**values))
    return cast("Mapping[str, Any]", await asyncio.to_thread(component.run, **values))
