"""Members of ZIP files, read within limits."""

from __future__ import annotations

import errno
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from chunkcore.errors import DataError, echo

if TYPE_CHECKING:
    from zipfile import ZipInfo

_BLOCK = 1024**2
_RATIO = 50  # text is packed to a fifth or so; bombs to a thousandth
_ALWAYS = 64 * 1024**2  # bytes that are unpacked at any ratio
_MEMBERS = 10_000
_ENCRYPTED = 0x1


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
