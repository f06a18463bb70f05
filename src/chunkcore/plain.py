"""Plain JSON values of options, results and metadata, and the digests that identify them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import blake2b
from pathlib import PurePath
from typing import Any


def plain(value: object, prepare: Callable[[Any], object] | None = None) -> Any:
    """Dataclasses, mappings, arrays, lists, sets, enums and paths as plain JSON values; NaN and infinity as null.

    `prepare` is called with each value first, the outermost before its items; its result is used instead: a name for a
    chunker, a refusal of NaN.

    Raises TypeError: an object that is none of these, or items within each other a thousand deep (RecursionError).

    >>> plain({"scores": (0.5, math.nan), 3: True, "folder": PurePath("docs")})
    {'scores': [0.5, None], '3': True, 'folder': 'docs'}
    """
    if prepare is not None:
        value = prepare(value)
    value = _simpler(value)
    if isinstance(value, dict):
        return {str(key): plain(item, prepare) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item, prepare) for item in value]
    return value


def _simpler(value: Any) -> Any:
    """A JSON value whose items need not be plain yet."""
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if hasattr(value, "tolist"):
        return _simpler(value.tolist())
    return _converted(value)


def _converted(value: object) -> Any:
    for kinds, convert in _CONVERSIONS:
        if isinstance(value, kinds):
            return convert(value)
    raise TypeError(f"a {type(value).__name__} is no JSON value")


_CONVERSIONS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (Mapping, dict),
    (list | tuple, list),
    (set | frozenset, lambda items: sorted(items, key=repr)),
    (PurePath, str),
)


def digest(value: object, size: int = 16) -> str:
    r"""`2 * size` hexadecimal digits of a text (which may hold unpaired surrogates), of bytes, or of a plain value.

    >>> digest("tea", 4), digest({"b": 1, "a": 2}, 4) == digest({"a": 2, "b": 1}, 4)
    ('1fb8a626', True)
    """
    if isinstance(value, str):
        data = value.encode("utf-8", "surrogatepass")
    elif isinstance(value, bytes):
        data = value
    else:
        data = json.dumps(value, sort_keys=True).encode("ascii")
    return blake2b(data, digest_size=size).hexdigest()


def digest_of_texts(texts: Iterable[str], size: int = 16) -> str:
    """`2 * size` hexadecimal digits of several texts: ("ab", "c") and ("a", "bc") differ."""
    hashed = blake2b(digest_size=size)
    for text in texts:
        hashed.update(framed(text))
    return hashed.hexdigest()


def framed(text: str) -> bytes:
    """A text in UTF-8 behind its length in eight bytes; unpaired surrogates are allowed."""
    data = text.encode("utf-8", "surrogatepass")
    return len(data).to_bytes(8, "little") + data
