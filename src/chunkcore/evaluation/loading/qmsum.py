"""QMSum (Zhong et al., 2021): meetings, questions with the turns that answer them, and the topics' turns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chunkcore.document import Span
from chunkcore.errors import DataError
from chunkcore.evaluation.loading.building import TextBuilder
from chunkcore.evaluation.loading.documents import documents_of
from chunkcore.evaluation.loading.files import lacks_keys, with_keys
from chunkcore.evaluation.loading.rows import Contents, Layout, Row, member
from chunkcore.evaluation.textfiles import json_lines, read_json

__all__ = ["QMSUM"]

_KEYS = ("specific_query_list", "topic_list")
_SUFFIXES = (".json", ".jsonl")


def _read(root: Path, _: Path | None) -> Contents:
    """A meeting's text has ``speaker: content`` for each turn, on a line of its own where it has no line feeds.

    Evidence of a specific question is its turns, from the first to the last of each range. General questions (about
    the whole meeting) are without evidence.
    """
    meetings = list(_meetings(root))
    documents = documents_of((place, row) for place, row, _, _ in meetings)
    questions = [
        (Path(here).name, row)  # a list of questions has room for the file's name
        for place, told, turns, meeting in meetings
        for here, row in _questions(meeting, told, turns, place)
    ]
    return Contents(documents, questions)


def _boundaries(root: Path) -> Iterator[Row]:
    """The meetings; a section begins where a topic's turns do, and after its last turn."""
    for place, row, _, _ in _meetings(root):
        yield place, row


def _meetings(root: Path) -> Iterator[tuple[str, dict[str, Any], list[Span], dict[str, Any]]]:
    for file in with_keys(root, _KEYS, _SUFFIXES):
        for place, name, meeting in _listed(file):
            turns, text = _turns(meeting, place)
            starts = _starts(meeting, turns, place)
            yield place, {"id": name, "text": text, "boundaries": starts}, turns, meeting


def _listed(file: Path) -> Iterator[tuple[str, str, Any]]:
    if file.suffix.lower() == ".json":
        yield str(file), file.stem, read_json(file)
        return
    for number, meeting in json_lines(file):
        yield f"{file}, line {number}", f"{file.stem}-{number}", meeting


def _turns(meeting: dict[str, Any], place: str) -> tuple[list[Span], str]:
    builder, turns = TextBuilder("\n"), []
    for number, turn in enumerate(member(meeting, "meeting_transcripts", list, place)):
        here = f"{place}, meeting_transcripts[{number}]"
        span = builder.add(f"{member(turn, 'speaker', str, here)}: {member(turn, 'content', str, here)}")
        turns += [span] if span else []
    return turns, builder.text


def _starts(meeting: dict[str, Any], turns: list[Span], place: str) -> list[int]:
    begin: set[int] = set()
    for number, topic in enumerate(member(meeting, "topic_list", list, place)):
        here = f"{place}, topic_list[{number}]"
        for first, last in _ranges(topic, here):
            if not 0 <= first <= last < len(turns):
                raise DataError(f"{here}: {_outside(first, last, turns)}")
            begin |= {first, last + 1}
    return [turns[turn].start for turn in sorted(begin) if 0 < turn < len(turns)]


def _questions(meeting: dict[str, Any], document: dict[str, Any], turns: list[Span], place: str) -> Iterator[Row]:
    for kind in ("general_query_list", "specific_query_list"):
        for number, row in enumerate(member(meeting, kind, list, place, [])):
            here = f"{place}, {kind}[{number}]"
            told: dict[str, Any] = {
                "id": f"{document['id']}-{kind.partition('_')[0]}-{number + 1}",
                "question": member(row, "query", str, here),
                "document_id": document["id"],
                "answers": [member(row, "answer", str, here)],
            }
            told |= {"without_evidence": True} if kind.startswith("general") else _evidence(_ranges(row, here), turns)
            yield here, told


def _evidence(ranges: list[tuple[int, int]], turns: list[Span]) -> dict[str, Any]:
    for first, last in ranges:
        if not 0 <= first <= last < len(turns):
            return {"left_out": _outside(first, last, turns)}
    return {"evidence": [{"start": turns[first].start, "end": turns[last].end} for first, last in ranges]}


def _outside(first: int, last: int, turns: list[Span]) -> str:
    return f"the turns {first} to {last} are not all among the meeting's {len(turns)}"


def _ranges(row: Any, place: str) -> list[tuple[int, int]]:
    """Pairs of turns, which the files write as strings of digits."""
    found = []
    for pair in member(row, "relevant_text_span", list, place):
        numbers = [str(each).strip() for each in pair] if isinstance(pair, list) else []
        if len(numbers) != 2 or not all(each.isascii() and each.isdigit() and len(each) < 10 for each in numbers):
            raise DataError(f"{place}: expected 'relevant_text_span' to be pairs of turns, got {str(pair)[:40]}")
        found.append((int(numbers[0]), int(numbers[1])))
    return found


QMSUM = Layout(
    name="qmsum",
    files='.json or .jsonl of {"topic_list", "general_query_list", "specific_query_list", "meeting_transcripts"}',
    holds="evidence",
    lacks=lambda root: lacks_keys(root, _KEYS, _SUFFIXES),
    read=_read,
    boundaries=_boundaries,
)
