"""Strategies over structure on real documents: manuals, reports, pages and source code, with every parser installed."""

from __future__ import annotations

import importlib
import inspect
import re
from collections import Counter
from pathlib import Path

import pytest
from chunkcore.chunkers import Chunker, Code, Html, Markdown
from chunkcore.datasets import load_dataset
from chunkcore.text import Document
from tests.promises import check_promises

SOURCE = Path(__file__).resolve().parents[1] / "src"
MANUALS = [document for document in load_dataset("lochmere").documents if document.id.endswith(".md")]
by_id = pytest.mark.parametrize("document", MANUALS, ids=lambda document: document.id)
EVERYDAY = [{"size": 200}, {"size": 120, "minimum": 40, "maximum": 300}]


def page_of(document: Document) -> str:
    """The document as HTML."""
    from markdown_it import MarkdownIt

    return str(MarkdownIt("commonmark").enable("table").render(document.text))


@by_id
def test_every_heading_of_a_manual_opens_a_chunk_and_none_ends_one(document: Document) -> None:
    chunks = Markdown(size=120).chunk(document)
    outside_fences = re.sub(r"(?ms)^```.*?^```", "", document.text)
    titles = Counter(re.findall(r"^#{1,6} (.*?)\s*$", outside_fences, flags=re.MULTILINE))
    told: Counter[str] = Counter()
    before: list[str] = []
    for chunk in chunks:
        path = chunk.metadata["headings"]
        told.update(title for title in path if title not in before)
        before = path
        last = chunk.text.splitlines()[-1]
        assert not re.match(r"#{1,6} ", last)
    assert set(told) == set(titles)


@by_id
def test_rows_of_a_manual_are_whole_and_stand_under_their_header(document: Document) -> None:
    lines = document.text.splitlines()
    chunks = [chunk.text.splitlines() for chunk in Markdown(size=60, maximum=120).chunk(document)]
    for number, line in enumerate(lines):
        if re.match(r"\|[-:| ]*-[-:| ]*\|$", line):
            header = lines[number - 1 : number + 1]
            for row in lines[number + 1 :]:
                if not row.startswith("|"):
                    break
                holders = [chunk for chunk in chunks if row in chunk]
                assert holders
                assert any(header[0] in chunk and header[1] in chunk for chunk in holders)


@pytest.mark.parametrize("options", EVERYDAY, ids=str)
@by_id
def test_the_promises_hold_for_pages(options: dict[str, int], document: Document) -> None:
    check_promises(Html(**options), page_of(document))


@by_id
def test_a_page_has_the_headings_of_the_manual_that_it_was_made_from(document: Document) -> None:
    def titles(chunker: Chunker, text: str) -> list[str]:
        found = [title for chunk in chunker.chunk(Document("d", text)) for title in chunk.metadata["headings"]]
        return list(dict.fromkeys(re.sub(r"[*`\\]", "", title) for title in found))

    page = page_of(document)
    assert titles(Html(size=150), page) == titles(Markdown(size=150), document.text)
    # Pages of text alone hold each word of the page.
    words = " ".join(chunk.text for chunk in Html(size=150).chunk(Document("d.html", page))).split()
    outside_blocks = re.sub(r"</?(?:a|code|em|strong)\b[^>]*>", "", page)
    visible = re.sub(r"<[^>]*>", " ", outside_blocks).split()
    assert Counter(words) >= Counter(set(visible))


@pytest.mark.parametrize("path", sorted(SOURCE.glob("chunkcore/*/*.py")), ids=lambda path: "/".join(path.parts[-2:]))
def test_definitions_of_this_package_are_whole(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    chunker = Code(size=300, maximum=2000)
    document = Document(str(path), text)
    check_promises(chunker, text)
    chunks = chunker.chunk(document)
    name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    module = importlib.import_module(name)
    for _, function in inspect.getmembers(module, inspect.isfunction):
        if function.__module__ == name and function.__code__.co_filename == str(path):
            source = inspect.getsource(function).rstrip()
            assert any(source in chunk.text for chunk in chunks) or chunker.token_counter.count(source) > 2000
