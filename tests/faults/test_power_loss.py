"""Every writer, with a failure at each of its system calls, and with a power loss after each: the old, or the new."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from chunkcore.errors import DataError
from chunkcore.files import write_text

from tests.faults.written import WRITTEN, Kind, copied
from tests.results import keep_result

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the files of descriptors are told by /proc")

# SQLite makes the caches' system calls: `test_full_disk` fills a disk under them, `test_cache` kills.
WRITERS = WRITTEN | {
    "text": Kind(
        lambda folder, word: write_text(folder / "page.html", word), lambda folder: (folder / "page.html").read_text()
    ),
    "new folder": Kind(
        lambda folder, word: write_text(folder / word / "new" / "page.html", "page"),
        lambda folder: sorted(path.read_text() for path in folder.rglob("page.html"))[:1],
    ),
}
State = dict[Path, set[bytes | None]]


class Disk:
    """What of some files would survive a power loss, as POSIX promises it: what fsync wrote, and renames that an fsync
    of their folder followed; a later rename may survive or not.

    Attributes:
        fail_at: the number of the call that fails: to open for writing, write, sync or rename a file. None for none.
        states: after each sync or rename, what each name may hold; None for no file.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fail_at: int | None = None) -> None:
        self.fail_at = fail_at
        self.calls = 0
        self.synced: dict[int, bytes] = {}  # by inode
        self.names: State = {}
        self.states: list[State] = []
        real_fsync, real_replace, real_open = os.fsync, Path.replace, Path.open

        def fsync(descriptor: int) -> None:
            self._call()
            real_fsync(descriptor)
            place = Path(f"/proc/self/fd/{descriptor}").readlink()
            if place.is_dir():
                for name in [name for name in self.names if name.parent == place]:
                    self.names[name] = {name.read_bytes()}
            else:
                self.synced[os.fstat(descriptor).st_ino] = place.read_bytes()
            self._note()

        def replace(source: Path, target: Path) -> Path:
            self._call()
            before = Path(target).read_bytes() if Path(target).exists() else None
            held = self.synced.get(source.stat().st_ino)
            self.names[Path(target)] = {held, *self.names.get(Path(target), {before})}
            result = real_replace(source, target)
            self._note()
            return result

        def opened(path: Path, mode: str = "r", *rest: Any, **options: Any) -> Any:
            if mode != "xb":
                return real_open(path, mode, *rest, **options)
            self._call()
            return _File(real_open(path, mode, *rest, **options), self._call)

        monkeypatch.setattr("os.fsync", fsync)
        monkeypatch.setattr(Path, "replace", replace)
        monkeypatch.setattr(Path, "open", opened)

    def _call(self) -> None:
        self.calls += 1
        if self.calls == self.fail_at:
            raise OSError(28, "No space left on device")

    def _note(self) -> None:
        self.states.append({name: set(contents) for name, contents in self.names.items()})


class _File:
    """A file whose writing may fail, after a part of it is written."""

    def __init__(self, file: Any, call: Any) -> None:
        self._file, self._call = file, call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def writelines(self, parts: Any) -> None:
        for part in parts:
            self._file.write(part[: len(part) // 2])
            self._call()
            self._file.write(part[len(part) // 2 :])


def old_and_new(kind: str, tmp_path: Path) -> tuple[Path, list[Any]]:
    """A folder with the old, and what is read before and after the new is written."""
    write, read, _ = WRITERS[kind]
    folder, other = tmp_path / "folder", tmp_path / "other"
    folder.mkdir()
    write(folder, "old")
    copied(folder, other)
    values = [read(other)]
    write(other, "new")
    return folder, [*values, read(other)]


@pytest.mark.parametrize("kind", WRITERS)
def test_a_failure_at_any_call_leaves_the_old_or_the_new(tmp_path, kind, monkeypatch):
    write, read, _ = WRITERS[kind]
    folder, values = old_and_new(kind, tmp_path)
    number, failed = 0, True
    while failed:
        number += 1
        copied(folder, tmp_path / "failing")
        with monkeypatch.context() as patch:
            Disk(patch, fail_at=number)
            try:
                write(tmp_path / "failing", "new")
                failed = False
            except (OSError, DataError) as error:
                failure = str(error)
                assert "No space left" in failure
        assert read(tmp_path / "failing") in values
        assert not list((tmp_path / "failing").rglob("*.part"))
    keep_result("failing calls", kind, number - 1)
    assert number > 3
    assert read(tmp_path / "failing") == values[1]


def possible(state: State) -> Iterator[dict[Path, bytes | None]]:
    """Some of what a disk may hold: all that is old or all that is new, and random mixtures."""
    names = list(state)
    mixtures = list(product(*(sorted(state[name], key=repr) for name in names))) if len(names) < 7 else []
    chance = random.Random(0)
    mixtures = mixtures or [[chance.choice(sorted(state[name], key=repr)) for name in names] for _ in range(12)]
    for contents in chance.sample(mixtures, min(12, len(mixtures))):
        yield dict(zip(names, contents, strict=True))


@pytest.mark.parametrize("kind", WRITERS)
def test_a_power_loss_after_any_call_leaves_the_old_or_the_new(tmp_path, kind, monkeypatch):
    write, read, _ = WRITERS[kind]
    folder, values = old_and_new(kind, tmp_path)
    copied(folder, tmp_path / "written")
    with monkeypatch.context() as patch:
        disk = Disk(patch)
        write(tmp_path / "written", "new")
    tried = 0
    for state in disk.states:
        for contents in possible(state):
            after = copied(folder, tmp_path / "after")
            for name, content in contents.items():
                place = after / name.relative_to(tmp_path / "written")
                if content is not None:
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(content)
            tried += 1
            assert read(after) in values
    assert read(after) == values[1]
    keep_result("power loss", kind, tried)
