"""`Layout`: a dataset's file format and its reader; chunkcore's own layout and the Chroma report's.

Layouts register with ``@layouts.register("name")`` or the entry point group ``chunkcore.layouts``. The public datasets
are in `public_layouts`.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

from chunkcore.document import Document
from chunkcore.errors import DataError, check_type, echo
from chunkcore.evaluation.benchmarks.documents import Row, listed, load_documents
from chunkcore.evaluation.benchmarks.questions import QUESTION_NAMES
from chunkcore.files import csv_rows, json_lines, read_json, read_text, text_lines
from chunkcore.outputs import BENCHMARK_NAMES, CHECKSUMS
from chunkcore.registry import Registry

Questions = str | Path | Iterable[Mapping[str, Any]]
T = TypeVar("T")
_ORDER = count()


class Contents(NamedTuple):
    """Documents, and rows of questions for `QuestionReader`; files that were not read, with the reasons."""

    documents: list[Document]
    questions: Iterable[Row] = ()
    unread: Mapping[str, str] = {}


class Layout:
    """A dataset's file format.

    Attributes:
        name: the registered name.
        files: the files, in one line.
        needs: the files and folders of such a dataset, with patterns such as ``qrels/*.tsv``.
        keys: or JSON keys of its files, which end in one of `suffixes`.
        by_content: recognised by file contents, and so after the layouts recognised by file names; so where `keys` are.
        takes_questions: whether the file of questions may be given.
    """

    name: ClassVar[str] = ""
    files: ClassVar[str] = ""
    needs: ClassVar[tuple[str, ...]] = ()
    keys: ClassVar[tuple[str, ...]] = ()
    suffixes: ClassVar[tuple[str, ...]] = (".json",)
    by_content: ClassVar[bool] = False
    takes_questions: ClassVar[bool] = False
    order: ClassVar[int] = 0

    def __init_subclass__(cls) -> None:
        cls.order = next(_ORDER)
        cls.by_content = cls.by_content or bool(cls.keys)

    def lacks(self, root: Path) -> str:
        """What the path lacks to be of this layout, in words; "" if it lacks nothing."""
        if self.keys:
            return lacks_keys(root, self.keys, self.suffixes)
        return lacking(root, *self.needs) if self.needs else f"what {type(self).__name__} needs"

    def read(self, root: Path, questions: Questions | None = None, leave_out: Collection[Path] = ()) -> Contents:
        """The documents and questions, without `leave_out`; `questions` only if the layout `takes_questions`."""
        raise NotImplementedError


layouts: Registry[type[Layout]] = Registry(
    "layout", "chunkcore.layouts", base=Layout, attribute="name", note=", or auto"
)


def known_layouts() -> list[Layout]:
    """Every layout, in the order of recognition."""
    instances = [layout() for _, layout in layouts.items()]
    return sorted(instances, key=lambda layout: (layout.by_content, layout.order))


@layouts.register("chroma")
class Chroma(Layout):
    """The Chroma report's data."""

    files = "corpora/*.md, questions_df.csv"
    needs = ("corpora", "questions_df.csv")
    takes_questions = True

    def read(self, root: Path, questions: Questions | None = None, leave_out: Collection[Path] = ()) -> Contents:
        """Each Markdown file is a document, named without ``.md``, in alphabetical order."""
        files = sorted((root / "corpora").glob("*.md"))
        if not files:
            raise DataError(f"{root / 'corpora'} holds no corpora: expected Markdown files such as finance.md")
        corpora = [Document(file.stem, read_text(file)) for file in files]
        return Contents(corpora, question_rows(questions) if questions else _chroma_rows(root / "questions_df.csv"))


@layouts.register("chunkcore")
class ChunkcoreLayout(Layout):
    """Our own JSON lines, and text files."""

    files = "questions.jsonl, and documents.jsonl or text files"
    needs = ("questions.jsonl",)
    takes_questions = True

    def read(self, root: Path, questions: Questions | None = None, leave_out: Collection[Path] = ()) -> Contents:
        return read_own(root, questions, leave_out)


def read_own(
    root: Path, questions: Questions | None, leave_out: Collection[Path] = (), *, follow_links: bool = False
) -> Contents:
    """Our layout's documents, without `leave_out`, and the given questions or else the folder's own."""
    check_unchanged(root)
    questions_file = root / "questions.jsonl"
    source = questions_file if questions is None else questions
    left_out = [questions_file, *leave_out, *([Path(source)] if isinstance(source, str | Path) else [])]
    folder = root / "documents" if questions_file.is_file() and (root / "documents").is_dir() else root
    unread: dict[str, str] = {}
    documents = load_documents(folder, leave_out=left_out, unread=unread, follow_links=follow_links)
    return Contents(documents, question_rows(source), unread)


def check_unchanged(root: Path) -> None:
    """Compare a benchmark's files with the checksums that `write_benchmark` wrote, if it did. Raises `DataError`."""
    place = root / CHECKSUMS
    if not place.is_file():
        return
    checksums = read_json(place)
    for name in BENCHMARK_NAMES:
        file = root / name
        written = (
            checksums.get(name) if isinstance(checksums, dict) and len(checksums) == len(BENCHMARK_NAMES) else None
        )
        if not file.is_file() or file_checksum(file) != written:
            raise DataError(
                f"{file} is not what was written, by {place}: it was damaged or edited; write the benchmark again, or "
                f"delete {CHECKSUMS} to accept it"
            )


def file_checksum(file: Path) -> str:
    """32 hexadecimal digits of a file's bytes."""
    return blake2b(file.read_bytes(), digest_size=16).hexdigest()


def question_rows(questions: Questions) -> Iterable[Row]:
    """Questions with their places, from JSON lines, a CSV of the Chroma report, or objects.

    A line is ``{"id"?, "question", "document_id"?, "evidence": [...]}``, with entries for `EvidenceFinder.find`, or one
    excerpt; or it has ``spans``, pairs of offsets into its document, and ``evidence`` spells out their texts. Common
    names of other formats are understood (`understood`). Other keys become metadata. Raises `DataError`: the file
    cannot be read, or a line is not a JSON object.
    """
    if not isinstance(questions, str | Path):
        rows = [(f"question {number}", row) for number, row in enumerate(questions, start=1)]
        for place, row in rows:
            check_type(place, row, Mapping, "an object such as a line of questions.jsonl")
        return rows
    if Path(questions).suffix.lower() == ".csv":
        return _table_rows(Path(questions))
    if Path(questions).suffix.lower() == ".txt" and next(iter(text_lines(Path(questions))), (0, "{"))[1][:1] != "{":
        raise DataError(
            f"{questions} has questions without evidence: mark it with chunkcore questions label DOCS --questions "
            f"{questions}"
        )
    return ((f"line {number}", row) for number, row in json_lines(Path(questions)))


_COLUMNS = ("question", "references", "corpus_id")


def _table_rows(path: Path) -> Iterator[Row]:
    """The rows of the Chroma report's CSV, or of another with columns that `understood` knows."""
    header = next(iter(text_lines(path)), (0, ""))[1]
    if all(column in header for column in _COLUMNS):
        yield from _chroma_rows(path)
        return
    if header and not any(name in header for name in QUESTION_NAMES):
        names = ", ".join(QUESTION_NAMES[1:])
        raise DataError(
            f"{path} has no column of questions: expected question (or {names}) and evidence (or context, excerpt, "
            f"references), got {echo(header.strip())}"
        )
    for number, row in csv_rows(path, ()):
        yield f"line {number}", {key: value for key, value in row.items() if value not in (None, "")}


def _chroma_rows(path: Path) -> Iterator[Row]:
    for number, (_, row) in enumerate(csv_rows(path, _COLUMNS), start=1):
        corpus = row["corpus_id"] or ""
        query: dict[str, Any] = {
            "id": f"{corpus}-{number}",
            "question": row["question"],
            "document_id": corpus,
            "collection": corpus,
            "evidence": row["references"],
        }
        with suppress(ValueError, RecursionError):
            if isinstance(references := json.loads(row["references"] or ""), list):
                query["evidence"] = [
                    {
                        "start": reference.get("start_index"),
                        "end": reference.get("end_index"),
                        "text": reference.get("content"),
                    }
                    if isinstance(reference, dict)
                    else reference
                    for reference in references
                ]
        yield f"row {number}", {**{key: value for key, value in row.items() if key not in _COLUMNS}, **query}


# Helpers for layouts.

_HEAD = 1024**2  # bytes of a JSON file searched for keys
_LOOKED_AT = 100  # files of a folder examined to recognise a layout
_KEY = re.compile(rb'"([A-Za-z_][A-Za-z0-9_]*)"\s*:')
_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "a whole number",
    bool: "true or false",
    float: "a number",
    type(None): "null",
}


def lacking(root: Path, *names: str) -> str:
    """Which of these files and folders a folder lacks; a pattern such as ``qrels/*.tsv`` needs one match."""
    return " and ".join(name for name in names if not (root.is_dir() and any(root.glob(name))))


def data_files(root: Path, suffixes: Collection[str]) -> list[Path]:
    """The file itself, or a folder's files with these suffixes, by name."""
    if not root.is_dir():
        return [root] if root.is_file() else []
    inside = (file for file in root.iterdir() if file.is_file() and not file.name.startswith("."))
    return sorted(file for file in inside if file.suffix.lower() in suffixes)


def with_keys(root: Path, keys: Collection[str], suffixes: Collection[str]) -> list[Path]:
    """The files whose first megabyte has all of these JSON keys; a warning names the others."""
    files = data_files(root, suffixes)
    matching = [file for file in files if set(keys) <= _keys_seen(file)]
    others = [file.name for file in files if file not in matching]
    if others:
        warnings.warn(
            f"{len(others):,} of the files in {root} left out, being of another layout: {listed(others)}", stacklevel=3
        )
    return matching


def lacks_keys(root: Path, keys: Collection[str], suffixes: Collection[str]) -> str:
    """What is missing if `with_keys` finds nothing among the first files, in words."""
    if any(set(keys) <= _keys_seen(file) for file in data_files(root, suffixes)[:_LOOKED_AT]):
        return ""
    return f"a {' or '.join(suffixes)} file with the keys {', '.join(keys)}"


def regular_files(root: Path) -> Iterator[Path]:
    """Every file below a folder (or the file itself), sorted by path; no hidden files, no links to folders."""
    waiting = [root]
    while waiting:
        place = waiting.pop()
        if place.is_file():
            yield place
        elif place.is_dir():
            inside = [path for path in place.iterdir() if not path.name.startswith(".")]
            waiting += sorted((item for item in inside if not (item.is_symlink() and item.is_dir())), reverse=True)


def _keys_seen(file: Path) -> set[str]:
    return {key.decode("ascii") for key in _KEY.findall(_head(file, _HEAD))}


def _head(file: Path, size: int) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(size)
    except OSError:
        return b""  # reading it as the requested layout raises the error


def as_read_by_python(file: Path) -> str:
    """A text with universal newlines, as some datasets' offsets count it."""
    return read_text(file).replace("\r\n", "\n").replace("\r", "\n")


class JsonNode(NamedTuple):
    """A value of a JSON file, and its place there, which the messages of `DataError` name.

    >>> file = JsonNode({"data": [{"title": "Fox"}, {}]}, "fox.json", joint=", ")
    >>> [each.get("title", str, "none") for each in file.nodes("data")], file.nodes("data")[1].place
    (['Fox', 'none'], 'fox.json, data[1]')
    """

    value: Any
    place: str
    joint: str = "."  # between the place and the keys inside it

    def get(self, key: str, kind: type[T], default: T | None = None) -> T:
        """The object's value of a key; the default, if given, for nothing or null. It is of the type, or a `DataError`
        is raised.
        """
        if not isinstance(self.value, Mapping):
            raise DataError(f"{self.place}: expected an object, got {shown_type(self.value)}")
        if default is not None and self.value.get(key) is None:
            return default
        if key not in self.value:
            keys = ", ".join(map(repr, list(self.value)[:9])) or "nothing"
            raise DataError(f"{self.place}: there is no {echo(key)}, but {keys}")
        return _checked(self.value[key], kind, f"{self.place}: expected {key!r} to be")

    def nodes(self, key: str, default: list[Any] | None = None) -> list[JsonNode]:
        """The items of the list under a key, each with its place."""
        items = self.get(key, list, default)
        return [JsonNode(value, f"{self.place}{self.joint}{key}[{number}]") for number, value in enumerate(items)]

    def texts(self, key: str, default: list[str] | None = None) -> list[str]:
        """The strings of the list under a key."""
        return [_checked(node.value, str, f"{node.place}: expected") for node in self.nodes(key, default)]


def _checked(value: object, kind: type[T], expected: str) -> T:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise DataError(f"{expected} {_KINDS[kind]}, got {shown_type(value)}")
    return value


def shown_type(value: object) -> str:
    """A JSON value's type, in words."""
    return _KINDS.get(type(value), type(value).__name__)


def brief(place: str, file: Path) -> str:
    """A place in a file, with the file's name instead of its path."""
    return place.replace(str(file), file.name, 1)
