"""Record batches of documents to record batches of chunks: a row depends on its document, not on its batch."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow", reason="pyarrow (the extra arrow) is not installed")

from chunkadapters.arrow import CHUNK_SCHEMA, SPARK_SCHEMA, ArrowChunker  # noqa: E402
from chunkcore import Chunk, Document, get_chunker  # noqa: E402
from chunkcore.chunkers import (  # noqa: E402
    Chunker,
    FixedToken,
)
from chunkcore.chunkers import chunkers as registry  # noqa: E402
from chunkcore.errors import DataError, OptionError  # noqa: E402
from chunkcore.models.base import Vectors  # noqa: E402
from chunkcore.tokens import TokenizedText  # noqa: E402

from tests.fakes import FakeEmbedder, FakeLLM  # noqa: E402
from tests.strategies import hard_text  # noqa: E402

SMALL = "recursive:size=12,overlap=4,counter=characters"
TEA = "Green tea is steamed. Black tea is oxidised, and keeps for years."


def batch(*rows: dict[str, Any], schema: Any = None) -> Any:
    return pa.RecordBatch.from_pylist(list(rows), schema=schema)


def rows_of(chunker: ArrowChunker, *documents: dict[str, Any], schema: Any = None) -> list[dict[str, Any]]:
    made = chunker(batch(*documents, schema=schema))
    made.validate(full=True)
    assert made.schema.equals(chunker.schema, check_metadata=True)
    return made.to_pylist()  # type: ignore[no-any-return]


def as_bytes(batches: Sequence[Any], schema: Any) -> bytes:
    """The rows as one batch of Arrow's stream: equal where every value is, to the last bit."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        for each in pa.Table.from_batches(batches, schema=schema).combine_chunks().to_batches():
            stream.write_batch(each)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


# --- the schema ---------------------------------------------------------------------------------------

SURROGATE = "a model wrote an unpaired surrogate"


def test_no_documents_are_a_batch_of_no_rows_with_the_same_columns() -> None:
    chunker = ArrowChunker(SMALL)
    for nothing in (
        batch(schema=pa.schema([("id", pa.string()), ("text", pa.string())])),
        pa.table({"id": [], "text": []}),
    ):
        assert chunker(nothing).num_rows == 0
        assert chunker(nothing).schema == CHUNK_SCHEMA
    assert chunker(pa.table({})).schema == CHUNK_SCHEMA  # as engines have empty blocks


def test_spark_reads_the_same_columns() -> None:
    kinds = {"string": "string", "int64": "bigint", "bool": "boolean"}
    for name in ("spans", "segments"):
        kinds[str(CHUNK_SCHEMA.field(name).type)] = "array<" * (1 + (name == "segments")) + (
            "struct<`start`: bigint, `end`: bigint>" + ">" * (1 + (name == "segments"))
        )
    assert ", ".join(f"`{field.name}` {kinds[str(field.type)]}" for field in CHUNK_SCHEMA) == SPARK_SCHEMA


# --- the chunks are the core's ------------------------------------------------------------------------


def chunkers() -> list[Chunker]:
    """Every strategy of chunkcore, small; models are fakes."""
    sizes = {"size": 14, "piece_size": 6, "passage_size": 14, "max_segment": 14, "minimum": 0}
    found = []
    for name, cls in registry.items():
        if not cls.__module__.startswith("chunkcore."):
            continue
        models = {"embedder": FakeEmbedder(), "llm": FakeLLM()}
        options = {option: value for option, value in {**sizes, **models}.items() if option in cls.option_names()}
        found.append(get_chunker(name, **options))
    return found


def expected(chunk: Chunk) -> dict[str, Any]:
    return {
        "document_id": chunk.document_id,
        "index": chunk.index,
        "spans": [{"start": span.start, "end": span.end} for span in chunk.spans],
        "text": chunk.text,
        "token_count": chunk.token_count,
        "context": chunk.context,
        "derived": chunk.derived,
        "segments": [[{"start": span.start, "end": span.end} for span in each] for each in chunk.segments],
        "content_hash": chunk.content_hash,
        "error": None,
    }


def encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@pytest.mark.parametrize("chunker", chunkers(), ids=lambda chunker: chunker.name)
@given(texts=st.lists(hard_text(max_parts=25).filter(encodable), min_size=1, max_size=3))
@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow])
def test_the_rows_are_the_chunks_of_every_strategy(chunker: Chunker, texts: list[str]) -> None:
    rows = rows_of(ArrowChunker(chunker), *({"id": f"d{i}", "text": text} for i, text in enumerate(texts)))
    for number, text in enumerate(texts):
        own = [row for row in rows if row["document_id"] == f"d{number}"]
        chunks = chunker.chunk(Document(f"d{number}", text))
        if not all(encodable(chunk.text + chunk.context) for chunk in chunks):  # a model wrote a surrogate
            assert len(own) == 1
            assert own[0]["error"].startswith(SURROGATE)
            continue
        if not chunks:
            assert [row["error"] for row in own] == ["it has no chunks: its text is empty or white space alone"]
            continue
        assert [{name: row[name] for name in expected(chunks[0])} for row in own] == list(map(expected, chunks))
        assert len({row["chunk_id"] for row in own}) == len(own)
        if len({chunk.id for chunk in chunks}) == len(chunks):
            assert [row["chunk_id"] for row in own] == [chunk.id for chunk in chunks]


# --- partitions ---------------------------------------------------------------------------------------


@given(
    texts=st.lists(hard_text(max_parts=12).filter(encodable) | st.none(), min_size=1, max_size=12),
    cuts=st.lists(st.integers(0, 12), max_size=5).map(sorted),
    turned=st.booleans(),
)
@settings(max_examples=40)
def test_the_same_bytes_in_any_partition_and_order(texts: list[str | None], cuts: list[int], turned: bool) -> None:
    documents = [{"id": f"d{number:02}", "text": text} for number, text in enumerate(texts)]
    schema = pa.schema([("id", pa.string()), ("text", pa.string())])
    for spec in (SMALL, "fixed_sentences:sentences=1,overlap=0,counter=words"):
        whole = again = ArrowChunker(spec)
        ends = [*(min(cut, len(documents)) for cut in cuts), len(documents)]
        parts = [documents[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        made = [again(batch(*part, schema=schema)) for part in (reversed(parts) if turned else parts)]
        made.sort(key=lambda each: each["document_id"][0].as_py() if each.num_rows else "")
        assert as_bytes(made, again.schema) == as_bytes([whole(batch(*documents, schema=schema))], whole.schema)


def test_a_stream_of_batches_gives_the_same_rows_and_tables_give_tables() -> None:
    documents = [{"id": str(number), "text": TEA * number} for number in range(20)]
    chunker = ArrowChunker(SMALL)
    whole = chunker(batch(*documents))
    streamed = list(chunker.batches(batch(each) for each in documents))
    assert as_bytes(streamed, chunker.schema) == as_bytes([whole], chunker.schema)
    table = pa.Table.from_batches([batch(*documents[:7]), batch(*documents[7:])])
    assert chunker(table).to_pylist() == whole.to_pylist()
    nested = chunker.nested(batch(*documents))
    assert len(nested) == len(documents)
    assert [row for rows in nested.to_pylist() for row in rows] == whole.to_pylist()


# --- what columns may be ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [
        pa.array([TEA, None]),
        pa.array([TEA, None], pa.large_string()),
        pa.array([TEA, None], pa.string_view()),
        pa.array([TEA, None]).dictionary_encode(),
        pa.array([TEA.encode(), None], pa.binary()),
        pa.array([TEA.encode(), None], pa.large_binary()),
        pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([TEA, None]), pa.array([1, 2])]),
        pa.RunEndEncodedArray.from_arrays([1, 2], pa.array([TEA, None])),
    ],
    ids=lambda column: str(column.type),
)
def test_texts_of_every_engine_are_read(column: Any) -> None:
    chunker = ArrowChunker(SMALL)
    made = chunker(pa.RecordBatch.from_arrays([pa.array(["a", "b"]), column], names=["id", "text"]))
    assert made.to_pylist() == rows_of(chunker, {"id": "a", "text": TEA}, {"id": "b", "text": None})


def test_ids_may_be_integers_and_columns_be_called_otherwise() -> None:
    chunker = ArrowChunker(SMALL, id_column="key", text_column="body", metadata_column="facts")
    made = rows_of(chunker, {"key": 7, "body": "Tea.", "facts": {"year": 1}, "id": "x", "text": "y", "metadata": "{"})
    assert [(row["document_id"], row["text"], row["metadata"]) for row in made] == [("7", "Tea.", '{"year": 1}')]


BAD = {
    "a null id": ({"id": None, "text": "Tea."}, "its id is null: expected a string"),
    "an empty id": ({"id": "", "text": "Tea."}, "its id is empty: expected a name"),
    "a null text": ({"id": "b", "text": None}, "its text is null: expected a string"),
    "no text but white space": (
        {"id": "b", "text": " \n\u3000"},
        "it has no chunks: its text is empty or white space alone",
    ),
    "too long": ({"id": "b", "text": "x" * 1001}, "its text has 1,001 characters: expected at most 1,000"),
    "far too long": ({"id": "b", "text": "x" * 4001}, "its text has 4,001 bytes: expected at most 1,000 characters"),
    "metadata that are no JSON": ({"id": "b", "text": "Tea.", "metadata": "{a"}, "its metadata are no JSON"),
    "metadata that are a list": ({"id": "b", "text": "Tea.", "metadata": "[1]"}, "its metadata are a JSON list"),
    "a key twice": ({"id": "b", "text": "Tea.", "metadata": '{"a": 1, "a": 2}'}, "its metadata have a key twice"),
    "deep metadata": ({"id": "b", "text": "Tea.", "metadata": '{"a": "DEEP"}'}, "its metadata are nested too deeply"),
    "long metadata": (
        {"id": "b", "text": "Tea.", "metadata": json.dumps({"a": "x" * 1_000_000})},
        "its metadata has 1,000,009 characters: expected at most 1,000,000",
    ),
    "a long number": ({"id": "b", "text": "Tea.", "metadata": f'{{"a": {"1" * 5000}}}'}, "its metadata are no JSON"),
}


@pytest.mark.parametrize(("document", "problem"), BAD.values(), ids=list(BAD))
def test_a_bad_document_is_a_row_and_its_neighbours_are_chunks(document, problem, deep_json) -> None:
    chunker = ArrowChunker("sentence:size=12,counter=characters", max_characters=1000)
    good = [{"id": name, "text": TEA, "metadata": None} for name in "ac"]
    schema = pa.schema([("id", pa.string()), ("text", pa.string()), ("metadata", pa.string())])
    rows = rows_of(chunker, good[0], document, good[1], schema=schema)
    (bad,) = [row for row in rows if row["error"] is not None]
    assert bad["error"].startswith(problem)
    assert bad["document_id"] == (document["id"] or None)
    assert all(value is None for name, value in bad.items() if name not in ("document_id", "error"))
    rows.remove(bad)
    assert rows == rows_of(chunker, *good, schema=schema)
    strict = ArrowChunker(chunker.chunker, max_characters=1000, errors="raise")
    if "white space" in problem:  # not one to end a job for
        assert strict(batch(document, schema=schema)).to_pylist() == [bad]
    else:
        with pytest.raises(DataError, match="cannot be cut: "):
            strict(batch(good[0], document, schema=schema))


@dataclass(frozen=True, kw_only=True)
class Choosy(FixedToken):
    """Cuts small documents together, and stumbles over some."""

    def cut(self, source: TokenizedText) -> list[tuple[int, int]]:
        if "poison" in source.text:
            raise MemoryError("no room")
        return super().cut(source)


def test_of_documents_that_are_cut_together_each_has_its_own_rows() -> None:
    documents = [{"id": str(number), "text": f"{TEA} {number}"} for number in range(70)]
    documents[4]["text"] = "Tea! " * 12_000  # enough that the chunker does not cut them all together
    documents[5]["text"], documents[66]["text"] = "poison " * 9_000, "poison"
    rows = rows_of(ArrowChunker(Choosy(size=5)), *documents)
    assert [(row["document_id"], row["error"]) for row in rows if row["error"]] == [
        (name, "MemoryError: no room") for name in ("5", "66")
    ]
    good = [document for document in documents if "poison" not in document["text"]]
    assert [row for row in rows if not row["error"]] == rows_of(ArrowChunker(Choosy(size=5)), *good)
    assert {row["document_id"] for row in rows} == {document["id"] for document in documents}
    for document in good:
        own = [row["text"] for row in rows if row["document_id"] == document["id"]]
        assert own == FixedToken(size=5).split_text(document["text"])


def test_what_utf_8_cannot_say_is_an_error_of_its_row() -> None:
    column = pa.array([b"caf\xe9", b"\xed\xa0\xbd", "café".encode(), b"a\x00b"])
    made = ArrowChunker(SMALL)(pa.RecordBatch.from_arrays([pa.array(list("abcd")), column], names=["id", "text"]))
    assert [(row["text"], row["error"]) for row in made.to_pylist()] == [
        (None, "its text is not UTF-8 (byte 3 is 0xe9): convert it first"),
        (None, "its text is not UTF-8 (byte 0 is 0xed): convert it first"),
        ("café", None),
        ("a\x00b", None),
    ]
    # Arrow itself does not look into its strings.
    unchecked = pa.Array.from_buffers(pa.string(), 4, [None, *column.buffers()[1:]])
    again = ArrowChunker(SMALL)(pa.RecordBatch.from_arrays([pa.array(list("abcd")), unchecked], names=["id", "text"]))
    assert again.to_pylist() == made.to_pylist()


@pytest.mark.parametrize("values", [[1, 2], [1.5, None], [True, False], [["a"], []], [{"a": 1}, None]], ids=str)
def test_a_column_of_another_type_is_an_error_a_row(values: list[Any]) -> None:
    column = pa.array(values)
    made = ArrowChunker(SMALL)(pa.RecordBatch.from_arrays([pa.array(["a", "b"]), column], names=["id", "text"]))
    told = [
        "its text is null: expected a string"
        if value is None
        else f"its text is of the type {column.type}: expected a string, or binary that is UTF-8"
        for value in values
    ]
    assert made["error"].to_pylist() == told
    if not isinstance(values[0], int) or isinstance(values[0], bool):
        made = ArrowChunker(SMALL)(pa.RecordBatch.from_arrays([column, pa.array(["a", "b"])], names=["id", "text"]))
        assert all(problem.startswith("its id is ") for problem in made["error"].to_pylist())


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (pa.table({"name": ["a"], "text": ["b"]}), "expected one column 'id'.*'name', 'text'.*id_column"),
        (pa.table({"id": ["a"], "body": ["b"]}), "expected one column 'text'.*'id', 'body'.*text_column"),
        (pa.RecordBatch.from_arrays([pa.array(["a"])] * 3, names=["id", "text", "text"]), "got 2 among"),
        ({"id": np.array(["a"]), "text": np.array(["b"])}, "expected a pyarrow.RecordBatch.*got dict.*batch_format"),
    ],
)
def test_a_batch_without_the_columns_says_what_was_expected(given: Any, told: str) -> None:
    with pytest.raises(DataError, match=told):
        ArrowChunker(SMALL)(given)


# --- metadata -----------------------------------------------------------------------------------------

FACTS = {"title": "Tea", "years": [1990, 2001], "shop": {"town": "Kyōto"}, "price": 1.5, "sold": True}


def metadata_of(*values: Any, kind: Any = None) -> list[str]:
    column = pa.array(list(values), kind)
    names = pa.array([str(number) for number in range(len(column))])
    texts = pa.array(["Tea."] * len(column))
    made = ArrowChunker(SMALL)(pa.RecordBatch.from_arrays([names, texts, column], names=["id", "text", "metadata"]))
    assert made["error"].null_count == made.num_rows, made["error"]
    return made["metadata"].to_pylist()  # type: ignore[no-any-return]


def test_metadata_are_the_same_json_from_every_form() -> None:
    told = '{"price": 1.5, "shop": {"town": "Kyōto"}, "sold": true, "title": "Tea", "years": [1990, 2001]}'
    assert json.loads(told) == FACTS
    assert metadata_of(FACTS) == [told]
    assert metadata_of(json.dumps(FACTS)) == [told]
    assert metadata_of(json.dumps(FACTS), kind=pa.large_string()) == [told]
    assert metadata_of([("a", "1"), ("b", None)], kind=pa.map_(pa.string(), pa.string())) == ['{"a": "1", "b": null}']
    nested = pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.struct([("x", pa.int32())]))))])
    assert metadata_of({"m": [("k", [{"x": 1}, {"x": None}])]}, kind=nested) == ['{"m": {"k": [{"x": 1}, {}]}}']
    assert metadata_of(None, kind=pa.string()) == metadata_of("null") == metadata_of({}) == ["{}"]


def test_an_extension_type_is_refused_because_its_values_may_run_code() -> None:
    class Anything(pa.ExtensionType):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__(pa.binary(), "tests.anything")

        def __arrow_ext_serialize__(self) -> bytes:
            return b""

        @classmethod
        def __arrow_ext_deserialize__(cls, storage: Any, data: Any) -> Any:
            return cls()

    column = pa.StructArray.from_arrays([pa.ExtensionArray.from_storage(Anything(), pa.array([b"x"]))], names=["a"])
    rows = pa.RecordBatch.from_arrays([pa.array(["d"]), pa.array(["Tea."]), column], names=["id", "text", "metadata"])
    (row,) = ArrowChunker(SMALL)(rows).to_pylist()
    assert row["error"].startswith("its metadata have values of the type")


def test_values_that_json_has_no_words_for() -> None:
    noon = datetime(2024, 5, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    values = {"t": noon, "d": noon.date(), "n": datetime(2024, 5, 1, 12), "b": b"\xff", "x": float("nan")}
    assert json.loads(metadata_of(values)[0]) == {
        "t": "2024-05-01T10:00:00+00:00",
        "d": "2024-05-01",
        "n": "2024-05-01T12:00:00",
        "b": "/w==",
        "x": "NaN",
    }
    assert metadata_of('{"a": "\\ud800"}') == ['{"a": "\\ud800"}']
    assert metadata_of('{"a": Infinity}') == ['{"a": "Infinity"}']


def test_what_the_strategy_tells_stands_beside_what_was_given() -> None:
    chunker = ArrowChunker("markdown:size=6,counter=words")
    document = {"id": "d.md", "text": "# Tea\n\nGreen tea.\n", "metadata": '{"headings": "mine"}'}
    (row,) = rows_of(chunker, document)
    assert json.loads(row["metadata"]) == {"headings": "mine", "chunk_headings": ["Tea"]}


# --- models -------------------------------------------------------------------------------------------


def test_a_model_that_is_not_on_this_machine_is_no_document_s_error() -> None:
    for chunker in (
        ArrowChunker("cluster_semantic:embedder=/no/such/folder"),
        ArrowChunker("recursive:counter=hf:/no/such/folder"),
    ):
        with pytest.raises(OptionError, match="/no/such/folder"):
            chunker(batch({"id": "a", "text": "Tea."}))


def test_no_key_stands_in_a_row() -> None:
    class Talkative(FakeEmbedder):
        api_key = ""

        def embed_documents(self, texts: Sequence[str]) -> Vectors:
            raise ConnectionError(f"401 for key {self.api_key}\nsee above")

    model = Talkative(8)
    model.api_key = "very-secret-thing"
    (row,) = rows_of(ArrowChunker(get_chunker("cluster_semantic", embedder=model)), {"id": "a", "text": TEA * 9})
    assert "very-secret" not in row["error"]
    assert "401 for key" in row["error"]


# --- processes ----------------------------------------------------------------------------------------


def test_a_pickle_is_the_configuration() -> None:
    chunker = ArrowChunker(SMALL, max_characters=99, text_column="x")
    again = pickle.loads(pickle.dumps(chunker))
    assert (again.chunker, again.max_characters, again.text_column) == (chunker.chunker, 99, "x")
    named = ArrowChunker("cluster_semantic:size=50,embedder=all-MiniLM-L6-v2")
    assert pickle.loads(pickle.dumps(named)) == named
    assert len(pickle.dumps(named)) < 2000


def test_a_pickle_holds_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "very-secret-thing")
    spec = "contextual:chunker=recursive,llm=openai:m@http://localhost:9/v1#key=SHOP_API_KEY"
    assert b"very-secret" not in pickle.dumps(ArrowChunker(spec))
    for name in ("langchain:m", "haystack:m"):
        model = FakeEmbedder(8, name=name)
        with pytest.raises(OptionError, match="may hold a key"):
            pickle.dumps(ArrowChunker(get_chunker("cluster_semantic", embedder=model)))
