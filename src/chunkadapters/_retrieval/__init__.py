"""What the three frameworks' retriever hooks share: ask every question, locate what came back, score it.

A framework says how one question is asked (`System`) and what an answer's `Piece`s are; `RetrieverHooks` makes
its public functions of that. Nothing here knows a framework.
"""

from chunkadapters._retrieval.asking import RetrievalWarning, Settings, System
from chunkadapters._retrieval.bar import Progress
from chunkadapters._retrieval.hooks import RetrieverHooks
from chunkadapters._retrieval.identity import settings_mark
from chunkadapters._retrieval.pieces import Piece, names, stated_spans
from chunkadapters._retrieval.questions import QuestionScorer
from chunkadapters._retrieval.scored import measures_of

__all__ = [
    "Piece",
    "Progress",
    "QuestionScorer",
    "RetrievalWarning",
    "RetrieverHooks",
    "Settings",
    "System",
    "measures_of",
    "names",
    "settings_mark",
    "stated_spans",
]
