"""Parsers have limits: text that goes over one is cut at blank lines, and says so."""

from __future__ import annotations

import pytest
from chunkcore.boundaries import code
from chunkcore.boundaries.code import ParserLimits, code_blocks, nests_deeper
from chunkcore.chunkers import get_chunker
from chunkcore.text import Document

pytest.importorskip("tree_sitter", reason="the extra structure is not installed")

LOW = {
    "operators": ParserLimits(operators=1),
    "levels": ParserLimits(levels=1),
    "reports": ParserLimits(reports=1, reports_a_byte=0),
    "reads": ParserLimits(reports=2, reports_a_byte=1e9, reads_a_block=0),
    "seconds": ParserLimits(seconds=0, seconds_a_byte=0),
}
CODE = "int total(int a, int b) { int c = f((a)) < b; return c; }\n" * 200


@pytest.mark.parametrize("limit", LOW)
def test_a_parser_that_takes_more_than_its_limit_is_stopped(limit: str) -> None:
    """Harmless code and a low limit: each limit alone makes the parser give up."""
    assert code_blocks(CODE, "c") is not None
    assert code_blocks(CODE, "c", LOW[limit]) is None


def test_code_that_its_parser_gives_up_is_cut_at_blank_lines_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "LIMITS", LOW["levels"])
    chunks = get_chunker("code", language="java", size=100, counter="characters").chunk(Document("d", CODE))
    assert {chunk.metadata.get("fallback") for chunk in chunks} == {"blank lines"}
    assert "".join("".join(chunk.text for chunk in chunks).split()) == "".join(CODE.split())


def test_brackets_are_counted_by_kind() -> None:
    assert nests_deeper(b")" * 9 + b"(" * 5, 4), "what closes nothing takes nothing away"
    assert not nests_deeper(b"([{" * 4 + b"}])" * 9, 4)


@pytest.mark.parametrize(
    "text",
    ["int f() { return a < b; }\n" * 600, "#include <a>\n" * 600, "// " + "=" * 4000 + "\nint a;\n", "x = 1;\n" * 600],
)
def test_long_files_of_short_statements_keep_their_grammar(text: str) -> None:
    chunks = get_chunker("code", language="cpp").chunk(Document("d", text))
    assert not any("fallback" in chunk.metadata for chunk in chunks)
