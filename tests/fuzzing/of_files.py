"""What reads what strangers wrote: collections, configurations, runs, models' answers.

Any bytes end in one of our errors, in one line, or are read; never in another exception.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from chunkcore import Benchmark, Evidence, Query, get_measure, get_retriever, load_benchmark, load_documents, read_run
from chunkcore.errors import ChunkcoreError, DataError, OptionError
from chunkcore.evaluation.gate import parse_requirement
from chunkcore.models.llm.base import BadAnswerError, found_json
from chunkcore.reading import read_file
from chunkcore.study.tuning import expand_grid
from chunkcore.text import Document, Span
from hypothesis import strategies as st

from tests.files import lines_of, paragraph, pdf_bytes, table, write_docx, write_epub
from tests.fuzzing.targets import target
from tests.fuzzing.texts import texts
from tests.test_bad_files import FILES, VALUES, WRITERS, changed, told

_JSON = [each for each in FILES if ".json" in each[1] or ".dev" in each[1]]
_seeds = st.integers(0, 1 << 32)
_BENCHMARK = Benchmark(
    "b",
    [Document("a.txt", "The fox naps."), Document("1", "Rain.")],
    [Query("q1", "Who?", (Evidence("a.txt", Span(0, 3)),))],
)


def contents(most: int = 60) -> st.SearchStrategy[bytes]:
    """Bytes of a file: any, and such as come near to something that is read."""
    return st.binary(max_size=most) | texts(most).map(lambda text: text.encode("utf-8", "surrogatepass"))


@target(share=0.3, guided=True, place=st.sampled_from(FILES), content=contents())
def any_bytes_in_any_collection_end_in_a_sentence(place: tuple[str, str], content: bytes) -> None:
    """In each file of a collection."""
    name, file = place
    with tempfile.TemporaryDirectory() as folder:
        root = WRITERS[name](Path(folder))
        (root / file).write_bytes(content)
        told(root)


@target(share=0.3, place=st.sampled_from(_JSON), seed=_seeds, other=VALUES)
def any_value_in_any_collection_ends_in_a_sentence(place: tuple[str, str], seed: int, other: Any) -> None:
    """Anywhere in its JSON."""
    name, file = place
    draw = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        root = WRITERS[name](Path(folder))
        text = (root / file).read_text("utf-8")
        lines = [text] if file.endswith(".json") else text.splitlines()
        number = draw.randrange(len(lines))
        lines[number] = json.dumps(changed(json.loads(lines[number]), draw, other))
        (root / file).write_text("\n".join(lines))
        told(root)


@target(share=1, guided=True, content=contents())
def any_bytes_are_a_run_or_an_error(content: bytes) -> None:
    """What a system retrieved."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "r.jsonl"
        file.write_bytes(content)
        with suppress(ChunkcoreError):
            read_run(file, _BENCHMARK)


_HITS = st.fixed_dictionaries(
    {"query_id": st.just("q1") | VALUES},
    optional={
        "document_id": st.just("a.txt") | VALUES,
        "spans": st.lists(st.lists(st.integers(-2, 20), min_size=2, max_size=2), max_size=2) | VALUES,
        "text": texts(12) | VALUES,
        "score": st.floats() | VALUES,
        "rank": st.integers(-1, 5) | VALUES,
        "results": VALUES,
    },
)


@target(share=0.2, rows=st.lists(_HITS, max_size=3))
def any_values_are_a_run_or_an_error(rows: list[dict[str, Any]]) -> None:
    """Lines of the right form, with wrong things in it; what is read lies inside the documents."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "r.jsonl"
        file.write_text("\n".join(map(json.dumps, rows)), "utf-8")
        try:
            found = read_run(file, _BENCHMARK).results
        except ChunkcoreError:
            return
    for piece in found.get("q1", ()):
        assert all(span.end <= len(_BENCHMARK.document(piece.document_id).text) for span in piece.spans)


@target(share=0.5, guided=True, content=contents(), ending=st.sampled_from([".txt", ".md", ".jsonl", ".json"]))
def any_bytes_are_documents_or_an_error(content: bytes, ending: str) -> None:
    """A user's own file, as documents and as questions."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"a{ending}"
        file.write_bytes(content)
        with suppress(ChunkcoreError):
            load_documents(file)
        (Path(folder) / "b.txt").write_text("The fox naps.")
        with suppress(ChunkcoreError):
            load_benchmark(Path(folder) / "b.txt", questions=file)


_KINDS = {
    "pdf": lambda path: path.write_bytes(pdf_bytes([lines_of("Black tea\nis hot."), b""], outline=[("Black", 0)])),
    "docx": lambda path: write_docx(path, paragraph("Tea", "Titel") + table([["a", "b"], ["1", "2"]])),
    "epub": lambda path: write_epub(path, {"a.xhtml": "<h1>Tea</h1><table><tr><td>hot</table>"}),
    "eml": lambda path: path.write_text("Subject: =?utf-8?q?T=C3=A9?=\nContent-Type: text/html\n\n<p>Tea"),
    "ipynb": lambda path: path.write_text('{"cells": [{"cell_type": "code", "source": ["a"], "outputs": [{}]}]}'),
    "txt": lambda path: path.write_bytes("Thé très chaud".encode("cp1252")),
}
_OURS = (NameError, AttributeError, AssertionError)


def _document_or_error(file: Path) -> Document | DataError:
    try:
        return read_file(file).document
    except DataError as error:
        return error


@target(share=0.05, kind=st.sampled_from(sorted(_KINDS)), seed=_seeds, content=contents(), whole=st.booleans())
def any_file_is_a_document_or_one_error(kind: str, seed: int, content: bytes, whole: bool) -> None:
    """PDF, DOCX, EPUB, e-mail, notebooks, text: any bytes, and real files with some bytes changed."""
    draw = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"a.{kind}"
        _KINDS[kind](file)
        data = bytearray(content if whole else file.read_bytes())
        for _ in range(draw.randrange(4)):
            place = draw.randrange(len(data) + 1)
            data[place : place + draw.randrange(3)] = content[: draw.randrange(5)]
        file.write_bytes(data)
        document = _document_or_error(file)
    if isinstance(document, DataError):
        assert "\n" not in str(document)
        assert not isinstance(document.__cause__, _OURS)
        return
    assert document.text


@target(share=1, texts=4, guided=True, text=texts())
def any_answer_of_a_model_is_json_or_a_bad_answer(text: str) -> None:
    """What stands in it is found, or the model is told why not."""
    with suppress(BadAnswerError):
        assert isinstance(found_json(text), dict)


@target(share=1, texts=4, guided=True, text=texts(60))
def a_string_is_a_retriever_or_an_option_error(text: str) -> None:
    """Whatever a user writes for one."""
    for spec in (text, f"hybrid:{text}", f"bm25:{text}", f"rerank:{text}"):
        with suppress(OptionError):
            method = get_retriever(spec)
            assert get_retriever(method.name) == method


_WRITTEN = {
    expand_grid: ("", "recursive:size=", "sentence:splitter=", "kamradt:amount={"),
    get_measure: ("", "Recall@", "nDCG@5[", "PrecisionOmega"),
    parse_requirement: ("", "HitRate@5>=", "Recall@", "nDCG@10<"),
}


@target(share=0.1, texts=4, guided=True, text=texts(24))
def a_string_is_an_option_or_an_error(text: str) -> None:
    """Grids, measures and requirements, as they are written on a command line."""
    for parse, beginnings in _WRITTEN.items():
        for beginning in beginnings:
            with suppress(ChunkcoreError):
                parse(beginning + text)  # type: ignore[operator]
