"""Where a text that is too large for one pass is parted: at the end of a paragraph, if there is one."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import BinaryIO

import regex  # type: ignore[import-untyped]

__all__ = ["cut_place", "parts"]

# Tried in this order: what is looked for, and how much of it still belongs to the part before.
_PLACES: tuple[tuple[tuple[bytes, int], ...], ...] = (
    *(((b"\n\n" + b"#" * level + b" ", 2), (b"\r\n\r\n" + b"#" * level + b" ", 4)) for level in (1, 2, 3)),
    ((b"\n\n", 2), (b"\r\n\r\n", 4)),
    ((b"\n", 1),),
    ((b". ", 2), ("。".encode(), 3)),
    ((b" ", 1),),
)
_GRAPHEME = regex.compile(r"\X")
_LOOKED_AT = 4096  # bytes in which a grapheme's end is looked for: one of more is cut


def parts(stream: BinaryIO, size: int) -> Iterator[bytes]:
    r"""The stream's bytes, UTF-8, as parts of at most `size` bytes, each ending where `cut_place` says.

    Memory is about twice `size`. The parts follow from the bytes and the size alone.

    >>> from io import BytesIO
    >>> list(parts(BytesIO(b"One two.\n\nThree four.\n\nFive."), 24))
    [b'One two.\n\nThree four.\n\n', b'Five.']
    """
    held = b""
    while True:
        data = held + _filled(stream, size + 1 - len(held))
        if len(data) <= size:
            if data:
                yield data
            return
        end = cut_place(data[:size])
        yield data[:end]
        held = data[end:]


def cut_place(data: bytes) -> int:
    r"""How many of the bytes, UTF-8 that goes on after them, the first part has; at least one character.

    The last place in the second half that is of the best kind there: before a Markdown heading, of the first level,
    the second or the third; after a blank line; a line; a sentence (a full stop and a space, or 。); a space; a
    grapheme.

    >>> cut_place(b"# A\n\nOne two three.\n\n## B\n\nTwo.\n\nThree."), cut_place(b"no line end in here")
    (21, 15)
    """
    middle = len(data) // 2
    for kind in _PLACES:
        found = max((place + kept for mark, kept in kind if (place := data.rfind(mark, middle)) >= 0), default=0)
        if found:
            return found
    return _grapheme_place(data)


def _grapheme_place(data: bytes) -> int:
    """Before the last grapheme, which may go on after the bytes."""
    begin = _character_place(data, max(1, len(data) - _LOOKED_AT)) if len(data) > _LOOKED_AT else 0
    try:
        text, _ = codecs.utf_8_decode(data[begin:], "surrogatepass")  # without a last character that is not whole
    except UnicodeDecodeError:
        text = ""  # whoever decodes the part tells
    starts = [match.start() for match in _GRAPHEME.finditer(text)]
    if starts[1:]:
        return begin + len(text[: starts[-1]].encode("utf-8", "surrogatepass"))
    return _character_place(data, len(data) - 1)  # one grapheme, as far as can be seen


def _character_place(data: bytes, place: int) -> int:
    """Where the character begins that has the byte at a place, if that is not the first one."""
    begin = place
    while begin > place - 4 and begin > 0 and data[begin] & 0xC0 == 0x80:
        begin -= 1
    return begin or max(1, place)


def _filled(stream: BinaryIO, size: int) -> bytes:
    """As many bytes, or all that are left: a pipe gives what it has."""
    found = []
    while size > 0 and (data := stream.read(size)):
        found.append(data)
        size -= len(data)
    return b"".join(found)
