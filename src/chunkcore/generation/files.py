"""What generating writes: the questions, the rejected ones, what made them, and the page of the filters."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from chunkcore.errors import OptionError
from chunkcore.generation.generate import Generated
from chunkcore.generation.making import Rejection
from chunkcore.generation.page import filter_page
from chunkcore.report.files import write_parts, write_text

__all__ = ["GenerationFiles", "files_beside", "write_generated"]

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class GenerationFiles:
    """Where the parts are, all named after the questions.

    Attributes:
        questions: ``questions.jsonl``.
        rejected: ``questions.rejected.jsonl``.
        info: ``questions.info.json``: seed, model, prompt, options, documents, calls, thresholds.
        journal: ``questions.journal.jsonl``: every call and its answer. With it nothing is paid twice.
        page: ``questions.filters.html``: the distributions that the filters went by.
    """

    questions: Path
    rejected: Path
    info: Path
    journal: Path
    page: Path


def files_beside(questions: Path) -> GenerationFiles:
    """The files that belong to a ``questions.jsonl``.

    Raises:
        OptionError: the name does not end in .jsonl, by which every reader tells what it is.

    >>> files_beside(Path("out/questions.jsonl")).rejected.name
    'questions.rejected.jsonl'
    """
    if questions.suffix != ".jsonl" or not questions.stem:
        raise OptionError(f"the questions go into a file whose name ends in .jsonl, got {questions}")
    return GenerationFiles(
        questions=questions,
        rejected=questions.with_suffix(".rejected.jsonl"),
        info=questions.with_suffix(".info.json"),
        journal=questions.with_suffix(".journal.jsonl"),
        page=questions.with_suffix(".filters.html"),
    )


def write_generated(files: GenerationFiles, generated: Generated) -> None:
    """Write all but the journal, each file whole or not at all; the page only where the filters had an embedder.

    Raises:
        OSError: a file cannot be written.
    """
    write_parts(files.rejected, (_line(_rejected(each)) for each in generated.rejections))
    if generated.filtered is not None:
        write_text(files.page, filter_page(generated.filtered))
    info = {
        "questions": len(generated.rows),
        "rejected": len(generated.rejections),
        "stopped": generated.stopped,
        "unfinished": generated.unfinished,
        **generated.info,
        "usage": asdict(generated.usage),
    }
    write_parts(files.info, [json.dumps(info, indent=2).encode("ascii"), b"\n"])
    write_parts(files.questions, map(_line, generated.rows))


def _rejected(each: Rejection) -> dict[str, Any]:
    return {
        "id": each.id,
        "document_id": each.document_id,
        "sample": [each.sample.start, each.sample.end],
        "stage": each.stage,
        "reason": each.reason,
        "question": each.question,
        "excerpts": list(each.excerpts),
    }


def _line(row: Mapping[str, Any]) -> bytes:
    text = json.dumps(row, ensure_ascii=False)
    if _SURROGATE.search(text):  # UTF-8 cannot say it, JSON's escapes can
        text = json.dumps(row, ensure_ascii=True)
    return f"{text}\n".encode()
