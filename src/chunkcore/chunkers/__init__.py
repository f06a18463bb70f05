"""The strategies, one file each; importing this registers them all."""

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
