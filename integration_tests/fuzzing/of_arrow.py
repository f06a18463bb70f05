"""Arrow: rows are the core's chunks, the same bytes in any partition."""

from __future__ import annotations

import pyarrow as pa  # noqa: F401  # without it this room is left out
from chunkcore.chunkers import Chunker
from hypothesis import strategies as st
from tests import test_arrow
from tests.fuzzing.chunkers import chunkers
from tests.fuzzing.of_chunkers import SLOW
from tests.fuzzing.targets import inner_test, target
from tests.fuzzing.texts import texts

_encodable = texts(40).map(lambda text: text.encode("utf-8", "replace").decode())


@target(share=0.5, texts=3, chunker=chunkers(without=SLOW), text=_encodable)
def arrow_rows_are_the_chunks_of_the_core(chunker: Chunker, text: str) -> None:
    """Of every strategy; a document that is refused is a row that says so."""
    inner_test(test_arrow.test_the_rows_are_the_chunks_of_every_strategy)(chunker, [text, "a"])


@target(
    share=0.2,
    cases=st.tuples(*[_encodable | st.none()] * 4),
    cuts=st.lists(st.integers(0, 4), max_size=3).map(sorted),
    turned=st.booleans(),
)
def arrow_bytes_are_the_same_in_any_partition(cases: tuple[str | None, ...], cuts: list[int], turned: bool) -> None:
    """In any order of them, too."""
    inner_test(test_arrow.test_the_same_bytes_in_any_partition_and_order)(list(cases), cuts, turned)
