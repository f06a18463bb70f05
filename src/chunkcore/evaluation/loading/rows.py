"""What every layout is read as: rows like the lines of our own JSONL files, each with its place for messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from chunkcore.document import Document
from chunkcore.errors import DataError

__all__ = ["Contents", "Holds", "Layout", "Row", "brief", "member", "members", "shown_type"]

Row = tuple[str, Mapping[str, Any]]
Holds = Literal["evidence", "answers", "boundaries"]
T = TypeVar("T")

_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "a whole number",
    bool: "true or false",
    float: "a number",
    type(None): "null",
}


class Contents(NamedTuple):
    """Documents, and rows of questions about them, which `QuestionReader` reads."""

    documents: list[Document]
    questions: Iterable[Row] = ()


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How a public collection lies on a disk, and how it is read.

    Attributes:
        name: what it is asked for by.
        files: what it looks like, in a line.
        holds: what its questions come with: evidence; answers, and no evidence; or no questions, but texts whose
            sections are known.
        lacks: what a path lacks to be of this layout, in words; "" where it is of it.
        read: what the path holds. The second argument names the questions' file, where the user did.
        boundaries: where sections of its texts are known, rows ``{"id", "text", "boundaries"}`` of them.
        takes_questions: whether the questions' file may be named.
    """

    name: str
    files: str
    holds: Holds
    lacks: Callable[[Path], str]
    read: Callable[[Path, Path | None], Contents]
    boundaries: Callable[[Path], Iterable[Row]] | None = None
    takes_questions: bool = False


def member(value: Any, key: str, kind: type[T], place: str, default: T | None = None) -> T:
    """What an object holds under a key; the default, where there is one, for nothing or null.

    Raises:
        DataError: it is no object, has no such key, or something else under it.

    >>> member({"qas": []}, "qas", list, "dev.json, data[0]")
    []
    """
    if not isinstance(value, Mapping):
        raise DataError(f"{place}: expected an object, got {shown_type(value)}")
    if default is not None and value.get(key) is None:
        return default
    if key not in value:
        raise DataError(f"{place}: there is no {key!r}, but {', '.join(map(repr, list(value)[:9])) or 'nothing'}")
    return _checked(value[key], kind, f"{place}: expected {key!r} to be")


def members(value: Any, key: str, kind: type[T], place: str, default: list[T] | None = None) -> list[T]:
    """What a list holds that is under a key of an object.

    Raises:
        DataError: there is no such list, or something else in it.

    >>> members({"options": ["He", "She"]}, "options", str, "dev.json, data[0]")
    ['He', 'She']
    """
    listed = member(value, key, list, place, default)
    return [_checked(each, kind, f"{place}.{key}[{number}]: expected") for number, each in enumerate(listed)]


def _checked(found: object, kind: type[T], expected: str) -> T:
    if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
        raise DataError(f"{expected} {_KINDS[kind]}, got {shown_type(found)}")
    return found


def brief(place: str, file: Path) -> str:
    """A place in a file by the file's name: what a list of many such places has room for.

    >>> brief("/data/dev.json, data[0]", Path("/data/dev.json"))
    'dev.json, data[0]'
    """
    return place.replace(str(file), file.name, 1)


def shown_type(value: object) -> str:
    """What a JSON value is, in words.

    >>> shown_type([1]), shown_type(True)
    ('a list', 'true or false')
    """
    return _KINDS.get(type(value), type(value).__name__)
