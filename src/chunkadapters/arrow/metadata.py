"""A document's metadata, from whatever an engine makes of them to one JSON object, the same in every engine."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Mapping
from datetime import date, datetime, time, timezone
from typing import Any

import pyarrow as pa

from chunkadapters.arrow.scalars import decoded, in_microseconds, innermost, opaque_type
from chunkcore.errors import DataError

__all__ = ["as_json", "read_metadata"]

_LONGEST = 1_000_000  # characters: every chunk of the document repeats them
_DEPTH = 64
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_metadata(scalar: pa.Scalar) -> dict[str, Any]:
    """Plain JSON values by name.

    A string is a JSON object; a struct's fields that are null are left out, because engines fill structs up with
    them where only some rows of a partition have a field. Dates and times become ISO 8601, to the microsecond and in
    UTC where they have a zone; binary becomes base64; NaN and infinity become strings.

    Raises:
        DataError: not a JSON object, a struct or a map; a key twice; too long or nested too deeply.
    """
    value = innermost(scalar)
    if value is None:
        return {}
    kind = value.type
    try:
        if isinstance(value, pa.BinaryScalar):
            found = _parsed(decoded(value, _LONGEST, "metadata"))
        elif pa.types.is_struct(kind) or pa.types.is_map(kind):
            if opaque := opaque_type(kind):
                raise DataError(f"its metadata have values of the type {opaque}: expected what JSON can say")
            wanted = in_microseconds(kind)
            found = _plain((value if wanted == kind else value.cast(wanted, safe=False)).as_py(), kind)
        else:
            raise DataError(
                f"its metadata are of the type {kind}: expected a JSON object in a string, a struct or a map"
            )
        json_length = len(as_json(found))
    except RecursionError:
        raise DataError(f"its metadata are nested more than {_DEPTH} deep") from None
    if json_length > _LONGEST:
        raise DataError(f"its metadata have {json_length:,} characters as JSON: expected at most {_LONGEST:,}")
    return found  # type: ignore[no-any-return]


def as_json(metadata: Mapping[str, Any]) -> str:
    r"""A JSON object with its keys in order, that UTF-8 can say.

    >>> as_json({"b": "é", "a": [1, float("nan"), "\ud800"]})
    '{"a": [1, "NaN", "\\ud800"], "b": "\\u00e9"}'
    """
    plain = _plain(metadata, None)
    text = json.dumps(plain, ensure_ascii=False, sort_keys=True)
    return json.dumps(plain, sort_keys=True) if _SURROGATE.search(text) else text


def _parsed(text: str) -> Any:
    try:
        found = json.loads(text, object_pairs_hook=_once_each)
    except ValueError as error:
        reason = str(error) if isinstance(error, DataError) else f"its metadata are no JSON ({error})"
        raise DataError(f'{reason}: expected an object such as {{"title": "Tea"}}') from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise DataError(f"its metadata are a JSON {type(found).__name__}: expected an object")
    return _plain(found, None)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise DataError("its metadata have a key twice")
    return found


def _plain(value: Any, kind: pa.DataType | None, depth: int = 0) -> Any:
    """A Python value as JSON knows it; the Arrow type, where there is one, tells maps and structs."""
    if depth > _DEPTH:
        raise RecursionError
    if value is None:
        return None
    if kind is not None and pa.types.is_dictionary(kind):
        kind = kind.value_type
    if kind is not None and pa.types.is_map(kind):
        return _once_each([(_key(key), _plain(each, kind.item_type, depth + 1)) for key, each in value])
    if isinstance(value, Mapping):
        types = {} if kind is None else {field.name: field.type for field in kind}
        return {
            _key(key): _plain(each, types.get(key), depth + 1)
            for key, each in value.items()
            if each is not None or kind is None
        }
    if isinstance(value, list | tuple):
        inner = getattr(kind, "value_type", None)
        return [_plain(each, inner, depth + 1) for each in value]
    return _leaf(value)


def _key(key: Any) -> str:
    leaf = _leaf(key)
    return leaf if isinstance(leaf, str) else json.dumps(leaf)


def _leaf(value: Any) -> Any:
    if isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(timezone.utc).isoformat()
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    return str(value)
