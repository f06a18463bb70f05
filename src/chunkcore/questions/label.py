"""`LabelledQuestions`: questions and the evidence that a person marks; `serve`: the page to mark it in.

The page is served to this machine alone, under an address with a secret token, and loads nothing from elsewhere.
"""

from __future__ import annotations

import json
import re
import secrets
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from itertools import pairwise
from operator import index
from pathlib import Path
from threading import RLock
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from chunkcore.boundaries.sentences import sentence_ranges
from chunkcore.errors import ChunkcoreError, DataError, OptionError
from chunkcore.evaluation.benchmarks.loading import (
    EvidenceError,
    EvidenceFinder,
    document_name,
    entries_of,
    free_id,
)
from chunkcore.files import (
    TABLES,
    check_unchanged,
    csv_rows,
    json_lines,
    json_object,
    locked_folder,
    text_lines,
    true_path,
    utf8_line,
    write_checked,
)
from chunkcore.plain import JsonObject, digest, page_text
from chunkcore.questions.validate import check_questions_file, evidence_of
from chunkcore.report.html import policy
from chunkcore.retrieval.lexicon import without_tags
from chunkcore.retrieval.saved import stamp_of
from chunkcore.run import RankedList, Retriever
from chunkcore.spans import trim
from chunkcore.text import Document, Span

_UNIT = 300  # characters of what one click marks, at most
_PAGE = 40_000  # characters of a document that are sent at once
_BODY = 1_000_000  # bytes of a request
_QUESTION = 10_000  # characters
_PASSAGES, _TOKENS = 20, 2_000  # of a search
_CANDIDATES = 20
_LABELS = ("evidence", "spans", "without_evidence")  # the keys of a row
_HEADING = re.compile(r"\s*#{1,6}\s")
_NO_WIDTH = "\ufeff"  # white space, as the page trims it
_SHOWN = 400  # characters of a candidate in the list
_REPLACED = "evidence that is not found is replaced by what is marked"


Place = tuple[int, int, int]  # a document's number, start and end


class StaleError(DataError):
    """The question was changed elsewhere since it was shown: nothing was saved."""

    status = HTTPStatus.CONFLICT


class _ForbiddenError(DataError):
    status = HTTPStatus.FORBIDDEN


class _MissingError(DataError):
    status = HTTPStatus.NOT_FOUND


class LabelledQuestions:
    """Questions about documents, each with the evidence marked so far, in one file that every change rewrites.

    Questions without evidence yet are in the file, too, so another session resumes; a benchmark leaves them out. Rows
    of an existing file keep their place and other keys. A file that was edited meanwhile is read again before anything
    is saved.

    `path` is a ``questions.jsonl``, created with the first question; `listed` are questions to add, unless they are
    there. A symbolic link stays, and its target is written. Raises `OptionError`: another name than ``*.jsonl``, or a
    file with hard links. Raises `DataError`: the file cannot be read or written, or is not what was written.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> kept = LabelledQuestions([Document("fox.txt", "The fox naps. It rains.")], Path(folder.name, "q.jsonl"))
    >>> kept.mark(kept.add("Who naps?"), [(0, 0, 13)])["evidence"]
    [{'document': 0, 'start': 0, 'end': 13, 'text': 'The fox naps.'}]
    >>> json.loads(Path(folder.name, "q.jsonl").read_text())["evidence"]
    [{'document': 'fox.txt', 'start': 0, 'end': 13, 'text': 'The fox naps.'}]
    >>> folder.cleanup()
    """

    def __init__(
        self,
        documents: Sequence[Document],
        path: Path,
        listed: Iterable[str] = (),
    ) -> None:
        check_questions_file(path)
        self.documents = documents
        self.path = true_path(path)  # one lock for all sessions, whatever link they come by
        if self.path.exists():
            if self.path.stat().st_nlink > 1:  # every save would part the names
                raise OptionError(
                    f"{path} is the same file as another name (a hard link), which would not get what is marked: "
                    "write to a copy, or make the other name a symbolic link"
                )
            check_unchanged(self.path)
        self.numbers = {document.id: number for number, document in enumerate(documents)}
        self._finder = EvidenceFinder(documents)
        self._thread_lock = RLock()
        self._rows: list[JsonObject] = []
        self._stamp: list[int] = []
        self._read_again()
        self._add(listed)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Within the block nobody else changes the file, whose rows are those of `_rows`."""
        with self._thread_lock, locked_folder(self.path.parent):
            self._read_again()
            yield

    def _read_again(self) -> None:
        """Take over the file's rows if it was edited."""
        stamp = stamp_of(self.path)
        if stamp and stamp != self._stamp:
            self._rows = []
            if self.path.stat().st_size:
                self._rows = [row for _, row in json_lines(self.path)]
            self._stamp = stamp

    def _save(self, rows: list[JsonObject]) -> None:
        write_checked({self.path: b"".join(map(utf8_line, rows))})
        self._stamp = stamp_of(self.path)
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def done(self) -> int:
        """How many questions have evidence or are said to have none."""
        return sum(any(map(row.get, _LABELS)) for row in self._rows)

    def state(self, number: int) -> JsonObject:
        """A question as the page shows it: number, id, question, evidence, without_evidence, problem, and a version
        that changes with the row.
        """
        row = self._row(number)
        evidence, problem = self._evidence(row)
        return {
            "number": number,
            "id": str(row.get("id", "")),
            "question": str(row.get("question", "")),
            "evidence": evidence,
            "without_evidence": row.get("without_evidence") is True,
            "problem": problem,
            "version": digest(row, 8),
        }

    def states(self) -> list[JsonObject]:
        """All questions."""
        with self._thread_lock:
            self._read_again()
            return [self.state(number) for number in range(len(self._rows))]

    def add(self, question: str) -> int:
        """The number of this question, which is added unless it is there. Raises `DataError`: it is blank or over
        10,000 characters, or cannot be saved.
        """
        return self._add([question])[0]

    def _add(self, questions: Iterable[str]) -> list[int]:
        texts = [" ".join(question.split()) for question in questions]
        for text in texts:
            if not 0 < len(text) <= _QUESTION:
                raise DataError(f"a question has 1 to {_QUESTION:,} characters, got {len(text):,}")
        with self._locked():
            rows = list(self._rows)
            numbers = {}
            for number, row in enumerate(rows):
                numbers[" ".join(str(row.get("question", "")).split())] = number
            ids = self._ids()
            for text in texts:
                if text not in numbers:
                    numbers[text] = len(rows)
                    rows.append({"id": free_id(ids, len(rows) + 1), "question": text})
            if len(rows) > len(self._rows):
                self._save(rows)
            return [numbers[text] for text in texts]

    def mark(
        self,
        number: int,
        spans: Iterable[Place],
        *,
        without_evidence: bool = False,
        version: str | None = None,
    ) -> JsonObject:
        """Give a question this evidence instead of its former; returns its `state`.

        `spans` are document number, start and end. White space at the ends is left out; spans that touch, or that only
        white space separates, become one. With `without_evidence` and no spans, the documents do not answer
        the question.

        Raises `StaleError`: the question's `version` is another one by now. Raises `DataError`: no such question or
        place, or it cannot be saved. Nothing has changed then.
        """
        with self._locked():
            versions = [digest(row, 8) for row in self._rows[number : number + 1]]
            if version is not None and version not in versions:
                raise StaleError(f"this question was changed in another tab or in {self.path.name}")
            row = self._row(number)
            evidence = self._joined(spans)
            changed = {key: value for key, value in row.items() if key not in _LABELS}
            changed.setdefault("id", free_id(self._ids(), len(self._rows) + 1))
            if evidence:
                changed["evidence"] = evidence
            elif without_evidence:
                changed["without_evidence"] = True
            rows = list(self._rows)
            rows[number] = changed
            self._save(rows)
            return self.state(number)

    def document(self, number: int) -> Document:
        """The document of a number. Raises `DataError` if there is none."""
        if not 0 <= number < len(self.documents):
            raise DataError(f"there are {len(self.documents)} documents, and no number {number}")
        return self.documents[number]

    def _ids(self) -> set[str]:
        return {str(row.get("id")) for row in self._rows}

    def _row(self, number: int) -> JsonObject:
        if not 0 <= number < len(self._rows):
            raise DataError(f"there are {len(self._rows)} questions, and no number {number}")
        return self._rows[number]

    def _joined(self, spans: Iterable[Place]) -> list[JsonObject]:
        """Disjoint evidence in order, as a row has it."""
        joined: list[Place] = []
        for number, start, end in sorted(spans):
            text = without_tags(self.document(number))
            if not 0 <= start < end <= len(text):
                raise DataError(f"evidence lies within 0 and {len(text)}, got {start} to {end}")
            start, end = trim(text, start, end)
            if start == end:
                continue
            if joined:
                before, first, last = joined[-1]
                if before == number and not text[last:start].strip():
                    joined.pop()
                    start, end = first, max(end, last)
            joined.append((number, start, end))
        return [
            evidence_of(self.documents[number], [Span(start, end)]) for number, start, end in joined
        ]

    def _evidence(self, row: JsonObject) -> tuple[list[JsonObject], str]:
        """The evidence by document number, and why some of it is not found."""
        evidence, problem = [], ""
        try:
            entries = entries_of(row)
        except EvidenceError as error:
            return [], f"{_REPLACED}: {error}"
        for entry in entries:
            try:
                place = self._finder.find(entry, document_name(row.get("document_id")))
            except EvidenceError as error:
                problem = f"{_REPLACED}: {error}"
                continue
            number = self.numbers[place.document_id]
            text = place.span.slice(self.documents[number].text)
            evidence.append(_piece(number, place.span, text))
        return evidence, problem


def _piece(document: int, span: Span, text: str) -> JsonObject:
    return {"document": document, "start": span.start, "end": span.end, "text": text}


def read_listed(path: Path, column: str = "") -> list[str]:
    """The questions of a list: one a line; or a column of a CSV or TSV, or a key of JSON lines.

    Raises `OptionError`: a table without a column's name, or a column for plain lines; or `DataError`.
    """
    kind = path.suffix.lower()
    is_table = kind in (*TABLES, ".jsonl", ".ndjson")
    if is_table != bool(column):
        raise OptionError(
            f"{path.name}: --column names the column of a CSV, TSV or JSON lines; others are read line by line"
        )
    if not is_table:
        return [text for _, text in text_lines(path) if text.strip()]
    rows = csv_rows(path, [column]) if kind in TABLES else json_lines(path)
    values = [row.get(column) for _, row in rows]
    texts = [value for value in values if isinstance(value, str) and value.strip()]
    if not texts:
        raise DataError(
            f"{path} has no text in {column!r}: name the column of its questions with --column"
        )
    return texts


class LabelServer(ThreadingHTTPServer):
    """Serves the page on 127.0.0.1 until it is shut down; `address` opens it.

    A request needs the token of the address, this machine as its host, and, to change anything, this page as its
    origin: another page in the same browser, or another user's program, gets an error.

    `retriever` finds passages for a question; port 0 is a free one. Raises `OptionError`: the port is not to be had.
    """

    daemon_threads = True

    def __init__(
        self,
        questions: LabelledQuestions,
        retriever: Retriever,
        port: int = 0,
    ) -> None:
        self.questions = questions
        self.retriever = retriever
        self.token = secrets.token_urlsafe(24)
        self.units = lru_cache(maxsize=64)(self._units)
        # A tag is shown as one space: its other characters keep their places without a width.
        self.shown = lru_cache(maxsize=8)(
            lambda number: without_tags(questions.document(number), _NO_WIDTH)
        )
        try:
            super().__init__(("127.0.0.1", port), _Requests)
        except (OSError, OverflowError) as error:
            raise OptionError(
                f"port {port} cannot be used ({error}): name another one, or 0 for any"
            ) from error

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away is no error."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    def _units(self, number: int) -> list[int]:
        """Where the sentences of a document start, parts of very long ones too; and where it ends."""
        text = without_tags(self.questions.documents[number])
        starts = []
        for start, end in sentence_ranges(text).tolist():
            while end - start > _UNIT:
                starts.append(start)
                space = text.rfind(" ", start + 1, start + _UNIT)
                start = space + 1 if space > 0 else start + _UNIT
            starts.append(start)
        return [0, *starts[1:], len(text)]

    def page(self) -> tuple[bytes, str]:
        """The page, and its content security policy."""
        folder = files("chunkcore.questions")
        names = ("label.css", "label.js", "label.html")
        style, script, body = (folder.joinpath(name).read_text("utf-8") for name in names)
        body = body.replace("/*style*/", style).replace("/*script*/", script)
        return body.encode(), f"{policy(style, script)}; connect-src 'self'"

    def all(self) -> JsonObject:
        """What the page starts from."""
        documents = [
            {"name": page_text(doc.id), "size": len(doc.text)} for doc in self.questions.documents
        ]
        return {
            "questions": self.questions.states(),
            "documents": documents,
            "file": page_text(str(self.questions.path)),
        }

    def search(self, words: str) -> JsonObject:
        """Candidates for these words: the sentences of the passages' best parts, best first."""
        passages = self.retriever.retrieve(words[:_QUESTION], _PASSAGES, _TOKENS)
        parts = sorted(RankedList(passages).parts, key=lambda part: -part.score)
        candidates = {}
        for part in parts:
            number = self.questions.numbers[part.document_id]
            place = self._sentences(number, part.spans[0])
            text = place.slice(self.shown(number)).replace(_NO_WIDTH, "").strip()
            if text:
                candidate = _piece(number, place, page_text(text[:_SHOWN]))
                candidate["pages"] = self.questions.documents[number].pages_of(place)
                candidates[number, place] = candidate
        return {"candidates": list(candidates.values())[:_CANDIDATES]}

    def _sentences(self, number: int, span: Span) -> Span:
        """The sentences of a document that a part touches.

        A heading answers nothing: the sentence after it stands for it.
        """
        text, starts = self.questions.documents[number].text, self.units(number)
        part_text = self.shown(number)[span.start : span.end].replace(_NO_WIDTH, " ")
        # A tag before the part belongs to the sentence before.
        start, end = trim(part_text, 0, len(part_text))
        first = _unit_at(starts, span.start + start)
        while first < len(starts) - 2 and _HEADING.match(text, starts[first]):
            first += 1
        last = min(bisect_left(starts, span.start + end), len(starts) - 1)
        return Span(starts[first], starts[max(first + 1, last)])

    def text(self, number: int, at: int) -> JsonObject:
        """A document's sentences around a place: each its start, and its text with what follows it."""
        text, starts = self.shown(number), self.units(number)
        first = _unit_at(starts, at - _PAGE // 2)
        last = bisect_left(starts, starts[first] + _PAGE)
        bounds = starts[first : last + 1]
        units = [[start, page_text(text[start:end])] for start, end in pairwise(bounds)]
        return {
            "document": number,
            "start": bounds[0],
            "end": bounds[-1],
            "size": len(text),
            "units": units,
        }


def _unit_at(starts: Sequence[int], place: int) -> int:
    """The number of the unit that a place is in; the last start is the document's end."""
    return min(max(0, bisect_right(starts, place) - 1), len(starts) - 2)


class _Requests(BaseHTTPRequestHandler):
    server: LabelServer
    protocol_version = "HTTP/1.1"
    timeout = 60
    server_version, sys_version = "chunkcore", ""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing: the token would be in every line."""

    def do_GET(self) -> None:
        """Send the page or an answer as JSON; or one sentence, when the request or the work fails."""
        try:
            answer = self._asked()()
        except ChunkcoreError as error:
            status = getattr(error, "status", HTTPStatus.BAD_REQUEST)
            self._send(status, {"error": page_text(str(error))})
        except Exception:  # noqa: BLE001  # the page must hear of it
            self.server.handle_error(self.request, self.client_address)
            advice = "this failed by a fault of the program; the terminal shows where"
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": advice})
        else:
            self._send(HTTPStatus.OK, answer)

    do_POST = do_GET  # noqa: N815

    def _asked(self) -> Callable[[], JsonObject | None]:
        """What gives the answer to the page; None stands for the page. Raises `ChunkcoreError`: it asks wrongly."""
        port = self.server.server_port
        try:
            token, _, path = urlsplit(self.path).path.removeprefix("/").partition("/")
            is_known = secrets.compare_digest(token.encode(), self.server.token.encode())
            # Another host's name means that a page elsewhere has its name lead here.
            is_here = self.headers.get("Host") in (f"127.0.0.1:{port}", f"localhost:{port}")
            if not (is_known and is_here):
                raise _ForbiddenError("open the address that the command printed")
            return self._read_request(path)
        except ChunkcoreError:
            raise
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise DataError("the page asks for nothing of this kind") from error

    def _read_request(self, path: str) -> Callable[[], JsonObject | None]:
        """What gives the answer. Raises `_MissingError`, or what Python raises for a wrong request."""
        server, questions = self.server, self.server.questions
        if self.command == "POST":
            body = self._body()
            if path == "add":
                question = body["question"].strip()
                return lambda: questions.state(questions.add(question))
            if path == "mark":
                spans = [_place(piece) for piece in body["evidence"]]
                number, version = index(body["number"]), str(body["version"])
                is_without = body.get("without_evidence") is True
                return lambda: questions.mark(
                    number, spans, without_evidence=is_without, version=version
                )
        else:
            query = dict(parse_qsl(urlsplit(self.path).query))
            if path == "":
                return lambda: None
            if path == "all":
                return server.all
            if path == "search":
                return lambda: server.search(query.get("words", ""))
            if path == "text":
                number, at = int(query["document"]), int(query["at"])
                return lambda: server.text(number, at)
        raise _MissingError("there is no such page")

    def _body(self) -> JsonObject:
        if self.headers.get("Origin") != f"http://{self.headers.get('Host')}":
            raise _ForbiddenError("only this page may change questions")
        size = int(self.headers.get("Content-Length", 0))
        if not 0 < size <= _BODY:
            raise DataError(f"a request has 1 to {_BODY:,} bytes")
        return json_object(self.rfile.read(size).decode("utf-8", "replace"))

    def _send(self, status: HTTPStatus, answer: JsonObject | None) -> None:
        if answer is None:
            kind = "text/html; charset=utf-8"
            body, allowed = self.server.page()
        else:
            kind = "application/json"
            body, allowed = json.dumps(answer).encode("ascii"), "default-src 'none'"
        if status != HTTPStatus.OK:
            self.close_connection = True  # what else was sent is not read
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Content-Security-Policy": f"{allowed}; frame-ancestors 'none'",
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _place(piece: JsonObject) -> Place:
    """A place as a request has it. Raises `TypeError`: a number is no whole one."""
    return index(piece["document"]), index(piece["start"]), index(piece["end"])
