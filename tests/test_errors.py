"""What an error repeats of its input is short and readable, and comes soon."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from chunkcore import get_chunker, get_counter, get_embedder, get_llm, get_measure, get_retriever
from chunkcore.cli import main
from chunkcore.errors import ChunkcoreError, DataError, OptionError, echo
from chunkcore.files import read_text, text_lines
from chunkcore.study.tuning import expand_grid

LONG = "x" * 100_000
MARKED = "a" + "\u0301" * 300


@pytest.mark.parametrize("text", [LONG, MARKED, "a b " * 30_000, '"' * 99_999, "\u202e" * 500])
@pytest.mark.parametrize(
    "read",
    [
        get_chunker,
        lambda text: get_chunker(f"recursive:size={text}"),
        lambda text: get_chunker(f"recursive:{text}=5"),
        lambda text: get_chunker("recursive", counter=text),
        lambda text: get_chunker("sentence", splitter=text),
        lambda text: get_chunker("recursive", overlap=text),
        lambda text: get_chunker("recursive", separators=["(" + text], regex=True),
        get_counter,
        get_embedder,
        get_llm,
        get_measure,
        get_retriever,
        expand_grid,
    ],
)
def test_an_error_repeats_a_line_of_its_input_at_most(read: Callable[[str], object], text: str) -> None:
    try:
        read(text)
    except ChunkcoreError as error:
        told = str(error)
    else:
        told = ""
    assert len(told) <= 1_000
    assert "\u0301\u0301\u0301" not in told
    assert "\u202e" not in told


def test_what_is_short_is_shown_as_it_is_and_any_error_is_bounded() -> None:
    assert echo("naïve") == "'naïve'"
    assert echo("e\u0301" * 3) == repr("e\u0301" * 3)
    assert echo(MARKED).count("\\u0301") > 20
    assert echo(10**5000) == "a int too large to be shown"
    assert len(str(DataError("begin " + LONG + " end"))) == 2_000
    assert str(DataError("begin " + LONG + " end")).endswith("x end")


def test_a_command_tells_a_long_specification_in_few_words(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("A text.")
    assert main(["chunk", str(tmp_path / "a.md"), "-s", LONG]) == 2
    assert len(capfd.readouterr().err) < 1_100
    assert main(["compare", f"--resamples={LONG}"]) == 2
    assert len(capfd.readouterr().err) < 1_100


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero")
def test_a_device_is_no_file(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    device = Path("/dev/zero")
    for read in (read_text, lambda path: list(text_lines(path))):
        with pytest.raises(DataError, match="/dev/zero is a device"):
            read(device)
    assert main(["chunk", "/dev/zero"]) == 2
    assert "/dev/zero is a device" in capfd.readouterr().err
    link = tmp_path / "docs" / "a.jsonl"
    link.parent.mkdir()
    link.symlink_to(device)
    for arguments in (["chunk", str(link)], ["compare", "--docs", str(link)]):
        assert main(arguments) == 2
    read_end, write_end = os.pipe()
    os.write(write_end, b"A pipe may be read.")
    os.close(write_end)
    assert main(["chunk", f"/dev/fd/{read_end}"]) == 0
    os.close(read_end)


def test_without_a_network_an_unknown_model_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="needs huggingface_hub")
    pytest.importorskip("sentence_transformers", reason="needs sentence-transformers")
    seen, tried = [], []

    def nowhere(address: object, timeout: float) -> socket.socket:
        tried.append(timeout)
        raise OSError("no network")

    def fetched(*_: object, local_files_only: bool, **__: object) -> str:
        seen.append(local_files_only)
        raise hub.errors.LocalEntryNotFoundError("not here")

    monkeypatch.setattr(socket, "create_connection", nowhere)
    monkeypatch.setattr("urllib.request.getproxies", dict)
    monkeypatch.setattr("chunkcore.models.base.getproxies", dict)
    monkeypatch.setattr(hub, "snapshot_download", fetched)
    with pytest.raises(OptionError, match="no model 'nobody/nothing'"):
        get_embedder("torch:nobody/nothing").embed_documents(["a"])
    assert seen == [True]
    assert len(tried) == 1
    assert tried[0] <= 5
