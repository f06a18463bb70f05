"""The chunkers, one file each, named like the chunker."""

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
