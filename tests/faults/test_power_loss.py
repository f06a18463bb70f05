"""Every writer, with a failure at each of its system calls, and with a power loss after each: the old, or the new."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from chunkcore.chunkers import get_chunker
from chunkcore.document import Document
from chunkcore.files import AppendLog, write_files, write_text
from chunkcore.retrieval import chunk_corpus, get_retriever, load_index
from chunkcore.scale import ResumableOutput, Stream

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has other calls")


class Disk:
    """What of some files would survive a power loss, as POSIX promises it: what fsync wrote, and renames that an fsync
    of their folder followed; a later rename may survive or not.

    Attributes:
        fail_at: the number of the call that fails; None for none.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.folder = folder
        self.fail_at: int | None = None
        self.calls = 0
        self.synced: dict[int, bytes] = {}  # by inode
        self.names: dict[Path, set[bytes | None]] = {}  # what each name may hold
        self.states: list[dict[Path, set[bytes | None]]] = []
        real_fsync, real_replace = os.fsync, Path.replace

        def fsync(descriptor: int) -> None:
            self._call()
            real_fsync(descriptor)
            place = Path(f"/proc/self/fd/{descriptor}").readlink() if Path("/proc/self/fd").exists() else None
            if place is None or not place.is_dir():
                self.synced[os.fstat(descriptor).st_ino] = place.read_bytes() if place else b""
            else:
                for name in [name for name in self.names if name.parent == place]:
                    self.names[name] = {name.read_bytes()}
            self._note()

        def replace(source: Path, target: Path) -> Path:
            self._call()
            held = self.synced.get(source.stat().st_ino)
            self.names[Path(target)] = {held, *self.names.get(Path(target), {self._before(Path(target))})}
            result = real_replace(source, target)
            self._note()
            return result

        monkeypatch.setattr("os.fsync", fsync)
        monkeypatch.setattr(Path, "replace", replace)

    def _before(self, path: Path) -> bytes | None:
        return path.read_bytes() if path.exists() else None

    def _call(self) -> None:
        self.calls += 1
        if self.calls == self.fail_at:
            raise OSError(28, "No space left on device")

    def _note(self) -> None:
        self.states.append({name: set(contents) for name, contents in self.names.items()})


def report(folder: Path, text: str) -> None:
    write_files({folder / "a.md": [text.encode()], folder / "b.json": [text.encode(), text.encode()]})


WRITERS: dict[str, Callable[[Path, str], None]] = {
    "text": lambda folder, text: write_text(folder / "page.html", text) and None,
    "report": report,
    "new folder": lambda folder, text: write_text(folder / "new" / "page.html", text) and None,
}


@pytest.mark.parametrize("writer", sorted(WRITERS))
def test_a_failure_at_any_call_leaves_the_old_or_the_new(tmp_path, monkeypatch, writer):
    write = WRITERS[writer]
    write(tmp_path, "old")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with monkeypatch.context() as patch:
        disk = Disk(patch, tmp_path)
        write(tmp_path, "old")
        calls = disk.calls
    assert calls >= 3
    for number in range(1, calls + 1):
        with monkeypatch.context() as patch:
            disk = Disk(patch, tmp_path)
            disk.fail_at = number
            with pytest.raises(OSError, match="No space left"):
                write(tmp_path, "new")
        for path, old in before.items():
            assert path.read_bytes() in (old, old.replace(b"old", b"new"))
        assert not list(tmp_path.rglob(".*.part"))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the files of descriptors are told by /proc")
@pytest.mark.parametrize("writer", ["text", "report"])
def test_a_power_loss_after_any_call_leaves_the_old_or_the_new(tmp_path, monkeypatch, writer):
    write = WRITERS[writer]
    write(tmp_path, "old")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with monkeypatch.context() as patch:
        disk = Disk(patch, tmp_path)
        write(tmp_path, "new")
    for state in disk.states:
        for name, contents in state.items():
            assert contents <= {before[name], before[name].replace(b"old", b"new")}
    assert disk.states[-1] == {name: {old.replace(b"old", b"new")} for name, old in before.items()}


def test_a_saved_index_survives_a_failure_at_any_call(tmp_path, monkeypatch):
    chunker = get_chunker("recursive:size=20")
    indexes = {
        word: get_retriever("bm25").index(chunk_corpus([Document("a", f"The {word} tea.")], chunker))
        for word in ("old", "new")
    }
    indexes["old"].save(tmp_path / "index")
    with monkeypatch.context() as patch:
        disk = Disk(patch, tmp_path)
        indexes["old"].save(tmp_path / "index")
        calls = disk.calls
    for number in range(1, calls + 1):
        with monkeypatch.context() as patch:
            disk = Disk(patch, tmp_path)
            disk.fail_at = number
            with pytest.raises(OSError, match="No space left"):
                indexes["new"].save(tmp_path / "index")
        (document,) = load_index(tmp_path / "index").corpus.documents
        assert document.text in ("The old tea.", "The new tea.")


def test_the_output_of_chunk_goes_on_after_a_failure_at_any_call(tmp_path, monkeypatch):
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(f"The fox {name}. " * 40)
    monkeypatch.setattr("chunkcore.scale.stream._BATCH_PIECES", 1)
    files = [tmp_path / f"{name}.txt" for name in "abc"]

    def write(out: Path) -> None:
        stream = Stream(files, get_chunker("recursive:size=20"))
        writer = ResumableOutput(out, {})
        try:
            if writer.done:
                stream.skip(writer.done)
            for step in stream:
                writer.write(step)
            writer.finish()
        finally:
            writer.close()

    with monkeypatch.context() as patch:
        disk = Disk(patch, tmp_path)
        write(tmp_path / "whole")
    for number in range(1, disk.calls + 1):
        with monkeypatch.context() as patch:
            failing = Disk(patch, tmp_path)
            failing.fail_at = number
            with pytest.raises(OSError, match="No space left"):
                write(tmp_path / "out")
        write(tmp_path / "out")
        assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()
        (tmp_path / "out").unlink()


def test_a_log_keeps_what_it_had_after_a_failure_at_any_call(tmp_path, monkeypatch):
    path = tmp_path / "log"

    def opened() -> AppendLog:
        return AppendLog(path, {"format": "toy"}, what="toy log", advice="rename it")

    with opened() as log:
        log.append({"number": 0})
        with monkeypatch.context() as patch:
            Disk(patch, tmp_path).fail_at = 1
            with pytest.raises(ValueError, match="cannot be written"):
                log.append({"number": 1})
        log.append({"number": 2})
    with opened() as again:
        assert [entry["number"] for _, entry in again.entries] == [0, 2]
