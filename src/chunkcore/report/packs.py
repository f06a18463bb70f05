"""Data that the page carries packed, and unpacks when somebody looks at it: JSON, deflated, in base64."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from typing import Any

__all__ = ["Pack", "packed"]


@dataclass(frozen=True, slots=True)
class Pack:
    """One element of the page.

    Attributes:
        name: the element's id.
        text: base64, which means nothing in HTML.
    """

    name: str
    text: str


def packed(name: str, value: Any) -> Pack:
    """`value` as a pack that the page's ``unpack`` reads. Text in it went through `page_text` already.

    NaN is no JSON and raises ValueError.

    >>> pack = packed("numbers", [1, 2, 3])
    >>> zlib.decompress(base64.b64decode(pack.text))
    b'[1,2,3]'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Pack(name, base64.b64encode(zlib.compress(text.encode("utf-8"), 6)).decode("ascii"))
