"""The pictures of the report, in README and in docs/guides/report.md, which say of what page they are.

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

from integration_tests.browser import Browser, browser

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
PAGE = ("page.html.jinja", "macros.html.jinja", "page.css")
PICTURES = {"report.png": PAGE, "report-viewer.png": (*PAGE, "viewer.css", "viewer.js")}
SIZE = 1440, 1100
_KEY = b"Page\0"
# The fourth question, passages, and hybrid search beside them.
_CHOICE = """for (const [name, value] of [["question", 3], ["system", 1], ["other", 5]]) {
  const list = document.getElementById(`v-${name}`);
  list.value = value;
  list.dispatchEvent(new Event("change"));
}"""


def page_digest(name: str) -> str:
    """Of what the page looks like, of which a picture is."""
    return blake2b(assets(*PICTURES[name]).encode(), digest_size=16).hexdigest()


def digest_of(picture: bytes) -> str:
    """The digest of the page that a picture is of."""
    start = picture.index(b"tEXt" + _KEY) + 4 + len(_KEY)
    return picture[start : start + 32].decode()


def take(tab: Browser, name: str) -> bytes:
    """A picture of an opened report: its top, or its viewer."""
    if name == "report-viewer.png":
        tab.ask("document.getElementById('viewer').scrollIntoView()")
        tab.wait("document.querySelector('#v-rows li')")
        tab.ask(_CHOICE)
        tab.wait("document.querySelectorAll('#v-rows .retrieved').length")
        tab.ask("document.getElementById('viewer').scrollIntoView()")
    clip = {"x": 0, "y": tab.ask("window.scrollY"), "width": SIZE[0], "height": SIZE[1], "scale": 1}
    picture = base64.b64decode(tab.call("Page.captureScreenshot", format="png", clip=clip)["data"])
    text = b"tEXt" + _KEY + page_digest(name).encode()
    chunk = struct.pack(">I", len(text) - 4) + text + struct.pack(">I", zlib.crc32(text))
    return picture[:-12] + chunk + picture[-12:]  # before the last chunk, which is empty


if __name__ == "__main__":
    with browser() as tab:
        tab.size(*SIZE)
        tab.open(Path(sys.argv[1]).absolute())
        for name in PICTURES:
            (IMAGES / name).write_bytes(take(tab, name))
