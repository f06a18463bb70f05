"""Where a text stands in documents: names, stated places, alignment.

hits.py         `Locator`: a hit of a retriever in, a verdict out
alignment.py    locates a text in the documents by its words
text_search.py  finds candidates
"""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING:
    from chunkcore.locating.alignment import Aligner as Aligner
    from chunkcore.locating.hits import (
        Hit as Hit,
        Locator as Locator,
        Reason as Reason,
        Verdict as Verdict,
        names_of as names_of,
        score_of as score_of,
        unplaced as unplaced,
    )
    from chunkcore.locating.hits import DocumentNames as DocumentNames
    from chunkcore.locating.hits import (
        NO_PLACE as NO_PLACE,
        StatedPlace as StatedPlace,
        read_place as read_place,
        read_spans as read_spans,
        whole_number as whole_number,
    )

on_first_use(
    __name__,
    {
        "chunkcore.locating.alignment": "Aligner",
        "chunkcore.locating.hits": (
            "Hit Locator Reason Verdict names_of score_of unplaced DocumentNames NO_PLACE "
            "StatedPlace read_place read_spans whole_number "
        ),
    },
)
