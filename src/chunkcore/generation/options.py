"""`GenerationOptions`: how questions are made."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from chunkcore.errors import OptionError
from chunkcore.generation.prompts import MODES, Mode

__all__ = ["GenerationOptions"]


@dataclass(frozen=True, kw_only=True)
class GenerationOptions:
    """How questions are made.

    Attributes:
        questions: how many to make; the filters come after.
        mode: "factual" asks for facts, as the Chroma report does; "realistic" vaguely and in everyday words.
        sample_size: characters of a document that the model is shown at once.
        earlier: how many earlier questions it is shown at most, those about the same document first.
        excerpts: how many a question may have.
        seed: of the samples and of the earlier questions that are shown.
        concurrency: questions under way at once; they are not shown to each other, so the questions depend on it.
            Where the model takes fewer at once, the others wait.
        retries: how often the model is told that its answer cannot be read. Excerpts that are not verbatim
            are not told to it: the question is rejected.
        patience: after so many rejections in a row a document is given up.

    Raises:
        OptionError: an option is out of range.
    """

    questions: int = 100
    mode: Mode = "factual"
    sample_size: int = 4_000
    earlier: int = 50
    excerpts: int = 5
    seed: int = 0
    concurrency: int = 4
    retries: int = 1
    patience: int = 5

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise OptionError(f"mode is one of {', '.join(MODES)}, got {self.mode!r}")
        least = {"sample_size": 100, "earlier": 0, "seed": 0, "retries": 0}
        for name, value in asdict(self).items():
            if name != "mode" and (type(value) is not int or value < least.get(name, 1)):
                raise OptionError(f"{name} is a whole number of at least {least.get(name, 1)}, got {value!r}")
