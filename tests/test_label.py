"""Questions labelled by hand: what is kept, what resumes, and who may ask the page's server."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from chunkcore import DataError, Document, OptionError, chunk_corpus, get_chunker, get_retriever, load_benchmark
from chunkcore.cli import main
from chunkcore.questions.label import LabelledQuestions, LabelServer, StaleError, read_listed
from hypothesis import example, given
from hypothesis import strategies as st

from tests.processes import started

DOCUMENTS = [
    Document("fox.txt", "The fox naps.  It rains. 🦊 The fox eats."),
    Document("<img src=x>.txt", "<script>alert(1)</script>\x00 One \ud800 more. The crow steals."),
]


def opened(folder: Path, *listed: str) -> LabelledQuestions:
    return LabelledQuestions(DOCUMENTS, folder / "q.jsonl", listed)


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "q.jsonl").read_text("utf-8").splitlines()]


def test_a_marked_question_is_on_the_disk_at_once_and_is_a_benchmark_s(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "fox.txt").write_text(DOCUMENTS[0].text, "utf-8")
    opened(tmp_path, "Who naps?", "Who sings?").mark(0, [(0, 0, 15)])
    assert rows(tmp_path)[0]["evidence"] == [{"document": "fox.txt", "start": 0, "end": 13, "text": "The fox naps."}]
    benchmark = load_benchmark(tmp_path / "docs", tmp_path / "q.jsonl")
    assert [query.evidence[0].span.slice(DOCUMENTS[0].text) for query in benchmark.queries] == ["The fox naps."]
    assert [problem.reason.partition(";")[0] for problem in benchmark.problems] == ["line 2: it has no evidence"]


def test_open_questions_resume_and_the_file_is_believed(tmp_path: Path) -> None:
    kept = opened(tmp_path, "Who naps?", "Who steals?", "Who sings?")
    kept.mark(1, [(1, 32, 51)])
    kept.mark(2, [], without_evidence=True)
    kept = opened(tmp_path, "Who  naps?")  # listed again, with other white space
    states = {state["question"]: state for state in kept.states()}
    assert (len(kept), kept.done) == (3, 2)
    assert not states["Who naps?"]["evidence"]
    assert states["Who sings?"]["without_evidence"]
    kept.mark(states["Who steals?"]["number"], [])  # all marks taken away: open again
    assert [row["question"] for row in rows(tmp_path)] == ["Who naps?", "Who steals?", "Who sings?"]
    (tmp_path / "q.jsonl").write_text('{"question": "Who steals?"}\n', "utf-8")  # the user took the others out
    assert [state["question"] for state in kept.states()] == ["Who steals?"]
    (tmp_path / "q.jsonl").write_bytes(b"")  # and now this one
    assert not kept.states()
    (tmp_path / "q.jsonl").unlink()
    assert len(opened(tmp_path)) == 0


def test_rows_of_an_existing_file_keep_their_place_and_other_keys(tmp_path: Path) -> None:
    given_rows = [
        {"id": "a", "question": "Who naps?", "evidence": ["The fox naps."], "team": "blue"},
        {"question": "Open?", "note": "ä"},
        {"question": "Lost?", "evidence": ["nowhere"]},
        {"question": "Wrong?", "evidence": 5},
        {"question": "Wrong, too?", "spans": [5]},
    ]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in given_rows), "utf-8")
    kept = opened(tmp_path)
    assert kept.state(0)["evidence"][0]["text"] == "The fox naps."
    assert "nowhere" in kept.state(2)["problem"]
    assert all(word in kept.state(number)["problem"] for number, word in ((3, "got int"), (4, "pairs")))
    kept.mark(kept.add("New?"), [(0, 15, 24)])
    with pytest.raises(DataError, match="there are 6 questions, and no number -1"):
        kept.mark(-1, [])
    assert rows(tmp_path)[:5] == given_rows
    kept.mark(0, [(0, 27, 40)])
    evidence = {"document": "fox.txt", "start": 27, "end": 40, "text": "The fox eats."}
    assert rows(tmp_path)[:5] == [{**given_rows[0], "evidence": [evidence]}, *given_rows[1:]]  # type: ignore[dict-item]


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 40), st.integers(0, 40)), max_size=6))
@example([(0, 13, 14)])
def test_any_marks_are_kept_as_disjoint_stripped_spans_or_refused(tmp_path_factory, marks):
    kept = opened(tmp_path_factory.mktemp("labels"), "Who?")
    marked = {(number, at) for number, start, end in marks for at in range(start, end)}
    if any(not start < end <= len(DOCUMENTS[number].text) for number, start, end in marks):
        with pytest.raises(DataError, match="evidence lies within"):
            kept.mark(0, marks)
        return
    evidence = kept.mark(0, marks)["evidence"]
    spans = [(piece["document"], piece["start"], piece["end"]) for piece in evidence]
    covered = {(number, at) for number, start, end in spans for at in range(start, end)}
    seen = {(number, at) for number, at in marked if not DOCUMENTS[number].text[at].isspace()}
    assert seen <= covered
    assert all(DOCUMENTS[number].text[at].isspace() for number, at in covered - marked)
    assert spans == sorted(spans)
    assert len(covered) == sum(end - start for _, start, end in spans)


def test_who_is_behind_another_tab_is_told_and_loses_nothing(server: LabelServer) -> None:
    shown = ask(server, "all")[1]["questions"][0]
    body = {"number": 0, "version": shown["version"], "evidence": [{"document": 0, "start": 0, "end": 13}]}
    status, kept, _ = ask(server, "mark", body)
    assert status == 200
    later = {**body, "evidence": [{"document": 0, "start": 27, "end": 40}]}
    status, answer, _ = ask(server, "mark", later)
    assert (status, answer["error"]) == (409, "this question was changed in another tab or in q.jsonl")
    assert server.questions.state(0)["evidence"] == kept["evidence"]
    both = [*body["evidence"], *later["evidence"]]  # as the page does then
    assert len(ask(server, "mark", {**later, "version": kept["version"], "evidence": both})[1]["evidence"]) == 2


def test_a_file_that_was_edited_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    kept = opened(tmp_path, "Who naps?", "Who steals?")
    version = kept.mark(0, [(0, 0, 13)])["version"]
    old = rows(tmp_path)
    edited = [{"id": "new", "question": "Who eats?", "evidence": ["The fox eats."]}, {**old[0], "team": "blue"}, old[1]]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in edited), "utf-8")
    for number in (0, 9):
        with pytest.raises(StaleError, match=r"changed in another tab or in q\.jsonl"):
            kept.mark(number, [], version=version)
    assert rows(tmp_path) == edited
    steals = next(state for state in kept.states() if state["question"] == "Who steals?")
    kept.mark(steals["number"], [(1, 32, 51)], version=steals["version"])
    assert rows(tmp_path)[:2] == edited[:2]
    assert "crow" in rows(tmp_path)[2]["evidence"][0]["text"]
    (tmp_path / "q.jsonl").write_text("half a li", "utf-8")
    with pytest.raises(DataError, match=r"q\.jsonl"):
        kept.mark(0, [])
    assert (tmp_path / "q.jsonl").read_text("utf-8") == "half a li"


def test_writers_at_once_by_any_link_lose_nothing_and_their_folder_stays_accepted(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    link = tmp_path / "other" / "link.jsonl"
    link.symlink_to("../q.jsonl")

    def label(file: str, name: str) -> None:
        questions = LabelledQuestions(DOCUMENTS, tmp_path / file)
        for number in range(20):
            questions.mark(questions.add(f"{name} {number}?"), [(0, 0, 13)])

    writers = [
        threading.Thread(target=label, args=pair)
        for pair in (("q.jsonl", "A"), ("other/link.jsonl", "B"), ("r.jsonl", "C"))
    ]
    for step in (threading.Thread.start, threading.Thread.join):
        list(map(step, writers))
    assert sum(bool(row.get("evidence")) for row in rows(tmp_path)) == 40
    assert [LabelledQuestions(DOCUMENTS, path).done for path in (tmp_path / "r.jsonl", link)] == [20, 40]
    assert (link.is_symlink(), [file.name for file in link.parent.iterdir()]) == (True, ["link.jsonl"])


def test_a_file_with_a_hard_link_is_refused(tmp_path: Path) -> None:
    opened(tmp_path, "Who naps?")
    (tmp_path / "same.jsonl").hardlink_to(tmp_path / "q.jsonl")
    for name in ("q.jsonl", "same.jsonl"):
        with pytest.raises(OptionError, match="which would not get what is marked"):
            LabelledQuestions(DOCUMENTS, tmp_path / name)


def test_lists_of_questions(tmp_path: Path) -> None:
    lines, table, tabs = (tmp_path / name for name in ("asked.txt", "log.csv", "log.TSV"))
    lines.write_text("Who naps?\n\n  \nWho eats?\n", "utf-8")
    table.write_text('time,query\n1,"Who, if any, naps?"\n2,\n', "utf-8")
    tabs.write_text('time\tquery\n1\t"Fox", if any, naps?\n2\t"Who\n', "utf-8")
    assert [text.strip() for text in read_listed(lines)] == ["Who naps?", "Who eats?"]
    assert read_listed(table, "query") == ["Who, if any, naps?"]
    assert read_listed(tabs, "query") == ['"Fox", if any, naps?', '"Who']
    cases = ((table, "", "--column"), (table, "asked", "lacks the column asked"), (lines, "query", "line by line"))
    for path, column, message in cases:
        with pytest.raises((DataError, OptionError), match=message):
            read_listed(path, column)


# The server.


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LabelServer]:
    index = get_retriever("passages:lexical").index(chunk_corpus(DOCUMENTS, get_chunker("sentence:size=50")))
    with LabelServer(opened(tmp_path, "Who naps?"), index) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(
    server: LabelServer, path: str, body: Any = None, *, token: str | None = None, **headers: str
) -> tuple[int, Any, dict[str, str]]:
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    given_headers = {"Origin": f"http://127.0.0.1:{server.server_port}", **headers}
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    target = f"/{server.token if token is None else token}/{path}"
    connection.request("GET" if body is None else "POST", target, data, given_headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    is_json = answer.getheader("Content-Type") == "application/json"
    return answer.status, json.loads(text) if is_json else text.decode(), dict(answer.getheaders())


def test_the_page_loads_nothing_from_elsewhere_and_forbids_frames(server: LabelServer) -> None:
    status, page, headers = ask(server, "")
    assert status == 200
    assert "http" not in page.replace("http-equiv", "")
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize(("token", "headers"), [("", {}), ("wrong", {}), (None, {"Host": "evil.example"})])
def test_without_the_token_or_under_another_name_nothing_is_answered(server, token, headers):
    for path, body in [("", None), ("all", None), ("add", {"question": "Mine?"})]:
        status, found, _ = ask(server, path, body, token=token, **headers)
        assert (status, found) == (403, {"error": "open the address that the command printed"})
    assert len(server.questions) == 1


def test_another_page_of_the_browser_changes_nothing(server: LabelServer) -> None:
    for origin in ("http://evil.example", "null"):
        assert ask(server, "add", {"question": "Mine?"}, Origin=origin)[0] == 403
    assert len(server.questions) == 1


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("mark", b"{", 400),
        ("mark", b'"DEEP"', 400),
        ("mark", {"number": 0, "evidence": [[0, 0, 3]]}, 400),
        ("mark", {"number": 0, "evidence": [{"document": 0, "start": None, "end": 3}]}, 400),
        ("mark", {"number": 10**30, "evidence": []}, 400),
        ("add", {"question": " "}, 400),
        ("add", {"question": "x" * 10_001}, 400),
        ("add", {"question": 5}, 400),
        ("text?document=x&at=0", None, 400),
        ("nowhere", {"a": 1}, 404),
        ("text?document=7&at=0", None, 400),
        ("nowhere", None, 404),
    ],
)
def test_a_wrong_request_gets_one_sentence_and_changes_nothing(server, path, body, status, deep_json):
    before = server.questions.states()
    found = ask(server, path, body)
    assert found[0] == status
    assert 0 < len(found[1]["error"]) < 300
    assert server.questions.states() == before


def test_a_fault_of_the_program_is_no_wrong_request(
    server: LabelServer, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "retriever", None)
    status, found, _ = ask(server, "search?words=fox")
    assert (status, "the terminal shows where" in found["error"]) == (500, True)
    assert "AttributeError" in capfd.readouterr().err


def test_an_odd_address_is_an_error_without_a_traceback(server: LabelServer, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_connection(("127.0.0.1", server.server_port)) as connection:
        connection.sendall(b"GET http://[/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.makefile("rb").readline() == b"HTTP/1.1 400 Bad Request\r\n"
    assert "Traceback" not in capfd.readouterr().err


def test_a_document_comes_in_parts_that_join_to_its_text(server: LabelServer) -> None:
    text = "One sentence stands here. " * 8_000 + "x" * 50_000
    server.questions.documents = [Document("long.txt", text)]
    joined, at = "", 0
    while at < len(text):
        found = ask(server, f"text?document=0&at={at}")[1]
        assert found["start"] <= at < found["end"]
        assert all(len(part) < 3_000 for _, part in found["units"])
        assert "".join(part for _, part in found["units"]) == text[found["start"] : found["end"]]
        joined += text[at : found["end"]]
        at = found["end"]
    assert joined == text


def test_places_are_code_points_and_odd_characters_keep_their_number(server: LabelServer) -> None:
    found = ask(server, "text?document=1&at=0")[1]
    assert len("".join(part for _, part in found["units"])) == len(DOCUMENTS[1].text)
    assert not set("\x00\ud800") & set("".join(part for _, part in found["units"]))


def test_candidates_are_whole_sentences_each_once_the_best_part_first(tmp_path: Path) -> None:
    documents = [Document("a.md", "The fox naps at noon in the old red barn. It rains. The crow steals the spoon.")]
    index = get_retriever("bm25").index(chunk_corpus(documents, get_chunker("fixed_token:size=12,counter=characters")))
    with LabelServer(LabelledQuestions(documents, tmp_path / "q.jsonl"), index) as server:
        found = [each["text"] for each in server.search("crow spoon noon")["candidates"]]
    assert found[0] == "The crow steals the spoon."
    assert found.count("The fox naps at noon in the old red barn.") == 1
    assert len(set(found)) == len(found)


# The command.


def test_the_command_serves_until_it_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "fox.txt").write_text("The fox naps.", "utf-8")
    wanted = ["questions", "label", str(tmp_path / "docs"), "--no-browser", "-o", str(tmp_path / "q.jsonl")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with started([sys.executable, "-u", "-m", "chunkcore", *wanted], **pipes) as process:
        assert process.stdout is not None
        port, token = process.stdout.readline().split("127.0.0.1:")[1].strip("/\n").split("/")
        connection = HTTPConnection("127.0.0.1", int(port), timeout=60)
        origin = {"Origin": f"http://127.0.0.1:{port}"}
        connection.request("POST", f"/{token}/add", b'{"question": "Who naps?"}', origin)
        assert connection.getresponse().status == 200
        connection.close()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=200)
    assert "calls under way" not in err
    assert "done: 0 of 1 question" in out, err
    assert [row["question"] for row in rows(tmp_path)] == ["Who naps?"]


def test_no_command_line_shows_the_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fox.txt").write_text("The fox naps.", "utf-8")
    addresses: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: addresses.append(address))

    def served(server: LabelServer) -> None:
        (address,) = addresses
        assert server.token not in address
        page = Path(address.removeprefix("file://"))
        assert f"url={server.address}" in page.read_text()
        assert page.parent.stat().st_mode & 0o077 == 0
        raise KeyboardInterrupt

    monkeypatch.setattr(LabelServer, "serve_forever", served)
    output = tmp_path / "out" / "q.jsonl"
    assert main(["questions", "label", str(tmp_path / "fox.txt"), "-o", str(output)]) == 0
    assert not Path(addresses[0].removeprefix("file://")).exists()


def test_an_output_among_the_documents_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "fox.txt").write_text("The fox naps.", "utf-8")
    assert main(["questions", "label", str(tmp_path), "-o", str(tmp_path / "q.jsonl")]) == 2
    assert "write it elsewhere" in capsys.readouterr().err
    assert main(["questions", "label", str(tmp_path), "-o", "q.txt", "--no-browser"]) == 2
    assert "ends in .jsonl" in capsys.readouterr().err


def test_tags_of_html_are_neither_words_nor_evidence_nor_shown(tmp_path: Path) -> None:
    text = '<div class="x"><p>The <b>fox</b> naps.</p>\n<p class="pot">A pot holds tea.</p></div><div><br></div>'
    documents = [Document("fox.html", text), Document("div.txt", "A <div> has a class.")]
    documents.append(Document("rain.html", "Wind is cold. <b>Rain</b> falls."))
    kept = LabelledQuestions(documents, tmp_path / "q.jsonl", ["Who naps?"])
    index = get_retriever("passages:lexical").index(chunk_corpus(documents, get_chunker("sentence:size=5")))
    with LabelServer(kept, index) as server:
        assert server.search("div class")["candidates"][0]["text"] == "A <div> has a class."
        found = server.search("Who naps?")["candidates"]
        assert "fox  naps." in found[0]["text"]
        assert not any("<" in each["text"] for each in found if each["document"] == 0)
        assert server.search("rain")["candidates"][0]["text"] == "Rain  falls."
        units = server.text(0, 0)["units"]
        shown = "".join(each for _, each in units)
        assert len(shown) == len(text)
        assert " ".join(shown.replace("\ufeff", "").split()) == "The fox naps. A pot holds tea."
        assert all(shown[at] == text[at] for at in range(len(text)) if shown[at] not in " \ufeff")
    everything = kept.mark(0, [(0, 0, len(text))])["evidence"]
    assert [each["text"] for each in everything] == [text[text.index("The") : text.index("tea.") + 4]]
