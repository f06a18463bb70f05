"""Single values of Arrow columns: what is wrapped is unwrapped, what is too long is not even decoded."""

from __future__ import annotations

import pyarrow as pa

from chunkcore.errors import DataError

__all__ = ["decoded", "innermost"]

_WRAPPED = (pa.DictionaryScalar, pa.UnionScalar, pa.RunEndEncodedScalar)
_JSON = "arrow.json"  # DuckDB's type of JSON; other extension types may be anything, pickles included


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
