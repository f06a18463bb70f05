"""A real browser labels questions, in documents that try to harm it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from chunkcore import Document, Index, chunk_corpus, get_chunker, get_retriever
from chunkcore.questions.label import LabelledQuestions, LabelServer

from integration_tests.browser import Browser

HOSTILE = "<script>window.hurt=1</script><img src=x onerror='window.hurt=1'> \u202e\x00 </style></textarea>"
DOCUMENTS = [
    Document("tea.md", "🫖 Tea is hot. The pot holds a litre. It is blue.\n\nThe cups are small. " * 3),
    Document(f"{HOSTILE}.txt", f"{HOSTILE} The crow steals the spoon. {HOSTILE}"),
]


@pytest.fixture
def page(tab: Browser, tmp_path: Path) -> Iterator[tuple[Browser, Path, LabelServer]]:
    output = tmp_path / "q.jsonl"
    index = get_retriever("bm25").index(chunk_corpus(DOCUMENTS, get_chunker("sentence:size=20")))
    with shown(tab, DOCUMENTS, output, HOSTILE, index) as server:
        tab.size(1440, 900)
        tab.wait("document.querySelectorAll('#questions li').length === 1")
        yield tab, output, server


@contextmanager
def shown(
    tab: Browser, documents: Sequence[Document], output: Path, question: str, index: Index
) -> Iterator[LabelServer]:
    """The page with one question, in the browser."""
    with LabelServer(LabelledQuestions(documents, output, [question]), index) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            tab.go_to(server.address)
            yield server
        finally:
            tab.go_to("about:blank")
            server.shutdown()
            thread.join()


def key(tab: Browser, name: str) -> None:
    pressed = f"new KeyboardEvent('keydown', {{key: {json.dumps(name)}, bubbles: true, cancelable: true}})"
    tab.ask(f"document.activeElement.dispatchEvent({pressed})")


def ask(tab: Browser, question: str) -> None:
    """Type a question and wait for what is found."""
    key(tab, "a")
    tab.write(question)
    tab.press("Enter")
    tab.wait(f"document.getElementById('asked').textContent === {json.dumps(question)}")
    tab.wait("document.querySelector('#candidates [aria-current]') && document.querySelector('#text .here')")


def standing_out(tab: Browser) -> str:
    """The sentences under the cursor."""
    text: str = tab.ask("[...document.querySelectorAll('#text .here')].map((each) => each.textContent).join('')")
    return text.strip()


def evidence(output: Path) -> dict[str, list[str]]:
    rows = [json.loads(line) for line in output.read_text("utf-8").splitlines()] if output.exists() else []
    is_done = ("evidence", "without_evidence")
    return {
        row["question"]: [entry["text"] for entry in row.get("evidence", [])]
        for row in rows
        if any(key in row for key in is_done)
    }


def saved(tab: Browser) -> None:
    tab.ask("saving")


def test_a_question_is_labelled_by_keyboard_alone(page: tuple[Browser, Path, LabelServer]) -> None:
    tab, output, _ = page
    ask(tab, "What does the pot hold?")
    here = standing_out(tab)
    key(tab, " ")
    key(tab, "j")
    key(tab, "j")
    marked = standing_out(tab)
    key(tab, " ")
    saved(tab)
    assert evidence(output)["What does the pot hold?"] == [here, marked]
    key(tab, " ")  # taken away again
    saved(tab)
    assert evidence(output)["What does the pot hold?"] == [here]
    key(tab, "u")  # undone
    saved(tab)
    assert evidence(output)["What does the pot hold?"] == [here, marked]
    key(tab, "x")
    saved(tab)
    assert json.loads(output.read_text("utf-8").splitlines()[-1])["without_evidence"] is True
    assert not tab.errors


def test_enter_accepts_the_sentence_that_stands_out_and_nothing_is_kept_without_a_key(page):
    tab, output, server = page
    for question in ("What does the pot hold?", "Who steals the spoon?", "Is tea hot?"):
        server.questions.add(question)
    tab.reload()
    tab.wait("document.querySelectorAll('#questions li').length === 4 && document.querySelector('#text .here')")
    tab.ask("open(1)")
    seen = []
    for name in ("n", "n", "p", "ArrowRight", "ArrowLeft"):  # looking keeps nothing
        at = tab.ask("state.candidate")
        key(tab, name)
        tab.wait(f"state.candidate !== {at}")
        seen.append(tab.ask("state.candidate"))
    assert seen == [1, 2, 1, 2, 1]
    key(tab, ".")
    tab.wait("state.now === 2 && document.querySelector('#text .here')?.textContent.includes('crow')")
    assert evidence(output) == {}
    assert tab.ask("document.querySelectorAll('#text .near').length") == 1  # after it; nothing is before it
    here = standing_out(tab)
    assert here.endswith("The crow steals the spoon.")
    key(tab, "Enter")
    tab.wait("state.now === 3 && document.querySelector('#text .here')")
    assert evidence(output) == {"Who steals the spoon?": [here.replace("␀", "\x00")]}
    key(tab, "u")  # undone where it was done
    tab.wait("state.now === 2 && !isDone(state.questions[2]) && document.querySelector('#text .here')")
    saved(tab)
    assert evidence(output) == {}
    key(tab, " ")  # with a mark of one's own, Enter adds none
    key(tab, "j")
    key(tab, "Enter")
    tab.wait("state.now === 3")
    assert evidence(output) == {"Who steals the spoon?": [here.replace("␀", "\x00")]}
    assert not tab.errors


def test_clicks_and_a_selection_over_emoji_give_exact_places(page: tuple[Browser, Path, LabelServer]) -> None:
    tab, output, _ = page
    ask(tab, "Is tea hot?")
    tab.ask(
        """(() => {
          const span = document.querySelector('#text > span'), text = span.firstChild, range = document.createRange();
          range.setStart(text, text.data.indexOf('Tea')); range.setEnd(text, text.data.indexOf(' hot'));
          getSelection().removeAllRanges(); getSelection().addRange(range);
          document.getElementById('text').dispatchEvent(new MouseEvent('mouseup', {bubbles: true}));
        })()"""
    )
    saved(tab)
    assert evidence(output)["Is tea hot?"] == ["Tea is"]
    for _ in range(3):  # faster than any answer: three clicks, three marks
        tab.ask("[...document.querySelectorAll('#text > span')].slice(4, 7).forEach((each) => each.click())")
    saved(tab)
    assert tab.ask("document.querySelectorAll('#text mark').length") > 0
    row = json.loads(output.read_text("utf-8").splitlines()[-1])
    assert all(DOCUMENTS[0].text[piece["start"] : piece["end"]] == piece["text"] for piece in row["evidence"])
    assert not tab.errors


def test_hostile_documents_run_nothing_and_fetch_nothing(page: tuple[Browser, Path, LabelServer]) -> None:
    tab, output, server = page
    ask(tab, "Who steals the spoon?")
    tab.ask("[...document.querySelectorAll('#text > span')].forEach((each) => each.click())")
    saved(tab)
    assert tab.ask("window.hurt") is None
    assert tab.ask("document.querySelectorAll('#text img, #text script, #candidates img, nav img').length") == 0
    assert all(url.startswith(server.address) for url in tab.requests.values())
    assert "The crow steals the spoon." in "".join(evidence(output)["Who steals the spoon?"])


def test_a_server_that_is_gone_is_told_and_a_wide_and_a_narrow_screen_fit(page):
    tab, _, server = page
    ask(tab, "Is it blue?")
    for width in (1440, 1024, 390):
        tab.size(width, 850)
        assert tab.ask("document.documentElement.scrollWidth <= innerWidth")
    server.shutdown()
    server.socket.close()
    tab.ask("fetch = () => Promise.reject(new Error('gone'))")
    key(tab, " ")
    saved(tab)
    assert "start it again" in tab.ask("document.getElementById('trouble').textContent")
