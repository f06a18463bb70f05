"""`allowed_documents`: which documents the filter `where=` of a search allows."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from enum import Enum
from typing import Any
from unicodedata import normalize

import numpy as np

from chunkcore.errors import OptionError, echo
from chunkcore.plain import plain
from chunkcore.spans import Flags
from chunkcore.text import Document

Where = Iterable[str] | Mapping[str, Any] | Callable[[Mapping[str, Any]], bool]
# Of a whole number in a filter: beyond them, no float equals it.
_LARGEST_BITS = 1024
_HAYSTACK = ({"field", "operator", "value"}, {"operator", "conditions"})


def allowed_documents(where: Where, documents: Sequence[Document]) -> Flags:
    """Whether a filter allows each document, by ids, by equal metadata or by a function of the metadata.

    Ids are compared in Unicode's composed form, values as what they say: 44 equals 44.0 and NumPy's 44, a tuple equals
    a list.

    Raises `OptionError`: `where` is no filter, has a value that no metadata can equal, or is a function that answers
    with something else than True or False.

    >>> allowed_documents({"year": 44}, [Document("a", "", {"year": 44.0}), Document("b", "")]).tolist()
    [True, False]
    """
    if callable(where):
        check_predicate("where", where)
        answers = [
            truth("a filter", where(own_copy(document.metadata)), document.id)
            for document in documents
        ]
    elif isinstance(where, Mapping):
        _check_operators(where)
        check_values(where)
        required = {key: comparable(value) for key, value in where.items()}
        answers = []
        for document in documents:
            data = document.metadata
            equal = [
                key in data and comparable(data[key]) == value for key, value in required.items()
            ]
            answers.append(all(equal))
    else:
        is_one = isinstance(where, str) or not isinstance(where, Iterable)
        names: list[Any] = [where] if is_one else list(where)
        if not all(isinstance(name, str) for name in names):
            raise OptionError(
                "where is document ids, a mapping of metadata that must be equal, or a function of a document's "
                f"metadata; got {echo(where)}"
            )
        ids = {normalize("NFC", name) for name in names}
        answers = [normalize("NFC", document.id) in ids for document in documents]
    return np.array(answers, bool)


def check_predicate(
    name: str,
    function: Callable[..., object],
) -> None:
    """Raise `OptionError`: an option's function is none whose answers are true or false."""
    others = (inspect.isclass, inspect.isgeneratorfunction, inspect.iscoroutinefunction)
    if any(is_other(function) for is_other in others):
        raise OptionError(
            f"{name} is a function that returns True or False, no class, generator or coroutine; got {echo(function)}"
        )


_FLAT = {str, int, float, bool, type(None)}


def own_copy(metadata: Mapping[Any, Any]) -> dict[Any, Any]:
    """Metadata that may be changed. Nested values are rare, and a copy of them takes a hundred times as long."""
    copied = dict(metadata)
    for key, value in metadata.items():
        if type(value) not in _FLAT:
            with suppress(TypeError):  # of a lock or a connection there is no copy
                copied[key] = deepcopy(value)
    return copied


def truth(option: str, answer: object, document_id: str) -> bool:
    """What an option's function says of a document.

    Raises `OptionError`: the answer is no truth value. "false", a coroutine and most other objects would count as true.

    >>> truth("a filter", np.bool_(False), "tea.md")
    False
    """
    if isinstance(answer, bool | np.bool_):
        return bool(answer)
    if inspect.iscoroutine(answer):
        answer.close()
    raise OptionError(
        f"{option} that is a function returns True or False of each document, got {echo(answer)} of {echo(document_id)}"
    )


def _check_operators(where: Mapping[str, Any]) -> None:
    names = list(where)
    for value in where.values():
        if isinstance(value, Mapping):
            names += value
    has_operator = any(str(name).startswith("$") for name in names)
    if has_operator or set(where) in _HAYSTACK:
        raise OptionError(
            f"where knows no operators, got {echo(dict(where))}: name values, or give a function"
        )


def check_values(where: Mapping[str, Any]) -> None:
    """Raise `OptionError`: a filter has a value that no metadata can equal."""
    for key, value in where.items():
        with suppress(RecursionError):
            if isinstance(key, str) and _can_be_equal(value):
                continue
        raise OptionError(
            f"where names metadata and their values: text, numbers, true or false, dates, null, or lists of these; "
            f"got {echo(value)} for {echo(key)}"
        )


def _can_be_equal(value: Any) -> bool:
    """Whether a document's metadata can have this value."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(_can_be_equal, value))
    if isinstance(value, int):
        return value.bit_length() <= _LARGEST_BITS
    dimensions = getattr(value, "ndim", int(hasattr(value, "tolist")))
    if dimensions or callable(value) or isinstance(value, bytes | bytearray):
        return False
    equality: object = type(value).__eq__
    equals_itself_alone = equality is object.__eq__ and value is not None
    return not equals_itself_alone and bool(value == value)  # unlike NaN


def comparable(value: object) -> object:
    """A value as what it says: of numbers and texts in lists and mappings, plain ones."""
    try:
        return plain(value, _number)
    except TypeError:
        return value


def _number(value: Any) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        raise TypeError("NaN equals nothing, and infinity itself, not null")
    return value
