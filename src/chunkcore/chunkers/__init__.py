"""The strategies, one file each, named like the strategy; imported when they are used."""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING:
    from chunkcore.chunkers.auto import Auto
    from chunkcore.chunkers.base import Chunker, Draft, get_chunker, strategies
    from chunkcore.chunkers.breakpoint import Breakpoint
    from chunkcore.chunkers.cluster_semantic import ClusterSemantic
    from chunkcore.chunkers.code import Code
    from chunkcore.chunkers.configuration import get_chunkers
    from chunkcore.chunkers.contextual import Contextual
    from chunkcore.chunkers.dbscan import Dbscan
    from chunkcore.chunkers.dual_semantic import DualSemantic
    from chunkcore.chunkers.fixed_sentences import FixedSentences
    from chunkcore.chunkers.fixed_token import FixedToken
    from chunkcore.chunkers.hierarchical import Hierarchical
    from chunkcore.chunkers.html import Html
    from chunkcore.chunkers.kamradt import Kamradt, KamradtModified
    from chunkcore.chunkers.llm_semantic import Agentic, LLMSemantic
    from chunkcore.chunkers.lumber import Lumber
    from chunkcore.chunkers.markdown import Markdown
    from chunkcore.chunkers.overlap import SemanticOverlap
    from chunkcore.chunkers.propositions import Propositions
    from chunkcore.chunkers.recursive import Recursive
    from chunkcore.chunkers.sentence import Sentence
    from chunkcore.chunkers.single_linkage import SingleLinkage
else:
    __getattr__, __dir__ = on_first_use(
        __name__,
        """
.auto: Auto
.base: Chunker Draft get_chunker strategies
.breakpoint: Breakpoint
.cluster_semantic: ClusterSemantic
.code: Code
.configuration: get_chunkers
.contextual: Contextual
.dbscan: Dbscan
.dual_semantic: DualSemantic
.fixed_sentences: FixedSentences
.fixed_token: FixedToken
.hierarchical: Hierarchical
.html: Html
.kamradt: Kamradt KamradtModified
.llm_semantic: Agentic LLMSemantic
.lumber: Lumber
.markdown: Markdown
.overlap: SemanticOverlap
.propositions: Propositions
.recursive: Recursive
.sentence: Sentence
.single_linkage: SingleLinkage
        """,
    )

__all__ = [
    "Agentic",
    "Auto",
    "Breakpoint",
    "Chunker",
    "ClusterSemantic",
    "Code",
    "Contextual",
    "Dbscan",
    "Draft",
    "DualSemantic",
    "FixedSentences",
    "FixedToken",
    "Hierarchical",
    "Html",
    "Kamradt",
    "KamradtModified",
    "LLMSemantic",
    "Lumber",
    "Markdown",
    "Propositions",
    "Recursive",
    "SemanticOverlap",
    "Sentence",
    "SingleLinkage",
    "get_chunker",
    "get_chunkers",
    "strategies",
]
