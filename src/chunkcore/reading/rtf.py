"""Rich Text Format, by striprtf, with what it leaves out."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from chunkcore.boundaries import words
from chunkcore.lazy import needed
from chunkcore.reading.base import Reader, Reading, left_out
from chunkcore.reading.visible import raised
from chunkcore.text import Document

_TOKEN = re.compile(r"(?is)\\([a-z]+)(-?\d+)? ?|\\'[0-9a-f]{2}|\\.|[{}]|[^\\{}]+")
_HIDING = ("v", "deleted")  # hidden by the writer, and deleted while changes were tracked
_SHOWN = dict.fromkeys(("footnote", "shptxt", "result"), "")  # notes, text boxes, what objects show
_RUNNING = words("header headerl headerr headerf footer footerl footerr footerf")
_DESTINATIONS = {
    **_SHOWN,
    **dict.fromkeys(_RUNNING, "headers and footers of its pages"),
    "annotation": "comments",
    "moMath": "equations",
}
# The first two begin it, unless with 0.
_RAISING = ("super", "up", "nosupersub", "plain", "sub", "dn")
# No characters: before each group that is taken out of the text, and around raised text.
_BREAK, _RAISE, _LOWER = "\ufdd0", "\ufdd1", "\ufdd2"
_RAISED_RTF = re.compile(f"{_RAISE}([^{_RAISE}{_LOWER}]*){_LOWER}|[{_RAISE}{_LOWER}]")


def _escaped(sign: str) -> str:
    """The sign as a group of RTF."""
    return rf"{{\uc1\u{ord(sign)}?}}"


class Rtf(Reader):
    """A text in Rich Text Format: its plain text, then its footnotes and text boxes. The extra ``files``.

    Headers and footers of pages, comments, equations and hidden text are told in notes.
    """

    endings = ("rtf",)
    magic = b"{\\rtf"

    def read(self, data: bytes, name: str) -> Reading:
        striprtf = needed("striprtf.striprtf", "files", "read RTF")
        unshown = striprtf.destinations | {"fonttbl", "colortbl"}
        groups = _Groups(frozenset(unshown), frozenset(striprtf.specialchars) | {"u"})
        groups.read(data.decode("latin-1"))
        plain = striprtf.rtf_to_text(groups.rtf(), errors="replace")
        plain = _RAISED_RTF.sub(lambda match: raised(match[1] or ""), plain)
        texts: dict[str, list[str]] = {"": []}
        for (kind, _), text in zip(groups.parts, plain.split(_BREAK), strict=True):
            texts.setdefault(kind, []).append(text.strip())
        if groups.has_hidden:
            texts["texts marked as hidden or deleted"] = []
        text = "\n\n".join(filter(None, texts.pop("")))
        return Reading(Document(name, text, {"format": "prose"}), left_out(texts))


@dataclass
class _State:
    """What holds inside a group: `pieces` get its text, and `hiding` are the words that hide it."""

    pieces: list[str]
    hiding: frozenset[str] = frozenset()
    is_raised: bool = False
    is_unshown: bool = False

    def turn(self, word: str, *, is_on: bool) -> None:
        """Begin or end what a word does to the text after it."""
        if word in _HIDING:
            self.hiding = self.hiding | {word} if is_on else self.hiding - {word}
            return
        self.is_raised = word in _RAISING[:2] and is_on
        sign = _RAISE if self.is_raised else _LOWER
        self.pieces.append(_escaped(sign))
        if word == "plain":
            self.hiding -= {"v"}


@dataclass
class _Groups:
    """A file's groups: its text, and those that stand apart, each with the kind that a note names; "" for a text."""

    unshown: frozenset[str]  # words that begin a group without text
    characters: frozenset[str]  # words that are characters
    parts: list[tuple[str, list[str]]] = field(default_factory=lambda: [("", [])])
    has_hidden: bool = False

    def read(self, rtf: str) -> None:
        states = [_State(self.parts[0][1])]
        place = 0
        while match := _TOKEN.match(rtf, place):
            place = match.end()
            piece, word = match[0], match[1]
            state = states[-1]
            if piece == "{":
                state.pieces.append(piece)
                states.append(replace(state))
            elif piece == "}":
                states.pop()
                if len(states) <= 1:  # what follows the file's own group is not its text
                    return
                if state.is_raised and not states[-1].is_raised:
                    state.pieces.append(_escaped(_LOWER))
                states[-1].pieces.append(piece)
            elif word == "bin":
                place += max(0, int(match[2] or 0))
            elif word in _DESTINATIONS:
                state.pieces, state.is_unshown = [], False
                self.parts.append((_DESTINATIONS[word], state.pieces))
            elif word in (*_RAISING, *_HIDING):
                state.turn(word, is_on=match[2] != "0")
            elif word != "pntext":  # the number of an item is text
                state.is_unshown |= word in self.unshown or piece == "\\*"
                self.add(piece, word, state)

    def add(self, piece: str, word: str | None, state: _State) -> None:
        is_text = word in self.characters if word else piece != "\\*"
        if not (state.hiding and is_text):
            state.pieces.append(piece)
        elif piece.strip() and not state.is_unshown:
            self.has_hidden = True

    def rtf(self) -> str:
        """The file without hidden text; the groups that stand apart are at its end, each after a `_BREAK`."""
        written = []
        for number, (_, pieces) in enumerate(self.parts):
            left_open = pieces.count("{") - pieces.count("}")  # by a damaged file
            if number:
                written.append(rf"{{\uc1\u{ord(_BREAK)}?")
                left_open += 2
            written += [*pieces, "}" * (left_open - 1)]
        return "".join([*written, "}"])
