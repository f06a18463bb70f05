"""`Aligned`: any function from a text to its pieces, which are found in the text's own order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chunkadapters.exact.functions import Named
from chunkcore.chunkers.base import Draft, DraftingChunker, register
from chunkcore.document import Document
from chunkcore.errors import DataError, OptionError
from chunkcore.evaluation.alignment import Aligner
from chunkcore.tokens import TokenizedText

__all__ = ["Aligned"]


@register("aligned")
@dataclass(frozen=True, kw_only=True)
class Aligned(DraftingChunker):
    r"""The pieces that a function cuts a text into, with their places in it.

    Each piece is sought as `Aligner.locate_in_order` does: verbatim, but for white space, by letters and digits, by
    resemblance; of a text that stands several times, the place that its neighbours leave for it. A piece that
    was altered keeps the function's text (it is `derived`), and its metadata tell ``located``, how it was found,
    unless it stands there verbatim and once. A piece that is found nowhere is refused: it would have no place.

    Cost: the function's own, and an index of each document, about 7 bytes a character.

    Attributes:
        split: from a text to its pieces, in the text's order; a piece is a text, or a text and its metadata.
        similarity: see `Aligner`.

    Raises:
        OptionError: `split` can't be called.
        DataError: it gave something else than texts, or one that is found nowhere.

    >>> Aligned(split=str.splitlines, counter="words").chunk(Document("d", "one\ntwo\none"))[2].spans
    (Span(start=8, end=11),)
    """

    split: Callable[[str], Sequence[str | tuple[str, Mapping[str, Any]]]] | str = ""
    similarity: float | None = 0.8

    def _validate(self) -> None:
        if not callable(self.split):
            raise OptionError(f"split is a function from a text to its pieces, got {self.split!r}")
        if not isinstance(self.split, Named):
            object.__setattr__(self, "split", Named(self.split))

    def _draft(self, source: TokenizedText, document: Document | None) -> list[Draft]:
        pieces, metadata = self._pieces(source.text)
        if not pieces:
            return []
        aligner = Aligner([Document("text", source.text)], similarity=self.similarity)
        drafts = []
        places = aligner.locate_in_order(pieces, document_id="text")
        for piece, own, found in zip(pieces, metadata, places, strict=True):
            if not found.spans:
                raise DataError(
                    f"the splitter gave a piece that stands nowhere in its text: {piece[:80]!r}; "
                    "without a place it can't be evaluated: configure the splitter so that it keeps the text"
                )
            verbatim = self._text(source.text, found.spans) == piece
            told = {} if found.how == "exact" else {"located": found.how}
            drafts.append(Draft(found.spans, own | told, derived=None if verbatim else piece))
        return drafts

    def _pieces(self, text: str) -> tuple[list[str], list[dict[str, Any]]]:
        """The pieces that are not empty, and the metadata of each."""
        pieces: list[str] = []
        metadata: list[dict[str, Any]] = []
        for given in self.split(text):  # type: ignore[operator]  # `_validate` has seen that it can be called
            piece, own = given if isinstance(given, tuple) and len(given) == 2 else (given, {})
            if not isinstance(piece, str) or not isinstance(own, Mapping):
                raise DataError(
                    f"expected the splitter to give texts, or texts with their metadata, got {type(given).__name__}"
                )
            if piece:
                pieces.append(piece)
                metadata.append(dict(own))
        return pieces, metadata
