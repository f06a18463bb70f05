"""Fast encoders give tiktoken's ids, or tiktoken encodes; the vocabulary used by default needs no network."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tiktoken
from chunkcore.errors import OptionError
from chunkcore.plain import digest
from chunkcore.tokens import TiktokenCounter, encodings

from tests.fuzzing.of_encoders import NAMES, ids_are_tiktokens, in_places
from tests.strategies import LOOK_ALIKES

ALL = (*NAMES, "o200k_harmony")


@pytest.fixture
def anew() -> Iterator[None]:
    """Encoders and encodings are looked for again, before and after."""
    kept = (encodings.fast_encoder, encodings.load_encoding, encodings.token_byte_lengths)
    for each in kept:
        each.cache_clear()
    yield
    for each in kept:
        each.cache_clear()


@pytest.mark.parametrize("name", ALL)
def test_a_fast_encoder_is_installed_and_named(name: str) -> None:
    assert TiktokenCounter(name).encoder == "toktok-rs"
    expected = encodings.load_encoding(name).encode_to_numpy(encodings.HARD_TEXT, disallowed_special=())
    assert digest(expected.astype("<u4").tobytes(), 8) == encodings._DIGESTS[name]


@pytest.mark.parametrize(
    "text",
    [
        *("", "\x00" * 3000, "a" * 3000, "abcdefghij" * 300, "x" + " " * 3000 + "y", "\r\n" * 1000, "漢字" * 500),
        *("a\ud800b \udc00\ud800", "".join(LOOK_ALIKES) * 20, "a\u088fb n'ſ'st 𖻁", encodings.HARD_TEXT),
    ],
    ids=lambda text: f"{text[:8]!a}x{len(text)}",
)
def test_hard_texts_have_tiktokens_ids(text: str) -> None:
    ids_are_tiktokens(text)


@pytest.mark.parametrize("name", NAMES)
def test_every_code_point_that_is_assigned_or_may_be_reads_as_tiktoken_reads_it(name: str) -> None:
    unlike = encodings.IS_UNLIKE
    codes = [*range(0xD800), *range(0xE000, 0xF100), *range(0xF900, 0x33500), *range(0xE0000, 0xE0200)]
    text = "\n\n".join(in_places(chr(code)) for code in codes if not unlike[code])
    assert encodings.read(text) == (text, True)
    expected = encodings.load_encoding(name).encode_to_numpy(text, disallowed_special=())
    encoder = encodings.load_toktok(name)
    assert encoder is not None
    np.testing.assert_array_equal(encoder.encode(text), expected)


def test_a_text_with_a_code_point_that_reads_otherwise_is_tiktokens() -> None:
    for code in np.flatnonzero(encodings.IS_UNLIKE).tolist():
        assert encodings.read(f"é{chr(code)}") == (f"é{chr(code)}", False)
    assert encodings.read("a\ud800") == ("a\ufffd", True)


def test_giant_white_space_is_tiktokens(monkeypatch: pytest.MonkeyPatch) -> None:
    giant = 100
    monkeypatch.setattr(encodings, "GIANT", giant)
    for before in (0, 1, giant // 2, giant - 1):
        assert not encodings.read("x" * before + " " * giant + "y")[1]
    assert encodings.read(("x" + " " * (giant // 3)) * 4)[1]


@pytest.mark.parametrize("fault", ["missing", "wrong ids", "wrong vocabulary", "another interface"])
def test_without_toktok_or_with_a_wrong_one_tiktoken_makes_the_same_tokens(fault, monkeypatch, anew):
    right = encodings.load_toktok("cl100k_base")
    assert right is not None
    texts = [encodings.HARD_TEXT, "Two  words, 漢字.", ""]
    counter = TiktokenCounter("cl100k_base")
    expected = [counter.boundaries(text).tolist() for text in texts]
    tiktokens = encodings.load_encoding("cl100k_base")
    faults = {
        "missing": None,
        "wrong ids": right._replace(encode=lambda text: right.encode(text.replace("  ", " "))),
        "wrong vocabulary": right._replace(tokens=lambda: right.tokens()[::-1]),
    }
    encodings.fast_encoder.cache_clear()
    encodings.token_byte_lengths.cache_clear()
    if fault == "another interface":
        monkeypatch.setattr("toktok._encoding", lambda name: object())
    else:
        monkeypatch.setattr(encodings, "load_toktok", lambda name: faults[fault])
    monkeypatch.setattr(encodings, "load_encoding", lambda name: tiktokens)
    assert counter.encoder == "tiktoken"
    assert [counter.boundaries(text).tolist() for text in texts] == expected
    assert counter.count_many(texts).tolist() == [len(places) for places in expected]
    source = counter.tokenize(encodings.HARD_TEXT)
    assert source.counts(np.array([0, 3]), np.array([40, 90])).tolist() == [
        counter.count(encodings.HARD_TEXT[start:end]) for start, end in ((0, 40), (3, 90))
    ]


def test_an_encoding_that_no_fast_encoder_has_is_tiktokens() -> None:
    names = ("gpt2", "r50k_base", "p50k_base", "p50k_edit")
    assert {TiktokenCounter(name).encoder for name in names} == {"tiktoken"}


def test_an_encoding_that_cannot_be_loaded_says_what_to_install(monkeypatch: pytest.MonkeyPatch, anew: None) -> None:
    def refuse(name: str) -> None:
        raise OSError("no network")

    monkeypatch.setattr(encodings, "load_toktok", lambda name: None)
    monkeypatch.setattr(tiktoken, "get_encoding", refuse)
    with pytest.raises(OptionError, match=r"could not be loaded \(OSError\).*chunkadapters\[fast\]"):
        encodings.load_encoding("o200k_base")


OFFLINE = """
    import os, socket, sys

    def refuse(*arguments, **options):
        raise OSError("this test has no network")

    socket.socket.connect = socket.getaddrinfo = refuse
    if sys.argv[1] == "tiktoken":
        sys.modules["toktok"] = None  # as without the extra fast
    import tiktoken.load

    tiktoken.load.read_file = refuse
    from chunkcore import Document, get_chunker, get_counter

    text = "The long s: n'\\u017f'st. The fox naps.\\n\\n" * 40  # tiktoken's own, in part
    assert len(get_chunker("recursive").chunk(Document("a", text))) > 1
    for name in sys.argv[3:]:
        assert get_counter(name).count(text) == len(get_counter(name).encoding.encode_ordinary(text)) > 100
    from chunkcore.cli import main

    assert main(["search", sys.argv[2], "which fox naps?"]) == 0
"""


@pytest.mark.parametrize("cache", ["empty folder", "unset"])
@pytest.mark.parametrize(
    ("encoder", "names"), [("tiktoken", ["cl100k_base"]), ("toktok-rs", ["cl100k_base", "o200k_base"])]
)
def test_a_first_search_needs_no_network(tmp_path: Path, encoder: str, names: list[str], cache: str) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "TIKTOKEN_CACHE_DIR"}
    environment["TMPDIR"] = str(tmp_path)  # tiktoken's default cache is under it
    if cache == "empty folder":
        environment["TIKTOKEN_CACHE_DIR"] = str(tmp_path / "cache")
    command = [sys.executable, "-c", textwrap.dedent(OFFLINE), encoder, __file__, *names]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []
