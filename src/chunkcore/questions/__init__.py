"""Questions about the user's documents: written by a language model (`generate_benchmark`) or checked
(`validate_benchmark`).
"""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING or on_first_use(__name__):
    from chunkcore.questions.generate import CallBudget as CallBudget
    from chunkcore.questions.generate import Generated as Generated
    from chunkcore.questions.generate import GenerationOptions as GenerationOptions
    from chunkcore.questions.generate import Rejection as Rejection
    from chunkcore.questions.generate import estimate_generation as estimate_generation
    from chunkcore.questions.generate import generate_benchmark as generate_benchmark
    from chunkcore.questions.validate import FilterThresholds as FilterThresholds
    from chunkcore.questions.validate import Finding as Finding
    from chunkcore.questions.validate import ValidationOptions as ValidationOptions
    from chunkcore.questions.validate import validate_benchmark as validate_benchmark
