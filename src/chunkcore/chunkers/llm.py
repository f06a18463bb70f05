"""Chunkers that ask a language model: where to cut, for propositions, or for a sentence that situates a chunk."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.boundaries.separators import compiled, finder
from chunkcore.chunkers.base import Chunker, Draft, chunkers, get_chunker
from chunkcore.chunkers.recursive import Recursive, small_pieces
from chunkcore.chunkers.sentence import Sentence
from chunkcore.errors import NoAnswerError, OptionError
from chunkcore.models.llm import (
    LLM,
    BadAnswerError,
    Estimator,
    Question,
    Usage,
    ask,
    get_llm,
)
from chunkcore.models.llm.base import (
    ask_all,
    check_ascending,
    conversation,
    json_question,
    schema_of,
    text_of,
)
from chunkcore.options import Bounds
from chunkcore.packing import (
    join_ranges,
    pack,
    running_counts,
    split_ranges_to_maximum,
    trim_ranges,
    whole_runs,
)
from chunkcore.spans import Numbers, Ranges, as_ranges
from chunkcore.text import Document, Span
from chunkcore.tokens import TokenizedText

C = TypeVar("C", bound="LLMChunker")
T = TypeVar("T")

_LONGEST = 500  # characters of a title or a reason


@dataclass(frozen=True, kw_only=True)
class LLMChunker(Chunker, ABC):
    """A chunker that asks a language model.

    An invalid answer is explained to the model and asked again. Without a valid answer the chunk is made without the
    model; its metadata say what was done (`fallback`) and why (`fallback_reason`).

    Attributes:
        llm: a name that `get_llm` knows, such as ``openai:qwen3:8b@http://localhost:11434/v1``, or an `LLM`. Required.
        retries: how often the model is asked again after an invalid answer.
        strict: raise `NoAnswerError` instead of falling back.
    """

    llm: LLM | str = ""
    retries: int = 2
    strict: bool = False
    bounds = Bounds(retries=0)

    def validate(self) -> None:
        if isinstance(self.llm, str) and not self.llm.strip():
            raise OptionError(
                f"{self.name}: llm names the model to ask, as openai:MODEL@URL, such as "
                "openai:qwen3:8b@http://localhost:11434/v1; there is no default"
            )

    def estimate(self, documents: Iterable[Document]) -> Usage:
        """Calls and tokens (`cl100k_base`) for the documents, from assumed answers. Nothing is asked, no cache read."""
        estimator = Estimator()
        dry = self._with_llm(estimator)
        for document in documents:
            dry.cut(dry._tokenize([document]))
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
    """A chunker that shows a model a window of numbered pieces and asks where sections begin.

    The next window begins at the last section, whose end the model may not have seen. Without a valid answer the window
    is cut by size, and the chunks' metadata have `fallback`.

    Attributes:
        window: what the model sees at once, in the counter's unit; a larger piece is shown alone.
        size: no chunk's own text is over it, in the counter's unit. A larger section is cut between pieces.
        minimum: a smaller chunk joins the nearer neighbour, else the other one, if both fit into `size`. A joined
            chunk has the metadata of its parts; what several have is that of the largest.
    """

    bounded = True

    window: int = 800
    size: int = 800
    minimum: int = 0
    bounds = Bounds(window=1, size=1, minimum=(0, "size"))
    keeps_last: ClassVar[bool] = True  # whether all sections of the last window are final

    @abstractmethod
    def _pieces(self, source: TokenizedText) -> Ranges:
        """Ranges in order, none over `size`, with only white space between them."""

    @abstractmethod
    def _question(self, pieces: Sequence[str], *, final: bool) -> Question[list[Section]]:
        """Ask for the sections of pieces, the first of which begins one; `final`: the text ends there."""

    def cut(self, source: TokenizedText) -> list[Draft]:
        pieces = self._pieces(source)
        sums = running_counts(source, pieces)
        drafts: list[Draft] = []
        first = 0
        while first < len(pieces):
            end = self._window_end(sums, first)
            sections = [Section(first)]
            if end > first + 1:
                texts = source.slices(pieces[first:end])
                answer, problem = self._ask(self._question(texts, final=end == len(pieces)))
                reasons = {"fallback": "cut by size", "fallback_reason": problem}
                sections = [
                    Section(first + section.first, section.metadata)
                    for section in answer or [Section(0, reasons)]
                ]
            is_final = len(sections) == 1 or (end == len(pieces) and self.keeps_last)
            first = end if is_final else sections.pop().first
            ends = [*(section.first for section in sections[1:]), first]
            for section, after in zip(sections, ends, strict=True):
                rows = self._packed(source, pieces[section.first : after]).tolist()
                drafts += [Draft((Span(*row),), section.metadata) for row in rows]
        return list(self._joined(source, drafts))

    def _window_end(self, sums: Numbers, first: int) -> int:
        reached = int(sums.searchsorted(sums[first] + self.window, side="right")) - 1
        return max(first + 1, reached)

    def _packed(self, source: TokenizedText, pieces: Ranges) -> Ranges:
        rows = whole_runs(pieces, pack(running_counts(source, pieces), self.size))
        return split_ranges_to_maximum(source, rows, self.size)

    def _joined(self, source: TokenizedText, drafts: list[Draft]) -> Iterator[Draft]:
        ranges = as_ranges(draft.spans[0] for draft in drafts)
        rows = join_ranges(source, ranges, self.minimum, self.size)
        ends = rows[:, 1].tolist()
        for place, group in groupby(drafts, lambda draft: bisect_left(ends, draft.spans[0].end)):
            metadata: dict[str, Any] = {}
            for part in sorted(group, key=lambda part: len(part.spans[0])):
                metadata |= part.metadata
            yield Draft((Span(*rows[place].tolist()),), metadata)


@dataclass(frozen=True, kw_only=True)
class PieceChunker(WindowChunker, ABC):
    """A `WindowChunker` over small pieces of the recursive splitter.

    Attributes:
        piece_size: the size of a piece, in the counter's unit; at most `size`.
    """

    piece_size: int = 50
    bounds = Bounds(piece_size=(1, "size"))

    def _pieces(self, source: TokenizedText) -> Ranges:
        return small_pieces(source, self.piece_size)


def llms_of(chunker: Chunker) -> list[LLM]:
    """The language models of a chunker, and of those that it wraps, each once."""
    llms = [get_llm(chunker.llm)] if isinstance(chunker, LLMChunker) else []
    for name in chunker.option_names():
        inner = getattr(chunker, name)
        if isinstance(inner, Chunker):
            llms += llms_of(inner)
    return list({id(llm): llm for llm in llms}.values())


_SPLIT_PROMPT = """You divide a text into parts that are each about one thing. The text is given in small pieces, \
each between <start_chunk_N> and <end_chunk_N>, where N is its number. Decide after which pieces the text is to be \
split, so that pieces which stand next to each other and belong together by their content stay together.

Answer with a JSON object and nothing else: {"split_after": [3, 5]} splits after piece 3 and after piece 5. The \
numbers are those of pieces in the text, ascending, each once."""


@chunkers.register("llm_semantic")
@dataclass(frozen=True, kw_only=True)
class LLMSemantic(PieceChunker):
    r"""A language model is shown small numbered pieces, and names the pieces after which to split.

    The LLMSemanticChunker of the Chroma report (2024, "LLMSemanticChunker"). The model sees a window of pieces between
    numbered tags and answers with `split_after`. As in the report's code, every window but the last needs a split. The
    answer is a JSON object, which endpoints can enforce. The report has no maximum; here it is `size`.

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
        few = "The list may be empty." if final else "Split at least once."
        least = 0 if final else 1
        numbers = {"type": "integer", "minimum": 0, "maximum": last}

        def read(answer: dict[str, Any]) -> list[Section]:
            places = answer["split_after"]
            check_ascending(places, "split_after")
            return [Section(0), *(Section(place + 1) for place in places if place < last)]

        tagged = [
            f"<start_chunk_{number}>{text}<end_chunk_{number}>"
            for number, text in enumerate(pieces)
        ]
        return json_question(
            conversation(f"{_SPLIT_PROMPT} {few}", "".join(tagged)),
            read,
            {"split_after": [last // 2]},
            split_after={"type": "array", "items": numbers, "minItems": least},
        )


_SECTIONS_PROMPT = """You analyse a text and find its natural sections, which should stay together. Consider:
- that a section is about one topic,
- that it can be understood on its own,
- that what refers to something else stands with what it refers to.

The text is given in numbered pieces. Answer with a JSON object and nothing else, such as {"sections": [{"first": 1, \
"title": "The harbour", "reason": "One description of one place."}, {"first": 4, "title": "The ships", "reason": \
"Turns from the place to what sails there."}]}. "first" is the number of the section's first piece; each section goes \
on until the next one begins, so that the first section begins with piece 1 and the numbers ascend."""


@chunkers.register("agentic")
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
        assumed = [
            {"first": first, "title": "word " * 5, "reason": "word " * 15}
            for first in range(1, len(pieces) + 1, max(1, most // 2))
        ]
        return json_question(
            conversation(f"{_SECTIONS_PROMPT} No section has more than {most} pieces.", numbered),
            _sections,
            {"sections": assumed},
            sections={"type": "array", "items": section, "minItems": 1},
        )


def _sections(answer: dict[str, Any]) -> list[Section]:
    firsts = [section["first"] for section in answer["sections"]]
    check_ascending(firsts, "first")
    if firsts[0] != 1:
        raise BadAnswerError(f"expected the first section to begin with piece 1, got {firsts[0]}")
    sections = []
    for section in answer["sections"]:
        words = {
            f"section_{name}": text_of(section[name], name)[:_LONGEST]
            for name in ("title", "reason")
        }
        sections.append(Section(section["first"] - 1, words))
    return sections


_CHANGE = """You are given consecutive paragraphs of a document, each on its own after "ID" and its number. Find \
the first paragraph, not the very first one, at which the content clearly changes compared to the paragraphs before \
it. Groups of paragraphs should be neither very long nor very short.

Answer with a JSON object and nothing else: {"first_changed": 4} says that the content changes at the paragraph ID 4. \
Where it does not change anywhere, answer {"first_changed": null}."""


@chunkers.register("lumber")
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
    keeps_last = False  # later changes are not known yet

    def validate(self) -> None:
        super().validate()
        compiled(self.paragraph_end, "paragraph_end")

    def _pieces(self, source: TokenizedText) -> Ranges:
        find = finder(re.compile(self.paragraph_end), len(source.text))
        edges = np.unique([0, *(match.end() for match in find(source.text)), len(source.text)])
        paragraphs = trim_ranges(source, np.column_stack((edges[:-1], edges[1:])))
        is_over = source.counts(*paragraphs.T) > self.size
        parts = [paragraphs[~is_over]]
        for start, end in paragraphs[is_over].tolist():
            sentences = sentence_ranges(source.text[start:end]) + start
            parts.append(self._packed(source, sentences))
        return np.sort(np.concatenate(parts), axis=0)

    def _window_end(self, sums: Numbers, first: int) -> int:
        reached = int(np.searchsorted(sums, sums[first] + self.window))
        return min(max(first + 2, reached), len(sums) - 1)

    def _question(self, pieces: Sequence[str], *, final: bool) -> Question[list[Section]]:
        last = len(pieces)

        def read(answer: dict[str, Any]) -> list[Section]:
            place = answer["first_changed"]
            return [Section(0)] if place is None else [Section(0), Section(place - 1)]

        numbered = "\n\n".join(
            f"ID {number}: {text}" for number, text in enumerate(pieces, start=1)
        )
        number = {"type": ["integer", "null"], "minimum": 2, "maximum": last}
        return json_question(
            conversation(_CHANGE, numbered),
            read,
            {"first_changed": last // 2 + 1},
            first_changed=number,
        )


_PROPOSITIONS = """You split a passage into propositions: simple sentences that state one fact each and that can be \
understood without the passage.
- Split compound sentences, and keep the wording of the passage where it can be kept.
- Make what is said about a named thing a sentence of its own.
- Replace pronouns and other references by what they refer to.
- State everything that the passage states, and nothing else, in the passage's language.

Answer with a JSON object and nothing else, such as {"propositions": ["The fox naps at noon.", "The fox is old."]}."""


@chunkers.register("propositions")
@dataclass(frozen=True, kw_only=True)
class Propositions(LLMChunker):
    """Atomic facts that a language model writes from each passage; their spans are the passage.

    Dense X Retrieval's propositions (Chen et al., 2024), as Toresan et al., section 2, describe them: minimal,
    self-contained statements, searched in place of the passage. A chunk's text is derived (`Chunk.derived`); its spans
    are the source passage, which retrieval returns and evaluation scores. Instructions replace the paper's fine-tuned
    model.

    Passages are packed as by `Sentence`. Without a valid answer (none, an empty one, a proposition over `size`) the
    passage itself is the chunk, and its metadata have `fallback`.

    Attributes:
        passage_size: the size of a passage, in the counter's unit; at most `size`. The paper has 100 words.
        size: no passage's and no proposition's text is over it, in the counter's unit.

    Cost: one call a passage, as many at once as the model takes; each reads the passage and about 140 tokens of
    instructions, and writes about as much as the passage. `estimate` assumes that the answer repeats the passage.

    >>> from chunkcore import Document
    >>> from chunkcore.models.llm import CallableLLM
    >>> answer = '{"propositions": ["The fox is old.", "The fox naps at noon."]}'
    >>> chunker = Propositions(llm=CallableLLM(lambda messages, schema: answer, name="always so"))
    >>> [(chunk.text, chunk.start, chunk.end) for chunk in chunker.chunk(Document("d", "The old fox naps at noon."))]
    [('The fox is old.', 0, 25), ('The fox naps at noon.', 0, 25)]
    """

    bounded = True

    passage_size: int = 150
    size: int = 200
    bounds = Bounds(passage_size=1, size=1)

    def cut(self, source: TokenizedText) -> list[Draft]:
        size = min(self.passage_size, self.size)
        sentences = Sentence(size=size, counter=self.counter)
        passages = sentences.cut(source).tolist()

        def written(passage: list[int]) -> list[Draft]:
            spans = (Span(*passage),)
            text = source.text[slice(*passage)]
            question = json_question(
                conversation(_PROPOSITIONS, text),
                self._read,
                {"propositions": [text]},
                propositions={"type": "array", "items": {"type": "string"}, "minItems": 1},
            )
            texts, problem = self._ask(question)
            if texts is None:
                return [
                    Draft(spans, {"fallback": "the passage itself", "fallback_reason": problem})
                ]
            return [Draft(spans, derived=text) for text in texts]

        return [
            draft for drafts in ask_all(get_llm(self.llm), written, passages) for draft in drafts
        ]

    def _read(self, answer: dict[str, Any]) -> list[str]:
        texts = [text_of(text, "propositions") for text in answer["propositions"]]
        propositions = list(dict.fromkeys(texts))
        longest = int(self.token_counter.count_many(propositions).max())
        if longest > self.size:
            raise BadAnswerError(
                f"expected short propositions, got one of {longest} tokens; at most {self.size}"
            )
        return propositions


_CONTEXT = """Above are a document and a chunk of it. Write one short sentence, in the document's language, that \
says what the chunk is about within the whole document, so that it can be found by a search: name what its pronouns \
and its figures refer to. At most {most} tokens. Answer with a JSON object and nothing else, such as {{"context": \
"From the harbour's rules of 2019: what visiting boats pay."}}."""


@chunkers.register("contextual")
@dataclass(frozen=True, kw_only=True)
class Contextual(LLMChunker):
    """The chunks of another chunker, each with a model's sentence that situates it in its document.

    The sentence becomes `Chunk.context`, after the other chunker's context. Context and text are embedded; only the
    text is returned and scored. Each question begins with the document, and the first is asked alone: an endpoint that
    caches prompts reads the document once. Documents over `document_size` are shown in parts, each chunk with the part
    in which it begins. Without a valid answer a chunk has no sentence, and its metadata have `fallback`.

    Attributes:
        chunker: the other chunker, as an object or as a string: ``contextual:chunker="recursive:size=100",...``.
        context_size: the most tokens of a sentence, in the counter's unit.
        document_size: how much of the document the model sees, in the counter's unit.
        counter: of `context_size`, `document_size` and `Chunk.token_count`; the other chunker's sizes have its own.

    Cost: one call a chunk, as many at once as the model takes. A document of n tokens in m chunks takes m · min(n,
    document_size) input tokens, mostly from the endpoint's cache if it has one. `estimate` assumes sentences of 25
    words and no cache.

    >>> from chunkcore import Document
    >>> from chunkcore.models.llm import CallableLLM
    >>> llm = CallableLLM(lambda messages, schema: '{"context": "Who naps."}', name="always so")
    >>> chunker = Contextual(llm=llm, chunker="recursive:size=3,counter=words")
    >>> [(chunk.context, chunk.text) for chunk in chunker.chunk(Document("d", "The fox naps. The dog naps."))]
    [('Who naps.', 'The fox naps.'), ('Who naps.', 'The dog naps.')]
    """

    chunker: Chunker | str = field(default_factory=lambda: Recursive(size=200))
    context_size: int = 100
    document_size: int = 16_000
    bounds = Bounds(context_size=1, document_size=1)

    def validate(self) -> None:
        super().validate()
        object.__setattr__(self, "chunker", get_chunker(self.chunker))

    @property
    def inner(self) -> Chunker:
        assert isinstance(self.chunker, Chunker)
        return self.chunker

    @property
    def hard_maximum(self) -> int | None:
        """The other chunker's, if both count alike."""
        return self.inner.hard_maximum if self.inner.counter == self.counter else None

    def _with_llm(self, llm: LLM) -> Contextual:
        inner = self.inner._with_llm(llm) if isinstance(self.inner, LLMChunker) else self.inner
        return replace(self, llm=llm, chunker=inner)

    def cut(self, source: TokenizedText) -> list[Draft]:
        inner_source = source
        if self.inner.counter != self.counter:
            inner_source = self.inner.token_counter.tokenize(*source.slices(source.parts))
            inner_source.documents = source.documents
        drafts = self.inner.drafts(inner_source)
        if not drafts:
            return []
        questions = self._questions(source, drafts)
        # Alone, so that the endpoint has the document cached for the other chunks.
        answers = [self._ask(next(questions))]
        answers += ask_all(get_llm(self.llm), self._ask, questions)
        situated = []
        for draft, (sentence, problem) in zip(drafts, answers, strict=True):
            if sentence is None:
                reasons = {"fallback": "no context", "fallback_reason": problem}
                situated.append(draft._replace(metadata={**draft.metadata, **reasons}))
            else:
                context = f"{draft.context}\n{sentence}" if draft.context else sentence
                situated.append(draft._replace(context=context))
        return situated

    def _questions(self, source: TokenizedText, drafts: Sequence[Draft]) -> Iterator[Question[str]]:
        starts = np.unique([0, *source.boundaries[:: self.document_size].tolist()]).tolist()
        ends = [*starts[1:], len(source.text)]
        for draft in drafts:
            part = bisect_right(starts, min(span.start for span in draft.spans)) - 1
            document = source.text[starts[part] : ends[part]]
            content = (
                f"<document>\n{document}\n</document>\n\n<chunk>\n{draft.text(source.text)}\n</chunk>\n\n"
                f"{_CONTEXT.format(most=self.context_size)}"
            )
            yield json_question(
                [{"role": "user", "content": content}],
                self._read,
                {"context": " ".join(["word"] * min(25, self.context_size))},
                context={"type": "string"},
            )

    def _read(self, answer: dict[str, Any]) -> str:
        context = " ".join(text_of(answer["context"], "context").split())
        size = self.token_counter.count(context)
        if size > self.context_size:
            raise BadAnswerError(
                f"expected a sentence of at most {self.context_size} tokens, got {size}"
            )
        return context
