"""What tells a retriever from another one of its class: what it is set to, without secrets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

from chunkadapters._models.identity import digest_of, plain, settings_of

__all__ = ["described", "settings_mark"]

_DEPTH = 5


def settings_mark(asked: Any, is_part: Callable[[Any], bool]) -> str:
    """A mark of what answers depend on, as far as an object tells; see `described`."""
    return digest_of(described(asked, is_part))


def described(value: Any, is_part: Callable[[Any], bool], depth: int = _DEPTH) -> Any:
    """What a retriever was set to, and its parts were, as JSON knows it.

    Settings are what the class's constructor takes: what an object counts or keeps while it works is none. Of objects
    that are no parts, such as stores, only the class is told.

    Args:
        value: the retriever, or anything that it holds.
        is_part: whether an object is looked into.
        depth: how far.
    """
    if depth and is_part(value):
        known = _parameters(type(value))
        found = {
            key: described(held, is_part, depth - 1)
            for key, held in settings_of(value)
            if key.lstrip("_") in known or key in known
        }
        return [_name(type(value)), found]
    if depth and isinstance(value, list | tuple):
        return [described(each, is_part, depth - 1) for each in value]
    if isinstance(value, Mapping) or value is None:
        return plain(value)
    said = plain(value)
    return _name(type(value)) if said is None else said


def _parameters(cls: type) -> set[str]:
    found = set(getattr(cls, "model_fields", ()))  # pydantic's
    for each in cls.__mro__[:-1]:
        if "__init__" in each.__dict__:
            found.update(signature(each.__dict__["__init__"]).parameters)
    return found


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
