"""`load_benchmark`: documents and questions from files; rows to queries with evidence.

Offsets are verified, excerpts are searched, nothing is guessed.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from itertools import islice
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

from chunkcore import guesses
from chunkcore.errors import DataError, counted, echo, kind_of, warn_user
from chunkcore.evaluation.benchmarks.benchmark import (
    Benchmark,
    DataProblem,
    Evidence,
    Query,
    QuestionRow,
    Questions,
    question_rows,
)
from chunkcore.files import check_unchanged, read_text
from chunkcore.locating import DocumentNames
from chunkcore.locating.alignment import Aligner
from chunkcore.locating.text_search import (
    Searchable,
    loosen,
    occurrences,
)
from chunkcore.options import suggesting
from chunkcore.plain import JsonObject
from chunkcore.reading.opening import Row, load_documents
from chunkcore.reading.visible import from_source, source_of
from chunkcore.retrieval.lexicon import end_of_sign, without_tags
from chunkcore.text import Document, Span, check_document

_COUNTED = 1000  # occurrences of an excerpt are counted up to this
_NAMED = 3  # occurrences named in a message
_WINDOW = _STRIDE = 16  # characters; the index takes one byte per character of the documents
_LEAST = 4  # letters of an excerpt that is found in another spelling
_TRIED = 200  # excerpts that are searched in other spellings in all documents, which is slow


class EvidenceError(DataError):
    """Evidence that cannot be used; the question is left out. `kind` as of `DataProblem`."""

    kind = "malformed"


class _NotFoundError(EvidenceError):
    kind = "not-found"


class _AmbiguousError(EvidenceError):
    kind = "ambiguous"


class EvidenceFinder:
    """Finds the spans of a benchmark file's evidence.

    An excerpt that is nowhere word for word is accepted where it stands at one place with other white space, case,
    quotation marks, dashes or Unicode form; `notes` says so. Messages name the reasons of `unread` files.

    `by_words`: the documents are the app's own, which may differ from those that were marked. Evidence whose offsets
    hold another text is sought by its words, and so is an excerpt with other punctuation.

    >>> finder = EvidenceFinder([Document("fox.txt", "The fox naps. The dog naps.")])
    >>> finder.find("The dog")
    Evidence(document_id='fox.txt', span=Span(start=14, end=21))
    >>> finder.find({"text": "naps", "occurrence": 2}).span
    Span(start=22, end=26)
    """

    def __init__(
        self,
        documents: Sequence[Document],
        unread: Mapping[str, str] | None = None,
        by_words: bool = False,
    ) -> None:
        self.notes: list[str] = []
        self._by_words = by_words
        self._unread = unread or {}
        self._documents = {document.id: document for document in documents}
        self._listed = list(self._documents.values())
        self._untried = _TRIED
        # Their indexes are made when they are used.
        texts = [document.text for document in self._listed]
        self._all = Searchable(texts, None, window=_WINDOW, stride=_STRIDE)
        self._aligner = Aligner(self._listed)
        self._loosened = cache(lambda name: loosen(without_tags(self._documents[name])))

    def find(self, entry: Any, document_id: str = "") -> Evidence:
        """The span of one entry. Raises `EvidenceError`: no such place, or several.

        docs/reference/formats.md lists the entries. One without a document is of `document_id`; "" is all documents.
        """
        if isinstance(entry, str):
            entry = {"text": entry}
        if not isinstance(entry, Mapping):
            raise EvidenceError(
                f"evidence is an excerpt or an object with start and end or text, got {type(entry).__name__}"
            )
        name = entry.get("document_id", entry.get("document", document_id))
        chosen = self._chosen(document_name(name))
        start, end, text = entry.get("start"), entry.get("end"), entry.get("text")
        has_offsets = start is not None or end is not None
        is_whole = entry.get("whole") is True
        if (has_offsets or is_whole) and len(chosen) != 1:
            raise EvidenceError(
                "evidence with offsets, or a whole document, must name its document; this names none"
            )
        if has_offsets:
            return self._at_offsets(chosen[0], start, end, text)
        if is_whole:
            document = chosen[0]
            if not document.text:
                raise EvidenceError(f"its document {echo(document.id)} is empty")
            return Evidence(document.id, Span(0, document.size))
        if isinstance(text, str):
            return self._excerpt(text, chosen, entry.get("occurrence"))
        raise EvidenceError(f"evidence needs start and end, or text, got {echo(list(entry))}")

    def _at_offsets(self, document: Document, start: Any, end: Any, text: Any) -> Evidence:
        try:
            span = from_source(document, Span(start, end))
        except DataError as error:
            raise EvidenceError(str(error)) from error
        words = span.slice(document.text)
        is_there = text in (None, words)
        if source_of(document) and isinstance(text, str):  # the file's words may hold tags
            is_there = _bare(text) == _bare(words)
        is_inside = span.end <= document.size
        if is_there and is_inside:
            return Evidence(document.id, span)
        name = echo(document.id)
        problem = f"at {span.start}-{span.end} of {name} stands {echo(words)}, not {echo(text)}"
        if not is_inside:
            problem = f"evidence ends at {span.end}, its document {name} at {document.size}"
        if self._by_words and isinstance(text, str):
            try:
                evidence = self._excerpt(text, [document])
            except EvidenceError as error:
                raise _NotFoundError(f"{problem}; {error}") from error
            self.notes.append(f"{problem}, and was taken at {evidence.span.start}")
            return evidence
        raise _NotFoundError(problem)

    def _chosen(self, document_id: str) -> Sequence[Document]:
        if not document_id:
            return self._listed
        if document_id in self._documents:
            return [self._documents[document_id]]
        reason = f"is not among the {counted(len(self._documents), 'document')}"
        if document_id in self._unread:
            reason = f"was not read: it {self._unread[document_id]}"
        else:
            for names in self._names.groups([document_id]):  # the first
                return [self._documents[name] for name in names]
        raise _NotFoundError(f"its document {echo(document_id)} {reason}")

    @cached_property
    def _names(self) -> DocumentNames:
        return DocumentNames(self._documents)

    def _excerpt(self, text: str, chosen: Sequence[Document], occurrence: Any = None) -> Evidence:
        if not text.strip():
            raise EvidenceError("an excerpt is blank")
        if occurrence is not None and (type(occurrence) is not int or occurrence < 1):
            raise EvidenceError(f"occurrence counts from 1, got {echo(occurrence)}")
        exact = list(islice(self._places(text, chosen), _COUNTED))
        places = exact or list(islice(self._loosely(text, chosen), _COUNTED))
        about, count = f"the excerpt {echo(text)}", len(places)
        times = counted(count, "time")
        where = f"in any of the {len(chosen)} documents"
        advice = ": chunkcore questions check --fix may correct it"
        if len(chosen) == 1:
            where = f"in {chosen[0].id!r}"
        elif self._unread:
            name, reason = next(iter(self._unread.items()))
            advice = f"; {name!r} was not read, as it {reason}"
        if not places:
            raise _NotFoundError(f"{about} is not found {where}{advice}")
        if occurrence is None and count > 1:
            named = [f"{document.id!r} at {span.start}" for document, span in places[:_NAMED]]
            named += ["..."] * (count > _NAMED)
            raise _AmbiguousError(
                f"{about} occurs {times} ({', '.join(named)}): "
                'quote more words, name its document, or add "occurrence": 2'
            )
        number = occurrence or 1
        if number > count:
            raise _NotFoundError(f"{about} occurs {times} {where}, not {occurrence} times")
        document, span = places[number - 1]
        if not exact:
            words = echo(span.slice(document.text))
            place = f"{words} at {span.start}-{span.end} of {document.id!r}"
            self.notes.append(f"{about} is {place}, and was taken as that")
        return Evidence(document.id, span)

    def _loosely(self, text: str, chosen: Sequence[Document]) -> Iterator[tuple[Document, Span]]:
        """Where the excerpt stands in other white space, case, quotation marks, dashes, Unicode form or HTML."""
        sought = loosen(text).text
        if len(sought) < _LEAST or not self._untried:
            return
        self._untried -= len(chosen) > 1
        is_there = False
        for document in chosen:
            form = self._loosened(document.id)
            for start in occurrences(form.text, sought):
                is_there = True
                span = form.span(start, start + len(sought))
                yield document, Span(span.start, end_of_sign(document, span.end - 1))
        if self._by_words and not is_there:
            only = chosen[0].id if len(chosen) == 1 else ""
            located = self._aligner.locate(text, document_id=only)
            if located.match == "folded":
                yield self._documents[located.document_id], located.spans[0]

    def _places(self, text: str, chosen: Sequence[Document]) -> Iterator[tuple[Document, Span]]:
        """Where the excerpt stands. Without an index, ten thousand excerpts in a gigabyte would take hours."""
        if chosen is self._listed:
            for owner, start in self._all.places(text, None):
                yield self._listed[owner], Span(start, start + len(text))
            return
        for document in chosen:
            for start in occurrences(document.text, text):
                yield document, Span(start, start + len(text))


def _bare(text: str) -> str:
    """The letters and digits of a text of HTML, without its tags."""
    return "".join(filter(str.isalnum, without_tags(Document("a.html", text))))


def document_name(name: Any) -> str:
    """The id of a question, or of the document that it names; numbers become strings, as in a ``documents.jsonl``.

    "" for None. Raises `EvidenceError`: neither a string nor a whole number.
    """
    if isinstance(name, str | None):
        return name or ""
    if isinstance(name, bool) or not isinstance(name, Integral):  # NumPy's, too
        raise EvidenceError(
            f"documents and questions are named with a string or a whole number, got {echo(name)}"
        )
    return str(name)


class QuestionReader:
    """Collects queries, and a problem for each unusable question.

    A row with a true ``without_evidence`` goes to `without_evidence`; a row with ``left_out`` is left out for that
    reason. Rows without an id get none of the others. `places` has the place of each question in messages, by its id.
    Evidence that was accepted in another spelling is named in `notes`.

    Raises `DataError`: a row is no mapping.
    """

    def __init__(
        self,
        contents: Contents,
        by_words: bool = False,
    ) -> None:
        documents, unread = contents.documents, contents.unread
        self.places: dict[str, str] = {}
        self.queries: list[Query] = []
        self.without_evidence: list[Query] = []
        self.problems: list[DataProblem] = []
        self.notes: list[DataProblem] = []
        self._finder = EvidenceFinder(documents, unread, by_words)
        self._collections = {document.id: _collection(document) for document in documents}
        self._named = DocumentNames([*self._collections, *unread])
        self._taken = set()
        for place, row in contents.questions:
            if not isinstance(row, Mapping):
                raise DataError(f"{place}: a question is a mapping, got {kind_of(row)}")
            self._taken.add(str(row.get("id")))
        for place, row in contents.questions:
            self._add(place, row)

    def _add(self, place: str, row: QuestionRow) -> None:
        identity = row.get("id")
        if identity in (None, ""):
            identity = free_id(self._taken, len(self.places) + 1)
        identity = str(identity)
        if identity in self.places:
            reason = (
                f"{place}: the id was given before, at {self.places[identity]}; make ids unique"
            )
            self.problems.append(DataProblem(identity, reason, "repeated-id"))
            return
        self.places[identity] = place
        try:
            query = self._query(identity, understood(row, self._named))
        except EvidenceError as error:
            self.problems.append(DataProblem(identity, f"{place}: {error}", error.kind))
        else:
            queries = self.queries if query.evidence else self.without_evidence
            queries.append(query)
            for note in self._finder.notes:
                self.notes.append(DataProblem(identity, f"{place}: {note}", "respelled"))
        self._finder.notes.clear()

    def _evidence(self, row: QuestionRow, document_id: str) -> tuple[Evidence, ...]:
        entries = entries_of(row)
        if row.get("without_evidence") is True:
            if entries:
                raise EvidenceError(
                    "it has evidence, and says that it is without_evidence: take one of them out"
                )
        elif not entries:
            raise EvidenceError(f"it has no evidence; the line has {echo(list(row))}")
        return tuple(self._finder.find(entry, document_id) for entry in entries)

    def _query(self, identity: str, row: QuestionRow) -> Query:
        if isinstance(row.get("left_out"), str):
            raise EvidenceError(row["left_out"])
        document_name(row.get("id"))  # raises
        question = row.get("question")
        if not isinstance(question, str) or not question.strip():
            raise EvidenceError(
                f"the question is a text that is not blank, got {echo(question)}; the line has {echo(list(row))}"
            )
        document_id = document_name(row.get("document_id"))
        evidence = self._evidence(row, document_id)
        if evidence:
            document_id = evidence[0].document_id
        collection = row.get("collection")
        if not isinstance(collection, str):
            collection = self._collections.get(document_id, "")
        where = row.get("where")
        if not isinstance(where, Mapping | None):
            raise EvidenceError(f'where is an object such as {{"tenant": "a"}}, got {echo(where)}')
        metadata = {key: value for key, value in row.items() if key not in _KEYS}
        return Query(identity, question, evidence, collection, metadata, where)


def free_id(taken: set[str], number: int) -> str:
    """The first of the ids q1, q2, ... from a number on that is not taken; it is then."""
    while f"q{number}" in taken:
        number += 1
    taken.add(f"q{number}")
    return f"q{number}"


_KEYS = {"id", "question", "evidence", "spans", "collection", "without_evidence", "where"}
# What other formats call our keys, whatever their capitals.
_OTHER_NAMES = {
    "question": "query user_input prompt",
    "document_id": "document doc_id doc file_path file_name filename file source corpus_id",
    "evidence": (
        "excerpt excerpts references reference_contexts ground_truth_context ground_truth_contexts "
        "gold_context gold_contexts context contexts passage"
    ),
}


def understood(row: QuestionRow, documents: Container[str] = ()) -> JsonObject:
    """The row with what other formats call otherwise under our names; keys of ours are never replaced.

    A name of a document counts if one of `documents` has it. A table's cell may hold a list or a filter that JSON
    or Python wrote, or NaN for nothing. A text in `evidence` is an excerpt, which may be code.

    >>> understood({"query": "Hot?", "contexts": "['Tea is hot.']"})["evidence"]
    ['Tea is hot.']
    """
    keys = [str(key).lower() for key in row]
    values = list(map(_value, keys, row.values()))
    row, small = dict(zip(row, values, strict=True)), dict(zip(keys, values, strict=True))
    others = dict(_OTHER_NAMES)
    if any(row.get(key) is not None for key in ("spans", "left_out", "without_evidence")):
        del others["evidence"]
    for key, names in others.items():
        for name in (key, *names.split()):
            value = small.get(name)
            is_named = key != "document_id" or (isinstance(value, str) and value in documents)
            if row.get(key) is None and value and is_named:
                row[key] = value
    return row


# Of texts, pairs or objects; not [3, 5], which may be an answer.
_LIST = re.compile(r"\s*\[\s*[\"'\[{\]]")
_LISTED = {*_OTHER_NAMES["evidence"].split(), "spans", "answers"}


def _value(key: str, value: Any) -> Any:
    """What a cell of a table says."""
    if not isinstance(value, str):
        is_nothing = isinstance(value, float) and value != value
        return None if is_nothing else value
    if key == "without_evidence":
        return value.casefold() == "true" or None
    if key == "where" or (key in _LISTED and _LIST.match(value)):
        for read in (json.loads, ast.literal_eval):
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                return read(value.strip())
    return value


def entries_of(row: QuestionRow) -> list[Any]:
    """The evidence of a row, in place of its `spans` too. Raises `EvidenceError`: it is no list."""
    evidence = row.get("evidence")
    if isinstance(evidence, str | Mapping):
        evidence = [evidence]
    if not isinstance(evidence, list | None):
        raise EvidenceError(f"evidence is an excerpt or a list, got {type(evidence).__name__}")
    spans = row.get("spans")
    if spans is None:
        return evidence or []
    try:
        places = [{"start": start, "end": end} for start, end in spans]
    except (TypeError, ValueError):
        raise EvidenceError("spans is a list of pairs [start, end]") from None
    texts = evidence or [None] * len(places)
    if len(texts) != len(places):
        raise EvidenceError(
            f"there are {len(places)} spans and {len(texts)} pieces of evidence: give as many of each"
        )
    return [{**place, "text": text} for place, text in zip(places, texts, strict=True)]


def _collection(document: Document) -> str:
    """The group of a document's questions in tables: its metadata's ``collection``, else its top-level folder."""
    named = document.metadata.get("collection")
    folder = document.id.split("/")[0] if "/" in document.id else ""
    return named if isinstance(named, str) else folder


@suggesting
def load_benchmark(
    documents: str | Path | Sequence[Document],
    questions: Questions | None = None,
    *,
    name: str = "",
    leave_out: Collection[Path] = (),
    follow_links: bool = False,
) -> Benchmark:
    """A benchmark from files.

    docs/reference/formats.md has the formats. A question whose evidence is not found, or found more than once, is left
    out with a warning: `Benchmark.problems` has the reason. An excerpt in another spelling is accepted with a warning.

    Args:
        documents: a folder, a text file, a ``documents.jsonl``, or the documents themselves: those
            that the app has read. Evidence that was marked in other texts is found in them by its words.
        questions: a ``questions.jsonl``, a ``.csv``, or objects such as their lines.
        name: the benchmark's; by default the name of the folder or file.
        leave_out: files to skip.
        follow_links: read links that lead out of a folder of documents.

    Raises:
        DataError: no such path, unreadable files, no questions, no usable question, or two questions of one
            id.

    >>> story = Document("fox.txt", "The fox naps. The dog naps.")
    >>> lines = [{"question": "Who?", "evidence": ["The fox"]}, {"question": "What?", "evidence": ["naps"]}]
    >>> loaded = load_benchmark([story], lines, name="toy")
    >>> [query.id for query in loaded.queries], [problem.query_id for problem in loaded.problems]
    (['q1'], ['q2'])
    """
    contents = contents_of(documents, questions, follow_links, leave_out)
    reader = QuestionReader(contents, by_words=not isinstance(documents, str | Path))
    _check_usable(reader, contents.file or "the questions")
    if reader.notes:
        first = reader.notes[0]
        warn_user(
            f"excerpts that stand at one place in another spelling (white space, case, quotation marks, Unicode form, "
            f"tags) and were accepted: {len(reader.notes):,}; the first, of {first.query_id!r}: {first.reason}"
        )
    if reader.problems:
        first, rows = reader.problems[0], counted(len(contents.questions), "question")
        warn_user(
            f"left out: {len(reader.problems):,} of {rows} (each is in the benchmark's `problems`); the first, "
            f"{echo(first.query_id)}: {first.reason}"
        )
    return Benchmark(
        name or _name_of(documents),
        contents.documents,
        reader.queries,
        tuple(reader.problems),
        tuple(reader.without_evidence),
    )


class Contents(NamedTuple):
    """Documents, and rows of questions with the file that has them; files that were not read, with the reasons."""

    documents: list[Document]
    questions: list[Row]
    file: Path | None
    unread: Mapping[str, str]


def contents_of(
    documents: str | Path | Sequence[Document],
    questions: Questions | None,
    follow_links: bool,
    leave_out: Collection[Path] = (),
    read: Callable[[Questions], Iterable[Row]] = question_rows,
) -> Contents:
    """What is read: documents, and rows of questions, by `read`."""
    unread: dict[str, str] = {}
    if not isinstance(documents, str | Path):
        documents = list(documents)  # a generator is read once
        for document in documents:
            if isinstance(document, Mapping):
                raise DataError(guesses.SWAPPED["load_benchmark"])
            check_document(document)
        if questions is None:
            raise DataError(
                f"{counted(len(documents), 'document')} and no questions: give a questions.jsonl, or its lines"
            )
        file = _file_of(questions)
        return Contents(documents, list(read(questions)), file, unread)
    root = Path(documents)
    if not os.path.exists(root):  # noqa: PTH110  # Path.exists raises for a long text
        raise DataError(f"{root} does not exist: expected documents, as a folder or a file")
    beside, table = root / "questions.jsonl", root / "questions_df.csv"
    if questions is None:
        is_chroma = table.is_file() and (root / "corpora").is_dir()
        questions = table if is_chroma else beside
        if not questions.is_file():
            raise DataError(
                f"there are no questions for {root}: put a questions.jsonl beside the documents, or give its path; "
                f"chunkcore questions label {root} writes one"
            )
    file = _file_of(questions)
    if file == table and (root / "corpora").is_dir():  # the Chroma report's
        corpora = sorted((root / "corpora").glob("*.md"))
        listed = [Document(corpus.stem, read_text(corpus)) for corpus in corpora]
    else:
        check_unchanged(root / "documents.jsonl")
        folder = root / "documents"
        if not (beside.is_file() and folder.is_dir()):
            folder = root
        left_out = [beside, *leave_out, file or beside]
        listed = load_documents(
            folder, leave_out=left_out, unread=unread, follow_links=follow_links
        )
    return Contents(listed, list(read(questions)), file, unread)


def _file_of(questions: Questions) -> Path | None:
    """The file of these questions, if they come from one. Raises `DataError`: it is none."""
    if not isinstance(questions, str | Path):
        return None
    file = Path(questions)
    if not file.is_file():
        raise DataError(
            f"{file} is no file: expected a questions.jsonl, a CSV or a TSV, after the documents; "
            "chunkcore label writes one"
        )
    return file


def _name_of(documents: str | Path | Sequence[Document]) -> str:
    if not isinstance(documents, str | Path):
        return "benchmark"
    place = Path(documents)
    return place.resolve().name if place.is_dir() else place.stem


def _check_usable(reader: QuestionReader, source: object) -> None:
    for problem in reader.problems:
        if problem.kind == "repeated-id":
            raise DataError(
                f"two questions have the id {problem.query_id!r}: {source}, {problem.reason}"
            )
    if reader.queries:
        return
    reason = f"{source} holds no questions"
    for problem in reader.problems[:1]:
        questions = counted(len(reader.problems), "question")
        first = f"the first, {echo(problem.query_id)}: {problem.reason}"
        reason = f"{source}: none of the {questions} can be used; {first}"
    if reader.without_evidence:
        count = len(reader.without_evidence)
        reason = f"{source}: no evidence is marked for its {count:,} questions"
    raise DataError(
        f'{reason}; expected lines like {{"question": ..., "evidence": ["words of a document"]}}'
    )
