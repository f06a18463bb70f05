"""Our own patterns and finders on texts that are made for them: nothing grows with the square of the text."""

from __future__ import annotations

import subprocess
import sys

import pytest

# It takes two or three seconds of the processor, and may take a minute: hours, if anything in it grew with the square.
PROGRAM = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
from chunkcore.boundaries.formats import format_of
from chunkcore.boundaries.markdown import markdown_blocks
from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.chunkers.llm_semantic import _split_after
from chunkcore.report.text import csv_cell, markdown_cell, page_text, terminal_text

units = " |\\n|\\t|- |#|> |`|[|](|<|</|<a |<!--|&|*|_|=|. |a. A|\\"|ก |。|\\r|\\x85|{|--".split("|")
units += ["+++\\n", "---\\n", ";\\n", "\\ufeff", "=\\u200b", "|", "| ", "|-", "\\\\"]
for unit in units:
    text = unit * (60_000 // len(unit))
    for _ in range(20):
        format_of(text)
    for shown in (csv_cell, markdown_cell, page_text, terminal_text):
        shown(text)
    sentence_ranges(text)
    markdown_blocks(text[:20_000])
for tail in (" ", ":", "[", "[ ", "\\n:", ",", "1,", "split_after", "split_after:", "9"):
    try:
        _split_after("split_after:" + tail * 100_000)
    except ValueError:
        pass
print("done")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a process's time is limited as Unix does")
def test_what_reads_foreign_text_grows_with_it() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=900)
    assert ran.stdout == "done\n", ran.stderr


@pytest.mark.parametrize("unit", ["a ", "the fox ", "x", "fox. ", "aaab "])
def test_texts_that_repeat_are_placed_soon(unit: str) -> None:
    from chunkcore.document import Document
    from chunkcore.evaluation.alignment import Aligner

    document = Document("d", unit * (20_000 // len(unit)))
    found = Aligner([document]).locate((unit * 200)[1:-1] + "?")
    assert all(0 <= span.start < span.end <= len(document.text) for span in found.spans)
