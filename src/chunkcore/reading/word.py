"""What converters of Word files leave out: text boxes, the numbers of lists that go on, lines around the page."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

from chunkcore.lazy import needed

if TYPE_CHECKING:
    from lxml.etree import _Element

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_CHOICE = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Choice"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_DOCUMENT = "word/document.xml"
_RUNNING = re.compile(r"word/(?:header|footer)\d*\.xml")
_NUMBER = "\ue000"  # stands around the number of a list's item while the file is converted
_ITEM = re.compile(f"(?:\\d+\\. )?{_NUMBER}(\\d+){_NUMBER}")


def prepared(data: bytes) -> bytes:
    """The file with its text boxes as paragraphs, and before each numbered item its number, for `numbered`."""
    files = _files(data)
    body = _xml(files[_DOCUMENT])
    boxes = list(body.iter(f"{_W}txbxContent"))
    for box in boxes:
        _move_out(box)
    lists = _Lists.of(files)
    for paragraph in body.iter(f"{_W}p"):
        number = lists.next_number(paragraph)
        if number is not None:
            _write_before(paragraph, f"{_NUMBER}{number}{_NUMBER}")
    files[_DOCUMENT] = needed("lxml.etree", "office", "read DOCX").tostring(body)
    target = BytesIO()
    with ZipFile(target, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target.getvalue()


def numbered(markdown: str) -> str:
    """The converted text, its items with the numbers that `prepared` wrote."""
    return _ITEM.sub(r"\1. ", markdown)


def running_lines(data: bytes) -> list[str]:
    """The lines of the file's headers and footers, each once."""
    files = _files(data)
    names = sorted(name for name in files if _RUNNING.fullmatch(name))
    roots = [_xml(files[name]) for name in names]
    texts = [_text(paragraph) for root in roots for paragraph in root.iter(f"{_W}p")]
    return [text for text in dict.fromkeys(texts) if text]


def _files(data: bytes) -> dict[str, bytes]:
    with ZipFile(BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _xml(content: bytes) -> _Element:
    etree: Any = needed("lxml.etree", "office", "read DOCX")
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    root: _Element = etree.fromstring(content, parser)
    return root


def _text(paragraph: _Element) -> str:
    return " ".join("".join(node.text or "" for node in paragraph.iter(f"{_W}t")).split())


def _move_out(box: _Element) -> None:
    """Put a box's paragraphs after the paragraph that it is anchored in; of two forms of one box the first."""
    parent = box.getparent()
    paragraph = next(box.iterancestors(f"{_W}p"), None)
    fallback = next(box.iterancestors(_FALLBACK), None)
    if parent is None:
        return
    parent.remove(box)
    if paragraph is None:
        return
    if fallback is not None:
        choices = fallback.itersiblings(_CHOICE, preceding=True)
        if any(choice.get("moved") for choice in choices):
            return
    for choice in parent.iterancestors(_CHOICE):
        choice.set("moved", "1")
    for child in reversed(box):
        paragraph.addnext(child)


def _write_before(paragraph: _Element, text: str) -> None:
    run = paragraph.makeelement(f"{_W}r", {}, None)
    node = paragraph.makeelement(f"{_W}t", {}, None)
    node.text = text
    run.append(node)
    has_properties = len(paragraph) > 0 and paragraph[0].tag == f"{_W}pPr"
    paragraph.insert(int(has_properties), run)


@dataclass
class _Lists:
    """The numbered lists of a file, and how far each has come."""

    abstract: dict[str, str] = field(default_factory=dict)  # of a list, by its id
    starts: dict[tuple[str, str], int] = field(default_factory=dict)  # by abstract list and level
    styles: dict[str, tuple[str, str]] = field(default_factory=dict)  # a style's list and level
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    begun: set[str] = field(default_factory=set)  # lists with a first number of their own

    @classmethod
    def of(cls, files: dict[str, bytes]) -> _Lists:
        lists = cls()
        if "word/numbering.xml" in files:
            lists._add_numbering(_xml(files["word/numbering.xml"]))
        if "word/styles.xml" in files:
            for style in _xml(files["word/styles.xml"]).iter(f"{_W}style"):
                place = _place(style)
                if place is not None:
                    lists.styles[style.get(f"{_W}styleId", "")] = place
        return lists

    def _add_numbering(self, root: _Element) -> None:
        for entry in root.iter(f"{_W}abstractNum"):
            name = entry.get(f"{_W}abstractNumId", "")
            for level in entry.iter(f"{_W}lvl"):
                if _value(level, "numFmt") == "decimal":
                    start = _value(level, "start") or "1"
                    self.starts[name, level.get(f"{_W}ilvl", "0")] = int(start)
        for entry in root.iter(f"{_W}num"):
            name = entry.get(f"{_W}numId", "")
            self.abstract[name] = _value(entry, "abstractNumId")
            if next(entry.iter(f"{_W}startOverride"), None) is not None:
                self.begun.add(name)

    def next_number(self, paragraph: _Element) -> int | None:
        """The number of a paragraph; None where it is no item of a list with decimal numbers."""
        place = _place(paragraph) or self.styles.get(_value(paragraph, "pPr", "pStyle"))
        if place is None:
            return None
        name, level = place
        key = self.abstract.get(name, ""), level
        if key not in self.starts:
            return None
        if name in self.begun:
            self.begun.discard(name)
            self.counts[key] = 0
        for name, deeper in self.counts:
            if name == key[0] and deeper > level:
                self.counts[name, deeper] = 0
        self.counts[key] += 1
        return self.starts[key] + self.counts[key] - 1


def _place(element: _Element) -> tuple[str, str] | None:
    """The list and the level that a paragraph or a style names itself."""
    properties = element.find(f"{_W}pPr/{_W}numPr")
    if properties is None:
        return None
    name = _value(properties, "numId")
    return (name, _value(properties, "ilvl") or "0") if name else None


def _value(element: _Element, *path: str) -> str:
    child = element.find("/".join(f"{_W}{name}" for name in path))
    return "" if child is None else child.get(f"{_W}val", "")
