"""What language models take: foreseen by ``--dry-run``, told after the work, and not asked for twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chunkcore.chunkers.base import Chunker
    from chunkcore.document import Document
    from chunkcore.models.llm import Prices, Usage

__all__ = ["estimates", "keeping", "read_prices", "spent", "used"]

_ASSUMED = (
    "Tokens are counted as cl100k_base, and answers are as each strategy's documentation assumes; questions that must "
    "be repeated and answers that are kept already are not foreseen. Nothing was asked."
)


def read_prices(input_price: float | None, output_price: float | None) -> Prices | None:
    """The prices, or None where none were given.

    Raises:
        OptionError: one without the other, or out of range.
    """
    from chunkcore.errors import OptionError
    from chunkcore.models.llm import Prices

    if input_price is None and output_price is None:
        return None
    if input_price is None or output_price is None:
        raise OptionError("--input-price and --output-price go together: give both, of a million tokens")
    return Prices(input=input_price, output=output_price)


def keeping(chunker: Chunker, path: Path | None) -> Chunker:
    """The strategy with answers kept in the file, and so the one that it stands over. No path: as it is."""
    from chunkcore.chunkers.contextual import Contextual
    from chunkcore.chunkers.llm import LLMChunker
    from chunkcore.models.llm import CachedLLM, LLMCache, get_llm

    if path is None or not isinstance(chunker, LLMChunker):
        return chunker
    if isinstance(chunker, Contextual):
        chunker = replace(chunker, chunker=keeping(chunker.inner, path))
    llm = get_llm(chunker.llm)
    return chunker if isinstance(llm, CachedLLM) else replace(chunker, llm=CachedLLM(llm, LLMCache(path, private=True)))


def estimates(chunkers: Mapping[str, Chunker], documents: Iterable[Document], prices: Prices | None) -> list[str]:
    """A line a strategy, and what they rest on. Of several strategies each reads the documents again."""
    from chunkcore.chunkers.llm import LLMChunker
    from chunkcore.models.llm import Usage

    found = {
        spec: chunker.estimate(documents) if isinstance(chunker, LLMChunker) else Usage()
        for spec, chunker in chunkers.items()
    }
    return [*(f"{spec}: {spent(usage, prices)}" for spec, usage in found.items()), _ASSUMED]


def used(chunkers: Iterable[Chunker], prices: Prices | None) -> list[str]:
    """A line for each language model that the strategies asked."""
    from chunkcore.chunkers.contextual import Contextual
    from chunkcore.chunkers.llm import LLMChunker
    from chunkcore.models.llm import Usage, get_llm

    told: dict[str, Usage] = {}
    waiting = list(chunkers)
    while waiting:
        chunker = waiting.pop(0)
        if isinstance(chunker, Contextual):
            waiting.append(chunker.inner)
        if isinstance(chunker, LLMChunker):
            llm = get_llm(chunker.llm)
            told[llm.name] = getattr(llm, "usage", Usage())
    return [f"{name}: {spent(usage, prices)}" for name, usage in told.items()]


def spent(usage: Usage, prices: Prices | None) -> str:
    """Calls, tokens and, with prices, what they cost."""
    parts = [
        f"{usage.calls:,} {'call' if usage.calls == 1 else 'calls'}",
        f"{usage.input_tokens:,} tokens in"
        + (f" ({usage.cached_tokens:,} of them read before)" if usage.cached_tokens else ""),
        f"{usage.output_tokens:,} tokens out",
    ]
    if usage.kept_answers:
        parts.append(f"{usage.kept_answers:,} answers kept from before")
    if prices is not None:
        parts.append(f"cost {usage.cost(prices):,.4f}")
    return ", ".join(parts)
