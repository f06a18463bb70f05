"""Collections are fetched from their own addresses, checked, unpacked with care, and only when asked for."""

from __future__ import annotations

import hashlib
import io
import stat
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from chunkcore.archives import unzip
from chunkcore.cli import main
from chunkcore.datasets.fetching import PUBLIC, PublicDataset, download, fetch_dataset
from chunkcore.errors import DataError, OptionError
from chunkcore.evaluation.benchmarks import known_layouts, load_benchmark
from tests import layouts
from tests.processes import started, wait_for

TEXT = b"0123456789" * 200_000  # two blocks and a little


class Server(ThreadingHTTPServer):
    """Serves what the tests put into `pages`; `asked` tells what came."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages: dict[str, bytes] = {}
        self.cut: dict[str, int] = {}
        self.moved: dict[str, str] = {}
        self.held: dict[str, threading.Event] = {}
        self.asked: list[tuple[str, str]] = []

    def handle_error(self, *_: Any) -> None:
        """Whoever asked was killed, or has hung up."""

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}{path}"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server: Any = self.server
        server.asked.append((self.path, self.headers.get("Range", "")))
        if self.path in server.moved:
            self.send_response(302)
            self.send_header("Location", server.moved[self.path])
            self.end_headers()
            return
        if self.path not in server.pages:
            self.send_error(404, "Not here")
            return
        page = server.pages[self.path]
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        if start > len(page):
            self.send_error(416)
            return
        self.send_response(206 if "Range" in self.headers else 200)
        self.send_header("Content-Length", str(len(page) - start))
        self.end_headers()
        if self.path in server.held:
            self.wfile.write(page[start:1_500_000])
            self.wfile.flush()
            server.held.pop(self.path).wait(60)
            return
        self.wfile.write(page[start : server.cut.pop(self.path, None)])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as started:
        thread = threading.Thread(target=started.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield started
        started.shutdown()
        thread.join()


def sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def zipped(*files: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return packed.getvalue()


def collection(folder: Path) -> bytes:
    """An archive as BEIR's are: one folder, of the collection's name."""
    root = layouts.beir(folder)
    files = sorted(each for each in root.rglob("*") if each.is_file())
    return zipped(*((f"toy/{each.relative_to(root).as_posix()}", each.read_bytes()) for each in files))


def get(server: Server, path: str, target: Path, content: bytes = TEXT) -> Path:
    return download(server.url(path), target, sha256(content), schemes=("http",))


# --- one file ----------------------------------------------------------------------------------------


def test_a_file_is_streamed_checked_and_not_fetched_twice(server: Server, tmp_path: Path) -> None:
    server.pages["/a"] = TEXT
    told: list[tuple[str, int, int]] = []
    for _ in range(2):
        download(
            server.url("/a"),
            tmp_path / "a",
            sha256(TEXT),
            progress=lambda *each: told.append(each),
            schemes=("http",),
        )
    assert (tmp_path / "a").read_bytes() == TEXT
    assert [path for path, _ in server.asked] == ["/a"]
    assert (told[0], told[-1]) == (("a", 1024**2, len(TEXT)), ("a", len(TEXT), len(TEXT)))
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


def test_a_file_of_another_checksum_is_taken_away(server: Server, tmp_path: Path) -> None:
    server.pages["/a"] = TEXT + b"!"
    with pytest.raises(DataError, match=r"/a is not the file that was published: its sha256 is [0-9a-f]{64}, expected"):
        get(server, "/a", tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_download_that_broke_off_goes_on_where_it_was(server: Server, tmp_path: Path) -> None:
    server.pages["/a"] = TEXT
    server.cut["/a"] = 1_500_000
    with pytest.raises(DataError, match=r"1,500,000 of 2,000,000 bytes|stopped sending .*the same command goes on"):
        get(server, "/a", tmp_path / "a")
    kept = (tmp_path / "a.part").stat().st_size
    assert 1024**2 <= kept <= 1_500_000
    assert not (tmp_path / "a").exists()
    told: list[tuple[str, int, int]] = []
    download(
        server.url("/a"),
        tmp_path / "a",
        sha256(TEXT),
        progress=lambda *each: told.append(each),
        schemes=("http",),
    )
    assert (tmp_path / "a").read_bytes() == TEXT
    assert server.asked == [("/a", ""), ("/a", f"bytes={kept}-")]
    assert told == [("a", len(TEXT), len(TEXT))]
    assert not (tmp_path / "a.part").exists()


def test_a_download_whose_process_was_killed_goes_on(server: Server, tmp_path: Path) -> None:
    server.pages["/a"] = TEXT
    server.held["/a"] = held = threading.Event()
    part = tmp_path / "a.part"
    code = (
        "import sys; from pathlib import Path; from chunkcore.datasets.fetching import download\n"
        "download(sys.argv[1], Path(sys.argv[2]), sys.argv[3], schemes=('http',))"
    )
    command = [sys.executable, "-c", code, server.url("/a"), str(tmp_path / "a"), sha256(TEXT)]
    with started(command) as process:
        wait_for(lambda: part.is_file() and part.stat().st_size >= 1024**2, process)
        process.kill()
    held.set()
    assert part.stat().st_size == 1024**2
    assert get(server, "/a", tmp_path / "a").read_bytes() == TEXT
    assert server.asked == [("/a", ""), ("/a", f"bytes={1024**2}-")]


def test_what_is_kept_of_a_longer_file_is_forgotten(server: Server, tmp_path: Path) -> None:
    server.pages["/a"] = TEXT
    (tmp_path / "a.part").write_bytes(TEXT * 2)
    assert get(server, "/a", tmp_path / "a").read_bytes() == TEXT


def test_an_answer_that_is_no_file_is_told(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"/gone answers 404 Not here$"):
        get(server, "/gone", tmp_path / "a")
    with pytest.raises(DataError, match="/a cannot be reached: "):
        download("http://127.0.0.1:1/a", tmp_path / "a", sha256(TEXT), schemes=("http",))
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_fetched_without_tls(server: Server, tmp_path: Path) -> None:
    server.pages["/a"] = TEXT
    for url in (server.url("/a"), f"file://{tmp_path}/secret", "ftp://example.org/a", "a"):
        with pytest.raises(DataError, match="is no https address: nothing is fetched from there"):
            download(url, tmp_path / "a", sha256(TEXT))
    assert server.asked == []


@pytest.mark.parametrize("elsewhere", ["file:///etc/hostname", "ftp://127.0.0.1/a", "https://127.0.0.1:1/a"])
def test_no_redirection_leads_to_another_scheme(server: Server, tmp_path: Path, elsewhere: str) -> None:
    server.moved["/a"] = elsewhere
    with pytest.raises(DataError, match=r"is no http address|not allowed"):
        get(server, "/a", tmp_path / "a")


def test_other_redirections_are_followed(server: Server, tmp_path: Path) -> None:
    server.moved["/a"] = "/b"
    server.pages["/b"] = TEXT
    assert get(server, "/a", tmp_path / "a").read_bytes() == TEXT


# --- archives ----------------------------------------------------------------------------------------


def link(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([("../out.txt", b"x")], "'../out.txt', which would lead out of its folder"),
        ([("toy/../../out.txt", b"x")], "which would lead out of its folder"),
        ([("/out.txt", b"x")], "which would lead out of its folder"),
        ([("..\\out.txt", b"x")], "which would lead out of its folder"),
        ([("C:out.txt", b"x")], "which would lead out of its folder"),
        ([(link("toy/link"), b"/etc/passwd")], "'toy/link', which is no plain file"),
        ([("toy/a", b"x"), ("toy/a", b"y")], "twice"),
        ([("toy/bomb", bytes(80 * 1024**2))], "unpacks to over 50 times its size"),
        ([(f"toy/{n}", bytes(9 * 1024**2)) for n in range(9)], "unpacks to over 50 times its size"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_no_archive_gets_out_of_its_folder_or_fills_the_disk(
    tmp_path: Path, files: list[tuple[str | zipfile.ZipInfo, bytes]], message: str
) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "a.zip").write_bytes(zipped(*files))
    with pytest.raises(DataError) as caught:
        unzip(tmp_path / "a.zip", tmp_path / "inner")
    assert message in str(caught.value)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.zip", "inner"]
    assert sum(each.stat().st_size for each in (tmp_path / "inner").rglob("*") if each.is_file()) <= 65 * 1024**2
    assert not any(each.is_symlink() for each in (tmp_path / "inner").rglob("*"))


def test_a_header_that_understates_a_size_is_not_believed(tmp_path: Path) -> None:
    packed = bytearray(zipped(("toy/bomb", bytes(80 * 1024**2))))
    for mark, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = packed.find(mark) + place
        packed[at : at + 4] = (10).to_bytes(4, "little")
    (tmp_path / "a.zip").write_bytes(packed)
    (tmp_path / "inner").mkdir()
    with pytest.raises(DataError, match=r"damaged|over 50 times"):
        unzip(tmp_path / "a.zip", tmp_path / "inner")


@pytest.mark.parametrize("damage", ["no archive", "cut", "flipped", "flipped at the end"])
def test_a_damaged_archive_is_told(tmp_path: Path, damage: str) -> None:
    packed = bytearray(zipped(("toy/a.txt", b"hello " * 1000)))
    if damage.startswith("flipped"):
        packed[60 if damage == "flipped" else -3] ^= 0xFF  # the last: where the table of contents begins
    (tmp_path / "a.zip").write_bytes({"no archive": b"hello", "cut": bytes(packed[:50])}.get(damage, bytes(packed)))
    (tmp_path / "inner").mkdir()
    with pytest.raises(DataError, match=r"a\.zip is damaged, or no ZIP file"):
        unzip(tmp_path / "a.zip", tmp_path / "inner")


# --- collections -------------------------------------------------------------------------------------


def toy(server: Server, content: bytes) -> dict[str, PublicDataset]:
    server.pages["/toy.zip"] = content
    checksum = f"md5:{hashlib.md5(content, usedforsecurity=False).hexdigest()}"
    return {"toy": PublicDataset(name="toy", layout="beir", files=((server.url("/toy.zip"), checksum),))}


def test_a_collection_is_there_whole_and_read(server: Server, tmp_path: Path) -> None:
    known = toy(server, collection(tmp_path / "source"))
    folder = fetch_dataset("toy", tmp_path / "new" / "into", known=known, schemes=("http",))
    assert folder == tmp_path / "new" / "into" / "toy"
    assert [query.id for query in load_benchmark(folder).queries] == ["PLAIN-2"]
    assert [each.name for each in folder.parent.iterdir()] == ["toy"]
    fetch_dataset("toy", tmp_path / "new" / "into", known=known, schemes=("http",))
    assert len(server.asked) == 1


def test_a_collection_of_plain_files(server: Server, tmp_path: Path) -> None:
    content = (layouts.squad(tmp_path / "source") / "dev-v2.0.json").read_bytes()
    server.pages["/dev.json"] = content
    files = ((server.url("/dev.json"), sha256(content)),)
    known = {"toy": PublicDataset(name="toy", layout="squad", files=files)}
    folder = fetch_dataset("toy", tmp_path, known=known, schemes=("http",))
    assert [each.name for each in folder.iterdir()] == ["dev.json"]
    assert load_benchmark(folder).queries


def test_of_a_bad_archive_nothing_is_left_where_the_collection_would_be(server: Server, tmp_path: Path) -> None:
    known = toy(server, zipped(("toy/a.txt", b"fine"), ("../out.txt", b"x")))
    with pytest.raises(DataError, match="lead out"):
        fetch_dataset("toy", tmp_path / "into", known=known, schemes=("http",))
    assert [each.name for each in (tmp_path / "into").iterdir()] == [".toy.toy.zip"]
    assert not (tmp_path / "out.txt").exists()


def test_what_can_be_fetched_has_a_layout_and_a_checksum_of_its_kind() -> None:
    names = [layout.name for layout in known_layouts()]
    for each in PUBLIC.values():
        assert each.layout in names
        for url, checksum in each.files:
            assert url.startswith("https://")
            algorithm, _, digits = checksum.partition(":")
            assert len(digits) == 2 * hashlib.new(algorithm, usedforsecurity=False).digest_size
            assert not set(digits) - set("0123456789abcdef")
    checksums = [checksum for each in PUBLIC.values() for _, checksum in each.files]
    assert len(set(checksums)) == len(checksums)


def test_the_command_names_what_it_knows_and_does_not_fetch_what_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["datasets", "fetch", "scifax"]) == 2
    assert "no collection called 'scifax' can be fetched: expected one of arguana" in capsys.readouterr().err
    (tmp_path / "scifact").mkdir()
    assert main(["datasets", "fetch", "scifact", "--into", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'scifact'}\n"
    assert main(["datasets", "list"]) == 0
    listed = capsys.readouterr().out
    assert "scifact  public, of the layout beir; chunkcore datasets fetch scifact" in listed
    with pytest.raises(OptionError):
        fetch_dataset("scifax", tmp_path)
