"""`html`: the blocks of a page as browsers read it, as exact ranges of the source."""

from __future__ import annotations

import html as entities
import json
import re
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any
from unicodedata import normalize
from unittest.mock import patch

import pytest
from chunkadapters.configuration import chunks_of as chunks_per_document
from chunkcore import (
    Benchmark,
    DataError,
    Evidence,
    Query,
    chunk_corpus,
    get_retriever,
    load_benchmark,
    load_documents,
    run_retriever,
    score,
)
from chunkcore.boundaries.html import html_blocks, parse_html
from chunkcore.chunkers import Html, get_chunker
from chunkcore.evaluation.benchmarks.loading import EvidenceFinder
from chunkcore.questions.label import LabelledQuestions
from chunkcore.reading import read_file
from chunkcore.reading.visible import from_source, in_source, lines_of, source_mark, visible_text
from chunkcore.retrieval import lexicon
from chunkcore.retrieval.lexicon import without_tags
from chunkcore.text import Chunk, Document, Mark, Span, offsets_within, text_of_spans
from hypothesis import given, settings

from tests.promises import check_promises, check_spans, chunks_of
from tests.structures import marked_text
from tests.test_chunker_promises import HARD_TEXTS

_TAGS = """
    <p> </p> <div> </div> <h1> </h1> <h2> </h3> <b> </b> </a> <ul> <li> </ul> <br> <br/> <table> <tr> <td> <th>
    <thead> </thead> </table> <caption> <pre> </pre> <script> </script> <style> <!-- --> <![CDATA[ ]]> <?x > <html>
    <body> </body> <title> </title> <textarea> &amp; &#60;p&gt; & < </ " ' = <svg> <template> <select> <option>
"""
MARKS = [*_TAGS.split(), "<a href='x>y'>", "<!doctype html>", "\r\n", "\r", "\x00", "\x0c", '<p a="\'">']


def words(page: str, size: int, **options: Any) -> list[str]:
    return Html(size=size, counter="words", **options).split_text(page)


def chunks(page: str, size: int, html: str = "source", **options: Any) -> list[Chunk]:
    return Html(size=size, counter="words", **options).chunk(Document("d.html", page, {"html": html}))


def seen(page: str, size: int) -> list[str]:
    return [chunk.text for chunk in chunks(page, size, "visible")]


def headings(page: str, size: int = 100, **options: Any) -> list[list[str]]:
    return [chunk.metadata["headings"] for chunk in chunks(page, size, **options)]


def test_spans_are_of_the_source_with_its_markup_and_entities() -> None:
    page = "<p class=a>Fish &amp;\r\n <b>chips</b></p>\r\n<p>Salt"
    assert words(page, 4) == ["<p class=a>Fish &amp;\r\n <b>chips</b></p>", "<p>Salt"]


@pytest.mark.parametrize(
    "options",
    [
        {"size": 6, "counter": "words"},
        {"size": 9, "minimum": 5, "maximum": 25, "counter": "characters"},
        {"size": 20, "minimum": 20, "heading_level": 0, "maximum": 60},
    ],
    ids=str,
)
@given(text=marked_text(MARKS))
@settings(max_examples=40)
def test_the_promises_hold_for_text_full_of_tags(options: dict[str, Any], text: str) -> None:
    check_promises(Html(**options), text)


@given(text=marked_text(MARKS))
@settings(max_examples=40)
def test_text_without_markup_has_exact_spans_and_keeps_the_maximum(text: str) -> None:
    chunker = Html(size=6, maximum=9, counter="words")
    found = chunks_of(chunker, text, "d.html")
    check_spans(chunker, text, found, "d.html")
    assert all(chunk.token_count <= 9 for chunk in found)


@pytest.mark.parametrize("text", list(HARD_TEXTS.values()), ids=list(HARD_TEXTS))
def test_hard_texts_between_tags_lose_nothing(text: str) -> None:
    page = f"<h1>{entities.escape(text)}</h1><p>{entities.escape(text)}<p>end"
    check_promises(Html(size=30, maximum=40), page)
    found = [chunk.text for chunk in chunks_of(Html(size=30, maximum=40), page, "d.html")]
    visible = f"{entities.escape(text)} {entities.escape(text)} end"
    assert "".join(" ".join(found).split()) == "".join(visible.split())


PAGE = """<!doctype html>
<html><head><title>Tea</title><style>p {color: red}</style></head>
<body><nav><a href="/">Home</a></nav>
<main><section><h1>All <i>about</i> tea</h1><p>Two kinds.</p>
<div><h2>Green</h2>Steamed.<p>From Japan.</div></section>
<section><h1>Coffee</h1><p>One kind.</section></main>
<script>if (a < b) { run("<p>") }</script></body></html>"""


def test_headings_open_chunks_wherever_they_stand() -> None:
    found = chunks(PAGE, 30)
    headings = [chunk.metadata["headings"] for chunk in found]
    assert headings == [[], ["All about tea"], ["All about tea", "Green"], ["Coffee"]]
    assert found[1].text == "<main><section><h1>All <i>about</i> tea</h1><p>Two kinds.</p>"
    assert found[2].text == "<div><h2>Green</h2>Steamed.<p>From Japan.</div></section>"


@pytest.mark.parametrize(
    "page", ["<div><section><a>{}</a>{}</section></div>", "<section><div><i>{}</i></div>{}</section>"]
)
def test_a_heading_inside_a_link_leads_what_follows_its_section(page: str) -> None:
    title = "<h1>C<b>#</b><br>D<a>#</a><i hidden>o</h1>"
    assert headings(page.format(title, "<p>Hot."), 2, html="visible")[-1] == ["C# D"]


def test_chunks_of_the_visible_text_tell_their_headings() -> None:
    page = "<h1>Tea</h1><p>Two kinds.</p><h2>Green</h2><p>Steam <b>it</b>.</p>"
    with patch("chunkcore.boundaries.html.parse_html", wraps=parse_html) as parse:
        assert headings(page, 5, html="visible") == [["Tea"], ["Tea", "Green"]]
    parse.assert_called_once()


def test_only_headings_down_to_the_level_open_chunks() -> None:
    page = "<h1>A</h1>a<h2>B</h2>b<h3>C</h3>c"
    assert words(page, 9, heading_level=2) == ["<h1>A</h1>a", "<h2>B</h2>b<h3>C</h3>c"]
    assert headings(page, heading_level=1) == [["A"]]


def test_the_text_alone_leaves_markup_scripts_and_comments_out() -> None:
    page = PAGE.replace("Two", "<!-- not this -->Two &lt;b&gt;")
    expected = ["All about tea\nTwo &lt;b&gt; kinds.", "Green\nSteamed.\nFrom Japan.", "Coffee\nOne kind."]
    assert seen(page, 30) == expected
    (chunk,) = chunks("<p>a <b>bold</b> step", 9, "visible")
    assert (chunk.text, chunk.spans) == ("a bold step", (Span(3, 4), Span(8, 12), Span(17, 21)))


def test_tags_that_the_standard_ignores_are_no_text() -> None:
    assert seen("<summary>0</summary>one</x>two<td>three</div> 1 < 2 <p/>", 9) == ["0\none two three\n1 < 2"]


def test_tags_inside_text_areas_are_text() -> None:
    assert seen("<title>a <b> c</title><textarea><p></textarea>", 9) == ["<p>"]


def test_unclosed_paragraphs_items_and_cells_are_blocks() -> None:
    expected = ["<p>one two", "<p>three four", "<ul><li>five six", "<li>seven eight</ul>"]
    assert words("".join(expected), 2) == expected


TABLE = (
    "<table><caption>All</caption><thead><tr><th>a</th> <th>b</th></tr></thead>"
    "<tr><td>1</td> <td>2</td></tr><tr><td>3</td> <td>4</td></tr></table>"
)


def test_a_table_that_is_split_repeats_its_header_as_a_span() -> None:
    head = "<thead><tr><th>a</th> <th>b</th></tr></thead>"
    assert words(TABLE, 3, maximum=9) == [TABLE]
    first = f"<table><caption>All</caption>{head}<tr><td>1</td> <td>2</td></tr>"
    found = Html(size=len(first), counter="characters").chunk(Document("d", TABLE))
    assert [chunk.text for chunk in found] == [first, f"{head}\n<tr><td>3</td> <td>4</td></tr></table>"]
    assert found[1].spans[0].slice(TABLE) == head
    assert seen(TABLE, 4) == ["All\na b", "a b\n1 2", "a b\n3 4"]


def test_rows_of_nothing_but_th_are_a_header() -> None:
    page = "<table><tr><th>a <th>b <tr><td>1 <td>2 <tr><td>3 <td>4 </table>"
    assert seen(page, 4) == ["a b\n1 2", "a b\n3 4"]


@pytest.mark.parametrize("cells", ["<tr><td>{}<td>{}", "<tr><td><p>{}</p></td><td>{}</td></tr>"])
def test_the_first_row_of_a_table_without_th_is_its_header_if_the_next_are_like_it(cells) -> None:
    rows = [cells.format(*pair) for pair in ("ab", "12", "34")]
    assert [text.split() for text in seen(f"<table>{''.join(rows)}</table>", 4)] == [list("ab12"), list("ab34")]
    others = [row.replace("<td>", "<th>", 1) for row in rows], [rows[0], "<tr><td>1<td>2<td>9", rows[2]]
    for table in others:
        assert " ".join(seen(f"<table>{''.join(table)}</table>", 5)).split().count("a") == 1


def test_a_table_without_header_is_cut_between_rows_then_cells() -> None:
    page = "<table><tr><td>1 one</td><td>2 two</td></tr><tr><td>3 three</td></tr></table>"
    assert seen(page, 4) == ["1 one 2 two", "3 three"]
    assert seen(page, 2) == ["1 one", "2 two", "3 three"]


def test_what_stands_in_a_table_by_mistake_is_cut_with_it() -> None:
    page = "<table>astray<tr><td>one</table><p>two"
    blocks = html_blocks(page)
    assert [page[block.start : block.end] for block in blocks] == ["<table>astray<tr><td>one</table>", "<p>two"]
    page = "<p>before<table>astray<tr><td>1 one<tr><td>2 two</table>after"
    for text in (page, "<table><td>"):
        check_promises(Html(size=2, counter="words"), text)
    assert "".join(words(page, 3)).replace(" ", "") == page.replace(" ", "")


def test_preformatted_text_is_whole_while_it_fits() -> None:
    page = "<p>before</p><pre>\na b\n\n  c d</pre>"
    assert words(page, 2, maximum=5) == ["<p>before</p>", "<pre>\na b\n\n  c d</pre>"]
    assert words(page, 3) == ["<p>before</p>", "<pre>\na b", "  c d</pre>"]
    (chunk,) = chunks("<pre><b>if </b>a:\n<i>  </i><i>b</i> <i>c</i>\n<i>d</i></pre>e", 9, "visible")
    assert (chunk.text, offsets_within(chunk.text, chunk.spans)) == ("if a:\n  b c\nd\ne", [0, 3, 6, 8, 10, 12, 14])


def test_text_over_the_size_is_cut_at_line_breaks_then_sentences() -> None:
    assert words("<p>One two three<br>four five six</p>", 4) == ["<p>One two three<br>", "four five six</p>"]
    assert words("<p>One two. Three four. Five.</p>", 4) == ["<p>One two. Three four.", "Five.</p>"]


def test_parts_of_a_term_and_its_description_stay_together() -> None:
    assert seen("<dl><dt>tea<dd>one two<dt>coffee<dd>three four</dl>", 3) == ["tea\none two", "coffee\nthree four"]


@pytest.mark.parametrize("text", ["&#①", "<p>&#①;</p>", "&#x1①2; tea", "&#٣;"])
def test_numbers_of_characters_in_other_digits_are_text(text: str) -> None:
    """The parser raised. Found by fuzzing."""
    assert "".join(chunk.text for chunk in Html(size=100, counter="characters").chunk(Document("d", text))) == text


@pytest.mark.parametrize("page", ["<p>a{}b", "<pre>a{}b</pre>"])
def test_a_run_of_spaces_is_read_once(page: str) -> None:
    begun = process_time()
    for space in (" ", "\xa0"):
        assert visible_text(page.format(30_000 * space)).strip("`\n")[-1] == "b"
    assert process_time() - begun < 1


@pytest.mark.parametrize("unit", ["<font color={}><p>x", "<p><font color={}>x", "<b a={}><div>x", "<table><i a={}>x"])
def test_nested_formatting_makes_linearly_many_nodes(unit: str) -> None:
    def nodes(count: int) -> int:
        waiting, number = [parse_html("".join(unit.format(n) for n in range(count)))], 0
        while waiting:
            node = waiting.pop()
            number += 1
            waiting.extend(getattr(node, "children", None) or ())
        return number

    assert nodes(200) < 2.2 * nodes(100)


def test_what_a_page_hides_is_no_word_and_entities_are_what_they_mean() -> None:
    page = "<style>p{}</style><nav>Home</nav><p>T&eacute; &amp; water<script>bad()</script><!-- no --><nav>open"
    seen = without_tags(Document("a.html", page))
    assert (len(seen), seen.split()) == (len(page), ["Té", "&", "water", "open"])
    assert page.index("water") == seen.index("water")
    pages = ["<nav>Home</nav>İstanbul", "<NAV>a<nav>b</Nav >İstanbul", "<nav>" * 400 + "İstanbul</nav x>"]
    assert [without_tags(Document("a.html", page)).split() for page in pages] == [["İstanbul"]] * 3


@pytest.mark.parametrize(
    ("page", "seen"),
    [
        ("<h2 hidden>no</h2>Tea", "Tea"),
        ("<dialog>no</dialog>Tea<dialog open>hot</dialog>", "Tea hot"),
        ("<p xmlns='http://www.w3.org/1999/xhtml'><script src='x'/>Tea<br/><b hidden=''/>hot", "Tea hot"),
        ("a<div style='color: red; DISPLAY : none'><div>no</div>no</div>b", "a b"),
        ("a<p style='visibility:hidden'>no</p>b<p class=hidden>c<p role=tabpanel hidden>d</p>", "a b c d"),
        ("<ruby>茶<rp>(</rp><rt>cha</rt><rp>)</rp></ruby>", "茶 cha"),
        ("<!-- <p hidden> -->a<input hidden>b<script>'<p hidden>'</script>c", "a b c"),
    ],
)
def test_hidden_elements_are_not_seen(page: str, seen: str) -> None:
    assert without_tags(Document("a.html", page)).split() == seen.split()
    (chunk,) = chunks(page, 9, "visible")
    assert ("".join(chunk.text.split()), chunk.metadata.get("headings", [])) == ("".join(seen.split()), [])
    assert "".join(visible_text(page).split()) == "".join(seen.split())


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("H<sub>2</sub>O", ["h2o", "h", "2", "o"]),
        ("tea<!-- -->pot", ["teapot", "tea", "pot"]),
        ("Wert&shy;papier", ["wertpapier", "wert", "papier"]),
        ("caf&eacute;s", ["cafés", "café", "s"]),
        ("<b>Tea</b> <i>pot</i>", ["tea", "pot"]),
        ("tea<br>pot<p>hot", ["tea", "pot", "hot"]),
        ("<a>Home</a><a href=x>News</a>", ["home", "news"]),
    ],
)
def test_tags_inside_a_word_do_not_part_it(page: str, found: list[str]) -> None:
    seen = without_tags(Document("a.html", page))
    assert (len(seen), lexicon.words(seen)) == (len(page), found)


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.md", "Hot tea**pot**s."), ("a.md", "Hot tea<!-- one -->pots."), ("a.html", "<p>Hot tea<!-- a > b -->pots.")],
)
def test_a_word_that_marks_part_is_found_whole(name: str, text: str) -> None:
    corpus = chunk_corpus([Document(name, text), Document("b.txt", "Cold.")], "sentence")
    assert [hit.document_id for hit in get_retriever("bm25").index(corpus).retrieve("teapots", 2)] == [name]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<ol type=i start=4><li>black<li>4.5 green</ol>", "- iv. black\n- v. 4.5 green"),
        ("<ol type=A><li>black</ol><ol type=1><li>red</ol>", "- A. black\n\n1. red"),
        ("<ul type=i><li>4.5<li><input type=checkbox disabled checked>a<li><input>b", "- 4.5\n- [x]a\n- b"),
        ("<ol start=0><li>4.5 red<li value=7>blue<li><li>white</ol>", "0. 4.5 red\n7. blue\n9. white"),
        ("<ol reversed><li>red<ol type=a><li value=3>hot</ol><li value=-1>blue</ol>", "2. red\n   - c. hot\n-1. blue"),
    ],
)
def test_items_have_the_letters_and_numbers_that_a_browser_shows(page: str, text: str) -> None:
    assert visible_text(page) == text


def test_what_a_picture_shows_is_a_word_of_its_own() -> None:
    page = "<p>A<img alt=cup>of<img>tea <img alt=pot>."
    assert visible_text(page) == "A cup oftea pot."
    document = Document("a", visible_text(page), marks=source_mark(page, visible_text(page)))
    assert in_source(document, [Span(2, 5)])[0].slice(page) == "<img alt=cup>"


PAGES = {
    "inline tags": ("<p>Tea is <em>hot</em>, H<sub>2</sub>O.</p>", "Tea is hot, H2O."),
    "entities": ("<p>Fish &amp; chips,\n   if 3 &lt; 4.</p>", "Fish & chips, if 3 < 4."),
    "blocks": ("<h1>Tea</h1><ul><li>black<li>green</ul>", "# Tea\n\n- black\n- green"),
    "raised": ("10<sup>6</sup> m² at 6 m<sup>-2</sup>, 2<sup>nd</sup>", "10⁶ m² at 6 m⁻², 2nd"),
    "struck": ("Price <del>100</del> <s>95</s> 90, 95", "Price ~~100~~ ~~95~~ 90, 95"),
    "not shown": ("<nav>Home</nav><p hidden>no</p><script>x</script><p>Tea", "Tea"),
    "a bar": ("<table><tr><th>Tea<th>Heat<tr><td>a|b<td>&#124;x", "| Tea | Heat |\n| --- | --- |\n| a\\|b | \\|x |"),
    "a table": ("<table><tr><th>Tea<th>Heat<tr><td>oolong<td>90", "| Tea | Heat |\n| --- | --- |\n| oolong | 90 |"),
    "blocks in cells": (
        "<table><tr><td><h3>Tea</h3><td>a|b<tr><td><ul><li>hot<li>iced</ul><td>90</table>",
        "| Tea | a\\|b |\n| --- | --- |\n| - hot - iced | 90 |",
    ),
    "columns of a layout": ("<table><tr><td><h3>Tea</h3><td><ul><li>hot</ul></table>", "### Tea\n\n- hot"),
    "parts of a table": (
        "<table><thead><tr><th>tea<th>cups</thead><tr><th colspan=2>hot<tr><td>black<td>3<tbody><tr><td>sum<td>3",
        "| tea | cups |\n| --- | --- |\n| hot | |\n| black | 3 |\n| sum | 3 |",
    ),
    "blocks of other names": ("<aside>Tea</aside><select><option>S<option>M", "Tea\n\nS\n\nM"),
    "blocks by style": ("<b style='display: block'>Tea</b><b style='display:block'>hot</b>", "Tea\n\nhot"),
    "XHTML": ("<div xmlns='http://www.w3.org/1999/xhtml'><script/>T<i epub:type='pagebreak'/>ea</div>", "Tea"),
    "labels": ("<p>Of<svg><title>hot</title><text>tea</text></svg>now", "Ofhot tea now"),
    "blank lines": ("<p>Tea&nbsp;<p>&nbsp;<p># hot<br>--<br>It is.", "Tea\n\n\\# hot\n\n--\nIt is."),
    "shown to none": (
        "<dialog>no</dialog><video>no</video><dialog open>Tea</dialog><math><mi>x</mi><annotation>no</annotation>"
        "</math><span class='katex-html base'>x</span>",
        "Tea\n\nx",
    ),
    "formulas": ("<math><mfrac><mi>a</mi><mn>2</mn></mfrac>=<msup><mi>c</mi><mn>3</mn></msup><msqrt>x", "a/2=c³√x"),
    "notes of a book": ("Tea<a epub:type=noteref>12</a><sup><a epub:type=noteref>3</a></sup>", "Tea¹²³"),
    "books": ("Tea<b role=doc-pagebreak>9</b> is<aside hidden epub:type=footnote>hot", "Tea is\n\nhot"),
    "what is for a mouse": (
        "<h2 class=anchor-link><a>+</a><a class=anchor-link>#</a></h2>It steeps.<h3><a id=a></a></h3>"
        "<h3>Hot<a href=#hot>\u200b</a><span class='mw-editsection'>[edit]</span></h3>"
        "<table><tr><td class='linenos gl'><pre>1</pre>"
        "<td class='code'><pre class='lineno py'>if a:<div><div> b</div></div><ol><li>c</ol></pre></table>",
        "## +\n\nIt steeps.\n\n### Hot\n\n```\nif a:\n b\nc\n```",
    ),
    "quotes": ("<blockquote>Tea<br><br><div><br></div><div>is</div><blockquote>hot", "> Tea\n>\n> is\n>\n> > hot"),
    "Outlook's list": ("<p><![if !supportLists]>1. <![endif]>Pour<?xml:namespace x /></p>", "1. Pour"),
}


def page_of(folder: Path, body: str, **options: Any) -> tuple[str, Document]:
    page = f"<!doctype html><html><head><title>T &amp; T</title></head><body>{body}</body></html>"
    (folder / "a.html").write_text(page, encoding="utf-8")
    return page, read_file(folder / "a.html", **options).document


@pytest.mark.parametrize(("body", "seen"), PAGES.values(), ids=PAGES)
def test_a_page_is_read_as_a_reader_sees_it_and_each_word_has_its_place_in_the_file(tmp_path, body, seen) -> None:
    page, document = page_of(tmp_path, body)
    assert (document.text, document.metadata["title"]) == (seen, "T & T")
    for word in re.finditer(r"\w+", seen):
        (place,) = in_source(document, [Span(*word.span())])
        assert normalize("NFKC", word[0]) in normalize("NFKC", re.sub("<[^>]*>", "", place.slice(page)))
        assert from_source(document, place).slice(seen).find(word[0]) >= 0
    assert page_of(tmp_path, body, html="source")[1] == Document("a.html", page, {"html": "source"})


def test_a_mark_of_that_name_of_somebody_else_moves_no_place() -> None:
    marks = (Mark("source", Span(0, 3), {"url": "x"}),)
    document = Document("a", "Tea is hot.", marks=marks)
    assert in_source(document, [Span(4, 6)]) == [from_source(document, Span(4, 6))] == [Span(4, 6)]
    assert lines_of(document, [Span(4, 6)]) == [1, 1]


PIECES = ("x", None, {"0": 1}, [["a"]], [[0, 0, 1]], [[0, 10**30, 1, 1]], [[0, 0, 1, 1], [1]])


@pytest.mark.parametrize(
    "data", [*({"pieces": wrong, "lines": [0]} for wrong in PIECES), {"pieces": [[0] * 4], "lines": 5}]
)
def test_places_that_a_strangers_file_states_wrongly_are_refused(data: dict[str, object], tmp_path: Path) -> None:
    row = {"id": "a", "text": "Tea.", "marks": [{"kind": "source", "start": 0, "end": 3, "data": data}]}
    (tmp_path / "documents.jsonl").write_text(json.dumps(row))
    with pytest.raises(DataError, match="line 1: the mark source of 'a' has no pieces and lines"):
        load_documents(tmp_path)


def test_tables_in_tables_take_no_cube_of_their_depth() -> None:
    before = process_time()
    assert visible_text("<table><tr><td>" * 300 + "Tea.") == "Tea."
    assert process_time() - before < 10


def test_evidence_in_a_page_is_found_by_its_place_in_the_file_by_what_was_copied_and_saved_so(tmp_path) -> None:
    page, document = page_of(tmp_path, "<p>Tea.</p><p>The boiler cools for <em>forty</em> minutes.</p>")
    start = page.index("The boiler")
    end = page.index(".</p></body>")
    entries = [
        {"document": "a.html", "start": start, "end": end},
        {"document": "a.html", "start": start, "end": end, "text": page[start:end]},
        {"document": "a.html", "start": start, "end": end, "text": "The boiler cools for forty minutes"},
        "The boiler cools for forty minutes",
    ]
    for entry in entries:
        assert EvidenceFinder([document]).find(entry).span.slice(document.text) == entries[3]
    kept = LabelledQuestions([document], tmp_path / "q.jsonl")
    place = document.text.index("The boiler")
    kept.mark(kept.add("How long?"), [(0, place, place + len(entries[3]))])
    assert json.loads((tmp_path / "q.jsonl").read_text())["evidence"] == [entries[2]]


@pytest.mark.parametrize("name", ["auto", "fixed_token", "html", "recursive", "sentence"])
@given(text=marked_text(MARKS))
def test_chunks_of_what_a_reader_sees_are_of_the_source(name: str, text: str) -> None:
    chunker = get_chunker(f"{name}:size=9")
    page = f"<html>{text}"
    assert chunker.split_text(page) == [chunk.text for chunk in chunker.chunk(Document("a", page))]
    for chunk in chunker.chunk(Document("a.html", text)):
        assert chunk.text == text_of_spans(text, chunk.spans)
        assert not re.search(r"</?(b|p|div|table|td|script|style)\b[^<>]*>", chunk.text)


SAYS_SO = [Document("a.html", "{}"), Document("a", "{}", {"mime_type": "text/html"}), Document("a", "<html>{}</html>")]


@pytest.mark.parametrize("form", SAYS_SO)
def test_a_page_that_is_made_in_python_is_searched_and_scored_as_a_reader_sees_it(form: Document) -> None:
    body = "<h1>Boilers</h1><p>The boiler cools for <em>forty</em> minutes.</p><p>Then it is closed.</p>"
    page = replace(form, text=form.text.format(body + "So. " * 99))
    start = page.text.index("boiler")
    evidence = Evidence(page.id, Span(start, page.text.index("</p>")))
    benchmark = Benchmark("b", [page], [Query("q", "How long does the boiler cool?", (evidence,))])
    assert load_benchmark([page], [{"question": "?", "evidence": "cools for forty minutes"}]).problems == ()
    for retriever in ("bm25", "passages:lexical"):
        index = get_retriever(retriever).index(chunk_corpus(benchmark.documents, "auto:size=12"))
        run = run_retriever(index, benchmark)
        assert not re.search("[<>]", "".join(hit.text for hit in index.retrieve("boiler closed", k=3)))
        assert score(run, benchmark, ["Recall@1000tok"]).mean("Recall@1000tok") == 1


@pytest.mark.parametrize(
    ("setting", "text"), [(None, "Tea\nIt is hot."), ("source", "<h1>Tea</h1><p>It is <b>hot</b>.")]
)
def test_frameworks_documents_of_html_are_cut_as_a_reader_sees_them(monkeypatch, setting, text) -> None:
    if setting:
        monkeypatch.setenv("CHUNKCORE_HTML", setting)
    page = Document("a", "<h1>Tea</h1><p>It is <b>hot</b>.", {"mime_type": "text/html"})
    (chunks,) = chunks_per_document(get_chunker("recursive"), [page], None)
    assert [chunk.text for chunk in chunks] == [text]
