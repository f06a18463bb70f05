"""Unpacking an archive that a stranger made: into its folder, no more than is plausible, and nothing but files."""

from __future__ import annotations

import stat
import zlib
from pathlib import Path, PurePosixPath
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from chunkcore.errors import DataError

__all__ = ["unzip"]

_BLOCK = 1024**2
_RATIO = 50  # text is packed to a fifth or so; bombs to a thousandth
_ALWAYS = 64 * 1024**2  # bytes that are unpacked whatever the ratio
_FILES = 200_000
_ENCRYPTED = 0x1


def unzip(archive: Path, folder: Path) -> None:
    """Unpack a ZIP file into a folder that is there and empty.

    Raises:
        DataError: it is no ZIP file or damaged; a name leads out of the folder, is a link or stands there twice; or it
            unpacks to more than is plausible. What was unpacked until then stays.
        OSError: the files cannot be written.
    """
    room = max(_ALWAYS, _RATIO * archive.stat().st_size)
    try:
        with ZipFile(archive) as opened:
            members = opened.infolist()
            if len(members) > _FILES:
                raise DataError(f"{archive.name} has {len(members):,} files, over {_FILES:,}: nothing is unpacked")
            for member in members:
                target = folder / _safe(member, archive)
                if member.is_dir():
                    target.mkdir(parents=True, exist_ok=True)
                else:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    room -= _unpack(opened, member, target, room)
    except FileExistsError as error:
        raise DataError(f"{archive.name} has the file {error.filename} twice") from error
    except (BadZipFile, zlib.error, RuntimeError, EOFError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{archive.name} is damaged, or no ZIP file: {error}") from error


def _safe(member: ZipInfo, archive: Path) -> PurePosixPath:
    name = PurePosixPath(member.filename)
    kind = stat.S_IFMT(member.external_attr >> 16)
    leads_out = name.is_absolute() or ".." in name.parts or "\\" in member.filename or ":" in member.filename
    if leads_out or not name.parts:
        raise DataError(f"{archive.name} has a file {member.filename!r}, which would lead out of its folder")
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR) or member.flag_bits & _ENCRYPTED:
        raise DataError(f"{archive.name} has {member.filename!r}, which is no plain file")
    if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise DataError(f"{archive.name} has {member.filename!r}, which is packed in an unusual way")
    return name


def _unpack(opened: ZipFile, member: ZipInfo, target: Path, room: int) -> int:
    """Write one file, and tell how many bytes it has; what its header says of that is not believed."""
    written = 0
    with opened.open(member) as source, target.open("xb") as file:
        while block := source.read(_BLOCK):
            written += len(block)
            if written > room:
                raise DataError(f"{opened.filename} unpacks to far more than such a collection has: it is not unpacked")
            file.write(block)
    return written
