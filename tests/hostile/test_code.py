"""Source code that is made to keep a parser: it is cut at blank lines, says so, and takes next to no memory."""

from __future__ import annotations

import subprocess
import sys

import pytest
from chunkcore.boundaries.code import nests_deeper
from chunkcore.chunkers import get_chunker
from chunkcore.text import Document

pytest.importorskip("tree_sitter", reason="the extra structure is not installed")

# Of each line the parser would take hundreds of megabytes or seconds: gigabytes and minutes for ten times as much.
HARD = [("java", "f<"), ("java", "f<\n"), ("java", "a=>"), ("c", "a=>"), ("c", "a?."), ("cpp", "<!x "), ("cpp", "f<a,")]
HARD += [("typescript", "f<a,b<"), ("java", "template<"), ("typescript", "A<B<C>, "), ("rust", "a<b ")]
# Of these memory grows with the square of the text, or a stack until the process dies.
HARD += [
    ("java", "([{"),
    ("java", "( /*)*/"),
    ("cpp", "*;("),
    ("rust", "[::;,;"),
    ("rust", "->return "),
    ("go", "(']'["),
]
HARD += [("python", "[(']'"), ("typescript", "{`}`[")]


@pytest.mark.parametrize(("language", "unit"), HARD)
def test_an_expression_that_goes_on_and_on_is_cut_without_its_grammar(language: str, unit: str) -> None:
    text = f"int a;\n\nint b;\n\n{unit * 5000}"
    chunker = get_chunker("code", language=language, size=100, counter="characters", maximum=None)
    chunks = chunker.chunk(Document("d", text))
    assert {chunk.metadata.get("fallback") for chunk in chunks} == {"blank lines"}
    assert "".join("".join(chunk.text for chunk in chunks).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("cpp", 'char *a = "((({{{[[[";\n' * 700),
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
    assert nests_deeper(b"*/ /* " + b"(" * 5 + b"/* " * 100_000, "c", 4)
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


STACK = """
import resource
resource.setrlimit(resource.RLIMIT_STACK, (512 << 10, resource.getrlimit(resource.RLIMIT_STACK)[1]))
from chunkcore.chunkers import get_chunker
print(len(get_chunker("code", language="java").split_text("([{" * 30_000)) > 1)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a process's stack is limited as Linux does")
def test_half_a_megabyte_of_stack_is_enough() -> None:
    ran = subprocess.run([sys.executable, "-c", STACK], capture_output=True, text=True, timeout=300)
    assert (ran.returncode, ran.stdout) == (0, "True\n")


PROGRAM = """
import resource
from chunkcore.chunkers import get_chunker
get_chunker("code", language="c").split_text("int a;")
def peak():  # of this process alone: ru_maxrss begins at what the process that started it has had
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
before = peak()
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
get_chunker("code", language="c").split_text("a=>" * 20_000)
get_chunker("code", language="cpp").split_text("f<" * 20_000 + ";")
get_chunker("code", language="rust").split_text("->return " * 2_000)
get_chunker("code", language="cpp").split_text("*;(" * 10_000)
print((peak() - before) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts memory as Linux does")
def test_it_takes_no_memory_to_speak_of() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300, check=True)
    assert int(ran.stdout) < 100
