"""The chunkers, one file each, named like the chunker; imported when they are used."""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING or on_first_use(__name__):
    from chunkcore.chunkers.base import Chunker as Chunker
    from chunkcore.chunkers.base import Draft as Draft
    from chunkcore.chunkers.base import chunkers as chunkers
    from chunkcore.chunkers.base import get_chunker as get_chunker
    from chunkcore.chunkers.cluster_semantic import ClusterSemantic as ClusterSemantic
    from chunkcore.chunkers.clusters import Dbscan as Dbscan
    from chunkcore.chunkers.clusters import SingleLinkage as SingleLinkage
    from chunkcore.chunkers.fixed import FixedSentences as FixedSentences
    from chunkcore.chunkers.fixed import FixedToken as FixedToken
    from chunkcore.chunkers.hierarchical import Hierarchical as Hierarchical
    from chunkcore.chunkers.llm import Agentic as Agentic
    from chunkcore.chunkers.llm import LLMSemantic as LLMSemantic
    from chunkcore.chunkers.llm import Lumber as Lumber
    from chunkcore.chunkers.recursive import Recursive as Recursive
    from chunkcore.chunkers.semantic import Breakpoint as Breakpoint
    from chunkcore.chunkers.semantic import DualSemantic as DualSemantic
    from chunkcore.chunkers.semantic import Kamradt as Kamradt
    from chunkcore.chunkers.semantic import KamradtModified as KamradtModified
    from chunkcore.chunkers.sentence import Sentence as Sentence
    from chunkcore.chunkers.similarity import SemanticOverlap as SemanticOverlap
    from chunkcore.chunkers.structure import Auto as Auto
    from chunkcore.chunkers.structure import Code as Code
    from chunkcore.chunkers.structure import Html as Html
    from chunkcore.chunkers.structure import Markdown as Markdown
    from chunkcore.chunkers.writing import Contextual as Contextual
    from chunkcore.chunkers.writing import Propositions as Propositions
