"""The pages of the strategies are what the code makes now, and their pictures show what the chunks are."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from importlib.util import find_spec
from itertools import pairwise

import pytest

from chunkcore import Chunk, Document, Span, strategies
from docs.making import picture
from docs.making.page import ROOT, index_page, make_strategy, options_of
from docs.making.shown import SAMPLE, SHOWN

OURS = [name for name, cls in strategies.items() if cls.__module__.startswith("chunkcore.")]
NEEDED = {"structure": "tree_sitter_python", "clustering": "sklearn"}
SVG = "{http://www.w3.org/2000/svg}"


def asks_a_model(name: str) -> bool:
    return "embedder" in strategies[name].option_names()


def needs(name: str) -> pytest.MarkDecorator:
    missing = NEEDED.get(SHOWN[name].extra, "chunkcore")
    return pytest.mark.skipif(find_spec(missing) is None, reason=f"{missing} is not installed")


def check_page(name: str) -> None:
    """What is committed is what the code makes."""
    for path, text in make_strategy(name).items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, f"{path} is old: python -m docs.making {name}"


def test_every_strategy_has_a_page_and_no_page_is_without_one() -> None:
    assert list(SHOWN) == OURS
    pages = {path.stem for path in (ROOT / "docs/reference/strategies").glob("*.md")} - {"index", "sample"}
    assert pages == set(OURS)
    pictures = {path.stem.split("-")[0] for path in (ROOT / "docs/images/strategies").glob("*.svg")} - {"overview"}
    assert pictures == set(OURS)


def test_the_list_is_what_the_code_makes() -> None:
    page = (ROOT / "docs/reference/strategies/index.md").read_text(encoding="utf-8")
    assert page == index_page(), "the list is old: python -m docs.making"


@pytest.mark.parametrize("name", [pytest.param(n, marks=needs(n)) for n in SHOWN if not asks_a_model(n)])
def test_a_page_without_an_embedding_model_is_what_the_code_makes(name: str) -> None:
    check_page(name)


def test_every_source_is_told_in_full() -> None:
    told = (ROOT / "docs/concepts.md").read_text(encoding="utf-8")
    assert all(f"| {shown.source} |" in told for shown in SHOWN.values() if shown.source and "'s" not in shown.source)


def test_every_option_is_told_and_has_its_default() -> None:
    found = {option.name: option for option in options_of(strategies["fixed_sentences"])}
    assert found["sentences"].default == "`5`"
    assert found["overlap"].meaning.startswith("Sentences that a chunk repeats, at least 0")
    assert list(found)[-1] == "counter"
    inherited = {option.name: option.meaning for option in options_of(strategies["single_linkage"])}
    assert inherited["splitter"].startswith('"default", "spacy", "spacy:&lt;pipeline>"')


# Pictures.

TEXT = "One two.\n\nThree & four."


def chunk(index: int, *spans: tuple[int, int], **told: object) -> Chunk:
    places = tuple(Span(*span) for span in spans)
    text = " ".join(span.slice(TEXT) for span in places)
    return Chunk("d", index, places, text, len(text.split()), **told)  # type: ignore[arg-type]


def drawn(*chunks: Chunk) -> ET.Element:
    return ET.fromstring(picture.draw(TEXT, chunks, "made by <hand>"))


def bands(root: ET.Element) -> list[tuple[str, float, float, float]]:
    """Colour, column, columns, height of each band."""
    return [
        (
            str(each.get("class")),
            (float(each.get("x", "")) - picture.LEFT) / picture.CHARACTER,
            float(each.get("width", "")) / picture.CHARACTER,
            float(each.get("height", "")),
        )
        for each in root.iter(f"{SVG}rect")
        if re.fullmatch(r"b\d", str(each.get("class")))
    ]


def test_a_band_lies_behind_each_span() -> None:
    assert bands(drawn(chunk(0, (0, 8)), chunk(1, (10, 23)))) == [("b0", 0, 8, 17), ("b1", 0, 13, 17)]


def test_spans_of_one_chunk_have_one_colour() -> None:
    found = bands(drawn(chunk(0, (0, 3), (16, 23)), chunk(1, (4, 8))))
    assert found == [("b0", 0, 3, 17), ("b1", 4, 4, 17), ("b0", 6, 7, 17)]


def test_chunks_that_overlap_share_the_height() -> None:
    root = drawn(chunk(0, (0, 5)), chunk(1, (4, 8)))
    assert bands(root) == [("b0", 0, 4, 17), ("b0", 4, 1, 8.5), ("b1", 4, 1, 8.5), ("b1", 5, 3, 17)]
    tops = [
        float(each.get("y", "")) for each in root.iter(f"{SVG}rect") if re.fullmatch(r"b\d", str(each.get("class")))
    ]
    assert tops == [picture.TOP, picture.TOP, picture.TOP + 8.5, picture.TOP]


def test_a_blank_line_inside_a_chunk_has_a_short_band() -> None:
    assert len(bands(drawn(chunk(0, (0, 23))))) == 3


def test_the_text_stands_there_letter_for_letter_and_no_row_is_too_long() -> None:
    text = (ROOT / SAMPLE).read_text(encoding="utf-8")
    root = ET.fromstring(picture.draw(text, strategies["recursive"]().chunk(Document("d", text)), ""))
    rows = [each for each in root.iter(f"{SVG}text") if each.get("textLength")]
    assert " ".join(row.text or "" for row in rows).split() == text.split()
    assert all(float(row.get("textLength", "")) == len(row.text or "") * picture.CHARACTER for row in rows)
    assert max(len(row.text or "") for row in rows) <= picture.COLUMNS


def test_what_is_known_of_a_chunk_is_told_beside_it() -> None:
    told = chunk(0, (0, 3), (4, 8), context="Numbers.", metadata={"headings": ["A", "B"]})
    texts = ["".join(each.itertext()) for each in drawn(told, chunk(1, (10, 23))).iter(f"{SVG}text")]
    assert {
        "2 tokens, 2 spans",
        "context: Numbers.",
        "A › B",
        "3 tokens",
        "made by <hand>",
        "2 chunks, 2 to 3 tokens",
    } <= {*texts}


def test_what_a_model_wrote_from_one_passage_is_one_band() -> None:
    derived = [chunk(n, (0, 8), derived=True) for n in range(2)]
    root = drawn(*derived, chunk(2, (10, 23)))
    assert bands(root)[0] == ("b0", 0, 8, 17)
    assert [each.text for each in root.iter(f"{SVG}text") if each.get("class") == "number"] == ["1–2", "3"]


def test_a_picture_says_what_it_shows_to_those_who_do_not_see_it() -> None:
    root = drawn(chunk(0, (0, 3), (4, 8)), chunk(1, (10, 23)))
    assert root.get("role") == "img"
    assert [root.findtext(f"{SVG}{part}") for part in ("title", "desc")] == [
        "made by <hand>: 2 chunks, 2 to 3 tokens",
        "Chunks and their characters: 1: 0 to 3, 4 to 8; 2: 10 to 23",
    ]


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [picture.LIGHT, picture.DARK], ids=["light", "dark"])
def test_everything_can_be_read_in_light_and_dark(scheme: tuple) -> None:
    """The contrast that WCAG 2.1 asks for: 4.5 of text, 3 of graphics."""
    (ink, quiet, paper, _), colours = scheme
    assert contrast(quiet, paper) >= 4.5
    assert all(contrast(ink, band) >= 4.5 and contrast(edge, paper) >= 4.5 for band, edge in colours)
    assert all(contrast(edge, band) >= 3 for band, edge in colours)
    assert all(one != other for one, other in pairwise(colours))
