"""A real browser opens the report: of hostile data, of very much data, with the keyboard alone."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from chunkcore import Benchmark, Document, Evidence, Mark, Query, Retrieved, Run, Span, compare, score
from chunkcore.evaluation.results import ChunkStatistics
from chunkcore.report import ReportPage, html_report
from chunkcore.report.viewer import excerpts
from tests.report_data import Prose, large, nasty_study, study

from integration_tests.browser import Browser
from integration_tests.report_picture import IMAGES, PICTURES, digest_of, page_digest


def show(tab: Browser, source: str, folder: Path) -> None:
    """Open this page, alone."""
    page = folder / "report.html"
    page.write_text(source, "utf-8")
    tab.errors.clear()
    tab.open(page)


def to_viewer(tab: Browser) -> None:
    tab.ask("document.getElementById('viewer').scrollIntoView()")
    tab.wait("document.querySelector('#v-rows li')")


def texts(tab: Browser, selector: str) -> list[str]:
    return tab.ask(f"[...document.querySelectorAll({selector!r})].map((each) => each.textContent)")


def count(tab: Browser, selector: str) -> int:
    return tab.ask(f"document.querySelectorAll({selector!r}).length")


def choose(tab: Browser, name: str, number: int) -> None:
    """Pick in one of the viewer's lists, and wait until it is shown."""
    tab.ask("document.getElementById('v-status').textContent = ''")
    tab.ask(
        f"(() => {{ const list = document.getElementById('v-{name}');"
        f"list.value = '{number}'; list.dispatchEvent(new Event('change')); }})()"
    )
    tab.wait("document.getElementById('v-status').textContent")


def order(tab: Browser, how: str) -> None:
    """The list of questions in another order; most disagreement is first at first."""
    tab.ask(
        f"(() => {{ const list = document.getElementById('order'); list.value = '{how}';"
        "list.dispatchEvent(new Event('change')); })()"
    )


@pytest.fixture(scope="module")
def nasty() -> ReportPage:
    return nasty_study()


def text_of(made: ReportPage, document_id: str) -> str:
    return made.benchmark.document(document_id).text


VALVE = "The valve is red 🔴. "
PUMP = "The pump is blue, and the lid is shut. "
STORY = f"{VALVE}{PUMP}\n\nNothing else is to be said of either. {VALVE}"


@pytest.fixture(scope="module")
def story() -> ReportPage:
    """Two strategies on two documents: chunks that overlap and leave something out, and one that knows no chunks."""
    documents = [Document("story.md", STORY), Document("other.md", "Of something else. " * 5)]
    queries = [
        Query("q1", "Which is red?", (Evidence("story.md", Span(4, 18)),)),
        Query("q2", "Is it shut?", (Evidence("story.md", Span(38, 57)), Evidence("other.md", Span(3, 12)))),
        Query("q3", "And else?", (Evidence("other.md", Span(3, 17)),)),
    ]
    benchmark = Benchmark("story", documents, queries)
    cuts = [(0, 30), (20, 59), (61, 75), (80, 117)]
    pool = [Retrieved("story.md", (Span(start, min(end, len(STORY))),)) for start, end in cuts]
    pool.append(Retrieved("other.md", (Span(0, 95),)))
    scored = [replace(piece, score=0.9 - number / 10) for number, piece in enumerate(pool)]
    overlapping = Run("overlapping", {"q1": [scored[1], scored[0]], "q2": scored[3:], "q3": scored[4:]}, pool)
    words = Retrieved("story.md", (Span(61, 75),), 3.0, "nothing ELSE is", match="fuzzy", certainty=0.8)
    outside = Run(
        "outside", {"q1": [words, Retrieved("", (), 2.0, "Out of <b>thin</b> air", match="unlocated", certainty=0.0)]}
    )
    reports = [score(run, benchmark, ["Recall@1", "Recall@5"]) for run in (overlapping, outside)]
    return ReportPage(compare(reports, "Recall@5", resamples=100), benchmark)


@pytest.fixture
def opened(tab, story, tmp_path) -> Browser:
    show(tab, html_report(story), tmp_path)
    to_viewer(tab)
    yield tab
    assert tab.errors == []


def rows(tab: Browser) -> list[tuple[str, str, str]]:
    """Gutter, words and class of each row."""
    found = tab.ask(
        "[...document.querySelectorAll('#v-rows > li')].map((row) => ["
        "[...row.querySelectorAll('.gutter > div > *')].map((each) => each.textContent).join(' · '),"
        "row.querySelector('.words').textContent, row.className.replace(' here', '')])"
    )
    return [tuple(each) for each in found]


def test_a_document_is_shown_in_its_chunks_with_ranks_overlaps_and_evidence(opened):
    assert rows(opened) == [
        ("rank 2 · chunk 1", "The evidence 1valve is red 🔴. ", "row retrieved holds-evidence"),
        ("rank 1 · rank 2 · chunks 1, 2 · overlap", "The pump i", "row retrieved overlap"),
        ("rank 1 · chunk 2", "s blue, and the lid is shut. ", "row retrieved"),
        ("chunk 3", "Nothing else i", "row"),
        ("in no chunk", "s to ", "row outside"),
        ("chunk 4", "be said of either. The valve is red 🔴", "row"),
        ("in no chunk", ". ", "row outside"),
    ]
    assert texts(opened, "#v-rows mark") == ["evidence 1valve is red 🔴"]


def test_how_a_piece_was_located_is_told(opened):
    choose(opened, "system", 1)
    assert texts(opened, "#v-hits .where") == ["characters 61–75; located by resemblance, 80 % sure", "located nowhere"]
    assert texts(opened, "#v-hits .words") == ["nothing ELSE is", "Out of <b>thin</b> air"]
    assert count(opened, "#v-hits button:disabled") == 1
    assert texts(opened, "#v-size") == [f"{len(STORY)} characters"], "how many chunks there are is not known"
    assert not texts(opened, "#v-rows .outside")


def test_another_question_shows_its_document_and_both_its_evidences(opened):
    choose(opened, "question", 1)
    assert texts(opened, "#v-title") == ["story.md"]
    assert texts(opened, "#v-evidence b") == ["Evidence 1", "Evidence 2"]
    assert texts(opened, "#v-hits .holds") == ["✓ holds 100 % of evidence 2"], "no evidence of another document"
    assert texts(opened, "#v-near option") == ["story.md (evidence; rank 1)", "other.md (evidence; rank 2)"]
    opened.ask("document.querySelectorAll('#v-evidence button')[1].click()")
    opened.wait("document.getElementById('v-title').textContent === 'other.md'")
    assert texts(opened, "#v-rows mark") == ["evidence 2something"]


def test_the_switch_of_k_marks_only_what_counts(opened):
    opened.ask("document.querySelector('.switches input[value=\"1\"]').click()")
    opened.wait("document.querySelectorAll('#v-rows .retrieved').length === 2")
    assert [gutter for gutter, *_ in rows(opened)][:3] == [
        "chunk 1",
        "rank 1 · chunks 1, 2 · overlap",
        "rank 1 · chunk 2",
    ]
    assert count(opened, "#v-hits > li") == 2, "deeper answers stay listed, under a line"
    assert opened.ask("document.querySelector('#v-hits > li').className") == "last"


def test_what_is_not_carried_is_told_where_it_is_missing(tab, story, tmp_path, monkeypatch):
    filler = Prose(np.random.default_rng(0)).text(80_000)
    long = [Document(each.id, f"{each.text}\n{filler}") for each in story.benchmark.documents]
    runs = [report.run for report in story.comparison.reports]
    benchmark = Benchmark("story", long, story.benchmark.queries)
    reports = [score(run, benchmark, ["Recall@5"]) for run in runs]
    monkeypatch.setattr("chunkcore.report.viewer.excerpts", partial(excerpts, room=4_000))
    show(tab, html_report(ReportPage(compare(reports, resamples=100), benchmark)), tmp_path)
    assert "too large for one page" in " ".join(texts(tab, "#viewer > .note"))
    to_viewer(tab)
    (left,) = texts(tab, "#v-rows .gap")
    assert re.fullmatch(r"7\d,\d{3} characters are not carried in this page", left)
    assert texts(tab, "#v-rows mark") == ["evidence 1valve is red 🔴"]
    assert tab.errors == []


def test_pages_are_named_with_evidence_hits_and_where_they_begin(tab, tmp_path):
    text = "Black tea is hot.\nGreen tea is not.\nThat is all."
    marks = [Mark("page", Span(0, 17), {"number": 3}), Mark("page", Span(18, 35), {"number": 4})]
    documents = [Document("tea.pdf", text, marks=(*marks, Mark("page", Span(36, 48), {"number": 6})))]
    benchmark = Benchmark("tea", documents, [Query("q", "Green?", (Evidence("tea.pdf", Span(18, 34)),))])
    pool = [Retrieved("tea.pdf", (Span(0, 27),)), Retrieved("tea.pdf", (Span(28, 48),))]
    page = ReportPage(compare([score(Run("halves", {"q": pool}, pool), benchmark, ["Recall@5"])]), benchmark)
    show(tab, html_report(page), tmp_path)
    to_viewer(tab)
    assert texts(tab, "#v-evidence .head") == ["Evidence 1 tea.pdf page 4"]
    assert texts(tab, "#v-hits .where") == [
        "pages 3–4, chunk 1, characters 0–27",
        "pages 4, 6, chunk 2, characters 28–48",
    ]
    assert [row.split("overlap")[0] for row in texts(tab, "#v-rows .gutter small")] == ["pages 3–4", "pages 4, 6"]
    tab.ask("document.querySelector('#questions details').open = true")
    tab.wait("document.querySelector('#questions .place')")
    assert texts(tab, "#questions .place")[0].startswith("tea.pdf, page 4, characters 18 to 34")
    assert tab.errors == []


def test_rows_are_made_as_they_are_scrolled_to_up_and_down(tab, tmp_path):
    text = "".join(f"Sentence {number:04} of many. " for number in range(500))
    pool = [Retrieved("long.md", (Span(start, start + 23),)) for start in range(0, len(text), 23)]
    query = Query("q", "Which?", (Evidence("long.md", Span(250 * 23, 250 * 23 + 13)),))
    benchmark = Benchmark("long", [Document("long.md", text)], [query])
    report = score(Run("short", {"q": pool[250:251]}, pool), benchmark, ["Recall@5"])
    show(tab, html_report(ReportPage(compare([report], resamples=100), benchmark)), tmp_path)
    to_viewer(tab)
    assert texts(tab, "#v-rows mark") == ["evidence 1Sentence 0250"]
    assert count(tab, "#v-rows > li") <= 200
    pane = "document.getElementById('v-text')"
    for end, last in (("scrollHeight", "Sentence 0499"), ("offsetTop * 0", "Sentence 0000")):
        # Somebody who holds the bar at an end is there again before the browser draws the rows that were made.
        tab.ask(f"""{{
          const hold = () => {{ {pane}.scrollTop = {pane}.{end}; }};
          window.held?.disconnect();
          window.held = new MutationObserver(hold);
          window.held.observe(document.getElementById("v-rows"), {{ childList: true }});
          hold();
        }}""")
        tab.wait(f"document.querySelector('#v-rows').textContent.includes('{last}')")
    assert count(tab, "#v-rows > li") == 500
    assert texts(tab, "#v-rows .gutter span") == [f"chunk {number}" for number in range(1, 501)]
    assert tab.errors == []


def test_arrow_keys_walk_among_questions_and_a_question_opens_at_its_place(opened):
    order(opened, "given")
    opened.ask("document.querySelector('#list summary').focus()")
    opened.press("ArrowDown")
    opened.press("ArrowDown")
    opened.press("ArrowUp")
    assert opened.ask("document.activeElement.textContent").startswith("Is it shut?")
    opened.press("Enter")
    opened.wait("document.querySelectorAll('#list details[open] button.small').length === 2")
    opened.press("Tab")
    opened.press("Tab")
    assert opened.ask("document.activeElement.textContent") == "Show in the document"
    opened.press("Enter")
    opened.wait("document.getElementById('v-title').textContent === 'other.md'")
    assert opened.ask("document.activeElement.id") == "v-heading"
    assert texts(opened, "#v-rows mark") == ["evidence 2something"]
    opened.press("ArrowRight")
    opened.wait("document.getElementById('v-asked').textContent === 'And else?'")
    opened.press("ArrowRight")
    opened.press("ArrowLeft")
    opened.press("ArrowLeft")
    opened.wait("document.getElementById('v-asked').textContent === 'Which is red?'")


def test_everything_of_the_viewer_is_reached_by_tab_in_its_order_and_seen(opened):
    opened.ask("document.getElementById('v-heading').focus()")
    seen = []
    for _ in range(14):
        opened.press("Tab")
        seen.append(opened.ask("document.activeElement.id || (document.activeElement.closest('[id]')?.id ?? '')"))
        outline = opened.ask(
            "(() => { const s = getComputedStyle(document.activeElement); return s.outlineStyle + s.outlineWidth; })()"
        )
        if not seen[-1]:
            break
        assert outline not in ("none0px", "none"), seen[-1]
    order = list(dict.fromkeys(seen))
    wanted = ["v-question", "v-next", "v-system", "v-document", "v-strip", "v-evidence", "v-hits", "v-text"]
    assert [each for each in order if each in wanted] == wanted


def test_a_thousand_questions_open_filter_and_show_in_one_page(tab, tmp_path):
    made = large(systems=4, documents=20, size=30_000)
    source = html_report(made)
    assert len(source.encode()) < 25_000_000
    assert [query.id for query in made.benchmark.queries[-1:]] == ["q999"]
    show(tab, source, tmp_path)
    # Nothing is unpacked, and next to nothing drawn, before somebody asks for it.
    assert tab.ask("unpacked.size") == 0
    assert tab.ask("document.querySelectorAll('*').length") < 12_000
    assert texts(tab, "#count") == ["30 of 1,000 questions shown."]
    tab.ask("document.getElementById('search').focus()")
    tab.write("question 777:")
    tab.wait("document.querySelectorAll('#list > li').length === 1")
    assert texts(tab, "#count") == ["1 of 1 fitting question shown, out of 1,000."]
    tab.ask("document.querySelector('#list summary').click()")
    tab.wait("document.querySelectorAll('#list button.small').length === 2")
    tab.ask("document.querySelectorAll('#list button.small')[1].click()")
    tab.wait("document.querySelector('#v-rows mark')")
    query = made.benchmark.queries[777]
    evidence = query.evidence[1]
    assert texts(tab, "#v-asked") == [query.text]
    assert texts(tab, "#v-title") == [evidence.document_id]
    marked = "".join(texts(tab, "#v-rows mark"))
    assert "".join(evidence.span.slice(text_of(made, evidence.document_id)).split()) in "".join(marked.split())
    first = made.reports[0].run.results["q777"]
    assert texts(tab, "#v-hits .score")[0] == f"score {first[0].score:.4g}".rstrip("0")
    # Of the systems one was unpacked.
    assert tab.ask("[...unpacked.keys()].filter((name) => name.startsWith('answers')).length") == 1
    assert tab.ask("document.querySelectorAll('#v-rows > li').length") <= 200
    choose(tab, "system", 3)
    assert texts(tab, "#v-hits-title") == [f"Retrieved by {made.reports[3].name}"]
    assert tab.errors == []


@pytest.mark.parametrize("width", [420, 1280])
def test_the_page_itself_never_scrolls_sideways(tab, nasty, tmp_path, width):
    show(tab, html_report(nasty), tmp_path)
    tab.size(width, 800)
    to_viewer(tab)
    assert tab.ask("document.documentElement.scrollWidth") <= width


def test_a_phone_shows_the_answer_and_the_scores_before_anything_that_can_wait(tab, tmp_path):
    tab.size(390, 844)
    show(tab, html_report(study(questions=40)), tmp_path)
    assert tab.ask("document.getElementById('scores').getBoundingClientRect().y") < 2000
    titles = "[...document.querySelectorAll('header details:not([open]) summary')].map((each) => each.textContent)"
    assert {"The interval of each system", "LangChain"} < set(tab.ask(titles))
    tab.ask("document.querySelector('header details:has(.means) summary').click()")
    assert tab.ask("document.querySelector('.means').offsetHeight") > 100
    tab.size(1280, 800)


def test_a_square_is_filled_only_where_the_page_says_so(tab, tmp_path):
    show(tab, html_report(study(names=tuple("abcdef"), questions=200)), tmp_path)
    fills = "[...document.querySelectorAll('.estimate{}')].map((square) => getComputedStyle(square).fill)"
    open_squares, filled = (set(tab.ask(fills.format(kind))) for kind in (".behind", ":not(.behind)"))
    assert len(open_squares) == 1, "that of the paper"
    assert filled
    assert not open_squares & filled


def test_a_heading_sorts_its_table_and_groups_the_rows_of_one_retriever(tab, tmp_path):
    names = tuple(f"recursive:size={size} · {method}" for size in (100, 200) for method in ("hybrid", "bm25"))
    show(tab, html_report(study(names=names, questions=40)), tmp_path)
    cells = (
        "[...document.querySelectorAll('.view:not([hidden]) tbody tr')]"
        ".map((row) => row.cells[{}].querySelector('bdi').textContent)"
    )

    def sort(column: int) -> list[str]:
        heading = f".view:not([hidden]) thead tr:last-child th:nth-child({column + 1}) button"
        tab.ask(f"document.querySelector('{heading}').click()")
        return tab.ask(cells.format(column))

    shown = tab.ask(cells.format(2))
    assert sort(2) == sorted(shown, key=float, reverse=True)
    assert sort(2) == sorted(shown, key=float)
    assert tab.ask("document.querySelector('[aria-sort]').getAttribute('aria-sort')") == "ascending"
    assert sort(1) == ["bm25", "bm25", "hybrid", "hybrid"]
    assert tab.errors == []


def test_two_strategies_are_shown_side_by_side(opened):
    assert opened.ask("document.getElementById('v-pane-2').hidden")
    choose(opened, "other", 1)
    assert not opened.ask("document.getElementById('v-pane-2').hidden")
    assert texts(opened, "#v-hits-title-2") == ["Retrieved by outside"]
    assert len(texts(opened, "#v-rows mark")) == len(texts(opened, "#v-rows-2 mark")) == 1
    assert texts(opened, "#v-hits .where") != texts(opened, "#v-hits-2 .where")
    choose(opened, "system", 1)
    assert opened.ask("document.getElementById('v-pane-2').hidden"), "not beside itself"


def test_parts_of_passages_are_shaded_by_their_scores_and_a_budget_marks_what_it_holds(tab, tmp_path):
    document = Document("d.md", "The fox naps. The dog runs. The owl reads. The elk waits.")
    parts = (Retrieved("d.md", (Span(0, 13),), 1.0), Retrieved("d.md", (Span(14, 27),), 4.0))
    passage, later = (Retrieved("d.md", (Span(0, 27),), 5.0, parts=parts), Retrieved("d.md", (Span(43, 57),), 1.0))
    benchmark = Benchmark("b", [document], [Query("q", "Who runs?", (Evidence("d.md", Span(14, 27)),))])
    run = Run("passages", {"q": [passage, later]}, [passage, later])
    report = replace(score(run, benchmark, ["Recall@5tok"]), chunks=ChunkStatistics(np.array([8, 4])))
    show(tab, html_report(ReportPage(compare([report], resamples=100), benchmark)), tmp_path)
    to_viewer(tab)
    assert texts(tab, "#v-rows .scored") == ["The fox naps.", "evidence 1The dog runs."]
    shares = ".map((each) => Number(each.style.getPropertyValue('--share')))"
    light, strong = tab.ask(f"[...document.querySelectorAll('#v-rows .scored')]{shares}")
    assert light < strong == 1
    assert texts(tab, "#v-hits .part") == ["1", "4"]
    assert count(tab, "#v-rows .retrieved") == 1, "the second piece is over the budget"
    assert tab.errors == []


def test_the_pictures_are_of_todays_page():
    for name in PICTURES:
        digest = digest_of((IMAGES / name).read_bytes())
        assert digest == page_digest(name), f"take {name} anew: integration_tests/report_picture.py"
