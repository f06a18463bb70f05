"""Files: opened safely; text, JSON and CSV read; whole files and logs written; temporary files.

Text is UTF-8, with newlines unchanged. Lines and rows are streamed, one at a time in memory.
"""

from __future__ import annotations

import csv
import errno
import json
import os
import re
import secrets
import shlex
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from chunkcore.errors import DataError, NotWrittenError, echo
from chunkcore.plain import JsonObject, digest

_PDF = b"%PDF-"  # the one common binary format that can be without NULs
_UTF_16_OR_32 = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
# Bytes of a JSON file, which is read whole and takes several times as much memory.
_WHOLE = 512 * 1024**2
_LONGEST_LINE = 512 * 1024**2  # bytes of one line


class NoTextError(DataError):
    """A file without text in any encoding: empty, or an image, an archive, a PDF. `reason` follows the file's name."""

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(str(path), reason)
        self.path, self.reason = str(path), reason

    def __str__(self) -> str:
        return " ".join(self.args)


class UnreadError(NoTextError):
    """A file that cannot be read: encrypted, broken, pictures only, not permitted, too large, or lacking a package."""


@cache
def _system_devices() -> set[int]:
    """The file systems of /proc, /sys and /dev: their files are the machine's state, some without end."""
    return {
        os.stat(place).st_dev  # noqa: PTH116
        for place in ("/proc", "/sys", "/dev")
        if os.path.ismount(place)
    }


def open_file(path: Path, *, inside: Path | None = None, pipes: bool = False) -> BinaryIO:
    """A regular file, opened for reading and judged by what was opened; with `pipes` a pipe, too.

    Opening never waits, but for a pipe that is allowed. Raises:
        UnreadError: a link leads out of the folder `inside`; or a device, a socket, a file of /proc, /sys or /dev, or a
            pipe that is not allowed.
        OSError: it cannot be opened.
    """
    if inside is not None and os.path.islink(path):  # noqa: PTH114  # Path's is slower, and there may be millions
        link, path = path, Path(os.path.realpath(path))
        if not path.is_relative_to(os.path.realpath(inside)):
            raise UnreadError(link, _OUTSIDE)
    is_pipe = pipes and path.is_fifo()
    flags = _WAITING
    if not is_pipe:
        flags |= _NOT_WAITING
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno != errno.ENXIO:  # a socket
            raise
        raise UnreadError(path, f"is a socket: {_REGULAR}") from error
    state = os.fstat(descriptor)
    if is_pipe or (stat.S_ISREG(state.st_mode) and state.st_dev not in _system_devices()):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(state.st_mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder: name a file in it", str(path))
    kind = "pipe" if stat.S_ISFIFO(state.st_mode) else "device"
    raise UnreadError(path, f"is a {kind}: {_REGULAR}")


_WAITING = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_NOT_WAITING = getattr(os, "O_NONBLOCK", 0)
_OUTSIDE = "is a link out of the folder: copy the file in, or allow links (--follow-links, follow_links=True)"
_REGULAR = "expected a file or a folder, or - for standard input"


def read_text(path: Path) -> str:
    """The file's text, decoded as UTF-8, with its newlines and byte order mark.

    Raises:
        NoTextError: the file is empty or binary.
        DataError: the file cannot be read, or is text in another encoding than UTF-8.
    """
    try:
        with open_file(path, pipes=True) as file:
            data = file.read()
    except OSError as error:
        raise unreadable(path, error) from error
    if not data:
        raise empty(path)
    return decoded(data, path)


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    r"""Line number, from 1, and line with its newline, without byte order mark. Only ``\n`` ends a line. Raises
    `DataError`: as `read_text`, with the number of the line that is not UTF-8.
    """
    before = 0
    try:
        with open_file(path, pipes=True) as file:
            lines = iter(partial(file.readline, _LONGEST_LINE + 1), b"")
            for number, data in enumerate(lines, start=1):
                if len(data) > _LONGEST_LINE:
                    size = f"over {_LONGEST_LINE // 1024**2} MB"
                    raise DataError(f"{path}, line {number}: {size}, which is hardly a line")
                text = decoded(data, path, before=before, line=number)
                yield number, text if before else text.removeprefix("\ufeff")
                before += len(data)
    except OSError as error:
        raise unreadable(path, error) from error
    if not before:
        raise empty(path)


def json_lines(path: Path) -> Iterator[tuple[int, JsonObject]]:
    """Line number, from 1, and object of each line that is not blank. Raises `DataError`: no object, or no text."""
    # Not str.splitlines, which cuts at U+2028 and U+0085: JSON strings may contain them.
    for number, line in text_lines(path):
        if line.strip():
            yield number, json_object(line, f"{path}, line {number}: ")


def json_object(line: str, place: str = "") -> JsonObject:
    """The JSON object of a line. Raises `DataError`, which begins with `place`, for any other line."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = str(error)
        if isinstance(error, json.JSONDecodeError):  # whose line is always 1
            reason = f"{error.msg}, at character {error.pos + 1}"
        raise DataError(f"{place}not JSON ({reason}); each line is one JSON object") from error
    if not isinstance(row, dict):
        raise DataError(
            f"{place}expected one JSON object a line, {{...}}, got {type(row).__name__} {echo(line.strip()[:40])}"
        )
    return row


def read_json(path: Path) -> Any:
    """The content of a JSON file. Raises `DataError`: no JSON; over 512 MB; or as `read_text`."""
    if path.is_file() and path.stat().st_size > _WHOLE:
        raise DataError(f"{path} has over {_WHOLE // 1024**2} MB: split it, or write JSON lines")
    text = read_text(path)
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON ({error})") from error


TABLES = (".csv", ".tsv")  # endings of files that `csv_rows` reads


def csv_rows(path: Path, columns: Collection[str]) -> Iterator[tuple[int, dict[str, str | None]]]:
    """The number of its last line, from 1, and each row of a CSV file with a header; missing values are None.

    A header without a comma may have semicolons or tabs. In a file that ends in .tsv quotation marks are text.
    `columns` are the required ones.

    Raises `DataError`: a column is missing, a row is longer than the header, the file is no CSV; or as `text_lines`.
    """
    # Lines keep their newlines, so that line feeds inside quotes survive.
    lines = (line for _, line in text_lines(path))
    first = next(lines, "")
    sign = next((sign for sign in ",;\t" if sign in first), ",")
    quoting: Any = csv.QUOTE_MINIMAL
    if path.suffix.lower() == ".tsv":
        sign, quoting = "\t", csv.QUOTE_NONE
    rows = chain([first], lines)
    reader = csv.DictReader(rows, delimiter=sign, quoting=quoting, strict=True)
    try:
        header = reader.fieldnames or []
        missing = [column for column in columns if column not in header]
        if missing:
            raise DataError(
                f"{path} lacks the column {' and '.join(missing)}, got {', '.join(header) or 'none'}"
            )
        for row in reader:
            beyond = row.get(reader.restkey)
            if beyond:
                raise DataError(
                    f"{path}, line {reader.line_num}: {len(header) + len(beyond)} values, but the header names "
                    f"{len(header)} columns: put quotes around values with commas"
                )
            yield reader.line_num, row
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.reader.line_num}: not CSV ({error})") from error


def decoded(data: bytes, path: Path | str, *, before: int = 0, line: int = 0) -> str:
    """The text of a file, or of its line number `line` after `before` bytes.

    Raises:
        NoTextError: the bytes are binary.
        UnreadError: they are text in another encoding than UTF-8.
    """
    nulls = data.count(b"\x00")
    is_wide = data.startswith(_UTF_16_OR_32)
    if 4 * nulls > len(data) and not is_wide:  # as in an archive of texts
        raise _binary(path)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        if data.startswith(_PDF) or (nulls and not is_wide):
            raise _binary(path) from error
        number = line or data.count(b"\n", 0, error.start) + 1
        place = f"byte {before + error.start} is 0x{data[error.start]:02x}"
        raise UnreadError(
            path, f"is not UTF-8 text ({place}) on line {number}: convert it, or take it out"
        ) from error


def _binary(path: Path | str) -> NoTextError:
    suffix = Path(path).suffix
    kind = suffix.lower() if 0 < len(suffix) < 12 else "its kind"
    return NoTextError(
        path, f"is no text, and there is no reader for {kind}: convert it, or take it out"
    )


def unreadable(path: Path, error: OSError) -> UnreadError:
    """The error of a file or folder that cannot be read."""
    return UnreadError(path, f"cannot be read: {error.strerror or error}")


def empty(path: Path) -> NoTextError:
    """The error of an empty file."""
    return NoTextError(path, "is empty: fill it or take it out")


def write_text(path: Path, text: str) -> Path:
    """`write_parts` of one text, as UTF-8."""
    return write_parts(path, [text.encode("utf-8")])


def write_parts(path: Path, parts: Iterable[bytes]) -> Path:
    """Write the parts to a temporary file beside `path` and move it over `path`; folders are created. Raises
    `NotWrittenError`: the folder cannot be written to, or the disk is full; another `OSError`: the name is a folder's.

    A reader finds the old file or the new one, also after a power loss. After any failure, also while the parts are
    made, the old file stays and nothing else is left. A symbolic link stays, and its target is written. A device or a
    named pipe is written to directly.
    """
    write_files({path: parts})
    return path


def write_files(contents: Mapping[Path, Iterable[bytes]]) -> None:
    """`write_parts` of several files: all are on the disk before the first is moved, so a full disk changes none."""
    unfinished = {}
    path = Path()
    try:
        for path, parts in contents.items():
            target = Path(os.path.realpath(path))
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, "is a folder: name a file in it", str(path))  # noqa: TRY301
            # Not of the resolved path: /dev/stdout may lead to a pipe, whose resolved path does not exist.
            if path.exists() and not path.is_file():
                with path.open("wb") as file:
                    file.writelines(parts)
                continue
            _make_folder(target.parent)
            written = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part")
            unfinished[target] = written
            with written.open("xb") as file:
                with suppress(OSError):  # a file that only its owner may read stays so
                    written.chmod(stat.S_IMODE(target.stat().st_mode))
                file.writelines(parts)
                file.flush()
                os.fsync(file.fileno())
        for path, written in unfinished.items():
            written.replace(path)
    except BaseException as error:
        for written in unfinished.values():
            with suppress(OSError):
                written.unlink()
        if isinstance(error, OSError):
            raise NotWrittenError.of(path, error) from error
        raise
    for folder in {target.parent for target in unfinished}:
        sync_folder(folder)


def check_no_link(*paths: Path) -> None:
    """Raise `DataError`: a file whose name nobody typed is a link, and what it leads to would be replaced."""
    for path in paths:
        if path.is_symlink():
            raise DataError(
                f"{path} is a link, and nothing is written to where it leads: remove it"
            )


CHECKSUMS = "checksums.json"
LOCK = ".chunkcore.lock"


def true_path(path: Path) -> Path:
    """Where a file lies, or will lie: one path for all symbolic links that lead to it, and for all spellings of its
    name, where the file system takes capitals or composed letters for others.
    """
    place = Path(os.path.realpath(path))
    with suppress(OSError):  # a folder that may not be listed
        if place.exists() and place.name not in os.listdir(place.parent):  # noqa: PTH208
            state = place.stat()
            spellings = place.parent.iterdir()
            return next(
                (name for name in spellings if os.path.samestat(name.lstat(), state)), place
            )
    return place


def write_checked(contents: Mapping[Path, bytes]) -> None:
    """Write files, and their checksums into the ``checksums.json`` of their folder, which `check_unchanged` compares.

    The checksums are written first, beside those of the old files: at any moment a file is accepted, old or new. A
    symbolic link stays: its target is written, and has its checksum in the target's folder.
    """
    places = {true_path(path): data for path, data in contents.items()}
    # An order for all, so that none waits for another.
    folders = sorted({path.parent for path in places})
    with ExitStack() as locks:
        for folder in folders:
            locks.enter_context(locked_folder(folder))
        for folder in folders:
            place = folder / CHECKSUMS
            check_no_link(place)
            try:
                checksums = dict(read_json(place))
            except (TypeError, ValueError):  # there is none, or it is damaged
                checksums = {}
            for path, data in places.items():
                if path.parent == folder:
                    accepted = [data, path.read_bytes()] if path.is_file() else [data]
                    checksums[path.name] = list(map(digest, accepted))
            write_text(place, json.dumps(checksums) + "\n")
        write_files({path: [data] for path, data in places.items()})


@contextmanager
def locked_folder(folder: Path, name: str = LOCK) -> Iterator[None]:
    """Within the block no other thread or process is in such a block for the same folder. Blocks may be nested.

    `name` is of the file that is locked.

    Raises `NotWrittenError`: the folder cannot be written; another `OSError`: it is a file.
    """
    from filelock import FileLock

    with ExitStack() as held:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            held.enter_context(FileLock(folder.resolve() / name, is_singleton=True))
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP):  # some network file systems
                raise NotWrittenError.of(folder, error) from error
        yield


def check_unchanged(path: Path) -> None:
    """Compare a file with its checksum, if `write_checked` wrote it. Raises `DataError`: it is damaged or edited."""
    if _is_unchanged(path):
        return
    # A process may have been writing.
    with suppress(OSError), locked_folder(true_path(path).parent):
        if _is_unchanged(path):
            return
    raise DataError(
        f"{path} is not what was written. If you edited it, accept it: chunkcore questions accept "
        f"{shlex.quote(str(path))}. If not, it is damaged: write it again"
    )


def _is_unchanged(path: Path) -> bool:
    file, checksums = _checksums_of(path)
    accepted = checksums.get(file.name)
    if not isinstance(accepted, list):
        return True
    return file.is_file() and digest(file.read_bytes()) in accepted


def _checksums_of(path: Path) -> tuple[Path, JsonObject]:
    """A file by the name that the checksums of its folder have, and these; {} where they do not have it.

    They are those of the file's own folder, else those beside a link to it, as in a folder of links to a store.
    """
    for file in (true_path(path), path):
        place = file.with_name(CHECKSUMS)
        checksums = read_json(place) if place.is_file() else {}
        if isinstance(checksums, dict) and file.name in checksums:
            return file, checksums
    return path, {}


def accept_edit(path: Path) -> None:
    """Write the checksum of a file anew; the file stays as it is. Raises `DataError`: it has none."""
    with locked_folder(true_path(path).parent):
        file, checksums = _checksums_of(path)
        place = file.with_name(CHECKSUMS)
        check_no_link(place)
        if not checksums:
            raise DataError(
                f"{path} has no checksum in {place}: there is nothing to accept, edit it as you like"
            )
        checksums[file.name] = [digest(file.read_bytes())]
        write_text(place, json.dumps(checksums) + "\n")


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it, and write their names to the disk."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for place in missing:
        sync_folder(place.parent)


def sync_folder(folder: Path) -> None:
    """Write a folder's names to the disk, without which a power loss may undo a rename. Windows has no such call."""
    if os.name != "nt":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems
                raise
        finally:
            os.close(descriptor)


def utf8_line(row: Mapping[str, Any]) -> bytes:
    """A JSON object as a line, with JSON's escapes for surrogates and for what steers terminals."""
    text = json.dumps(row, ensure_ascii=False)
    escaped = _ESCAPED.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)
    return f"{escaped}\n".encode()


_ESCAPED = re.compile("[\x7f-\x9f\ud800-\udfff]")


def installed_version() -> str:
    """The installed package's version; "of a source tree" without one."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("chunkadapters")
    except PackageNotFoundError:
        return "of a source tree"
