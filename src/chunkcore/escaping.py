"""Foreign text made harmless for a terminal, a Markdown table, a CSV cell and a script block; plain JSON values.

Names, questions and excerpts come from documents that nobody has vetted. The template engine escapes HTML itself.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

__all__ = ["csv_cell", "markdown_cell", "page_text", "plain_json", "script_json", "terminal_text"]

_SURROGATES = re.compile("[\ud800-\udfff]")
# C0 and C1 controls but tab, line feed and carriage return; and the noncharacters U+FFFE and U+FFFF.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
# Marks, embeddings, overrides and isolates of the bidirectional algorithm, the line and paragraph separators, the
# invisible tag characters: whatever moves or hides other text.
_REORDERING = re.compile("[\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\U000e0000-\U000e007f]")
_SPACE = re.compile(r"[ \t\r\n]+")
# A spreadsheet takes a cell that begins so for a formula. Full-width forms are folded to these by some of them.
_SIGN = "[\\s\u200b-\u200f\u2060\ufeff]{0,99}[=+\\-@\uff1d\uff0b\uff0d\uff20]"
# Where it parts cells by semicolons or tabs, our quotes mean nothing to it, and a cell begins after each of them.
_FORMULA = re.compile(f"^(?=[\t\r\n]|{_SIGN})|(?<=[;\t\r\n])(?={_SIGN})")
# Only what means something inside a line; an underscore between letters does not.
_MARKDOWN = re.compile(r"([\\`*\[\]|~$]|(?<!\w)_|_(?!\w))")


def terminal_text(text: str) -> str:
    r"""`text` on one line, with everything that could steer a terminal or reorder the line made visible.

    >>> terminal_text("red \x1b[31m\nand \u202eback")
    'red ␛[31m and \\u202eback'
    """
    text = _SURROGATES.sub("\ufffd", _SPACE.sub(" ", text))
    text = _REORDERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return _CONTROLS.sub(_picture, text)


def page_text(text: str) -> str:
    r"""`text` as HTML can carry it: unpaired surrogates and control characters replaced, line ends kept.

    >>> page_text("a\x00b \ud800")
    'a␀b �'
    """
    return _CONTROLS.sub(_picture, _SURROGATES.sub("\ufffd", text))


def _picture(match: re.Match[str]) -> str:
    """The control pictures of Unicode, U+2400 and up; none exist beyond U+007F."""
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"


def markdown_cell(text: str) -> str:
    r"""`text` as one cell of a Markdown table, which is also safe where Markdown passes HTML through.

    >>> markdown_cell("a|b <img src=x> *c*")
    'a\\|b &lt;img src=x&gt; \\*c\\*'
    """
    return _MARKDOWN.sub(r"\\\1", html.escape(terminal_text(text), quote=False))


def csv_cell(text: str) -> str:
    """`text` with an apostrophe wherever a spreadsheet would take what follows for a formula.

    >>> csv_cell("=HYPERLINK(1)"), csv_cell("a = b"), csv_cell("a;=1")
    ("'=HYPERLINK(1)", 'a = b', "a;'=1")
    """
    return _FORMULA.sub("'", page_text(text))


def plain_json(value: Any) -> Any:
    """Dataclasses, mappings, arrays and lists as plain JSON values; what is not finite as null.

    >>> plain_json({"scores": (0.5, math.nan), 3: True})
    {'scores': [0.5, None], '3': True}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain_json(each) for key, each in value.items()}
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain_json(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def script_json(value: Any) -> str:
    r"""JSON that can stand inside a ``<script>`` element: no ``<``, ``>``, ``&`` and nothing outside ASCII.

    NaN is no JSON and raises ValueError.

    >>> print(script_json({"q": "</script><!--"}))
    {"q":"\u003c/script\u003e\u003c!--"}
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
