"""LangChain: swap the splitter of an application, put passages behind its retriever, and score both as they are."""

from chunkadapters.langchain import ChunkcoreEmbeddings, ChunkcoreTextSplitter, PassageRetriever, evaluate_retriever
from chunkcore.datasets import load_dataset
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore


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
    passages = PassageRetriever(retriever, documents=documents, max_tokens=1000)
    report = evaluate_retriever(passages, benchmark, measures="Recall@1000tok")
    print(f"with passages behind it: {report.mean('Recall@1000tok'):.3f} at 1,000 tokens")


if __name__ == "__main__":
    main()
