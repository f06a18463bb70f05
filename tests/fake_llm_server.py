"""A server of OpenAI's chat protocol that fails in the way that the model's name asks for.

The model "refusal" always refuses, "refusal*2" twice before it answers, "ok" never; what follows a second star only
tells models apart. Every valid answer is JSON of the schema that was sent. As a process of its own, it prints its
address:

    python -m tests.fake_llm_server
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.fakes import answer_of_schema

# Where no schema comes along: what every strategy finds its own answer in.
_ANY_ANSWER = {
    "split_after": [0],
    "first_changed": 2,
    "sections": [{"first": 1, "title": "All of it", "reason": "It is one thing."}],
    "propositions": ["This is a fact."],
    "context": "This is from the document.",
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        default = embed if self.path.endswith("/embeddings") else answer
        fault, _, times = body["model"].partition("*")
        with self.server.lock:
            self.server.seen[body["model"]] += 1
            number = self.server.seen[body["model"]]
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.log.append({"time": time.monotonic(), "headers": headers, "body": body})
        is_faulty = not times or number <= int(times)
        (FAULTS.get(fault, default) if is_faulty else default)(self, body)

    def wait_at_the_gate(self) -> None:
        self.server.gate.wait(len(self.server.log))

    def send(self, data: bytes, status: int = 200, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def complete(self, content: Any, finish: str = "stop", usage: Any = "counted", **message: Any) -> None:
        if usage == "counted":
            usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
            usage["prompt_tokens_details"] = {"cached_tokens": 64}
        choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
        data = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
        self.send(json.dumps(data | ({"usage": usage} if usage else {})).encode())

    def error(self, status: int, message: str, code: str | None = None, **headers: str) -> None:
        self.send(json.dumps({"error": {"message": message, "code": code}}).encode(), status, **headers)

    def log_message(self, *_: Any) -> None:
        pass


def good(body: dict[str, Any]) -> dict[str, Any]:
    held = body.get("response_format")
    if held is None:
        return _ANY_ANSWER
    found: dict[str, Any] = answer_of_schema(held["json_schema"]["schema"], random.Random(0))
    for section, first in zip(found.get("sections", []), range(1, 99), strict=False):
        section["first"] = first
    if "first_changed" in found:
        found["first_changed"] = held["json_schema"]["schema"]["properties"]["first_changed"]["maximum"]
    if "split_after" in found:
        found["split_after"] = sorted(set(found["split_after"]))
    return found


def embed(handler: Handler, body: dict[str, Any]) -> None:
    """Vectors of the texts' lengths and of the length of the key, the last first."""
    key = handler.headers["Authorization"].removeprefix("Bearer ")
    rows = [{"index": n, "embedding": [len(text), len(key)]} for n, text in enumerate(body["input"])]
    handler.send(json.dumps({"object": "list", "data": rows[::-1], "model": "m"}).encode())


def answer(handler: Handler, body: dict[str, Any]) -> None:
    handler.complete(json.dumps(good(body)))


def off_by(change: Callable[[list[int]], list[int]]) -> Callable[[Handler, dict[str, Any]], None]:
    """Every list of numbers, and every number, changed."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: walk(each) for key, each in value.items()}
        if isinstance(value, list) and value and all(isinstance(each, int) for each in value):
            return change(value)
        if isinstance(value, list):
            return [walk(each) for each in value]
        return change([value])[0] if isinstance(value, int) else value

    return lambda handler, body: handler.complete(json.dumps(walk(good(body))))


def truncated(handler: Handler, body: dict[str, Any]) -> None:
    text = json.dumps(good(body))
    handler.complete(text[: len(text) // 2], finish="length")


def truncated_body(handler: Handler, body: dict[str, Any]) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [{"message": {"content"')
    handler.close_connection = True


def hanging(handler: Handler, body: dict[str, Any]) -> None:
    time.sleep(600)


def gated(handler: Handler, body: dict[str, Any]) -> None:
    handler.wait_at_the_gate()
    answer(handler, body)


def without_schema(handler: Handler, body: dict[str, Any]) -> None:
    if "response_format" in body:
        handler.error(400, "response_format is not supported")
    else:
        answer(handler, body)


def close(handler: Handler, body: dict[str, Any]) -> None:
    handler.close_connection = True


def redirected(handler: Handler, body: dict[str, Any]) -> None:
    handler.send(b"", int(body["model"][-3:]), location="/elsewhere/v1/chat/completions")


FAULTS: dict[str, Callable[[Handler, dict[str, Any]], None]] = {
    "refusal": lambda handler, body: handler.complete(None, refusal="I can't help with that."),
    "filtered": lambda handler, body: handler.complete("", finish="content_filter"),
    "prose": lambda handler, body: handler.complete("The content changes after the third paragraph, I'd say."),
    "fenced": lambda handler, body: handler.complete(
        f"<think>Maybe {{1}}?</think>Sure:\n```json\n{json.dumps(good(body))}\n```\nHope this helps!"
    ),
    "out_of_range": off_by(lambda numbers: [number + 100_000 for number in numbers]),
    "unsorted": off_by(lambda numbers: [9, 5, 2]),
    "negative": off_by(lambda numbers: [-number - 1 for number in numbers]),
    "strings": lambda handler, body: handler.complete(
        '{"split_after": ["3"], "first_changed": "3", "sections": "all", "propositions": "It is.", "context": 5}'
    ),
    "nan": lambda handler, body: handler.complete(
        '{"split_after": [NaN], "first_changed": NaN, "sections": [NaN], "propositions": [NaN], "context": NaN}'
    ),
    "wrong_keys": lambda handler, body: handler.complete('{"answer": 42}'),
    "null": lambda handler, body: handler.complete(None),
    "truncated": truncated,
    "truncated_body": truncated_body,
    "hanging": hanging,
    "gated": gated,
    "http_429": lambda handler, body: handler.error(429, "slow down", retry_after="0.1"),
    "quota": lambda handler, body: handler.error(429, "you have no money", "insufficient_quota", retry_after="0.01"),
    "http_500": lambda handler, body: handler.error(500, "oops", retry_after="0.01"),
    "error_200": lambda handler, body: handler.error(200, "out of order"),
    "http_503": lambda handler, body: handler.send(b"<html>busy</html>", 503, "text/html", retry_after="0.01"),
    "http_400": lambda handler, body: handler.error(400, "your messages are too long"),
    "http_401": lambda handler, body: handler.error(401, f"Wrong key: {handler.headers['Authorization']}"),
    "http_404": lambda handler, body: handler.error(404, "no such model"),
    "filter_400": lambda handler, body: handler.error(400, "this was filtered", "content_filter"),
    "without_schema": without_schema,
    "latin1": lambda handler, body: handler.send('{"choices": "é"}'.encode("latin-1")),
    "no_json": lambda handler, body: handler.send(b"[" * 5_000),
    "html": lambda handler, body: handler.send(b"<html>Welcome!</html>", kind="text/html"),
    "no_choices": lambda handler, body: handler.send(b'{"choices": {}}'),
    "close": close,
    "moved": lambda handler, body: handler.send(b"", 307, location=f"http://[{handler.headers['Authorization']}"),
    "redirect_308": redirected,
    "no_usage": lambda handler, body: handler.complete(json.dumps(good(body)), usage=None),
}
# What no question can get past, what is right in the end, and what is never an answer to anything.
FATAL = ("http_400", "http_401", "http_404", "quota", "close", "truncated_body", "moved", "redirect_308")
HARMLESS = ("fenced", "no_usage", "without_schema")
LASTING = tuple(fault for fault in FAULTS if fault not in (*FATAL, *HARMLESS, "hanging", "gated"))


class Gate:
    """Where a server's questions wait from number `most` + 1 on, until it is open. What is asked then takes long."""

    def __init__(self) -> None:
        self.most = sys.maxsize
        self.opened = threading.Event()

    def wait(self, number: int) -> None:
        if number > self.most and self.opened.is_set():
            time.sleep(2)  # a program that stops does not ask it
        elif number > self.most:
            self.opened.wait(60)


class FakeServer(ThreadingHTTPServer):
    """Attributes: the address of its endpoint; what it was asked; where "gated" answers wait."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 100  # of five, a sixth at the same moment would come a second later

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self.log: list[dict[str, Any]] = []
        self.seen: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.gate = Gate()

    def handle_error(self, *asked: Any) -> None:
        """Whoever hung up is not told of, least of all on what is another test's standard error by then."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(*asked)


@contextmanager
def running() -> Iterator[FakeServer]:
    """A server in a thread of this process."""
    with FakeServer() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        try:
            yield server
        finally:
            server.gate.opened.set()
            server.shutdown()


if __name__ == "__main__":
    with FakeServer() as main:
        print(main.url, flush=True)
        main.serve_forever()
