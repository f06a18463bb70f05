"""Foreign text made harmless for a terminal, a Markdown table, a CSV cell and a script block.

Names, questions and excerpts come from documents that nobody has vetted. The template engine escapes HTML itself.
"""

from __future__ import annotations

import html
import json
import re
from typing import Any

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
    if not text.isascii():
        try:
            text.encode()  # far faster than to look for surrogates
        except UnicodeEncodeError:
            return _SURROGATES.sub("\ufffd", text)
    return text


def terminal_text(text: str) -> str:
    r"""`text` on one line, with terminal controls and reordering characters made visible.

    >>> terminal_text("red \x1b[31m\nand \u202eback")
    'red ␛[31m and \\u202eback'
    """
    text = encodable(_SPACE.sub(" ", text))
    text = _REORDERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return _CONTROLS.sub(_picture, text)


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
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
