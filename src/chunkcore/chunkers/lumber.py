"""`Lumber`: a language model says at which paragraph the content changes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.boundaries.separators import compiled, finder
from chunkcore.chunkers.base import strategies
from chunkcore.chunkers.llm import Section, WindowChunker
from chunkcore.models.llm import Question
from chunkcore.models.llm.base import conversation, found_json, member, schema_of, whole_number
from chunkcore.packing import trim
from chunkcore.spans import Numbers, Ranges
from chunkcore.tokens import TokenizedText

_INSTRUCTIONS = """You are given consecutive paragraphs of a document, each on its own after "ID" and its number. Find \
the first paragraph, not the very first one, at which the content clearly changes compared to the paragraphs before \
it. Groups of paragraphs should be neither very long nor very short.

Answer with a JSON object and nothing else: {"first_changed": 4} says that the content changes at the paragraph ID 4. \
Where it does not change anywhere, answer {"first_changed": null}."""


@strategies.register("lumber")
@dataclass(frozen=True, kw_only=True)
class Lumber(WindowChunker):
    r"""A language model is shown numbered paragraphs, and names the first at which the content shifts.

    LumberChunker (Duarte et al., 2024), as Toresan et al., section 2, describe it. The model sees paragraphs of about
    `window` tokens from the end of the last chunk. The paragraphs before the named one are a chunk, and the next
    question begins there. Beyond the paper, the model may answer that nothing changes: all paragraphs shown are then a
    chunk. A paragraph over `size` is shown in parts, cut between sentences, else words, else graphemes.

    Attributes:
        window: how much the model is shown, in the counter's unit: paragraphs up to the one that reaches it, at least
            two; the paper's 550 tokens.
        paragraph_end: a regular expression between paragraphs; a match is blank or belongs to the paragraph before it.
            The default is blank lines; ``\n`` is for texts with one paragraph on each line.
        size: see `WindowChunker`; the paper has no maximum, and its chunks have 658 tokens on average.

    Cost: one call a chunk, one after another, each reading about `window` tokens and writing a number. `estimate`
    assumes that the content changes halfway.

    >>> from chunkcore.models.llm import CallableLLM
    >>> llm = CallableLLM(lambda messages, schema: '{"first_changed": 3}', name="always at 3")
    >>> Lumber(llm=llm).split_text("The fox naps.\n\nThe dog naps.\n\nThe sea is wide.")
    ['The fox naps.\n\nThe dog naps.', 'The sea is wide.']
    """

    window: int = 550
    paragraph_end: str = r"\n\s*\n"

    def validate(self) -> None:
        super().validate()
        compiled(self.paragraph_end, "paragraph_end")

    def _pieces(self, source: TokenizedText) -> Ranges:
        find = finder(re.compile(self.paragraph_end), len(source.text))
        edges = [0, *(match.end() for match in find(source.text)), len(source.text)]
        rows = [trim(source.text, start, end) for start, end in pairwise(edges)]
        whole = np.array([row for row in rows if row[0] < row[1]], dtype=np.int64).reshape(-1, 2)
        over = source.counts(whole[:, 0], whole[:, 1]) > self.size
        parts: list[tuple[int, int]] = []
        for (start, end), is_over in zip(whole.tolist(), over.tolist(), strict=True):
            if is_over:
                parts += self._packed(source, sentence_ranges(source.text[start:end]) + start)
            else:
                parts.append((start, end))
        return np.array(parts, dtype=np.int64).reshape(-1, 2)

    def _window_end(self, sums: Numbers, first: int) -> int:
        reached = int(np.searchsorted(sums, sums[first] + self.window))
        return min(max(first + 2, reached), len(sums) - 1)

    def _kept(self, sections: Sequence[Section], first: int, end: int, last: int) -> int:
        # Also in the last window: later changes are not known yet.
        return sections[1].first if len(sections) > 1 else end

    def _question(self, pieces: Sequence[str], *, final: bool) -> Question[list[Section]]:
        schema = schema_of(first_changed={"type": ["integer", "null"], "minimum": 2, "maximum": len(pieces)})

        def read(text: str) -> list[Section]:
            place = member(found_json(text), "first_changed")
            if place is None:
                return [Section(0)]
            return [Section(0), Section(whole_number(place, "first_changed", 2, len(pieces)) - 1)]

        numbered = "\n\n".join(f"ID {number}: {text}" for number, text in enumerate(pieces, start=1))
        return Question(
            messages=conversation(_INSTRUCTIONS, numbered),
            schema=schema,
            read=read,
            assumed={"first_changed": len(pieces) // 2 + 1},
        )
