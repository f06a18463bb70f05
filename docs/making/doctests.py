"""A griffe extension, by which mkdocstrings shows docstrings as they are meant: see `docs.making.site`."""

from __future__ import annotations

from typing import Any

from griffe import Extension, Object

from docs.making.site import docstring_markdown

__all__ = ["Docstrings"]


class Docstrings(Extension):  # type: ignore[misc,unused-ignore]
    """Every docstring as Markdown."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = docstring_markdown(obj.docstring.value)
