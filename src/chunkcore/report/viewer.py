"""What the page's viewer draws: documents, each system's chunks, and what was retrieved for each question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chunkcore.evaluation.benchmark import Benchmark
from chunkcore.evaluation.run import Run
from chunkcore.report.answers import HOWS, answers
from chunkcore.report.excerpts import Place, excerpts
from chunkcore.report.notes import HOW
from chunkcore.report.packs import Pack
from chunkcore.report.study import Study
from chunkcore.report.text import page_text

__all__ = ["Viewer", "viewer"]

# Deeper answers are no reason to carry a document's text.
_DEEPEST = 10


@dataclass(frozen=True)
class Viewer:
    """The viewer's data.

    Attributes:
        index: what the page reads at once.
        packs: what it unpacks when it is looked at.
        documents: the number of each listed document, by its id.
        notes: what was left out, a sentence or two each.
    """

    index: dict[str, Any]
    packs: list[Pack]
    documents: Mapping[str, int]
    notes: list[str]


def viewer(study: Study) -> Viewer | None:
    """The viewer's data; None where the study has no documents to show."""
    benchmark = study.benchmark
    if benchmark is None:
        return None
    runs = [report.run for report in study.reports]
    carried = excerpts(benchmark.documents, _places(benchmark, runs))
    listed = [benchmark.documents[number] for number in carried.numbers]
    numbers = {document.id: at for at, document in enumerate(listed)}
    found = answers(benchmark, runs, numbers)
    index = {
        "ids": [page_text(document.id) for document in listed],
        "sizes": [document.size for document in listed],
        "shelves": carried.firsts,
        "answers": [pack.name if pack else "" for pack in found.packs],
        "hows": [HOW[how] for how in HOWS],
    }
    packs = [*carried.shelves, *(pack for pack in found.packs if pack)]
    return Viewer(index, packs, numbers, [note for note in (carried.note, found.note) if note])


def _places(benchmark: Benchmark, runs: Sequence[Run | None]) -> list[Place]:
    """All evidence, then what was retrieved, down to a depth."""
    number = {document.id: at for at, document in enumerate(benchmark.documents)}
    found = dict.fromkeys(
        Place(number[each.document_id], each.span.start, each.span.end)
        for query in benchmark.queries
        for each in query.evidence
    )
    for run in runs:
        for pieces in run.results.values() if run else ():
            for rank, piece in enumerate(pieces[:_DEEPEST], 1):
                if (at := number.get(piece.document_id)) is not None:
                    for span in piece.spans:
                        found[Place(at, span.start, span.end, rank)] = None
    return list(found)
