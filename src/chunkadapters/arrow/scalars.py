"""Single values of Arrow columns: what is wrapped is unwrapped, what is too long is not even decoded."""

from __future__ import annotations

import pyarrow as pa

from chunkcore.errors import DataError

__all__ = ["decoded", "in_microseconds", "innermost", "opaque_type"]

_WRAPPED = (pa.DictionaryScalar, pa.UnionScalar, pa.RunEndEncodedScalar)
_JSON = "arrow.json"  # DuckDB's type of JSON; other extension types may be anything, pickles included
_PLAIN = {_JSON, "arrow.bool8", "arrow.uuid"}


def innermost(scalar: pa.Scalar) -> pa.Scalar | None:
    """The value itself, out of dictionaries, unions and runs; None where it is null.

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
    """The first extension type inside of a type whose values may be anything; None where there is none.

    Whoever asks a struct for its Python value has such an extension's own code run, on bytes of a file.

    >>> opaque_type(pa.struct([("years", pa.list_(pa.int16()))]))
    """
    if isinstance(kind, pa.BaseExtensionType):
        return None if kind.extension_name in _PLAIN else kind
    inner = [getattr(kind, name, None) for name in ("key_type", "item_type", "value_type")]
    inner += [kind.field(number).type for number in range(kind.num_fields)] if _has_names(kind) else []
    return next((found for each in inner if each is not None and (found := opaque_type(each))), None)


def _has_names(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind) or pa.types.is_union(kind))


def in_microseconds(kind: pa.DataType) -> pa.DataType:
    """The type with times to the microsecond: what is finer is a Python value only where pandas is installed.

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
    """A string, or binary that is UTF-8, as text.

    Raises:
        DataError: it is not UTF-8, or over `longest` characters.
    """
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
