"""`code`: definitions of nine languages are kept whole, with what belongs to them, at exact code points."""

from __future__ import annotations

import re
from typing import Any

import pytest
from chunkcore.chunkers import Code, get_chunker
from chunkcore.errors import OptionError
from chunkcore.text import Chunk, Document
from hypothesis import given, settings

from tests.promises import check_promises
from tests.structures import marked_text

_LINES = """def f():|    return 1|class A:|class A {|}|;|@d|# c|// c|#include <a>|#if X|#endif|fn f() {|func (t T) F() {
public void f() {|template <class T>|impl A {|\\|if (a) {|else:"""
MARKS = [
    *(f"{line}\n" for line in re.split(r"[|\n]", _LINES)),
    *("{", "}", "(", ")", "/* ", "*/", '"""', "'", '"', "`", "${", "<div>", "\n\n", "\n", "\t", "\r\n", "\r"),
    *("x = 'é😀'\n", "=> ", "lambda: ", "\0", "\x0c"),
]


def chunks(text: str, language: str, size: int, **options: Any) -> list[Chunk]:
    return Code(size=size, language=language, counter="words", **options).chunk(Document("d", text))


def chunk_corpus(text: str, language: str, size: int, **options: Any) -> list[tuple[list[str], str]]:
    return [(chunk.metadata["scope"], chunk.text) for chunk in chunks(text, language, size, **options)]


@pytest.mark.parametrize(
    "options",
    [
        {"size": 6, "language": "python", "counter": "words"},
        {"size": 9, "minimum": 5, "maximum": 25, "language": "cpp", "counter": "characters"},
        {"size": 20, "minimum": 20, "language": "typescript", "maximum": 60},
        {"size": 12, "language": "other"},
    ],
    ids=str,
)
@given(text=marked_text(MARKS))
@settings(max_examples=20)
def test_the_promises_hold_for_text_full_of_marks(options: dict[str, Any], text: str) -> None:
    check_promises(Code(**options), text)


PYTHON = '''"""Tea — 茶."""

import os


# How hot.
HEAT = 90


# Brews "ünïcödé" 🍵 too.
@cached
def brew(leaf):
    return f"茶 {leaf}"


class Tea:
    """A kind."""

    name = "é"

    # The first.
    @property
    def colour(self):
        return self._colour

    async def pour(self):
        if self.cold:
            return None
        return "🍵🍵"
'''


def test_python_definitions_keep_their_comments_and_decorators() -> None:
    found = chunk_corpus(PYTHON, "python", 13)
    tea = "class Tea"
    assert [scope for scope, _ in found] == [[], ["def brew"], [tea], [tea, "def colour"], [tea, "def pour"]]
    texts = [text for _, text in found]
    assert '# Brews "ünïcödé" 🍵 too.\n@cached\ndef brew(leaf):\n    return f"茶 {leaf}"' in texts
    assert "    # The first.\n    @property\n    def colour(self):\n        return self._colour" in texts
    assert texts[-1].startswith("    async def pour(self):\n        if self.cold:\n            return None\n")


def test_a_class_that_is_cut_keeps_its_first_lines_with_its_first_member() -> None:
    text = "class Tea(Drink):\n    def a(self):\n        pass\n\n    def b(self):\n        pass\n"
    assert chunk_corpus(text, "python", 7) == [
        (["class Tea", "def a"], "class Tea(Drink):\n    def a(self):\n        pass"),
        (["class Tea", "def b"], "    def b(self):\n        pass"),
    ]
    assert chunk_corpus(text, "python", 8) == [(["class Tea"], text.rstrip())]
    assert chunk_corpus(text, "python", 3, maximum=8) == [(["class Tea"], text.rstrip())]


def test_small_definitions_share_a_chunk_up_to_the_size() -> None:
    text = "def a():\n    pass\n\n\ndef b():\n    pass\n\n\ndef c():\n    pass\n"
    both = "def a():\n    pass\n\n\ndef b():\n    pass"
    assert chunk_corpus(text, "python", 6) == [([], both), (["def c"], "def c():\n    pass")]


def test_a_comment_that_a_blank_line_parts_is_no_part_of_the_definition() -> None:
    assert chunk_corpus("# One. Two three.", "python", 3) == [([], "# One."), ([], "Two three.")]
    text = "# Licence.\n\n# About a.\ndef a():\n    pass\n"
    assert chunk_corpus(text, "python", 6) == [([], "# Licence."), (["def a"], "# About a.\ndef a():\n    pass")]


_TESTS = [["mod tests", "fn t"], ["mod tests", "fn u"]]
SAMPLES = {
    "javascript": (
        "import a from 'a';\n\n// A.\nexport default class A {\n  x() {\n    return 'é';\n  }\n}\n\n"
        "export const f = async (a) => {\n  return a;\n};\n\nfunction* g() {\n  yield 1;\n}\n",
        [[], ["class A"], ["class A", "method x"], ["function f"], ["function g"]],
    ),
    "typescript": (
        "@Injectable()\nexport abstract class A<T> {\n  x(): void {\n    run('é');\n  }\n}\n\n"
        "interface I {\n  a: string;\n}\n\nnamespace N {\n  export function f() {\n    return 1;\n  }\n}\n",
        [["class A"], ["interface I"], ["namespace N"]],
    ),
    "tsx": ("const View = () => {\n  return <p>é {a}</p>;\n};\n", [["function View"]]),
    "java": (
        "package a;\n\n/** Doc é. */\n@Ann\npublic class A\n{\n  int x;\n\n  A() {\n    x = 1;\n  }\n\n"
        "  @Override\n  public void foo() {\n    x = 2;\n  }\n}\n\nrecord P(int x) {\n}\n",
        [[], ["class A"], ["class A", "constructor A"], ["class A", "method foo"], ["record P"]],
    ),
    "go": (
        "package m\n\n// Foo é.\nfunc (r *T) Foo() int {\n\treturn 1\n}\n\ntype T struct {\n\ta int\n\tb int\n}\n",
        [[], ["func (r *T) Foo"], ["type T"]],
    ),
    "rust": (
        "#[derive(Debug)]\n/// Doc é.\npub struct S {\n    a: i32,\n}\n\nimpl fmt::Display for S {\n"
        "    fn fmt(&self) -> i32 {\n        1\n    }\n}\n\n"
        "mod tests {\n    #[test]\n    fn t() {\n        run();\n    }\n    fn u() {\n        run();\n    }\n}\n",
        [["struct S"], ["impl fmt::Display for S"], ["impl fmt::Display for S", "fn fmt"], *_TESTS],
    ),
    "c": (
        "#include <a.h>\n\n/* Doc é. */\nstatic int *foo(int a)\n{\n    return 0;\n}\n\nstruct S {\n    int a;\n};\n",
        [[], ["function foo"], ["struct S"]],
    ),
    "cpp": (
        "namespace n {\ntemplate <class T>\nclass A : B {\n public:\n  void f() {\n    run();\n  }\n};\n}\n\n"
        "void n::A::g() {\n  run();\n}\n",
        [["namespace n"], ["namespace n", "class A", "function f"], ["function n::A::g"]],
    ),
}


@pytest.mark.parametrize("language", list(SAMPLES))
def test_scopes_are_told_in_every_language(language: str) -> None:
    text, expected = SAMPLES[language]
    found = Code(size=12, language=language, counter="words").chunk(Document("d", text))
    scopes = [chunk.metadata["scope"] for chunk in found]
    assert [scope for number, scope in enumerate(scopes) if not number or scope != scopes[number - 1]] == expected
    assert all(chunk.metadata["language"] == language for chunk in found)
    check_promises(Code(size=12, language=language, counter="words"), text)


@pytest.mark.parametrize("language", list(SAMPLES))
def test_offsets_are_code_points_whatever_stands_before(language: str) -> None:
    text, _ = SAMPLES[language]
    plain = Code(size=8, language=language, counter="words")
    comment = {"python": "#"}.get(language, "//") + " é 漢字 👩‍👩‍👧‍👦 \ud83d x\n\n"
    ascii_comment = comment.encode("ascii", "replace").decode()
    assert len(comment) == len(ascii_comment)
    assert plain.spans(comment + text) == plain.spans(ascii_comment + text)


def test_code_on_one_line_is_cut_between_statements() -> None:
    text = "function f() { return 1; } function g() { return 2; } function h() { return 3; }"
    expected = [f"function {name}() {{ return {number}; }}" for number, name in enumerate("fgh", start=1)]
    assert [text for _, text in chunk_corpus(text, "javascript", 7)] == expected


LINES = [f"word{n} of a text that goes on" for n in range(20)]
TEXTS = {
    "c": "/*\n{} */\nint f(void) {{ return 1; }}\n",
    "cpp": 'auto tea = R"mark(\n{}\n)mark";\n',
    "go": "var tea = `\n{}\n`\n",
    "java": 'class A {{\n    String tea = """\n{}\n        """;\n}}\n',
    "javascript": "let tea = brew(`\n{}\n`);\n",
    "python": 'def brew(leaf):\n    r"""\n{}\n    """\n    return leaf\n',
    "rust": 'fn tea() {{\n    let tea = r#"\n{}\n    "#;\n}}\n',
    "typescript": "/**\n{}\n */\nexport const tea = (leaf: string) => `${{leaf}}`;\n",
}


def is_bare(line: str) -> bool:
    """Whether nothing is there but what opens or closes a string or a comment, or brackets."""
    return line.strip(" \n;)(") in ('"""', "'''", "`", "/*", "/**", "*/", '"#', 'mark"', 'R"mark', 'r"""')


@pytest.mark.parametrize("language", sorted(TEXTS))
@pytest.mark.parametrize("size", [30, 60])
def test_what_opens_and_closes_a_text_stays_with_its_lines(language: str, size: int) -> None:
    text = TEXTS[language].format("\n".join(f"    {line}" for line in LINES))
    found = [chunk.text for chunk in Code(size=size, language=language).chunk(Document("d", text))]
    assert len(found) > 2
    assert all(len(set(LINES) & {line.strip(" */") for line in chunk.splitlines()}) > 0 for chunk in found[:-1])
    assert not [chunk for chunk in found if is_bare(chunk)]
    opened = text[: text.index(LINES[0])].rstrip()
    assert not [chunk for chunk in found if opened.endswith(chunk)]


def test_other_languages_are_cut_at_blank_lines_before_what_is_not_indented() -> None:
    text = "module Tea\n  def a\n\n  end\nend\n\nmodule Coffee\n  def b\n  end\nend\n"
    assert chunk_corpus(text, "ruby", 9) == [
        ([], "module Tea\n  def a\n\n  end\nend"),
        ([], "module Coffee\n  def b\n  end\nend"),
    ]
    smaller = ["module Tea", "  def a\n\n  end\nend", "module Coffee", "  def b\n  end\nend"]
    assert [text for _, text in chunk_corpus(text, "other", 4)] == smaller


RECORDS = {  # texts with records, each of which fits
    "a.json": ('// a "tea\n[/* ] */{{"name": 0, "list": [1, "]"]}}, {} ]', '{{"name": {}, "list": [1, "]"]}}', ", "),
    "b.json": ('{{\n  "teas": [\n{}\n  ]\n}}', '    {{\n      "name": {},\n      "heat": 3\n    }}', ",\n"),
    "a.bib": ("{}", "@book{{tea{},\n  title = {{Of tea. It is hot. It is sweet}},\n}}", "\n\n"),
    "a.f90": ("module tea\n{}end\n", "  ! Pours. Hot.\n  function pour{}()\n    b = a\n  end function\n", "\n"),
    "a.yaml": ("teas:\n{}\n", "- name: {}\n  heat: 3", "\n"),
    "b.yaml": ("{}", "---\nname: {}\n\nlist:\n  - heat: 3", "\n"),
    "a.toml": ("title = 1\n{}\n", "# about\n[[tea]]\nname = {}\n\nheat = 3", "\n"),
    "a.ini": ("{}", "[tea{}]\nheat = 3", "\n"),
    "a.xml": ("<teas><!-- <tea> -->{}</teas>", "<tea a='{}'><heat/>3</tea>", ""),
    "a.kt": ("class Tea {{\n{}}}\n", "    fun pour{}() {{\n        a()\n\n        b()\n    }}\n", "\n"),
    "b.kt": ("class Tea {{\n{}}}\n", "    // Pours\n    @Hot\n    fun pour{}() = a(1, 2)\n", ""),
    "a.cs": ("class Tea\n{{\n{}}}\n", "    void Pour{}()\n    {{\n        A();\n\n        B();\n    }}\n", "\n"),
    "a.cpp": ("class Tea {{\n{}}};\n", " public:\n  void pour{}(int b) {{\n    a();\n  }}\n", "\n"),
    "a.rb": ("class Tea\n{}end\n", "  def pour{}\n    a\n\n    b\n  end\n", "\n"),
}


@pytest.mark.parametrize("name", RECORDS)
def test_records_and_methods_without_a_grammar_are_whole_where_they_fit(name: str) -> None:
    around, record, between = RECORDS[name]
    records = [record.format(number) for number in range(100, 120)]
    text = around.format(between.join(records))
    chunks = [chunk.text for chunk in get_chunker("auto:size=60").chunk(Document(name, text))]
    assert len(chunks) > 3
    assert [record for record in records if not any(record.strip() in chunk for chunk in chunks)] == []


def test_the_language_is_that_of_the_metadata_else_of_the_name() -> None:
    def language(name: str, **metadata: str) -> str:
        (chunk,) = Code().chunk(Document(name, "x", metadata))
        return str(chunk.metadata["language"])

    assert language("src/Tea.JAVA") == "java"
    assert language("17", file_path="a/b.rs") == "rust"
    assert language("a.py", language="Go") == "go"
    assert language("a.py", language="en") == "python"
    assert language("a.unknown") == language("makefile") == language("mk") == "other"


def test_a_text_unlike_its_language_is_cut_at_blank_lines_and_says_so() -> None:
    found = chunks("<!--" * 5000, "python", 1)
    assert {chunk.metadata["fallback"] for chunk in found} == {"blank lines"}
    assert "fallback" not in chunks(PYTHON, "python", 9)[0].metadata


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(OptionError, match=r"language is auto or one of .*python.*; got 'pyhton'"):
        Code(language="pyhton")
