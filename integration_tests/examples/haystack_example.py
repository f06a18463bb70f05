"""Haystack: swap the splitter of an indexing pipeline, put passages behind the retriever, and score both."""

from chunkadapters.haystack import ChunkcoreDocumentSplitter, ChunkcorePassageRanker, evaluate_retriever
from chunkcore.datasets import load_dataset
from haystack import Document, Pipeline
from haystack.components.preprocessors import DocumentSplitter
from haystack.components.retrievers import InMemoryBM25Retriever
from haystack.components.writers import DocumentWriter
from haystack.document_stores.in_memory import InMemoryDocumentStore


def main() -> None:
    benchmark = load_dataset("lochmere")
    documents = [Document(id=each.id, content=each.text) for each in benchmark.documents]
    splitters = {
        "DocumentSplitter": DocumentSplitter(split_by="word", split_length=100),
        "chunkcore recursive": ChunkcoreDocumentSplitter("recursive", options={"size": 200, "overlap": 0}),
    }
    for name, splitter in splitters.items():
        store = InMemoryDocumentStore()
        indexing = Pipeline()
        indexing.add_component("splitter", splitter)
        indexing.add_component("writer", DocumentWriter(store))
        indexing.connect("splitter", "writer")
        Pipeline.loads(indexing.dumps())  # the YAML needs no extra configuration
        indexing.run({"splitter": {"documents": documents}})

        search = Pipeline()
        search.add_component("retriever", InMemoryBM25Retriever(store, top_k=5))
        report = evaluate_retriever(search, benchmark, name=name, measures=["Recall@5"])
        print(f"{name}: recall {report.mean('Recall@5'):.3f} at {report.mean_tokens(5):.0f} tokens a question")
        search.add_component("passages", ChunkcorePassageRanker(documents=documents))
        search.connect("retriever", "passages")
        asked = ["retriever.query", "passages.query"]
        report = evaluate_retriever(search, benchmark, measures=["Recall@1000tok"], query_socket=asked)
        print(f"with passages behind it: {report.mean('Recall@1000tok'):.3f} at 1,000 tokens")


if __name__ == "__main__":
    main()
