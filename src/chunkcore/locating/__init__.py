"""Where a text stands in documents: names, stated places, alignment.

hits.py         `Locator`: a hit of a retriever in, a verdict out
names.py        which documents a name means
stated.py       the place that metadata state
alignment.py    locates a text in the documents by its words
text_search.py  finds candidates
"""

from typing import TYPE_CHECKING

from chunkcore.lazy import on_first_use

if TYPE_CHECKING or on_first_use(__name__):
    from chunkcore.locating.alignment import Aligner as Aligner
    from chunkcore.locating.hits import Hit as Hit
    from chunkcore.locating.hits import Locator as Locator
    from chunkcore.locating.hits import Reason as Reason
    from chunkcore.locating.hits import Verdict as Verdict
    from chunkcore.locating.hits import names_of as names_of
    from chunkcore.locating.hits import score_of as score_of
    from chunkcore.locating.hits import unplaced as unplaced
    from chunkcore.locating.names import DocumentNames as DocumentNames
    from chunkcore.locating.stated import NO_PLACE as NO_PLACE
    from chunkcore.locating.stated import StatedPlace as StatedPlace
    from chunkcore.locating.stated import read_place as read_place
    from chunkcore.locating.stated import read_spans as read_spans
    from chunkcore.locating.stated import whole_number as whole_number
