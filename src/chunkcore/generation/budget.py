"""`CallBudget`: what calls to a model may cost."""

from __future__ import annotations

from dataclasses import dataclass

from chunkcore.errors import ModelError, OptionError
from chunkcore.models.llm import Prices, Usage

__all__ = ["BudgetError", "CallBudget"]


class BudgetError(ModelError):
    """One more call would be over what may be spent; the message says what was."""


@dataclass(frozen=True, kw_only=True)
class CallBudget:
    """What may be spent, on all calls of a journal together, those of earlier runs included.

    Attributes:
        max_calls: calls to the model; None for no limit.
        max_cost: in the prices' currency; None for no limit. Of calls without a known answer the output is taken
            to be 200 tokens, so calls under way can go over it by what their answers are longer.
        prices: what tokens cost; needed for `max_cost`.

    Raises:
        OptionError: a limit is negative or no number, or there is a cost without prices.
    """

    max_calls: int | None = None
    max_cost: float | None = None
    prices: Prices | None = None

    def __post_init__(self) -> None:
        if self.max_calls is not None and self.max_calls < 0:
            raise OptionError(f"max_calls is at least 0, got {self.max_calls}")
        if self.max_cost is not None and not 0 <= self.max_cost < float("inf"):
            raise OptionError(f"max_cost is at least 0, got {self.max_cost}")
        if self.max_cost is not None and self.prices is None:
            raise OptionError("max_cost needs the prices of a million tokens: give them, or cap the calls instead")

    def check(self, spent: Usage) -> None:
        """See that this much may be spent.

        Raises:
            BudgetError: it may not.
        """
        if self.max_calls is not None and spent.calls > self.max_calls:
            raise BudgetError(f"the cap of {self.max_calls:,} calls is reached")
        if self.max_cost is not None and self.prices is not None and spent.cost(self.prices) > self.max_cost:
            raise BudgetError(f"one more call could cost more than the cap of {self.max_cost:g}")
