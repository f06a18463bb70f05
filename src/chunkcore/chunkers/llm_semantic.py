"""`LLMSemantic` and `Agentic`: a language model groups numbered pieces of a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from chunkcore.chunkers.base import strategies
from chunkcore.chunkers.llm import PieceChunker, Section
from chunkcore.models.llm import BadAnswerError, Question
from chunkcore.models.llm.base import ascending, conversation, found_json, member, schema_of, text_of, whole_number

# The report's form of an answer, which some models insist on.
_PLAIN = re.compile(r"split_after\W{0,9}?:[\s\[]{0,99}(\d+(?:\s{0,99},\s{0,99}\d+)*)")
_DIGITS = 10  # no piece has a longer number; `int` refuses very long ones

_INSTRUCTIONS = """You divide a text into parts that are each about one thing. The text is given in small pieces, \
each between <start_chunk_N> and <end_chunk_N>, where N is its number. Decide after which pieces the text is to be \
split, so that pieces which stand next to each other and belong together by their content stay together.

Answer with a JSON object and nothing else: {"split_after": [3, 5]} splits after piece 3 and after piece 5. The \
numbers are those of pieces in the text, ascending, each once."""


@strategies.register("llm_semantic")
@dataclass(frozen=True, kw_only=True)
class LLMSemantic(PieceChunker):
    r"""A language model is shown small numbered pieces, and names the pieces after which to split.

    The LLMSemanticChunker of the Chroma report (2024, "LLMSemanticChunker"). The model sees a window of pieces between
    numbered tags and answers with `split_after`. As in the report's code, every window but the last needs a split. The
    answer is a JSON object, which endpoints can enforce; the report's line "split_after: 3, 5" is read as well. The
    report has no maximum; here it is `size`.

    Attributes:
        window: see `WindowChunker`; the report's code has 800 tokens.

    Cost: one call a window, one after another: about n / (window - a chunk's size) calls for n tokens. A call reads the
    window and about 20 tokens of tags a piece, and writes a few numbers. `estimate` assumes one split in the middle of
    each window.

    >>> from chunkcore.models.llm import CallableLLM
    >>> llm = CallableLLM(lambda messages, schema: '{"split_after": [1]}', name="always after 1")
    >>> LLMSemantic(llm=llm, piece_size=3, counter="words").split_text("Foxes nap.\nDogs nap.\nThe sea foams.")
    ['Foxes nap.\nDogs nap.', 'The sea foams.']
    """

    def _question(self, pieces: Sequence[str], *, final: bool) -> Question[list[Section]]:
        last = len(pieces) - 1
        few = "Split at least once." if not final else "The list may be empty."
        numbers = {"type": "integer", "minimum": 0, "maximum": last}
        schema = schema_of(split_after={"type": "array", "items": numbers, "minItems": 0 if final else 1})

        def read(text: str) -> list[Section]:
            numbers = ascending(_split_after(text), "split_after", 0, last)
            if not numbers and not final:
                raise BadAnswerError("expected at least one number in 'split_after', got none")
            return [Section(0), *(Section(number + 1) for number in numbers if number < last)]

        return Question(
            messages=conversation(f"{_INSTRUCTIONS} {few}", tagged(pieces)),
            schema=schema,
            read=read,
            assumed={"split_after": [last // 2]},
        )


def tagged(pieces: Sequence[str]) -> str:
    """The pieces between numbered tags.

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


_LONGEST = 500  # characters of a title or a reason

_INSTRUCTIONS_AGENTIC = """You analyse a text and find its natural sections, which should stay together. Consider:
- that a section is about one topic,
- that it can be understood on its own,
- that what refers to something else stands with what it refers to.

The text is given in numbered pieces. Answer with a JSON object and nothing else, such as {"sections": [{"first": 1, \
"title": "The harbour", "reason": "One description of one place."}, {"first": 4, "title": "The ships", "reason": \
"Turns from the place to what sails there."}]}. "first" is the number of the section's first piece; each section goes \
on until the next one begins, so that the first section begins with piece 1 and the numbers ascend."""


@strategies.register("agentic")
@dataclass(frozen=True, kw_only=True)
class Agentic(PieceChunker):
    """A language model is shown the text in numbered pieces, and names its sections, each with a reason.

    Agentic chunking of the chunking survey, section "Agentic Chunking": the model considers topic coherence,
    self-contained information and reference dependencies. The paper asks for offsets, which models cannot count; here
    the model names each section's first piece. Metadata: `section_title` and `section_reason`, at most 500 characters
    each.

    Attributes:
        size: see `WindowChunker`; the model is told how many pieces that is.

    Cost: one call a window, one after another: about n / (window - a section's size) calls for n tokens. A call reads
    the window and about 5 tokens more a piece, and writes about 40 tokens a section. `estimate` assumes sections of
    half of `size`, titles of 5 words and reasons of 15.
    """

    window: int = 4000

    def _question(self, pieces: Sequence[str], *, final: bool) -> Question[list[Section]]:
        most = max(1, self.size // self.piece_size)
        numbered = "\n".join(f"[{number}] {text}" for number, text in enumerate(pieces, start=1))
        first = {"type": "integer", "minimum": 1, "maximum": len(pieces)}
        section = schema_of(first=first, title={"type": "string"}, reason={"type": "string"})
        return Question(
            messages=conversation(f"{_INSTRUCTIONS_AGENTIC} No section has more than {most} pieces.", numbered),
            schema=schema_of(sections={"type": "array", "items": section, "minItems": 1}),
            read=lambda text: _sections(text, len(pieces)),
            assumed={
                "sections": [
                    {"first": first, "title": "word " * 5, "reason": "word " * 15}
                    for first in range(1, len(pieces) + 1, max(1, most // 2))
                ]
            },
        )


def _sections(text: str, pieces: int) -> list[Section]:
    answers = member(found_json(text), "sections")
    if not isinstance(answers, list) or not answers or not all(isinstance(answer, dict) for answer in answers):
        raise BadAnswerError("expected 'sections' to be a list of at least one object")
    sections: list[Section] = []
    for answer in answers:
        first = whole_number(member(answer, "first"), "first", 1, pieces)
        if first - 1 <= sections[-1].first if sections else first != 1:
            raise BadAnswerError(
                "expected the first section to begin with piece 1 and each other one after the section before it, "
                f"got 'first': {first} in place {len(sections) + 1}"
            )
        metadata = {
            "section_title": text_of(member(answer, "title"), "title")[:_LONGEST],
            "section_reason": text_of(member(answer, "reason"), "reason")[:_LONGEST],
        }
        sections.append(Section(first - 1, metadata))
    return sections
