"""The files of a folder, one after the other, in the order of their paths, with one folder's names in memory."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from chunkcore.errors import DataError
from chunkcore.outputs import written_names

__all__ = ["FolderWalk", "as_utf8"]


def _raise(path: Path, error: OSError) -> None:
    raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


class FolderWalk:
    """Each regular file in a folder, at any depth: its path relative to the folder, by which they are sorted, and it.

    Names that begin with a dot are passed over, and links to folders, which may lead around in a circle. So is what
    chunkcore wrote earlier: `written` has it after the walk. Memory grows with the largest single folder (about
    100 bytes a name) and with the depth, never with the number of all files.

    Args:
        root: the folder.
        on_error: told of a folder that cannot be listed. By default that is a `DataError`.
    """

    def __init__(self, root: Path, on_error: Callable[[Path, OSError], None] = _raise) -> None:
        self.root = root
        self.written: list[Path] = []
        self._on_error = on_error

    def __iter__(self) -> Iterator[tuple[str, Path]]:
        self.written = []
        waiting = [self._names("")]
        while waiting:
            for name in waiting[-1]:
                if name.endswith("/"):
                    waiting.append(self._names(name))
                    break
                yield as_utf8(name), self.root / name
            else:
                waiting.pop()

    def _names(self, folder: str) -> Iterator[str]:
        """Paths of what a folder holds, those of folders with a slash at the end: so sorted, whole paths are."""
        folders: list[str] = []
        files: set[str] = set()
        try:
            with os.scandir(self.root / folder) as entries:
                for entry in entries:
                    if entry.name.startswith("."):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(f"{folder}{entry.name}/")
                    elif _is_file(entry):
                        files.add(entry.name)
        except OSError as error:
            self._on_error(self.root / folder, error)
        written = set(written_names(files))
        self.written.extend(self.root / folder / name for name in sorted(written))
        return iter(sorted([*folders, *(folder + name for name in files - written)], key=as_utf8))


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether it is a file or leads to one; a link to itself leads nowhere."""
    try:
        return entry.is_file()
    except OSError as error:
        return error.errno != errno.ELOOP  # whoever reads it is told what is wrong, and has all others


def as_utf8(name: str) -> str:
    """A file's name read as UTF-8, so that ids and their order do not depend on the encoding that is set here.

    Where that is another one, Python has read the name in it. Bytes that are no UTF-8 are unpaired surrogates.
    """
    if sys.getfilesystemencoding().lower() == "utf-8":
        return name
    return os.fsencode(name).decode("utf-8", "surrogateescape")
