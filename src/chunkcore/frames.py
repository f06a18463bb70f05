"""How results show themselves: tidy columns for pandas, tables and highlighted text in notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar, overload

from chunkcore.escaping import html_text
from chunkcore.lazy import needed

if TYPE_CHECKING:
    from typing_extensions import Self

_Item = TypeVar("_Item")
_ROWS = 20  # of a table in a notebook
_MOST = 200_000  # characters of a text in a notebook
_LONG = 80  # characters of a text in a repr


class Frame:
    """A result that is a table: `tidy` gives its columns, from which the rest is made."""

    __slots__ = ()

    def tidy(self) -> dict[str, Sequence[Any]]:
        """The columns by name, of equal length: one value a row and column, missing ones NaN or ""."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` of the tidy columns. Raises `MissingExtraError` without pandas."""
        return needed("pandas", "frames", "make a data frame").DataFrame(self.tidy())

    def _repr_html_(self) -> str:
        return html_table(self.tidy())


class FrameList(list[_Item], Frame):
    """A list that is a table; so is a slice of it."""

    __slots__ = ()

    @overload
    def __getitem__(self, place: SupportsIndex, /) -> _Item: ...
    @overload
    def __getitem__(self, place: slice, /) -> Self: ...
    def __getitem__(self, place: SupportsIndex | slice, /) -> _Item | Self:
        items: Any = super().__getitem__(place)
        return type(self)(items) if isinstance(place, slice) else items


class Markup(str):
    """HTML that shows itself in a notebook. Its texts are escaped."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Markup({len(self):,} characters)"

    @classmethod
    def of(cls, text: str) -> Markup:
        """A paragraph of plain text."""
        return cls(f"<p>{html_text(text)}</p>")

    def _repr_html_(self) -> str:
        return str(self)


def html_table(columns: Mapping[str, Sequence[Any]], rows: int = _ROWS) -> str:
    """The first rows as an HTML table, escaped."""
    count = max(map(len, columns.values()), default=0)
    head = "".join(f"<th>{html_text(name)}</th>" for name in columns)
    lines = islice(zip(*columns.values(), strict=True), rows)
    body = "".join(
        f"<tr>{''.join(f'<td>{html_text(_shown(value))}</td>' for value in line)}</tr>"
        for line in lines
    )
    more = f"<p>{count - rows:,} more rows</p>" if count > rows else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def columns_of(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """The columns of some rows.

    >>> columns_of(["a", "b"], [(1, 2), (3, 4)]), columns_of(["a"], [])
    ({'a': [1, 3], 'b': [2, 4]}, {'a': []})
    """
    columns = list(map(list, zip(*rows, strict=True))) or [[] for _ in names]
    return dict(zip(names, columns, strict=True))


def marked(text: str, spans: Iterable[tuple[int, int, float]], title: str = "") -> Markup:
    """A text with highlighted ranges: start, end, and how strong, from 0 to 1; disjoint, in order."""
    parts, at, text = [], 0, text[:_MOST]
    for number, (start, end, share) in enumerate(spans):
        # Neighbours have two colours, readable on light and dark pages; the underline serves readers without colour.
        colour = ("240,170,30", "70,150,230")[number % 2]
        style = f"background:rgba({colour},{0.15 + 0.45 * share:.2f});color:inherit;border-bottom:2px solid"
        parts.append(
            f'{html_text(text[at:start])}<mark style="{style}">{html_text(text[start:end])}</mark>'
        )
        at = end
    head = f"<p><b>{html_text(title)}</b></p>" if title else ""
    style = "white-space:pre-wrap;overflow-wrap:anywhere;max-height:30em;overflow-y:auto;text-align:left"
    return Markup(
        f'{head}<div style="{style}" dir="auto">{"".join(parts)}{html_text(text[at:])}</div>'
    )


def shortened(text: str) -> str:
    """The repr of a text, cut if it is long.

    >>> shortened("A fox."), shortened("x" * 14_542)[-22:]
    ("'A fox.'", "x' + 14,482 characters")
    """
    return (
        repr(text)
        if len(text) <= _LONG
        else f"{text[: _LONG - 20]!r} + {len(text) - _LONG + 20:,} characters"
    )


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4g}"
    return str(value)
