"""`code`: whole definitions of source code, packed to a target size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chunkcore.boundaries.code import LANGUAGES, code_blocks
from chunkcore.boundaries.formats import document_language
from chunkcore.chunkers.base import Draft, strategies
from chunkcore.chunkers.blocks import BlockChunker, pack_blocks
from chunkcore.document import Document
from chunkcore.errors import OptionError, echo
from chunkcore.tokens import TokenizedText


@strategies.register("code")
@dataclass(frozen=True, kw_only=True)
class Code(BlockChunker):
    r"""As many whole definitions of source code in a chunk as `size` allows.

    Structure-based (the chunking survey). tree-sitter finds definitions and statements in C, C++, Go, Java, JavaScript,
    Python, Rust and TypeScript (with JSX). Comments, attributes and decorators stay with the definition after them,
    unless a blank line is between. A definition stays whole up to `maximum`, then is cut: a class into methods, a
    method into statements, then lines, words, graphemes. Other languages are cut at blank lines before unindented
    lines, then at blank lines, then between lines. Nothing is lost, also in code with errors.

    Metadata: ``language`` (of `LANGUAGES`, or "other"), ``scope`` (the definitions around the chunk, outermost first),
    and ``fallback`` "blank lines" if the grammar does not fit the text. Linear time and memory. Needs the extra
    ``structure``.

    Attributes:
        splitter: unused; all chunkers over blocks have it.
        language: the name of a language, or "auto": by the document's metadata (``language``, or a file's name under
            ``file_path``, ``file_name``, ``filename``, ``path``, ``source`` or ``url``), else its id. ".h" files are
            read as C++.

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
                f"language is auto or one of {', '.join(sorted(LANGUAGES))}; got {echo(self.language)}. "
                'For a language that is not listed, give "other"'
            )

    def draft(self, source: TokenizedText, document: Document | None) -> list[Draft]:
        language = self.language
        if language == "auto":
            language = (document_language(document) if document else None) or "other"
        return draft_code(source, language, self)


def draft_code(source: TokenizedText, language: str, chunker: BlockChunker, **metadata: str) -> list[Draft]:
    """The chunks of source code, with more `metadata`."""
    blocks = code_blocks(source.text, language)
    details: dict[str, Any] = {**metadata, "language": language}
    if blocks is None:
        blocks = code_blocks(source.text, "other") or []
        details["fallback"] = "blank lines"
    packed = pack_blocks(source, blocks, chunker, apart=True)
    return [Draft(chunk.spans, {**details, "scope": list(chunk.path)}) for chunk in packed]
