"""Every error this package raises on purpose.

    ChunkcoreError
    ├── OptionError (ValueError)       an option, a strategy string or a configuration file is wrong
    ├── DataError (ValueError)         a document, a benchmark or another input file is wrong
    ├── SizeError (ValueError)         one grapheme is over the stated maximum: nothing can be cut
    ├── ModelError (RuntimeError)      a model answered with something that is no answer
    │   └── NoAnswerError              a language model gave no valid answer to one question, however often asked
    └── MissingExtraError (ImportError) a package that is not installed is needed

Each message says what was expected, what was seen and what to do about it.
"""

from __future__ import annotations

__all__ = [
    "ChunkcoreError",
    "DataError",
    "MissingExtraError",
    "ModelError",
    "NoAnswerError",
    "OptionError",
    "SizeError",
]


class ChunkcoreError(Exception):
    """The root: catch this to catch everything that chunkcore raises on purpose."""


class OptionError(ChunkcoreError, ValueError):
    """An option, a strategy string or a configuration is wrong."""


class DataError(ChunkcoreError, ValueError):
    """A document, a benchmark or another input is wrong."""


class SizeError(ChunkcoreError, ValueError):
    """One grapheme alone is over the maximum, so no cut can help."""


class ModelError(ChunkcoreError, RuntimeError):
    """A model answered with NaN, the wrong shape, or not at all."""


class NoAnswerError(ModelError):
    """One question has no valid answer: the model refused, kept to no format, or took too long, each time."""


class MissingExtraError(ChunkcoreError, ImportError):
    """A package that is not installed is needed; the message names the extra that brings it."""

    @classmethod
    def of(cls, package: str, extra: str, purpose: str) -> MissingExtraError:
        """Build the usual message.

        >>> print(MissingExtraError.of("sentence-transformers", "models", "embed text"))
        sentence-transformers is needed to embed text, and it is not installed: pip install "chunkadapters[models]"
        """
        return cls(f'{package} is needed to {purpose}, and it is not installed: pip install "chunkadapters[{extra}]"')
