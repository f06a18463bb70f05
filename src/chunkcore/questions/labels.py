"""`label_states`: whether each label's evidence is still in the documents. `fix_questions` corrects what moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.errors import echo
from chunkcore.evaluation.benchmarks.loading import document_name
from chunkcore.files import json_lines, utf8_line, write_checked
from chunkcore.locating.alignment import Aligner, unlocated
from chunkcore.locating.text_search import fold
from chunkcore.reading.visible import in_source
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
        for _, excerpt in _excerpts(row):
            state, found = finder.state(excerpt)
            query, text = str(row.get("id", "")), excerpt["text"]
            states.append(LabelState(f"line {number}", query, text, state, found))
    return states


def _excerpts(row: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The excerpts of a row by their places in its list, each with the name of its document, "" for any."""
    entries = row.get("evidence") or ()
    if isinstance(entries, str):
        entries = [entries]
    default = row.get("document_id") or ""
    for place, entry in enumerate(entries if isinstance(entries, list) else ()):
        if isinstance(entry, str):
            entry = {"text": entry}
        if isinstance(entry, Mapping) and isinstance(entry.get("text"), str):
            name = entry.get("document_id", entry.get("document", default))
            yield place, {**entry, "document_id": document_name(name)}


class _Finder:
    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        self._texts = {document.id: document.text for document in documents}
        self._exact = Aligner(documents, similarity=None)

    @cached_property
    def _loose(self) -> Aligner:
        return Aligner(self._documents, similarity=_ALIKE)

    def state(self, excerpt: Mapping[str, Any]) -> tuple[State, tuple[Retrieved, ...]]:
        text, name, start = excerpt["text"], excerpt["document_id"], excerpt.get("start")
        source = self._texts.get(name, "")
        if isinstance(start, int) and source.startswith(text, start):
            place = Retrieved(name, (Span(start, start + len(text)),), text=text)
            return "there", (place,)
        found = self._located(self._exact, text, name)
        if found.match in _PLACED:
            return ("moved" if isinstance(start, int) else "there"), (found,)
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


_LEAST = 0.8  # certainty of a place that is accepted
_UNSURE = ("ambiguous", "part", "unlocated")


@dataclass(frozen=True)
class Fix:
    """An excerpt, and the place that resembles it.

    Attributes:
        place: the line of the file.
        certainty: the share of letters that are equal.
    """

    place: str
    query_id: str
    excerpt: str
    evidence: Mapping[str, Any]
    certainty: float

    def __str__(self) -> str:
        spot = f"{self.evidence['document']} {self.evidence['start']}-{self.evidence['end']}"
        text = echo(self.evidence["text"])
        return (
            f"{self.place}, {self.query_id!r}: {echo(self.excerpt)} is placed at {spot}, {text} "
            f"({self.certainty:.0%} alike)"
        )


def fix_questions(documents: Sequence[Document], path: Path) -> list[Fix]:
    """Replace excerpts of a ``questions.jsonl`` that are not found by the places that resemble them; returns these.

    A place counts if at least 80 % of its letters are the excerpt's and no other place is as near. The file is written
    only if there is one.

    Raises `DataError`: the file cannot be read.

    >>> import json, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name, "questions.jsonl")
    >>> excerpt = "The quikc fox naps. The dog barks."
    >>> _ = file.write_text(json.dumps({"id": "q", "question": "Who naps?", "evidence": [excerpt]}))
    >>> for fix in fix_questions([Document("fox.txt", "It rains. The quick fox naps. The dog barks.")], file):
    ...     print(fix.evidence["start"], fix.evidence["text"], round(fix.certainty, 2))
    10 The quick fox naps. The dog barks. 0.93
    >>> folder.cleanup()
    """
    finder = _Finder(documents)
    by_id = {document.id: document for document in documents}
    rows: list[dict[str, Any]] = []
    fixes: list[Fix] = []
    for number, row in json_lines(path):
        rows.append(row)
        if isinstance(row.get("evidence"), str):
            row["evidence"] = [row["evidence"]]
        for place, excerpt in _excerpts(row):
            state, found = finder.state(excerpt)
            if state not in ("moved", "changed") or len(found) != 1 or not _is_sure(found[0]):
                continue
            located = found[0]
            document = by_id[located.document_id]
            span = Span(located.spans[0].start, located.spans[-1].end)
            in_file = in_source(document, [span])[0]
            evidence = {"document": document.id, "start": in_file.start, "end": in_file.end}
            evidence["text"] = span.slice(document.text)
            row["evidence"][place] = evidence
            query, text = str(row.get("id", "")), excerpt["text"]
            fixes.append(Fix(f"line {number}", query, text, evidence, located.certainty))
    if fixes:
        write_checked({path: b"".join(map(utf8_line, rows))})
    return fixes


def _is_sure(located: Retrieved) -> bool:
    return located.match not in _UNSURE and located.certainty >= _LEAST
