"""`markdown`: blocks where CommonMark has them, kept whole while they fit, under their headings."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
from chunkcore.boundaries.markdown import markdown_blocks
from chunkcore.chunkers import Markdown
from chunkcore.text import Chunk, Document
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.conftest import shared
from tests.promises import check_promises
from tests.structures import marked_text

MARKS = [
    *("# ", "## ", "###### x\n", "\n===\n", "\n---\n", "- ", "  - ", "1. ", "10) ", "> ", ">> ", "```\n", "~~~py\n"),
    *("    code\n", "\t", "|", "| a | b |\n|---|:-:|\n", "| 1 | 2 |\n", "<div>\n", "<!-- ", "-->", "***\n", "---\n"),
    *("+++\n", "[a]: b\n", "\n\n", "\n", "\r\n", "\r", "\x0c", "\u2028", "\x85", "\0", "\\|", "key: value\n"),
]


def words(text: str, size: int, **options: Any) -> list[str]:
    return Markdown(size=size, counter="words", **options).split_text(text)


def chunks(text: str, size: int, **options: Any) -> list[Chunk]:
    return Markdown(size=size, counter="words", **options).chunk(Document("d.md", text))


def headings(text: str, size: int = 100, **options: Any) -> list[list[str]]:
    return [chunk.metadata["headings"] for chunk in chunks(text, size, **options)]


def blocks(text: str) -> list[str]:
    return [text[block.start : block.end] for block in markdown_blocks(text)]


def test_blocks_are_those_of_commonmark() -> None:
    parts = [
        "---\ntitle: Tea\n---",
        "# Tea",
        "A paragraph\nof two lines.",
        "Green\n=====",
        "- one\n- two\n\n  still two",
        "1. first",
        "> quoted\nlazily",
        "```py\n# no heading\n\n```",
        "    indented\n\n    code",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "***",
        "<div>\n# no heading\n</div>",
    ]
    assert blocks("\n\n".join(parts) + "\n") == parts


def test_a_byte_order_mark_hides_no_heading_and_a_line_in_bold_leads() -> None:
    assert [block.path for block in markdown_blocks("\ufeff# Tea\n\nHot.\n")] == [("Tea",), ("Tea",)]
    assert blocks("\ufeff") == ["\ufeff"]
    assert words("One two.\n\n**How?**\n\nSo and so.\n", 4) == ["One two.", "**How?**\n\nSo and so."]


def test_front_matter_must_look_like_it() -> None:
    assert blocks("---\n\nA text.\n\n---\n\nMore.") == ["---", "A text.", "---", "More."]
    assert blocks("---\na: 1\n\n# b\n---\nText.") == ["---\na: 1\n\n# b\n---", "Text."]
    assert blocks("+++\na = 1\n+++\nText.") == ["+++\na = 1\n+++", "Text."]
    assert blocks("\ufeff---\r\na: 1\r\n---\r\nText.")[1:] == ["Text."]
    assert blocks("---\na: never closed") == ["---", "a: never closed"]
    assert blocks("Text.\n\n---\na: 1\n---")[0] == "Text."


@given(marked_text([mark for mark in MARKS if "\r" not in mark]), st.sampled_from(["\r\n", "\r"]))
def test_line_ends_of_any_kind_give_the_same_blocks(text: str, end: str) -> None:
    text = text.replace("\r", "")
    expected = [part.replace("\n", end) for part in blocks(text)]
    assert blocks(text.replace("\n", end)) == expected


OPTIONS: list[dict[str, Any]] = [
    {"size": 6, "counter": "words"},
    {"size": 9, "minimum": 5, "maximum": 25, "counter": "characters"},
    {"size": 20, "minimum": 20, "heading_level": 0},
    {"size": 20, "maximum": 60},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@example(text="| a | b |\n|---|:-:|\ntea# # #     code\n|")
@given(text=marked_text(MARKS))
@settings(max_examples=40)
def test_the_promises_hold_for_text_full_of_marks(options: dict[str, Any], text: str) -> None:
    check_promises(Markdown(**options), text)


SECTIONS = "# A\n\nOne.\n\n### B\n\nTwo.\n\n## C\n\nThree."
QUOTED = "# A\n\n> # Q\n>\n> quoted\n\n- # L\n\nText."
LIST = "- one two\n  - three four\n  - five six\n- seven eight"
FENCE = "```\na b c\n\n# d e f\n```"
ROW = "| name | unit |\n|---|---|\n| a | one two three |"
CUTS: dict[str, list[tuple[str, dict[str, Any], list[str]]]] = {
    "a heading begins a chunk down to the level": [
        (SECTIONS, {"size": 99}, ["# A\n\nOne.", "### B\n\nTwo.", "## C\n\nThree."]),
        (SECTIONS, {"size": 99, "heading_level": 2}, ["# A\n\nOne.\n\n### B\n\nTwo.", "## C\n\nThree."]),
        (SECTIONS, {"size": 99, "heading_level": 0}, [SECTIONS]),
        ("# A\n\n## B\n\nText.", {"size": 99}, ["# A\n\n## B\n\nText."]),
        (QUOTED, {"size": 99}, [QUOTED]),
    ],
    "a heading stays with what follows, if a sentence of it fits, or moves on with it": [
        ("# The title\n\nOne two three. Four five.", {"size": 7}, ["# The title\n\nOne two three.", "Four five."]),
        ("# The title\n\nOne two three four five.", {"size": 5}, ["# The title", "One two three four five."]),
        ("One two.\n\n# Title\n\nThree.", {"size": 4, "heading_level": 0}, ["One two.", "# Title\n\nThree."]),
    ],
    "code is whole while it fits the maximum, and keeps its indent": [
        (f"Before it.\n\n{FENCE}\n\nAfter it.", {"size": 6, "maximum": 9}, ["Before it.", FENCE, "After it."]),
        (f"Before it.\n\n{FENCE}", {"size": 6}, ["Before it.", "```\na b c", "# d e f\n```"]),
        ("Text:\n\n    if a:\n        b\n", {"size": 3}, ["Text:", "    if a:\n        b"]),
        ("    One two. Three four five.", {"size": 4}, ["One two.", "Three four five."]),
    ],
    "lists are cut between items, then inside them": [
        (LIST, {"size": 9}, ["- one two\n  - three four\n  - five six", "- seven eight"]),
        (LIST, {"size": 6}, ["- one two", "  - three four\n  - five six", "- seven eight"]),
        (LIST, {"size": 5}, ["- one two", "  - three four", "  - five six", "- seven eight"]),
    ],
    "a paragraph is cut between sentences, then words": [
        ("One two. Three four. Five six seven.", {"size": 4}, ["One two. Three four.", "Five six seven."]),
        ("One two three four five. Six.", {"size": 4, "maximum": 5}, ["One two three four five.", "Six."]),
        ("One two three four five. Six.", {"size": 4}, ["One two three four", "five. Six."]),
    ],
    "a row that does not fit beside the header goes without": [
        (ROW, {"size": 8}, ["| name | unit |\n|---|---|", "| a | one two three |"]),
        (ROW, {"size": 4}, ["| name | unit", "|\n|---|---|", "| a | one", "two three |"]),
    ],
    "what opens a part stays with it": [
        ("One two.\n\n::: {.a}\n\nThree four.\n\n:::", {"size": 4}, ["One two.", "::: {.a}\n\nThree four.", ":::"]),
        ("One two.\n\n<Tabs>\n\nThree four.", {"size": 3}, ["One two.", "<Tabs>\n\nThree four."]),
        ("One.\n\n??? tip\n\n    Three four.", {"size": 4}, ["One.", "??? tip\n\n    Three four."]),
        ("A.\n\n<details>\n<summary>B</summary>\n\nC.", {"size": 3}, ["A.", "<details>\n<summary>B</summary>\n\nC."]),
        ("One.\n\n1. A\n\nTwo.\n\n2. B?\n\nThree.", {"size": 3}, ["One.", "1. A\n\nTwo.", "2. B?\n\nThree."]),
        ("1. A\n2. B\n3. C\n\n# D\n\nE.", {"size": 4}, ["1. A\n2. B", "3. C", "# D\n\nE."]),
        ("A b.\n\n<Tab/>\n\nC.\n\n1. Go.\n\nD e.", {"size": 3}, ["A b.\n\n<Tab/>", "C.\n\n1. Go.", "D e."]),
    ],
    "a small chunk takes parts of the next block, or joins across the weaker cut": [
        ("One.\n\nTwo three four. Five.", {"size": 4}, ["One.", "Two three four. Five."]),
        ("One.\n\nTwo three. Four five six.", {"size": 5, "minimum": 3}, ["One.\n\nTwo three.", "Four five six."]),
        ("# A\n\nOne two three. Four.\n\n# B\n\nFive.", {"size": 5, "minimum": 3, "maximum": 6},
         ["# A\n\nOne two three. Four.", "# B\n\nFive."]),
        ("# A\n\nOne two three.\n\n# B\n\nFour.\n\n## C\n\nFive six seven.", {"size": 5, "minimum": 4, "maximum": 8},
         ["# A\n\nOne two three.", "# B\n\nFour.\n\n## C\n\nFive six seven."]),
    ],
}  # fmt: skip


@pytest.mark.parametrize("rule", CUTS)
def test_chunks_by_hand(rule: str) -> None:
    for text, options, expected in CUTS[rule]:
        assert words(text, **options) == expected


@pytest.mark.parametrize(
    ("text", "options", "paths"),
    [
        (f"Intro.\n\n{SECTIONS}\n\n# D #\n\nFour.", {}, [[], ["A"], ["A", "B"], ["A", "C"], ["D"]]),
        (SECTIONS, {"heading_level": 0}, [["A"]]),
        (r"# A&&## B&&\begin{align*}&a&=&b&\end{align*}&&Text.".replace("&", "\n"), {}, [["A", "B"]]),
        (QUOTED, {}, [["A"]]),
        ("# A\n\n## B\n\nOne.\n\n## C\n\nTwo.", {"size": 20, "minimum": 20}, [["A"]]),  # what they share
        ("<h1 x>A<br><i>b</i></h1>\n\nI.\n\n## 2**8 [[c]](_(e)) {#c .d}\n\nTwo.", {}, [["A b"], ["A b", "2**8 [c]"]]),
        ("- <h1>A</h1>\n\n<h1>B</h1> C\n\nD\n\n# L<T><br><u>y</u><Z z=1></Z><z z=1>\n\nB", {}, [[], ["L<T> y<z z=1>"]]),
        ("## `<br>` **o** <a>[y](z)</a>\\<b\\> <!-- --> ##\n\nA\n\nT\nl\n==\n\nB", {}, [["`<br>` o y<b>"], ["T l"]]),
    ],
)
def test_a_chunk_names_the_headings_above_it(text: str, options: dict[str, Any], paths: list[list[str]]) -> None:
    assert headings(text, **options) == paths


TABLE = "| name | unit |\n|---|---|\n| a | 1 |\n| b | 2 |\n| c | 3 |"


def test_a_table_that_is_split_repeats_its_header_as_a_span() -> None:
    head = "| name | unit |\n|---|---|"
    found = chunks(f"# T\n\n{TABLE}\n\nAfter.", 14)
    rows = f"# T\n\n{head}\n| a | 1 |", f"{head}\n| b | 2 |", f"{head}\n| c | 3 |\n\nAfter."
    assert tuple(chunk.text for chunk in found) == rows
    begin = 5
    assert [(span.start, span.end) for span in found[1].spans] == [
        (begin, begin + len(head)),
        (begin + TABLE.index("| b"), begin + TABLE.index("| b") + 9),
    ]
    assert len(found[0].spans) == 1


def test_chunks_stay_in_order_after_a_row_that_goes_without_header() -> None:
    table = "| name | unit |\n|---|---|\n| a | one two three |\n| b | 2 |"
    found = chunks(table, 8)
    assert [chunk.start for chunk in found] == sorted(chunk.start for chunk in found)
    assert found[-1].text == "| b | 2 |"


def test_a_table_in_a_list_is_cut_between_its_rows() -> None:
    text = "- item\n\n  | a | b |\n  |---|---|\n  | 1 | 2 |\n  | 3 | 4 |\n"
    assert words(text, 12)[1:] == ["  | a | b |\n  |---|---|\n  | 1 | 2 |", "  | a | b |\n  |---|---|\n  | 3 | 4 |"]


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 30)), min_size=1, max_size=12), st.integers(0, 20))
def test_fences_and_rows_are_never_cut_while_they_fit(shape: list[tuple[int, int]], minimum: int) -> None:
    parts = []
    for number, (kind, length) in enumerate(shape):
        body = [f"w{number}x{place}" for place in range(length)]
        if kind == 1:
            parts.append("```\n" + "\n".join(body) + "\n```")
        elif kind == 2:
            parts.append("| h | i |\n|---|---|\n" + "\n".join(f"| {word} | is |" for word in body))
        else:
            parts.append(f"## h{number}\n\n" + " ".join(body))
    found = words("\n\n".join(parts), 20, minimum=minimum, maximum=32)
    for part in parts:
        if part.startswith("```"):
            assert sum(part in chunk for chunk in found) == 1
        elif part.startswith("|"):
            for row in part.split("\n")[2:]:
                assert any(row in chunk.split("\n") for chunk in found)
        else:
            title, _, text = part.partition("\n\n")
            assert any(f"{title}\n\n{text.split()[0]}" in chunk for chunk in found)


@pytest.mark.parametrize("name", ["state_of_the_union.md", "wikitexts.md"])
def test_real_documents_are_cut_at_their_structure(name: str) -> None:
    text = shared(f"data/chroma/corpora/{name}").read_text(encoding="utf-8")[:100_000]
    chunker = Markdown(size=200)
    check_promises(chunker, text)
    found = chunker.chunk(Document("d", text))
    titles = re.findall(r"^#{1,6} (.*)$", text, flags=re.MULTILINE)
    assert {title for chunk in found for title in chunk.metadata["headings"]} <= {title.strip() for title in titles}
    assert all(left.end <= right.start for left, right in pairwise(found) if len(right.spans) == 1)
