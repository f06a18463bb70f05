"""Which files a path holds, and a look at their beginnings, by which layouts are recognised."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path

__all__ = ["begins_with", "data_files", "lacking", "lacks_keys", "listed", "regular_files", "with_keys"]

_HEAD = 1024**2  # bytes of a JSON file whose keys are looked at
_LOOKED_AT = 100  # files of a folder, which may have very many, by which a layout is recognised
_NAMED = 5  # files that a message names
_KEY = re.compile(rb'"([A-Za-z_][A-Za-z0-9_]*)"\s*:')


def lacking(root: Path, *names: str) -> str:
    """Which of these files and folders a folder does not have; a pattern such as ``qrels/*.tsv`` needs one match."""
    return " and ".join(name for name in names if not (root.is_dir() and any(root.glob(name))))


def data_files(root: Path, suffixes: Collection[str]) -> list[Path]:
    """The file itself, or a folder's files of these suffixes, by name."""
    if not root.is_dir():
        return [root] if root.is_file() else []
    return sorted(
        file
        for file in root.iterdir()
        if file.is_file() and not file.name.startswith(".") and file.suffix.lower() in suffixes
    )


def with_keys(root: Path, keys: Collection[str], suffixes: Collection[str]) -> list[Path]:
    """Those of the files whose first megabyte has all of these as keys of JSON objects; a warning names the others."""
    files = data_files(root, suffixes)
    found = [file for file in files if set(keys) <= _keys_seen(file)]
    others = [file.name for file in files if file not in found]
    if others:
        warnings.warn(
            f"{len(others):,} of the files in {root} left out, being of another layout: {listed(others)}", stacklevel=3
        )
    return found


def lacks_keys(root: Path, keys: Collection[str], suffixes: Collection[str]) -> str:
    """What is missing where none of the first files is of `with_keys`, in words."""
    if any(set(keys) <= _keys_seen(file) for file in data_files(root, suffixes)[:_LOOKED_AT]):
        return ""
    return f"a {' or '.join(suffixes)} file with the keys {', '.join(keys)}"


def listed(names: Sequence[str], count: int | None = None) -> str:
    """The first of the names, and how many more there are; `count` where the names are not all that is meant.

    >>> listed(["a", "b", "c", "d", "e", "f", "g"])
    'a, b, c, d, e and 2 more'
    """
    shown = names[:_NAMED]
    others = (len(names) if count is None else count) - len(shown)
    return f"{', '.join(shown)}{f' and {others:,} more' if others else ''}"


def regular_files(root: Path) -> Iterator[Path]:
    """Every file below a folder, or the file itself, in the order of their paths.

    Hidden ones are passed over, and links to folders, which may lead around in a circle.
    """
    waiting = [root]
    while waiting:
        place = waiting.pop()
        if place.is_file():
            yield place
        elif place.is_dir():
            inside = [each for each in place.iterdir() if not each.name.startswith(".")]
            waiting += sorted((each for each in inside if not (each.is_symlink() and each.is_dir())), reverse=True)


def begins_with(root: Path, mark: bytes) -> bool:
    """Whether one of the first files begins with a mark."""
    return any(_head(file, len(mark)) == mark for file in islice(regular_files(root), _LOOKED_AT))


def _keys_seen(file: Path) -> set[str]:
    return {found.decode("ascii") for found in _KEY.findall(_head(file, _HEAD))}


def _head(file: Path, size: int) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(size)
    except OSError:
        return b""  # whoever reads it as the layout that was asked for is told
