"""Which files a path holds, and a look at their beginnings, by which layouts are recognised."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path

__all__ = ["begins_with", "data_files", "lacking", "lacks_keys", "regular_files", "with_keys"]

_HEAD = 1024**2  # bytes of a JSON file whose keys are looked at
_KEY = re.compile(rb'"([A-Za-z_][A-Za-z0-9_]*)"\s*:')


def lacking(root: Path, *names: str) -> str:
    """Which of these files and folders a folder does not have; a pattern such as ``qrels/*.tsv`` needs one match."""
    return " and ".join(name for name in names if not (root.is_dir() and any(root.glob(name))))


def data_files(root: Path, suffixes: Collection[str] = ()) -> list[Path]:
    """The file itself, or a folder's files of these suffixes (of any, where none is given), by name."""
    if not root.is_dir():
        return [root] if root.is_file() else []
    return sorted(
        file
        for file in root.iterdir()
        if file.is_file() and not file.name.startswith(".") and (not suffixes or file.suffix.lower() in suffixes)
    )


def with_keys(root: Path, keys: Collection[str], suffixes: Collection[str] = ()) -> list[Path]:
    """Those of the files whose first megabyte has all of these as keys of JSON objects."""
    return [file for file in data_files(root, suffixes) if set(keys) <= _keys_seen(file)]


def lacks_keys(root: Path, keys: Collection[str], suffixes: Collection[str] = ()) -> str:
    """What is missing where `with_keys` finds no file, in words."""
    kind = f"{' or '.join(suffixes)} file" if suffixes else "JSON file"
    return "" if with_keys(root, keys, suffixes) else f"a {kind} with the keys {', '.join(keys)}"


def regular_files(root: Path) -> Iterator[Path]:
    """Every file below a folder, or the file itself, in the order of their paths.

    Hidden ones are passed over, and links to folders, which may lead around in a circle.
    """
    if root.is_file():
        yield root
    elif root.is_dir():
        for each in sorted(root.iterdir()):
            if not each.name.startswith(".") and not (each.is_symlink() and each.is_dir()):
                yield from regular_files(each)


def begins_with(root: Path, mark: bytes, *, looked_at: int = 20) -> bool:
    """Whether one of the first files begins with a mark."""
    return any(_head(file, len(mark)) == mark for _, file in zip(range(looked_at), regular_files(root), strict=False))


def _keys_seen(file: Path) -> set[str]:
    return {found.decode("ascii") for found in _KEY.findall(_head(file, _HEAD))}


def _head(file: Path, size: int) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(size)
    except OSError:
        return b""  # whoever reads it as the layout that was asked for is told
