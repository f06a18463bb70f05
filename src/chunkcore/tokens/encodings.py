"""tiktoken's encodings. Where toktok-rs is installed and gives the same ids, it makes them, 10 to 15 times as fast."""

from __future__ import annotations

import base64
import gzip
import os
import re
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import OptionError
from chunkcore.plain import digest, encodable

Ids = NDArray[np.uint32]

# Code points that toktok-rs reads otherwise than tiktoken, which encodes the texts that hold one: the long s, "s" in
# 'ſ after a letter, and what Unicode assigned after tiktoken's tables were made. `python -m tests.fuzzing.of_encoders`
# makes this table and the digests below.
_UNLIKE = (
    "17f 88f c5c cdc 1acf-1add 1ae0-1aeb a7ce-a7cf a7d2 a7d4 a7f1 10940-10959 10ec5-10ec7 10efa-10efb 11b60-11b67 "
    "11db0-11ddb 11de0-11de9 16ea0-16eb8 16ebb-16ed3 16ff2-16ff6 187f8-187ff 18d09-18d1e 18d80-18df2 1e6c0-1e6de "
    "1e6e0-1e6f5 1e6fe-1e6ff 2b73a-2b73f 2cea2-2cead 323b0-33479"
)

# What every encoder must encode as tiktoken does before it is used.
HARD_TEXT = (
    "Don't WE'LL I'M x'Re 12345678 3.14 a1b2 <|endoftext|><|fim_prefix|>\r\n\r\n \n  \t end  \u00a0 \u3000x"
    "\x00\x1c\u0085 ünïcode E\u0301e\u0301 ǅungla ʰªº ⅷ½٣ नमस्ते ภาษาไทย 日本語。漢字かな 한국어 עברית مرحبا 𠮷 "
    "👩\u200d👩\u200d👧🇩🇪🏽\ufe0f "
    "HTTPServer camelCase //--==>> /* ok */!!\n/usr\n\n\n   \ufffd\ufeff\u200b\u202e "
    + "a" * 700
    + "Zz9" * 90
    + " " * 300
    + "\n" * 40
    + "!?" * 70
)
_DIGESTS = {
    "cl100k_base": "db30df454bb35ecb",
    "o200k_base": "66ff8677649291d2",
    "o200k_harmony": "66ff8677649291d2",
}

# Names of tiktoken's files: the SHA-1 of their URL.
_FILES = {
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
    "o200k_harmony": "fb374d419588a4632f3f557e76b4b70aebbca790",
}
# The default encoding's file, as tiktoken's MIT licence allows (LICENSE-tiktoken), so that it needs no network.
_CARRIED = {"cl100k_base": Path(__file__).with_name("cl100k_base.tiktoken.gz")}
_environment_lock = threading.Lock()

_GAP = re.compile(r"\s+")
GIANT = 999_999  # white-space characters in a row; tiktoken's patterns fail on more


class FastEncoder(NamedTuple):
    """One encoding of toktok-rs (the extra ``fast``)."""

    encode: Callable[[str], Ids]
    count: Callable[[str], int]
    tokens: Callable[[], Sequence[bytes]]  # by id, without the special tokens


def load_toktok(name: str) -> FastEncoder | None:
    """toktok-rs' encoder of this encoding, unchecked; None: toktok-rs is missing or lacks the encoding."""
    if name not in _DIGESTS:
        return None
    try:
        import toktok

        encoding = toktok._encoding(name)
        return FastEncoder(
            lambda text: encoding.encode_to_numpy(text, None, ()),
            encoding.count,
            encoding.token_byte_values,
        )
    except Exception:  # noqa: BLE001  # not installed, or of a version with another interface or vocabulary
        return None


@lru_cache(maxsize=8)
def fast_encoder(name: str) -> FastEncoder | None:
    """toktok-rs' encoder, if its ids of a text of hard cases are tiktoken's, by digest, and their bytes the text's."""
    encoder = load_toktok(name)
    if encoder is None:
        return None
    ids, tokens = encoder.encode(HARD_TEXT), encoder.tokens()
    passes = (
        digest(ids.astype("<u4").tobytes(), 8) == _DIGESTS[name]
        and b"".join([tokens[token] for token in ids]) == HARD_TEXT.encode()
    )
    return encoder if passes else None


# Whether each code point is in `_UNLIKE`, and the first bytes in UTF-8 of those that are.
IS_UNLIKE = np.zeros(0x110000, dtype=np.bool_)
for _part in _UNLIKE.split():
    _first, _, _last = _part.partition("-")
    IS_UNLIKE[int(_first, 16) : int(_last or _first, 16) + 1] = True
_LEADS = sorted({chr(code).encode()[:1] for code in np.flatnonzero(IS_UNLIKE).tolist()})


def read(text: str) -> tuple[str, bool]:
    """The text with surrogates as U+FFFD; and whether it has no code point of `_UNLIKE` and no giant white space."""
    is_long = len(text) >= GIANT
    if text.isascii() and not is_long:
        return text, True
    for start in range(0, len(text), GIANT // 2):
        block = text[start : start + GIANT // 2]
        if is_long and block.isspace():  # giant white space fills a block
            return encodable(text), False
        try:
            data = block.encode()
        except UnicodeEncodeError:
            return read(encodable(text))
        # Most texts have none of the first bytes, which is quicker to see.
        if any(lead in data for lead in _LEADS):
            codes = np.frombuffer(block.encode("utf-32-le"), dtype="<u4")
            if IS_UNLIKE[codes].any():
                return encodable(text), False
    return text, True


@lru_cache(maxsize=8)
def load_encoding(name: str) -> Any:
    """The tiktoken encoding of this name. Raises `OptionError` if its files are missing.

    The vocabulary of cl100k_base is in this package. Others are toktok-rs' if that is installed, else from tiktoken's
    cache or the network. tiktoken compares the hash of each.
    """
    import tiktoken

    try:
        encoder = load_toktok(name)
        if name in _CARRIED:
            vocabulary = gzip.decompress(_CARRIED[name].read_bytes())
        elif encoder is not None:
            numbered = enumerate(encoder.tokens())
            lines = [b"%b %d\n" % (base64.b64encode(token), number) for number, token in numbered]
            vocabulary = b"".join(lines)
        else:
            return tiktoken.get_encoding(name)
        # tiktoken reads files only, from a folder that only the environment names.
        with TemporaryDirectory() as folder, _environment_lock:
            Path(folder, _FILES[name]).write_bytes(vocabulary)
            before = os.environ.get("TIKTOKEN_CACHE_DIR")
            os.environ["TIKTOKEN_CACHE_DIR"] = folder
            try:
                return tiktoken.get_encoding(name)
            finally:
                del os.environ["TIKTOKEN_CACHE_DIR"]
                if before is not None:
                    os.environ["TIKTOKEN_CACHE_DIR"] = before
    except (OSError, ValueError) as error:
        raise OptionError(
            f"the files of the encoding {name!r} could not be loaded ({type(error).__name__}): expected them in "
            "tiktoken's cache or online; set TIKTOKEN_CACHE_DIR to a folder that holds them, or use cl100k_base, which "
            'comes with this package, or pip install "chunkadapters[fast]" for o200k_base and o200k_harmony'
        ) from error


@lru_cache(maxsize=8)
def token_byte_lengths(name: str) -> NDArray[np.int32]:
    """The bytes of each token, indexed by token id."""
    fast = fast_encoder(name)
    if fast is not None:
        return np.array([len(token) for token in fast.tokens()], dtype=np.int32)
    encoding = load_encoding(name)
    lengths = np.zeros(encoding.n_vocab, dtype=np.int32)
    for token in range(encoding.n_vocab):
        with suppress(KeyError):  # unused ids
            lengths[token] = len(encoding.decode_single_token_bytes(token))
    return lengths


def encode(name: str, text: str) -> Ids:
    """The ids of a text's tokens: tiktoken's, with special tokens read as text and surrogates as U+FFFD."""
    fast = fast_encoder(name)
    clean, is_readable = read(text)
    if fast is not None and is_readable:
        return fast.encode(clean)
    # disallowed_special=() reads special tokens as plain text.
    encode_whole = partial(load_encoding(name).encode_to_numpy, disallowed_special=())
    ids: Ids
    try:
        ids = encode_whole(clean)
    except ValueError:
        cuts = [0]  # in white space that is too long for tiktoken's pattern
        for gap in _GAP.finditer(clean):
            if gap.end() - gap.start() >= GIANT:
                cuts.extend(range(gap.start() + GIANT // 2, gap.end(), GIANT // 2))
        if len(cuts) < 2:
            raise
        edges = pairwise([*cuts, len(clean)])
        ids = np.concatenate([encode_whole(clean[start:end]) for start, end in edges])
    return ids
