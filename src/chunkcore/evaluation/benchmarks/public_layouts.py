"""Public datasets: SQuAD and its like, BEIR, LegalBench-RAG, RAGBench."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count
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


@layouts.register("squad")
class Squad(Layout):
    """SQuAD (Rajpurkar et al., 2016, 2018), and collections in its layout."""

    files = '.json files of {"data": [{"title", "paragraphs": [{"context", "qas"}]}]}, v1.1 or v2.0'
    keys = ("data", "paragraphs")
    _BETWEEN = "\n\n"

    def read(self, root: Path, questions: Questions | None = None, leave_out: Collection[Path] = ()) -> Contents:
        """A document is an article: its contexts, separated by blank lines.

        Its id is its title, or its first paragraph's ``document_id``. Equal articles in several files are one document;
        different articles of one title are numbered. Evidence is every annotator's answer, verified against its text.
        Questions with ``is_impossible`` or no answer are without evidence, with ``metadata["unanswerable"]``.
        """
        documents: dict[str, Row] = {}
        rows: list[Row] = []
        for file in with_keys(root, self.keys, self.suffixes):
            for number, article in enumerate(JsonNode(read_json(file), str(file), joint=", ").nodes("data"), start=1):
                paragraphs = article.nodes("paragraphs")
                contexts = [paragraph.get("context", str) for paragraph in paragraphs]
                text = self._BETWEEN.join(contexts)
                identity = _article_id(article, paragraphs, f"{file.stem}-{number}")
                numbered = (identity if n == 1 else f"{identity}-{n}" for n in count(1))
                # Another article's name is numbered; an equal article is the same document.
                identity = next(n for n in numbered if n not in documents or documents[n][1]["text"] == text)
                documents[identity] = (article.place, {"id": identity, "text": text})
                start = 0
                for paragraph, context in zip(paragraphs, contexts, strict=True):
                    rows += [(brief(at, file), row) for at, row in _squad_questions(paragraph, identity, start)]
                    start += len(context) + len(self._BETWEEN)
        return Contents(documents_of(documents.values()), rows)


@layouts.register("cuad")
class Cuad(Squad):
    """CUAD (Hendrycks et al., 2021): clauses of contracts."""

    files = "CUADv1.json, as squad"


@layouts.register("covid_qa")
class CovidQA(Squad):
    """COVID-QA (Möller et al., 2020)."""

    files = "COVID-QA.json, as squad"


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
    takes_questions = True

    def read(self, root: Path, questions: Questions | None = None, leave_out: Collection[Path] = ()) -> Contents:
        """A document's text is its title, a line feed and its text. Evidence is whole documents.

        The queries are those judged in one split: the named file, else ``qrels/test.tsv``, ``dev.tsv``, ``train.tsv``.
        Judgements of 0 or less are left out; the others are in ``metadata["grades"]``.
        """
        judgements = Path(questions) if isinstance(questions, str | Path) else _split(root / "qrels")
        corpus = root / "corpus.jsonl"

        def documents() -> Iterator[Row]:
            for number, value in json_lines(corpus):
                row = JsonNode(value, f"{corpus}, line {number}")
                text, title = row.get("text", str), value.get("title")
                titled = f"{title}\n{text}" if isinstance(title, str) and title else text
                others = {key: value[key] for key in value if key not in ("_id", "text")}
                yield row.place, {"id": row.get("_id", str), "text": titled, "metadata": others}

        return Contents(documents_of(documents()), list(_judged_queries(root / "queries.jsonl", judgements)))


def _split(folder: Path) -> Path:
    files = {file.name: file for file in sorted(folder.glob("*.tsv"))}
    split = next((files[name] for name in ("test.tsv", "dev.tsv", "train.tsv") if name in files), None)
    if split is None and len(files) != 1:
        raise DataError(f"{folder} has {', '.join(files) or 'no .tsv file'}: name the one with the judgements")
    return split or next(iter(files.values()))


def _judged_queries(queries: Path, judgements: Path) -> Iterator[Row]:
    grades = _grades(judgements)
    for number, row in json_lines(queries):
        identity = JsonNode(row, f"{queries}, line {number}").get("_id", str)
        if identity not in grades:
            continue
        relevant = {document: grade for document, grade in grades.pop(identity).items() if grade > 0}
        query: dict[str, Any] = {key: value for key, value in row.items() if key not in ("_id", "text")}
        query |= {"id": identity, "question": row.get("text")}
        if relevant:
            query |= {"evidence": [{"document": name, "whole": True} for name in relevant], "grades": relevant}
        else:
            query |= {"left_out": "no document is judged relevant"}
        yield f"{queries.name}, line {number}", query
    for identity in grades:
        reason = f"{queries.name} has no query of this id"
        yield judgements.name, {"id": identity, "question": identity, "left_out": reason}


def _grades(file: Path) -> dict[str, dict[str, int]]:
    grades: dict[str, dict[str, int]] = {}
    for number, line in text_lines(file):
        values = line.rstrip("\r\n").split("\t")
        if (number == 1 and not _is_whole(values[-1])) or not line.strip():
            continue
        if len(values) != 3 or not _is_whole(values[2]):
            raise DataError(
                f"{file}, line {number}: expected query-id, corpus-id and a whole number, parted by tabs, "
                f"got {line.strip()[:60]!r}"
            )
        grades.setdefault(values[0], {})[values[1]] = int(values[2].strip())  # strips more than int() does
    return grades


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
        files = sorted((root / "benchmarks").glob("*.json"))
        return Contents(documents, [row for file in files for row in _snippet_questions(file)])


def _snippet_questions(file: Path) -> Iterator[Row]:
    for number, test in enumerate(JsonNode(read_json(file), str(file), joint=", ").nodes("tests"), start=1):
        evidence = []
        for snippet in test.nodes("snippets"):
            path, span = snippet.get("file_path", str), snippet.get("span", list)
            if len(span) != 2:
                raise DataError(f"{snippet.place}: expected 'span' to be [start, end], got {len(span)} values")
            evidence.append({"document": path, "start": span[0], "end": span[1], "text": snippet.value.get("answer")})
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

    files = '.jsonl or .parquet of {"id", "question", "documents", "documents_sentences", "all_relevant_sentence_keys"}'
    keys = ("documents_sentences", "all_relevant_sentence_keys")
    suffixes = (".jsonl",)

    def lacks(self, root: Path) -> str:
        missing = [super(RagBench, self).lacks(folder) for folder in _folders(root)]
        return "" if not all(missing) or any(map(_tables, _folders(root))) else f"{missing[0]}, or a .parquet file"

    def read(self, root: Path, questions: Questions | None = None, leave_out: Collection[Path] = ()) -> Contents:
        """A document is a retrieved text, the same text once; the files may lie in folders.

        Evidence is the sentences that RAGBench's judge, a language model, called relevant. A sentence is placed by the
        sentences before it in its document; where they do not make up its text, the sentence must stand in it exactly
        once. ``metadata["response"]`` has the model's response; it is not an answer.
        """
        ids: dict[str, str] = {}
        documents: list[Row] = []
        rows: list[Row] = []
        files = _tables(root) if root.is_file() else []
        for folder in [] if files else _folders(root):
            files += sorted([*with_keys(folder, self.keys, self.suffixes), *_tables(folder)])
        for file in files:
            lines = ((f"{file}, line {number}", row) for number, row in json_lines(file))
            for place, row in _parquet(file) if file.suffix.lower() == ".parquet" else lines:
                texts = JsonNode(row, place).texts("documents")
                collection = str(row.get("dataset_name") or file.stem)
                for number, text in enumerate(texts):
                    if text.strip() and text not in ids:
                        ids[text] = f"{collection}/{row.get('id')}-{number}@{len(ids)}"
                        documents.append((place, {"id": ids[text], "text": text, "collection": collection}))
                rows.append((brief(place, file), _judged_question(row, texts, ids, collection, place)))
        return Contents(documents_of(documents), rows)


def _tables(root: Path) -> list[Path]:
    return [file for file in data_files(root, (".parquet",)) if file.suffix.lower() == ".parquet"]


def _folders(root: Path) -> list[Path]:
    inner = sorted(root.iterdir()) if root.is_dir() else []
    return [root, *(path for path in inner if path.is_dir() and not path.name.startswith("."))]


_COLUMNS = ("id", "question", "documents", "documents_sentences", "all_relevant_sentence_keys")
_BATCH = 256  # rows of a Parquet file in memory


def _parquet(file: Path) -> Iterator[Row]:
    pyarrow, parquet = (needed(name, "parquet", f"read {file.name}") for name in ("pyarrow", "pyarrow.parquet"))
    try:
        with parquet.ParquetFile(file) as table:
            names = table.schema_arrow.names
            missing = [column for column in _COLUMNS if column not in names]
            if missing:
                raise DataError(f"{file} lacks the column {' and '.join(missing)}")
            columns = [column for column in (*_COLUMNS, "response", "dataset_name") if column in names]
            batches = table.iter_batches(batch_size=_BATCH, columns=columns)
            for number, row in enumerate((row for batch in batches for row in batch.to_pylist()), start=1):
                yield f"{file}, row {number}", row
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{file} cannot be read as Parquet: {str(error).splitlines()[0]}") from error


def _judged_question(
    row: Mapping[str, Any], texts: Sequence[str], ids: Mapping[str, str], collection: str, place: str
) -> dict[str, Any]:
    query: dict[str, Any] = {
        "id": row.get("id"),
        "question": row.get("question"),
        "collection": collection,
        "response": row.get("response"),
        "documents": [ids[text] for text in texts if text in ids],
    }
    node = JsonNode(row, place)
    keys = [str(key) for key in node.get("all_relevant_sentence_keys", list)]
    sentences = _sentences(node.get("documents_sentences", list), place)
    unknown = [key for key in keys if key not in sentences]
    if not keys:
        return query | {"without_evidence": True}
    if unknown:
        return query | {"left_out": f"its relevant sentence {unknown[0]!r} is none of its documents'"}
    numbers = sorted({sentences[key][0] for key in keys})
    if any(number >= len(texts) or texts[number] not in ids for number in numbers):
        return query | {"left_out": "its relevant sentences are of a document that documents does not have"}
    evidence = []
    for number in numbers:
        inside = {key: sentence for key, (document, sentence) in sentences.items() if document == number}
        spans = _located(texts[number], list(inside.values())) or [None] * len(inside)
        for (key, sentence), span in zip(inside.items(), spans, strict=True):
            if key in keys:
                entry = {"start": span.start, "end": span.end} if span else {"text": sentence.strip()}
                evidence.append({"document": ids[texts[number]], **entry})
    return query | {"evidence": evidence}


def _sentences(documents: Sequence[Any], place: str) -> dict[str, tuple[int, str]]:
    """By key, the number of a sentence's document, and the sentence."""
    sentences: dict[str, tuple[int, str]] = {}
    for number, pairs in enumerate(documents):
        for pair in pairs if isinstance(pairs, list) else [None]:
            if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(value, str) for value in pair):
                raise DataError(f"{place}: expected 'documents_sentences' to be lists of [key, sentence] a document")
            sentences[pair[0]] = (number, pair[1])
    return sentences


def _located(text: str, sentences: Sequence[str]) -> list[Span | None]:
    """The places of all sentences of a text, in order, None for blank ones; empty if other text is between them."""
    spans: list[Span | None] = []
    end = 0
    for sentence in map(str.strip, sentences):
        start = text.find(sentence, end)
        if start < 0 or (sentence and text[end:start].strip()):
            return []
        if sentence:
            end = start + len(sentence)
        spans.append(Span(start, end) if sentence else None)
    return spans
