"""`DocumentNames`: which documents a name means, however a store, a loader or a file system writes it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

_NUMBER = re.compile(r"#\d+$")  # several documents of one name get numbers: tea.md#2
_FRAGMENT = re.compile(r"#[^/#]*$")  # of an address, as in tea.pdf#page=2


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
    or the other way round, with or without suffix or the fragment of an address (tea.pdf#page=2). Where several
    documents have one name, the text has to decide.

    >>> names = DocumentNames(["files/tea.md", "ice.md", "old/ice.md", "fog.md#1", "fog.md#2"])
    >>> names.groups(["/srv/files/tea.md"]), names.groups(["other/tea.md", "ice.md"]), names.groups(["fog.md"])
    ([['files/tea.md']], [['ice.md']], [['fog.md#1', 'fog.md#2']])
    >>> names.groups(["tea.md#page=2"])
    [['files/tea.md']]
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self._paths: dict[str, PurePosixPath] = {}
        self._by_name: dict[str, list[str]] = {}
        self._by_file: dict[str, list[str]] = {}
        for document_id in ids:
            plain = plain_name(document_id)
            unnumbered = _NUMBER.sub("", plain)
            path = PurePosixPath(unnumbered)
            self._paths[document_id] = path
            for name in {plain, unnumbered}:
                self._by_name.setdefault(name, []).append(document_id)
            for name in {path.name, path.stem}:
                self._by_file.setdefault(name, []).append(document_id)

    def groups(self, candidates: Iterable[str], *, loosely: bool = False) -> list[list[str]]:
        """The documents of each name, in the names' order, those of equal ids first.

        `loosely`: a file's name is enough, whatever its folders and suffix.
        """
        by_id, by_path = [], []
        for name in candidates:
            plain = plain_name(name)
            if name in self._paths:
                by_id.append([name])
            elif plain in self._by_name:
                by_id.append(self._by_name[plain])
            else:
                path = PurePosixPath(_FRAGMENT.sub("", plain) or plain)
                by_path.append(self._of_path(path, loosely))
        return by_id + [group for group in by_path if group]

    def _of_path(self, path: PurePosixPath, loosely: bool) -> list[str]:
        for key in (path.name, path.stem):
            candidates = self._by_file.get(key, [])
            same = [name for name in candidates if loosely or _same_file(path, self._paths[name])]
            if same:
                return same
        return []


def _same_file(one: PurePosixPath, other: PurePosixPath) -> bool:
    """Whether the shorter path is the end of the longer one; one of them may lack the suffix."""
    folders = zip(one.parts[-2::-1], other.parts[-2::-1], strict=False)
    for folder, other_folder in folders:
        if folder != other_folder:
            return False
    return one.name in (other.name, other.stem) or other.name == one.stem
