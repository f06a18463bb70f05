"""The README's picture of the report, which says of what page it is.

chunkcore compare --output demo-report
python -m integration_tests.report_picture demo-report/report.html
"""

from __future__ import annotations

import base64
import struct
import sys
import zlib
from hashlib import blake2b
from pathlib import Path

from chunkcore.report.html import assets
from integration_tests.browser import browser

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "report.png"
PAGE = ("page.html.jinja", "macros.html.jinja", "page.css")
SIZE = 1440, 1100
_KEY = b"Page\0"


def page_digest() -> str:
    """Of what the page looks like."""
    return blake2b(assets(*PAGE).encode(), digest_size=16).hexdigest()


def digest_of(picture: bytes) -> str:
    """The digest of the page that a picture is of."""
    start = picture.index(b"tEXt" + _KEY) + 4 + len(_KEY)
    return picture[start : start + 32].decode()


def take(report: Path) -> bytes:
    """A picture of the top of a report."""
    with browser() as tab:
        tab.size(*SIZE)
        tab.open(report)
        clip = {"x": 0, "y": 0, "width": SIZE[0], "height": SIZE[1], "scale": 1}
        picture = base64.b64decode(tab.call("Page.captureScreenshot", format="png", clip=clip)["data"])
    text = b"tEXt" + _KEY + page_digest().encode()
    chunk = struct.pack(">I", len(text) - 4) + text + struct.pack(">I", zlib.crc32(text))
    return picture[:-12] + chunk + picture[-12:]  # before the last chunk, which is empty


if __name__ == "__main__":
    PICTURE.write_bytes(take(Path(sys.argv[1]).absolute()))
