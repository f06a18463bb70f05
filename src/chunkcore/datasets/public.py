"""Public collections with a stable address and a checksum that was published: what can be fetched."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from chunkcore.datasets.archive import unzip
from chunkcore.datasets.download import download
from chunkcore.errors import OptionError
from chunkcore.progress import Progress

__all__ = ["PUBLIC", "PublicDataset", "fetch_dataset"]

_BEIR = "https://public.ukp.informatik.tu-darmstadt.de/thakur/BEIR/datasets"
_SQUAD = "https://rajpurkar.github.io/SQuAD-explorer/dataset"

# As the table of datasets in BEIR's README states them.
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
    """A collection's name, its layout, and its files: addresses with checksums, ``md5:...`` or ``sha256:...``."""

    name: str
    layout: str
    files: tuple[tuple[str, str], ...]


PUBLIC = {
    each.name: each
    for each in (
        *(PublicDataset(name=n, layout="beir", files=((f"{_BEIR}/{n}.zip", f"md5:{md5}"),)) for n, md5 in _MD5.items()),
        *(
            PublicDataset(
                name=name, layout="squad", files=tuple((f"{_SQUAD}/{f}", f"sha256:{sha}") for f, sha in files.items())
            )
            for name, files in _SHA256.items()
        ),
    )
}


def fetch_dataset(
    name: str,
    into: Path,
    *,
    progress: Progress = lambda step, done, total: None,
    known: dict[str, PublicDataset] | None = None,
    schemes: tuple[str, ...] = ("https",),
) -> Path:
    """Fetch a collection, unless it is there: the folder `into` / `name`, whole or not at all.

    Files come over TLS and are checked; archives are unpacked carefully. An interrupted download is gone on with.

    Args:
        name: one of ``PUBLIC``.
        into: the folder that the collection's folder is made in.
        progress: called with a file's name, its bytes that are there and all of them.
        known: other collections than ``PUBLIC``.
        schemes: of addresses that are gone to.

    Raises:
        OptionError: no collection has this name.
        DataError: a file cannot be fetched, or is not what was published.
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
        # Archives of BEIR hold one folder, of the collection's name.
        (inner[0] if len(inner) == 1 and inner[0].is_dir() else folder).rename(target)
    for file in fetched:
        file.unlink(missing_ok=True)
    return target
