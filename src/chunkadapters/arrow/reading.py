"""From a record batch to documents; a row that is none says why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from chunkadapters.arrow.metadata import read_metadata
from chunkadapters.arrow.scalars import decoded, innermost
from chunkcore.document import Document
from chunkcore.errors import DataError

__all__ = ["METADATA", "Columns", "Reading"]

METADATA = "metadata"  # a column that is called otherwise was named, and so is to be there
_LONGEST_ID = 100_000


class Reading(NamedTuple):
    """What a row says.

    Attributes:
        id: the document's, where it could be read.
        document: None where the row is none.
        problem: why it is none.
    """

    id: str | None
    document: Document | None
    problem: DataError | None = None


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Where a batch has what.

    Attributes:
        id: the column of strings (or integers) that name documents.
        text: that of their texts.
        metadata: that of what is known of them. It may be absent if it is called "metadata".
        longest: how many characters a text may have.
    """

    id: str
    text: str
    metadata: str
    longest: int

    def read(self, batch: pa.RecordBatch) -> Iterator[Reading]:
        """The batch's rows, in order.

        Raises:
            DataError: a column is missing, or there are two of its name.
        """
        if not batch.schema.names and not batch.num_rows:  # an empty block, as engines make them
            return
        ids, texts = self._column(batch, self.id), self._column(batch, self.text)
        absent = self.metadata == METADATA and METADATA not in batch.schema.names
        metadata = None if absent else self._column(batch, self.metadata)
        for row in range(batch.num_rows):
            yield self._reading(ids[row], texts[row], None if metadata is None else metadata[row])

    def _column(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        places = batch.schema.get_all_field_indices(name)
        if len(places) != 1:
            raise DataError(
                f"expected one column {name!r} with the documents' "
                f"{'ids' if name == self.id else 'texts' if name == self.text else 'metadata'}, got "
                f"{len(places) or 'none'} among {', '.join(map(repr, batch.schema.names)) or 'no columns'}: "
                "rename yours, or say its name by id_column, text_column or metadata_column"
            )
        return batch.column(places[0])

    def _reading(self, name: pa.Scalar, text: pa.Scalar, metadata: pa.Scalar | None) -> Reading:
        found: str | None = None
        try:
            found = _id(name)
            known: dict[str, Any] = {} if metadata is None else read_metadata(metadata)
            return Reading(found, Document(found, _text(text, self.longest), known))
        except Exception as error:  # noqa: BLE001 - whatever a row holds, the other rows are read
            problem = error if isinstance(error, DataError) else DataError(f"{type(error).__name__}: {error}")
            return Reading(found, None, problem)


def _id(scalar: pa.Scalar) -> str:
    value = innermost(scalar)
    if value is None:
        raise DataError("its id is null: expected a string")
    if pa.types.is_integer(value.type):
        return str(value.as_py())
    if not isinstance(value, pa.BinaryScalar):
        raise DataError(f"its id is of the type {value.type}: expected a string or an integer")
    found = decoded(value, _LONGEST_ID, "id")
    if not found:
        raise DataError("its id is empty: expected a name")
    return found


def _text(scalar: pa.Scalar, longest: int) -> str:
    value = innermost(scalar)
    if value is None:
        raise DataError("its text is null: expected a string")
    if not isinstance(value, pa.BinaryScalar):
        raise DataError(f"its text is of the type {value.type}: expected a string, or binary that is UTF-8")
    return decoded(value, longest, "text")
