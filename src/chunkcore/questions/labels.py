"""`label_states`: whether each label's evidence is still in the documents. `fix_questions` corrects what moved."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.errors import OptionError, echo
from chunkcore.evaluation.benchmarks.benchmark import QuestionRow, question_rows
from chunkcore.evaluation.benchmarks.loading import (
    EvidenceError,
    EvidenceFinder,
    document_name,
    entries_of,
    understood,
)
from chunkcore.files import json_lines, utf8_line, write_checked
from chunkcore.locating.alignment import Aligner
from chunkcore.locating.text_search import fold
from chunkcore.plain import JsonObject
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
        text = f"{self.place}, {self.query_id!r}: {self.state} {echo(self.excerpt)}"
        for piece in self.found:
            place = f"{piece.document_id} {piece.spans[0].start}-{piece.spans[-1].end}"
            text += f", now {place} ({piece.certainty:.0%} alike)"
        return text


def check_questions_file(path: Path) -> None:
    """Raise `OptionError` if the name does not end in ``.jsonl``."""
    if path.suffix != ".jsonl":
        raise OptionError(f"the questions go into a file whose name ends in .jsonl, got {path}")


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
    for line, row in question_rows(path):
        for _, excerpt in _excerpts(_with_entries(row, finder.texts)):
            state, places = finder.state(excerpt)
            name = str(row.get("id", ""))
            states.append(LabelState(line, name, excerpt["text"], state, places))
    return states


def evidence_of(document: Document, spans: Sequence[Span]) -> JsonObject:
    """Evidence from the first of these spans to the last, as a row of questions has it: in the document's file."""
    span = Span(spans[0].start, spans[-1].end)
    (place,) = in_source(document, [span])
    text = span.slice(document.text)
    return {"document": document.id, "start": place.start, "end": place.end, "text": text}


def _with_entries(row: QuestionRow, documents: Collection[str]) -> JsonObject:
    """The row under our keys, its evidence as a list: empty where it is none, which `questions check` says."""
    entry = dict(understood(row, documents))
    entries: list[Any] = []
    with suppress(EvidenceError):
        entries = entries_of(entry)
    entry.pop("spans", None)
    return {**entry, "evidence": entries}


def _excerpts(row: JsonObject) -> Iterator[tuple[int, JsonObject]]:
    """The excerpts of a row by their places in its list, each with the name of its document, "" for any."""
    default = row.get("document_id") or ""
    for place, entry in enumerate(row["evidence"]):
        if isinstance(entry, str):
            entry = {"text": entry}
        if isinstance(entry, Mapping) and isinstance(entry.get("text"), str):
            name = entry.get("document_id", entry.get("document", default))
            yield place, {**entry, "document_id": document_name(name)}


class _Finder:
    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        self.texts = {document.id: document.text for document in documents}
        self._evidence = EvidenceFinder(documents)

    @cached_property
    def _exact(self) -> Aligner:
        return Aligner(self._documents, similarity=None)

    @cached_property
    def _loose(self) -> Aligner:
        return Aligner(self._documents, similarity=_ALIKE)

    def state(self, excerpt: JsonObject) -> tuple[State, tuple[Retrieved, ...]]:
        text, name = excerpt["text"], excerpt["document_id"]
        with suppress(EvidenceError, TypeError):
            place = self._evidence.find(excerpt)
            return "there", (Retrieved(place.document_id, (place.span,), text=text),)
        same = self._located(self._exact, text, name)
        if same.match in _PLACED:
            is_there = excerpt.get("start") is None and name in ("", same.document_id)
            return "there" if is_there else "moved", (same,)
        sentences = []
        for begin, end in sentence_ranges(text).tolist():
            sentence = text[begin:end].strip()
            if len(fold(sentence).text) >= _SHORTEST:
                sentences.append(self._located(self._exact, sentence, name))
        if len(sentences) > 1 and all(sentence.match in _PLACED for sentence in sentences):
            return "split", tuple(sentences)
        alike = self._located(self._loose, text, name)
        if alike.spans:
            return "changed", (alike,)
        held = tuple(sentence for sentence in sentences if sentence.spans)
        return ("changed" if held else "gone"), held

    def _located(self, aligner: Aligner, text: str, name: str) -> Retrieved:
        """The text in its document, or else in another."""
        if name in self.texts:
            inside = aligner.locate(text, document_id=name)
            if inside.spans:
                return inside
        return aligner.locate(text)


_LEAST = 0.8  # certainty of a place that is accepted
_UNSURE = ("ambiguous", "part", "unlocated")


def fix_questions(documents: Sequence[Document], path: Path) -> list[LabelState]:
    """Replace excerpts of a ``questions.jsonl`` that are not found by the places that resemble them; returns these.

    A place counts if at least 80 % of its letters are the excerpt's and no other place is as near. The file is written
    only if there is one.

    Raises `DataError`: the file cannot be read.

    >>> import json, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name, "questions.jsonl")
    >>> excerpt = "The quikc fox naps. The dog barks."
    >>> _ = file.write_text(json.dumps({"id": "q", "question": "Who naps?", "evidence": [excerpt]}))
    >>> print(*fix_questions([Document("fox.txt", "It rains. The quick fox naps. The dog barks.")], file))
    line 1, 'q': changed 'The quikc fox naps. The dog barks.', now fox.txt 10-44 (93% alike)
    >>> folder.cleanup()
    """
    finder, aligner = EvidenceFinder(documents), Aligner(documents, similarity=_LEAST)
    by_id = {document.id: document for document in documents}
    rows: list[QuestionRow] = []
    fixes = []
    for number, row in json_lines(path):
        rows.append(row)
        entry = _with_entries(row, by_id)
        for place, excerpt in _excerpts(entry):
            located = _resembling(excerpt, finder, aligner)
            if located is not None:
                entry["evidence"][place] = evidence_of(by_id[located.document_id], located.spans)
                rows[-1] = entry
                name = str(row.get("id", ""))
                fixes.append(
                    LabelState(f"line {number}", name, excerpt["text"], "changed", (located,))
                )
    if fixes:
        write_checked({path: b"".join(map(utf8_line, rows))})
    return fixes


def _resembling(excerpt: JsonObject, finder: EvidenceFinder, aligner: Aligner) -> Retrieved | None:
    """What surely resembles the whole of an excerpt that a benchmark refuses; None for any other."""
    try:
        finder.find(excerpt)
    except (EvidenceError, TypeError):
        located = aligner.locate(excerpt["text"], document_id=excerpt["document_id"])
        if located.match not in _UNSURE and located.certainty >= _LEAST:
            return located
    return None
