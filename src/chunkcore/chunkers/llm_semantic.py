"""`LLMSemantic`: a language model says after which of the numbered pieces to split."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chunkcore.chunkers.base import register
from chunkcore.chunkers.llm import Section, WindowChunker
from chunkcore.chunkers.recursive import Recursive
from chunkcore.errors import OptionError
from chunkcore.models.llm import BadAnswerError, Question
from chunkcore.models.llm.answers import ascending, found_json, member
from chunkcore.spans import Ranges
from chunkcore.tokens import TokenizedText

__all__ = ["LLMSemantic", "tagged"]

_SEPARATORS = ("\n\n", "\n", ".", "?", "!", " ", "")
# The report's own form of an answer, which some models keep to whatever they are told.
_PLAIN = re.compile(r"split_after\W{0,9}?:[\s\[]{0,99}(\d+(?:\s{0,99},\s{0,99}\d+)*)")
_DIGITS = 10  # a number of more is that of no piece; `int` refuses very many

_INSTRUCTIONS = """You divide a text into parts that are each about one thing. The text is given in small pieces, \
each between <start_chunk_N> and <end_chunk_N>, where N is its number. Decide after which pieces the text is to be \
split, so that pieces which stand next to each other and belong together by their content stay together.

Answer with a JSON object and nothing else: {"split_after": [3, 5]} splits after piece 3 and after piece 5. The \
numbers are those of pieces in the text, ascending, each once."""


@register("llm_semantic")
@dataclass(frozen=True, kw_only=True)
class LLMSemantic(WindowChunker):
    r"""A language model is shown small numbered pieces, and names those after which to split.

    The LLMSemanticChunker of the Chroma report (2024, "LLMSemanticChunker"). The text is cut as `Recursive`
    does, into pieces of at most `piece_size`; a window of them is shown between tags with their numbers, and the
    model answers with `split_after`. The next window begins at the last part, whose end the model has not
    seen. As in the report's code at least one split is asked for in every window but the text's last.

    The report's code asks for a line "split_after: 3, 5"; here it is a JSON object, which endpoints can be
    held to, and such a line is read as well. The report states no maximum; here it is `max_size`.

    Where no answer can be used, the window is cut by size alone, and the chunks' metadata have `fallback`.

    Attributes:
        piece_size: of a piece, in the counter's unit; at most `max_size`.
        window: see `WindowChunker`; the report's code has 800 tokens.
        max_size: see `WindowChunker`.
        min_size: see `WindowChunker`.
        llm: see `LLMChunker`.
        retries: see `LLMChunker`.
        strict: see `LLMChunker`.

    Cost: one call a window, one after another within a document, and each window ends at least one piece after
    the one before: about n / (window - a chunk's size) calls for n tokens, n / `piece_size` at most. Each call
    reads the window and about 20 tokens of tags a piece, and answers with a few numbers. Time and memory beside the
    model are linear. `estimate` assumes one split in the middle of each window.

    Raises:
        OptionError: an option is out of range, or `llm` is not given.
        SizeError: one grapheme is over `piece_size`.
        NoAnswerError: with `strict`, a window has no valid answer.
        ModelError: the model cannot be asked at all.

    >>> from chunkcore.models.llm import CallableLLM
    >>> llm = CallableLLM(lambda messages, schema: '{"split_after": [1]}', name="always after 1")
    >>> LLMSemantic(llm=llm, piece_size=3, counter="words").split_text("Foxes nap.\nDogs nap.\nThe sea foams.")
    ['Foxes nap.\nDogs nap.', 'The sea foams.']
    """

    piece_size: int = 50

    def _validate(self) -> None:
        super()._validate()
        if not 1 <= self.piece_size <= self.max_size:
            raise OptionError(f"piece_size is at least 1 and at most max_size ({self.max_size}), got {self.piece_size}")

    def _pieces(self, source: TokenizedText) -> Ranges:
        return small_pieces(source, self.piece_size)

    def _question(self, pieces: Sequence[str], *, final: bool) -> Question[list[Section]]:
        last = len(pieces) - 1
        few = "Split at least once." if not final else "The list may be empty."
        schema = {
            "type": "object",
            "properties": {
                "split_after": {
                    "type": "array",
                    "items": {"type": "integer", "minimum": 0, "maximum": last},
                    "minItems": 0 if final else 1,
                }
            },
            "required": ["split_after"],
            "additionalProperties": False,
        }

        def read(text: str) -> list[Section]:
            numbers = ascending(_split_after(text), "split_after", 0, last)
            if not numbers and not final:
                raise BadAnswerError("expected at least one number in 'split_after', got none")
            return [Section(0), *(Section(number + 1) for number in numbers if number < last)]

        return Question(
            messages=[
                {"role": "system", "content": f"{_INSTRUCTIONS} {few}"},
                {"role": "user", "content": tagged(pieces)},
            ],
            schema=schema,
            read=read,
            assumed={"split_after": [last // 2]},
        )


def small_pieces(source: TokenizedText, size: int) -> Ranges:
    """The text as `Recursive` cuts it, in ranges whose own texts count at most `size`: shape (n, 2)."""
    splitter = Recursive(size=size, separators=_SEPARATORS, maximum="text", counter=source.counter)
    return np.array(splitter.ranges(source), dtype=np.int64).reshape(-1, 2)


def tagged(pieces: Sequence[str]) -> str:
    """The pieces between tags with their numbers.

    >>> tagged(["One. ", "Two."])
    '<start_chunk_0>One. <end_chunk_0><start_chunk_1>Two.<end_chunk_1>'
    """
    return "".join(f"<start_chunk_{number}>{text}<end_chunk_{number}>" for number, text in enumerate(pieces))


def _split_after(text: str) -> object:
    try:
        return member(found_json(text), "split_after")
    except BadAnswerError:
        plain = _PLAIN.findall(text) if isinstance(text, str) else []
        if not plain:
            raise
        numbers = [number.strip() for number in plain[-1].split(",")]
        return [int(number) if len(number) < _DIGITS else number for number in numbers]
