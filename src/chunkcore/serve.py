"""`tool_server`: a folder's index as a tool for language models, by the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, unquote

from chunkcore.errors import ChunkcoreError, OptionError
from chunkcore.files import installed_version
from chunkcore.folder_index import FolderIndex, check_question, file_stamps
from chunkcore.lazy import needed
from chunkcore.options import check_option_names
from chunkcore.retrieval.budget import MAX_TOKENS, MaxTokens, check_limits
from chunkcore.retrieval.passages import WindowIndex

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer
    from mcp_types import CallToolResult

    from chunkcore.run import Retrieved

_AROUND = 500  # characters before and after a span
_MOST = 20_000  # tokens of an answer at most
_NOTHING = "No passage answers this question: try other words."
_FAR = " (no nearer to the question than chance)"
_ABSENT = " (the answer is probably not in these documents)"


def tool_server(
    searched: FolderIndex, reopen: Callable[[], FolderIndex] | None = None
) -> MCPServer[Any]:
    """A server with the tool ``search`` and the resource ``span://{document}/{start}/{end}``.

    ``search(question, max_tokens, where)`` answers with a block of text per passage, under a line with its file, its
    lines and the address of its span. The structured content has the places without the texts, as `FolderIndex.row`
    describes them; whether the question is `related`; and its `missing` words, which no passage has. The resource reads
    a span with 500 characters before and after it. Both read the index alone.

    An index that is saved while it is served is seen at the next question; so are changed and added files if `reopen`
    indexes them. ``server.run("stdio")`` serves.

    Raises `MissingExtraError`: the package mcp is not installed.
    """
    exceptions = needed("mcp.server.mcpserver.exceptions", "mcp", "serve a tool")
    source = _Source(searched, reopen)
    server = _server(_search_tool(source), len(searched.index.corpus.documents))

    @server.resource("span://{document}/{start}/{end}", mime_type="text/plain")
    def span(document: str, start: str, end: str) -> str:
        """The text of a span with 500 characters before and after it."""
        try:
            text = source.latest().document(unquote(document)).text
            first, last = int(start), int(end)
        except (ChunkcoreError, ValueError) as error:
            reason = f"a span is span://DOCUMENT/START/END of a document here: {error}"
            raise exceptions.ResourceError(reason) from error
        return text[max(0, first - _AROUND) : max(0, last + _AROUND)]

    return server


def _search_tool(source: _Source) -> Any:
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.mcpserver.tools import Tool
    from mcp_types import CallToolResult

    def search(
        question: str,
        max_tokens: int | Literal["auto"] | None = None,
        where: dict[str, Any] | None = None,
    ) -> CallToolResult:
        """Find the passages that answer a question, best first, at most max_tokens tokens together.

        max_tokens: by default 1,000, or "auto", what the question needs, where the index is calibrated.
        where: keep documents whose metadata have these values, such as {"level": "public"}.
        """
        try:
            return _answer(source.latest(), question, max_tokens, where)
        except ChunkcoreError as error:
            raise ToolError(str(error)) from error

    search.__annotations__["return"] = CallToolResult  # which the package reads
    tool = Tool.from_function(search)
    tool.parameters["additionalProperties"] = False
    return tool


def _server(tool: Any, documents: int) -> MCPServer[Any]:
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

    class Server(MCPServer[Any]):
        async def call_tool(
            self, name: str, arguments: Mapping[str, Any], context: Any = None
        ) -> Any:
            """Refuses arguments that the tool does not have, which the package drops, and what it would convert."""
            try:
                check_option_names(f"the tool {name}", arguments, tool.parameters["properties"])
                check_limits(None, arguments.get("max_tokens"))
            except OptionError as error:
                raise ToolError(str(error)) from error
            return await super().call_tool(name, dict(arguments), context)

    return Server(
        "chunkcore",
        version=installed_version(),
        instructions=f"Searches {documents:,} documents. Answers are exact spans; cite them by file and lines.",
        tools=[tool],
    )


class _Source:
    """The index that is served, opened again when it or its files have changed."""

    def __init__(self, searched: FolderIndex, reopen: Callable[[], FolderIndex] | None) -> None:
        self._searched = searched
        self._reopen = reopen
        self._lock = Lock()
        self._stamps = self._file_stamps()

    def latest(self) -> FolderIndex:
        with self._lock:
            if self._reopen is None:
                self._searched = self._searched.latest()
            else:
                stamps = self._file_stamps()
                if stamps != self._stamps:
                    self._searched = self._reopen()
                    self._stamps = stamps
            return self._searched

    def _file_stamps(self) -> Mapping[str, Any]:
        root = self._searched.root
        if root is None or self._reopen is None:
            return {}
        return file_stamps(root, follow_links=self._searched.follow_links)


def _answer(
    searched: FolderIndex,
    question: str,
    max_tokens: MaxTokens | None,
    where: Mapping[str, Any] | None,
) -> CallToolResult:
    check_question(question)
    index = searched.index.within(where) if where else searched.index
    if max_tokens is None:
        max_tokens = MAX_TOKENS if index.enough is None else "auto"
    if max_tokens != "auto":
        max_tokens = min(max_tokens, _MOST)
    passages = index.retrieve(question, max_tokens=max_tokens)
    related, missing = True, []
    if isinstance(index, WindowIndex):
        related = index.is_related(question)
        missing = index.missing_words(question, passages)
    note = ""
    if not related:
        note = _FAR if index.enough is None else _ABSENT
    places = [_place(searched, passage, related=related) for passage in passages]
    texts = [_shown(place, passage, note) for place, passage in zip(places, passages, strict=True)]
    structured = {"result": places, "related": related, "missing": missing}
    return _result(texts or [_NOTHING], structured)


def _result(texts: Sequence[str], structured: dict[str, Any]) -> CallToolResult:
    from mcp_types import CallToolResult, ContentBlock, TextContent

    content: list[ContentBlock] = [TextContent(type="text", text=text) for text in texts]
    return CallToolResult(content=content, structured_content=structured)


def _place(searched: FolderIndex, passage: Retrieved, *, related: bool) -> dict[str, Any]:
    """A passage's row without what the text blocks say."""
    row = searched.row(passage)
    del row["parts"], row["text"]
    name = quote(passage.document_id, safe="")
    start, end = row["spans"][0][0], row["spans"][-1][1]
    return {**row, "uri": f"span://{name}/{start}/{end}", "related": related}


def _shown(place: Mapping[str, Any], passage: Retrieved, note: str) -> str:
    first, last = place["lines"]
    return f"{place['file']}, lines {first}-{last}, {place['uri']}{note}\n{passage.text}"
