"""Strategies that ask a language model: shared options, the fallback, and windows over numbered pieces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from chunkcore.chunkers.base import Chunker, Draft
from chunkcore.chunkers.recursive import small_pieces
from chunkcore.document import Document, Span
from chunkcore.errors import NoAnswerError, OptionError
from chunkcore.models.llm import LLM, Estimator, Question, Usage, ask, check_llm, get_llm
from chunkcore.options import check_ranges
from chunkcore.packing import join_ranges, pack, running_counts, split_to_maximum
from chunkcore.spans import Numbers, Ranges
from chunkcore.tokens import TokenizedText

C = TypeVar("C", bound="LLMChunker")
T = TypeVar("T")

_FALLBACK = ("fallback", "fallback_reason")


@dataclass(frozen=True, kw_only=True)
class LLMChunker(Chunker, ABC):
    """A strategy that asks a language model.

    An invalid answer is explained to the model and asked again. Without a valid answer the chunk is made without the
    model; its metadata say what was done (`fallback`) and why (`fallback_reason`).

    Attributes:
        llm: a name that `get_llm` knows, such as ``openai:qwen3:8b@http://localhost:11434/v1``, or an `LLM`. Required.
        retries: how often a question with an invalid answer is repeated.
        strict: raise `NoAnswerError` instead of falling back.
    """

    llm: LLM | str = ""
    retries: int = 2
    strict: bool = False

    def validate(self) -> None:
        if isinstance(self.llm, str) and not self.llm.strip():
            raise OptionError(
                f"{self.name}: llm names the model to ask, as openai:MODEL@URL, such as "
                "openai:qwen3:8b@http://localhost:11434/v1; there is no default"
            )
        check_llm(self.llm)
        check_ranges(self, retries=0)

    def models(self) -> Mapping[str, Any]:
        return {"llm": get_llm(self.llm)}

    def estimate(self, documents: Iterable[Document]) -> Usage:
        """Calls and tokens (`cl100k_base`) for the documents, from assumed answers. Nothing is asked; caches are
        ignored.
        """
        estimator = Estimator()
        dry = self._with_llm(estimator)
        for document in documents:
            dry.draft(dry._tokenize_text(document.text), document)
        return estimator.usage

    def _with_llm(self: C, llm: LLM) -> C:
        return replace(self, llm=llm)

    def _ask(self, question: Question[T]) -> tuple[T, str] | tuple[None, str]:
        """A valid answer, or the reason why there is none."""
        try:
            return ask(get_llm(self.llm), question, retries=self.retries), ""
        except NoAnswerError as error:
            if self.strict:
                raise
            return None, str(error)


class Section(NamedTuple):
    """Pieces that belong together: the number of the first piece, and the chunks' metadata."""

    first: int
    metadata: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class WindowChunker(LLMChunker, ABC):
    """A strategy that shows a model a window of numbered pieces and asks where sections begin.

    The next window begins at the last section, whose end the model may not have seen. Without a valid answer the window
    is cut by size, and the chunks' metadata have `fallback`.

    Attributes:
        window: how much the model is shown at once, in the counter's unit; a larger piece is shown alone.
        size: no chunk's own text is over it, in the counter's unit. A larger section is cut between pieces.
        minimum: a smaller chunk joins the nearer neighbour, else the other one, if both fit into `size`. A joined
            chunk has the metadata of its largest part, and any part's `fallback`.
    """

    window: int = 800
    size: int = 800
    minimum: int = 0

    def validate(self) -> None:
        super().validate()
        check_ranges(self, window=1, size=1, minimum=(0, "size"))

    @property
    def hard_maximum(self) -> int:
        return self.size

    @abstractmethod
    def _pieces(self, source: TokenizedText) -> Ranges:
        """Ranges in order, none over `size`, with only white space between them."""

    @abstractmethod
    def _question(self, pieces: Sequence[str], *, final: bool) -> Question[list[Section]]:
        """Ask for the sections of pieces, the first of which begins one. `final`: the text ends there."""

    def draft(self, source: TokenizedText, document: Document | None) -> list[Draft]:
        pieces = self._pieces(source)
        sums = running_counts(source, pieces)
        drafts: list[Draft] = []
        first = 0
        while first < len(pieces):
            end = self._window_end(sums, first)
            sections = self._sections(source, pieces, first, end)
            stop = self._kept(sections, first, end, len(pieces))
            for section, after in zip(sections, [*(later.first for later in sections[1:]), end], strict=True):
                if section.first < stop:
                    rows = self._packed(source, pieces[section.first : after])
                    drafts += [Draft((Span(*row),), section.metadata) for row in rows]
            first = stop
        return list(self._joined(source, drafts))

    def _window_end(self, sums: Numbers, first: int) -> int:
        return max(first + 1, int(np.searchsorted(sums, sums[first] + self.window, side="right")) - 1)

    def _sections(self, source: TokenizedText, pieces: Ranges, first: int, end: int) -> list[Section]:
        if end == first + 1:
            return [Section(first)]
        texts = [source.text[start:stop] for start, stop in pieces[first:end].tolist()]
        sections, problem = self._ask(self._question(texts, final=end == len(pieces)))
        if sections is None:
            return [Section(first, {"fallback": "cut by size", "fallback_reason": problem})]
        return [Section(first + section.first, section.metadata) for section in sections]

    def _kept(self, sections: Sequence[Section], first: int, end: int, last: int) -> int:
        """Where the next window begins: at the last section, or at the text's end."""
        return end if end == last or len(sections) == 1 else sections[-1].first

    def _packed(self, source: TokenizedText, pieces: Ranges) -> list[tuple[int, int]]:
        rows: list[tuple[int, int]] = []
        for first, last in pack(running_counts(source, pieces), self.size):
            rows += split_to_maximum(source, int(pieces[first, 0]), int(pieces[last - 1, 1]), self.size)
        return rows

    def _joined(self, source: TokenizedText, drafts: list[Draft]) -> Iterator[Draft]:
        spans = [draft.spans[0] for draft in drafts]
        rows = join_ranges(source, [(span.start, span.end) for span in spans], self.minimum, self.size)
        ends = [end for _, end in rows]
        for place, group in groupby(drafts, key=lambda draft: bisect_left(ends, draft.spans[0].end)):
            parts = list(group)
            metadata = dict(max(parts, key=lambda part: len(part.spans[0])).metadata)
            for part in parts:
                metadata |= {name: value for name, value in part.metadata.items() if name in _FALLBACK}
            yield Draft((Span(*rows[place]),), metadata)


@dataclass(frozen=True, kw_only=True)
class PieceChunker(WindowChunker, ABC):
    """A `WindowChunker` over small pieces of the recursive splitter.

    Attributes:
        piece_size: the size of a piece, in the counter's unit; at most `size`.
    """

    piece_size: int = 50

    def validate(self) -> None:
        super().validate()
        check_ranges(self, piece_size=(1, "size"))

    def _pieces(self, source: TokenizedText) -> Ranges:
        return small_pieces(source, self.piece_size)


def llms_of(chunker: Chunker) -> list[LLM]:
    """The language models of a strategy, and of those that it wraps, each once."""
    llms = {id(llm): llm for llm in ([get_llm(chunker.llm)] if isinstance(chunker, LLMChunker) else [])}
    for name in chunker.option_names():
        if isinstance(inner := getattr(chunker, name), Chunker):
            llms |= {id(llm): llm for llm in llms_of(inner)}
    return list(llms.values())
