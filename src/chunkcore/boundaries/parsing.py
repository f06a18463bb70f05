"""Tree-sitter's parsers: they take bytes and tell places in bytes, which no one but this file's users sees."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from chunkcore.errors import MissingExtraError
from chunkcore.tokens import Offsets

if TYPE_CHECKING:
    from tree_sitter import Language, Tree

__all__ = ["Parsed", "load_grammar"]


class Parsed:
    """A text, as a parser knows it.

    Attributes:
        data: the text in UTF-8; an unpaired surrogate, which UTF-8 cannot say, is a question mark.
        tree: the parser's tree, with places in `data`.
    """

    def __init__(self, text: str, grammar: Language) -> None:
        from tree_sitter import Parser

        self.data = text.encode("utf-8", "replace")
        self.tree: Tree = Parser(grammar).parse(self.data)
        # As signed numbers the bytes that continue a character are the lowest.
        self._continue = (np.frombuffer(self.data, dtype=np.int8) < -64).nonzero()[0]

    def code_points(self, places: Offsets) -> Offsets:
        """Places in `data` as places in the text: of each, how many characters begin before it."""
        found: Offsets = places - self._continue.searchsorted(places)
        return found


@lru_cache(maxsize=32)
def load_grammar(package: str, function: str = "language") -> Language:
    """The grammar of a package, loaded once.

    Raises:
        MissingExtraError: the package, or tree-sitter, is not installed.
    """
    try:
        from tree_sitter import Language

        module = import_module(package)
    except ImportError as error:
        name = package.replace("_", "-")
        raise MissingExtraError.of(f"{name} (with tree-sitter)", "structure", "read its language") from error
    return Language(getattr(module, function)())
