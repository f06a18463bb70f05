"""`label_states`: whether each label's evidence is still in the documents, and where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.evaluation.benchmarks.loading import document_name
from chunkcore.files import json_lines
from chunkcore.locating.alignment import Aligner, unlocated
from chunkcore.locating.text_search import fold
from chunkcore.run import Retrieved
from chunkcore.text import Document, Span

State = Literal["there", "moved", "changed", "split", "gone"]
_SHORTEST = 8  # letters and digits of a sentence that is looked for by itself
_ALIKE = 0.6  # the least share of equal letters of a changed excerpt
_PLACED = ("exact", "whitespace", "folded", "ambiguous")


@dataclass(frozen=True)
class LabelState:
    """What has become of an excerpt.

    Attributes:
        place: the line of the file.
        state: "there", at its place; "moved", in the same words elsewhere; "split", its sentences stand apart;
            "changed", in other words or in part; or "gone".
        found: where its text or its sentences stand now, with the kind of match.
    """

    place: str
    query_id: str
    excerpt: str
    state: State
    found: tuple[Retrieved, ...] = ()

    def __str__(self) -> str:
        now = ", ".join(
            f"{piece.document_id} {piece.spans[0].start}-{piece.spans[-1].end}"
            for piece in self.found
        )
        return f"{self.place}, {self.query_id!r}: {self.state} {now} {self.excerpt[:60]!r}"


def label_states(documents: Sequence[Document], path: Path) -> list[LabelState]:
    """The state of each excerpt of a ``questions.jsonl``, in order.

    Raises `DataError`: the file cannot be read.

    >>> import json, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name, "questions.jsonl")
    >>> evidence = [{"document": "fox.txt", "start": 0, "end": 19, "text": "The quick fox naps."}]
    >>> _ = file.write_text(json.dumps({"id": "q", "question": "Who naps?", "evidence": evidence}))
    >>> [state.state for state in label_states([Document("fox.txt", "It rains. The quick fox naps.")], file)]
    ['moved']
    >>> folder.cleanup()
    """
    finder = _Finder(documents)
    states = []
    for number, row in json_lines(path):
        for text, name, start in _excerpts(row):
            state, found = finder.state(text, name, start)
            states.append(LabelState(f"line {number}", str(row.get("id", "")), text, state, found))
    return states


def _excerpts(row: Mapping[str, Any]) -> Iterator[tuple[str, str, int | None]]:
    """Each excerpt of a row, its document's name, and where it begins, as far as they are stated."""
    entries = row.get("evidence") or ()
    if isinstance(entries, str):
        entries = [entries]
    default = row.get("document_id") or ""
    for entry in entries:
        if isinstance(entry, str):
            yield entry, document_name(default), None
        elif isinstance(entry, Mapping) and isinstance(entry.get("text"), str):
            name = entry.get("document_id", entry.get("document", default))
            start = entry.get("start")
            yield entry["text"], document_name(name), start if isinstance(start, int) else None


class _Finder:
    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        self._texts = {document.id: document.text for document in documents}
        self._exact = Aligner(documents, similarity=None)

    @cached_property
    def _loose(self) -> Aligner:
        return Aligner(self._documents, similarity=_ALIKE)

    def state(self, text: str, name: str, start: int | None) -> tuple[State, tuple[Retrieved, ...]]:
        source = self._texts.get(name, "")
        if start is not None and source.startswith(text, start):
            place = Retrieved(name, (Span(start, start + len(text)),), text=text)
            return "there", (place,)
        found = self._located(self._exact, text, name)
        if found.match in _PLACED:
            return ("moved" if start is not None else "there"), (found,)
        pieces = self._sentences(text, name)
        if len(pieces) > 1 and all(piece.match in _PLACED for piece in pieces):
            return "split", tuple(pieces)
        found = self._located(self._loose, text, name)
        if found.spans:
            return "changed", (found,)
        held = tuple(piece for piece in pieces if piece.spans)
        return ("changed" if held else "gone"), held

    def _located(self, aligner: Aligner, text: str, name: str) -> Retrieved:
        """The text in its document, or else in another."""
        found = unlocated(text)
        if name in self._texts:
            found = aligner.locate(text, document_id=name)
        return found if found.spans else aligner.locate(text)

    def _sentences(self, text: str, name: str) -> list[Retrieved]:
        sentences = [text[start:end].strip() for start, end in sentence_ranges(text).tolist()]
        long = [sentence for sentence in sentences if len(fold(sentence).text) >= _SHORTEST]
        return [self._located(self._exact, sentence, name) for sentence in long]
