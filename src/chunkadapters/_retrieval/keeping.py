"""`KeptAnswers`: what a retriever answered, in a file, so that a run that was interrupted goes on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any

from chunkadapters._retrieval.pieces import Piece
from chunkcore.appending import append_lines
from chunkcore.document import Span
from chunkcore.errors import DataError

__all__ = ["KeptAnswers"]

_FORMAT = "chunkadapters answers 2"


class KeptAnswers:
    """A file of JSON lines: which system, then a line a question that it answered.

    Answers are kept as they came, and located anew each time. A last line that is not whole, as a process leaves it
    that was killed, is cut off.

    Args:
        path: the file, which need not be there; None to keep nothing.
        system: whose answers these are.
        settings: a mark of what that system is set to.

    Raises:
        DataError: the file is another one, of another system or other settings, damaged before its end, or cannot be
            written.
    """

    def __init__(self, path: Path | str | None, system: str, settings: str = "") -> None:
        self._path = None if path is None else Path(path)
        self._system = system
        self._settings = settings
        self._known: dict[str, list[Piece]] = {}
        self._file: FileIO | None = None

    def __enter__(self) -> KeptAnswers:
        if self._path is None:
            return self
        try:
            self._file = self._path.open("a+b", buffering=0)
            self._file.seek(0)
            data = self._file.read()
        except OSError as error:
            raise DataError(f"{self._path} cannot be read and written: {error.strerror or error}") from error
        try:
            self._take(data)
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()

    def fetch(self, question: str) -> list[Piece] | None:
        """What was answered to a question; None where nothing was."""
        return self._known.get(question)

    def keep(self, question: str, pieces: Sequence[Piece]) -> None:
        """Write an answer down, at once."""
        self._known[question] = list(pieces)
        self._write({"question": question, "pieces": [_plain(each) for each in pieces]})

    def _write(self, entry: dict[str, Any]) -> None:
        if self._file is None:
            return
        try:
            append_lines(self._file, json.dumps(entry).encode("ascii") + b"\n")
        except OSError as error:
            raise DataError(
                f"{self._path} cannot be written: {error.strerror or error}; what was answered before is kept there"
            ) from error

    def _take(self, data: bytes) -> None:
        """Read what is there, and cut off or begin what is not whole. A file of others is left as it is."""
        whole = data.rfind(b"\n") + 1
        header = {"format": _FORMAT, "system": self._system, "settings": self._settings}
        if not whole and not json.dumps(header).encode("ascii").startswith(data):
            raise self._foreign(1)
        self._read(data[:whole].splitlines())
        if self._file is not None and whole < len(data):
            self._file.truncate(whole)
        if not whole:
            self._write(header)

    def _foreign(self, line: int, reason: str = "") -> DataError:
        return DataError(
            f"{self._path}, line {line}: expected a retriever's kept answers, found something else{reason}; "
            "name another file, or delete this one to ask again"
        )

    def _read(self, lines: Sequence[bytes]) -> None:
        system, settings = self._system, self._settings
        for number, line in enumerate(lines, start=1):
            try:
                entry = json.loads(line)
                if number == 1:
                    system, settings = _system_of(entry)
                else:
                    self._known[_text(entry["question"])] = [_piece(each) for each in entry["pieces"]]
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                raise self._foreign(number, f" ({type(error).__name__})") from None
        if system != self._system:
            raise DataError(
                f"{self._path} has the answers of {system!r}, and this is {self._system!r}: name another file, or give "
                "the system its name"
            )
        if settings != self._settings:
            raise DataError(
                f"{self._path} has the answers of {system!r} with other settings: name another file, or delete this "
                "one to ask again"
            )


def _system_of(header: Any) -> tuple[str, str]:
    if header["format"] != _FORMAT:
        raise ValueError
    return _text(header["system"]), _text(header["settings"])


def _plain(piece: Piece) -> dict[str, Any]:
    return {
        "text": piece.text,
        "score": piece.score,
        "document_ids": piece.document_ids,
        "spans": [[span.start, span.end] for span in piece.spans],
        "derived": piece.derived,
    }


def _piece(entry: Any) -> Piece:
    return Piece(
        text=_text(entry["text"]),
        score=float(entry["score"]),
        document_ids=tuple(_text(each) for each in entry["document_ids"]),
        spans=tuple(Span(start, end) for start, end in entry["spans"]),
        derived=entry["derived"] is True,
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
