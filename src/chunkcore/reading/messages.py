"""E-mail (``.eml``) and notebooks (``.ipynb``) as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email import policy
from email.header import decode_header, make_header
from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from typing import Any

from chunkcore.document import Document, Mark, Span
from chunkcore.errors import MissingExtraError
from chunkcore.files import read_json
from chunkcore.reading.base import Reader, Reading, UnreadError, decode_text, readers
from chunkcore.reading.markup import MarkdownText, add_html

_SHOWN = ("From", "To", "Cc", "Date")


@readers.register("e-mail")
class Email(Reader):
    """An e-mail: its subject as a heading, sender, receivers and date, and the text part of it and of what it forwards.

    Of a mail in HTML alone the visible text. Attachments are named in ``metadata["attachments"]``, and not read.
    """

    endings = ("eml",)

    def read(self, path: Path, name: str) -> Reading:
        with path.open("rb") as file:
            message = BytesParser(policy=policy.compat32).parse(file)
        text = MarkdownText()
        attachments: list[str] = []
        self._write(message, text, attachments, path)
        if not text.size:
            raise UnreadError(path, "is an e-mail without a text: take it out")
        metadata: dict[str, Any] = {"format": "markdown"}
        metadata |= {key: value for key in ("subject", "from", "to", "date") if (value := _header(message, key))}
        if attachments:
            metadata["attachments"] = attachments
        return Reading(Document(name, text.text, metadata, tuple(text.marks)))

    def _write(self, message: Message, text: MarkdownText, attachments: list[str], path: Path) -> None:
        waiting: list[Message] = [message]
        while waiting:
            part = waiting.pop()
            if any(key in part for key in ("subject", "from", "date")):  # a part of a mail has none of these
                text.heading(1, _header(part, "subject"))
                text.paragraph("\n".join(f"{key}: {value}" for key in _SHOWN if (value := _header(part, key))))
            kind = part.get_content_type()
            if part.is_multipart():
                parts = [each for each in part.get_payload() if isinstance(each, Message)]
                if kind == "multipart/alternative":
                    parts = _preferred(parts)
                waiting += reversed(parts)
            elif part.get_filename() or part.get_content_disposition() == "attachment" or not kind.startswith("text/"):
                attachments.append(_plain(part.get_filename() or kind))
            elif kind == "text/html":
                try:
                    add_html(text, _body(part, path))
                except MissingExtraError as error:
                    raise UnreadError(path, f"is an e-mail in HTML: {error}") from error
            else:
                text.verbatim(_body(part, path).replace("\r\n", "\n"))


def _preferred(parts: list[Message]) -> list[Message]:
    kinds = [part.get_content_type() for part in parts]
    for kind in ("text/plain", "text/html"):
        if kind in kinds:
            return [parts[kinds.index(kind)]]
    return parts[-1:]


def _header(message: Message, key: str) -> str:
    value = message.get(key)
    return "" if value is None else _plain(value)


def _plain(value: Any) -> str:
    try:
        found = str(make_header(decode_header(value)))
    except (LookupError, ValueError, TypeError, AttributeError):  # an unknown charset, or damaged
        found = str(value)
    return " ".join(found.split())


def _body(part: Message, path: Path) -> str:
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes) or not data:
        return ""
    try:
        return data.decode(part.get_content_charset() or "utf-8")
    except (LookupError, ValueError):
        return decode_text(data, path)[0]


_DATA = re.compile(r"data:[\w.+/-]+;base64,[A-Za-z0-9+/=\s]{40,}")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@readers.register("notebook")
class Notebook(Reader):
    """A Jupyter notebook: Markdown cells as they are, code cells and outputs in text as fenced code.

    Marks ``cell`` have the cell's ``number`` from 1 and its ``type``. Pictures are left out.
    """

    endings = ("ipynb",)

    def read(self, path: Path, name: str) -> Reading:
        data = read_json(path)
        cells = data.get("cells") if isinstance(data, dict) else None
        if cells is None and isinstance(data, dict):  # of version 3
            sheets = data.get("worksheets")
            cells = (
                sheets[0].get("cells") if isinstance(sheets, list) and sheets and isinstance(sheets[0], dict) else None
            )
        if not isinstance(cells, list):
            raise UnreadError(path, "is no notebook: expected an object with cells")
        language = _language(data)
        text = MarkdownText()
        for number, cell in enumerate((each for each in cells if isinstance(each, dict)), start=1):
            begin = text.size + 2 * bool(text.size)
            kind = str(cell.get("cell_type"))
            source = _joined(cell.get("source", cell.get("input")))
            if kind == "code":
                text.code(source, language)
                for output in _outputs(cell):
                    text.code(_ANSI.sub("", output))
            else:
                text.verbatim(_DATA.sub("data:", source))
            if text.size > begin:
                text.marks.append(Mark("cell", Span(begin, text.size), {"number": number, "type": kind}))
        if not text.size:
            raise UnreadError(path, "is a notebook without a text: take it out")
        return Reading(Document(name, text.text, {"format": "markdown"}, tuple(text.marks)))


def _language(data: dict[str, Any]) -> str:
    metadata = data.get("metadata")
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        found = metadata.get(key) if isinstance(metadata, dict) else None
        if isinstance(found, dict) and isinstance(found.get(name), str):
            return "".join(filter(str.isalnum, found[name]))[:20]
    return "python"


def _outputs(cell: dict[str, Any]) -> Iterator[str]:
    outputs = cell.get("outputs")
    for each in outputs if isinstance(outputs, list) else []:
        if isinstance(each, dict):
            shown = each.get("data")
            yield _joined(each.get("text") or (shown.get("text/plain") if isinstance(shown, dict) else None))
            yield _joined(each.get("traceback"), "\n")


def _joined(source: Any, by: str = "") -> str:
    if isinstance(source, list):
        return by.join(each for each in source if isinstance(each, str))
    return source if isinstance(source, str) else ""
