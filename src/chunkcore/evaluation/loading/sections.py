"""Texts whose sections are known: Wiki-727k and WIKI-50 (Koshorek et al., 2018), and Choi (2000)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from chunkcore.evaluation.loading.building import TextBuilder
from chunkcore.evaluation.loading.documents import documents_of
from chunkcore.evaluation.loading.files import begins_with, regular_files
from chunkcore.evaluation.loading.rows import Contents, Layout, Row
from chunkcore.evaluation.textfiles import text_lines

__all__ = ["CHOI", "WIKI727K"]

_HEADING = re.compile(r"========,(\d+),(.*)")
_RULE = "=========="


def _wiki(root: Path) -> Iterator[Row]:
    """An article a file: a sentence a line, sections under lines of ``========,level,title.``.

    The text is the sentences with line feeds between; headings are no part of it, and stand in
    ``metadata["headings"]`` as [offset, level, title].
    """
    for name, file in _named(root):
        heads: list[tuple[int, str]] = []
        text, starts, sentences = TextBuilder("\n"), [], []
        headings: list[list[Any]] = []
        for _, line in text_lines(file):
            found = _HEADING.match(line.rstrip("\r\n"))
            if found:
                heads.append((int(found[1][:9]), found[2].removesuffix(".")))
                continue
            span = text.add(line.strip())
            if span is None:
                continue
            sentences.append([span.start, span.end])
            if heads:
                starts += [span.start] if span.start else []
                headings += [[span.start, level, title] for level, title in heads]
                heads = []
        told = {"id": name, "text": text.text, "boundaries": starts, "sentences": sentences, "headings": headings}
        yield str(file), told


def _choi(root: Path) -> Iterator[Row]:
    """A text a file: a sentence a line, segments between lines of ``==========``."""
    for name, file in _named(root, ".ref"):
        text, starts, sentences, begins = TextBuilder("\n"), [], [], False
        for _, line in text_lines(file):
            if line.strip() == _RULE:
                begins = True
                continue
            span = text.add(line.strip())
            if span is None:
                continue
            starts += [span.start] if begins and span.start else []
            begins = False
            sentences.append([span.start, span.end])
        yield str(file), {"id": name, "text": text.text, "boundaries": starts, "sentences": sentences}


def _named(root: Path, suffix: str = "") -> Iterator[tuple[str, Path]]:
    """The files of a folder, by their paths in it."""
    for file in regular_files(root):
        if not suffix or file.suffix == suffix or file == root:
            yield (file.name if file == root else file.relative_to(root).as_posix()), file


def _texts(rows: Iterable[Row]) -> Contents:
    return Contents(documents_of(rows))


WIKI727K = Layout(
    name="wiki727k",
    files="files with lines of ========,level,title. at any depth (WIKI-50, too)",
    holds="boundaries",
    lacks=lambda root: "" if begins_with(root, b"========,") else "a file that begins with ========,",
    read=lambda root, _: _texts(_wiki(root)),
    boundaries=_wiki,
)
CHOI = Layout(
    name="choi",
    files="*.ref with lines of ==========, at any depth",
    holds="boundaries",
    lacks=lambda root: "" if begins_with(root, _RULE.encode()) else f"a file that begins with a line {_RULE}",
    read=lambda root, _: _texts(_choi(root)),
    boundaries=_choi,
)
