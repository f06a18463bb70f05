"""A file from a public address: streamed, over TLS, gone on with where it was interrupted, and checked."""

from __future__ import annotations

import hashlib
import http.client
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from chunkcore.errors import DataError
from chunkcore.progress import Progress

__all__ = ["download"]

_BLOCK = 1024**2
_PATIENCE = 60  # seconds without a byte
_LARGEST = 16 * 1024**3  # bytes; the largest of the collections has a few GB
_PARTIAL, _RANGE_NOT_SATISFIABLE = 206, 416


def download(
    url: str,
    target: Path,
    checksum: str,
    *,
    progress: Progress = lambda step, done, total: None,
    schemes: tuple[str, ...] = ("https",),
) -> Path:
    """Fetch a file, unless it is there, and check it.

    What has come so far is kept beside the target, in a file whose name ends in ``.part``, from which the next call
    goes on. The target is there whole or not at all.

    Args:
        url: its address.
        target: where it is put; its folder must be there.
        checksum: ``sha256:`` or ``md5:`` and hexadecimal digits, as its publisher states them. An MD5 tells damage, and
            not a forgery; against that there is TLS.
        progress: called with the file's name, the bytes that are there and all of them.
        schemes: of addresses that are gone to, redirections included.

    Raises:
        DataError: the address is of another scheme, it does not answer with the file, or the file is not what the
            checksum says, and is taken away.
        OSError: the file cannot be written.
    """
    if target.is_file():
        return target
    _check_scheme(url, schemes)
    part = target.with_name(f"{target.name}.part")
    kept = part.stat().st_size if part.is_file() else 0
    opener = build_opener(_Redirects(schemes))
    with closing(_open(opener, url, kept)) as response:
        resumed = response.status == _PARTIAL
        with part.open("ab" if resumed else "wb") as file:
            _save(response, file, url, kept if resumed else 0, lambda done, total: progress(target.name, done, total))
    _check(part, checksum, url)
    part.replace(target)
    return target


class _Redirects(HTTPRedirectHandler):
    """Follows redirections, but to no other scheme: none leads from TLS to plain text, or to a local file."""

    def __init__(self, schemes: tuple[str, ...]) -> None:
        self._schemes = schemes

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        _check_scheme(newurl, self._schemes)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _check_scheme(url: str, schemes: tuple[str, ...]) -> None:
    scheme = urlsplit(url).scheme
    if scheme not in schemes:
        raise DataError(f"{url} is no {' or '.join(schemes)} address: nothing is fetched from there")


def _open(opener: OpenerDirector, url: str, kept: int) -> http.client.HTTPResponse:
    """The answer, from the byte on that is not there yet; the whole file where the server gives no parts of it."""
    headers = {"User-Agent": "chunkcore", "Accept-Encoding": "identity"} | ({"Range": f"bytes={kept}-"} if kept else {})
    try:
        response: http.client.HTTPResponse = opener.open(Request(url, headers=headers), timeout=_PATIENCE)  # noqa: S310
    except HTTPError as error:
        error.close()
        if kept and error.code == _RANGE_NOT_SATISFIABLE:
            return _open(opener, url, 0)
        raise DataError(f"{url} answers {error.code} {error.reason}") from None
    except (URLError, http.client.HTTPException, OSError, ValueError) as error:
        raise DataError(f"{url} cannot be reached: {getattr(error, 'reason', None) or error}") from error
    return response


def _save(
    response: http.client.HTTPResponse, file: IO[bytes], url: str, before: int, progress: Callable[[int, int], None]
) -> None:
    length = response.headers.get("Content-Length", "")
    expected = before + int(length) if length.isascii() and length.isdigit() else 0
    done = before
    for block in _blocks(response, url):
        done += len(block)
        if done > _LARGEST:
            raise DataError(f"{url} sends over {_LARGEST // 1024**3} GB: it is not what it should be")
        file.write(block)
        progress(done, max(expected, done))
    if done < expected:
        raise DataError(f"{url} ended after {done:,} of {expected:,} bytes: the same command goes on from there")


def _blocks(response: http.client.HTTPResponse, url: str) -> Iterator[bytes]:
    while True:
        try:
            block = response.read(_BLOCK)
        except (OSError, http.client.HTTPException) as error:
            raise DataError(f"{url} stopped sending ({error}): the same command goes on from there") from error
        if not block:
            return
        yield block


def _check(file: Path, checksum: str, url: str) -> None:
    algorithm, _, expected = checksum.partition(":")
    digest = hashlib.new(algorithm, usedforsecurity=False)
    with file.open("rb") as opened:
        while block := opened.read(_BLOCK):
            digest.update(block)
    if digest.hexdigest() != expected:
        file.unlink()
        raise DataError(
            f"{url} is not the file that was published: its {algorithm} is {digest.hexdigest()}, expected {expected}"
        )
