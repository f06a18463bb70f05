"""`code`: whole definitions of source code, packed to a target size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chunkcore.boundaries.code import LANGUAGES, code_blocks
from chunkcore.boundaries.formats import document_language
from chunkcore.chunkers.base import Draft, strategies
from chunkcore.chunkers.blocks import BlockChunker, pack_blocks
from chunkcore.document import Document
from chunkcore.errors import OptionError
from chunkcore.tokens import TokenizedText

__all__ = ["Code", "draft_code"]

_NAME_KEYS = ("file_path", "file_name", "filename", "path", "source", "url")


@strategies.register("code")
@dataclass(frozen=True, kw_only=True)
class Code(BlockChunker):
    r"""As many whole definitions of source code a chunk as `size` allows.

    Structure-based (the chunking survey). tree-sitter's grammars of C, C++, Go, Java, JavaScript, Python, Rust
    and TypeScript (with JSX) tell where definitions and statements begin. Comments, attributes and decorators
    stay with the definition after them, if no blank line parts them, and chunks keep the indentation of their
    first line. What the grammar knows as one stays whole up to `maximum`, then is cut into what is inside it,
    line by line where there is nothing else, then at words, then at graphemes: a class into its methods, its
    first lines with the first method where both fit; a method into its statements. What is left of a block that
    was cut is not packed with what comes after the block. Code that a grammar finds errors in is cut where the
    grammar still finds structure; none of it is lost. Other languages are cut at blank lines
    before lines that are not indented, then at blank lines, then between lines.

    The minimum is soft, as in `Markdown`: what is under it takes parts of the next block, or joins a neighbour.

    Metadata: ``language``, one of `LANGUAGES` of `chunkcore.boundaries.code`, "other" where none is known; and
    ``scope``, the definitions that all of the chunk is in or is, outermost first. Where a text is so unlike its
    language that the grammar's search would not end soon, or over 1,000 brackets are open at once, ``fallback`` is
    "blank lines", and it is cut so.

    One pass of the parser and one of the tokenizer; time and memory grow linearly with the text. Needs the extra
    ``structure``.

    Attributes:
        size: the target, in the counter's unit; at least 1.
        minimum: what a chunk should not be under; ``0 <= minimum <= size``.
        maximum: what no chunk's own text is over; at least `size`. None: `size`.
        splitter: of no use here; it is an option of all strategies over blocks.
        language: the name of a language, or "auto": by the document's metadata (``language``, or a file's name
            under ``file_path``, ``file_name``, ``filename``, ``path``, ``source`` or ``url``), else its id.
            ".h" files are read as C++.

    Raises:
        OptionError: an option is out of range.
        SizeError: one grapheme is over the maximum.
        MissingExtraError: the language's grammar is not installed.

    >>> source = "class Tea:\n    def brew(self):\n        return 'hot'\n\n    def pour(self):\n        pass\n"
    >>> for chunk in Code(size=8, counter="words").chunk(Document("tea.py", source)):
    ...     print(chunk.metadata["scope"], repr(chunk.text))
    ['class Tea', 'def brew'] "class Tea:\n    def brew(self):\n        return 'hot'"
    ['class Tea', 'def pour'] '    def pour(self):\n        pass'
    """

    language: str = "auto"

    def validate(self) -> None:
        super().validate()
        if self.language != "auto" and self.language not in LANGUAGES:
            raise OptionError(
                f"language is auto or one of {', '.join(sorted(LANGUAGES))}; got {self.language!r}. "
                'For a language that is not listed, give "other"'
            )

    def draft(self, source: TokenizedText, document: Document | None) -> list[Draft]:
        language = self.language
        if language == "auto":
            language = (document_language(document) if document else None) or "other"
        return draft_code(source, language, self)


def draft_code(source: TokenizedText, language: str, chunker: BlockChunker, **metadata: str) -> list[Draft]:
    """The chunks of source code, with what else their metadata is to say."""
    blocks = code_blocks(source.text, language)
    told: dict[str, Any] = {**metadata, "language": language}
    if blocks is None:
        blocks = code_blocks(source.text, "other") or []
        told["fallback"] = "blank lines"
    packed = pack_blocks(source, blocks, chunker, apart=True)
    return [Draft(chunk.spans, {**told, "scope": list(chunk.path)}) for chunk in packed]
