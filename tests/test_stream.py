"""Streaming: parts, processes, going on after a kill; what comes out is the same whatever happened on the way."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import chunkcore.scale.stream
import pytest
from chunkcore.chunkers import Chunker, get_chunker
from chunkcore.cli import main
from chunkcore.errors import DataError, OptionError
from chunkcore.reading.folders import FolderWalk, load_documents
from chunkcore.scale import ResumableOutput, Stream, StreamOptions
from chunkcore.scale.sources import cut_place, parts
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.processes import started, wait_for
from tests.strategies import hard_text

CHUNKER = get_chunker("recursive:size=8,counter=words")
PARAGRAPHS = "".join(
    f"{'# Part ' + str(n) if n % 7 == 0 else 'The fox'} {n} naps. The dog runs, 犬が走る。👩‍👩‍👧 It barks.\n\n"
    for n in range(60)
)


def lines(*paths: Path, chunker: Chunker = CHUNKER, **options) -> list[dict]:
    stream = Stream(paths, chunker, StreamOptions(**options))
    return [json.loads(line) for step in stream for some in step.lines for line in some.splitlines()]


def written(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is UNREADABLE:
            path.symlink_to("n" * 300)
        else:
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


UNREADABLE = b"a link to a name that no file can have"


# ---- parts


@settings(max_examples=60)
@given(hard_text(), st.integers(64, 300))
def test_parts_are_the_bytes_of_whole_characters_and_none_is_too_large(text, size):
    data = (text * 5).encode("utf-8", "replace")
    found = list(parts(io.BytesIO(data), size))
    assert b"".join(found) == data
    assert all(0 < len(part) <= size for part in found)
    for part in found:
        part.decode()


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Aaaa aaaa.\n\nBb.\n\n# C\n\n## D\n\nE", "Aaaa aaaa.\n\nBb.\n\n"),
        ("Aaaa.\r\n\r\nBbbb.\r\n\r\n# Cc\r\n\r\nDdd", "Aaaa.\r\n\r\nBbbb.\r\n\r\n"),
        ("Aaaa.\n\nBbbb bb.\n\nCc. D d\nEe", "Aaaa.\n\nBbbb bb.\n\n"),
        ("Aaaa aaaa aaaa.\nBbbb bb. Cc", "Aaaa aaaa aaaa.\n"),
        ("Aaaa aaaa aaaa. Bbbb bbbb", "Aaaa aaaa aaaa. "),
        ("狐が寝ている。犬が走る", "狐が寝ている。"),
        ("Aaaa bbbb cccc dddd", "Aaaa bbbb cccc "),
        ("aaaaaaaa👩‍👩‍👧", "aaaaaaaa"),
    ],
)
def test_a_part_ends_at_the_best_place_of_its_second_half(text, first):
    data = text.encode()
    assert data[: cut_place(data)].decode() == first


class Dribble(io.RawIOBase):
    """A pipe that gives a few bytes at a time."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, size: int = -1) -> bytes:
        some, self.data = self.data[: min(7, size)], self.data[min(7, size) :]
        return some


def test_parts_do_not_depend_on_how_the_bytes_come():
    data = PARAGRAPHS.encode()
    assert list(parts(Dribble(data), 500)) == list(parts(io.BytesIO(data), 500))


# ---- large files


def test_a_file_of_the_part_size_is_cut_whole_and_a_larger_one_in_parts_with_spans_of_the_whole(tmp_path):
    path = written(tmp_path, {"a.txt": PARAGRAPHS}) / "a.txt"
    size = path.stat().st_size
    whole = lines(path, part_size=size)
    assert [row["text"] for row in whole] == CHUNKER.split_text(PARAGRAPHS)
    assert all("part" not in row for row in whole)
    rows = lines(path, part_size=size // 5)
    assert len({row["part"] for row in rows}) >= 5
    assert [row["part"] for row in rows] == sorted(row["part"] for row in rows)
    assert [row["index"] for row in rows] == list(range(len(rows)))
    assert len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        assert "".join(PARAGRAPHS[start:end] for start, end in row["spans"]) == row["text"]
    assert "".join("".join(row["text"].split()) for row in rows) == "".join(PARAGRAPHS.split())


@settings(max_examples=40)
@given(text=hard_text(), size=st.integers(64, 200))
def test_nothing_is_lost_in_parts_and_spans_are_of_the_whole(tmp_path_factory, text, size):
    text = (text * 3).encode("utf-8", "replace").decode() or "x"
    path = tmp_path_factory.mktemp("parts") / "a.txt"
    path.write_bytes(text.encode())
    rows = lines(path, chunker=get_chunker("fixed_token:size=7"), part_size=size)
    assert all(text[row["spans"][0][0] : row["spans"][-1][1]] == row["text"] for row in rows)
    assert "".join(row["text"] for row in rows).split() == text.split()


def test_a_document_on_a_line_and_one_on_standard_input_have_the_same_parts_as_a_file(tmp_path, monkeypatch):
    written(tmp_path, {"a": PARAGRAPHS, "one.jsonl": json.dumps({"id": "a", "text": PARAGRAPHS}) + "\n"})
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Dribble(PARAGRAPHS.encode())))  # type: ignore[type-var]
    found = [lines(path, part_size=600) for path in (tmp_path / "a", tmp_path / "one.jsonl", Path("-"))]
    kept = [[{**row, "document_id": "", "id": ""} for row in rows] for rows in found]
    assert kept[0] == kept[1] == kept[2]
    assert kept[0][-1]["part"] > 3


BROKEN = "é".encode() + b"caf\xe9"  # damaged UTF-8


def test_a_large_file_that_is_not_utf8_has_no_chunk_at_all(tmp_path):
    data = PARAGRAPHS.encode()
    path = written(tmp_path, {"a.txt": data + b"caf\xe9 au lait \xc3\xa9" + data}) / "a.txt"
    with pytest.raises(DataError, match=rf"byte {len(data) + 3} is 0xe9\) on line {data.count(10) + 1}: convert"):
        lines(path, part_size=500)
    assert lines(path, part_size=500, errors="skip") == []
    with pytest.raises(DataError, match=rf"byte {len(data)} is 0xe7"):
        lines(written(tmp_path, {"b.txt": data + b"\xe7\x8a"}) / "b.txt", part_size=500)
    folder = written(tmp_path / "other", {"a.txt": PARAGRAPHS, "c.txt": PARAGRAPHS.encode() + BROKEN})
    for size in (500, 500_000):  # left out, and told as no image would be
        with pytest.warns(UserWarning, match=r"c.txt: is not UTF-8 text \(byte \d+ is 0xe9\) on line \d+: convert"):
            assert {row["document_id"] for row in lines(folder, part_size=size)} == {"a.txt"}


def test_a_file_that_grows_while_it_is_read_is_an_error(tmp_path, monkeypatch):
    path = written(tmp_path, {"a.txt": PARAGRAPHS}) / "a.txt"
    stream = Stream([path], CHUNKER, StreamOptions(part_size=500))
    monkeypatch.setattr(stream, "piece_batches", lambda: iter([[piece] for piece in list(stream.sources)]))
    steps = iter(stream)
    next(steps)
    path.write_text("other")
    with pytest.raises(DataError, match=r"a\.txt has changed while it was read"):
        list(steps)


# ---- folders


def test_a_folder_is_walked_in_the_order_of_whole_paths(tmp_path):
    names = ["a/b.txt", "a.txt", "a-b/c.txt", "a/b/c", "b", "a/b-c", "z/y/x/w"]
    written(tmp_path, dict.fromkeys([*names, ".hidden/a", "a/.b"], "x"))
    (tmp_path / "loop").symlink_to(tmp_path)
    assert [name for name, _ in FolderWalk(tmp_path)] == sorted(names)


# ---- bad documents


@pytest.fixture
def mixed(tmp_path) -> Path:
    good = {f"{n:02}.txt": f"The fox {n} naps. " * 9 for n in range(30)}
    return written(tmp_path / "mixed", {**good, "07.txt": UNREADABLE, "11.txt": UNREADABLE})


def test_bad_documents_are_left_out_and_told_and_all_others_are_cut(mixed, tmp_path, capfd):
    out = tmp_path / "out.jsonl"
    assert main(["chunk", str(mixed), "-o", str(out), "--errors", "skip"]) == 1
    told = [json.loads(line) for line in Path(f"{out}.errors.jsonl").read_text().splitlines()]
    assert [each["document_id"] for each in told] == ["07.txt", "11.txt"]
    assert told[0]["error"] == f"{mixed / '07.txt'} cannot be read: File name too long"
    assert len({json.loads(line)["document_id"] for line in out.read_text().splitlines()}) == 28
    assert capfd.readouterr().err == f"chunkcore: 2 left out for errors, which {out}.errors.jsonl tells\n"
    for name in ("07.txt", "11.txt"):
        (mixed / name).unlink()
        (mixed / name).write_text("Mended.")
    assert main(["chunk", str(mixed), "-o", str(out), "--errors", "skip"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mixed", "out.jsonl"]


def test_bad_lines_and_repeated_ids_are_left_out_one_by_one(tmp_path):
    rows = ['{"id": "a", "text": "One."}', '{"id": ', '{"id": "a", "text": "Two."}', '{"id": "c"}', "\u00a0", "5"]
    path = written(tmp_path, {"d.jsonl": "\ufeff" + "\n".join([*rows, '{"id": 7, "text": "x"}'])}) / "d.jsonl"
    stream = Stream([path], CHUNKER, StreamOptions(errors="skip"))
    steps = list(stream)
    assert [str(each.error).split(": ")[0].rpartition(" ")[2] for step in steps for each in step.failures] == list(
        "2346"
    )
    assert stream.tally.documents == 2


def test_what_steers_a_terminal_is_escaped_and_comes_back(tmp_path):
    text = 'The fox\x7f naps.\x9b31m \\\x80\x9f "\xa0é\x1b[2J 犬'
    folder = written(tmp_path, {"a.txt": text, "b\x9b.txt": "DEL alone: \x7f."})
    data = b"".join(some for step in Stream([folder], CHUNKER) for some in step.lines)
    assert not set(data.decode()) & {chr(code) for code in (*range(10), *range(11, 32), *range(0x7F, 0xA0))}
    assert "\xa0é" in data.decode()
    rows = [json.loads(line) for line in data.splitlines()]
    assert "".join(text[begin:end] for row in rows[:-1] for begin, end in row["spans"]).split() == text.split()
    assert all(row["text"] == text[row["spans"][0][0] : row["spans"][0][1]] for row in rows[:-1])
    assert (rows[-1]["document_id"], rows[-1]["text"]) == ("b\x9b.txt", "DEL alone: \x7f.")


def test_a_folder_and_a_file_that_may_not_be_read_are_left_out_and_named(tmp_path, monkeypatch):
    folder = written(tmp_path, {"a/b": "x", "b": "bananas " * 20, "c": "y"})
    scandir, opened = os.scandir, os.open

    def refusing(call, name):
        def refuse(path, *arguments, **named):
            if Path(path).name == name:
                raise PermissionError(13, "Permission denied", str(path))
            return call(path, *arguments, **named)

        return refuse

    monkeypatch.setattr(os, "scandir", refusing(scandir, "a"))  # root may read everything
    monkeypatch.setattr(os, "open", refusing(opened, "b"))
    for load in (load_documents, lines, lambda path: lines(path, part_size=64)):
        with pytest.warns(UserWarning, match="left out of .*: .*b.*: cannot be read: Permission denied"):
            documents = load(folder)
        assert {row["document_id"] if isinstance(row, dict) else row.id for row in documents} == {"c"}
        with pytest.raises(DataError, match="b cannot be read: Permission denied"):
            load(folder / "b")


def test_options_are_checked():
    for options in ({"processes": 0}, {"workers": 0}, {"part_size": 63}, {"errors": "ignore"}):
        with pytest.raises(OptionError):
            StreamOptions(**options)
    for size in ("inf", "nan", "0"):
        assert main(["chunk", "-", "--part-size", size]) == 2


# ---- going on


IDENTITY = {"files": ["docs"]}


def run(folder: Path, out: Path, *, steps: int | None = None, identity=IDENTITY, fresh: bool = False) -> bytes | None:
    """Write a stream; with `steps` as a run that is killed after so many, without a last word."""
    stream = Stream([folder], CHUNKER, StreamOptions(part_size=600, errors="skip"))
    writer = ResumableOutput(out, identity, fresh=fresh)
    try:
        if writer.done:
            stream.skip(writer.done)
        for number, step in enumerate(stream):
            if number == steps:
                return None
            writer.write(step)
        writer.finish()
    finally:
        writer.close()
    return out.read_bytes() + Path(f"{out}.errors.jsonl").read_bytes()


@pytest.fixture
def corpus(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(chunkcore.scale.stream, "BATCH_PIECES", 2)
    some = {f"{n:02}.txt": PARAGRAPHS[: 40 * n + 1] for n in range(20)}
    rows = "\n".join(json.dumps({"id": str(n), "text": "The fox. " * n}) for n in range(1, 9))
    return written(
        tmp_path / "docs", {**some, "04.txt": UNREADABLE, "bin": b"\0\xff", "big.txt": PARAGRAPHS * 2, "e.jsonl": rows}
    )


@pytest.mark.filterwarnings("ignore:.*left out")
def test_a_run_that_was_killed_anywhere_goes_on_to_the_same_bytes(corpus, tmp_path):
    whole = run(corpus, tmp_path / "whole")
    assert whole
    rng = random.Random(1)
    out = tmp_path / "out"
    for kills in range(90):
        for name in ("partial", "progress"):  # a kill leaves the beginning of what is written
            path = Path(f"{out}.{name}")
            if path.exists() and kills % 2:
                with path.open("ab") as file:
                    file.write(b"[1234, 12345678]"[: rng.randint(0, 15)])
        outcome = run(corpus, out, steps=rng.choice((0, 1, 2, 5, 200)))
        if outcome is not None:
            break
    assert kills > 1
    assert outcome == whole
    assert sorted(path.name for path in tmp_path.glob("out*")) == ["out", "out.errors.jsonl"]


@pytest.mark.filterwarnings("ignore:.*left out")
def test_inputs_that_changed_or_went_are_told(corpus, tmp_path):
    out = tmp_path / "out"
    run(corpus, out, steps=8)
    (corpus / "00.txt").write_text("x")
    with pytest.raises(DataError, match=r"00\.txt has changed since its chunks were written"):
        run(corpus, out)
    assert run(corpus, out, fresh=True)
    run(corpus, out, steps=8)
    (corpus / "01.txt").unlink()
    with pytest.raises(DataError, match=r"1 documents whose chunks were written are gone"):
        run(corpus, out)


@pytest.mark.filterwarnings("ignore:.*left out")
def test_a_run_that_a_bad_document_stopped_goes_on_when_it_is_mended(corpus, tmp_path, capfd):
    out = tmp_path / "out"
    command = ["chunk", str(corpus), "-o", str(out)]
    assert main(command) == 2
    first, second = capfd.readouterr().err.splitlines()
    assert (
        first == f"chunkcore: {out}.partial keeps what is done: the same command goes on, or begins anew with --fresh"
    )
    assert "04.txt cannot be read" in second
    (corpus / "04.txt").unlink()
    (corpus / "04.txt").write_text("Mended.")
    assert main(command) == 0
    assert capfd.readouterr().err.startswith("chunkcore: going on after ")
    assert main([*command[:-1], str(tmp_path / "whole")]) == 0
    assert out.read_bytes() == (tmp_path / "whole").read_bytes() != b""


def test_another_run_s_output_and_other_files_are_not_gone_on_with(corpus, tmp_path, capfd):
    out, progress = tmp_path / "out", tmp_path / "out.progress"
    run(corpus, out, steps=4)
    with pytest.raises(OptionError, match="left by an earlier run with other files: go on as before"):
        run(corpus, out, identity={"files": ["a"]})
    for notes in ("my own notes\n", "my own notes"):
        for fresh in (False, True):
            progress.write_text(notes)
            with pytest.raises(DataError, match="is no progress of chunkcore chunk"):
                run(corpus, out, fresh=fresh)
            assert progress.read_text() == notes
    progress.unlink()
    partial = tmp_path / "out.partial"
    partial.write_text("my own text")
    with pytest.raises(OptionError, match=r"out\.partial is there, and out\.progress does not say whose it is"):
        run(corpus, out)
    assert main(["chunk", str(partial), "-o", str(out), "--fresh"]) == 2
    assert "out.partial, which is written beside --output, is one of the files to cut" in capfd.readouterr().err
    assert partial.read_text() == "my own text"


@pytest.mark.filterwarnings("ignore:.*left out")
@settings(max_examples=40, deadline=None)
@given(place=st.floats(0, 0.9999), value=st.integers(1, 255), cut=st.booleans(), of_progress=st.booleans())
def test_any_damage_gives_the_same_output_or_is_refused(killed, place, value, cut, of_progress):
    whole, corpus, kept, folder = killed
    for name, data in kept.items():
        data = bytearray(data)
        if (name == "out.progress") == of_progress:
            at = int(place * len(data))
            data[at] ^= value
            data = data[:at] if cut else data
        (folder / name).write_bytes(data)
    with suppress(DataError, OptionError):
        assert run(corpus, folder / "out") == whole


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("killed")
    corpus = written(
        folder / "docs", {f"{n:02}.txt": PARAGRAPHS[: 40 * n + 1] for n in range(9)} | {"04.txt": UNREADABLE}
    )
    before, chunkcore.scale.stream.BATCH_PIECES = chunkcore.scale.stream.BATCH_PIECES, 2
    whole = run(corpus, folder / "whole")
    run(corpus, folder / "out", steps=3)
    kept = {name: (folder / name).read_bytes() for name in ("out.partial", "out.progress")}
    yield whole, corpus, kept, folder
    chunkcore.scale.stream.BATCH_PIECES = before


@pytest.mark.skipif(sys.platform == "win32", reason="no locks there")
def test_two_runs_do_not_write_one_output(tmp_path):
    first = ResumableOutput(tmp_path / "out", IDENTITY)
    with pytest.raises(OptionError, match="another process is at work on"):
        ResumableOutput(tmp_path / "out", IDENTITY)
    assert not first.leave()
    assert list(tmp_path.iterdir()) == []


# ---- memory


def test_memory_does_not_grow_with_the_file(tmp_path):
    chunker = get_chunker("fixed_token:size=500,counter=characters")

    def peak(copies: int) -> int:
        path = written(tmp_path, {"a.txt": PARAGRAPHS * copies}) / "a.txt"
        stream = Stream([path], chunker, StreamOptions(part_size=100_000))
        tracemalloc.start()
        try:
            for _ in stream:
                pass
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(50)
    small, large = peak(100), peak(500)
    assert large < 1.2 * small + 100_000


# ---- as processes

# It waits once HELD steps are written, until GO is there.
DRIVER = """
import os
import sys
import time
from pathlib import Path
import chunkcore.scale.stream as stream
stream.BATCH_PIECES = 3

class Held(stream.ResumableOutput):
    def write(self, step):
        super().write(step)
        if self.progress.read_bytes().count(b"\\n") == int(os.environ.get("HELD", 0)):
            Path(f"held at {os.environ['HELD']}").touch()
            while not Path("GO").exists():
                time.sleep(0.01)

if __name__ == "__main__":
    import signal
    stream.ResumableOutput = Held
    signal.signal(signal.SIGINT, signal.default_int_handler)  # under nohup it is ignored
    from chunkcore.cli import main
    sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def driver(tmp_path) -> list[str]:
    (tmp_path / "driver.py").write_text(DRIVER)
    return [sys.executable, str(tmp_path / "driver.py"), "chunk"]


@contextmanager
def held(command: list[str], progress: Path, at: int) -> Iterator[subprocess.Popen[bytes]]:
    """A driver that waits with so many lines in its progress file."""
    with started(command, cwd=progress.parent, env=os.environ | {"HELD": str(at)}, **PIPES) as process:
        wait_for((progress.parent / f"held at {at}").exists, process)
        yield process


@pytest.fixture
def many(tmp_path) -> Path:
    return written(tmp_path / "many", {f"{n:03}.txt": PARAGRAPHS[: 50 * n + 1] for n in range(40)})


PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def is_running(pid: int) -> bool:
    """Not where it ended and nobody asked yet how: what an ended process started is left to one that may never ask."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except OSError:
        return False


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_two_processes_killed_with_9_go_on_to_the_bytes_of_one(driver, many, tmp_path):
    whole, out = tmp_path / "whole", tmp_path / "out"
    arguments = [str(many), "-s", "fixed_token:size=9", "--part-size", "0.001", "-o", str(out), "--processes", "2"]
    assert main(["chunk", str(many), "-o", str(whole), "-s", "fixed_token:size=9", "--part-size", "0.001"]) == 0
    progress = Path(f"{out}.progress")
    with held([*driver, *arguments], progress, 4) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        workers = [int(pid) for pid in children.read_text().split()] if children.exists() else []
        process.send_signal(signal.SIGKILL)
    wait_for(lambda: not any(map(is_running, workers)))
    assert main(["chunk", *arguments[:-2]]) == 0  # in one process
    assert out.read_bytes() == whole.read_bytes()


@pytest.mark.skipif(not Path("/proc").exists(), reason="children are found in /proc")
def test_a_worker_that_is_killed_ends_the_run_in_one_sentence(driver, many, tmp_path):
    out = tmp_path / "out"
    arguments = [str(many), "-s", "fixed_token:size=9", "-o", str(out), "--processes", "2"]
    progress = Path(f"{out}.progress")
    with held([*driver, *arguments], progress, 4) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        workers = [pid for pid in children if b"workers import serve" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        os.kill(int(workers[0]), signal.SIGKILL)
        (tmp_path / "GO").touch()
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert b"Traceback" not in err
    assert b"a worker process ended before its work did" in err
    assert b"the same command goes on" in err


def test_standard_input_is_cut_while_it_comes(tmp_path):
    command = [sys.executable, "-m", "chunkcore", "chunk", "-", "-s", "fixed_token:size=9", "--part-size", "0.001"]
    with started(command, stdin=subprocess.PIPE, **PIPES) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(PARAGRAPHS.encode() * 3)
        process.stdin.flush()
        row = json.loads(process.stdout.readline())  # before the input's end
        assert (row["part"], row["spans"][0][0]) == (0, 0)
        out, _ = process.communicate(b"The end.", timeout=60)
    assert json.loads(out.splitlines()[-1])["spans"][-1][1] == 3 * len(PARAGRAPHS) + len("The end.")
