"""`Cost`: what a strategy took of the models, beside what it scored."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

__all__ = ["Cost"]

_MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one strategy, searched in one way, takes of models to index a benchmark's documents, as if it were alone.

    Texts are counted whether a cache of embeddings held them or not.

    The fixed/semantic cost question (Qu, Tu and Bao 2024, section 5): a strategy that embeds each sentence to decide
    where to cut pays the model a second time. A text that a strategy embeds twice is counted once.

    Attributes:
        source_tokens: of all documents, in the tokens that are scored.
        embedder_calls: batches that the embedder is given, of the size at which the run gives them.
        embedded_texts: distinct texts that are embedded: the chunks' (or their segments'), and what the strategy embeds
            to find its boundaries.
        embedded_tokens: of those texts, in the embedder's own tokens, as far as it reads them; None where it can't say.
        query_texts: distinct questions that are embedded.
        query_tokens: of those questions, like `embedded_tokens`.
        llm_calls: questions that the strategy's language models were sent, repeated ones included.
        llm_kept_answers: questions that a cache of answers replied to; their tokens and money are in no figure here.
        llm_input_tokens: of the questions that were sent.
        llm_output_tokens: of the answers to them.
        seconds: the embedder's on the texts and the questions, as they were measured: texts that a cache held took
            next to none.
        money: for the documents (questions come on top), in the prices' currency; None where a price is not known for
            something that was used.

    >>> cost = Cost(source_tokens=2_000_000, embedded_tokens=3_000_000, money=0.06)
    >>> round(cost.money_per_million, 3), cost.tokens_ratio
    (0.03, 1.5)
    """

    source_tokens: int = 0
    embedder_calls: int = 0
    embedded_texts: int = 0
    embedded_tokens: int | None = None
    query_texts: int = 0
    query_tokens: int | None = None
    llm_calls: int = 0
    llm_kept_answers: int = 0
    llm_input_tokens: int = 0
    llm_output_tokens: int = 0
    seconds: float = 0.0
    money: float | None = None

    @property
    def money_per_million(self) -> float:
        """Money for a million tokens of the source; NaN where there are no prices, or no tokens."""
        return math.nan if self.money is None else self._per_source_token(self.money * _MILLION)

    @property
    def tokens_ratio(self) -> float:
        """Embedded tokens for each token of the source; NaN where that is not known."""
        return math.nan if self.embedded_tokens is None else self._per_source_token(self.embedded_tokens)

    def _per_source_token(self, value: float) -> float:
        return value / self.source_tokens if self.source_tokens else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; `from_dict` is its inverse."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Cost:
        """The cost that `to_dict` described; what a later version adds is left out.

        Raises:
            TypeError, ValueError: something is no number.
        """
        return cls(**{each.name: _number(data[each.name]) for each in fields(cls) if each.name in data})


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not (value is None or isinstance(value, int | float)):
        raise TypeError(f"a cost is a number, got {value!r}")
    if value is not None and not 0 <= value < math.inf:
        raise ValueError(f"a cost is at least 0, got {value!r}")
    return value
