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


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("cpp", 'char *a = "((({{{[[[";\n' * 7),
        ("c", "/* ((( */ int a; // {{{\nchar b = '(';\n" * 700),
        ("rust", "fn f<'a>(x: &'a str) -> &'a str { x }\n" * 700),
        ("python", '# (((\na = \'(\' + "[" + """{\n{"""\n' * 700),
        ("typescript", "const a = `(${b}` + '(' + f([1, {}]); // it's (\n" * 700),
        ("go", 'var a = `(` + "[" // {\n' * 700),
    ],
)
def test_brackets_in_comments_and_strings_nest_nothing(language: str, text: str) -> None:
    assert not nests_deeper(text.encode(), language, 1000)


def test_a_comment_that_never_ends_hides_nothing() -> None:
    assert nests_deeper(b")" * 9 + b"(" * 5, "c", 4), "what closes nothing takes nothing away"
    assert nests_deeper(b"*/ /* " + b"(" * 5 + b"/* " * 9, "c", 4)
    assert nests_deeper(b"`" + b"(" * 5 + b"`", "java", 4), "which quotes nothing by backticks"
    assert not nests_deeper(b"`" + b"(" * 5 + b"`", "go", 4)
    for hidden in (b'auto a = R"x(")x";', b"'", b"`"):
        assert nests_deeper(hidden + b"*;(" * 13, "cpp", 4), "whatever hides them: three times as many are too many"
    docstrings = b'"""**/x"""\n' + b'"""an open ("""\n' * 5
    assert not nests_deeper(docstrings, "python", 4)


@pytest.mark.parametrize(
    "text",
    ["int f() { return a < b; }\n" * 600, "#include <a>\n" * 600, "// " + "=" * 4000 + "\nint a;\n", "x = 1;\n" * 600],
)
def test_long_files_of_short_statements_keep_their_grammar(text: str) -> None:
    chunks = get_chunker("code", language="cpp").chunk(Document("d", text))
    assert not any("fallback" in chunk.metadata for chunk in chunks)
