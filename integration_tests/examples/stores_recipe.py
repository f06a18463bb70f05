"""Vector stores: hybrid search over Qdrant, Chroma, LanceDB or pgvector, and passages behind it.

Only the lines that open the store differ.
"""

import os
import sys
import tempfile

from chunkadapters.langchain import ChunkcoreTextSplitter, IndexRetriever, PassageRetriever
from chunkcore import chunk_corpus, get_retriever, load_dataset
from langchain_classic.retrievers import EnsembleRetriever
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import VectorStore

EMBEDDINGS = DeterministicFakeEmbedding(size=64)  # in place of yours: its hits are random


def open_store(name: str, folder: str) -> VectorStore:
    if name == "chroma":
        from langchain_chroma import Chroma

        return Chroma("lochmere", EMBEDDINGS, persist_directory=folder)
    if name == "qdrant":
        from langchain_qdrant import QdrantVectorStore

        return QdrantVectorStore.construct_instance(
            EMBEDDINGS, client_options={"path": folder}, collection_name="lochmere"
        )
    if name == "lancedb":
        from langchain_community.vectorstores import LanceDB

        return LanceDB(uri=folder, embedding=EMBEDDINGS, mode="append")
    from langchain_postgres import Column, PGEngine, PGVectorStore

    engine = PGEngine.from_connection_string(os.environ["POSTGRES"])  # postgresql+psycopg://user:password@host/database
    engine.init_vectorstore_table("lochmere", 64, id_column=Column("langchain_id", "TEXT"))
    return PGVectorStore.create_sync(engine, EMBEDDINGS, "lochmere")


def main(name: str, folder: str) -> None:
    documents = [
        Document(page_content=document.text, metadata={"source": document.id})
        for document in load_dataset("lochmere").documents
    ]
    splitter = ChunkcoreTextSplitter("recursive:size=200", with_ids=False)  # Qdrant and LanceDB refuse these ids
    store = open_store(name, folder)
    store.add_documents(splitter.split_documents(documents))
    words = get_retriever("bm25").index(chunk_corpus(load_dataset("lochmere").documents, "recursive:size=200"))
    words.save(f"{folder}/words")  # once; later the folder is enough
    dense = store.as_retriever(search_kwargs={"k": 10})
    bm25 = IndexRetriever(f"{folder}/words", k=10, max_tokens=100_000)
    hybrid = EnsembleRetriever(retrievers=[dense, bm25], weights=[0.5, 0.5])
    retriever = PassageRetriever(hybrid, documents=documents, max_tokens=1000)  # or dense in place of hybrid
    texts = {document.metadata["source"]: document.page_content for document in documents}
    for passage in retriever.invoke("How many days of samples does the buoy keep in its memory?"):
        source, start = passage.metadata["source"], passage.metadata["start_index"]
        assert texts[source][start:].startswith(passage.page_content)
        print(source, start, passage.page_content.replace("\n", " "))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        main(sys.argv[1], folder)
