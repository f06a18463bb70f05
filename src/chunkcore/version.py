"""Which version of the package is installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

__all__ = ["installed_version"]


def installed_version() -> str:
    """The installed package's version; "of a source tree" where none is installed.

    >>> installed_version() != ""
    True
    """
    try:
        return version("chunkadapters")
    except PackageNotFoundError:
        return "of a source tree"
