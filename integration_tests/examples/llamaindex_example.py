"""LlamaIndex: put a chunker into an ingestion pipeline, and score the index's retriever as it is."""

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.ingestion import IngestionPipeline

from chunkadapters.llamaindex import ChunkcoreNodeParser, evaluate_retriever
from chunkcore.datasets import load_dataset
from chunkcore.models import get_embedder


class MiniLM(BaseEmbedding):
    """Any LlamaIndex embedding will do; this one works offline."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return get_embedder("all-MiniLM-L6-v2").embed_documents([text])[0].tolist()

    def _get_query_embedding(self, query: str) -> list[float]:
        return get_embedder("all-MiniLM-L6-v2").embed_queries([query])[0].tolist()

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


def main() -> None:
    benchmark = load_dataset("lochmere")
    documents = [Document(id_=each.id, text=each.text) for each in benchmark.documents]

    # was: SentenceSplitter(chunk_size=200, chunk_overlap=50)
    parser = ChunkcoreNodeParser(strategy="recursive", chunk_size=200, chunk_overlap=50)
    nodes = IngestionPipeline(transformations=[parser]).run(documents=documents)
    retriever = VectorStoreIndex(nodes, embed_model=MiniLM()).as_retriever(similarity_top_k=5)
    report = evaluate_retriever(retriever, benchmark, k=5)
    print(f"recall {report.mean('Recall@5'):.3f}, precision {report.mean('Precision@5'):.3f}")
    print(f"answers located: {dict(report.located)}, questions unanswered: {len(report.unanswered)}")


if __name__ == "__main__":
    main()
