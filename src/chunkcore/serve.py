"""`tool_server`: an index as a tool of language models, by the Model Context Protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from chunkcore.errors import ChunkcoreError
from chunkcore.lazy import needed
from chunkcore.retrieval.passages import WindowIndex
from chunkcore.scale.folder_index import FolderIndex

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

_AROUND = 500  # characters before and after a span
_MOST = 20_000  # tokens of an answer at most


def tool_server(searched: FolderIndex) -> MCPServer[Any]:
    """A server with the tool ``search`` and the resource ``span://{document}/{start}/{end}``.

    ``search(question, max_tokens, where)`` gives passages as `FolderIndex.row` describes them, each with the ``uri`` of
    its span; the resource reads a span with 500 characters before and after it. Both read the index alone, as it was
    last saved, never another file. ``server.run("stdio")`` serves.

    Raises `MissingExtraError`: the package mcp is not installed.
    """
    mcpserver = needed("mcp.server.mcpserver", "mcp", "the tool server")
    exceptions = needed("mcp.server.mcpserver.exceptions", "mcp", "the tool server")
    count = len(searched.index.corpus.documents)

    def latest() -> FolderIndex:
        nonlocal searched
        searched = searched.latest()
        return searched

    server: MCPServer[Any] = mcpserver.MCPServer(
        "chunkcore",
        instructions=f"Searches {count:,} documents. Answers are exact spans; cite them by file and lines.",
    )

    @server.tool()
    def search(
        question: str, max_tokens: int = 1000, where: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Find the passages that answer a question, best first, at most max_tokens tokens together.

        where: keep documents whose metadata have these values, such as {"level": "public"}.
        Each passage has document_id, file, lines, pages, spans, score, text and the uri of its span; related is false
        where nothing is nearer to the question than chance.
        """
        try:
            opened = latest()
            index = opened.index.within(where) if where else opened.index
            passages = index.retrieve(question, max_tokens=min(max_tokens, _MOST))
            related = not isinstance(index, WindowIndex) or index.is_related(question)
        except ChunkcoreError as error:
            raise exceptions.ToolError(str(error)) from error
        rows = []
        for passage in passages:
            row = opened.row(passage)
            name = quote(passage.document_id, safe="")
            uri = f"span://{name}/{passage.spans[0].start}/{passage.spans[-1].end}"
            rows.append(
                {key: value for key, value in row.items() if key != "parts"}
                | {"uri": uri, "related": related}
            )
        return rows

    @server.resource("span://{document}/{start}/{end}", mime_type="text/plain")
    def span(document: str, start: str, end: str) -> str:
        """The text of a span with 500 characters before and after it."""
        try:
            text = latest().document(unquote(document)).text
            first, last = int(start), int(end)
        except (ChunkcoreError, ValueError) as error:
            reason = f"a span is span://DOCUMENT/START/END of a document here: {error}"
            raise exceptions.ResourceError(reason) from error
        return text[max(0, first - _AROUND) : max(0, last + _AROUND)]

    return server
