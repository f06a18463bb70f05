"""`Propositions`: a language model rewrites each passage as self-contained facts."""

from __future__ import annotations

from dataclasses import dataclass

from chunkcore.chunkers.base import Draft, strategies
from chunkcore.chunkers.llm import LLMChunker
from chunkcore.chunkers.sentence import Sentence
from chunkcore.document import Document, Span
from chunkcore.errors import OptionError
from chunkcore.models.llm import BadAnswerError, Question, get_llm
from chunkcore.models.llm.base import ask_all, conversation, found_json, member, schema_of, text_of
from chunkcore.options import check_ranges
from chunkcore.tokens import TokenizedText

_INSTRUCTIONS = """You split a passage into propositions: simple sentences that state one fact each and that can be \
understood without the passage.
- Split compound sentences, and keep the wording of the passage where it can be kept.
- Make what is said about a named thing a sentence of its own.
- Replace pronouns and other references by what they refer to.
- State everything that the passage states, and nothing else, in the passage's language.

Answer with a JSON object and nothing else, such as {"propositions": ["The fox naps at noon.", "The fox is old."]}."""


@strategies.register("propositions")
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
        passage_minimum: a smaller passage joins the nearer neighbour, where the two are within `passage_size` together;
            at most `passage_size`.
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

    passage_size: int = 150
    passage_minimum: int = 0
    size: int = 200

    def validate(self) -> None:
        super().validate()
        check_ranges(self, passage_size=1, size=1)
        if not 0 <= self.passage_minimum <= self._size:
            raise OptionError(
                f"passage_minimum is at least 0 and at most a passage's size ({self._size}), got {self.passage_minimum}"
            )

    @property
    def hard_maximum(self) -> int:
        return self.size

    @property
    def _size(self) -> int:
        return min(self.passage_size, self.size)

    def draft(self, source: TokenizedText, document: Document | None) -> list[Draft]:
        passages = Sentence(size=self._size, minimum=self.passage_minimum, counter=self.counter).split(source)

        def written(spans: tuple[Span, ...]) -> list[Draft]:
            texts, problem = self._ask(self._question(spans[0].slice(source.text)))
            if texts is None:
                return [Draft(spans, {"fallback": "the passage itself", "fallback_reason": problem})]
            return [Draft(spans, derived=text) for text in texts]

        return [draft for drafts in ask_all(get_llm(self.llm), written, passages) for draft in drafts]

    def _question(self, passage: str) -> Question[list[str]]:
        return Question(
            messages=conversation(_INSTRUCTIONS, passage),
            schema=schema_of(propositions={"type": "array", "items": {"type": "string"}, "minItems": 1}),
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
            raise BadAnswerError(f"expected short propositions, got one of {longest} tokens; at most {self.size}")
        return propositions
