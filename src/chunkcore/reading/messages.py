"""E-mail (``.eml``), mailboxes (``.mbox``) and saved pages (``.mht``) as Markdown."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from email.header import decode_header
from email.message import Message
from email.parser import BytesParser
from email.policy import compat32

from chunkcore.boundaries import one_line
from chunkcore.errors import DataError
from chunkcore.files import UnreadError
from chunkcore.reading.base import Reader, Reading, listed, note_lines
from chunkcore.reading.encodings import charset, decode_text, is_utf8
from chunkcore.reading.visible import visible_text
from chunkcore.text import Document

_SHOWN = ("From", "To", "Cc", "Date")
_METADATA = ("subject", "from", "to", "date")
_HEADER = 10_000  # characters of a header; the standard library takes the square of their number
_LONG = re.compile(rb"(?i)(?:^|\n)(content-(?:type|disposition)):[^\n]{%d}" % _HEADER)
_STUB = re.compile(r"(?i)\b(html|view|browser|online|client|reader)\b")
_STUB_SIZE = 200  # characters
_ADDRESS = re.compile(r"\w+://\S+")
# A paragraph before a signature, and lines before a rule: in Markdown it would make them a heading.
_BEFORE_RULE = re.compile(r"(?m)^(.+\n.+|.+(?=\n--[ \t]*$))\n(?=[-=]+[ \t]*$)")
# How mail begins that servers have passed on, as in a Maildir, where no name ends in ".eml".
_SENT = re.compile(
    rb"(?i)(?=[\w-]+: )(?:[^\r\n].*\n)*?(?:Message-ID: *<|(?:X-)?Received: (?:from|by) )"
)
_BEFORE_HEAD = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*(?=[\w-]+:|From )")
# Of a mail of Apple's program, before it; a property list follows.
_SIZE = re.compile(rb"\s*(\d+)[ \t]*\r?\n")
# The line before each message of a mailbox: a sender and a date as C's ctime or a mail's header writes it. A line of
# a text may begin with "From", too, so a blank line must stand before. (`mailbox` splits at any such line.)
_ENVELOPE = re.compile(
    rb"(?:\A\s*|(?<=\n\n))From \S[^\n]* [A-Z][a-z]{2},? +"
    rb"(?:[A-Z][a-z]{2} +\d+ \d\d:\d\d[^\n]* \d{4}|\d+ [A-Z][a-z]{2} \d{4} \d\d:\d\d)\b[^\n]*\n"
)


_HTML = ("text/html", "application/xhtml+xml")
_SHOWN_KINDS = ("text/plain", *_HTML, "multipart/related", "multipart/mixed")
_CALENDAR = "text/calendar"


class _Mail:
    """What is read of a message: its blocks of text, and the names of what is not read."""

    def __init__(self, part: Message) -> None:
        self.blocks: list[str] = []
        self.attachments: list[str] = []
        self.add(part)

    def add_head(self, part: Message) -> None:
        subject = _header(part, "subject")
        headers = {key: _header(part, key) for key in _SHOWN}
        lines = [f"{key}: {value}" for key, value in headers.items() if value]
        self.blocks += filter(None, (subject and f"# {subject}", "\n".join(lines)))

    def add(self, part: Message) -> None:
        """Add a part as mail programs show it: of alternatives the best, of others all texts."""
        if any(key in part for key in ("subject", "from", "date")):  # else it is a part of a mail
            self.add_head(part)
        kind = part.get_content_type()
        payload = part.get_payload()
        if isinstance(payload, list):
            parts = [child for child in payload if isinstance(child, Message)]
            if parts and kind == "multipart/alternative":
                self.add_best(parts)
            elif kind == "message/delivery-status":
                self.add_text("\n".join(child.as_string().strip() for child in parts))
            else:
                for child in parts:
                    self.add(child)
            if not parts or not self.blocks:
                self.add_text(str(part.preamble or ""))
            return
        # A name alone makes no attachment of a text.
        is_text = kind in ("text/plain", *_HTML) or (
            kind.startswith(("text/", "multipart/")) and not part.get_filename()
        )
        if is_text and part.get_content_disposition() != "attachment":
            self.add_text(_text(part))
        else:
            self.attachments.append(_plain(part.get_filename() or kind)[:200])

    def add_best(self, parts: Sequence[Message]) -> None:
        """Add the plain text, or where it is empty or a stub the longest other part, if possible no calendar's data."""
        mails = {_Mail(part): part.get_content_type() for part in parts}
        shown = [mail for mail, kind in mails.items() if kind in _SHOWN_KINDS and mail.text]
        best = max(shown or mails, key=lambda mail: len(mail.text))
        plain = next((mail for mail, kind in mails.items() if kind == "text/plain"), best)
        if not _is_stub(plain.text, best.text):
            best = plain
        self.blocks += best.blocks
        for mail, kind in mails.items():
            # Apple's program encloses files beside the HTML; what is related to HTML are its pictures.
            if mail is best or kind == "multipart/mixed":
                self.attachments += mail.attachments
            elif kind == _CALENDAR:
                self.attachments.append(kind)

    def add_text(self, text: str) -> None:
        if text.strip():
            lines = text.replace("\r\n", "\n").strip("\n")
            self.blocks.append(_BEFORE_RULE.sub(r"\1\n\n", lines))

    @property
    def text(self) -> str:
        return "\n\n".join(self.blocks)


def _is_stub(text: str, best: str) -> bool:
    """Whether a short text only tells that there is another, or has less than half of its words in common with it."""
    words = re.findall(r"\w+", _ADDRESS.sub("", text.lower()))
    if not words:
        return True
    if len(text) >= min(_STUB_SIZE, len(best)):
        return False
    shared = set(words).intersection(re.findall(r"\w+", best.lower()))
    return _STUB.search(text) is not None or 2 * len(shared) < len(set(words))


class Email(Reader):
    """An e-mail: its subject as a heading, sender, receivers and date, then its text and that of what it forwards.

    Of a text and an HTML part the text is read, but where it is empty or a stub ("This message needs an HTML
    reader."); of HTML what a reader sees. Attachments are named in ``metadata["attachments"]`` and in a note, and not
    read.
    """

    endings = ("eml", "emlx")

    def recognises(self, head: bytes) -> bool:
        return _SENT.match(head) is not None

    def read(self, data: bytes, name: str) -> Reading:
        size = _SIZE.match(data)
        if size:
            data = data[size.end() :][: int(size[1])]
        message = _parsed(data, name)
        metadata = {key: _header(message, key) for key in _METADATA if key in message}
        return _reading(name, [_Mail(message)], metadata)


def _parsed(data: bytes, name: str) -> Message:
    match = _LONG.search(re.sub(rb"\r?\n[ \t]+", b" ", data))
    if match:
        header = match[1].decode("ascii")
        raise UnreadError(
            name,
            f"has a header {header} of over {_HEADER:,} characters: shorten it, or take it out",
        )
    return BytesParser(policy=compat32).parsebytes(_BEFORE_HEAD.sub(b"", data))


def _reading(name: str, mails: Iterable[_Mail], more: Mapping[str, object]) -> Reading:
    metadata = {"format": "markdown", **more}
    texts = []
    attachments = []
    for mail in mails:
        texts.append(mail.text)
        attachments += mail.attachments
    notes = []
    if attachments:
        metadata["attachments"] = attachments
        notes = [f"attachments are left out, save them as files: {listed(attachments)}"]
    text = "\n\n".join(filter(None, texts))
    return Reading(Document(name, text, metadata), tuple(notes))


class SavedPage(Reader):
    """A page that a browser saved (MHTML): what a reader sees of it and of the pages in its frames, as Markdown."""

    endings = ("mht", "mhtml")

    def recognises(self, head: bytes) -> bool:
        is_head = _BEFORE_HEAD.match(head) is not None
        return is_head and b"MIME-Version:" in head and b"multipart/related" in head

    def read(self, data: bytes, name: str) -> Reading:
        message = _parsed(data, name)
        pages = [part for part in message.walk() if part.get_content_type() in _HTML]
        text = "\n\n".join(filter(None, map(_text, pages)))
        metadata = {"format": "markdown", "title": _header(message, "subject")}
        return Reading(Document(name, text, metadata))


class Mailbox(Reader):
    """A mailbox (mbox): its e-mails one after another, each as of a file of its own."""

    endings = ("mbox",)

    def recognises(self, head: bytes) -> bool:
        return _ENVELOPE.match(head) is not None and b"\nSubject:" in head

    def read(self, data: bytes, name: str) -> Reading:
        messages = _ENVELOPE.split(data.replace(b"\r\n", b"\n"))
        mails = []
        notes: defaultdict[str, list[str]] = defaultdict(list)
        for number, message in enumerate(filter(bytes.strip, messages), start=1):
            try:
                mail = _Mail(_parsed(re.sub(rb"(?m)^>(?=>*From )", b"", message), name))
            except UnreadError as error:
                notes[error.reason].append(f"message {number:,}")
                continue
            mails.append(mail)
            if not mail.blocks:
                notes["is an e-mail without a text"].append(f"message {number:,}")
        document, lines = _reading(name, mails, {})
        lines = (*note_lines(notes), *lines)
        if not document.text:
            raise UnreadError(name, "; ".join(("has no text", *lines)))
        return Reading(document, lines)


def _header(message: Message, key: str) -> str:
    """A header's text; "" without one. Bytes that no encoded word declares are told as those of a text."""
    values = (value for name, value in message.raw_items() if name.lower() == key.lower())
    data = str(next(values, ""))[:_HEADER].encode("utf-8", "surrogateescape")
    text = data.decode("utf-8", "replace")
    with suppress(DataError):
        text, _ = decode_text(data, "a header of it")
    return _plain(text)


def _plain(value: str) -> str:
    """A header's value with its encoded words read; as it is where one names no charset."""
    try:
        words = decode_header(value[:_HEADER])
    except ValueError:  # damaged
        words = [(value, None)]
    if all(charset(name) for _, name in words if name):
        value = ""
        for word, name in words:
            if isinstance(word, bytes):
                word = word.decode(charset(name) or "utf-8", "replace")
            value += word
    return one_line(value)


def _text(part: Message) -> str:
    """The text of a part; of HTML what a reader sees."""
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes) or not data:
        return ""
    codec = charset(part.get_content_charset()) or "utf-8"
    if codec == "cp1252" and is_utf8(data):  # cron states ASCII, whatever it sends
        codec = "utf-8"
    try:
        text = data.decode(codec)
    except ValueError:
        text, _ = decode_text(data, "a part of it")
    text = text.removeprefix("\ufeff")
    if part.get_content_type() in _HTML:
        return visible_text(text)
    if str(part.get_param("format")).lower() == "flowed":
        return _flowed(text, delete_space=str(part.get_param("delsp")).lower() == "yes")
    return text


def _flowed(text: str, *, delete_space: bool) -> str:
    """A text whose lines end in a space where its paragraphs go on, with a line for each paragraph (RFC 3676)."""
    pieces = []
    before = None  # the quotation marks of a line that goes on
    for line in text.replace("\r\n", "\n").split("\n"):
        content = line.lstrip(">")
        marks = line.removesuffix(content)
        content = content.removeprefix(" ")
        goes_on = content.endswith(" ") and content != "-- "
        shown = content[:-1] if goes_on and delete_space else content
        if marks != before or content == "-- ":
            begin = f"\n{marks} " if marks else "\n"
            pieces.append(begin)
        pieces.append(shown)
        before = marks if goes_on else None
    return "".join(pieces).removeprefix("\n")
