"""`load_segmented`: texts whose sections are known, for segmenters to be trained and scored on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from chunkcore.document import Document
from chunkcore.errors import DataError, OptionError
from chunkcore.evaluation.loading.documents import documents_of
from chunkcore.evaluation.loading.layouts import LAYOUTS, named, recognised
from chunkcore.evaluation.loading.own import CHUNKCORE, section_rows
from chunkcore.evaluation.loading.rows import Row

__all__ = ["load_segmented", "segmented_rows"]

_SEGMENTED = [layout for layout in LAYOUTS.values() if layout.boundaries and layout is not CHUNKCORE]


def load_segmented(path: str | Path, *, layout: str = "auto") -> list[Document]:
    """Texts whose sections are known.

    ``metadata["boundaries"]`` has the offsets at which they begin, but for the first. Read are our own
    ``documents.jsonl`` with ``boundaries``, Wiki-727k and WIKI-50, Choi, and QMSum. Where a collection tells the
    sentences, ``metadata["sentences"]`` has their pairs of offsets. Headings are no part of the texts.

    Raises:
        DataError: the path is of no such layout, its files cannot be read, or a text has no boundaries.
        OptionError: no layout has this name, or it tells no sections.
    """
    documents = documents_of(segmented_rows(Path(path), layout))
    without = next((each.id for each in documents if not isinstance(each.metadata.get("boundaries"), list)), None)
    if without is not None:
        raise DataError(f"{path}: the text {without!r} has no boundaries, the offsets at which its sections begin")
    return documents


def segmented_rows(root: Path, layout: str = "auto") -> Iterable[Row]:
    """The same as rows ``{"id", "text", "boundaries"}``, one at a time and unchecked.

    Raises:
        DataError: the path is of no such layout, or its files cannot be read.
        OptionError: no layout has this name, or it tells no sections.
    """
    if not root.exists():
        raise DataError(f"{root} cannot be read: No such file or directory")
    known = ("auto", *(each.name for each in (CHUNKCORE, *_SEGMENTED)))
    if layout not in known:
        told = "tells no sections" if layout in LAYOUTS else "is none"
        raise OptionError(f"the layout {layout} {told}: expected one of {', '.join(known)}")
    if layout == CHUNKCORE.name or (layout == "auto" and _is_own(root)):
        return section_rows(root)
    chosen = recognised(root, _SEGMENTED) if layout == "auto" else named(layout, root)
    assert chosen.boundaries is not None
    return chosen.boundaries(root)


def _is_own(root: Path) -> bool:
    """Whether it is a ``documents.jsonl``, by name or by being lines of JSON that are of no other layout."""
    if root.is_dir():
        return (root / "documents.jsonl").is_file()
    return root.suffix == ".jsonl" and all(layout.lacks(root) for layout in _SEGMENTED)
