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


@strategies.register("code")
@dataclass(frozen=True, kw_only=True)
class Code(BlockChunker):
    r"""As many whole definitions of source code in a chunk as `size` allows.

    Structure-based (the chunking survey). tree-sitter's grammars of C, C++, Go, Java, JavaScript, Python, Rust and
    TypeScript (with JSX) tell where definitions and statements begin. Comments, attributes and decorators stay with the
    definition after them, unless a blank line is between; chunks keep the indentation of their first line. A definition
    stays whole up to `maximum`, then is cut: a class into its methods, its first lines with the first method where both
    fit; a method into its statements; then at lines, words, graphemes. The rest of a block that was cut is not packed
    with the next block. Code with errors is cut where the grammar still finds structure; none of it is lost. Other
    languages are cut at blank lines before lines without indentation, then at blank lines, then between lines.

    The minimum is soft, as in `Markdown`. Metadata: ``language``, one of `LANGUAGES` of `chunkcore.boundaries.code`, or
    "other"; ``scope``, the definitions that all of the chunk is in or is, outermost first; and ``fallback``, "blank
    lines", where a text is so unlike its language that the grammar's search would not end soon, or over 1,000 brackets
    are open at once.

    Linear time and memory: one pass of the parser and one of the tokenizer. Needs the extra ``structure``.

    Attributes:
        splitter: unused; all strategies over blocks have it.
        language: the name of a language, or "auto": by the document's metadata (``language``, or a file's name under
            ``file_path``, ``file_name``, ``filename``, ``path``, ``source`` or ``url``), else its id. ".h" files are
            read as C++.

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
    """The chunks of source code, with more metadata."""
    blocks = code_blocks(source.text, language)
    told: dict[str, Any] = {**metadata, "language": language}
    if blocks is None:
        blocks = code_blocks(source.text, "other") or []
        told["fallback"] = "blank lines"
    packed = pack_blocks(source, blocks, chunker, apart=True)
    return [Draft(chunk.spans, {**told, "scope": list(chunk.path)}) for chunk in packed]
