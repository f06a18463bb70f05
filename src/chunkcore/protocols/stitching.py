"""`stitch`: long documents made of short ones, for retrieval that needs something to cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.document import Document, Mark, Span
from chunkcore.errors import OptionError
from chunkcore.evaluation.benchmark import Benchmark, Evidence, Query

__all__ = ["SEAM", "stitch"]

SEAM = "\n\n"  # a blank line, at which every strategy may cut, and a sentence ends


def stitch(benchmark: Benchmark, *, sentences: int = 100, seed: int = 0) -> Benchmark:
    """Shuffle the documents and join them, blank lines between, into ones of about so many sentences.

    The shuffled documents are taken in turn; one is complete where the next would take it farther from `sentences`
    than it is. So they are as near to it as the originals' lengths allow, but for the last, which has what is left,
    and for originals that are longer on their own. A document without text is in none.

    A stitched document tells what it is made of: ``metadata["parts"]`` lists the ``id``, ``start``, ``end`` and, where
    it has some, ``metadata`` of each original, for `parts_of` and for measures of parts, such as ``F1@5[part]``. Marks,
    evidence and the questions' ``document_id`` are moved along. Nothing that a question asks for is changed: the text
    of every piece of evidence is what it was.

    Args:
        benchmark: of short documents.
        sentences: how many sentences a stitched document has, about; at least 1.
        seed: equal seeds give equal documents.

    Returns:
        A benchmark of the same queries on other documents.

    Raises:
        OptionError: `sentences` or `seed` is out of range.

    Source: Qu et al. (2024), appendix C, which has documents of about 100 sentences and leaves open how they are
    joined.

    >>> short = [Document("fox", "A fox naps."), Document("dog", "A dog barks. It runs.")]
    >>> asked = Query("q1", "Who naps?", (Evidence("fox", Span(2, 5)),))
    >>> long = stitch(Benchmark("toy", short, [asked]), sentences=3)
    >>> [evidence] = long.queries[0].evidence
    >>> evidence.document_id, evidence.span.slice(long.documents[0].text)
    ('stitched-1', 'fox')
    """
    if sentences < 1:
        raise OptionError(f"a stitched document has at least 1 sentence, got sentences={sentences}")
    if seed < 0:
        raise OptionError(f"the seed is at least 0, got {seed}")
    groups = list(_groups(_shuffled(benchmark.documents, seed), sentences))
    digits = len(str(len(groups)))
    joined = [_join(f"stitched-{number:0{digits}}", group) for number, group in enumerate(groups, start=1)]
    places = {part: place for each in joined for part, place in each.places.items()}
    return Benchmark(
        f"{benchmark.name}, stitched",
        [each.document for each in joined],
        [_moved_query(query, places) for query in benchmark.queries],
        benchmark.problems,
        tuple(_moved_query(query, places) for query in benchmark.without_evidence),
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an original stands: its document, and how far its offsets have moved."""

    document_id: str
    shift: int


@dataclass(frozen=True, slots=True)
class _Joined:
    document: Document
    places: Mapping[str, _Place]


def _shuffled(documents: Sequence[Document], seed: int) -> list[Document]:
    order = np.random.default_rng(seed).permutation(len(documents))
    return [documents[number] for number in order.tolist() if documents[number].text]


def _groups(documents: Iterable[Document], sentences: int) -> Iterator[list[Document]]:
    group: list[Document] = []
    total = 0
    for document in documents:
        count = len(sentence_ranges(document.text))
        if group and abs(total + count - sentences) > abs(total - sentences):
            yield group
            group, total = [], 0
        group.append(document)
        total += count
    if group:
        yield group


def _join(name: str, group: Sequence[Document]) -> _Joined:
    parts: list[dict[str, Any]] = []
    marks: list[Mark] = []
    places: dict[str, _Place] = {}
    start = 0
    for document in group:
        end = start + len(document.text)
        part = {"id": document.id, "start": start, "end": end}
        parts.append(part | {"metadata": dict(document.metadata)} if document.metadata else part)
        marks += [replace(mark, span=_moved(mark.span, start)) for mark in document.marks]
        places[document.id] = _Place(name, start)
        start = end + len(SEAM)
    text = SEAM.join(document.text for document in group)
    return _Joined(Document(name, text, {"parts": parts}, tuple(marks)), places)


def _moved_query(query: Query, places: Mapping[str, _Place]) -> Query:
    evidence = tuple(_moved_evidence(each, places[each.document_id]) for each in query.evidence)
    named = query.metadata.get("document_id")
    place = places.get(named) if isinstance(named, str) else None
    metadata = {**query.metadata, "document_id": place.document_id} if place else query.metadata
    return replace(query, evidence=evidence, metadata=metadata)


def _moved_evidence(evidence: Evidence, place: _Place) -> Evidence:
    return Evidence(place.document_id, _moved(evidence.span, place.shift))


def _moved(span: Span, shift: int) -> Span:
    return Span(span.start + shift, span.end + shift)
