"""What strategies that ask a language model share: options, the fallback, and windows over numbered pieces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from chunkcore.chunkers.base import Chunker, Draft
from chunkcore.document import Document, Span
from chunkcore.errors import NoAnswerError, OptionError
from chunkcore.models.llm import LLM, Estimator, Question, Usage, ask, check_llm, get_llm
from chunkcore.packing import fit, join_ranges, pack, running_sizes
from chunkcore.spans import Numbers, Ranges
from chunkcore.tokens import TokenizedText

__all__ = ["LLMChunker", "Outcome", "Section", "WindowChunker"]

C = TypeVar("C", bound="LLMChunker")
T = TypeVar("T")

_FALLBACK = ("fallback", "fallback_reason")


@dataclass(frozen=True)
class Outcome(Generic[T]):  # Python 3.10 has no generic NamedTuple
    """A question's valid answer, or why there is none."""

    value: T | None
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class LLMChunker(Chunker, ABC):
    """A strategy that asks a language model.

    What a model says is checked, and never becomes the text of a chunk unless the strategy is made for that. An
    answer that cannot be used is told to the model, `retries` times at most; where none is valid, the chunk is made
    without the model, and its metadata tell so: `fallback` is what was done, `fallback_reason` why.

    Attributes:
        llm: what `get_llm` knows, such as ``openai:qwen3:8b@http://localhost:11434/v1``, or an `LLM`. To be given.
        retries: how often a question is repeated whose answer cannot be used.
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
        if self.retries < 0:
            raise OptionError(f"retries is at least 0, got {self.retries}")

    @cached_property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that change when anything changes that changes the chunks, the model included."""
        if isinstance(self.llm, str):
            return replace(self, llm=get_llm(self.llm)).fingerprint
        return super().fingerprint

    def estimate(self, documents: Iterable[Document]) -> Usage:
        """What cutting the documents would take: calls, and tokens as `cl100k_base`. Nothing is asked.

        Each answer is assumed as the strategy's docstring says; neither repeated questions nor answers that a
        cache holds are foreseen.
        """
        estimator = Estimator()
        dry = self._with_llm(estimator)
        for document in documents:
            dry.draft(dry._tokenize_text(document.text), document)
        return estimator.usage

    def _with_llm(self: C, llm: LLM) -> C:
        return replace(self, llm=llm)

    @property
    def _at_once(self) -> int:
        """How many questions are asked at the same time."""
        return max(1, int(getattr(get_llm(self.llm), "concurrency", 1)))

    def _ask(self, question: Question[T]) -> Outcome[T]:
        try:
            return Outcome(ask(get_llm(self.llm), question, retries=self.retries))
        except NoAnswerError as error:
            if self.strict:
                raise
            return Outcome(None, str(error))


class Section(NamedTuple):
    """Pieces that belong together, up to where the next section begins.

    Attributes:
        first: the first of them, as a place among the document's pieces.
        metadata: what is known of it.
    """

    first: int
    metadata: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class WindowChunker(LLMChunker, ABC):
    """A strategy that shows a model a window of numbered pieces, and is told where sections begin.

    The window moves on to the last section that the model saw the beginning of but maybe not the end, so that no
    section ends only because a window does.

    Attributes:
        window: how much the model is shown at once, in the counter's unit; a piece that is over it is shown alone.
        max_size: what no chunk's own text is over, in the counter's unit. A section that is larger is cut between
            pieces.
        min_size: a chunk whose own text counts less joins the nearer neighbour, or the other one, where the two are
            within `max_size` together; else it stays. What is told of a joined chunk is what its largest part told,
            and that the model was not followed in any part.
        llm: see `LLMChunker`.
        retries: see `LLMChunker`.
        strict: see `LLMChunker`.
    """

    window: int = 800
    max_size: int = 800
    min_size: int = 0

    def validate(self) -> None:
        super().validate()
        if self.window < 1:
            raise OptionError(f"window is at least 1, got {self.window}")
        if self.max_size < 1:
            raise OptionError(f"max_size is at least 1, got {self.max_size}")
        if not 0 <= self.min_size <= self.max_size:
            raise OptionError(f"min_size is at least 0 and at most max_size ({self.max_size}), got {self.min_size}")

    @property
    def hard_maximum(self) -> int:
        return self.max_size

    @abstractmethod
    def _pieces(self, source: TokenizedText) -> Ranges:
        """What is numbered: ranges in order, none over `max_size`, with nothing but white space between them."""

    @abstractmethod
    def _question(self, pieces: Sequence[str], *, final: bool) -> Question[list[Section]]:
        """Where sections begin among these pieces, the first of which begins one; `final`: the text ends with them."""

    def draft(self, source: TokenizedText, document: Document | None) -> list[Draft]:
        pieces = self._pieces(source)
        sums = running_sizes(_sizes(source, pieces))
        drafts: list[Draft] = []
        first = 0
        while first < len(pieces):
            end = self._window_end(sums, first)
            sections = self._sections(source, pieces, first, end)
            stop = self._kept(sections, first, end, len(pieces))
            for section, after in zip(sections, [*(each.first for each in sections[1:]), end], strict=True):
                if section.first < stop:
                    drafts += self._chunks(source, pieces[section.first : after], section.metadata)
            first = stop
        return list(self._joined(source, drafts)) if self.min_size else drafts

    def _window_end(self, sums: Numbers, first: int) -> int:
        """The piece after the window's last: as many as fit, one at least."""
        return max(first + 1, int(np.searchsorted(sums, sums[first] + self.window, side="right")) - 1)

    def _sections(self, source: TokenizedText, pieces: Ranges, first: int, end: int) -> list[Section]:
        """The sections of a window, by their places in the document."""
        if end == first + 1:
            return [Section(first)]
        texts = [source.text[start:stop] for start, stop in pieces[first:end].tolist()]
        answer: Outcome[list[Section]] = self._ask(self._question(texts, final=end == len(pieces)))
        if answer.value is None:
            return [Section(first, {"fallback": "cut by size", "fallback_reason": answer.problem})]
        return [Section(first + each.first, each.metadata) for each in answer.value]

    def _kept(self, sections: Sequence[Section], first: int, end: int, last: int) -> int:
        """Where the next window begins: at the window's end, or at its last section, which may go on after it."""
        return end if end == last or len(sections) == 1 else sections[-1].first

    def _chunks(self, source: TokenizedText, pieces: Ranges, metadata: Mapping[str, Any]) -> list[Draft]:
        """A section as one chunk, or cut between its pieces where it is over the maximum."""
        rows = pack(running_sizes(_sizes(source, pieces)), self.max_size)
        found: list[Draft] = []
        for begin, end in rows:
            parts = fit(source, int(pieces[begin, 0]), int(pieces[end - 1, 1]), self.max_size)
            found += [Draft((Span(start, stop),), metadata) for start, stop in parts]
        return found

    def _joined(self, source: TokenizedText, drafts: list[Draft]) -> Iterator[Draft]:
        """The chunks after those under the soft minimum joined a neighbour."""
        spans = [draft.spans[0] for draft in drafts]
        rows = join_ranges(source, [(span.start, span.end) for span in spans], self.min_size, self.max_size)
        ends = [end for _, end in rows]
        for place, group in groupby(drafts, key=lambda draft: bisect_left(ends, draft.spans[0].end)):
            parts = list(group)
            metadata = dict(max(parts, key=lambda part: len(part.spans[0])).metadata)
            for part in parts:
                metadata |= {name: value for name, value in part.metadata.items() if name in _FALLBACK}
            yield Draft((Span(*rows[place]),), metadata)


def _sizes(source: TokenizedText, pieces: Ranges) -> Numbers:
    """What each piece counts with the white space before it, but for the first."""
    before = np.concatenate((pieces[:1, 0], pieces[:-1, 1]))
    return source.counts(before, pieces[:, 1])
