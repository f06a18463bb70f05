"""The site's search in pages that are opened as files: a worker's script runs where browsers start no worker."""

from __future__ import annotations

from pathlib import Path

from integration_tests.browser import Browser

ROOT = Path(__file__).resolve().parents[1]


def test_a_worker_answers_in_a_page_that_was_opened_as_a_file(tab: Browser, tmp_path: Path) -> None:
    (tmp_path / "shim.js").write_text((ROOT / "docs" / "iframe-worker.js").read_text("utf-8"))
    (tmp_path / "double.js").write_text('addEventListener("message", (each) => postMessage(2 * each.data));')
    page = tmp_path / "page.html"
    page.write_text('<!doctype html><meta charset="utf-8"><title>Search</title><script src="shim.js"></script>')
    tab.open(page)
    asked = """new Promise((done) => {
      const worker = new Worker("double.js"), found = [];
      worker.addEventListener("message", (each) => { found.push(each.data); if (found.length === 2) done(found); });
      worker.postMessage(4); worker.postMessage(5);
    })"""
    assert tab.ask(asked) == [8, 10]
    assert not tab.errors
