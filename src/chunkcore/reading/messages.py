"""E-mail (``.eml``) as Markdown; HTML's visible text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email import policy
from email.header import decode_header, make_header
from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from typing import Any

from chunkcore.boundaries.html import parse_html
from chunkcore.files import UnreadError
from chunkcore.lazy import needed
from chunkcore.reading.base import Reader, Reading, readers
from chunkcore.reading.opening import charset, decode_text
from chunkcore.text import Document

_SHOWN = ("From", "To", "Cc", "Date")
_HEADER = 10_000  # characters of a header; the standard library takes the square of their number
_LONG = re.compile(rb"(?i)(?:^|\n)(content-(?:type|disposition)):[^\n]{%d}" % _HEADER)
_STUB = re.compile(r"(?i)\b(html|view|browser|online|client|reader)\b")


@readers.register("e-mail")
class Email(Reader):
    """An e-mail: its subject as a heading, sender, receivers and date, then its text and that of what it forwards.

    Of a text and an HTML part the text is read, but where it is a stub ("This message needs an HTML reader."); of HTML
    what a reader sees. Attachments are named in ``metadata["attachments"]`` and in a note, and not read.
    """

    endings = ("eml",)

    def read(self, data: bytes, name: str) -> Reading:
        if match := _LONG.search(re.sub(rb"\r?\n[ \t]+", b" ", data)):
            header = match[1].decode("ascii")
            raise UnreadError(
                name,
                f"has a header {header} of over {_HEADER:,} characters: shorten it, or take it out",
            )
        message = BytesParser(policy=policy.compat32).parsebytes(data)
        attachments: list[str] = []
        text = "\n\n".join(filter(None, _blocks(message, attachments)))
        if not text:
            raise UnreadError(name, "is an e-mail without a text: take it out")
        metadata: dict[str, Any] = {"format": "markdown"}
        metadata |= {
            key: value
            for key in ("subject", "from", "to", "date")
            if (value := _header(message, key))
        }
        if not attachments:
            return Reading(Document(name, text, metadata))
        note = f"attachments are left out, save them as files: {', '.join(attachments[:5])}"
        return Reading(Document(name, text, metadata | {"attachments": attachments}), (note,))


def _blocks(message: Message, attachments: list[str]) -> Iterator[str]:
    waiting: list[Message] = [message]
    while waiting:
        part = waiting.pop()
        if any(
            key in part for key in ("subject", "from", "date")
        ):  # a part of a mail has none of these
            subject = _header(part, "subject")
            yield f"# {subject}" if subject else ""
            yield "\n".join(f"{key}: {value}" for key in _SHOWN if (value := _header(part, key)))
        kind = part.get_content_type()
        if part.is_multipart():
            parts = [child for child in part.get_payload() if isinstance(child, Message)]
            waiting += reversed(_preferred(parts) if kind == "multipart/alternative" else parts)
        elif (
            part.get_filename()
            or part.get_content_disposition() == "attachment"
            or not kind.startswith("text/")
        ):
            attachments.append(_plain(part.get_filename() or kind)[:200])
        else:
            text = _body(part)
            yield (
                visible_text(text)
                if kind == "text/html"
                else text.replace("\r\n", "\n").strip("\n")
            )


def _preferred(parts: list[Message]) -> list[Message]:
    """The text, or the HTML where the text is a stub; of other kinds the last."""
    by_kind = {part.get_content_type(): part for part in reversed(parts)}
    plain, html = by_kind.get("text/plain"), by_kind.get("text/html")
    if plain is not None and html is not None:
        text = _body(plain).strip()
        is_stub = not text or (
            len(text) < 200 and _STUB.search(text) and len(text) < len(visible_text(_body(html)))
        )
        return [html if is_stub else plain]
    return [
        part for part in (plain or html or by_kind.get("multipart/related"),) if part is not None
    ] or parts[-1:]


def _header(message: Message, key: str) -> str:
    value = message.get(key)
    return "" if value is None else _plain(value)


def _plain(value: Any) -> str:
    value = str(value)[:_HEADER]
    try:
        if all(charset(name) for _, name in decode_header(value) if name):
            value = make_header(decode_header(value))
    except (LookupError, ValueError, TypeError, AttributeError):  # damaged
        pass
    return " ".join(str(value).split())


def _body(part: Message) -> str:
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes) or not data:
        return ""
    try:
        return data.decode(charset(part.get_content_charset()) or "utf-8")
    except ValueError:
        return decode_text(data, Path("a part of it"))[0]


_SKIPPED = frozenset(
    (
        "script",
        "style",
        "template",
        "head",
        "noscript",
        "iframe",
        "object",
        "embed",
        "nav",
        "#comment",
    )
)
_INLINE_NAMES = """
    a abbr b bdi bdo big button cite code data del dfn em font i input ins kbd label mark q rb rp rt ruby s samp small
    span strong sub sup td th time tt u var wbr"""
_INLINE = frozenset(_INLINE_NAMES.split())
_LINES = frozenset(("pre", "listing", "textarea"))  # whose white space counts


def visible_text(html: str) -> str:
    r"""What a reader sees of an HTML page, as Markdown: headings, paragraphs, lists, and tables a row a line.

    Scripts, styles and navigation are left out, links lose their targets, and nothing is fetched.

    Raises `MissingExtraError`: justhtml is not installed.

    >>> visible_text("<nav>Home</nav><h1>Tea</h1><ul><li>black<li>green</ul><p>Hot &amp; sweet")
    '# Tea\n\n- black\n\n- green\n\nHot & sweet'
    """
    needed("justhtml", "files", "read HTML")
    blocks: list[str] = []
    run: list[str] = []
    prefix = ""
    verbatim = 0

    def flush() -> None:
        text = "".join(run)
        if not verbatim:
            text = "\n".join(filter(None, (" ".join(line.split()) for line in text.split("\n"))))
        if text.strip():
            blocks.append(prefix + text.strip("\n"))
        run.clear()

    for node, enters in _walk(parse_html(html)):
        name = node.name
        if name == "#text":
            run.append(node.data if verbatim else re.sub(r"\s", " ", node.data))
        elif name == "br" and enters:
            run.append("\n")
        elif name == "img" and enters:
            run.append(str((node.attrs or {}).get("alt") or ""))
        elif name in ("td", "th"):
            run.append(" | " if enters and "".join(run).strip() else "")
        elif name not in _INLINE:
            flush()
            verbatim += (1 if enters else -1) * (name in _LINES)
            is_heading = len(name) == 2 and name[0] == "h" and name[1].isdigit()
            prefix = (
                ""
                if not enters
                else f"{'#' * int(name[1])} "
                if is_heading
                else "- "
                if name == "li"
                else ""
            )
    flush()
    return "\n\n".join(blocks)


def _walk(root: Any) -> Iterator[tuple[Any, bool]]:
    """Each shown node in order, with True as it begins and, but for texts, with False as it ends."""
    waiting: list[tuple[Any, bool]] = [(root, True)]
    while waiting:  # not recursive: a stranger's page may be nested deeper than Python's stack
        node, enters = waiting.pop()
        if node.name in _SKIPPED:
            continue
        yield node, enters
        if enters and node.name != "#text":
            waiting.append((node, False))
            waiting += [(child, True) for child in reversed(getattr(node, "children", None) or ())]
