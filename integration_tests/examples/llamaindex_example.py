"""LlamaIndex: put a chunker into an ingestion pipeline, passages behind the retriever, and score both as they are."""

from chunkadapters.llamaindex import ChunkcoreEmbedding, ChunkcoreNodeParser, PassageRetriever, evaluate_retriever
from chunkcore.datasets import load_dataset
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.ingestion import IngestionPipeline


def main() -> None:
    benchmark = load_dataset("lochmere")
    documents = [Document(id_=each.id, text=each.text) for each in benchmark.documents]

    # was: SentenceSplitter(chunk_size=200, chunk_overlap=50)
    parser = ChunkcoreNodeParser("recursive", chunk_size=200, chunk_overlap=50)
    nodes = IngestionPipeline(transformations=[parser]).run(documents=documents)
    embed_model = ChunkcoreEmbedding("all-MiniLM-L6-v2")  # any embedding model will do; this one works offline
    retriever = VectorStoreIndex(nodes, embed_model=embed_model).as_retriever(similarity_top_k=5)
    report = evaluate_retriever(retriever, benchmark, k=5)
    print(f"recall {report.mean('Recall@5'):.3f}, precision {report.mean('Precision@5'):.3f}")
    print(f"answers located: {dict(report.located)}, questions unanswered: {len(report.unanswered)}")
    passages = PassageRetriever(retriever, documents=documents, max_tokens=1000)
    report = evaluate_retriever(passages, benchmark, measures="Recall@1000tok")
    print(f"with passages behind it: {report.mean('Recall@1000tok'):.3f} at 1,000 tokens")


if __name__ == "__main__":
    main()
