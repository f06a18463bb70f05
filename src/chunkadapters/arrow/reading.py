"""Read a record batch as documents, or errors per row."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time, timezone
from typing import Any, NamedTuple

import pyarrow as pa

from chunkcore.document import Document
from chunkcore.errors import DataError

_WRAPPED = (pa.DictionaryScalar, pa.UnionScalar, pa.RunEndEncodedScalar)
_JSON = "arrow.json"  # DuckDB's JSON; other extension types may be anything, pickles included
_PLAIN = {_JSON, "arrow.bool8", "arrow.uuid"}


def innermost(scalar: pa.Scalar) -> pa.Scalar | None:
    """The value inside dictionaries, unions and runs; None if null.

    >>> innermost(pa.array(["tea", None]).dictionary_encode()[0]), innermost(pa.scalar(None))
    (<pyarrow.StringScalar: 'tea'>, None)
    """
    while isinstance(scalar, _WRAPPED) or (
        isinstance(scalar, pa.ExtensionScalar) and getattr(scalar.type, "extension_name", "") == _JSON
    ):
        if not scalar.is_valid or scalar.value is None:
            return None
        scalar = scalar.value
    return scalar if scalar.is_valid else None


def opaque_type(kind: pa.DataType) -> pa.DataType | None:
    """The first extension type inside a type, or None. Reading its values would run its code on a file's bytes.

    >>> opaque_type(pa.struct([("years", pa.list_(pa.int16()))]))
    """
    if isinstance(kind, pa.BaseExtensionType):
        return None if kind.extension_name in _PLAIN else kind
    inner = [getattr(kind, name, None) for name in ("key_type", "item_type", "value_type")]
    if pa.types.is_struct(kind) or pa.types.is_union(kind):
        inner += [kind.field(number).type for number in range(kind.num_fields)]
    return next((found for each in inner if each is not None and (found := opaque_type(each))), None)


def in_microseconds(kind: pa.DataType) -> pa.DataType:
    """The type with times in microseconds: finer ones need pandas to become Python values.

    >>> in_microseconds(pa.struct([("at", pa.list_(pa.timestamp("ns", "UTC")))])).field("at").type
    ListType(list<item: timestamp[us, tz=UTC]>)
    """
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz) if kind.unit == "ns" else kind
    if pa.types.is_duration(kind):
        return pa.duration("us") if kind.unit == "ns" else kind
    if pa.types.is_time64(kind):
        return pa.time64("us")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(in_microseconds(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(in_microseconds(kind.key_type), in_microseconds(kind.item_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(in_microseconds(kind.value_type), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(in_microseconds(kind.value_type))
    return pa.list_(in_microseconds(kind.value_type)) if pa.types.is_list(kind) else kind


def decoded(scalar: pa.BinaryScalar, longest: int, what: str) -> str:
    """A string, or UTF-8 as binary, as text. Raises `DataError` if it is not UTF-8, or over `longest` characters."""
    data = scalar.as_buffer()
    if data.size > 4 * longest:  # a character has at most 4 bytes
        raise DataError(f"its {what} has {data.size:,} bytes: expected at most {longest:,} characters")
    try:
        text: str = data.to_pybytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"its {what} is not UTF-8 (byte {error.start} is 0x{error.object[error.start]:02x}): convert it first"
        ) from None
    if len(text) > longest:
        raise DataError(f"its {what} has {len(text):,} characters: expected at most {longest:,}")
    return text


_LONGEST = 1_000_000  # characters; every chunk repeats them
_DEPTH = 64
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_metadata(scalar: pa.Scalar) -> dict[str, Any]:
    """Metadata as plain JSON values by name.

    A string holds a JSON object. Null fields of a struct are dropped: engines add them when other rows have the field.
    Dates and times become ISO 8601 in microseconds, in UTC if they have a zone; binary becomes base64; NaN and infinity
    become strings.

    Raises `DataError`: not a JSON object, a struct or a map; a duplicate key; too long or nested too deeply.
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
    r"""A JSON object in UTF-8 with sorted keys.

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
    """A Python value as JSON values; the Arrow type tells maps from structs."""
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


METADATA = "metadata"  # the default column, which may be absent
_LONGEST_ID = 100_000


class Reading(NamedTuple):
    """A row as a document or an error, with its id if readable."""

    id: str | None
    document: Document | None
    problem: DataError | None = None


def read_rows(batch: pa.RecordBatch, names: tuple[str, str, str], longest: int) -> Iterator[Reading]:
    """The rows of the id, text and metadata columns, in order; texts have at most `longest` characters.

    Raises `DataError` for a missing or duplicate column.
    """
    if not batch.schema.names and not batch.num_rows:  # an empty block, as engines make them
        return
    columns = []
    for name, what in zip(names, ("ids", "texts", "metadata"), strict=True):
        places = batch.schema.get_all_field_indices(name)
        if len(places) == 1:
            columns.append(batch.column(places[0]))
        elif places or (name, what) != (METADATA, "metadata"):
            raise DataError(
                f"expected one column {name!r} with the documents' {what}, got {len(places) or 'none'} among "
                f"{', '.join(map(repr, batch.schema.names)) or 'no columns'}: rename yours, or say its name by "
                "id_column, text_column or metadata_column"
            )
    for row in range(batch.num_rows):
        yield _reading([column[row] for column in columns], longest)


def _reading(values: Sequence[pa.Scalar], longest: int) -> Reading:
    found: str | None = None
    try:
        found = _id(innermost(values[0]))
        metadata = read_metadata(values[2]) if len(values) > 2 else {}
        text = _string(innermost(values[1]), longest, "text", "a string, or binary that is UTF-8")
        return Reading(found, Document(found, text, metadata))
    except Exception as error:  # noqa: BLE001  # the other rows are read
        problem = error if isinstance(error, DataError) else DataError(f"{type(error).__name__}: {error}")
        return Reading(found, None, problem)


def _id(value: pa.Scalar | None) -> str:
    if value is not None and pa.types.is_integer(value.type):
        return str(value.as_py())
    found = _string(value, _LONGEST_ID, "id", "a string or an integer")
    if not found:
        raise DataError("its id is empty: expected a name")
    return found


def _string(value: pa.Scalar | None, longest: int, what: str, expected: str) -> str:
    if value is None:
        raise DataError(f"its {what} is null: expected a string")
    if not isinstance(value, pa.BinaryScalar):
        raise DataError(f"its {what} is of the type {value.type}: expected {expected}")
    return decoded(value, longest, what)
