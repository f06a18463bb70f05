"""RTF: its plain text, by striprtf."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from chunkcore.files import UnreadError
from chunkcore.lazy import needed
from chunkcore.reading.base import Reader, Reading, left_out, readers
from chunkcore.text import Document

_TOKEN = re.compile(
    r"\\([a-z]+)(-?\d+)? ?|\\'[0-9a-f]{2}|\\.|[{}]|[^\\{}]+", re.DOTALL | re.IGNORECASE
)
_HIDING = ("v", "deleted")  # hidden by the writer, and deleted while changes were tracked
_SHOWN = {"footnote": "", "shptxt": ""}  # footnotes and text boxes
_RUNNING = ("header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf")
_APART = {
    **_SHOWN,
    **dict.fromkeys(_RUNNING, "headers and footers of its pages"),
    "annotation": "comments",
    "moMath": "equations",
}
_BREAK = "\ufdd0"  # no character; before each group that is taken out of the text


@readers.register("RTF")
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
        text, *apart = [part.strip() for part in plain.split(_BREAK)]
        texts = [text]
        notes: dict[str, list[str]] = {}
        for (kind, _), part in zip(groups.apart, apart, strict=True):
            if kind:
                notes.setdefault(kind, []).append(part)
            else:
                texts.append(part)
        if groups.has_hidden:
            notes["texts marked as hidden or deleted"] = []
        text = "\n\n".join(filter(None, texts))
        if not text:
            raise UnreadError(name, "has no text: it may hold pictures only")
        document = Document(name, text, {"format": "prose"})
        return Reading(document, left_out(notes))


@dataclass
class _State:
    """What holds inside a group: `pieces` get its text, and `hiding` are the words that hide it."""

    pieces: list[str]
    hiding: frozenset[str] = frozenset()
    is_unshown: bool = False


@dataclass
class _Groups:
    """A file's groups: those that are its text, and those that stand apart, each with the kind that a note names."""

    unshown: frozenset[str]  # words that begin a group without text
    characters: frozenset[str]  # words that are characters
    text: list[str] = field(default_factory=list)
    apart: list[tuple[str, list[str]]] = field(default_factory=list)
    has_hidden: bool = False

    def read(self, rtf: str) -> None:
        states = [_State(self.text)]
        place = 0
        while match := _TOKEN.match(rtf, place):
            place = match.end()
            piece, word = match[0], match[1]
            state = states[-1]
            if piece == "{":
                state.pieces.append(piece)
                states.append(_State(state.pieces, state.hiding, state.is_unshown))
            elif piece == "}":
                states.pop()
                if len(states) <= 1:  # what follows the file's own group is not its text
                    return
                states[-1].pieces.append(piece)
            elif word == "bin":
                place += int(match[2] or 0)
            elif word in _APART:
                state.pieces, state.is_unshown = [], False
                self.apart.append((_APART[word], state.pieces))
            elif word == "plain":
                state.hiding -= {"v"}
            elif word in _HIDING:
                others = state.hiding - {word}
                state.hiding = others if match[2] == "0" else others | {word}
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
        begin = rf"{{\uc1\u{ord(_BREAK)}?"
        body = [
            *self.text,
            "}" * (_open_groups(self.text) - 1),
        ]  # those that a damaged file leaves open
        for _, pieces in self.apart:
            body += [begin, *pieces, "}" * (_open_groups(pieces) + 1)]
        return "".join([*body, "}"])


def _open_groups(pieces: list[str]) -> int:
    return pieces.count("{") - pieces.count("}")
