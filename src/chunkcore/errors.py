"""Every error this package raises on purpose.

    ChunkcoreError
    ├── OptionError (ValueError)       an option, a chunker string or a configuration file is wrong
    ├── DataError (ValueError)         a document, a benchmark or another input file is wrong
    │   └── NotWrittenError (OSError)  a file could not be written: the disk is full, or may not be written to
    ├── SizeError (ValueError)         one character is over the size of an exact splitter
    ├── ModelError (RuntimeError)      a model answered with something that is no answer
    │   └── NoAnswerError              a language model gave no valid answer to one question, however often asked
    └── MissingExtraError (ImportError) a package that is not installed is needed

Each message says what was expected, what was seen and what to do about it. `echo` shows what was seen.
"""

from __future__ import annotations

import inspect
import os
import re
import unicodedata
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

_LONGEST = 2_000  # characters of a message
# What stands before a host, and what follows the usual beginning of a key.
_SECRETS = re.compile(
    r"(?<=//)[^/\s'\"]*(?=@)|(?<![A-Za-z0-9])(?:sk-|sk_|rk_|gsk_|hf_|xai-|AIza|ghp_|github_pat_|glpat-|pplx-|r8_|nvapi-)"
    r"[A-Za-z0-9_-]{4,}"
)
_TURNING = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}


def echo(value: object, most: int = 60) -> str:
    r"""A value as an error repeats it: on one line, shortened, and escaped where it could not be read.

    >>> echo("recursive"), echo("a" * 100_000, most=4)
    ("'recursive'", "'aaaa...' (100,000 characters)")
    """
    if isinstance(value, str | bytes) and len(value) > most:
        text = repr(value[:most])
        return f"{_readable(text[:-1])}...{text[-1]} ({len(value):,} characters)"
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an int of thousands of digits, lists within each other
        return f"a {type(value).__name__} too large to be shown"
    if len(text) > 2 * most:
        text = f"{text[:most]}... ({len(text):,} characters)"
    return _readable(text)


def counted(count: int, noun: str) -> str:
    """A count with its noun: 1 question, 2 questions."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _readable(text: str) -> str:
    """`text` with what turns it around escaped, and combining marks from the third in a row on, which cover lines."""
    if text.isascii():  # as nearly always
        return text
    letters, marks = [], 0
    for letter in text:
        marks = marks + 1 if unicodedata.category(letter) in ("Mn", "Me", "Mc") else 0
        turns = unicodedata.bidirectional(letter) in _TURNING
        shown = ascii(letter)[1:-1] if turns or marks > 2 else letter
        letters.append(shown)
    return "".join(letters)


class ChunkcoreError(Exception):
    """The root: catch this to catch everything that chunkcore raises on purpose. A long message loses its middle."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(
            *[shortened(each) if isinstance(each, str) else each for each in arguments]
        )


def shortened(message: str, most: int = _LONGEST) -> str:
    """A message without keys and what is in its middle, and escaped."""
    half = most // 2
    message = _SECRETS.sub("[key]", message)
    if len(message) > 2 * most:
        message = message[:most] + message[-most:]
    message = _readable(message)
    return message if len(message) <= most else f"{message[:half]} ... {message[5 - half :]}"


def suggestion(
    wrong: object, known: Iterable[str], guesses: Mapping[str, str] = MappingProxyType({})
) -> str:
    """The end of an error message: what `guesses` has for it or each of a list, the nearest known name, or "".

    >>> suggestion("recursiv", ["markdown", "recursive"])
    "; did you mean 'recursive'?"
    """
    from difflib import get_close_matches

    by_lower_case = {name.casefold(): name for name in known}
    hints = []
    for name in wrong if isinstance(wrong, list) else [wrong]:
        lower = str(name)[:100].casefold()
        if lower in guesses:
            hints.append(guesses[lower])
            continue
        near = get_close_matches(lower, list(by_lower_case), n=1)
        hints += [repr(by_lower_case[match]) for match in near]
    return f"; did you mean {' and '.join(dict.fromkeys(hints))}?" if hints else ""


def kind_of(value: object) -> str:
    """The value's type with its module, as several libraries have a `Document`.

    >>> kind_of(3), kind_of(OptionError("no"))
    ('int', 'chunkcore.errors.OptionError')
    """
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


# Packages between a user's line and a warning.
_INNER = {
    "chunkadapters",
    "chunkcore",
    "haystack",
    "haystack_integrations",
    "langchain_core",
    "langchain_text_splitters",
    "llama_index",
    "llama_index_instrumentation",
    "pydantic",
    "concurrent",
    "threading",
    "asyncio",
}


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside of this package and the frameworks that led here."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INNER:
        frame, level = frame.f_back, level + 1
    if frame is None:
        level = 2
    warnings.warn(message, category, stacklevel=level)


class OptionError(ChunkcoreError, ValueError):
    """An option, a chunker string or a configuration is wrong."""


class DataError(ChunkcoreError, ValueError):
    """A document, a benchmark or another input is wrong."""


class NotWrittenError(DataError, OSError):
    """A file could not be written. The message says what is there now; `errno`, `strerror` are the system's."""

    def __str__(self) -> str:
        return str(self.args[0])

    @classmethod
    def of(cls, path: Path, error: OSError) -> OSError:
        """The error of writing a file. Another stays as it is: of a file that was read, of a name that is a folder's or
        leads through a file, of a pipe that nobody reads.
        """
        if isinstance(error, ChunkcoreError | BrokenPipeError | _WRONG_NAME):
            return error
        place = Path(os.path.realpath(path))
        other = Path(os.path.realpath(error.filename or place))
        named_after_it = place.name in other.name  # such as a temporary file
        if not (named_after_it or other in place.parents or place in other.parents):
            return error
        reason = error.strerror or str(error) or type(error).__name__
        new = cls(f"{path} cannot be written: {reason}; {_what_is_there(path)}")
        new.errno, new.strerror, new.filename = error.errno, reason, str(path)
        return new


_WRONG_NAME = IsADirectoryError | NotADirectoryError | FileExistsError


def _what_is_there(path: Path) -> str:
    if path.is_dir():
        return "what was in it is as it was"
    if path.is_file():
        return "the file that was there is as it was"
    return "what came before the error went into it" if path.exists() else "no file is there"


class SizeError(ChunkcoreError, ValueError):
    """One character alone is over the size of a splitter that is mirrored exactly."""


class ModelError(ChunkcoreError, RuntimeError):
    """A model answered with NaN, the wrong shape, or not at all."""


class NoAnswerError(ModelError):
    """One question has no valid answer: the model refused, kept to no format, or took too long, each time."""


class MissingExtraError(ChunkcoreError, ImportError):
    """A package that is not installed is needed; the message names the extra that brings it."""

    @classmethod
    def of(
        cls, package: str, extra: str, purpose: str, problem: str = "it is not installed"
    ) -> MissingExtraError:
        """Build the usual message.

        >>> print(MissingExtraError.of("rich", "report", "print"))
        rich is needed to print, and it is not installed: pip install "chunkadapters[report]" (in a clone: ".[report]")
        """
        return cls(
            f"{package} is needed to {purpose}, and {problem}: "
            f'pip install "chunkadapters[{extra}]" (in a clone: ".[{extra}]")'
        )
