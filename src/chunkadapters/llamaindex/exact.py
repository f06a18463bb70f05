"""LlamaIndex' sentence and token splitters on offsets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np
from llama_index.core.node_parser import (
    NodeParser,
    SentenceSplitter,
    TokenTextSplitter,
)
from llama_index.core.node_parser.text.utils import split_by_sentence_tokenizer, split_by_sep
from llama_index.core.schema import Document as LlamaDocument

from chunkadapters.configuration import NamedFunction, tokenizer_of
from chunkadapters.exact import PieceRange, SplitPiece, Unplaced, joined_drafts
from chunkadapters.llamaindex.node_parser import ChunkcoreNodeParser, PlacedNodeParser, text_of
from chunkcore.boundaries.separators import finder
from chunkcore.chunkers import Chunker, Draft, chunkers
from chunkcore.errors import DataError, OptionError, SizeError
from chunkcore.options import Bounds
from chunkcore.packing import pack
from chunkcore.plain import encodable
from chunkcore.spans import as_table
from chunkcore.tokens import TokenizedText

Cut = Callable[[str], list[PieceRange]]
Sentences = Callable[[str], Sequence[str]]


def exact(parser: NodeParser, unplaced: Unplaced) -> ChunkcoreNodeParser | PlacedNodeParser:
    """See `chunkadapters.exact.exact`."""
    if isinstance(parser, ChunkcoreNodeParser | PlacedNodeParser):
        return parser
    if not isinstance(parser, NodeParser):
        raise OptionError(f"expected a NodeParser of LlamaIndex, got {type(parser).__name__}")
    chunker = _equivalent(parser)
    if chunker is None:
        return PlacedNodeParser(parser=parser, unplaced=unplaced)
    return ChunkcoreNodeParser(
        chunker,
        metadata_aware=True,
        include_metadata=parser.include_metadata,
        include_prev_next_rel=parser.include_prev_next_rel,
        callback_manager=parser.callback_manager,
        id_func=parser.id_func,
    )


def _equivalent(parser: NodeParser) -> Chunker | None:
    if type(parser) is SentenceSplitter:
        split = parser._chunking_tokenizer_fn
        sentences: Sentences | Literal["punkt"] = "punkt"
        name = getattr(split, "__qualname__", "")
        if not name.startswith("split_by_sentence_tokenizer."):
            sentences = NamedFunction(split)
        return LlamaIndexSentence(
            size=parser.chunk_size,
            overlap=parser.chunk_overlap,
            word_separator=parser.separator,
            paragraph_separator=parser.paragraph_separator,
            phrase_regex=parser.secondary_chunking_regex or "",
            sentences=sentences,
            counter=tokenizer_of(parser._tokenizer),
        )
    if type(parser) is TokenTextSplitter:
        return LlamaIndexToken(
            size=parser.chunk_size,
            overlap=parser.chunk_overlap,
            separators=(parser.separator, *parser.backup_separators),
            strip=not parser.keep_whitespaces,
            counter=tokenizer_of(parser._tokenizer),
        )
    return None


def pieces(parser: NodeParser, text: str) -> list[SplitPiece]:
    """What the parser cuts a text into."""
    # LlamaIndex cannot hash unpaired surrogates.
    nodes = parser.get_nodes_from_documents([LlamaDocument(text=encodable(text))])
    return [SplitPiece(text_of(node), node.metadata) for node in nodes]


@dataclass(frozen=True, kw_only=True)
class _Merged(Chunker):
    """Cuts a text over the size by the first way that gives two or more pieces, and merges pieces to a size."""

    bounds = Bounds(size=1, overlap=(0, "size"))
    cuts_source: ClassVar[bool] = True

    size: int = 1024
    overlap: int = 20

    def _merged(
        self, source: TokenizedText, cuts: Sequence[Cut], *, strip: bool, strict: bool
    ) -> list[Draft]:
        """The last of `cuts` cuts anything. `strict`: no piece that cannot be cut is over the size."""
        end = len(source.text)
        sized = list(self._pieces(source, (0, end), source.count(0, end), cuts))
        pieces = [piece for piece, _ in sized]
        sizes = [size for _, size in sized]
        over = [size for size in sizes if size > self.size]
        if over and strict:
            raise SizeError(
                f"a single character counts {over[0]}, over the size of {self.size}: choose a larger size"
            )
        rows = pack(np.cumsum([0, *sizes]), self.size, self.overlap)
        return joined_drafts(source.text, pieces, rows, "", strip=strip)

    def _pieces(
        self, source: TokenizedText, piece: PieceRange, size: int, cuts: Sequence[Cut]
    ) -> Iterator[tuple[PieceRange, int]]:
        """The piece, or what it is cut into if it is over the size, with the sizes."""
        parts = [piece]
        begin, end = piece
        for cut in cuts:
            if size <= self.size or len(parts) > 1:
                break
            parts = [(begin + first, begin + last) for first, last in cut(source.text[begin:end])]
        if len(parts) < 2:
            yield piece, size
            return
        counts = source.counts(*as_table(parts).T).tolist()
        for part, count in zip(parts, counts, strict=True):
            yield from self._pieces(source, part, count, cuts)


@chunkers.register("llamaindex_sentence")
@dataclass(frozen=True, kw_only=True)
class LlamaIndexSentence(_Merged):
    r"""LlamaIndex' SentenceSplitter on offsets: paragraphs, sentences, phrases, words, characters, merged to a size.

    Linear. Text over `size` is cut by the first of these that gives two or more pieces. A chunk begins with as many of
    the last chunk's pieces as fit into `overlap`. If the original drops white space between pieces, the chunk has
    several spans, and the original's text. Unlike there, text that looks like a special token is text. The sentence
    splitter is called once per paragraph over `size`.

    Attributes:
        size: the maximum of a chunk's pieces, in the counter's unit.
        overlap: the maximum of the pieces that neighbours share.
        paragraph_separator: between paragraphs; "" for none.
        sentences: "punkt", LlamaIndex' own sentence splitter, or a function from a text to its sentences.
        phrase_regex: a regular expression of phrases; "" for none.
        word_separator: between words; "" for none.

    Raises `OptionError`: an option is out of range; or `SizeError`: a single character counts over `size`.

    >>> chunker = LlamaIndexSentence(size=4, overlap=0, counter="words")
    >>> chunker.split_text("One is short. Two is too. Three.")
    ['One is short.', 'Two is too. Three.']
    """

    overlap: int = 200
    paragraph_separator: str = "\n\n\n"
    sentences: Sentences | Literal["punkt"] = "punkt"
    phrase_regex: str = "[^,.;。？！]+[,.;。？！]?|[,.;。？！]"
    word_separator: str = " "

    def cut(self, source: TokenizedText) -> list[Draft]:
        phrases = (partial(_by_regex, re.compile(self.phrase_regex)),) if self.phrase_regex else ()
        split = split_by_sentence_tokenizer() if isinstance(self.sentences, str) else self.sentences
        cuts = (
            *_by_separators(self.paragraph_separator),
            partial(_by_function, split),
            *phrases,
            *_by_separators(self.word_separator),
            _BY_CHARACTER,
        )
        return self._merged(source, cuts, strip=True, strict=True)


@chunkers.register("llamaindex_token")
@dataclass(frozen=True, kw_only=True)
class LlamaIndexToken(_Merged):
    r"""LlamaIndex' TokenTextSplitter on offsets: words, then smaller pieces, merged to a size. Linear.

    Text over `size` is cut at the first of `separators` that gives two or more pieces, else into characters. A chunk
    begins with as many of the last chunk's pieces as fit into `overlap` and leave room for the next. A single character
    over the size is kept. Unlike in the original, text that looks like a special token is text.

    Attributes:
        size: the target, in the counter's unit.
        overlap: the maximum of the pieces that neighbours share.
        separators: tried in this order, without ""; each goes to the start of the next piece.
        strip: strip white space from chunks.

    Raises `OptionError`: an option is out of range.

    >>> LlamaIndexToken(size=2, overlap=1, counter="words").split_text("one two three")
    ['one two', 'two three']
    """

    # Tokens that the original reserves between metadata and text.
    beside_metadata: ClassVar[int] = 2

    separators: tuple[str, ...] = (" ", "\n")
    strip: bool = True

    def cut(self, source: TokenizedText) -> list[Draft]:
        cuts = [*_by_separators(*self.separators), _BY_CHARACTER]
        return self._merged(source, cuts, strip=self.strip, strict=False)


def _by_regex(pattern: re.Pattern[str], text: str) -> list[PieceRange]:
    """The matches of `re.findall`: of the group, if the pattern has one."""
    if pattern.groups > 1:
        raise OptionError(
            f"a regular expression of phrases has one group at most, got {pattern.pattern!r}"
        )
    matches = finder(pattern, len(text))(text)
    phrases = [match.span(pattern.groups) for match in matches]
    return [(first, last) for first, last in phrases if first < last]


def _by_function(split: Sentences, text: str) -> list[PieceRange]:
    place = 0
    pieces = []
    for part in filter(None, split(text)):  # an empty one would count as a cut, without an end
        start = text.find(part, place)
        if start < 0:
            raise DataError(
                f"the sentence splitter gave a text that is not in its paragraph: {part[:80]!r}"
            )
        place = start + len(part)
        pieces.append((start, place))
    return pieces


def _by_separators(*separators: str) -> list[Cut]:
    """Each piece but the first begins with the separator; an empty one cuts nothing."""
    return [partial(_by_function, split_by_sep(separator)) for separator in separators if separator]


_BY_CHARACTER: Cut = partial(_by_function, list)
