"""Plain JSON values and their digests; foreign text made harmless; how results show themselves in notebooks.

Names, questions and excerpts come from documents that nobody has vetted.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import blake2b
from itertools import islice
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar, overload

from chunkcore.lazy import needed

if TYPE_CHECKING:
    from typing_extensions import Self

JsonObject = dict[str, Any]


def plain(
    value: object,
    prepare: Callable[[Any], object] | None = None,
) -> Any:
    """Dataclasses, mappings, arrays, lists, sets, enums and paths as plain JSON values; NaN and infinity as null.

    `prepare` is called with each value first, the outermost before its items; its result is used instead: a name for a
    chunker, a refusal of NaN.

    Raises TypeError: an object that is none of these, or items within each other a thousand deep (RecursionError).

    >>> plain({"scores": (0.5, math.nan), 3: True, "folder": PurePath("docs")})
    {'scores': [0.5, None], '3': True, 'folder': 'docs'}
    """
    if prepare is not None:
        value = prepare(value)
    value = _opened(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str | int | float | None):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item, prepare) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, prepare) for item in value]
    raise TypeError(f"a {type(value).__name__} is no JSON value")


def _opened(value: Any) -> Any:
    """The value of an enum, the numbers of an array, the text of a path, the fields of a dataclass, a set as a list."""
    if isinstance(value, Enum):
        value = value.value
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, PurePath):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return sorted(value, key=repr) if isinstance(value, set | frozenset) else value


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
    """`2 * size` hexadecimal digits of several texts, which may hold unpaired surrogates: ("ab", "c") and ("a", "bc")
    differ.
    """
    hashed = blake2b(digest_size=size)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8, "little") + data)
    return hashed.hexdigest()


def text_key(text: str, role: str = "") -> bytes:
    """A 20-byte key of a text and its role ("document", "query", or "" for either)."""
    data = text.encode("utf-8", "surrogatepass")
    return blake2b(role.encode("ascii") + b"\0" + data, digest_size=20).digest()


# ---- foreign text, for a terminal, a Markdown table, a CSV cell, a script; the template engine escapes HTML

_SURROGATES = re.compile("[\ud800-\udfff]")
# C0 and C1 controls but tab, line feed and carriage return; and the noncharacters U+FFFE and U+FFFF.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
# Characters that move or hide other text: bidirectional controls, line and paragraph separators, tag characters.
_REORDERING = re.compile(
    "[\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\U000e0000-\U000e007f]"
)
_SPACE = re.compile(r"[ \t\r\n]+")
# Spreadsheets read a cell that begins so as a formula; some fold full-width forms to these.
_SIGN = "[\\s\u200b-\u200f\u2060\ufeff]{0,99}[=+\\-@\uff1d\uff0b\uff0d\uff20]"
# A spreadsheet that splits at semicolons or tabs ignores our quotes: a cell begins after each.
_FORMULA = re.compile(f"^(?=[\t\r\n]|{_SIGN})|(?<=[;\t\r\n])(?={_SIGN})")
# Characters with a meaning inside a line; an underscore between letters has none.
_MARKDOWN = re.compile(r"([\\`*\[\]|~$]|(?<!\w)_|_(?!\w))")


def encodable(text: str) -> str:
    r"""`text` with unpaired surrogates replaced by U+FFFD, for UTF-8 and tokenizers: as many code points.

    >>> encodable("a\ud800").encode()
    b'a\xef\xbf\xbd'
    """
    return _SURROGATES.sub("\ufffd", text)


def terminal_text(text: str) -> str:
    r"""`text` on one line, with terminal controls and reordering characters made visible.

    >>> terminal_text("red \x1b[31m\nand \u202eback")
    'red ␛[31m and \\u202eback'
    """
    return terminal_block(_SPACE.sub(" ", text))


def terminal_block(text: str) -> str:
    """`text` with its white space as it is, but for tabs, and no more control of a terminal than line ends."""
    text = text.replace("\r", " ").expandtabs(4)
    return page_text(_REORDERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def page_text(text: str) -> str:
    r"""`text` as HTML can carry it: unpaired surrogates and control characters replaced, line ends kept.

    >>> page_text("a\x00b \ud800")
    'a␀b �'
    """
    return _CONTROLS.sub(_picture, encodable(text))


def html_text(text: str) -> str:
    """`page_text`, escaped for HTML and its attributes."""
    return html.escape(page_text(text))


def _picture(match: re.Match[str]) -> str:
    """The control pictures of Unicode, U+2400 and up; none exist beyond U+007F."""
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"


def markdown_cell(text: str) -> str:
    r"""`text` as one cell of a Markdown table, safe also where Markdown allows HTML.

    >>> markdown_cell("a|b <img src=x> *c*")
    'a\\|b &lt;img src=x&gt; \\*c\\*'
    """
    return _MARKDOWN.sub(r"\\\1", html.escape(terminal_text(text), quote=False))


def csv_cell(text: str) -> str:
    """`text` with an apostrophe wherever a spreadsheet would read a formula.

    >>> csv_cell("=HYPERLINK(1)"), csv_cell("a = b"), csv_cell("a;=1")
    ("'=HYPERLINK(1)", 'a = b', "a;'=1")
    """
    return _FORMULA.sub("'", page_text(text))


def script_json(value: Any) -> str:
    r"""JSON for a ``<script>`` element: ASCII without ``<``, ``>`` and ``&``. NaN raises ValueError.

    >>> print(script_json({"q": "</script><!--"}))
    {"q":"\u003c/script\u003e\u003c!--"}
    """
    text = json.dumps(
        value,
        allow_nan=False,
        separators=(",", ":"),
    )
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


# ---- results in notebooks

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

    def _repr_html_(self) -> str:
        return str(self)


def html_table(columns: Mapping[str, Sequence[Any]]) -> str:
    """The first rows as an HTML table, escaped."""
    count = max(map(len, columns.values()), default=0)
    head = "".join(f"<th>{html_text(name)}</th>" for name in columns)
    lines = islice(zip(*columns.values(), strict=True), _ROWS)
    body = "".join(map(_html_row, lines))
    more = f"<p>{count - _ROWS:,} more rows</p>" if count > _ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _html_row(values: Iterable[object]) -> str:
    cells = [f"<td>{html_text(_shown(value))}</td>" for value in values]
    return f"<tr>{''.join(cells)}</tr>"


def columns_of(
    names: Sequence[str],
    rows: Iterable[Sequence[Any]],
) -> dict[str, Sequence[Any]]:
    """The columns of some rows.

    >>> columns_of(["a", "b"], [(1, 2), (3, 4)]), columns_of(["a"], [])
    ({'a': [1, 3], 'b': [2, 4]}, {'a': []})
    """
    columns = list(map(list, zip(*rows, strict=True))) or [[] for _ in names]
    return dict(zip(names, columns, strict=True))


def marked(
    text: str,
    spans: Iterable[tuple[int, int, float]],
    title: str = "",
) -> Markup:
    """A text with highlighted ranges: start, end, and how strong, from 0 to 1; disjoint, in order."""
    parts, at, text = [], 0, text[:_MOST]
    for number, (start, end, share) in enumerate(spans):
        # Neighbours have two colours, readable on light and dark pages; the underline serves readers without colour.
        colour = ("240,170,30", "70,150,230")[number % 2]
        style = f"background:rgba({colour},{0.15 + 0.45 * share:.2f});color:inherit;border-bottom:2px solid"
        parts.append(html_text(text[at:start]))
        parts.append(f'<mark style="{style}">{html_text(text[start:end])}</mark>')
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
    if len(text) <= _LONG:
        return repr(text)
    kept = _LONG - 20
    return f"{text[:kept]!r} + {len(text) - kept:,} characters"


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4g}"
    return str(value)
