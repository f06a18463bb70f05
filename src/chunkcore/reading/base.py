"""`Reader`, the registry `readers`, and the process in which files are read, without the network.

Parsers of strangers' files are many and some are native code, and a small file may unpack to gigabytes or take hours.
So they run in a process with limits of time, memory and output, which gets a file's bytes and answers with a document.
It is started once and reads file after file; one that reaches a limit is killed, and the next file starts another.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from chunkcore.boundaries import one_line, words
from chunkcore.concurrency import Worker, answers, import_from, place_of, requests, write_block
from chunkcore.errors import ChunkcoreError, MissingExtraError
from chunkcore.files import UnreadError
from chunkcore.registry import Registry
from chunkcore.text import Document, Mark


def on_reached(place: str) -> None:
    """Called by readers with how far they are, such as "page 17": for the message where a limit ends the reading."""


class Reading(NamedTuple):
    """A document, and notes on what is not as the file might lead one to expect: pages without text, an encoding."""

    document: Document
    notes: tuple[str, ...] = ()


class Reader(ABC):
    """Reads files of one kind, from their bytes, in a process with limits (`read_guarded`).

    A reader defined in a program's main module or inside a function cannot be named to that process: it runs in the
    caller's, without limits.

    Attributes:
        name: the registered name.
        endings: of file names, without a dot.
        magic: how such files begin, whatever their names.
    """

    name: ClassVar[str] = ""
    endings: ClassVar[tuple[str, ...]] = ()
    magic: ClassVar[bytes] = b""

    @abstractmethod
    def read(self, data: bytes, name: str) -> Reading:
        """The document `name` of a file's bytes. Raises `UnreadError(name, reason)`; other exceptions become one."""

    def recognises(self, head: bytes) -> bool:
        """Whether a file that begins with these bytes is of this kind."""
        return bool(self.magic) and head.startswith(self.magic)


readers: Registry[type[Reader]] = Registry(
    "reader",
    "chunkcore.readers",
    base=Reader,
    attribute="name",
    entries={
        "DOCX": "chunkcore.reading.office:Docx",
        "EPUB": "chunkcore.reading.office:Epub",
        "HTML": "chunkcore.reading.visible:Page",
        "Office before 2007": "chunkcore.reading.office:OldOffice",
        "PDF": "chunkcore.reading.pdf:Pdf",
        "PPTX": "chunkcore.reading.slides:Pptx",
        "PostScript": "chunkcore.reading.office:PostScript",
        "RTF": "chunkcore.reading.rtf:Rtf",
        "XLSX": "chunkcore.reading.sheets:Xlsx",
        "e-mail": "chunkcore.reading.messages:Email",
        "mailbox": "chunkcore.reading.messages:Mailbox",
        "notebook": "chunkcore.reading.office:Notebook",
        "saved page": "chunkcore.reading.messages:SavedPage",
    },
)


_LINES = 20


def note_lines(notes: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """A line for each note on files, with the names of a few of its files.

    >>> list(note_lines({"is empty": list("abcdefg")}))
    ['a, b, c, d, e and 2 more: is empty']
    """
    for note, names in islice(notes.items(), _LINES):
        yield f"{listed(names)}: {note}"
    rest = sum(map(len, islice(notes.values(), _LINES, None)))
    if rest:
        yield f"{rest:,} more for other reasons"


def listed(names: Sequence[object]) -> str:
    """The first five, and how many more there are."""
    first = ", ".join(map(str, names[:5]))
    return f"{first} and {len(names) - 5:,} more" if len(names) > 5 else first


def excerpts(texts: Iterable[str]) -> str:
    """The beginnings of texts, each once, for a note."""
    lines = dict.fromkeys(map(one_line, texts))
    return listed([repr(line[:100]) for line in lines if line])


def left_out(texts: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """A note for each kind of text that a document lacks.

    >>> left_out({"comments": ["Is  it?", "Is it?"], "equations": []})
    ("comments are left out: 'Is it?'", 'equations are left out')
    """
    notes = (f"{kind} are left out: {excerpts(pieces)}" for kind, pieces in texts.items())
    return tuple(note.removesuffix(": ") for note in notes)


SECONDS = 60.0  # for a file
MEMORY = 2 * 1024**3  # bytes of address space beyond the process's own
OUTPUT = 256 * 1024**2  # bytes of a document, as JSON
_MEMORY = "CHUNKCORE_READER_MEMORY"  # tells the process of `MEMORY`

_idle: list[Worker] = []
_lock = threading.Lock()


def read_guarded(reader: type[Reader], data: bytes, path: Path, name: str) -> Reading:
    """What the reader makes of a file's bytes. Raises `UnreadError`, with the file's path: it cannot be read."""
    if reader.__module__ == "__main__" or "<locals>" in reader.__qualname__:
        return _read(reader, data, path, name)
    module = reader.__module__
    place = place_of(module)
    request = {"module": module, "place": place, "class": reader.__qualname__, "name": name}
    worker = _worker()
    timer = threading.Timer(SECONDS, worker.process.kill)
    timer.daemon = True
    timer.start()
    row: dict[str, Any] | None = None
    reached = ""
    try:
        worker.send(json.dumps(request).encode("ascii"))
        worker.send(data)
        while row is None and (block := worker.receive(OUTPUT)) is not None:
            answer = json.loads(block)
            if "reached" in answer:
                reached = f" ({answer['reached']} was reached)"
            else:
                row = answer
    finally:
        timer.cancel()
        if row is None:
            worker.stop()
    if row is None:
        limits = f"{SECONDS:.0f} s, {MEMORY / 1024**3:.0f} GB of memory and {OUTPUT // 1024**2} MB of text"
        reason = f"cannot be read within {limits}{reached}: split it, or take it out"
        raise UnreadError(path, reason)
    with _lock:
        _idle.append(worker)
    if "error" in row:
        raise UnreadError(path, row["error"])
    marks = tuple(map(Mark.from_dict, row["marks"]))
    return Reading(Document(name, row["text"], row["metadata"], marks), tuple(row["notes"]))


def _read(reader: type[Reader], data: bytes, path: Path | str, name: str) -> Reading:
    try:
        return reader().read(data, name)
    except (ChunkcoreError, MemoryError):
        raise
    except Exception as error:  # a stranger's file may fail a parser in any way
        shown = one_line(f"{type(error).__name__}: {error}")[:100].rstrip(": ")
        label = next((label for label, kind in readers.items() if kind is reader), reader.__name__)
        raise UnreadError(path, f"is broken ({label}: {shown}): mend it, or take it out") from error


def _worker() -> Worker:
    with _lock:
        while _idle:
            worker = _idle.pop()
            if worker.process.poll() is None:
                return worker
            worker.stop()
    limits = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", _MEMORY: str(MEMORY)}
    return Worker("from chunkcore.reading.base import serve; serve()", limits)


@atexit.register
def stop_idle() -> None:
    """End the processes that wait for a file; the next file starts another."""
    with _lock:
        while _idle:
            _idle.pop().stop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # the pipes are the parent's


# ---- In the process


def serve() -> None:
    """Read the files that come; each is a request and the file's bytes."""
    output = answers()

    def answer(**row: object) -> None:
        write_block(output, json.dumps(row).encode("ascii"))

    globals()["on_reached"] = lambda place: answer(reached=place)
    blocks = requests()
    _limit()
    for block in blocks:
        request = json.loads(block)
        data = next(blocks)
        try:
            answer(**_answer(request, data))
        except MemoryError:  # the process may hold what failed: it ends
            return


def _answer(request: Mapping[str, str], data: bytes) -> dict[str, object]:
    name = request["name"]
    try:
        module = import_from(request["module"], request["place"])
        document, notes = _read(attrgetter(request["class"])(module), data, name, name)
    except MissingExtraError as error:
        return {"error": f"cannot be read: {error}"}
    except ChunkcoreError as error:
        return {"error": str(error).removeprefix(f"{name} ")}
    return {
        "text": document.text,
        "metadata": document.metadata,
        "marks": [mark.to_dict() for mark in document.marks],
        "notes": notes,
    }


_REFUSED = words("socket.connect socket.bind socket.getaddrinfo subprocess.Popen os.system os.exec")


def _limit() -> None:
    with suppress(ImportError, OSError, ValueError):  # Windows; and macOS refuses this limit
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        limit = pages * resource.getpagesize() + int(os.environ[_MEMORY])
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    def refuse(event: str, _: object) -> None:
        if event in _REFUSED:
            raise PermissionError(f"a file's reader may not use {event}")

    sys.addaudithook(refuse)
