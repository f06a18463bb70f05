"""Fast encoders beside tiktoken: a target, a long run, and the tables of `chunkcore.tokens.encodings` made anew.

    python -m tests.fuzzing.of_encoders 1000000 --seed 1 --data ../shared/data
    python -m tests.fuzzing.of_encoders

With a number, so many texts of the corpus and every document of a folder are encoded by toktok-rs.
Without, every code point is encoded in six places: prints the ones that a fast encoder reads otherwise than tiktoken,
and the digests of the hard text.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

import numpy as np
from chunkcore.plain import digest, encodable
from chunkcore.tokens import TiktokenCounter, encodings

from tests.fuzzing.targets import target
from tests.fuzzing.texts import text_of, texts
from tests.results import keep_result

NAMES = ("cl100k_base", "o200k_base")  # o200k_harmony has the tokens of o200k_base


@target(share=2.0, texts=8, text=texts())
def ids_are_tiktokens(text: str) -> None:
    """`encode` and `count_many`, and every fast encoder for a text that it may read, give tiktoken's ids."""
    clean, is_readable = encodings.read(text)
    assert clean == encodable(text)
    for name in NAMES:
        expected = encodings.load_encoding(name).encode_to_numpy(clean, disallowed_special=())
        assert np.array_equal(encodings.encode(name, text), expected), name
        assert TiktokenCounter(name).count_many([text, ""]).tolist() == [len(expected), 0], name
        if is_readable:
            encoder = encodings.load_toktok(name)
            assert encoder is None or np.array_equal(encoder.encode(clean), expected), name
            assert encoder is None or encoder.count(clean) == len(expected), name


def in_places(character: str) -> str:
    """The character beside line ends, spaces, marks, letters of both cases, digits, brackets and apostrophes."""
    c = character
    return f"{c}\n .{c}n {c}\n!{c}(a A{c}b{c}B{c}{c}1{c}  {c}\t n'{c}'st'{c}'S{c}'{c}l '{c}{c}E/{c}\r\n"


def unlike(name: str, code_points: list[int]) -> list[int]:
    """The code points that a fast encoder reads otherwise than tiktoken; blocks that are alike are read at once."""
    encoding = encodings.load_encoding(name)
    text = "\n\n".join(in_places(chr(each)) for each in code_points)
    expected = encoding.encode_to_numpy(text, disallowed_special=())
    encoder = encodings.load_toktok(name)
    if encoder is None or np.array_equal(encoder.encode(text), expected):
        return []
    if len(code_points) == 1:
        return code_points
    middle = len(code_points) // 2
    return unlike(name, code_points[:middle]) + unlike(name, code_points[middle:])


def made(chance: random.Random) -> str:
    """A text of the corpus; a third of them with up to eight code points from all of Unicode among its own."""
    text = text_of(chance.randbytes(chance.randint(1, chance.choice((10, 40, 120)))))
    for _ in range(chance.randint(1, 8) if chance.random() < 1 / 3 else 0):
        place, most = chance.randint(0, len(text)), chance.choice((0x1000, 0x20000, 0x110000))
        text = text[:place] + chr(chance.randrange(most)) + text[place:]
    return text


def run(count: int, seed: int, data: Path | None) -> int:
    """Check so many texts of random recipes and the lines of a folder's files; the number of texts that fail."""
    chance, began, failed = random.Random(seed), time.process_time(), 0
    files = sorted(path for path in data.rglob("*") if path.is_file()) if data else []
    wholes = [path.read_text(encoding="utf-8") for path in files]
    lines = [line for whole in wholes for line in whole.splitlines(keepends=True)]
    unlike_ones = 0
    for text in (*wholes, *lines, *(made(chance) for _ in range(count))):
        unlike_ones += not encodings.read(text)[1]
        try:
            ids_are_tiktokens(text)
        except AssertionError as error:
            failed += 1
            print(f"{error}: {text!r}")
    print(
        f"toktok-rs: {count:,} texts of seed {seed}, {len(files)} files and their {len(lines):,} lines; "
        f"{unlike_ones:,} are tiktoken's alone; {failed} differ; {time.process_time() - began:.0f} s of processor time"
    )
    minutes = round((time.process_time() - began) / 60, 1)
    keep_result("encoders", seed, count + len(files) + len(lines), minutes, failed)
    return failed


def table() -> None:
    """Print `_UNLIKE` and `_DIGESTS`."""
    valid = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    blocks = [valid[at : at + 1024] for at in range(0, len(valid), 1024)]
    found = {code for name in NAMES for block in blocks for code in unlike(name, block)}
    firsts, lasts = (sorted(code for code in found if code + step not in found) for step in (-1, 1))
    print(
        *(f"{first:x}" if first == last else f"{first:x}-{last:x}" for first, last in zip(firsts, lasts, strict=True))
    )
    for name in (*NAMES, "o200k_harmony"):
        ids = encodings.load_encoding(name).encode_to_numpy(encodings.HARD_TEXT, disallowed_special=())
        print(f'"{name}": "{digest(ids.astype("<u4").tobytes(), 8)}",')


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing.of_encoders", description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path)
    asked = parser.parse_args()
    if asked.count or asked.data:
        sys.exit(run(asked.count, asked.seed, asked.data) > 0)
    table()
