"""Rows of CSV and TSV texts, their header, and HTML tables and formulas inside Markdown."""

from __future__ import annotations

import csv
import io
import re

import pytest
from chunkcore import Document
from chunkcore.boundaries import table_blocks
from chunkcore.boundaries.markdown import markdown_blocks
from chunkcore.chunkers import get_chunker
from hypothesis import given
from hypothesis import strategies as st

from tests.structures import check_blocks

TEXTS = {
    "inches": 'id,part\n1,7" rod\n2,nut\n3,5" rod\n',
    "open quotation": 'id,said\n1,then "yes\n2,no\n3,and "no\n',
    "quoted line end": 'id,note\n1,7" rod\n2,"on two\nlines"\n3,nut\n',
    "doubled": 'id,n\n1,"the ""best"", here"\n',
    "semicolons": 'id;n\n1;2" hose, red\n2;nut\n',
}
HEAD = "<tr><th>Tea</th><th>Heat of the water</th></tr>"
ROWS = [f"<tr><td>Sort {number}</td><td>{number} degrees and more</td></tr>" for number in range(60, 90)]


@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
def test_rows_are_those_of_pythons_reader(text: str) -> None:
    rows = list(csv.reader(io.StringIO(text), delimiter=";" if ";" in text else ","))
    assert len(table_blocks(text)) == len(rows)


def test_marks_that_are_never_closed_and_those_of_tab_separated_values_are_text() -> None:
    assert len(table_blocks('id,note\n1,"open\n2,nut\n3,rod\n')) == 4
    assert len(table_blocks('id\tnote\n1\t"open\n2\tnut" and\n3\t"two\nlines"\n')) == 4


@given(st.text('a,;"\t\r\n #=', max_size=60))
def test_rows_cover_any_text(text: str) -> None:
    check_blocks(text, table_blocks(text))


def test_separators_in_quotes_do_not_count() -> None:
    rows = {"id,n,m": r'1, "a, C:\",2', "id,m,n": r'1,"a \"b\", c",2', '"kind, of";"price\nin €";"n"': "item;1,5;text"}
    assert all(table_blocks(head + f"\n{row}" * 6)[1].header == (0, len(head)) for head, row in rows.items())


@pytest.mark.parametrize("above", ["sep=;\n", "Teas of May\n\n", "Teas of May;;\n;;\n", "# by hand\n# on Monday\n", ""])
def test_the_header_is_the_first_row_of_the_usual_length(above: str) -> None:
    text = above + "kind;heat;cups\n" + "".join(f"sort {number};{number};2\n" for number in range(50))
    chunks = get_chunker("auto:size=40").chunk(Document("a.csv", text))
    assert len(chunks) > 3
    assert all("kind;heat;cups" in chunk.text for chunk in chunks)


@pytest.mark.parametrize(
    "table",
    [
        "<table>{}{}</table>",
        "<div>\n<table>\n{}\n{}\n</table>\n</div>",
        "<html><body><table><thead>{}</thead><tbody>{}</tbody></table></body></html>",
        "<table>\n{}\n\n{}\n</table>",
    ],
)
def test_an_html_table_in_markdown_repeats_its_header_and_is_cut_between_rows(table: str) -> None:
    text = f"# Teas\n\nOf this year.\n\n{table.format(HEAD, ''.join(ROWS))}\n\n## Cups\n\nThey are blue.\n"
    chunks = [chunk for chunk in get_chunker("auto:size=150").chunk(Document("a.md", text)) if "<td>" in chunk.text]
    assert len(chunks) > 2
    assert all(HEAD in chunk.text and "Cups" not in chunk.text for chunk in chunks)
    assert all(len(re.findall("<tr>", chunk.text)) == len(re.findall("</tr>", chunk.text)) for chunk in chunks)


def test_a_table_without_th_in_markdown_repeats_its_first_row_if_the_next_are_like_it() -> None:
    wide = [row.replace("<tr>", "<tr><td>Tea</td>") for row in ROWS]
    names = [row.replace("td", "th", 2) for row in wide]
    narrow = [re.sub("<td>Sort.*?</td>", "", row) for row in ROWS]
    for rows, is_header in [(ROWS, True), (names, False), (narrow, False), ([wide[0], *ROWS], False)]:
        chunks = get_chunker("markdown:size=150").chunk(Document("a.md", f"Teas.\n\n<table>{''.join(rows)}</table>\n"))
        assert len(chunks) > 2
        assert (rows[0] in chunks[-1].text) == is_header


@pytest.mark.parametrize(
    "formula", ["$$\na\n=\nb\n$$", "$$\na\n-\nb\n$$", "\\[\na\n=\nb\n\\]", "$$\nn\n# \\text{cups}\n$$"]
)
def test_a_formula_holds_no_heading(formula: str) -> None:
    blocks = markdown_blocks(f"# Tea\n\n{formula}\n\nHot.\n\nb\n=\n")
    assert [block.path for block in blocks] == [("Tea",)] * 3 + [("b",)]
    assert markdown_blocks("Price:\n$$ 3\n\nTea\n===\n\nof $$ 4\n")[1].level == 1
    assert [block.level for block in markdown_blocks("\\[\n" * 3 + "a\n\nTea\n===\n")] == [0, 1]
