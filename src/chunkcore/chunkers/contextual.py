"""`Contextual`: any chunker's chunks, each with a model's sentence that situates it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from chunkcore.chunkers.base import Chunker, Draft, get_chunker, strategies
from chunkcore.chunkers.llm import LLMChunker
from chunkcore.chunkers.recursive import Recursive
from chunkcore.document import Document
from chunkcore.models.llm import LLM, BadAnswerError, Question, get_llm
from chunkcore.models.llm.base import ask_all, found_json, member, schema_of, text_of
from chunkcore.options import check_ranges
from chunkcore.tokens import TokenizedText

_INSTRUCTIONS = """Above are a document and a chunk of it. Write one short sentence, in the document's language, that \
says what the chunk is about within the whole document, so that it can be found by a search: name what its pronouns \
and its figures refer to. At most {most} tokens. Answer with a JSON object and nothing else, such as {{"context": \
"From the harbour's rules of 2019: what visiting boats pay."}}."""


@strategies.register("contextual")
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
        document_size: how much of the document the model is shown, in the counter's unit.
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

    def validate(self) -> None:
        super().validate()
        check_ranges(self, context_size=1, document_size=1)
        if isinstance(self.chunker, str):
            object.__setattr__(self, "chunker", get_chunker(self.chunker))
        object.__setattr__(self, "separator", self.inner.separator)

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

    def draft(self, source: TokenizedText, document: Document | None) -> list[Draft]:
        same = self.inner.counter == self.counter
        drafts = self.inner.draft(source if same else self.inner.token_counter.tokenize(source.text), document)
        if not drafts:
            return []
        questions = self._questions(source, drafts)
        # Alone, so that the endpoint has the document cached for the other chunks.
        answers = [self._ask(next(questions))]
        answers += ask_all(get_llm(self.llm), self._ask, questions)
        found = []
        for draft, (sentence, problem) in zip(drafts, answers, strict=True):
            if sentence is None:
                reasons = {"fallback": "no context", "fallback_reason": problem}
                found.append(draft._replace(metadata={**draft.metadata, **reasons}))
            else:
                context = f"{draft.context}\n{sentence}" if draft.context else sentence
                found.append(draft._replace(context=context))
        return found

    def _questions(self, source: TokenizedText, drafts: Sequence[Draft]) -> Iterator[Question[str]]:
        starts = np.unique([0, *source.boundaries[:: self.document_size].tolist()]).tolist()
        ends = [*starts[1:], len(source.text)]
        for draft in drafts:
            part = bisect_right(starts, min(span.start for span in draft.spans)) - 1
            text = draft.derived
            if text is None:
                text = self.separator.join(span.slice(source.text) for span in draft.spans)
            yield self._question(source.text[starts[part] : ends[part]], text)

    def _question(self, document: str, chunk: str) -> Question[str]:
        content = (
            f"<document>\n{document}\n</document>\n\n<chunk>\n{chunk}\n</chunk>\n\n"
            f"{_INSTRUCTIONS.format(most=self.context_size)}"
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
            raise BadAnswerError(f"expected a sentence of at most {self.context_size} tokens, got {size}")
        return context
