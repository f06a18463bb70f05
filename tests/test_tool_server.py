"""`chunkcore serve`: the search as a tool, tried with the protocol's own client over standard input and output."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="mcp (the extra mcp) is not installed")

from mcp import Client, StdioServerParameters, stdio_client

FERRY = "# Ferry\n\nThe ferry to Saltholm leaves at noon.\nDogs travel free on the ferry.\n"


def served(docs: Path, cache: Path, calls: Any) -> Any:
    """What `calls` returns of a client of the served folder."""

    async def session() -> Any:
        environment = {"XDG_CACHE_HOME": str(cache), "HOME": str(cache)}
        program = StdioServerParameters(
            command=sys.executable, args=["-m", "chunkcore", "serve", str(docs)], env=environment
        )
        async with Client(stdio_client(program)) as client:
            return await calls(client)

    return asyncio.run(session())


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "ferry 1.md").write_text(FERRY)
    rows = [
        {"id": "a", "text": "Tea is hot.", "level": "public"},
        {"id": "b", "text": "Tea costs 9.", "level": "secret"},
    ]
    (tmp_path / "tea.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


def test_a_client_searches_and_reads_a_span(docs: Path, tmp_path: Path) -> None:
    async def calls(client: Any) -> Any:
        tools = await client.list_tools()
        found = await client.call_tool("search", {"question": "when does the ferry leave?", "max_tokens": 30})
        row = found.structured_content["result"][0]
        read = await client.read_resource(row["uri"])
        return [tool.name for tool in tools.tools], row, read.contents[0].text

    names, row, text = served(docs, tmp_path, calls)
    assert names == ["search"]
    (start, end) = row["spans"][0]
    assert row["text"] == FERRY[start:end]
    assert "leaves at noon" in row["text"]
    assert (row["file"], row["lines"][1] - row["lines"][0]) == (str(docs / "ferry 1.md"), row["text"].count("\n"))
    assert text == FERRY


def test_wrong_calls_get_a_sentence(docs: Path, tmp_path: Path) -> None:
    async def calls(client: Any) -> Any:
        wrong = await client.call_tool("search", {"question": "ferry", "max_tokens": 0})
        try:
            await client.read_resource("span://nothing/0/9")
        except Exception as error:  # whatever the client raises
            return wrong, str(error)

    wrong, unread = served(docs, tmp_path, calls)
    assert wrong.is_error
    assert "max_tokens" in wrong.content[0].text
    assert "nothing" in unread


def test_where_keeps_other_documents_out(docs: Path, tmp_path: Path) -> None:
    async def calls(client: Any) -> Any:
        return await client.call_tool("search", {"question": "tea", "where": {"level": "public"}})

    found = served(tmp_path / "tea.jsonl", tmp_path, calls)
    assert [row["document_id"] for row in found.structured_content["result"]] == ["a"]
