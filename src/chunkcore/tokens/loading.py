"""Where the files of an encoding or a tokenizer come from; each is loaded once a process."""

from __future__ import annotations

import os
import threading
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import MissingExtraError, OptionError

__all__ = ["load_encoding", "load_tokenizer", "token_byte_lengths"]

# The BPE files that llama-index-core ships, by the names under which tiktoken's cache keeps them
# (the SHA-1 of their addresses).
_SHIPPED_FILES = {
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
    "o200k_harmony": "fb374d419588a4632f3f557e76b4b70aebbca790",
}
_environment_lock = threading.Lock()


def _shipped_cache(name: str) -> Path | None:
    """The folder of llama-index-core that holds this encoding's file, found without importing it."""
    file = _SHIPPED_FILES.get(name)
    package = find_spec("llama_index") if file else None
    for root in (package.submodule_search_locations or []) if package else []:
        folder = Path(root) / "core" / "_static" / "tiktoken_cache"
        if file and (folder / file).is_file():
            return folder
    return None


@lru_cache(maxsize=8)
def load_encoding(name: str) -> Any:
    """The tiktoken encoding of that name.

    Raises:
        OptionError: its files are nowhere to be had.
    """
    import tiktoken

    folder = None if "TIKTOKEN_CACHE_DIR" in os.environ else _shipped_cache(name)
    try:
        if folder is None:
            return tiktoken.get_encoding(name)
        # The environment is tiktoken's only way to be told where its files are.
        with _environment_lock:
            os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
            try:
                return tiktoken.get_encoding(name)
            finally:
                del os.environ["TIKTOKEN_CACHE_DIR"]
    except (OSError, ValueError) as error:
        raise OptionError(
            f"the files of the encoding {name!r} could not be loaded ({type(error).__name__}): expected them in "
            "an installed llama-index-core, in tiktoken's cache, or online; install llama-index-core, or set "
            "TIKTOKEN_CACHE_DIR to a folder that holds them"
        ) from error


@lru_cache(maxsize=8)
def token_byte_lengths(name: str) -> NDArray[np.int32]:
    """How many bytes each token stands for, indexed by token id."""
    encoding = load_encoding(name)
    lengths = np.zeros(encoding.n_vocab, dtype=np.int32)
    for token in range(encoding.n_vocab):
        try:
            lengths[token] = len(encoding.decode_single_token_bytes(token))
        except KeyError:  # ids that an encoding leaves unused
            continue
    return lengths


@lru_cache(maxsize=8)
def load_tokenizer(source: str) -> Any:
    """The `tokenizers.Tokenizer` of a folder, a file or a hub name, made to take all text as text.

    Raises:
        OptionError: there is none.
        MissingExtraError: tokenizers is not installed.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtraError.of("tokenizers", "models", "count a model's tokens") from error
    path = Path(source)
    file = path / "tokenizer.json" if path.is_dir() else path
    try:
        tokenizer = Tokenizer.from_file(str(file)) if file.is_file() else Tokenizer.from_pretrained(source)
    except Exception as error:
        raise OptionError(
            f"no tokenizer at {source!r} ({error}): expected a folder with tokenizer.json, such a file, or a hub name"
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    # Text that looks like a special token is text; and a byte-level post-processor would trim the
    # space off each token's offsets.
    tokenizer.encode_special_tokens = True
    tokenizer.post_processor = None
    return tokenizer
