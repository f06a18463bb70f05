"""What a report shows is what was measured, and nothing in the data can do more than be shown."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from chunkcore import DataError, compare, get_measure
from chunkcore.evaluation.results import ChunkStatistics, Report
from chunkcore.plain import csv_cell, markdown_cell, page_text, script_json, terminal_text
from chunkcore.report import html_report, question_csv, read_reports, tables, write_report
from chunkcore.report.records import print_report
from chunkcore.report.tables import difference_table, score_table, warnings, whole_percent
from chunkcore.study.comparing import ReportPage
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from tests.report_data import NASTY, nasty_study, study
from tests.strategies import hard_text

CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Page(HTMLParser):
    """The elements, attributes and texts that a browser would see."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.attributes: list[tuple[str, str, str]] = []
        self.tags: list[str] = []
        self.content: dict[str, list[str]] = {}
        self.views: list[dict[str, str | None]] = []
        self._inside = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if dict(attrs).get("class") == "view":
            self.views.append(dict(attrs))
        if tag in ("script", "style"):
            self._inside = f"{tag} {dict(attrs).get('type', '')}".strip()
            self.content.setdefault(self._inside, []).append("")

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside:
            self.content[self._inside][-1] += data
        else:
            self.content.setdefault("text", []).append(data)

    @property
    def data(self) -> dict:
        (block,) = self.content["script application/json"]
        return json.loads(block)

    @property
    def text(self) -> str:
        return " ".join("".join(self.content["text"]).split())


@pytest.fixture(scope="module")
def plain() -> ReportPage:
    return study()


@pytest.fixture(scope="module")
def nasty() -> ReportPage:
    return nasty_study()


@given(hard_text() | st.sampled_from(NASTY) | st.text())
def test_a_script_block_holds_any_text_and_gives_it_back(text):
    text = page_text(text)
    block = script_json({"text": text})
    assert block.isascii()
    assert not set(block) & set("<>&")
    assert json.loads(block) == {"text": text}


@given(hard_text() | st.sampled_from(NASTY) | st.text())
def test_a_terminal_line_holds_no_character_that_steers(text):
    assert not CONTROLS.search(terminal_text(text))


@given(st.text())
def test_a_markdown_cell_stays_one_cell_without_html(text):
    cell = markdown_cell(text)
    assert "<" not in cell
    assert "\n" not in cell
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", cell)) == 0


def _digests(texts: list[str]) -> list[str]:
    return [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]


def test_the_page_needs_nothing_else(plain):
    page = Page(html_report(plain))
    assert not [(tag, name) for tag, name, _ in page.attributes if name in ("src", "srcset", "action", "style")]
    assert not {"link", "img", "iframe", "object", "embed", "base"} & set(page.tags)
    places = {value for _, name, value in page.attributes if name == "id"}
    links = [(tag, value) for tag, name, value in page.attributes if name == "href"]
    assert links
    assert all(tag == "a" and value[0] == "#" and value[1:] in places for tag, value in links)


def test_the_policy_allows_the_pages_own_script_and_style_and_nothing_more(plain):
    page = Page(html_report(plain))
    (policy,) = [value for _, name, value in page.attributes if name == "content" and "default-src" in value]
    (script,), (style,) = _digests(page.content["script"]), _digests(page.content["style"])
    allowed = f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'"
    assert policy == f"{allowed}; base-uri 'none'; form-action 'none'"


def test_text_from_the_data_adds_no_element_and_no_attribute(plain, nasty):
    page, calm = Page(html_report(nasty)), Page(html_report(plain))
    assert set(page.tags) <= set(calm.tags) | {"aside", "li", "ul"}
    types = [value for tag, name, value in page.attributes if (tag, name) == ("script", "type")]
    assert page.tags.count("script") == len(types) + 1, "one program"
    assert set(types) == {"application/json", "application/octet-stream"}, "and data, which nothing runs"
    assert {name for _, name, _ in page.attributes} <= {name for _, name, _ in calm.attributes}
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]


def test_the_data_block_gives_every_question_with_its_evidence_and_shares(nasty):
    data = Page(html_report(nasty)).data
    assert data["systems"] == [page_text(report.name) for report in nasty.reports]
    assert data["ks"] == ["5", "10", "min"]
    for query, shown in zip(nasty.benchmark.queries, data["questions"], strict=True):
        assert shown["text"] == page_text(query.text)
        spans = [[page_text(each.document_id), each.span.start, each.span.end] for each in query.evidence]
        assert [each[:3] for each in shown["evidence"]] == spans
        texts = [each.span.slice(nasty.benchmark.document(each.document_id).text) for each in query.evidence]
        assert [each[3] for each in shown["evidence"]] == [page_text(text) for text in texts]
    for row, shown in enumerate(data["questions"]):
        for place, k in enumerate((5, 10, "min")):
            shares = [(report.values(f"Recall@{k}")[row], *report.found[k][row]) for report in nasty.reports]
            assert shown["found"][place] == [list(map(whole_percent, row)) for row in shares]


def test_shares_of_another_order_of_questions_reach_the_right_question(plain):
    turned = []
    for report in plain.comparison.reports:
        found = {k: rows[::-1] for k, rows in report.found.items()}
        scores = {measure: values[::-1] for measure, values in report.scores.items()}
        turned.append(replace(report, query_ids=report.query_ids[::-1], found=found, scores=scores))
    shown = Page(html_report(replace(plain, comparison=compare(turned, "Recall@5", resamples=1000)))).data
    assert shown == Page(html_report(plain)).data


def test_a_study_with_next_to_nothing_is_rendered_too(tmp_path):
    values = {"Recall@5": np.array([1.0, math.nan]), "Recall@5[character]": np.array([1.0, 0.5])}
    scores = {get_measure(name): scored for name, scored in values.items()}
    report = Report("only", "toy", ("a", "b"), ("", ""), scores)
    bare = ReportPage(compare([report], "Recall@5", resamples=100))
    page = Page(html_report(bare))
    assert "only" in page.text
    assert page.data["questions"] == []
    assert "nan" not in page.text.lower().split()
    write_report(bare, tmp_path)
    assert read_reports(tmp_path / "report.json")[0].name == "only"
    print_report(bare, Console(file=io.StringIO(), width=80))


def test_the_table_shows_means_and_the_verdicts_interval(plain):
    table = score_table(plain, 5, "token")
    report = plain.reports[1]
    low, high = plain.comparison.intervals[report.name]
    name, recall, precision = table.rows[1][:3]
    assert (name.text, name.number) == (report.name, 2)
    assert recall.text == f"{100 * report.mean('Recall@5'):.1f}"
    assert (recall.details, precision.details) == ((f"{100 * low:.1f} to {100 * high:.1f}",), ())


def test_differences_are_those_from_the_baseline(plain):
    rows = difference_table(plain).rows
    a, b = plain.reports[0], plain.comparison.baseline
    assert [row[0].text for row in rows] == [report.name for report in plain.reports if report.name != b]
    gap = plain.comparison.between(a.name, b)
    assert rows[0][1].text == f"{'≈ ' * gap.equivalent}{tables.signed(100 * gap.mean)}"
    assert rows[0][1].details == (f"{tables.signed(100 * gap.low)} to {tables.signed(100 * gap.high)}",)
    assert [cell.text for cell in rows[0][2:]] == [str(gap.wins), str(gap.losses)]
    many = study(names=tuple("abcdef"), questions=300)
    shown = [row[1].strong for row in difference_table(many).rows]
    assert shown == [gap.distinct for gap in many.comparison.against]
    assert len(set(shown)) == 2


def test_warnings_name_what_was_truncated_unanswered_and_lost():
    plain = study(questions=30)
    calm = replace(plain.comparison.reports[0], chunks=None)
    assert warnings(replace(plain, comparison=replace(plain.comparison, reports=(calm,)))) == []
    located = {"spans": 3, "unlocated": 2, "ambiguous": 1}
    cut = ChunkStatistics(np.array([900]), truncated=1, tokens_lost=1644)
    troubled = replace(calm, chunks=cut, unanswered=("q1", "q2"), located=located)
    first, second, third, fourth = warnings(replace(plain, comparison=replace(plain.comparison, reports=(troubled,))))
    assert fourth.endswith("of its retrieved pieces were placed 17 % at one of several places.")
    assert "1 of 1 chunks is longer than the embedder reads; 1,644 of its tokens were cut off" in first
    assert "2 questions are not answered" in second
    assert "2 retrieved pieces are to be found in no document" in third


def test_a_means_place_in_the_plot_is_its_score(plain):
    drawn = html_report(plain).partition('class="intervals"')[2].partition("</ol>")[0]
    ticks = re.findall(r'class="tick" x="([\d.]+)%"[^>]*>([\d.]+)<', drawn)
    places, values = np.array(ticks, dtype=float).T
    fit = np.polyfit(places, values, 1)
    for number, report in plain.systems:
        row = drawn.partition(f'chip s{number}">')[2].partition("</li>")[0]
        places = [*re.findall(r'class="whisker[^"]*" x1="([\d.]+)%" x2="([\d.]+)%"', row)[0]]
        places += re.findall(r'class="estimate[^"]*" x="([\d.]+)%"', row)
        values = [*plain.comparison.intervals[report.name], report.mean(plain.comparison.measure)]
        assert np.polyval(fit, np.array(places, dtype=float)) == pytest.approx(100 * np.array(values), abs=0.1)


def test_csv_rows_are_the_scores_and_hold_no_formula(nasty):
    rows = list(csv.DictReader(io.StringIO(question_csv(nasty))))
    report = nasty.reports[0]
    mine = [row for row in rows if row["system"] == csv_cell(report.name)]
    for measure in report.scores:
        values = [float(row[str(measure)] or "nan") for row in mine]
        np.testing.assert_allclose(values, report.values(measure), rtol=1e-5)
    cells = [value for row in rows for value in row.values()]
    assert not [cell for cell in cells if cell.lstrip().startswith(("=", "+", "@"))]
    assert not [cell for cell in cells if cell.startswith("-") and not re.fullmatch(r"-[\d.e-]+", cell)]


def test_undefined_scores_are_empty_cells(plain):
    values = dict(plain.comparison.reports[0].scores)
    values[get_measure("Recall", 5)] = np.full(20, math.nan)
    gone = replace(plain.comparison.reports[0], scores=values)
    made = replace(plain, comparison=replace(plain.comparison, reports=(gone,)))
    assert {row["Recall@5"] for row in csv.DictReader(io.StringIO(question_csv(made)))} == {""}
    assert "Recall" not in [column.title for column in score_table(made, 5, "token").columns]


def test_reports_can_be_read_back_from_json(tmp_path, nasty):
    write_report(nasty, tmp_path)
    again = read_reports(tmp_path / "report.json")
    assert [report.to_dict() for report in again] == [report.to_dict() for report in nasty.reports]
    compared = compare(again, "Recall@5", resamples=1000)
    assert compared.verdict == nasty.comparison.verdict


@pytest.mark.parametrize("content", ["", "[]", '{"format": "another"}', '{"format": "chunkcore report 2"}'])
def test_another_json_file_is_refused_with_its_name(tmp_path, content):
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(DataError, match=r"other\.json is (no|empty)"):
        read_reports(path)


@pytest.mark.parametrize("width", [80, 100, 140])
def test_the_terminal_table_fits_and_steers_nothing(nasty, width):
    stream = io.StringIO()
    print_report(nasty, Console(file=stream, width=width))
    lines = stream.getvalue().split("\n")
    assert max(map(cell_len, lines)) <= width
    assert not [line for line in lines if CONTROLS.search(line)]
    assert "…" not in stream.getvalue()
    stream = io.StringIO()
    print_report(study(price=0.1), Console(file=stream, width=width))
    assert ("million" in stream.getvalue()) == (width > 96), "a narrow one has names and scores"


def test_a_name_in_brackets_is_no_style_and_a_long_one_begins_beside_its_number():
    named = study(names=("[red]a[/red]", "[link=x]b", "cluster_semantic:size=200,piece_size=50"))
    stream = io.StringIO()
    print_report(named, Console(file=stream, width=120))
    for name in ("[red]a[/red]", "[link=x]b"):
        assert stream.getvalue().count(name) >= 2, "once in the table and once in the verdict"
    assert re.search(r"\d  cluster_semantic:size=200, .*\n    piece_size=50", stream.getvalue())


def test_a_system_whose_name_is_0_keeps_its_name():
    page = study(names=("0",))
    table = score_table(page, page.chosen_k, page.comparison.measure.unit)
    assert (table.columns[0].title, table.rows[0][0].text) == ("Chunker", "0")


@pytest.mark.parametrize("measure", ["PrecisionOmega", "F1@5", "Precision@10", "IoU@min"])
def test_the_verdicts_measure_is_shown_however_narrow_the_terminal(measure):
    stream = io.StringIO()
    print_report(study(measure=measure), Console(file=stream, width=80))
    heading = next(line for line in stream.getvalue().split("\n") if "Chunker" in line)
    assert measure.partition("@")[0].replace("Omega", "Ω") in heading.split()
    assert max(map(cell_len, stream.getvalue().split("\n"))) <= 80
    assert re.search(r"\d to \d", stream.getvalue().split("% of tokens")[0]), "its interval stands in the table"


def test_the_pages_files_reach_no_network_and_parse_no_markup():
    banned = r"url\(|@import|https?://|fetch\(|XMLHttp|innerHTML|insertAdjacent|document\.write|eval"
    assets = [path for kind in ("css", "js", "jinja") for path in Path(tables.__file__).parent.glob(f"*.{kind}")]
    assert len(assets) >= 6
    assert not [path for path in assets if re.search(banned, path.read_text("utf-8"))]
