"""Late chunking: the model reads the whole document; a chunk's vector is the mean of its tokens' vectors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from chunkcore.columns import blocks
from chunkcore.errors import DataError, OptionError
from chunkcore.models.base import (
    NO_VECTORS,
    Embedder,
    TextTokens,
    TokenEmbedder,
    Vectors,
    embed_tokens,
)
from chunkcore.models.loading import DEFAULT_MODEL, get_embedder, tokenizing
from chunkcore.spans import Numbers, Ranges, as_ranges, union_ranges
from chunkcore.text import Chunk, Document, Span

Spans: TypeAlias = tuple[Span, ...]

_LONGEST = 8192  # tokens of a window, for a model that states no limit
_AT_ONCE = 8192  # tokens in one call of the model


def get_token_embedder(embedder: Embedder | str = DEFAULT_MODEL) -> TokenEmbedder:
    """The model of a name, an `Embedder`, or the one behind a cache, as an embedder with token vectors.

    Raises `OptionError`: the model gives no token vectors of which its own are means; or the name is unknown. Raises
    `ModelError`: the model failed twice on a letter.
    """
    whole = get_embedder(embedder)
    model = tokenizing(whole)
    if model is None:
        raise OptionError(
            f"{whole.name!r} gives vectors of texts only: late chunking needs those of tokens; choose a model with them"
        )
    embed_tokens(model, [model.tokenize("a").ids])  # refused now, not after the documents are cut
    return model


class LateEmbedder:
    """Vectors of chunks in the context of their whole document.

    Late chunking (Günther et al., 2024; the chunking survey, "Late Chunking"): the model reads the document before it
    is chunked, so a chunk's token vectors contain its context. A longer document is read in windows of as many tokens
    as the model reads, or 8,192 ("macro-windows"), that share half of them; a token in two windows takes the vector in
    which it is farther from an edge.

    A token belongs to every chunk with a character of it, once per chunk. Special tokens count with the document's
    first and last token: a chunk that is a whole short document has the model's own vector of that text. Only spans
    are read, not a chunk's `context` or a text that a model wrote. A chunk without a token has a vector of zeros.

    Args:
        embedder: a model with token vectors, by name or as an object.

    Cost: one pass of the model over each document's tokens, or twice over those of a longer one. Time is linear in
    the text; memory holds its token ids, the chunks' vectors and some 8,192 token vectors.

    Raises as `get_token_embedder`.
    """

    def __init__(self, embedder: Embedder | str = DEFAULT_MODEL) -> None:
        self.embedder = get_token_embedder(embedder)
        self.window = self.embedder.max_tokens or _LONGEST

    def embed_chunks(
        self,
        documents: Iterable[Document],
        chunks: Sequence[Chunk],
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> Vectors:
        """One row a chunk: float32, shape (len(chunks), dimensions). `progress` gets how many are done and how many are
        to do. Raises `DataError`: a chunk's document is missing, or too short; `ModelError`: the model failed twice.
        """
        texts = {document.id: document.text for document in documents}
        rows = defaultdict(list)
        for row, chunk in enumerate(chunks):
            rows[chunk.document_id].append(row)
        missing = rows.keys() - texts.keys()
        if missing:
            raise DataError(
                f"documents of {len(missing)} ids are missing, such as {min(missing)!r}: give the documents"
            )
        if not chunks:
            return NO_VECTORS
        vectors = []
        order = []
        for name, rows_here in rows.items():
            spans = [chunks[row].spans for row in rows_here]
            vectors.append(self.embed_spans(texts[name], spans))
            order += rows_here
            if progress is not None:
                progress(len(order), len(chunks))
        return np.concatenate(vectors)[np.argsort(order)]

    def embed_spans(self, text: str, groups: Sequence[Spans]) -> Vectors:
        """One row for each group of spans of the text: float32. Raises as `embed_chunks`."""
        for spans in groups:
            if any(span.end > len(text) for span in spans):
                raise DataError(
                    f"the spans {spans} end after the text, at {len(text)}: give the text that was cut"
                )
        if not groups:
            return NO_VECTORS
        tokens = self.embedder.tokenize(text)
        ranges, owners = _token_ranges(tokens, groups)
        lengths = np.diff(ranges)[:, 0]
        counts = np.bincount(owners, lengths, minlength=len(groups))
        sums = np.zeros((len(groups), 0))
        for start, rows in self._rows(tokens):
            running = np.zeros((len(rows) + 1, rows.shape[1]))
            np.cumsum(rows, axis=0, dtype=np.float64, out=running[1:])
            if not sums.size:
                sums = np.zeros((len(groups), rows.shape[1]))
            here = (ranges[:, 1] > start) & (ranges[:, 0] < start + len(rows))
            first, last = np.clip(ranges[here] - start, 0, len(rows)).T
            np.add.at(sums, owners[here], running[last] - running[first])
        means: Vectors = (sums / np.maximum(counts, 1)[:, None]).astype(np.float32)
        return means

    def tokens_read(self, text: str) -> int:
        """How many tokens the model reads of a document; tokens in two windows count twice."""
        tokens = self.embedder.tokenize(text)
        own = [window.end - window.start for window in _windows(tokens, self.window)]
        return sum(own) + len(own) * (tokens.before + tokens.after)

    def _rows(self, tokens: TextTokens) -> Iterator[tuple[int, Vectors]]:
        """The vectors of all tokens in order, in blocks, each with the number of its first token."""
        stop = len(tokens.ids) - tokens.after
        head, tail = tokens.ids[: tokens.before], tokens.ids[stop:]
        windows = _windows(tokens, self.window)
        some = max(1, _AT_ONCE // self.window)
        for batch in blocks(windows, some):
            sequences = []
            for window in batch:
                own = tokens.ids[window.start : window.end]
                sequences.append(np.concatenate((head, own, tail)))
            answers = embed_tokens(self.embedder, sequences)
            kept = []
            for window, rows in zip(batch, answers, strict=True):
                shift = tokens.before - window.start
                kept.append(rows[window.first + shift : window.last + shift])
            yield batch[0].first, np.concatenate(kept)


class _Window(NamedTuple):
    """The tokens start:end are read together; the vectors first:last are kept."""

    start: int
    end: int
    first: int
    last: int


def _windows(tokens: TextTokens, window: int) -> list[_Window]:
    """Windows over a document's own tokens, without special tokens; neighbours share half of their tokens.

    >>> tokens = TextTokens(np.arange(12), np.arange(12), np.arange(12), before=1, after=1)
    >>> _windows(tokens, 8)
    [_Window(start=1, end=7, first=0, last=6), _Window(start=4, end=10, first=6, last=8), ...]
    """
    before, total = tokens.before, len(tokens.ids)
    room = window - before - tokens.after
    overlap = room // 2
    stop = total - tokens.after
    last = max(before + 1, stop - overlap)
    starts = list(range(before, last, room - overlap))
    starts[-1] = max(before, stop - room)  # the last window moves back until it is full
    ends = [min(start + room, stop) for start in starts]
    middles = [(start + end + 1) // 2 for start, end in zip(starts[1:], ends, strict=False)]
    return list(map(_Window, starts, ends, [0, *middles], [*middles, total]))


def _token_ranges(tokens: TextTokens, groups: Sequence[Spans]) -> tuple[Ranges, Numbers]:
    """The tokens of each group as ranges of token numbers, and each range's group."""
    # Special tokens stand where the document's first and last token do.
    count = len(tokens.ids)
    last = count - tokens.after - 1
    stand_ins = np.clip(np.arange(count), tokens.before, last)
    starts = tokens.starts[stand_ins]
    ends = tokens.ends[stand_ins]
    token_ranges = []
    owners = []
    for owner, spans in enumerate(groups):
        places = as_ranges(spans)
        first = np.searchsorted(ends, places[:, 0], side="right")
        after = np.searchsorted(starts, places[:, 1], side="left")
        joined = union_ranges(np.column_stack((first, np.maximum(first, after))))
        token_ranges.append(joined)
        owners += [owner] * len(joined)
    return np.concatenate(token_ranges), np.array(owners, dtype=np.int64)
