"""Shared by all pages: assets, content security policy, packed data, template engine."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from itertools import groupby
from typing import Any

from chunkcore.escaping import page_text
from chunkcore.lazy import needed
from chunkcore.report.tables import Column


@dataclass(frozen=True, slots=True)
class Pack:
    """A data element of the page: its id, and base64 text, which is inert in HTML."""

    name: str
    text: str


def packed(name: str, value: Any) -> Pack:
    """`value` as a pack for the page's ``unpack``. Its text must have passed `page_text`; NaN raises ValueError.

    >>> pack = packed("numbers", [1, 2, 3])
    >>> zlib.decompress(base64.b64decode(pack.text))
    b'[1,2,3]'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Pack(name, base64.b64encode(zlib.compress(text.encode("utf-8"), 6)).decode("ascii"))


# Widths in pixels of a plot's two drawings; the page shows the one that fits.
WIDTHS = (("wide", 860), ("narrow", 326))


def both_widths(draw: Callable[[int], str]) -> dict[str, Any]:
    """A plot's two drawings, by the name of their width."""
    return {kind: markup(draw(width)) for kind, width in WIDTHS}


def policy(style: str, script: str = "") -> str:
    """The page's content security policy: no connection; only this style and script, by SHA-256."""

    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")

    scripts = f"script-src 'sha256-{digest(script)}'; " if script else ""
    return f"default-src 'none'; style-src 'sha256-{digest(style)}'; {scripts}base-uri 'none'; form-action 'none'"


def assets(*names: str) -> str:
    """Files of this folder, concatenated."""
    return "\n".join(files("chunkcore.report").joinpath(name).read_text("utf-8") for name in names)


def require_jinja2() -> None:
    """Call before expensive work that ends in a page. Raises `MissingExtraError` if jinja2 is not installed."""
    needed("jinja2", "report", "write the HTML report")


def template(name: str) -> Any:
    """The template of this name. Raises `MissingExtraError` if jinja2 is not installed."""
    require_jinja2()
    return _environment().get_template(name)


@cache
def _environment() -> Any:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    def headings(columns: Sequence[Column[Any]]) -> list[tuple[str, int]]:
        """Groups of neighbouring columns, each with the number it spans."""
        return [(group, len(list(members))) for group, members in groupby(columns, key=lambda column: column.group)]

    def breakable(name: str) -> Any:
        """A name with line breaks allowed after colons and commas."""
        return markup("<wbr>".join(escape(part) for part in re.split(r"(?<=[:,])", page_text(name))))

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Every value that enters the page is escaped, except our own markup.
        finalize=lambda value: page_text(value) if type(value) is str else value,
        loader=FunctionLoader(assets),
    )
    environment.filters["headings"] = headings
    environment.filters["breakable"] = breakable
    return environment


def markup(text: str) -> Any:
    """Mark text as HTML that is escaped already."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704
