"""LangChain: swap the splitter of an application, and score the search that results."""

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from chunkadapters.langchain import ChunkcoreTextSplitter, evaluate_retriever
from chunkcore.datasets import load_dataset
from chunkcore.models import get_embedder


class MiniLM(Embeddings):
    """Any LangChain embeddings will do; this one works offline."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return get_embedder("all-MiniLM-L6-v2").embed_documents(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        return get_embedder("all-MiniLM-L6-v2").embed_queries([text])[0].tolist()


def main() -> None:
    benchmark = load_dataset("lochmere")
    documents = [Document(page_content=each.text, metadata={"source": each.id}) for each in benchmark.documents]
    splitters = {
        "RecursiveCharacterTextSplitter": RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200),
        "chunkcore recursive": ChunkcoreTextSplitter(strategy="recursive", chunk_size=200, chunk_overlap=0),
    }
    for name, splitter in splitters.items():
        store = InMemoryVectorStore(MiniLM())
        store.add_documents(splitter.split_documents(documents))
        retriever = store.as_retriever(search_kwargs={"k": 5})  # what your application already has
        report = evaluate_retriever(retriever, benchmark, name=name, k=5)
        print(f"{name}: recall {report.mean('Recall@5'):.3f}, precision {report.mean('Precision@5'):.3f}")


if __name__ == "__main__":
    main()
