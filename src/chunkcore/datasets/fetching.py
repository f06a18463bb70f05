"""Downloads of public files: over TLS, resumed after an interruption, checked."""

from __future__ import annotations

import hashlib
import http.client
import shutil
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from chunkcore.archives import unzip
from chunkcore.concurrency import Progress
from chunkcore.errors import DataError, OptionError

_BLOCK = 1024**2
_PATIENCE = 60  # seconds without a byte
_LARGEST = 16 * 1024**3  # bytes; the largest dataset has a few GB
_PARTIAL, _RANGE_NOT_SATISFIABLE = 206, 416


def download(
    url: str,
    target: Path,
    checksum: str,
    *,
    progress: Progress = lambda step, done, total: None,
    schemes: tuple[str, ...] = ("https",),
) -> Path:
    """Download a file unless it exists, and verify its checksum.

    A partial download stays beside the target (``.part``), and the next call resumes it. The target is never partial.
    `checksum` is ``sha256:`` or ``md5:`` and hexadecimal digits: MD5 detects damage; TLS guards against forgery.
    `progress` gets the file's name, the bytes so far and the total. `schemes` are allowed, also for redirections.

    Raises:
        DataError: another scheme, no such file, or a wrong checksum (the file is then removed).
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
    algorithm, _, expected = checksum.partition(":")
    with part.open("rb") as file:
        digest = hashlib.new(algorithm, usedforsecurity=False)
        while block := file.read(_BLOCK):
            digest.update(block)
    if digest.hexdigest() != expected:
        part.unlink()
        raise DataError(
            f"{url} is not the file that was published: its {algorithm} is {digest.hexdigest()}, expected {expected}"
        )
    part.replace(target)
    return target


class _Redirects(HTTPRedirectHandler):
    """Refuses redirections to another scheme: from TLS to plain text, or to a local file."""

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
    """The response from the first missing byte on; the whole file if the server does not support ranges."""
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
    while True:
        try:
            block = response.read(_BLOCK)
        except (OSError, http.client.HTTPException) as error:
            raise DataError(f"{url} stopped sending ({error}): the same command goes on from there") from error
        if not block:
            break
        done += len(block)
        if done > _LARGEST:
            raise DataError(f"{url} sends over {_LARGEST // 1024**3} GB: it is not what it should be")
        file.write(block)
        progress(done, max(expected, done))
    if done < expected:
        raise DataError(f"{url} ended after {done:,} of {expected:,} bytes: the same command goes on from there")


_BEIR = "https://public.ukp.informatik.tu-darmstadt.de/thakur/BEIR/datasets"
_SQUAD = "https://rajpurkar.github.io/SQuAD-explorer/dataset"

# From the table of datasets in BEIR's README.
_MD5 = {
    "arguana": "8ad3e3c2a5867cdced806d6503f29b99",
    "climate-fever": "8b66f0a9126c521bae2bde127b4dc99d",
    "dbpedia-entity": "c2a39eb420a3164af735795df012ac2c",
    "fever": "5a818580227bfb4b35bb6fa46d9b6c03",
    "fiqa": "17918ed23cd04fb15047f73e6c3bd9d9",
    "hotpotqa": "f412724f78b0d91183a0e86805e16114",
    "msmarco": "444067daf65d982533ea17ebd59501e4",
    "nfcorpus": "a89dba18a62ef92f7d323ec890a0d38d",
    "nq": "d4d3d2e48787a744b6f6e691ff534307",
    "quora": "18fb154900ba42a600f84b839c173167",
    "scidocs": "38121350fc3a4d2f48850f6aff52e4a9",
    "scifact": "5f7d1de60b170fc8027bb7898e2efca1",
    "trec-covid": "ce62140cb23feb9becf6270d0d1fe6d1",
    "webis-touche2020": "46f650ba5a527fc69e0a6521c5a23563",
}
_SHA256 = {
    "squad-v1.1": {
        "train-v1.1.json": "3527663986b8295af4f7fcdff1ba1ff3f72d07d61a20f487cb238a6ef92fd955",
        "dev-v1.1.json": "95aa6a52d5d6a735563366753ca50492a658031da74f301ac5238b03966972c9",
    },
    "squad-v2.0": {
        "train-v2.0.json": "68dcfbb971bd3e96d5b46c7177b16c1a4e7d4bdef19fb204502738552dede002",
        "dev-v2.0.json": "80a5225e94905956a6446d296ca1093975c4d3b3260f1d6c8f68bc2ab77182d8",
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicDataset:
    """A public dataset: name, layout, and files with addresses and checksums (``md5:...`` or ``sha256:...``)."""

    name: str
    layout: str
    files: tuple[tuple[str, str], ...]


PUBLIC = {
    name: PublicDataset(name=name, layout="beir", files=((f"{_BEIR}/{name}.zip", f"md5:{md5}"),))
    for name, md5 in _MD5.items()
} | {
    name: PublicDataset(
        name=name, layout="squad", files=tuple((f"{_SQUAD}/{file}", f"sha256:{sha}") for file, sha in files.items())
    )
    for name, files in _SHA256.items()
}


def fetch_dataset(
    name: str,
    into: Path,
    *,
    progress: Progress = lambda step, done, total: None,
    known: dict[str, PublicDataset] | None = None,
    schemes: tuple[str, ...] = ("https",),
) -> Path:
    """Download a dataset of ``PUBLIC`` (or of `known`) to the folder `into` / `name`, unless it exists.

    The folder is never partial. Files are verified; archives are unpacked safely; interrupted downloads resume.

    Raises:
        OptionError: no dataset has this name.
        DataError: a file cannot be fetched, or its checksum is wrong.
        OSError: the files cannot be written.
    """
    listed = PUBLIC if known is None else known
    if name not in listed:
        raise OptionError(f"no collection called {name!r} can be fetched: expected one of {', '.join(listed)}")
    target = into / name
    if target.is_dir():
        return target
    into.mkdir(parents=True, exist_ok=True)
    fetched = [
        download(url, into / f".{name}.{url.rpartition('/')[2]}", checksum, progress=progress, schemes=schemes)
        for url, checksum in listed[name].files
    ]
    with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=into) as made:
        folder = Path(made) / name
        folder.mkdir()
        for (url, _), file in zip(listed[name].files, fetched, strict=True):
            if file.suffix == ".zip":
                unzip(file, folder)
            else:
                shutil.move(file, folder / url.rpartition("/")[2])
        inner = list(folder.iterdir())
        # BEIR's archives hold one folder, named like the dataset.
        (inner[0] if len(inner) == 1 and inner[0].is_dir() else folder).rename(target)
    for file in fetched:
        file.unlink(missing_ok=True)
    return target
