"""Every layout that is read, and which of them a path is of."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from chunkcore.errors import DataError, OptionError
from chunkcore.evaluation.loading.beir import BEIR
from chunkcore.evaluation.loading.chroma import CHROMA
from chunkcore.evaluation.loading.evidence_inference import EVIDENCE_INFERENCE
from chunkcore.evaluation.loading.legalbench_rag import LEGALBENCH_RAG
from chunkcore.evaluation.loading.narrativeqa import NARRATIVEQA
from chunkcore.evaluation.loading.own import CHUNKCORE
from chunkcore.evaluation.loading.qasper import QASPER, QASPER_HIGHLIGHTED
from chunkcore.evaluation.loading.qmsum import QMSUM
from chunkcore.evaluation.loading.quality import QUALITY
from chunkcore.evaluation.loading.ragbench import RAGBENCH
from chunkcore.evaluation.loading.rows import Layout
from chunkcore.evaluation.loading.sections import CHOI, WIKI727K
from chunkcore.evaluation.loading.squad import COVID_QA, CUAD, SQUAD

__all__ = ["LAYOUTS", "named", "recognised"]

# In the order in which a path is asked whether it is of them: by files' names first, then by what stands in files.
LAYOUTS = {
    layout.name: layout
    for layout in (
        CHROMA,
        CHUNKCORE,
        BEIR,
        EVIDENCE_INFERENCE,
        LEGALBENCH_RAG,
        NARRATIVEQA,
        CHOI,
        WIKI727K,
        QASPER,
        QASPER_HIGHLIGHTED,
        QMSUM,
        QUALITY,
        SQUAD,
        CUAD,
        COVID_QA,
        RAGBENCH,
    )
}


def named(name: str, root: Path) -> Layout:
    """The layout of a name, which the path is of.

    Raises:
        OptionError: there is none.
        DataError: the path is not of it, with what it lacks.
    """
    if name not in LAYOUTS:
        raise OptionError(f"no layout is called {name!r}: expected auto, {', '.join(LAYOUTS)}")
    lacks = LAYOUTS[name].lacks(root)
    if lacks:
        raise DataError(f"{root} is not of the layout {name}: it lacks {lacks}")
    return LAYOUTS[name]


def recognised(root: Path, among: Iterable[Layout] = LAYOUTS.values()) -> Layout:
    """The first layout that the path is of.

    Raises:
        DataError: it is of none, with what it lacks to be of each.
    """
    missing: dict[str, list[str]] = {}
    for layout in among:
        lacks = layout.lacks(root)
        if not lacks:
            return layout
        missing.setdefault(lacks, []).append(layout.name)
    told = "; ".join(f"for {' or '.join(names)} it lacks {what}" for what, names in missing.items())
    raise DataError(f"{root} is of no layout that is known: {told}")
