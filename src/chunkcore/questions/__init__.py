"""Questions about the user's documents: written by a language model (`generate_benchmark`) or checked
(`validate_benchmark`).
"""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING:
    from chunkcore.questions.generate import (
        Generated as Generated,
        GenerationOptions as GenerationOptions,
        Rejection as Rejection,
        estimate_generation as estimate_generation,
        generate_benchmark as generate_benchmark,
    )
    from chunkcore.questions.validate import (
        Finding as Finding,
        validate_benchmark as validate_benchmark,
    )

on_first_use(
    __name__,
    {
        "chunkcore.questions.generate": (
            "Generated GenerationOptions Rejection estimate_generation generate_benchmark"
        ),
        "chunkcore.questions.validate": ("Finding validate_benchmark"),
    },
)
