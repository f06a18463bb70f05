"""Every text of a page that somebody else wrote tries to run a script, each in its own name, in a real browser."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from chunkcore import Document, Retrieved, Run, Span, compare, score
from chunkcore.evaluation.benchmarks.benchmark import Benchmark, DataProblem, Evidence, Query
from chunkcore.evaluation.results import Cost
from chunkcore.report import ReportPage, html_report
from chunkcore.study.tuning import TuneOptions, Tuning, tune
from tests.fakes import FakeEmbedder

from integration_tests.browser import Browser

# Ways out of an element's text, an attribute, a script, a style, a comment; and what then runs or is loaded.
OUT = "</script></style></title></textarea></select></svg>--> ]]> \"' >"
WAYS = (
    '<script>ran("{0}")</script>',
    '<img src=http://127.0.0.1:9/{0} onerror=ran("{0}")>',
    "<svg onload=ran(\"{0}\")><a href='javascript:ran(1)'>x</a></svg>",
    "<iframe srcdoc=\"<script>parent.ran('{0}')</script>\"></iframe>",
    "<form action=http://127.0.0.1:9/><button autofocus onfocus=ran('{0}')>x</button></form>",
    "<base href=http://127.0.0.1:9/><link rel=stylesheet href=/{0}>"
    "<meta http-equiv=refresh content='0;url=//127.0.0.1:9'>",
    "<style>@import url(http://127.0.0.1:9/{0})</style><p style='background:url(http://127.0.0.1:9/)'>",
    "${{ran('{0}')}} {{{{ran('{0}')}}}} ');ran('{0}');// \u2028ran('{0}')//",
)


def hostile(field: str) -> str:
    return f"«{field}» {OUT} {' '.join(way.format(field) for way in WAYS)}"


def benchmark() -> Benchmark:
    text = hostile("document text") + "\n"
    documents = [Document(hostile("document id"), text * 2, {"title": hostile("metadata")})]
    documents.append(Document(f"{hostile('other document')}.html", text * 3))
    queries = [
        Query(
            hostile(f"question id {number}"),
            hostile(f"question {number}"),
            (Evidence(documents[number % 2].id, Span(3, len(text) - number)),),
            hostile(f"collection {number % 2}"),
            {"answer": hostile("answer"), "note": hostile("question metadata")},
        )
        for number in range(4)
    ]
    problems = [DataProblem(hostile("problem's question"), hostile("problem's reason"))]
    return Benchmark(hostile("benchmark"), documents, queries, tuple(problems))


def run(asked: Benchmark, name: str) -> Run:
    first, second = asked.documents
    pool = [Retrieved(first.id, (Span(0, 200),), id=hostile("chunk id")), Retrieved(second.id, (Span(100, 900),))]
    results = {
        query.id: [
            replace(pool[0], score=3.0),
            Retrieved(second.id, (Span(10, 60),), 2.0, hostile("retrieved text"), match="fuzzy", certainty=0.5),
            Retrieved("", (), 1.0, hostile("text from nowhere"), match="unlocated", certainty=0.0),
        ]
        for query in asked.queries[1:]
    }
    return Run(name, results, pool)


GRID = f"recursive:size={{40,80}},separators={json.dumps([hostile('option value')])},counter=words"


@pytest.fixture(scope="module")
def tuned() -> Tuning:
    options = TuneOptions(measure="F1@3", folds=2, resamples=100)
    return tune(benchmark(), [GRID, "fixed_token:size=60"], FakeEmbedder(), retrievers="dense", options=options)


@pytest.fixture(scope="module")
def report(tuned: Tuning) -> str:
    asked = benchmark()
    reports = [score(run(asked, hostile(name)), asked, ["Recall@1", "IoU@1"]) for name in ("system", "second system")]
    cost = Cost(source_tokens=9, embedder_calls=1, embedded_texts=1, embedded_tokens=9, llm_calls=1, llm_input_tokens=1)
    reports = [replace(each, cost=cost) for each in reports]
    settings = {hostile("setting"): hostile("setting's value")}
    made = ReportPage(compare(reports, "Recall@1", resamples=100), asked, settings, hostile("date"), tuned)
    made = replace(made, more_questions=hostile("command"))
    return html_report(made)


@pytest.fixture
def armed(tab: Browser) -> Iterator[Browser]:
    """The browser whose pages count what runs."""
    program = "window.told = []; window.ran = (who) => told.push(who);"
    added = tab.call("Page.addScriptToEvaluateOnNewDocument", source=program)
    yield tab
    tab.call("Page.removeScriptToEvaluateOnNewDocument", identifier=added["identifier"])


def show(tab: Browser, source: str, folder: Path) -> Path:
    page = folder / "page.html"
    page.write_text(source, "utf-8")
    tab.errors.clear()
    tab.open(page)
    tab.requests.clear()  # those of the page before it
    tab.open(page)
    return page


# What runs, loads, sends or leads out of the page; the page itself has none of it but one script and one style.
ACTIVE = """
[...document.querySelectorAll("*")].filter((each) =>
  /^(IMG|IFRAME|OBJECT|EMBED|LINK|BASE|FRAME|AUDIO|VIDEO|SOURCE|APPLET|MATH|ANIMATE|FOREIGNOBJECT)$/i.test(each.tagName)
  || [...each.attributes].some(({ name, value }) => name.startsWith("on") || name === "style" && /url/i.test(value)
    || /^(src|srcdoc|action|formaction|xlink:href|ping|background|data)$/.test(name)
    || name === "href" && !value.startsWith("#"))
  || each.tagName === "META" && each.httpEquiv.toLowerCase() === "refresh").map((each) => each.outerHTML.slice(0, 200))
"""


def check_nothing_ran(tab: Browser, page: Path) -> None:
    assert tab.ask("told") == []
    assert tab.ask(ACTIVE) == []
    assert tab.ask("document.querySelectorAll('style').length") == 1
    assert [each for each in tab.requests.values() if each != page.as_uri()] == []
    assert tab.ask("location.href.split('#')[0]") == page.as_uri()
    assert tab.errors == []


def seen(tab: Browser) -> set[str]:
    """The fields that the page shows in full, as text."""
    text = tab.ask("document.documentElement.innerText + document.body.textContent")
    return {field for field in re.findall("«([^»]*)»", text) if WAYS[0].format(field) in text}


def test_nothing_in_the_report_and_its_viewer_runs_and_all_of_it_is_shown(armed, report, tmp_path):
    tab = armed
    page = show(tab, report, tmp_path)
    shown = seen(tab)
    tab.ask("document.querySelectorAll('#list details').forEach((each) => { each.open = true; })")
    tab.wait("document.querySelectorAll('#list .body').length === 4")
    shown |= seen(tab)
    tab.ask("document.getElementById('viewer').scrollIntoView()")
    tab.wait("document.querySelector('#v-rows li')")
    for system in range(2):
        for question in range(4):
            for name, value in (("question", question), ("system", system)):
                tab.ask(
                    f"(() => {{ const list = document.getElementById('v-{name}'); list.value = '{value}';"
                    "document.getElementById('v-status').textContent = '';"
                    "list.dispatchEvent(new Event('change')); })()"
                )
                tab.wait("document.getElementById('v-status').textContent")
            shown |= seen(tab)
    tab.wait("[...document.querySelectorAll('#v-hits .words')].every((each) => each.textContent)")
    check_nothing_ran(tab, page)
    assert tab.ask("document.querySelectorAll('script:not([type])').length") == 1
    named = {"benchmark", "date", "setting", "setting's value", "system", "second system", "document id", "answer"}
    named |= {"other document", "problem's question", "problem's reason", "document text", "text from nowhere"}
    named |= {f"{kind} {n}" for kind in ("question", "question id") for n in range(4)}
    named |= {"collection 0", "collection 1"}
    assert named <= shown
    assert "option value" in tab.ask("document.body.innerText")  # quoted, as a strategy's string quotes


POLICY = "default-src 'none'; style-src 'sha256'; script-src 'sha256'; base-uri 'none'; form-action 'none'"


def test_the_policy_stops_what_would_get_past_the_escaping(armed, report, tmp_path):
    tab = armed
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', report)
    assert re.sub(r"sha256-[\w+/=]+", "sha256", html.unescape(policy)) == POLICY
    head, body, rest = re.split(r"(<body>)", report, maxsplit=1)
    unescaped = f'<p id="smuggled">{hostile("smuggled").replace(WAYS[5].format("smuggled"), "")}'
    page = show(tab, f"{head}{body}{unescaped}{rest}", tmp_path)
    tab.wait("document.querySelector('#smuggled')")
    assert tab.ask("document.querySelectorAll('img, iframe, [onload], [onfocus]').length") > 0, "it did get past"
    tab.ask("document.querySelector('form[action] button').click()")
    tab.ask("document.querySelector('svg a').dispatchEvent(new MouseEvent('click'))")
    assert tab.ask("told") == []
    assert tab.ask("location.href.split('#')[0]") == page.as_uri()
    assert any("Content Security Policy" in error for error in tab.errors)
    assert [each for each in tab.requests.values() if each.startswith("http")] == []
