"""The pages of the chunkers are what the code makes now, and their pictures show what the chunks are."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from importlib.util import find_spec

import pytest
from chunkcore import Chunk, Document, Span
from chunkcore.chunkers import chunkers
from docs.making import picture
from docs.making.page import ROOT, index_page, make_page, options_of
from docs.making.shown import SAMPLE, SHOWN

OURS = [name for name, cls in chunkers.items() if cls.__module__.startswith("chunkcore.")]
NEEDED = {"structure": "tree_sitter_python", "clustering": "sklearn"}
SVG = "{http://www.w3.org/2000/svg}"


def asks_a_model(name: str) -> bool:
    return "embedder" in chunkers[name].option_names()


def needs(name: str) -> pytest.MarkDecorator:
    missing = NEEDED.get(SHOWN[name].extra, "chunkcore")
    return pytest.mark.skipif(find_spec(missing) is None, reason=f"{missing} is not installed")


def check_page(name: str) -> None:
    """What is committed is what the code makes."""
    for path, text in make_page(name).items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, f"{path} is old: python -m docs.making {name}"


def test_every_strategy_has_a_page_and_no_page_is_without_one() -> None:
    assert list(SHOWN) == OURS
    pages = {path.stem for path in (ROOT / "docs/reference/chunkers").glob("*.md")} - {"index", "sample"}
    assert pages == set(OURS)
    pictures = {path.stem.split("-")[0] for path in (ROOT / "docs/images/chunkers").glob("*.svg")} - {"overview"}
    assert pictures == set(OURS)


def test_the_list_is_what_the_code_makes() -> None:
    page = (ROOT / "docs/reference/chunkers/index.md").read_text(encoding="utf-8")
    assert page == index_page(), "the list is old: python -m docs.making"


@pytest.mark.parametrize("name", [pytest.param(n, marks=needs(n)) for n in SHOWN if not asks_a_model(n)])
def test_a_page_without_an_embedding_model_is_what_the_code_makes(name: str) -> None:
    check_page(name)


def test_every_source_is_told_in_full() -> None:
    told = (ROOT / "docs/concepts.md").read_text(encoding="utf-8")
    assert all(f"| {shown.source} |" in told for shown in SHOWN.values() if shown.source and "'s" not in shown.source)


def test_every_option_is_told_and_has_its_default() -> None:
    found = {option.name: option for option in options_of(chunkers["fixed_sentences"])}
    assert found["sentences"].default == "`5`"
    assert found["overlap"].meaning.startswith("Sentences that a chunk repeats, at least 0")
    assert list(found)[-1] == "counter"
    inherited = {option.name: option.meaning for option in options_of(chunkers["single_linkage"])}
    assert inherited["splitter"].startswith('"default", "spacy", "spacy:&lt;pipeline>"')


# Pictures.

TEXT = "One two.\n\nThree & four."


def chunk(index: int, *spans: tuple[int, int], **told: object) -> Chunk:
    places = tuple(Span(*span) for span in spans)
    text = " ".join(span.slice(TEXT) for span in places)
    return Chunk("d", index, places, text, len(text.split()), **told)  # type: ignore[arg-type]


def drawn(*chunks: Chunk) -> ET.Element:
    return ET.fromstring(picture.draw(TEXT, chunks, "made by <hand>"))


def test_the_text_stands_there_letter_for_letter_and_no_row_is_too_long() -> None:
    text = (ROOT / SAMPLE).read_text(encoding="utf-8")
    root = ET.fromstring(picture.draw(text, chunkers["recursive"]().chunk(Document("d", text)), ""))
    rows = [each for each in root.iter(f"{SVG}text") if each.get("textLength")]
    assert " ".join(row.text or "" for row in rows).split() == text.split()
    assert all(float(row.get("textLength", "")) == len(row.text or "") * picture.CHARACTER for row in rows)
    assert max(len(row.text or "") for row in rows) <= picture.COLUMNS


def test_a_picture_says_what_it_shows_to_those_who_do_not_see_it() -> None:
    root = drawn(chunk(0, (0, 3), (4, 8)), chunk(1, (10, 23)))
    assert root.get("role") == "img"
    assert [root.findtext(f"{SVG}{part}") for part in ("title", "desc")] == [
        "made by <hand>: 2 chunks, 2 to 3 tokens",
        "Chunks and their characters: 1: 0 to 3, 4 to 8; 2: 10 to 23",
    ]
