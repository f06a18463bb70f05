"""`fix_questions`: evidence whose words stand elsewhere in a document, or there in other words, is given its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chunkcore.errors import echo
from chunkcore.evaluation.benchmarks.loading import EvidenceError, EvidenceFinder, document_name
from chunkcore.files import json_lines, utf8_line, write_checked
from chunkcore.locating.alignment import Aligner
from chunkcore.reading.visible import in_source
from chunkcore.text import Document, Span

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
    fixer = _Fixer(documents)
    rows: list[dict[str, Any]] = []
    fixes: list[Fix] = []
    for number, row in json_lines(path):
        fixes += fixer.fixes(f"line {number}", row)
        rows.append(row)
    if fixes:
        write_checked({path: b"".join(map(utf8_line, rows))})
    return fixes


class _Fixer:
    def __init__(self, documents: Sequence[Document]) -> None:
        self._finder = EvidenceFinder(documents)
        self._aligner = Aligner(documents, similarity=_LEAST)
        self._documents = {document.id: document for document in documents}

    def fixes(self, place: str, row: dict[str, Any]) -> Iterator[Fix]:
        """The fixes of a row, whose evidence is replaced by them."""
        entries = row.get("evidence")
        if isinstance(entries, str):
            entries = [entries]
        if not isinstance(entries, list):
            return
        for number, entry in enumerate(entries):
            fix = self._fix(place, row, entry)
            if fix is not None:
                entries[number] = dict(fix.evidence)
                row["evidence"] = entries
                yield fix

    def _fix(self, place: str, row: Mapping[str, Any], entry: Any) -> Fix | None:
        excerpt = entry.get("text") if isinstance(entry, Mapping) else entry
        if not isinstance(excerpt, str) or not excerpt.strip():
            return None
        name = ""
        try:
            name = document_name(row.get("document_id") or "")
            if isinstance(entry, Mapping):
                name = document_name(entry.get("document_id", entry.get("document", name)))
            self._finder.find(entry, name)
        except (EvidenceError, TypeError):
            located = self._aligner.locate(excerpt, document_id=name)
        else:
            return None
        if located.match in _UNSURE or located.certainty < _LEAST:
            return None
        document = self._documents[located.document_id]
        span = Span(located.spans[0].start, located.spans[-1].end)
        in_file = in_source(document, [span])[0]
        evidence = {
            "document": document.id,
            "start": in_file.start,
            "end": in_file.end,
            "text": span.slice(document.text),
        }
        return Fix(place, str(row.get("id", "")), excerpt, evidence, located.certainty)
