"""Small collections, written for the tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from chunkcore import Document
from chunkcore.files import utf8_line, write_checked


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8"))
    return path


def jsonl(path: Path, *rows: Any) -> Path:
    return write(path, "".join(json.dumps(row) + "\n" for row in rows))


def collection(folder: Path, documents: Sequence[Document], *rows: Any) -> list[Path]:
    """The files of documents and of questions, with their checksums."""
    texts = []
    for document in documents:
        marks = [mark.to_dict() for mark in document.marks]
        texts.append({"id": document.id, "text": document.text, "metadata": dict(document.metadata), "marks": marks})
    files = {folder / "documents.jsonl": texts, folder / "questions.jsonl": rows}
    write_checked({file: b"".join(map(utf8_line, lines)) for file, lines in files.items()})
    return list(files)


def chroma(root: Path) -> Path:
    write(root / "corpora" / "cats.md", "A cat purrs. A cat sleeps.")
    references = json.dumps([{"content": "A cat", "start_index": 13, "end_index": 18}]).replace('"', '""')
    write(root / "questions_df.csv", f'question,references,corpus_id\r\nWho sleeps?,"{references}",cats\r\n')
    return root


def own(root: Path) -> Path:
    jsonl(root / "documents.jsonl", {"id": "cat", "text": "A cat purrs."})
    jsonl(root / "questions.jsonl", {"question": "Who?", "evidence": ["A cat"]})
    return root


WRITERS: dict[str, Callable[[Path], Path]] = {"chroma": chroma, "chunkcore": own}
