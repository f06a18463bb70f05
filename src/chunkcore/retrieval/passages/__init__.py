"""Passages: every window of every size is scored for the question; spans are chosen under a budget of tokens.

`index` has the retriever, `units` where units stand and what hits are worth to them, `windows` the units' scores,
`candidates` the units of one question and of one answer, `assembly` makes passages of units.
"""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING:
    from chunkcore.retrieval.passages.index import Passages as Passages, WindowIndex as WindowIndex

on_first_use(
    __name__,
    {
        "chunkcore.retrieval.passages.index": "Passages WindowIndex",
    },
)
