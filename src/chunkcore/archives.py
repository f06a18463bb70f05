"""ZIP files, unpacked within limits."""

from __future__ import annotations

import errno
import stat
import unicodedata
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

from chunkcore.errors import DataError, echo

if TYPE_CHECKING:
    from zipfile import ZipInfo

_BLOCK = 1024**2
_RATIO = 50  # text is packed to a fifth or so; bombs to a thousandth
_ALWAYS = 64 * 1024**2  # bytes that are unpacked at any ratio
_FILES = 200_000
_MEMBERS = 10_000
_ENCRYPTED = 0x1


def unzip(archive: Path, folder: Path) -> None:
    """Unpack a ZIP file into an empty folder.

    Verified checksums do not replace the checks here: some publishers state an MD5, which can be forged.

    Raises:
        DataError: as `ArchiveMembers`; or a name leads out of the folder, is a link or is there twice. Files unpacked
            before stay.
        OSError: the files cannot be written.
    """
    with archive.open("rb") as file:
        _unpack(ArchiveMembers(file, str(archive), _FILES), archive, folder)


def _unpack(opened: ArchiveMembers, archive: Path, folder: Path) -> None:
    for member in opened.members:
        target = folder / _safe(member, archive)
        try:
            (target if member.is_dir() else target.parent).mkdir(parents=True, exist_ok=True)
            if not member.is_dir():
                with target.open("xb") as file:
                    file.writelines(opened.blocks(member))
        except FileExistsError as error:
            raise DataError(f"{archive} has the file {error.filename} twice") from error
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            raise DataError(f"{archive.name} has the file {echo(member.filename)}, whose name is too long") from error


class ArchiveMembers:
    """The members of an open ZIP file, unpacked within limits; `name` is its name in messages.

    Raises `DataError`: no ZIP file, or damaged; over `most` members; a member is encrypted or packed in an unusual way;
    or they unpack to over 50 times the file, and over 64 MB.
    """

    def __init__(self, file: IO[bytes], name: str, most: int = _MEMBERS) -> None:
        from zipfile import ZipFile  # slow to import, as importlib.metadata

        self._archive = name
        self._room = max(_ALWAYS, _RATIO * file.seek(0, 2))
        with self._telling_damage():
            self._file = ZipFile(file)
        self.members = self._file.infolist()
        self._named = {member.filename: member for member in self.members}
        if len(self.members) > most:
            raise DataError(f"{name} has {len(self.members):,} files, over {most:,}: nothing is unpacked")

    def __contains__(self, name: str) -> bool:
        return name in self._named

    def read(self, name: str) -> bytes:
        """A member's bytes. Raises `DataError`: there is none."""
        if name not in self._named:
            raise DataError(f"{self._archive} lacks {name!r}: it is damaged")
        return b"".join(self.blocks(self._named[name]))

    def check(self) -> None:
        """Unpack all members once and keep nothing. Raises `DataError`: a limit is reached, or a member is damaged."""
        for member in self.members:
            for _ in self.blocks(member):
                pass

    def blocks(self, member: ZipInfo) -> Iterator[bytes]:
        """A member's bytes, which count against the limit of all: a header may misstate the size."""
        from zipfile import ZIP_DEFLATED, ZIP_STORED

        if member.flag_bits & _ENCRYPTED or member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            shown = echo(member.filename)
            raise DataError(f"{self._archive} has {shown}, which is encrypted, or packed in an unusual way")
        with self._telling_damage(), self._file.open(member) as source:
            while block := source.read(_BLOCK):
                self._room -= len(block)
                if self._room < 0:
                    raise DataError(f"{self._archive} unpacks to over {_RATIO} times its size: it is not unpacked")
                yield block

    @contextmanager
    def _telling_damage(self) -> Iterator[None]:
        from zipfile import BadZipFile

        try:
            yield
        except DataError:
            raise
        except (BadZipFile, zlib.error, RuntimeError, EOFError, ValueError, OSError) as error:
            if isinstance(error, OSError) and error.errno != errno.EINVAL:  # of a seek before the file's beginning
                raise
            raise DataError(f"{self._archive} is damaged, or no ZIP file: {error}") from error


def _safe(member: ZipInfo, archive: Path) -> PurePosixPath:
    name = PurePosixPath(member.filename)
    kind = stat.S_IFMT(member.external_attr >> 16)
    leads_out = name.is_absolute() or ".." in name.parts or "\\" in member.filename or ":" in member.filename
    if leads_out or not name.parts:
        raise DataError(f"{archive.name} has a file {echo(member.filename)}, which would lead out of its folder")
    if any(unicodedata.category(letter) in ("Cc", "Zl", "Zp") for letter in member.filename):
        raise DataError(f"{archive.name} has a file {echo(member.filename)}, whose name has control characters")
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise DataError(f"{archive.name} has {echo(member.filename)}, which is no plain file")
    return name
