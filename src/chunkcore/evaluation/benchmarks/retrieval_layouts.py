"""Retrieval datasets: BEIR, LegalBench-RAG, RAGBench."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from chunkcore.document import Span
from chunkcore.errors import DataError
from chunkcore.evaluation.benchmarks.documents import Row, documents_of
from chunkcore.evaluation.benchmarks.layout import (
    Contents,
    JsonNode,
    Layout,
    Questions,
    as_read_by_python,
    brief,
    data_files,
    layouts,
    regular_files,
    with_keys,
)
from chunkcore.files import json_lines, read_json, text_lines
from chunkcore.lazy import needed


@layouts.register("beir")
class Beir(Layout):
    """BEIR (Thakur et al., 2021): queries with judgements of whole documents."""

    files = "corpus.jsonl, queries.jsonl, qrels/*.tsv"
    needs = ("corpus.jsonl", "queries.jsonl", "qrels/*.tsv")
    takes_questions = True

    def read(self, root: Path, questions: Questions | None = None, leave_out: Collection[Path] = ()) -> Contents:
        """A document's text is its title, a line feed and its text. Evidence is whole documents.

        The queries are those judged in one split: the given file, else ``qrels/test.tsv``, ``dev.tsv``, ``train.tsv``.
        Judgements of 0 or less are left out; the others are in ``metadata["grades"]``.
        """
        judged = Path(questions) if isinstance(questions, str | Path) else _split(root / "qrels")
        corpus = root / "corpus.jsonl"

        def documents() -> Iterator[Row]:
            for number, value in json_lines(corpus):
                row = JsonNode(value, f"{corpus}, line {number}")
                text, title = row.get("text", str), value.get("title")
                titled = f"{title}\n{text}" if isinstance(title, str) and title else text
                others = {key: value[key] for key in value if key not in ("_id", "text")}
                yield row.place, {"id": row.get("_id", str), "text": titled, "metadata": others}

        return Contents(documents_of(documents()), list(_judged(root / "queries.jsonl", judged)))


def _split(folder: Path) -> Path:
    files = {file.name: file for file in sorted(folder.glob("*.tsv"))}
    named = next((files[name] for name in ("test.tsv", "dev.tsv", "train.tsv") if name in files), None)
    if named is None and len(files) != 1:
        raise DataError(f"{folder} has {', '.join(files) or 'no .tsv file'}: name the one with the judgements")
    return named or next(iter(files.values()))


def _judged(queries: Path, judged: Path) -> Iterator[Row]:
    grades = _grades(judged)
    for number, row in json_lines(queries):
        identity = JsonNode(row, f"{queries}, line {number}").get("_id", str)
        if identity in grades:
            relevant = {document: grade for document, grade in grades.pop(identity).items() if grade > 0}
            told: dict[str, Any] = {key: value for key, value in row.items() if key not in ("_id", "text")}
            told |= {"id": identity, "question": row.get("text")}
            if relevant:
                told |= {"evidence": [{"document": each, "whole": True} for each in relevant], "grades": relevant}
            else:
                told |= {"left_out": "no document is judged relevant"}
            yield f"{queries.name}, line {number}", told
    for identity in grades:
        yield judged.name, {"id": identity, "question": identity, "left_out": f"{queries.name} has no query of this id"}


def _grades(file: Path) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for number, line in text_lines(file):
        values = line.rstrip("\r\n").split("\t")
        if (number == 1 and not _is_whole(values[-1])) or not line.strip():
            continue
        if len(values) != 3 or not _is_whole(values[2]):
            raise DataError(
                f"{file}, line {number}: expected query-id, corpus-id and a whole number, parted by tabs, "
                f"got {line.strip()[:60]!r}"
            )
        found.setdefault(values[0], {})[values[1]] = int(values[2].strip())  # strips more than int() does
    return found


def _is_whole(text: str) -> bool:
    digits = text.strip().removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 10


@layouts.register("legalbench_rag")
class LegalBenchRag(Layout):
    """LegalBench-RAG (Pipitone and Houir Alami, 2024): questions with snippets of legal documents."""

    files = "corpus/**/*.txt, benchmarks/*.json"
    needs = ("corpus", "benchmarks/*.json")

    def read(self, root: Path, questions: Questions | None = None, leave_out: Collection[Path] = ()) -> Contents:
        """A document's id is its path below ``corpus``; a question's collection is its file below ``benchmarks``."""
        corpus = root / "corpus"
        documents = documents_of(
            (str(file), {"id": file.relative_to(corpus).as_posix(), "text": as_read_by_python(file)})
            for file in regular_files(corpus)
        )
        return Contents(
            documents, [row for file in sorted((root / "benchmarks").glob("*.json")) for row in _tests(file)]
        )


def _tests(file: Path) -> Iterator[Row]:
    for number, test in enumerate(JsonNode(read_json(file), str(file), joint=", ").nodes("tests"), start=1):
        evidence = []
        for snippet in test.nodes("snippets"):
            path, span = snippet.get("file_path", str), snippet.get("span", list)
            if len(span) != 2:
                raise DataError(f"{snippet.place}: expected 'span' to be [start, end], got {len(span)} values")
            evidence.append({"document": path, "start": span[0], "end": span[1], "text": snippet.value.get("answer")})
        told = {
            "id": f"{file.stem}-{number}",
            "question": test.get("query", str),
            "collection": file.stem,
            "tags": test.value.get("tags"),
            "evidence": evidence,
        }
        yield brief(test.place, file), told


@layouts.register("ragbench")
class RagBench(Layout):
    """RAGBench (Friel et al., 2024): questions with the documents that were retrieved, and their relevant sentences."""

    files = '.jsonl or .parquet of {"id", "question", "documents", "documents_sentences", "all_relevant_sentence_keys"}'
    keys = ("documents_sentences", "all_relevant_sentence_keys")
    suffixes = (".jsonl",)

    def lacks(self, root: Path) -> str:
        missing = [super(RagBench, self).lacks(folder) for folder in _folders(root)]
        return "" if not all(missing) or any(map(_tables, _folders(root))) else f"{missing[0]}, or a .parquet file"

    def read(self, root: Path, questions: Questions | None = None, leave_out: Collection[Path] = ()) -> Contents:
        """Each distinct retrieved text is a document. Evidence is its relevant sentences, as chosen by a language
        model.

        Sentences are located in sequence, with only white space between; if that fails, each relevant one must occur
        exactly once. ``metadata["response"]`` has the model's response; it is not an answer.
        """
        ids: dict[str, str] = {}
        documents: list[Row] = []
        asked: list[Row] = []
        files = _tables(root) if root.is_file() else []
        for folder in [] if files else _folders(root):
            files += sorted([*with_keys(folder, self.keys, self.suffixes), *_tables(folder)])
        for file in files:
            lines = ((f"{file}, line {number}", row) for number, row in json_lines(file))
            for place, row in _parquet(file) if file.suffix.lower() == ".parquet" else lines:
                texts = JsonNode(row, place).get("documents", list)
                name = str(row.get("dataset_name") or file.stem)
                for number, text in enumerate(texts):
                    if not isinstance(text, str):
                        raise DataError(f"{place}: expected 'documents' to be strings")
                    if text.strip() and text not in ids:
                        ids[text] = f"{name}/{row.get('id')}-{number}@{len(ids)}"
                        documents.append((place, {"id": ids[text], "text": text, "collection": name}))
                asked.append((brief(place, file), _question(row, texts, ids, name, place)))
        return Contents(documents_of(documents), asked)


def _tables(root: Path) -> list[Path]:
    return [file for file in data_files(root, (".parquet",)) if file.suffix.lower() == ".parquet"]


def _folders(root: Path) -> list[Path]:
    inner = sorted(root.iterdir()) if root.is_dir() else []
    return [root, *(each for each in inner if each.is_dir() and not each.name.startswith("."))]


_NEEDED = ("id", "question", "documents", "documents_sentences", "all_relevant_sentence_keys")
_AT_ONCE = 256  # rows of a Parquet file in memory


def _parquet(file: Path) -> Iterator[Row]:
    pyarrow, parquet = (needed(each, "parquet", f"read {file.name}") for each in ("pyarrow", "pyarrow.parquet"))
    try:
        with parquet.ParquetFile(file) as opened:
            columns = opened.schema_arrow.names
            missing = [column for column in _NEEDED if column not in columns]
            if missing:
                raise DataError(f"{file} lacks the column {' and '.join(missing)}")
            wanted = [column for column in (*_NEEDED, "response", "dataset_name") if column in columns]
            number = 0
            for batch in opened.iter_batches(batch_size=_AT_ONCE, columns=wanted):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{file}, row {number}", row
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{file} cannot be read as Parquet: {str(error).splitlines()[0]}") from error


def _question(
    row: Mapping[str, Any], texts: Sequence[str], ids: dict[str, str], name: str, place: str
) -> dict[str, Any]:
    told: dict[str, Any] = {
        "id": row.get("id"),
        "question": row.get("question"),
        "collection": name,
        "response": row.get("response"),
        "documents": [ids[text] for text in texts if text in ids],
    }
    node = JsonNode(row, place)
    keys = [str(key) for key in node.get("all_relevant_sentence_keys", list)]
    sentences = _sentences(node.get("documents_sentences", list), place)
    unknown = [key for key in keys if key not in sentences]
    if not keys:
        return told | {"without_evidence": True}
    if unknown:
        return told | {"left_out": f"its relevant sentence {unknown[0]!r} is none of its documents'"}
    if any(number >= len(texts) or texts[number] not in ids for number, _ in map(sentences.__getitem__, keys)):
        return told | {"left_out": "its relevant sentences are of a document that documents does not have"}
    evidence = []
    for number in sorted({sentences[key][0] for key in keys}):
        inside = [key for key, (document, _) in sentences.items() if document == number]
        spans = _located(texts[number], [sentences[key][1] for key in inside]) or [None] * len(inside)
        for key, span in zip(inside, spans, strict=True):
            if key in keys:
                found = {"start": span.start, "end": span.end} if span else {"text": sentences[key][1].strip()}
                evidence.append({"document": ids[texts[number]], **found})
    return told | {"evidence": evidence}


def _sentences(by_document: Sequence[Any], place: str) -> dict[str, tuple[int, str]]:
    found: dict[str, tuple[int, str]] = {}
    for number, document in enumerate(by_document):
        for pair in document if isinstance(document, list) else [None]:
            if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(each, str) for each in pair):
                raise DataError(f"{place}: expected 'documents_sentences' to be lists of [key, sentence] a document")
            found[pair[0]] = (number, pair[1])
    return found


def _located(text: str, sentences: Sequence[str]) -> list[Span | None]:
    found: list[Span | None] = []
    end = 0
    for sentence in sentences:
        bare = sentence.strip()
        if not bare:
            found.append(None)
            continue
        start = text.find(bare, end)
        if start < 0 or text[end:start].strip():
            return []
        end = start + len(bare)
        found.append(Span(start, end))
    return found
