"""Haystack: a pipeline with passages behind its retriever, written to a YAML file and loaded from it."""

import tempfile
from pathlib import Path

from chunkadapters.haystack import ChunkcoreDocumentSplitter, ChunkcorePassageRanker
from chunkcore import chunk_corpus, get_retriever, load_dataset
from haystack import Document, Pipeline
from haystack.components.retrievers import InMemoryBM25Retriever
from haystack.components.writers import DocumentWriter
from haystack.document_stores.in_memory import InMemoryDocumentStore

QUESTION = "How many days of samples does the buoy keep in its memory?"


def main(folder: Path) -> None:
    documents = load_dataset("lochmere").documents
    units = chunk_corpus(documents, "sentence:size=50")
    get_retriever("passages:lexical").index(units).save(folder / "index")  # or: chunkcore index docs/ -o index

    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(InMemoryDocumentStore(index="lochmere"), top_k=10))
    pipeline.add_component("passages", ChunkcorePassageRanker(str(folder / "index"), max_tokens=500))
    pipeline.connect("retriever", "passages")
    path = folder / "query.yaml"
    path.write_text(pipeline.dumps(), encoding="utf-8")

    loaded = Pipeline.loads(path.read_text(encoding="utf-8"))
    assert loaded.to_dict() == pipeline.to_dict()
    indexing = Pipeline()
    indexing.add_component("splitter", ChunkcoreDocumentSplitter("recursive:size=200"))
    indexing.add_component("writer", DocumentWriter(loaded.get_component("retriever").document_store))
    indexing.connect("splitter", "writer")
    sources = [Document(id=document.id, content=document.text) for document in documents]
    indexing.run({"splitter": {"documents": sources}})
    answer = loaded.run({"retriever": {"query": QUESTION}, "passages": {"query": QUESTION}})
    for passage in answer["passages"]["documents"]:
        print(passage.meta["source_id"], passage.meta["split_idx_start"], passage.content.replace("\n", " "))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
