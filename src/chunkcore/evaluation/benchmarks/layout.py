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
from chunkcore.lazy import needed
from chunkcore.reading.base import listed
from chunkcore.reading.folders import FolderWalk, Row, documents_of, load_documents
from chunkcore.registry import Registry
from chunkcore.text import Document, Span

QUESTION_NAMES = ("question", "query", "user_input", "prompt")
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
        if self.keys:
            is_there = any(
                set(self.keys) <= _keys_seen(file) for file in _json_files(root)[:_LOOKED_AT]
            )
            return "" if is_there else f"a .json file with the keys {', '.join(self.keys)}"
        return " and ".join(
            name for name in self.needs if not (root.is_dir() and any(root.glob(name)))
        )

    def read(
        self, root: Path, questions: Questions | None = None, leave_out: Collection[Path] = ()
    ) -> Contents:
        """The documents and questions, without `leave_out`; only our own layout is given `questions`."""
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

    def read(
        self, root: Path, questions: Questions | None = None, leave_out: Collection[Path] = ()
    ) -> Contents:
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

    def read(
        self, root: Path, questions: Questions | None = None, leave_out: Collection[Path] = ()
    ) -> Contents:
        return read_own(root, questions, leave_out)


def read_own(
    root: Path,
    questions: Questions | None,
    leave_out: Collection[Path] = (),
    *,
    follow_links: bool = False,
) -> Contents:
    """Our layout's documents, without `leave_out`, and the given questions or else the folder's own."""
    check_unchanged(root / "documents.jsonl")
    questions_file = root / "questions.jsonl"
    source = questions_file if questions is None else questions
    left_out = [
        questions_file,
        *leave_out,
        *([Path(source)] if isinstance(source, str | Path) else []),
    ]
    folder = (
        root / "documents" if questions_file.is_file() and (root / "documents").is_dir() else root
    )
    unread: dict[str, str] = {}
    documents = load_documents(folder, leave_out=left_out, unread=unread, follow_links=follow_links)
    return Contents(documents, question_rows(source), unread)


def question_rows(questions: Questions) -> Iterable[Row]:
    """Questions with their places, from JSON lines, a CSV, or objects; docs/reference/formats.md has their keys.

    A line may also have ``spans``, pairs of offsets into its document, and ``evidence`` spells out their texts. Raises
    `DataError`: the file cannot be read, or a line is not a JSON object.
    """
    if not isinstance(questions, str | Path):
        return [(f"question {number}", row) for number, row in enumerate(questions, start=1)]
    if Path(questions).suffix.lower() == ".csv":
        return _table_rows(Path(questions))
    if (
        Path(questions).suffix.lower() == ".txt"
        and next(iter(text_lines(Path(questions))), (0, "{"))[1][:1] != "{"
    ):
        raise DataError(
            f"{questions} is without evidence: mark it with chunkcore questions label DOCS --questions {questions}"
        )
    check_unchanged(Path(questions))
    return ((f"line {number}", row) for number, row in json_lines(Path(questions)))


_COLUMNS = ("question", "references", "corpus_id")


def _table_rows(path: Path, columns: Collection[str] = ()) -> Iterator[Row]:
    """The rows of the Chroma report's CSV, or of another with columns that `understood` knows."""
    for number, (line, row) in enumerate(csv_rows(path, columns), start=1):
        if all(column in row for column in _COLUMNS):
            yield f"row {number}", _chroma_row(number, row)
        elif any(name in row for name in QUESTION_NAMES):
            yield (
                f"line {line}",
                {key: value for key, value in row.items() if value not in (None, "")},
            )
        else:
            names = " or ".join(QUESTION_NAMES)
            raise DataError(
                f"{path} has no column of questions: expected {names}, got {echo(', '.join(row))}"
            )


def _entry(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "start": item.get("start_index"),
        "end": item.get("end_index"),
        "text": item.get("content"),
    }


def _chroma_row(number: int, row: Mapping[str, str | None]) -> dict[str, Any]:
    corpus = row["corpus_id"] or ""
    evidence: Any = row["references"]
    with suppress(ValueError, RecursionError):
        if isinstance(references := json.loads(evidence or ""), list):
            evidence = [_entry(item) if isinstance(item, dict) else item for item in references]
    return {
        **{key: value for key, value in row.items() if key not in _COLUMNS},
        "id": f"{corpus}-{number}",
        "question": row["question"],
        "document_id": corpus,
        "collection": corpus,
        "evidence": evidence,
    }


# Helpers for layouts.

_HEAD = 1024**2  # bytes of a JSON file searched for keys
_LOOKED_AT = 100  # files of a folder examined to recognise a layout
_KEY = re.compile(rb'"([A-Za-z_][A-Za-z0-9_]*)"\s*:')
_KINDS = {list: "a list", str: "a string", int: "a whole number"}


def _json_files(root: Path) -> list[Path]:
    """The file itself, or a folder's .json files, by name."""
    if root.is_file():
        return [root]
    return sorted(
        file for file in root.glob("*.json") if file.is_file() and not file.name.startswith(".")
    )


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
        return _checked(self.value[key], kind, f"{self.place}, {key!r}")

    def nodes(self, key: str, default: list[Any] | None = None) -> list[JsonNode]:
        """The items of the list under a key, each with its place."""
        items = self.get(key, list, default)
        return [
            JsonNode(value, f"{self.place}{self.joint}{key}[{number}]")
            for number, value in enumerate(items)
        ]


def _checked(value: object, kind: type[T], place: str) -> T:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise DataError(f"{place}: expected {_KINDS[kind]}, got {type(value).__name__}")
    return value


def brief(place: str, file: Path) -> str:
    """A place in a file, with the file's name instead of its path."""
    return place.replace(str(file), file.name, 1)


# Public datasets.


@layouts.register("squad")
class Squad(Layout):
    """SQuAD (Rajpurkar et al., 2016, 2018), and collections in its layout, such as CUAD and COVID-QA."""

    files = '.json files of {"data": [{"title", "paragraphs": [{"context", "qas"}]}]}, v1.1 or v2.0'
    keys = ("data", "paragraphs")
    _BETWEEN = "\n\n"

    def read(
        self, root: Path, questions: Questions | None = None, leave_out: Collection[Path] = ()
    ) -> Contents:
        """A document is an article: its contexts, separated by blank lines.

        Its id is its title, or its first paragraph's ``document_id``. Equal articles in several files are one document;
        different articles of one title are numbered. Evidence is every annotator's answer, verified against its text.
        Questions with ``is_impossible`` or no answer are without evidence, with ``metadata["unanswerable"]``.
        """
        documents: dict[str, Row] = {}
        rows: list[Row] = []
        for file in self._files(root):
            for number, article in enumerate(
                JsonNode(read_json(file), str(file), joint=", ").nodes("data"), start=1
            ):
                paragraphs = article.nodes("paragraphs")
                contexts = [paragraph.get("context", str) for paragraph in paragraphs]
                text = self._BETWEEN.join(contexts)
                identity = _article_id(article, paragraphs, f"{file.stem}-{number}")
                numbered = (identity if n == 1 else f"{identity}-{n}" for n in count(1))
                # Another article's name is numbered; an equal article is the same document.
                identity = next(
                    n for n in numbered if n not in documents or documents[n][1]["text"] == text
                )
                documents[identity] = (article.place, {"id": identity, "text": text})
                start = 0
                for paragraph, context in zip(paragraphs, contexts, strict=True):
                    rows += [
                        (brief(at, file), row)
                        for at, row in _squad_questions(paragraph, identity, start)
                    ]
                    start += len(context) + len(self._BETWEEN)
        return Contents(documents_of(documents.values()), rows)

    def _files(self, root: Path) -> list[Path]:
        files = _json_files(root)
        matching = [file for file in files if set(self.keys) <= _keys_seen(file)]
        others = [file.name for file in files if file not in matching]
        if others:
            warn_user(
                f"{len(others):,} of the files in {root} left out, being of another layout: {listed(others)}"
            )
        return matching


def _article_id(article: JsonNode, paragraphs: Sequence[JsonNode], default: str) -> str:
    first = paragraphs[0].value if paragraphs else {}
    names = (article.value.get("title"), first.get("document_id"), default)
    return next(str(name) for name in names if isinstance(name, str | int) and str(name).strip())


def _squad_questions(paragraph: JsonNode, document: str, start: int) -> Iterator[Row]:
    for question in paragraph.nodes("qas"):
        answers = []
        for answer in question.nodes("answers", []):
            text, begin = answer.get("text", str), start + answer.get("answer_start", int)
            answers.append({"start": begin, "end": begin + len(text), "text": text})
        row = {
            **{key: value for key, value in question.value.items() if key != "is_impossible"},
            "question": question.get("question", str),
            "document_id": document,
            "answers": list(dict.fromkeys(answer["text"] for answer in answers)),
        }
        if question.value.get("is_impossible") is True or not answers:
            row |= {"without_evidence": True, "unanswerable": True}
        else:
            row["evidence"] = list({tuple(answer.values()): answer for answer in answers}.values())
        yield question.place, row


@layouts.register("beir")
class Beir(Layout):
    """BEIR (Thakur et al., 2021): queries with judgements of whole documents."""

    files = "corpus.jsonl, queries.jsonl, qrels/*.tsv"
    needs = ("corpus.jsonl", "queries.jsonl", "qrels/*.tsv")

    def read(
        self, root: Path, questions: Questions | None = None, leave_out: Collection[Path] = ()
    ) -> Contents:
        """A document's text is its title, a line feed and its text. Evidence is whole documents.

        The queries are those judged in one split: ``qrels/test.tsv``, else ``dev.tsv``, else ``train.tsv``.
        Judgements of 0 or less are left out; the others are in ``metadata["grades"]``.
        """
        judgements = _split(root / "qrels")
        corpus = root / "corpus.jsonl"

        def documents() -> Iterator[Row]:
            for number, value in json_lines(corpus):
                row = JsonNode(value, f"{corpus}, line {number}")
                text, title = row.get("text", str), value.get("title")
                titled = f"{title}\n{text}" if isinstance(title, str) and title else text
                others = {key: value[key] for key in value if key not in ("_id", "text")}
                yield row.place, {"id": row.get("_id", str), "text": titled, "metadata": others}

        return Contents(
            documents_of(documents()), list(_judged_queries(root / "queries.jsonl", judgements))
        )


def _split(folder: Path) -> Path:
    names = sorted(file.name for file in folder.glob("*.tsv"))
    split = next((name for name in ("test.tsv", "dev.tsv", "train.tsv") if name in names), "")
    if not split and len(names) != 1:
        raise DataError(
            f"{folder} has {', '.join(names) or 'no .tsv file'}: name the judgements test.tsv"
        )
    return folder / (split or names[0])


def _judged_queries(queries: Path, judgements: Path) -> Iterator[Row]:
    grades = _grades(judgements)
    for number, row in json_lines(queries):
        identity = JsonNode(row, f"{queries}, line {number}").get("_id", str)
        if identity not in grades:
            continue
        relevant = {
            document: grade for document, grade in grades.pop(identity).items() if grade > 0
        }
        query: dict[str, Any] = {
            key: value for key, value in row.items() if key not in ("_id", "text")
        }
        query |= {"id": identity, "question": row.get("text")}
        if relevant:
            query |= {
                "evidence": [{"document": name, "whole": True} for name in relevant],
                "grades": relevant,
            }
        else:
            query |= {"left_out": "no document is judged relevant"}
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

    def read(
        self, root: Path, questions: Questions | None = None, leave_out: Collection[Path] = ()
    ) -> Contents:
        """A document's id is its path below ``corpus``; a question's collection is its file below ``benchmarks``."""
        # The offsets count as Python reads, with universal newlines.
        documents = documents_of(
            (
                str(file),
                {"id": name, "text": read_text(file).replace("\r\n", "\n").replace("\r", "\n")},
            )
            for name, file in FolderWalk(root / "corpus")
        )
        files = sorted((root / "benchmarks").glob("*.json"))
        return Contents(documents, [row for file in files for row in _snippet_questions(file)])


def _snippet_questions(file: Path) -> Iterator[Row]:
    for number, test in enumerate(
        JsonNode(read_json(file), str(file), joint=", ").nodes("tests"), start=1
    ):
        evidence = []
        for snippet in test.nodes("snippets"):
            path, span = snippet.get("file_path", str), snippet.get("span", list)
            if len(span) != 2:
                raise DataError(
                    f"{snippet.place}: expected 'span' to be [start, end], got {len(span)} values"
                )
            evidence.append(
                {
                    "document": path,
                    "start": span[0],
                    "end": span[1],
                    "text": snippet.value.get("answer"),
                }
            )
        query = {
            "id": f"{file.stem}-{number}",
            "question": test.get("query", str),
            "collection": file.stem,
            "tags": test.value.get("tags"),
            "evidence": evidence,
        }
        yield brief(test.place, file), query


@layouts.register("ragbench")
class RagBench(Layout):
    """RAGBench (Friel et al., 2024): questions with the documents that were retrieved, and their relevant sentences."""

    files = '.parquet of "id", "question", "documents", "documents_sentences", "all_relevant_sentence_keys"'

    def lacks(self, root: Path) -> str:
        return "" if _parquet_files(root) else "a .parquet file"

    def read(
        self, root: Path, questions: Questions | None = None, leave_out: Collection[Path] = ()
    ) -> Contents:
        """A document is a retrieved text, the same text once; the files may lie in folders.

        Evidence is the sentences that RAGBench's judge, a language model, called relevant. A sentence is placed by the
        sentences before it in its document; where they do not make up its text, the sentence must stand in it exactly
        once. ``metadata["response"]`` has the model's response; it is not an answer.
        """
        ids: dict[str, str] = {}
        documents: list[Row] = []
        rows: list[Row] = []
        for file in _parquet_files(root):
            for place, row in _parquet_rows(file):
                texts = [
                    _checked(node.value, str, node.place)
                    for node in JsonNode(row, place).nodes("documents")
                ]
                collection = str(row.get("dataset_name") or file.stem)
                for number, text in enumerate(texts):
                    if text.strip() and text not in ids:
                        ids[text] = f"{collection}/{row.get('id')}-{number}@{len(ids)}"
                        documents.append(
                            (place, {"id": ids[text], "text": text, "collection": collection})
                        )
                rows.append(
                    (brief(place, file), _judged_question(row, texts, ids, collection, place))
                )
        return Contents(documents_of(documents), rows)


def _parquet_files(root: Path) -> list[Path]:
    if root.is_file():
        return [root] if root.suffix.lower() == ".parquet" else []
    files = [*root.glob("*.parquet"), *root.glob("*/*.parquet")]
    return sorted(
        file
        for file in files
        if not any(name.startswith(".") for name in file.relative_to(root).parts)
    )


_RAGBENCH_COLUMNS = (
    "id",
    "question",
    "documents",
    "documents_sentences",
    "all_relevant_sentence_keys",
)
_BATCH = 256  # rows of a Parquet file in memory


def _parquet_rows(file: Path) -> Iterator[Row]:
    pyarrow, parquet = (
        needed(name, "parquet", f"read {file.name}") for name in ("pyarrow", "pyarrow.parquet")
    )
    try:
        with parquet.ParquetFile(file) as table:
            names = table.schema_arrow.names
            missing = [column for column in _RAGBENCH_COLUMNS if column not in names]
            if missing:
                raise DataError(f"{file} lacks the column {' and '.join(missing)}")
            columns = [
                column
                for column in (*_RAGBENCH_COLUMNS, "response", "dataset_name")
                if column in names
            ]
            batches = table.iter_batches(batch_size=_BATCH, columns=columns)
            for number, row in enumerate(
                (row for batch in batches for row in batch.to_pylist()), start=1
            ):
                yield f"{file}, row {number}", row
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(
            f"{file} cannot be read as Parquet: {str(error).splitlines()[0]}"
        ) from error


def _judged_question(
    row: Mapping[str, Any],
    texts: Sequence[str],
    ids: Mapping[str, str],
    collection: str,
    place: str,
) -> dict[str, Any]:
    query: dict[str, Any] = {key: row.get(key) for key in ("id", "question", "response")}
    query |= {"collection": collection, "documents": [ids[text] for text in texts if text in ids]}
    node = JsonNode(row, place)
    sentences: dict[str, tuple[int, Span | str]] = {}
    for number, pairs in enumerate(node.get("documents_sentences", list)):
        if not all(
            isinstance(pair, list) and [type(value) for value in pair] == [str, str]
            for pair in pairs or ()
        ):
            raise DataError(
                f"{place}: expected 'documents_sentences' to be lists of [key, sentence] a document"
            )
        text = texts[number] if number < len(texts) else ""
        placed = _in_order(text, [sentence.strip() for _, sentence in pairs])
        sentences |= {key: (number, where) for (key, _), where in zip(pairs, placed, strict=True)}
    keys = [str(key) for key in node.get("all_relevant_sentence_keys", list)]
    if not keys:
        return query | {"without_evidence": True}
    evidence = []
    for key in sorted(keys, key=lambda key: sentences.get(key, (0,))[0]):
        number, where = sentences.get(key, (len(texts), ""))
        if number >= len(texts) or texts[number] not in ids:
            return query | {"left_out": f"its relevant sentence {key!r} is none of its documents'"}
        entry = (
            {"text": where} if isinstance(where, str) else {"start": where.start, "end": where.end}
        )
        evidence.append({"document": ids[texts[number]], **entry})
    return query | {"evidence": evidence}


def _in_order(text: str, sentences: Sequence[str]) -> Sequence[Span | str]:
    """The places of a text's sentences, which follow each other; the sentences if other text is between them."""
    spans = []
    end = 0
    for sentence in sentences:
        start = text.find(sentence, end)
        if not sentence or start < 0 or text[end:start].strip():
            return sentences
        end = start + len(sentence)
        spans.append(Span(start, end))
    return spans
