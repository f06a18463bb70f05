"""`allowed_documents`: which documents the filter `where=` of a search allows."""

from __future__ import annotations

import inspect
import math
import unicodedata
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any, TypeVar

import numpy as np

from chunkcore.errors import OptionError, echo
from chunkcore.plain import plain
from chunkcore.spans import Flags

T = TypeVar("T")
Where = Iterable[str] | Mapping[str, Any] | Callable[[Mapping[str, Any]], bool]
_HAYSTACK = ({"field", "operator", "value"}, {"operator", "conditions"})


def allowed_documents(
    where: Where,
    names: Sequence[str],
    metadata: Sequence[Mapping[str, Any]],
) -> Flags:
    """Whether a filter allows each document, by ids, by equal metadata or by a function of the metadata.

    Ids are compared in Unicode's composed form, values as what they say: 44 equals 44.0 and NumPy's 44, a tuple equals
    a list.

    Raises `OptionError`: `where` is no filter, or its function answers with something that is not true or false.

    >>> allowed_documents({"year": 44}, ["a", "b"], [{"year": 44.0}, {}]).tolist()
    [True, False]
    """
    if callable(where):
        allows = predicate("where", where)
        return np.array(
            [allows(data) for data in metadata],
            dtype=np.bool_,
        )
    if isinstance(where, Mapping):
        _check_operators(where)
        required = {key: comparable(value) for key, value in where.items()}
        return np.array(
            [_has(data, required) for data in metadata],
            dtype=np.bool_,
        )
    ids = {unicodedata.normalize("NFC", name) for name in _ids(where)}
    is_named = [unicodedata.normalize("NFC", name) in ids for name in names]
    return np.array(is_named, dtype=np.bool_)


def predicate(
    name: str,
    function: Callable[[T], object],
) -> Callable[[T], bool]:
    """The function of an option, with answers that are true or false.

    Raises `OptionError`, here or when it is called: its answers decide nothing, as a coroutine's do.

    >>> predicate("where", lambda metadata: metadata.get("level"))({"level": 1})
    True
    """
    if inspect.isclass(function) or inspect.isgeneratorfunction(function):
        raise OptionError(
            f"{name} is a function that returns true or false, no class or generator; got {echo(function)}"
        )

    def allows(data: T) -> bool:
        answer = function(data)
        if inspect.iscoroutine(answer):
            answer.close()
        if isinstance(answer, Awaitable | Iterator | AsyncIterator | np.ndarray):
            raise OptionError(f"{name} returns true or false of a document, got {echo(answer)}")
        return bool(answer)

    return allows


def _check_operators(where: Mapping[str, Any]) -> None:
    names = list(where)
    for value in where.values():
        if isinstance(value, Mapping):
            names += value
    if set(where) in _HAYSTACK or any(str(name).startswith("$") for name in names):
        raise OptionError(
            f"where knows no operators, got {echo(dict(where))}: name values, or give a function"
        )


def _ids(where: Any) -> list[str]:
    if isinstance(where, str):
        return [where]
    ids = list(where) if isinstance(where, Iterable) else [where]
    if not all(isinstance(name, str) for name in ids):
        raise OptionError(
            "where is document ids, a mapping of metadata that must be equal, or a function of a document's metadata; "
            f"got {echo(where)}"
        )
    return ids


def _has(
    data: Mapping[str, Any],
    required: Mapping[str, object],
) -> bool:
    return all(key in data and comparable(data[key]) == value for key, value in required.items())


def comparable(value: object) -> object:
    """A value as what it says: of numbers and texts in lists and mappings, plain ones."""
    try:
        return plain(value, _number)
    except TypeError:
        return value


def _number(value: Any) -> object:
    if isinstance(value, float) and math.isnan(value):
        raise TypeError("NaN equals nothing, not even null")
    return value
