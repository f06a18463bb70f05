"""The README's picture of the report.

chunkcore compare --output demo-report
python -m integration_tests.report_picture demo-report/report.html
"""

from __future__ import annotations

import base64
import sys
from pathlib import Path

from integration_tests.browser import browser

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "report.png"
SIZE = 1440, 1100


def take(report: Path) -> bytes:
    """A picture of the top of a report."""
    with browser() as tab:
        tab.size(*SIZE)
        tab.open(report)
        clip = {"x": 0, "y": 0, "width": SIZE[0], "height": SIZE[1], "scale": 1}
        return base64.b64decode(tab.call("Page.captureScreenshot", format="png", clip=clip)["data"])


if __name__ == "__main__":
    PICTURE.write_bytes(take(Path(sys.argv[1]).absolute()))
