"""Chunkers whose language model writes text: propositions, or a sentence that situates a chunk."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from chunkcore.chunkers.base import Chunker, Draft, chunkers, get_chunker
from chunkcore.chunkers.llm import LLMChunker
from chunkcore.chunkers.recursive import Recursive
from chunkcore.chunkers.sentence import Sentence
from chunkcore.models.llm import LLM, BadAnswerError, Question, get_llm
from chunkcore.models.llm.base import ask_all, conversation, found_json, member, schema_of, text_of
from chunkcore.options import Bounds
from chunkcore.text import Span
from chunkcore.tokens import TokenizedText

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

    bounded: ClassVar[bool] = True

    passage_size: int = 150
    size: int = 200
    bounds: ClassVar[Bounds] = {"passage_size": 1, "size": 1}

    def cut(self, source: TokenizedText) -> list[Draft]:
        size = min(self.passage_size, self.size)
        sentences = Sentence(size=size, counter=self.counter)
        passages = sentences.cut(source).tolist()

        def written(passage: list[int]) -> list[Draft]:
            spans = (Span(*passage),)
            texts, problem = self._ask(self._question(source.text[slice(*passage)]))
            if texts is None:
                return [
                    Draft(spans, {"fallback": "the passage itself", "fallback_reason": problem})
                ]
            return [Draft(spans, derived=text) for text in texts]

        return [
            draft for drafts in ask_all(get_llm(self.llm), written, passages) for draft in drafts
        ]

    def _question(self, passage: str) -> Question[list[str]]:
        return Question(
            messages=conversation(_PROPOSITIONS, passage),
            schema=schema_of(
                propositions={"type": "array", "items": {"type": "string"}, "minItems": 1}
            ),
            read=self._read,
            assumed={"propositions": [passage]},
        )

    def _read(self, text: str) -> list[str]:
        answers = member(found_json(text), "propositions")
        if not isinstance(answers, list) or not answers:
            raise BadAnswerError("expected 'propositions' to be a list of at least one text")
        propositions = list(dict.fromkeys(text_of(answer, "propositions") for answer in answers))
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
    bounds: ClassVar[Bounds] = {"context_size": 1, "document_size": 1}

    def validate(self) -> None:
        super().validate()
        if isinstance(self.chunker, str):
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
            inner_source = self.inner.token_counter.tokenize(source.text)
            inner_source.document = source.document
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
            yield self._question(source.text[starts[part] : ends[part]], draft.text(source.text))

    def _question(self, document: str, chunk: str) -> Question[str]:
        content = (
            f"<document>\n{document}\n</document>\n\n<chunk>\n{chunk}\n</chunk>\n\n"
            f"{_CONTEXT.format(most=self.context_size)}"
        )
        return Question(
            messages=[{"role": "user", "content": content}],
            schema=schema_of(context={"type": "string"}),
            read=self._read,
            assumed={"context": " ".join(["word"] * min(25, self.context_size))},
        )

    def _read(self, text: str) -> str:
        context = " ".join(text_of(member(found_json(text), "context"), "context").split())
        size = self.token_counter.count(context)
        if size > self.context_size:
            raise BadAnswerError(
                f"expected a sentence of at most {self.context_size} tokens, got {size}"
            )
        return context
