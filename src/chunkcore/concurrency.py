"""Work in batches, in threads, and in processes that run nothing of the current folder."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from types import ModuleType
from typing import Any, BinaryIO, TypeVar

R = TypeVar("R")
T = TypeVar("T")

# Called with a step's name, how much of it is done, and how much there is.
Progress = Callable[[str, int, int], None]


def no_progress(step: str, done: int, total: int) -> None:
    """Tell nobody; unlike a lambda, it can be pickled."""


_thread = threading.local()


def ordered(
    pool: ThreadPoolExecutor,
    work: Callable[[T], R],
    items: Iterator[T],
    ahead: int,
) -> Iterator[R]:
    """Yield ``work(item)`` in the order of the items, with at most `ahead` calls under way.

    When the iterator is closed (by an error or Ctrl-C), calls that have not begun are cancelled. Threads at work, and
    threads they wait for, see the cancellation in `check_wanted`.

    >>> with ThreadPoolExecutor(2) as pool:
    ...     list(ordered(pool, str.upper, iter("abc"), ahead=2))
    ['A', 'B', 'C']
    """
    stopped = threading.Event()
    stops = (*getattr(_thread, "stops", ()), stopped)  # also of the threads that wait for these

    def in_thread(item: T) -> R:
        _thread.stops = stops
        try:
            return work(item)
        finally:
            _thread.stops = ()

    waiting: deque[Future[R]] = deque(pool.submit(in_thread, item) for item in islice(items, ahead))
    try:
        while waiting:
            yield waiting.popleft().result()
            waiting.extend(pool.submit(in_thread, item) for item in islice(items, 1))
    finally:
        stopped.set()
        for future in waiting:
            future.cancel()


def check_wanted() -> None:
    """Call before expensive work in a thread of `ordered`; raises `CancelledError` if its results are not wanted."""
    if any(stop.is_set() for stop in getattr(_thread, "stops", ())):
        raise CancelledError


_LENGTH = 8  # bytes that state the length of a block
_PACKAGE = str(Path(__file__).resolve().parents[1])


def _normal(folder: str) -> str:
    return os.path.normcase(os.path.realpath(folder))


def python_command(source: str, *arguments: object) -> list[str]:
    """The command of a process that runs Python source with ``sys.argv[1:]`` as given. It imports from the folders of
    this process, less the current one, and from the package's.

    >>> subprocess.run(python_command("import sys; print(sys.argv[1:])", 7), capture_output=True).stdout.split()
    [b"['7']"]
    """
    begin = f"import sys; sys.path[:] = sys.argv.pop(1).split({os.pathsep!r})\n"
    options = [
        "-I",
        "-X",
        f"utf8={sys.flags.utf8_mode}",
        *(f"-W{rule}" for rule in sys.warnoptions),
    ]
    current = ""
    with suppress(OSError):  # the folder is gone
        current = _normal(os.getcwd())  # noqa: PTH109
    folders = [folder for folder in sys.path if folder and _normal(folder) != current]
    path = os.pathsep.join(dict.fromkeys([*folders, _PACKAGE]))
    return [sys.executable, *options, "-c", begin + source, path, *map(str, arguments)]


# Python's own folder, where no stranger's file lies and nothing is written.
PROCESS_FOLDER = sys.base_prefix


class Worker:
    """A process that answers blocks of bytes with blocks of bytes.

    It runs a program that reads its requests from `requests` and writes by `answers`. It ends with the process that
    started it, and Ctrl-C does not reach it.
    """

    def __init__(self, program: str, environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(  # noqa: S603  # our own module, in this interpreter
            python_command(program),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=PROCESS_FOLDER,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        self._input: Any = self.process.stdin
        self._output: Any = self.process.stdout

    def send(self, block: bytes) -> None:
        """Send a block. A process that has died takes nothing: `receive` says so."""
        with suppress(OSError, ValueError):
            write_block(self._input, block)

    def receive(self, most: int) -> bytes | None:
        """The next block; None if the process has died, or the block is over `most` bytes."""
        try:
            return read_block(self._output, most)
        except (OSError, ValueError):  # another thread has stopped it
            return None

    def stop(self) -> None:
        """End the process and wait for its end."""
        self.process.kill()
        self.process.wait()
        for pipe in (self._input, self._output):
            with suppress(OSError):
                pipe.close()


def read_block(file: BinaryIO, most: int = sys.maxsize) -> bytes | None:
    """The next block; None at the end, and for one of over `most` bytes."""
    length = file.read(_LENGTH)
    size = int.from_bytes(length, "big")
    if len(length) < _LENGTH or size > most:
        return None
    block = file.read(size)
    return block if len(block) == size else None


def write_block(file: BinaryIO, block: bytes) -> None:
    """Write a block with its length before it."""
    file.write(len(block).to_bytes(_LENGTH, "big"))
    file.write(block)
    file.flush()


# ---- In the process


def requests() -> Iterator[bytes]:
    """The blocks that come. The process ends when no more can come, even at work."""
    blocks = SimpleQueue[bytes]()

    def listen() -> None:
        while (block := read_block(sys.stdin.buffer)) is not None:
            blocks.put(block)
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        yield blocks.get()


def answers() -> BinaryIO:
    """Where blocks of answers go. What is printed from now on goes to standard error instead."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return output


def place_of(module: str) -> str:
    """The folder from which a module was imported, for `import_from`; "" where it came from no file."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return ""
    depth = module.count(".") + (Path(file).stem == "__init__")
    return str(Path(file).resolve().parents[depth])


def import_from(module: str, place: str) -> ModuleType:
    """A module that another process has imported; where the path lacks it, its folder becomes the path's last."""
    try:
        return import_module(module)
    except ModuleNotFoundError:
        sys.path.append(place)
        return import_module(module)
