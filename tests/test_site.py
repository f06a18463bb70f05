"""The site that `make docs` builds: complete, with links that lead somewhere, and nothing fetched from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import chunkcore
import pytest
from docs.making.site import ADAPTERS, ELSEWHERE, ROOMS, exported, led, reference
from markdown_it import MarkdownIt

from tests.pages import ROOT, pages

CONFIGURATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_every_public_name_is_in_the_reference() -> None:
    listed = {module: names for module, _, names in reference()}
    assert listed["chunkcore"] == chunkcore.__all__
    assert set().union(*(exported(f"chunkcore.{room}") for room in ROOMS)) <= set().union(*listed.values())
    names = [name for module, names in listed.items() if module.startswith("chunkcore") for name in names]
    assert len(names) == len(set(names))


def test_an_adapter_s_names_are_read_without_its_framework() -> None:
    assert {f"chunkadapters.{name}" for name in ADAPTERS} <= {module for module, _, _ in reference()}
    assert {"ChunkcoreTextSplitter", "evaluate_retriever"} <= set(exported("chunkadapters.langchain"))
    assert "ChunkcoreDocumentSplitter" in exported("chunkadapters.haystack")


def test_the_navigation_names_pages_that_are_there() -> None:
    named = re.findall(r"[\w/-]+\.md", CONFIGURATION)
    assert len(named) == len(set(named))
    assert {f"docs/{page}" for page in named} <= {*pages(), *(f"docs/{page}" for page in ELSEWHERE)}


def test_the_navigation_fits_a_screen() -> None:
    """What is in sight before a section is opened: tabs, and under each tab pages and closed sections."""
    lines = CONFIGURATION[CONFIGURATION.index("\nnav:") :].splitlines()[2:]
    in_sight = [line for line in lines if re.match(r" {2,6}- ", line)]
    assert len(in_sight) <= 25


def test_the_pages_that_the_code_names_are_there() -> None:
    code = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    named = {page for text in code for page in re.findall(r"(?<![\w/])docs/[\w/]+\.md", text)}
    assert named - {"docs/coffee.md"} <= {*pages()}  # a document of an example


@pytest.mark.parametrize(
    ("here", "markdown", "expected"),
    [
        ("concepts.md", "[a](guides/statistics.md#x)", "[a](guides/statistics.md#x)"),
        ("guides/a.md", "![a](../images/report.png)", "![a](../images/report.png)"),
        ("reference/chunkers/index.md", "[a](../../../CONTRIBUTING.md#b)", "[a](../../contributing.md#b)"),
        ("contributing.md", "[a](docs/concepts.md), [b](CHANGELOG.md)", "[a](concepts.md), [b](changelog.md)"),
        ("index.md", "[a](docs/tutorial.md), [b](#c)", "[a](tutorial.md), [b](#c)"),
        ("concepts.md", "[a](../README.md#install)", "[a](index.md#install)"),
        ("guides/a.md", "[`src/x.py`](../../src/x.py), [those](../../tests)", "`src/x.py`, those (`tests`)"),
        ("guides/a.md", "[a](https://example.org/x.md), [b](#here)", "[a](https://example.org/x.md), [b](#here)"),
    ],
)
def test_links_lead_to_where_things_are_on_the_site(here: str, markdown: str, expected: str) -> None:
    assert led(markdown, here) == expected


def as_on_github(page: str) -> str:
    text = (ROOT / page).read_text(encoding="utf-8")
    return f"<article>{MarkdownIt('commonmark').enable('table').render(text)}</article>"


def shape(html: str) -> dict[str, int]:
    """How many items of lists, rows of tables, pictures and headings a page has."""
    (article,) = re.findall(r"<article.*?</article>", html, flags=re.DOTALL)
    return {tag: len(re.findall(rf"<{tag}[ >]", article)) for tag in ("li", "tr", "img", "blockquote", "h2", "h3")}


@pytest.mark.slow
def test_the_site_is_built_whole_and_fetches_nothing(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        capture_output=True,
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    found = {
        path.relative_to(tmp_path).as_posix(): path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.html")
    }
    assert {page.removeprefix("docs/")[:-3] for page in pages() if page.startswith("docs/")} <= {
        name[:-5] for name in found
    }
    for page in (page for page in pages() if page.startswith("docs/")):
        assert shape(found[f"{page.removeprefix('docs/')[:-3]}.html"]) == shape(as_on_github(page)), page
    docstrings = "".join(text for name, text in found.items() if name.startswith("reference/api/"))
    assert [name for name in chunkcore.__all__ if f'id="chunkcore.{name}"' not in docstrings] == []
    no_code = re.sub(r"<pre>.*?</pre>", "", docstrings, flags=re.DOTALL)
    assert "&gt;&gt;&gt; " not in no_code, "a doctest that is no code"
    fetched = [
        re.findall(r"<(?:script|img|link rel=.stylesheet.)[^>]+(?:src|href)=.https?:", text) for text in found.values()
    ]
    assert not any(fetched)
