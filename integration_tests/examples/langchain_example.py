"""LangChain: swap the splitter of an application, and score its retriever as it is."""

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore

from chunkadapters.langchain import ChunkcoreEmbeddings, ChunkcoreTextSplitter, evaluate_retriever
from chunkcore.datasets import load_dataset


def main() -> None:
    benchmark = load_dataset("lochmere")
    documents = [Document(page_content=each.text, metadata={"source": each.id}) for each in benchmark.documents]

    # was: RecursiveCharacterTextSplitter.from_tiktoken_encoder("cl100k_base", chunk_size=200, chunk_overlap=50)
    splitter = ChunkcoreTextSplitter.from_tiktoken_encoder("cl100k_base", chunk_size=200, chunk_overlap=50)
    store = InMemoryVectorStore(ChunkcoreEmbeddings("all-MiniLM-L6-v2"))  # any embeddings will do; these work offline
    store.add_documents(splitter.split_documents(documents))
    retriever = store.as_retriever(search_kwargs={"k": 5})

    report = evaluate_retriever(retriever, benchmark, k=5)
    print(f"recall {report.mean('Recall@5'):.3f}, precision {report.mean('Precision@5'):.3f}")
    print(f"answers located: {dict(report.located)}, questions unanswered: {len(report.unanswered)}")


if __name__ == "__main__":
    main()
