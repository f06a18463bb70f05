"""The LlamaIndex node parser: offsets that survive, configuration that travels, and a retriever's scores."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

pytest.importorskip("llama_index.core")

from chunkadapters.llamaindex import ChunkcoreNodeParser, chunk_id_func, evaluate_retriever, run_retriever
from chunkcore.errors import DataError, OptionError
from chunkcore.locating import read_spans
from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.ingestion.pipeline import get_transformation_hash
from llama_index.core.node_parser.node_utils import default_id_func
from llama_index.core.schema import BaseNode, MetadataMode, NodeRelationship, TextNode

from integration_tests.toys import BENCHMARK, TEXTS, Windows, registered


@pytest.fixture(autouse=True, scope="module")
def _registered():
    with registered(Windows):
        yield


def document(text: str, **more: Any) -> Document:
    return Document(text=text, id_=more.pop("id_", "d"), **more)


def spans_of(node: BaseNode) -> list[tuple[int, int]]:
    start, end = node.start_char_idx, node.end_char_idx
    stated = [(span.start, span.end) for span in read_spans(node.metadata.get("spans"))]
    if stated:
        assert (min(stated)[0], max(end for _, end in stated)) == (start, end)
    return stated or [(start, end)]


def test_a_piece_whose_place_is_not_known_has_nodes_without_one():
    source = {NodeRelationship.SOURCE: document("x").as_related_node_info()}
    piece = TextNode(text="rewritten text", relationships=source)
    altered = TextNode(text="longer than it was", start_char_idx=3, end_char_idx=7)
    nodes = ChunkcoreNodeParser(Windows())([piece, altered])
    assert {(node.start_char_idx, node.end_char_idx) for node in nodes} == {(None, None)}
    whole = TextNode(text="a node that was cut from nothing")
    assert [
        whole.text[node.start_char_idx : node.end_char_idx] for node in ChunkcoreNodeParser(Windows())([whole])
    ] == [node.text for node in ChunkcoreNodeParser(Windows())([whole])]


def test_spans_of_a_scattered_chunk_are_metadata_that_no_model_reads():
    parser = ChunkcoreNodeParser(Windows(size=5, scattered=True))
    first, second = parser([document("0123456789abcdefghij", metadata={"k": "v"})])
    assert (first.text, first.metadata) == ("01234 fghij", {"k": "v", "spans": "0-5,15-20"})
    assert first.get_content(MetadataMode.EMBED) == first.get_content(MetadataMode.LLM) == "k: v\n\n01234 fghij"
    assert (second.text, second.metadata) == ("56789abcde", {"k": "v"})
    again = ChunkcoreNodeParser(Windows(size=4))([first])
    assert [(node.text, spans_of(node)) for node in again] == [
        ("0123", [(0, 4)]),
        ("4 fg", [(4, 5), (15, 17)]),
        ("hij", [(17, 20)]),
    ]
    assert ["spans" in node.metadata for node in again] == [False, True, False]


def test_neighbours_are_linked_both_ways_also_through_chains():
    documents = [document("0123456789" * 3, id_="a"), document("abcdefghij" * 3, id_="b")]
    parsers = [ChunkcoreNodeParser(Windows(size=20)), ChunkcoreNodeParser(Windows(size=10))]
    chain = IngestionPipeline(transformations=parsers)
    nodes = chain.run(documents=documents)
    for source in ("a", "b"):
        ids = [node.id_ for node in nodes if node.ref_doc_id == source]
        links = [
            (node.prev_node and node.prev_node.node_id, node.next_node and node.next_node.node_id)
            for node in nodes
            if node.ref_doc_id == source
        ]
        assert links == list(zip([None, *ids[:-1]], [*ids[1:], None], strict=True))
    assert nodes[0].next_node.hash == nodes[1].hash
    alone = ChunkcoreNodeParser(Windows(), include_prev_next_rel=False)(documents)
    assert {kind for node in alone for kind in node.relationships} == {NodeRelationship.SOURCE}


def test_ids_are_the_same_in_every_run_or_what_id_func_says():
    source = document("some text that is cut in three")
    first, again = (ChunkcoreNodeParser(Windows()).get_nodes_from_documents([source]) for _ in range(2))
    assert [node.id_ for node in first] == [node.id_ for node in again]
    assert len({node.id_ for node in first}) == 3
    calls: list[int] = []

    def numbered(i: int, doc: BaseNode) -> str:
        calls.append(i)
        return f"{doc.node_id}/{i}"

    assert [node.id_ for node in ChunkcoreNodeParser(Windows(), id_func=numbered)([source])] == ["d/0", "d/1", "d/2"]
    assert calls == [0, 1, 2]


def test_configuration_round_trips():
    parser = ChunkcoreNodeParser("recursive:size=9,counter=characters", include_metadata=False, id_func=default_id_func)
    written = ChunkcoreNodeParser.from_dict(parser.to_dict()), ChunkcoreNodeParser.from_json(parser.to_json())
    for again in (*written, pickle.loads(pickle.dumps(parser)), parser.model_copy(deep=True)):
        assert again.to_dict() == parser.to_dict()
        assert again.chunker == parser.chunker
        assert again.id_func is default_id_func
    data = json.loads(parser.to_json())
    assert (data["class_name"], data["chunker"]) == ("ChunkcoreNodeParser", "recursive")
    assert data["options"]["size"] == 9
    around = ChunkcoreNodeParser("contextual", options={"chunker": "recursive:size=9", "llm": "openai:m@http://l/v1"})
    assert ChunkcoreNodeParser.from_dict(around.to_dict()).chunker == around.chunker


def test_an_id_func_that_a_configuration_cannot_hold_is_replaced_aloud():
    parser = ChunkcoreNodeParser(Windows(), id_func=lambda i, doc: "x")
    with pytest.warns(UserWarning, match="'<lambda>' cannot be built from its name"):
        again = ChunkcoreNodeParser.from_dict(parser.to_dict())
    assert again.id_func is chunk_id_func


CHANGES = [{"size": 8}, {"overlap": 1}, {"scattered": True}, {"counter": "words"}, {"include_metadata": False}]


@pytest.mark.parametrize("other", [*CHANGES, {"id_func": default_id_func}])
def test_cache_keys_change_with_whatever_changes_the_nodes(other):
    nodes = [document("some text")]
    key = get_transformation_hash(nodes, ChunkcoreNodeParser("windows", size=7))
    assert get_transformation_hash(nodes, ChunkcoreNodeParser("windows", chunk_size=7)) == key
    assert get_transformation_hash(nodes, ChunkcoreNodeParser("windows", **{"size": 7, **other})) != key


def test_worker_processes_build_the_same_nodes():
    documents = [document(f"Naïve text number {n}. " * 30, id_=str(n)) for n in range(6)]
    parser = ChunkcoreNodeParser("recursive", size=20, overlap=5, counter="o200k_base")
    serial = IngestionPipeline(transformations=[parser], disable_cache=True).run(documents=documents)
    parallel = IngestionPipeline(transformations=[parser], disable_cache=True).run(documents=documents, num_workers=2)
    assert len(serial) > 12
    assert [node.to_dict() for node in parallel] == [node.to_dict() for node in serial]


class Unregistered(Windows):
    pass


def test_a_chunker_that_a_configuration_could_not_name_is_refused():
    with pytest.raises(ValueError, match="Unregistered is not registered"):
        ChunkcoreNodeParser(Unregistered())


# Retrievers

DOCUMENTS = [document(text, id_=key) for key, text in TEXTS.items()]


def test_a_deployed_index_is_scored_by_its_nodes_places():
    nodes = ChunkcoreNodeParser("recursive:size=45,counter=characters")(DOCUMENTS)
    retriever = VectorStoreIndex(nodes, embed_model=MockEmbedding(4)).as_retriever(similarity_top_k=len(nodes))
    report = evaluate_retriever(retriever, BENCHMARK, k=len(nodes), pool=nodes)
    assert report.mean(f"Recall@{len(nodes)}") == 1.0
    assert report.located == {"spans": 3 * len(nodes)}
    assert report.mean("PrecisionOmega") > report.mean(f"Precision@{len(nodes)}")
    assert report.name == "VectorIndexRetriever"


def test_what_is_no_retriever_or_no_answer_is_an_error_that_says_what_is():
    index = VectorStoreIndex([], embed_model=MockEmbedding(4))
    with pytest.raises(OptionError, match=r"pass its .as_retriever\(\)"):
        run_retriever(index, BENCHMARK)
    with pytest.raises(DataError, match="expected a LlamaIndex retriever, got builtin_function"):
        run_retriever(len, BENCHMARK)


def test_sizes_leave_room_for_the_metadata_that_models_read():
    text = "one two three four five six seven eight nine ten eleven twelve"
    document = Document(text=text, metadata={"title": "a b c"})  # with its key four words
    parser = ChunkcoreNodeParser("recursive:size=8,overlap=0,counter=words", metadata_aware=True)
    nodes = parser.get_nodes_from_documents([document])
    read = [len(node.get_content(metadata_mode=MetadataMode.EMBED).split()) for node in nodes]
    assert max(read) <= 8
    assert len(nodes) == 3
    assert all(text[node.start_char_idx : node.end_char_idx] == node.text for node in nodes)
    plain = ChunkcoreNodeParser("recursive:size=8,overlap=0,counter=words")
    assert max(len(node.text.split()) for node in plain.get_nodes_from_documents([document])) == 8
    again = ChunkcoreNodeParser.from_dict(parser.to_dict())
    assert [node.text for node in again.get_nodes_from_documents([document])] == [node.text for node in nodes]


def test_metadata_that_leave_no_room_and_strategies_without_a_size_are_told():
    document = Document(text="one two three", metadata={"title": "a b c d e f g h i"})
    parser = ChunkcoreNodeParser("recursive:size=5,overlap=0,counter=words", metadata_aware=True)
    with pytest.raises(ValueError, match="leaves nothing of size=5"):
        parser.get_nodes_from_documents([document])
    with pytest.raises(OptionError, match="a list, got an iterator, which is read once"):
        parser.get_nodes_from_documents(iter([document]))
    with pytest.raises(ValueError, match="metadata_aware needs a chunker with a size"):
        ChunkcoreNodeParser("fixed_sentences", metadata_aware=True)


def test_a_copy_keeps_its_strategy():
    parser = ChunkcoreNodeParser("recursive:size=9,counter=words")
    assert parser.model_copy(update={"include_metadata": False}).chunker == parser.chunker
    with pytest.raises(OptionError, match="a copy keeps its options: build"):
        parser.model_copy(update={"options": {"size": 3}})
