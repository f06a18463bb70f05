"""`DocumentNames`: which documents a name means, however a store, a loader or a file system writes it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

_NUMBER = re.compile(r"#\d+$")  # several documents of one name get numbers: tea.md#2


def plain_name(name: str) -> str:
    r"""The form in which names are compared: composed letters, forward slashes, unquoted, without ``file://``.

    >>> plain_name("Mein%20Bericht.md"), plain_name("file:///srv/tea.md"), plain_name("notes\\tea.md")
    ('Mein Bericht.md', '/srv/tea.md', 'notes/tea.md')
    """
    plain = name.strip().replace("\\", "/")
    if plain.startswith("file:"):
        plain = urlsplit(plain).path
    return unicodedata.normalize("NFC", unquote(plain))


class DocumentNames:
    """Finds documents by their names.

    A name means the document of that id, however it is written; else the documents whose path ends as the name does,
    or the other way round, with or without suffix. Where several documents have one name, the text has to decide.

    >>> names = DocumentNames(["files/tea.md", "ice.md", "old/ice.md", "fog.md#1", "fog.md#2"])
    >>> names.matching(["/srv/files/tea.md"]), names.matching(["other/tea.md", "ice.md"]), names.matching(["fog.md"])
    (['files/tea.md'], ['ice.md'], ['fog.md#1', 'fog.md#2'])
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self._paths: dict[str, PurePosixPath] = {}
        self._by_name: dict[str, list[str]] = {}
        self._by_file: dict[str, list[str]] = {}
        for document_id in ids:
            plain = plain_name(document_id)
            unnumbered = _NUMBER.sub("", plain)
            path = self._paths[document_id] = PurePosixPath(unnumbered)
            for name in {plain, unnumbered}:
                self._by_name.setdefault(name, []).append(document_id)
            for name in {path.name, path.stem}:
                self._by_file.setdefault(name, []).append(document_id)

    def equal(self, name: str) -> list[str]:
        """The documents whose id is this name, in any spelling."""
        if name in self._paths:
            return [name]
        return self._by_name.get(plain_name(name), [])

    def matching(self, candidates: Iterable[str], *, loosely: bool = False) -> list[str]:
        """The documents that the candidates mean, in the candidates' order, those of equal ids first.

        `loosely`: a file's name is enough, whatever its folders and suffix.
        """
        groups = self.groups(candidates, loosely=loosely)
        return list(dict.fromkeys(document_id for group in groups for document_id in group))

    def groups(self, candidates: Iterable[str], *, loosely: bool = False) -> list[list[str]]:
        """As `matching`, the documents of each name together."""
        equal: list[list[str]] = []
        by_path: list[list[str]] = []
        for name in candidates:
            same = self.equal(name)
            if same:
                equal.append(same)
            else:
                by_path.append(self._of_path(PurePosixPath(plain_name(name)), loosely))
        return [group for group in (*equal, *by_path) if group]

    def _of_path(self, path: PurePosixPath, loosely: bool) -> list[str]:
        for key in (path.name, path.stem):
            candidates = self._by_file.get(key, ())
            same = [name for name in candidates if loosely or _same_file(path, self._paths[name])]
            if same:
                return same
        return []


def _same_file(one: PurePosixPath, other: PurePosixPath) -> bool:
    """Whether the shorter path is the end of the longer one; one of them may lack the suffix."""
    depth = min(len(one.parts), len(other.parts)) - 1
    if depth > 0 and one.parts[:-1][-depth:] != other.parts[:-1][-depth:]:
        return False
    return one.name in (other.name, other.stem) or other.name == one.stem
