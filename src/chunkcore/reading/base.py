"""`Reader`, the registry `readers`, and the process in which files are read, without the network.

Parsers of strangers' files are many and some are native code, and a small file may unpack to gigabytes or take hours.
So they run in a process with limits of time, memory and output, which gets a file's bytes and answers with a document.
It is started once and reads file after file; one that reaches a limit is killed, and the next file starts another.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import reduce
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

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
    places={
        "DOCX": "chunkcore.reading.office:Docx",
        "EPUB": "chunkcore.reading.office:Epub",
        "PDF": "chunkcore.reading.pdf:Pdf",
        "PPTX": "chunkcore.reading.office:Pptx",
        "XLSX": "chunkcore.reading.office:Xlsx",
        "e-mail": "chunkcore.reading.messages:Email",
        "notebook": "chunkcore.reading.office:Notebook",
    },
)


class FileNotes:
    """Notes on a folder's files, each with the names of its files, a few of which are told.

    >>> notes = FileNotes()
    >>> for name in "abcdefg":
    ...     notes.add("is empty", name)
    >>> list(notes.lines())
    ['a, b, c, d, e and 2 more: is empty']
    """

    def __init__(self) -> None:
        self._names: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, note: str, name: str) -> None:
        self._names[note].append(name)

    def lines(self) -> Iterator[str]:
        yield from (
            f"{listed(names)}: {note}" for note, names in islice(self._names.items(), _LINES)
        )
        if rest := sum(map(len, islice(self._names.values(), _LINES, None))):
            yield f"{rest:,} more for other reasons"


_LINES = 20


def listed(names: Sequence[object]) -> str:
    """The first five, and how many more there are."""
    more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
    return f"{', '.join(map(str, names[:5]))}{more}"


SECONDS = 60.0  # for a file
MEMORY = 2 * 1024**3  # bytes of address space beyond the process's own
OUTPUT = 256 * 1024**2  # bytes of a document, as JSON

_idle: list[subprocess.Popen[bytes]] = []
_lock = threading.Lock()


def read_guarded(reader: type[Reader], data: bytes, path: Path, name: str) -> Reading:
    """What the reader makes of a file's bytes. Raises `UnreadError`, with the file's path: it cannot be read."""
    if (
        reader.__module__ == "__main__" or "<locals>" in reader.__qualname__
    ):  # the process cannot import it
        return _read(reader, data, path, name)
    worker = _started()
    timer = threading.Timer(SECONDS, worker.kill)
    timer.daemon = True
    timer.start()
    row: dict[str, Any] = {}
    try:
        for row in _answers(worker, reader, data, name):
            if "error" in row:
                raise UnreadError(path, row["error"])
    finally:
        timer.cancel()
        if row.get("ends") and worker.poll() is None:
            with _lock:
                _idle.append(worker)
        else:
            _stop(worker)
    if "text" not in row:
        limits = f"{SECONDS:.0f} s, {MEMORY / 1024**3:.0f} GB of memory and {OUTPUT // 1024**2} MB of text"
        reached = f" ({row['reached']} was reached)" if "reached" in row else ""
        raise UnreadError(
            path, f"cannot be read within {limits}{reached}: split it, or take it out"
        )
    marks = tuple(map(Mark.from_dict, row["marks"]))
    return Reading(Document(name, row["text"], row["metadata"], marks), tuple(row["notes"]))


def _answers(
    worker: subprocess.Popen[bytes], reader: type[Reader], data: bytes, name: str
) -> Iterator[dict[str, Any]]:
    """The lines of the process, until it says that the file has ended, or it dies."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    head = {
        "module": reader.__module__,
        "class": reader.__qualname__,
        "name": name,
        "size": len(data),
    }
    with suppress(OSError):  # the process died: its output ends
        worker.stdin.write(json.dumps(head).encode("ascii") + b"\n")
        worker.stdin.write(data)
        worker.stdin.flush()
    while (line := worker.stdout.readline(OUTPUT + 1)).endswith(b"\n"):
        row = json.loads(line)
        yield row
        if row.get("ends"):
            return


def _read(reader: type[Reader], data: bytes, path: Path | str, name: str) -> Reading:
    try:
        return reader().read(data, name)
    except (ChunkcoreError, MemoryError):
        raise
    except (
        Exception
    ) as error:  # a stranger's file may fail a parser in any way, and the other files go on
        shown = " ".join(f"{type(error).__name__}: {error}".split())[:100].rstrip(": ")
        label = next((label for label, kind in readers.items() if kind is reader), reader.__name__)
        raise UnreadError(path, f"is broken ({label}: {shown}): mend it, or take it out") from error


def _started() -> subprocess.Popen[bytes]:
    with _lock:
        while _idle:
            worker = _idle.pop()
            if worker.poll() is None:
                return worker
    paths = os.pathsep.join(folder for folder in sys.path if folder)
    environment = {
        **os.environ,
        "PYTHONPATH": paths,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    return subprocess.Popen(  # our own module, in this interpreter
        [sys.executable, "-c", "from chunkcore.reading.base import serve; serve()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )


def _stop(worker: subprocess.Popen[bytes]) -> None:
    worker.kill()
    for pipe in (worker.stdin, worker.stdout):
        with suppress(OSError):
            assert pipe is not None
            pipe.close()
    worker.wait()


@atexit.register
def _stop_idle() -> None:
    with _lock:
        while _idle:
            _stop(_idle.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # the pipes are the parent's


# ---- The process itself


def serve() -> None:
    """Read the files that come by standard input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a parser prints is no answer

    def answer(**row: Any) -> None:
        output.write(json.dumps(row).encode("ascii") + b"\n")
        output.flush()

    globals()["on_reached"] = lambda place: answer(reached=place)
    _limit()
    while head := sys.stdin.buffer.readline():
        row = json.loads(head)
        try:
            data = sys.stdin.buffer.read(row["size"])
            reader: Any = reduce(getattr, row["class"].split("."), import_module(row["module"]))
            document, notes = _read(reader, data, row["name"], row["name"])
            marks = [mark.to_dict() for mark in document.marks]
            answer(
                text=document.text, metadata=document.metadata, marks=marks, notes=notes, ends=True
            )
        except UnreadError as error:
            answer(error=error.reason, ends=True)
        except ChunkcoreError as error:
            missing = isinstance(error, MissingExtraError)
            reason = (
                f"cannot be read: {error}"
                if missing
                else str(error).removeprefix(f"{row['name']} ")
            )
            answer(error=reason, ends=True)
        except MemoryError:  # the process may hold what failed: it ends
            return


def _limit() -> None:
    with suppress(
        ImportError, OSError, ValueError
    ):  # Windows has no limits, and macOS refuses this one
        import resource

        used = (
            int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
            * resource.getpagesize()
        )
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))

    def refuse(event: str, _: Any) -> None:
        if event in (
            "socket.connect",
            "socket.bind",
            "socket.getaddrinfo",
            "subprocess.Popen",
            "os.system",
            "os.exec",
        ):
            raise PermissionError(f"a file's reader may not use {event}")

    sys.addaudithook(refuse)
