"""What tells a model apart from others: the content of the files that its vectors depend on."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

__all__ = ["folder_fingerprint"]

_SUFFIXES = {".json", ".safetensors", ".bin", ".txt", ".model"}
_UNREAD = {"data_config.json"}


def folder_fingerprint(folder: Path) -> str:
    """32 hexadecimal digits of the names and contents of a model folder's configuration, vocabulary and weights."""
    digest = sha256()
    for file in sorted(folder.rglob("*")):
        if not file.is_file() or file.suffix not in _SUFFIXES or file.name in _UNREAD:
            continue
        digest.update(file.relative_to(folder).as_posix().encode("utf-8", "surrogateescape") + b"\0")
        with file.open("rb") as content:
            while block := content.read(1 << 20):
                digest.update(block)
        digest.update(b"\0")
    return digest.hexdigest()[:32]
