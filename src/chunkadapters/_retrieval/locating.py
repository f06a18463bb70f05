"""`Locator`: where a piece that a retriever returned stands in a benchmark's documents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePath

from chunkadapters._retrieval.pieces import Piece
from chunkcore.evaluation.alignment import Aligner
from chunkcore.evaluation.benchmark import Benchmark
from chunkcore.evaluation.run import Retrieved

__all__ = ["Locator"]


class Locator:
    """Finds the place of pieces in a benchmark's documents.

    What a framework calls a document is matched to the benchmark's by its id, else by its file name, with
    or without the suffix, where only one document has it.

    Attributes:
        misplaced: how many pieces stated places in a document that hold another text there.
    """

    def __init__(self, benchmark: Benchmark) -> None:
        self._aligner = Aligner(benchmark.documents)
        self._texts = {document.id: document.text for document in benchmark.documents}
        self._names = _unique(self._texts)
        self.misplaced = 0

    def locate(self, piece: Piece) -> Retrieved:
        """Where the piece stands, by what it states first and by its text otherwise."""
        document_id = self._document(piece)
        if document_id:
            # What a model wrote stands nowhere: its passage does.
            text = "" if piece.derived else piece.text
            found = self._aligner.locate(text, document_id=document_id, spans=piece.spans, score=piece.score)
            if piece.derived:
                found = replace(found, text=piece.text)
            self.misplaced += bool(text and piece.spans and found.how != "spans")
            if found.how != "unlocated":
                return found
        # Not in the document that it names, or it names none: its text is the better witness.
        return self._aligner.locate(piece.text, score=piece.score)

    def _document(self, piece: Piece) -> str:
        """The document that the piece names; where it names none, the only one that has its text at its spans."""
        for candidate in piece.document_ids:
            if candidate in self._texts:
                return candidate
        for candidate in piece.document_ids:
            for name in _short_names(candidate):
                if name in self._names:
                    return self._names[name]
        if len(piece.spans) != 1:
            return ""
        start, end = piece.spans[0].start, piece.spans[0].end
        holding = [key for key, text in self._texts.items() if text[start:end] == piece.text]
        return holding[0] if len(holding) == 1 else ""


def _short_names(document_id: str) -> tuple[str, str]:
    path = PurePath(document_id)
    return path.name, path.stem


def _unique(ids: Iterable[str]) -> dict[str, str]:
    """Short names that only one document has."""
    owners: dict[str, set[str]] = {}
    for each in ids:
        for name in _short_names(each):
            owners.setdefault(name, set()).add(each)
    return {name: each.pop() for name, each in owners.items() if name and len(each) == 1}
