"""The strategies, one file each, named like the strategy; imported when they are used."""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING or on_first_use(__name__):
    from chunkcore.chunkers.auto import Auto as Auto
    from chunkcore.chunkers.base import Chunker as Chunker
    from chunkcore.chunkers.base import Draft as Draft
    from chunkcore.chunkers.base import get_chunker as get_chunker
    from chunkcore.chunkers.base import strategies as strategies
    from chunkcore.chunkers.breakpoint import Breakpoint as Breakpoint
    from chunkcore.chunkers.cluster_semantic import ClusterSemantic as ClusterSemantic
    from chunkcore.chunkers.code import Code as Code
    from chunkcore.chunkers.configuration import get_chunkers as get_chunkers
    from chunkcore.chunkers.contextual import Contextual as Contextual
    from chunkcore.chunkers.dbscan import Dbscan as Dbscan
    from chunkcore.chunkers.dual_semantic import DualSemantic as DualSemantic
    from chunkcore.chunkers.fixed_sentences import FixedSentences as FixedSentences
    from chunkcore.chunkers.fixed_token import FixedToken as FixedToken
    from chunkcore.chunkers.hierarchical import Hierarchical as Hierarchical
    from chunkcore.chunkers.html import Html as Html
    from chunkcore.chunkers.kamradt import Kamradt as Kamradt
    from chunkcore.chunkers.kamradt import KamradtModified as KamradtModified
    from chunkcore.chunkers.llm_semantic import Agentic as Agentic
    from chunkcore.chunkers.llm_semantic import LLMSemantic as LLMSemantic
    from chunkcore.chunkers.lumber import Lumber as Lumber
    from chunkcore.chunkers.markdown import Markdown as Markdown
    from chunkcore.chunkers.overlap import SemanticOverlap as SemanticOverlap
    from chunkcore.chunkers.propositions import Propositions as Propositions
    from chunkcore.chunkers.recursive import Recursive as Recursive
    from chunkcore.chunkers.sentence import Sentence as Sentence
    from chunkcore.chunkers.single_linkage import SingleLinkage as SingleLinkage
