"""The chunkers, one file each, named like the chunker; imported when they are used."""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING:
    from chunkcore.chunkers.base import (
        Chunker as Chunker,
        Draft as Draft,
        chunkers as chunkers,
        get_chunker as get_chunker,
    )
    from chunkcore.chunkers.clusters import (
        ClusterSemantic as ClusterSemantic,
        Dbscan as Dbscan,
        SingleLinkage as SingleLinkage,
    )
    from chunkcore.chunkers.hierarchical import Hierarchical as Hierarchical
    from chunkcore.chunkers.llm import (
        Agentic as Agentic,
        Contextual as Contextual,
        LLMSemantic as LLMSemantic,
        Lumber as Lumber,
        Propositions as Propositions,
    )
    from chunkcore.chunkers.recursive import Recursive as Recursive
    from chunkcore.chunkers.semantic import (
        Breakpoint as Breakpoint,
        DualSemantic as DualSemantic,
        Kamradt as Kamradt,
        KamradtModified as KamradtModified,
    )
    from chunkcore.chunkers.sentence import (
        FixedSentences as FixedSentences,
        FixedToken as FixedToken,
        Sentence as Sentence,
    )
    from chunkcore.chunkers.semantic import SemanticOverlap as SemanticOverlap
    from chunkcore.chunkers.structure import (
        Auto as Auto,
        Code as Code,
        Html as Html,
        Markdown as Markdown,
    )

on_first_use(
    __name__,
    {
        "chunkcore.chunkers.base": "Chunker Draft chunkers get_chunker",
        "chunkcore.chunkers.clusters": "ClusterSemantic Dbscan SingleLinkage",
        "chunkcore.chunkers.hierarchical": "Hierarchical",
        "chunkcore.chunkers.llm": "Agentic Contextual LLMSemantic Lumber Propositions",
        "chunkcore.chunkers.recursive": "Recursive",
        "chunkcore.chunkers.semantic": "Breakpoint DualSemantic Kamradt KamradtModified SemanticOverlap",
        "chunkcore.chunkers.sentence": "FixedSentences FixedToken Sentence",
        "chunkcore.chunkers.structure": "Auto Code Html Markdown",
    },
)
