"""`tool_server`: a saved index as a tool for language models, by the Model Context Protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from chunkcore.errors import ChunkcoreError
from chunkcore.lazy import needed
from chunkcore.scale.folder_index import FolderIndex

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

_AROUND = 500  # characters before and after a span
_MOST = 20_000  # tokens of an answer at most


def tool_server(searched: FolderIndex) -> MCPServer[Any]:
    """A server with the tool ``search`` and the resource ``span://{document}/{start}/{end}``.

    ``search(question, max_tokens, where)`` gives passages as `FolderIndex.row` describes them, each with the ``uri`` of
    its span; the resource reads a span with 500 characters before and after it. Both read the index alone, never a
    file. ``server.run("stdio")`` serves.

    Raises `MissingExtraError`: the package mcp is not installed.
    """
    mcpserver = needed("mcp.server.mcpserver", "mcp", "the tool server")
    exceptions = needed("mcp.server.mcpserver.exceptions", "mcp", "the tool server")
    count = len(searched.index.corpus.documents)
    server: MCPServer[Any] = mcpserver.MCPServer(
        "chunkcore",
        instructions=f"Searches {count:,} documents. Answers are exact spans; cite them by file and lines.",
    )

    @server.tool()
    def search(question: str, max_tokens: int = 1000, where: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Find the passages that answer a question, best first, at most max_tokens tokens together.

        where: keep documents whose metadata have these values, such as {"level": "public"}.
        Each passage has document_id, file, lines, pages, spans, score, text and the uri of its span.
        """
        try:
            passages = searched.index.retrieve(question, max_tokens=min(max_tokens, _MOST), where=where or None)
        except ChunkcoreError as error:
            raise exceptions.ToolError(str(error)) from error
        rows = []
        for passage in passages:
            row = searched.row(passage)
            name = quote(passage.document_id, safe="")
            uri = f"span://{name}/{passage.spans[0].start}/{passage.spans[-1].end}"
            rows.append({key: value for key, value in row.items() if key != "parts"} | {"uri": uri})
        return rows

    @server.resource("span://{document}/{start}/{end}", mime_type="text/plain")
    def span(document: str, start: str, end: str) -> str:
        """The text of a span with 500 characters before and after it."""
        try:
            text = searched.document(unquote(document)).text
            first, last = int(start), int(end)
        except (ChunkcoreError, ValueError) as error:
            raise exceptions.ResourceError(
                f"a span is span://DOCUMENT/START/END of a document here: {error}"
            ) from error
        return text[max(0, first - _AROUND) : max(0, last + _AROUND)]

    return server
