"""Datasets of texts with known sections, without questions: Wiki-727k and WIKI-50, Choi."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from chunkcore.evaluation.benchmarks.documents import Row
from chunkcore.evaluation.benchmarks.layout import Layout, TextBuilder, begins_with, layouts, regular_files
from chunkcore.files import text_lines

_HEADING = re.compile(r"========,(\d+),(.*)")
_RULE = "=========="


@layouts.register("choi")
class Choi(Layout):
    """Choi (2000): segments of ten texts each, joined."""

    files = "*.ref with lines of ==========, at any depth"
    by_content = True
    holds = "boundaries"
    tells_sections = True

    def lacks(self, root: Path) -> str:
        return "" if begins_with(root, _RULE.encode()) else f"a file that begins with a line {_RULE}"

    def sections(self, root: Path) -> Iterable[Row]:
        """A text per file: a sentence per line, segments between lines of ``==========``."""
        for name, file in _named(root, ".ref"):
            text = _Sectioned()
            for _, line in text_lines(file):
                if line.strip() == _RULE:
                    text.begin_section()
                else:
                    text.add_sentence(line)
            yield str(file), text.row(name)


@layouts.register("wiki727k")
class Wiki727k(Layout):
    """Wiki-727k (Koshorek et al., 2018): articles with their sections."""

    files = "files with lines of ========,level,title. at any depth (WIKI-50, too)"
    by_content = True
    holds = "boundaries"
    tells_sections = True

    def lacks(self, root: Path) -> str:
        return "" if begins_with(root, b"========,") else "a file that begins with ========,"

    def sections(self, root: Path) -> Iterable[Row]:
        """An article per file: a sentence per line, sections under lines of ``========,level,title.``.

        The text is the sentences joined by line feeds. Headings are in ``metadata["headings"]``: [offset, level,
        title].
        """
        for name, file in _named(root):
            text = _Sectioned()
            for _, line in text_lines(file):
                found = _HEADING.match(line.rstrip("\r\n"))
                if found:
                    text.begin_section(int(found[1][:9]), found[2].removesuffix("."))
                else:
                    text.add_sentence(line)
            yield str(file), {**text.row(name), "headings": text.headings}


class _Sectioned:
    def __init__(self) -> None:
        self.headings: list[list[Any]] = []
        self._text = TextBuilder("\n")
        self._starts: list[int] = []
        self._sentences: list[list[int]] = []
        self._waiting: list[list[Any]] = []

    def begin_section(self, *heading: Any) -> None:
        self._waiting.append(list(heading))

    def add_sentence(self, line: str) -> None:
        span = self._text.add(line.strip())
        if span is None:
            return
        self._sentences.append([span.start, span.end])
        if self._waiting:
            self._starts += [span.start] if span.start else []
            self.headings += [[span.start, *heading] for heading in self._waiting]
            self._waiting = []

    def row(self, name: str) -> dict[str, Any]:
        return {"id": name, "text": self._text.text, "boundaries": self._starts, "sentences": self._sentences}


def _named(root: Path, suffix: str = "") -> Iterator[tuple[str, Path]]:
    for file in regular_files(root):
        if not suffix or file.suffix == suffix or file == root:
            yield (file.name if file == root else file.relative_to(root).as_posix()), file
