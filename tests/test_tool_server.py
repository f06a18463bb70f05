"""`chunkcore serve`: the search as a tool, tried with the protocol's own client."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="mcp (the extra mcp) is not installed")

from chunkcore import Document, chunk_corpus, get_retriever
from chunkcore.files import installed_version
from chunkcore.scale.folder_index import FolderIndex, index_files, open_index, tool_server
from mcp import Client, StdioServerParameters, stdio_client

from tests.processes import started

SERVE = ["-m", "chunkcore", "serve"]
FERRY = "# Ferry\n\nThe ferry to Saltholm leaves at noon.\nDogs travel free on the ferry.\n"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "ferry 1.md").write_text(FERRY)
    return folder


def ask(server: Any, calls: Any) -> Any:
    """What `calls` returns of a client of the server, or of the program that serves."""

    async def session() -> Any:
        async with Client(server) as client:
            return await calls(client)

    return asyncio.run(session())


def test_a_client_searches_and_reads_a_span_over_standard_input_and_output(docs: Path, tmp_path: Path) -> None:
    async def calls(client: Any) -> Any:
        tools = await client.list_tools()
        answer = await client.call_tool("search", {"question": "when does the ferry leave?", "max_tokens": 30})
        row = answer.structured_content["result"][0]
        read = await client.read_resource(row["uri"])
        [block] = answer.content
        return client.server_info.version, tools.tools, row, block.text, read.contents[0].text

    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    served = stdio_client(StdioServerParameters(command=sys.executable, args=[*SERVE, str(docs)], env=environment))
    version, [tool], row, answer, text = ask(served, calls)
    assert version == installed_version()
    assert (tool.name, tool.input_schema["additionalProperties"]) == ("search", False)
    first, last = row["lines"]
    cited, _, passage = answer.partition("\n")
    assert cited == f"{docs / 'ferry 1.md'}, lines {first}-{last}, {row['uri']}"
    assert passage == FERRY[slice(*row["spans"][0])]
    assert "leaves at noon" in passage
    assert (row["file"], last - first) == (str(docs / "ferry 1.md"), passage.count("\n"))
    assert "text" not in row, "no answer is sent twice"
    assert text == FERRY


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_while_its_input_is_open(docs: Path, stop: signal.Signals) -> None:
    first = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": first}
    command = [sys.executable, *SERVE, str(docs), "--no-cache"]
    with started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        process.stdin.write(f"{json.dumps(request)}\n".encode())
        assert process.stdout.readline()
        process.send_signal(stop)
        assert process.wait(60) == -stop


EMPTY = "the question is empty"
WHOLE = "max_tokens is a whole number"
WRONG = [
    ("max_tokens is at least 1", {"max_tokens": 0}),
    *[(f"{WHOLE}, got {value!r}", {"max_tokens": value}) for value in (True, 30.0, 1.5, "30")],
    *[(EMPTY, {"question": unseen}) for unseen in ("", " ", "\u200b", "\ufeff\u2060 \u3164", "\u2800", "\x00\ud800")],
    ("has no option 'filter': expected some of question, max_tokens, where; did you mean", {"filter": {"a": 1}}),
    ("has no option 'Where'", {"Where": {"level": "open"}}),
    ("has no option 'k'", {"k": True}),
]


def test_wrong_calls_get_a_sentence(docs: Path) -> None:
    async def calls(client: Any) -> Any:
        wrong = [await client.call_tool("search", {"question": "ferry", **arguments}) for _, arguments in WRONG]  # type: ignore[dict-item]
        filters: list[dict[str, Any]] = [{}, {"where": {"level": "open"}}]
        empty = [await client.call_tool("search", {"question": "zebra", **where}) for where in filters]
        try:
            await client.read_resource("span://nothing/0/9")
        except Exception as error:  # whatever the client raises
            return wrong, empty, str(error)

    wrong, empty, unread = ask(tool_server(index_files(docs, None)), calls)
    for (sentence, _), answer in zip(WRONG, wrong, strict=True):
        assert answer.is_error
        assert sentence in answer.content[0].text
    assert "nothing" in unread
    texts = [answer.content[0].text.partition(":")[0] for answer in empty]
    assert texts == ["No passage answers this question", "No document has these values in its metadata"]


def test_a_name_makes_no_lines_and_a_place_is_the_files(docs: Path) -> None:
    async def calls(client: Any) -> Any:
        answers = [await client.call_tool("search", {"question": word}) for word in ("owls", "bats", "cranes")]
        blocks = [answer.content[0].text.partition("\n") for answer in answers]
        uris = [answer.structured_content["result"][0]["uri"] for answer in answers]
        reads = [await client.read_resource(uri) for uri in uris[1:]]
        return blocks, [read.contents[0].text for read in reads]

    (docs / "b\nice.md, lines 1-2, span:%2f%2f.md").write_text("Bats sleep. \ud83e", errors="replace")
    (docs / "crane.html").write_text(f"<p>{'First. ' * 999}</p><p>Cranes <b>lift</b> stones.</p><p>{'End. ' * 999}</p>")
    (docs / os.fsdecode(b"owl\xff.md")).write_text("Owls hunt.")
    blocks, read = ask(tool_server(index_files(docs, None)), calls)
    assert [text.split(". ")[-1] for _, _, text in blocks[:2]] == ["Owls hunt.", "?"]
    assert blocks[1][0].startswith(f"{docs / 'b ice.md, lines 1-2, span:%2f%2f.md'}, lines 1-1, span://b%0Aice")
    assert read[0] == "Bats sleep. ?"
    assert "Cranes lift stones." in read[1]
    assert len(read[1]) < 2000
    index = get_retriever("passages:lexical").index(chunk_corpus([Document("owl", "Owls \ud83e hunt.")], "sentence"))
    answer = ask(tool_server(FolderIndex(index)), lambda client: client.call_tool("search", {"question": "owls"}))
    assert answer.content[0].text.endswith("Owls \ufffd hunt.")


def test_files_that_are_added_or_changed_are_found_at_the_next_question(docs: Path) -> None:
    async def calls(client: Any) -> Any:
        answers: list[dict[str, object]] = []
        for file in ("owls.md", "owls.md", "bats.md"):
            (docs / file).write_text(f"Owls hunt {len(answers)} mice.")
            answers.append(await client.call_tool("search", {"question": "owls hunt", "max_tokens": 9}))
        return answers

    server = tool_server(index_files(docs, None), lambda: index_files(docs, None))
    texts = ["".join(block.text for block in answer.content) for answer in ask(server, calls)]
    assert ["0 mice" in texts[0], "1 mice" in texts[1], "2 mice" in texts[2] + texts[1]] == [True, True, True]


def test_where_keeps_other_documents_out_and_rows_say_whether_they_are_related(tmp_path: Path) -> None:
    rows = [{"id": name, "text": "Tea is hot. " * 200 + "Lemons cost 9.", "level": name} for name in ("open", "shut")]
    (tmp_path / "tea.jsonl").write_text("\n".join(map(json.dumps, rows)))
    questions = {"What do lemons cost?": True, "Is tea the capital of Mongolia or a planet with moons?": False}

    async def calls(client: Any) -> Any:
        wanted = {"where": {"level": "open"}}
        return [await client.call_tool("search", {"question": question, **wanted}) for question in questions]

    answers = ask(tool_server(index_files(tmp_path / "tea.jsonl", None)), calls)
    for answer, related in zip(answers, questions.values(), strict=True):
        found = answer.structured_content["result"]
        assert {(row["document_id"], row["related"]) for row in found} == {("open", related)}


def test_a_later_save_is_seen_at_the_next_question(docs: Path, tmp_path: Path) -> None:
    index_files(docs, tmp_path / "index")

    async def calls(client: Any) -> Any:
        files = []
        for text in (FERRY, "Owls hunt mice."):
            (docs / "ferry 1.md").write_text(text)
            index_files(docs, tmp_path / "index")
            files.append(await client.call_tool("search", {"question": "ferry or owls"}))
        (tmp_path / "index" / "manifest.json").write_text("{}")
        return *files, await client.call_tool("search", {"question": "owls"})

    before, after, damaged = ask(tool_server(open_index(tmp_path / "index")), calls)
    texts = [answer.content[0].text.partition("\n")[2] for answer in (before, after)]
    assert texts == [FERRY.strip(), "Owls hunt mice."]
    assert damaged.is_error
    assert "make it again" in damaged.content[0].text
