"""`Layout`: a dataset's file format and its reader; our own layout, the Chroma report's, and the public datasets'.

Layouts register with ``@layouts.register("name")`` or the entry point group ``chunkcore.layouts``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

from chunkcore.errors import DataError, echo, warn_user
from chunkcore.files import check_unchanged, csv_rows, json_lines, read_json, read_text, text_lines
from chunkcore.reading.base import listed
from chunkcore.reading.folders import FolderWalk, Row, documents_of, load_documents
from chunkcore.registry import Registry
from chunkcore.text import Document

QUESTION_NAMES = ("question", "query", "user_input", "prompt")
Questions = str | Path | Iterable[Mapping[str, Any]]
T = TypeVar("T")
_ORDER = count()


class Contents(NamedTuple):
    """Documents, and rows of questions for `QuestionReader`; files that were not read, with the reasons.

    `is_own`: the user wrote the questions, so that two of one id are a mistake.
    """

    documents: list[Document]
    questions: Iterable[Row] = ()
    unread: Mapping[str, str] = {}
    is_own: bool = False


class Layout:
    """A dataset's file format.

    Attributes:
        name: the registered name.
        files: the files, in one line.
        needs: the files and folders of such a dataset, with patterns such as ``qrels/*.tsv``.
        keys: or JSON keys of its .json files. Layouts by names of files are recognised first.
    """

    name: ClassVar[str] = ""
    files: ClassVar[str] = ""
    needs: ClassVar[tuple[str, ...]] = ()
    keys: ClassVar[tuple[str, ...]] = ()
    order: ClassVar[int] = 0

    def __init_subclass__(cls) -> None:
        cls.order = next(_ORDER)

    def lacks(self, root: Path) -> str:
        """What the path lacks to be of this layout, in words; "" if it lacks nothing."""
        if not self.keys:
            return " and ".join(name for name in self.needs if not any(root.glob(name)))
        for file in _json_files(root)[:_LOOKED_AT]:
            if _keys_seen(file).issuperset(self.keys):
                return ""
        return f"a .json file with the keys {', '.join(self.keys)}"

    def read(self, root: Path) -> Contents:
        """The documents and questions."""
        raise NotImplementedError


layouts: Registry[type[Layout]] = Registry(
    "layout", "chunkcore.layouts", base=Layout, attribute="name", note=", or auto"
)


def known_layouts() -> list[Layout]:
    """Every layout, in the order of recognition."""
    instances = [layout() for _, layout in layouts.items()]
    return sorted(instances, key=lambda layout: (bool(layout.keys), layout.order))


@layouts.register("chroma")
class Chroma(Layout):
    """The Chroma report's data."""

    files = "corpora/*.md, questions_df.csv"
    needs = ("corpora", "questions_df.csv")

    def read(self, root: Path) -> Contents:
        """Each Markdown file is a document, named without ``.md``, in alphabetical order."""
        files = sorted((root / "corpora").glob("*.md"))
        if not files:
            raise DataError(
                f"{root / 'corpora'} holds no corpora: expected Markdown files such as finance.md"
            )
        corpora = [Document(file.stem, read_text(file)) for file in files]
        return Contents(corpora, _table_rows(root / "questions_df.csv", _COLUMNS))


@layouts.register("chunkcore")
class ChunkcoreLayout(Layout):
    """Our own JSON lines, and text files."""

    files = "questions.jsonl, and documents.jsonl or text files"
    needs = ("questions.jsonl",)

    def read(self, root: Path) -> Contents:
        return read_own(root)


def read_own(
    root: Path,
    questions: Questions | None = None,
    leave_out: Collection[Path] = (),
    *,
    follow_links: bool = False,
) -> Contents:
    """Our layout's documents, without `leave_out`, and the given questions or else the folder's own."""
    check_unchanged(root / "documents.jsonl")
    questions_file = root / "questions.jsonl"
    if questions is None:
        questions = questions_file
    left_out = [questions_file, *leave_out]
    if isinstance(questions, str | Path):
        left_out.append(Path(questions))
    folder = root / "documents"
    if not (questions_file.is_file() and folder.is_dir()):
        folder = root
    unread: dict[str, str] = {}
    documents = load_documents(folder, leave_out=left_out, unread=unread, follow_links=follow_links)
    return Contents(documents, question_rows(questions), unread, is_own=True)


def question_rows(questions: Questions) -> Iterable[Row]:
    """Questions with their places, from JSON lines, a CSV, or objects; docs/reference/formats.md has their keys.

    A line may also have ``spans``, pairs of offsets into its document, and ``evidence`` spells out their texts. Raises
    `DataError`: the file cannot be read, or a line is not a JSON object.
    """
    if not isinstance(questions, str | Path):
        return [(f"question {number}", row) for number, row in enumerate(questions, start=1)]
    path = Path(questions)
    kind = path.suffix.lower()
    if kind == ".csv":
        return _table_rows(path)
    if kind == ".txt" and not _starts_with_an_object(path):
        raise DataError(
            f"{path} is without evidence: mark it with chunkcore questions label DOCS --questions {path}"
        )
    check_unchanged(path)
    return ((f"line {number}", row) for number, row in json_lines(path))


def _starts_with_an_object(path: Path) -> bool:
    for _, line in text_lines(path):
        return line.startswith("{")
    return True


_COLUMNS = ("question", "references", "corpus_id")


def _table_rows(path: Path, columns: Collection[str] = ()) -> Iterator[Row]:
    """The rows of the Chroma report's CSV, or of another with columns that `understood` knows."""
    for number, (line, row) in enumerate(csv_rows(path, columns), start=1):
        if all(column in row for column in _COLUMNS):
            yield f"row {number}", _chroma_row(number, row)
        elif any(name in row for name in QUESTION_NAMES):
            yield f"line {line}", {key: value for key, value in row.items() if value}
        else:
            names = " or ".join(QUESTION_NAMES)
            raise DataError(
                f"{path} has no column of questions: expected {names}, got {echo(', '.join(row))}"
            )


def _chroma_row(number: int, row: Mapping[str, str | None]) -> dict[str, Any]:
    corpus = row["corpus_id"] or ""
    evidence: Any = row["references"]
    with suppress(ValueError, RecursionError):
        references = json.loads(evidence or "")
        if isinstance(references, list):
            evidence = [_chroma_evidence(reference) for reference in references]
    others = {key: value for key, value in row.items() if key not in _COLUMNS}
    return others | {
        "id": f"{corpus}-{number}",
        "question": row["question"],
        "document_id": corpus,
        "collection": corpus,
        "evidence": evidence,
    }


def _chroma_evidence(reference: Any) -> Any:
    if not isinstance(reference, dict):
        return reference
    keys = {"start": "start_index", "end": "end_index", "text": "content"}
    return {ours: reference.get(theirs) for ours, theirs in keys.items()}


# Helpers for layouts.

_HEAD = 1024**2  # bytes of a JSON file searched for keys
_LOOKED_AT = 100  # files of a folder examined to recognise a layout
_KEY = re.compile(rb'"([A-Za-z_][A-Za-z0-9_]*)"\s*:')
_KINDS = {list: "a list", str: "a string", int: "a whole number"}


def _json_files(root: Path) -> list[Path]:
    """The file itself, or a folder's .json files, by name."""
    if root.is_file():
        return [root]
    return sorted(file for file in root.glob("[!.]*.json") if file.is_file())


def _keys_seen(file: Path) -> set[str]:
    try:
        with file.open("rb") as opened:
            return {key.decode("ascii") for key in _KEY.findall(opened.read(_HEAD))}
    except OSError:
        return set()  # reading it as the requested layout raises the error


class JsonNode(NamedTuple):
    """A value of a JSON file, and its place there, which the messages of `DataError` name."""

    value: Any
    place: str
    joint: str = "."  # between the place and the keys inside it

    def get(self, key: str, kind: type[T], default: T | None = None) -> T:
        """The object's value of a key; the default, if given, for nothing or null. Raises `DataError`: another type."""
        if not isinstance(self.value, Mapping):
            raise DataError(f"{self.place}: expected an object, got {type(self.value).__name__}")
        if default is not None and self.value.get(key) is None:
            return default
        if key not in self.value:
            keys = ", ".join(map(repr, list(self.value)[:9])) or "nothing"
            raise DataError(f"{self.place}: there is no {echo(key)}, but {keys}")
        value = self.value[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise DataError(
                f"{self.place}, {key!r}: expected {_KINDS[kind]}, got {type(value).__name__}"
            )
        return value

    def nodes(self, key: str, default: list[Any] | None = None) -> list[JsonNode]:
        """The items of the list under a key, each with its place."""
        items = enumerate(self.get(key, list, default))
        place = f"{self.place}{self.joint}{key}"
        return [JsonNode(value, f"{place}[{number}]") for number, value in items]


def _rows_under(file: Path, key: str) -> list[JsonNode]:
    """The items of a JSON file's list under a key."""
    return JsonNode(read_json(file), str(file), joint=", ").nodes(key)


def brief(place: str, file: Path) -> str:
    """A place in a file, with the file's name instead of its path."""
    return place.replace(str(file), file.name, 1)


# Public datasets.


@layouts.register("squad")
class Squad(Layout):
    """SQuAD (Rajpurkar et al., 2016, 2018), and collections in its layout, such as CUAD and COVID-QA."""

    files = '.json files of {"data": [{"title", "paragraphs": [{"context", "qas"}]}]}, v1.1 or v2.0'
    keys = ("data", "paragraphs")

    def read(self, root: Path) -> Contents:
        """A document is an article: its contexts, separated by blank lines.

        Its id is its title, or its first paragraph's ``document_id``. Equal articles in several files are one document;
        different articles of one title are numbered. Evidence is every annotator's answer, verified against its text.
        Questions with ``is_impossible`` or no answer are without evidence, with ``metadata["unanswerable"]``.
        """
        documents: dict[str, Row] = {}
        rows: list[Row] = []
        for file in self._files(root):
            for number, article in enumerate(_rows_under(file, "data"), start=1):
                paragraphs = article.nodes("paragraphs")
                contexts = [paragraph.get("context", str) for paragraph in paragraphs]
                text = _BETWEEN.join(contexts)
                name = _article_id(article, paragraphs, f"{file.stem}-{number}")
                name = _numbered(name, text, documents)
                documents[name] = (article.place, {"id": name, "text": text})
                start = 0
                for paragraph, context in zip(paragraphs, contexts, strict=True):
                    for place, row in _squad_questions(paragraph, name, start):
                        rows.append((brief(place, file), row))
                    start += len(context) + len(_BETWEEN)
        return Contents(documents_of(documents.values()), rows)

    def _files(self, root: Path) -> list[Path]:
        matching, others = [], []
        for file in _json_files(root):
            if _keys_seen(file).issuperset(self.keys):
                matching.append(file)
            else:
                others.append(file.name)
        if others:
            warn_user(
                f"{len(others):,} of the files in {root} left out, being of another layout: {listed(others)}"
            )
        return matching


_BETWEEN = "\n\n"  # the contexts of an article


def _numbered(name: str, text: str, documents: Mapping[str, Row]) -> str:
    """The name, with a number if an article of another text has it."""
    numbered, number = name, 1
    while numbered in documents and documents[numbered][1]["text"] != text:
        number += 1
        numbered = f"{name}-{number}"
    return numbered


def _article_id(article: JsonNode, paragraphs: Sequence[JsonNode], default: str) -> str:
    names = [article.value.get("title")]
    if paragraphs:
        names.append(paragraphs[0].value.get("document_id"))
    for name in names:
        if isinstance(name, str | int) and str(name).strip():
            return str(name)
    return default


def _squad_questions(paragraph: JsonNode, document: str, start: int) -> Iterator[Row]:
    for question in paragraph.nodes("qas"):
        evidence: list[dict[str, Any]] = []
        for answer in question.nodes("answers", []):
            text = answer.get("text", str)
            begin = start + answer.get("answer_start", int)
            place = {"start": begin, "end": begin + len(text), "text": text}
            if place not in evidence:
                evidence.append(place)
        row = dict(question.value)
        is_impossible = row.pop("is_impossible", False) is True
        row["question"] = question.get("question", str)
        row["document_id"] = document
        row["answers"] = list(dict.fromkeys(place["text"] for place in evidence))
        if is_impossible or not evidence:
            row |= {"without_evidence": True, "unanswerable": True}
        else:
            row["evidence"] = evidence
        yield question.place, row


@layouts.register("beir")
class Beir(Layout):
    """BEIR (Thakur et al., 2021): queries with judgements of whole documents."""

    files = "corpus.jsonl, queries.jsonl, qrels/*.tsv"
    needs = ("corpus.jsonl", "queries.jsonl", "qrels/*.tsv")

    def read(self, root: Path) -> Contents:
        """A document's text is its title, a line feed and its text. Evidence is whole documents.

        The queries are those judged in one split: ``qrels/test.tsv``, else ``dev.tsv``, else ``train.tsv``.
        Judgements of 0 or less are left out; the others are in ``metadata["grades"]``.
        """
        judgements = _split(root / "qrels")
        documents = documents_of(_titled(root / "corpus.jsonl"))
        return Contents(documents, list(_judged_queries(root / "queries.jsonl", judgements)))


def _titled(corpus: Path) -> Iterator[Row]:
    """BEIR's documents, each with its title before its text."""
    for number, value in json_lines(corpus):
        row = JsonNode(value, f"{corpus}, line {number}")
        text = row.get("text", str)
        title = value.get("title")
        if isinstance(title, str) and title:
            text = f"{title}\n{text}"
        yield row.place, {"id": row.get("_id", str), "text": text, "metadata": _others(value)}


def _others(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in ("_id", "text")}


def _split(folder: Path) -> Path:
    names = sorted(file.name for file in folder.glob("*.tsv"))
    for split in ("test.tsv", "dev.tsv", "train.tsv"):
        if split in names:
            return folder / split
    if len(names) != 1:
        raise DataError(
            f"{folder} has {', '.join(names) or 'no .tsv file'}: name the judgements test.tsv"
        )
    return folder / names[0]


def _judged_queries(queries: Path, judgements: Path) -> Iterator[Row]:
    grades = _grades(judgements)
    for number, row in json_lines(queries):
        identity = JsonNode(row, f"{queries}, line {number}").get("_id", str)
        if identity not in grades:
            continue
        judged = grades.pop(identity)
        relevant = {document: grade for document, grade in judged.items() if grade > 0}
        query = _others(row) | {"id": identity, "question": row.get("text")}
        if relevant:
            query["evidence"] = [{"document": name, "whole": True} for name in relevant]
            query["grades"] = relevant
        else:
            query["left_out"] = "no document is judged relevant"
        yield f"{queries.name}, line {number}", query
    for identity in grades:
        reason = f"{queries.name} has no query of this id"
        yield judgements.name, {"id": identity, "question": identity, "left_out": reason}


def _grades(file: Path) -> dict[str, dict[str, int]]:
    grades: dict[str, dict[str, int]] = {}
    for number, row in csv_rows(file, ("query-id", "corpus-id", "score")):
        grade = (row["score"] or "").strip()
        if not re.fullmatch(r"-?[0-9]{1,9}", grade):
            raise DataError(
                f"{file}, line {number}: expected the score to be a whole number, got {echo(grade)}"
            )
        grades.setdefault(row["query-id"] or "", {})[row["corpus-id"] or ""] = int(grade)
    return grades


@layouts.register("legalbench_rag")
class LegalBenchRag(Layout):
    """LegalBench-RAG (Pipitone and Houir Alami, 2024): questions with snippets of legal documents."""

    files = "corpus/**/*.txt, benchmarks/*.json"
    needs = ("corpus", "benchmarks/*.json")

    def read(self, root: Path) -> Contents:
        """A document's id is its path below ``corpus``; a question's collection is its file below ``benchmarks``."""
        rows = []
        for name, file in FolderWalk(root / "corpus"):
            # The offsets count as Python reads, with universal newlines.
            text = read_text(file).replace("\r\n", "\n").replace("\r", "\n")
            rows.append((str(file), {"id": name, "text": text}))
        questions: list[Row] = []
        for file in sorted((root / "benchmarks").glob("*.json")):
            questions += _snippet_questions(file)
        return Contents(documents_of(rows), questions)


def _snippet_questions(file: Path) -> Iterator[Row]:
    for number, test in enumerate(_rows_under(file, "tests"), start=1):
        evidence = []
        for snippet in test.nodes("snippets"):
            document, span = snippet.get("file_path", str), snippet.get("span", list)
            if len(span) != 2:
                raise DataError(
                    f"{snippet.place}: expected 'span' to be [start, end], got {len(span)} values"
                )
            start, end = span
            text = snippet.value.get("answer")
            evidence.append({"document": document, "start": start, "end": end, "text": text})
        query = {
            "id": f"{file.stem}-{number}",
            "question": test.get("query", str),
            "collection": file.stem,
            "tags": test.value.get("tags"),
            "evidence": evidence,
        }
        yield brief(test.place, file), query
